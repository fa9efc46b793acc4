"""How often is a verdict given where there is no effect?

Null logs: the treatment ranks otherwise than the control, and rewards do not depend on the ranking, so that the true
uplift is 0 and the unsupported part earns what the supported does. Contexts and policies are those of
`interval_coverage.py`; a context's click rate is that of its group, whatever is shown. Two-sided, at a level of 90 %,
10 % of the verdicts may be other than neutral.

    python benchmarks/null_verdicts.py [--logs N] [--rows N]

prints a table and writes it into docs/explanation/sensitivity.md, between two comments.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from interval_coverage import RANKINGS, World, make_world
from pages import DOCS, into_page

import foretest as ft
from foretest.offline import analysis

SEED = 20260311  # chosen before the first log was drawn
LOGS, ROWS = 1000, 4000
CLICKS = np.array([0.08, 0.12, 0.20, 0.30])  # by group of contexts
KEYS = ("point-ncis", "point-ncis-adaptive")

Floats = npt.NDArray[np.float64]


def null_log(world: World, cumulated: Floats, log: int, rows: int) -> pa.Table:
    """One log; users come with about four displays each, in contexts of their own."""
    rng = np.random.default_rng([SEED, log])
    x = rng.choice(len(world.share), rows, p=world.share)
    shown = (rng.random((rows, 1)) > cumulated[x]).sum(axis=1).clip(max=len(RANKINGS) - 1)
    lists = pa.list_(pa.float64())
    return pa.table({
        "click": rng.random(rows) < CLICKS[world.group[x]],
        "user": rng.integers(0, rows // 4, rows),
        "ranking": pa.array(list(RANKINGS[shown]), pa.list_(pa.int32())),
        "control_scores": pa.array(list(world.control_scores[x]), lists),
        "treatment_scores": pa.array(list(world.treatment_scores[x]), lists),
    })  # fmt: skip


def verdicts(logs: int, rows: int) -> list[dict[str, Any]]:
    """By log and estimator: the verdict, whether the band agrees, and Γ̂ of the slice test."""
    world, found = make_world(), []
    cumulated = np.cumsum(world.control, axis=1)
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking"),
        control=ft.PlackettLuce(scores="control_scores"),
        treatment=ft.PlackettLuce(scores="treatment_scores"),
        estimators=list(KEYS),
    )
    analysis.resample_counts = cache(analysis.resample_counts)  # their seed is the same for all logs
    for log in range(logs):
        result = test.run(null_log(world, cumulated, log, rows), threads=1)
        estimates = result.metrics["click"].estimates
        found.append({
            key: (e.verdict, e.robustness, None if e.sensitivity is None else e.sensitivity["slice_gamma"])
            for key, e in estimates.items()
        })  # fmt: skip
        if log % 100 == 99:
            print(f"{log + 1} logs", file=sys.stderr)
    return found


def report(found: list[dict[str, Any]], rows: int, seconds: float) -> str:
    count = len(found)
    most = 0.10 + 2.0 * np.sqrt(0.09 / count)
    lines = [
        f"{count:,} null logs of {rows:,} displays (seed {SEED}). The goal is 10 % and two standard errors,"
        f" {100 * most:.1f} %, of verdicts other than neutral.",
        "",
        "| | positive | negative | other than neutral | insufficient | other than neutral, and robust | mean Γ̂ |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for key in KEYS:
        said = [log[key][0] for log in found]
        called = sum(v in ("positive", "negative") for v in said)
        robust = sum(log[key][0] in ("positive", "negative") and log[key][1] == "robust" for log in found)
        slices = np.array([log[key][2] for log in found], np.float64)
        cells = [
            str(said.count("positive")), str(said.count("negative")), f"**{100 * called / count:.1f} %**",
            str(said.count("insufficient")), f"{100 * robust / count:.1f} %",
            f"{np.nanmean(slices):.3f} ± {np.nanstd(slices, ddof=1) / np.sqrt(count):.3f}",
        ]  # fmt: skip
        lines.append(f"| `{key}` | {' | '.join(cells)} |")
    return "\n".join([
        *lines, "", f"foretest {ft.__version__}, Python {platform.python_version()}, NumPy {np.__version__}."
        f" {seconds:.0f} s of CPU time."])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=LOGS)
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    begin = time.process_time()
    found = verdicts(options.logs, options.rows)
    text = report(found, options.rows, time.process_time() - begin)
    print(text)
    if (options.logs, options.rows) == (LOGS, ROWS):
        into_page(DOCS / "explanation/sensitivity.md", "null", text)
    else:
        print("\nAnother size than the documented: docs/explanation/sensitivity.md stays as it is.", file=sys.stderr)


if __name__ == "__main__":
    main()
