"""How often does the sensitivity band hold the true uplift, and how often does the plain interval?

Simulated histories of the world `paper` (the same tests as `foretest simulate history` writes), of each test the
control's log alone; the truth is known. `point-ncis-adaptive` is run with its defaults, and the same sums are then
analysed at other Γ.

    python benchmarks/band_coverage.py [--seeds 0 1 2 3 4] [--folder FOLDER]

prints a table and writes it into docs/explanation/sensitivity.md, between two comments. With --folder what was found of
each seed is kept there, and found again by the next run; truths that `history_agreement.py` kept there are not computed
again.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pages import DOCS, into_page

import foretest as ft
from foretest.inference.buckets import Interval
from foretest.inference.sensitivity import sensitivity
from foretest.simulate import WORLDS, simulate_log
from foretest.simulate.history import TRUTH_DISPLAYS, TRUTH_DRAWS, draw_test
from foretest.simulate.truth import true_values

SEEDS = (0, 1, 2, 3, 4)
TESTS, ROWS = 39, 150_000
ESTIMATOR = "point-ncis-adaptive"
DEFAULT = (1.15, 1.3)
GAMMAS = ((1.0, 1.0), (1.1, 1.2), DEFAULT, (1.25, 1.5))
GOAL = 0.88


def one_test(seed: int, number: int, rows: int, truth: dict[str, Any] | None) -> dict[str, Any]:
    """A test's truth, its estimate, and the band at every Γ."""
    world = WORLDS["paper"]
    drawn = draw_test(world, number, seed)
    if truth is None:
        values = true_values(world, drawn.change, drawn.seed, displays=TRUTH_DISPLAYS, draws=TRUTH_DRAWS)["click"]
        truth = {"control": values.control, "treatment": values.treatment}
    log = pa.Table.from_batches(simulate_log(replace(world, change=drawn.change), rows, drawn.seed, arm="control"))
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="display_id"),
        control=ft.PlackettLuce(scores="control_scores"),
        treatment=ft.PlackettLuce(scores="treatment_scores"),
        estimators=[ESTIMATOR],
        weight_bound=20.0,
    )
    aggregates, notes, r_max = test.aggregate(log, threads=1)
    metric = test.analyse(aggregates, notes, r_max).metrics["click"]
    e = metric.estimates[ESTIMATOR]
    assert e.effect_size_ci_lower is not None
    assert e.effect_size_ci_upper is not None
    interval = Interval(e.effect_size_ci_lower, e.effect_size_ci_upper)
    bands = []
    for gamma in GAMMAS:
        plan = replace(aggregates.plan, settings=test.replace(gamma=gamma).settings)
        band = sensitivity(
            replace(aggregates, plan=plan), plan.point_weightings[0], 0,
            plain=interval, verdict=e.verdict, control=metric.control.value or 0.0,
            gamma=plan.gamma(plan.estimators[0]),
        ).to_dict()  # fmt: skip
        assert gamma != DEFAULT or band == e.sensitivity  # as the whole road has it
        bands.append(band)
    return {
        "uplift": truth["treatment"] - truth["control"], "control": truth["control"], "bands": bands,
        "estimate": e.effect_size, "interval": interval, "verdict": e.verdict, "slice": bands[0]["slice_gamma"],
    }  # fmt: skip


def one_history(seed: int, folder: Path, tests: int = TESTS, rows: int = ROWS) -> list[dict[str, Any]]:
    """All tests of a seed, from `folder` if they are there."""
    place, known = folder / f"band-{seed}.json", folder / f"seed-{seed}.json"
    if not place.exists():
        print(f"seed {seed} …", file=sys.stderr)
        truths = json.loads(known.read_text(encoding="utf-8"))["truth"] if known.exists() else {}
        found = [one_test(seed, k, rows, truths.get(f"test-{k:03d}")) for k in range(1, tests + 1)]
        place.write_text(json.dumps(found), encoding="utf-8")
    tests_found: list[dict[str, Any]] = json.loads(place.read_text(encoding="utf-8"))
    return tests_found


def share(hits: list[bool]) -> str:
    """93 % (± 2 %), with the standard error of a share."""
    p = float(np.mean(hits))
    return f"{p:.1%} ± {np.sqrt(p * (1.0 - p) / len(hits)):.1%}".replace("%", " %")


def row(title: str, found: list[dict[str, Any]], limits: list[tuple[float, float]]) -> str:
    """Coverage, width, verdicts and false ones of a set of intervals."""
    truth = [test["uplift"] for test in found]
    held = [lower <= t <= upper for t, (lower, upper) in zip(truth, limits, strict=True)]
    width = np.median([(upper - lower) / test["control"] for test, (lower, upper) in zip(found, limits, strict=True)])
    positive = [lower > 0.0 for lower, _ in limits]
    negative = [upper < 0.0 for _, upper in limits]
    false = sum((p and t <= 0.0) or (n and t >= 0.0) for p, n, t in zip(positive, negative, truth, strict=True))
    calls = f"{100 * np.mean(positive):.0f} % | {100 * np.mean(negative):.0f} % | {false}"
    return f"| {title} | {share(held)} | {100 * width:.1f} | {calls} |"


def report(found: list[dict[str, Any]], seeds: tuple[int, ...], seconds: float | None = None) -> str:
    lines = [
        f"World `paper`, seeds {', '.join(map(str, seeds))}: {len(found)} tests of {ROWS:,} displays, `{ESTIMATOR}`"
        f" with its defaults, level 90 %. The goal is {100 * GOAL:.0f} % for the band at its defaults.",
        "",
        "| | holds the true uplift | median width, points of the control | positive | negative | false |",
        "| --- | --- | --- | --- | --- | --- |",
        row("plain interval", found, [tuple(test["interval"]) for test in found]),  # type: ignore[misc]
    ]
    for at, (low, high) in enumerate(GAMMAS):
        limits = [(test["bands"][at]["ci_lower"], test["bands"][at]["ci_upper"]) for test in found]
        title = f"Γ {low:g} down, {high:g} up"
        lines.append(row(f"**{title}** (default)" if (low, high) == DEFAULT else title, found, limits))
    t = np.array([(test["bands"][-1]["effect_size_upper"] - test["estimate"]) / (GAMMAS[-1][1] - 1) for test in found])
    gap = np.array([test["uplift"] - test["estimate"] for test in found])
    slices = np.array([test["slice"] for test in found], np.float64)
    told = np.isfinite(slices)  # others have no reward in the slice
    stars = [(test["verdict"], test["bands"][0]["breakdown_gamma"]) for test in found]
    called = [star for verdict, star in stars if verdict in ("positive", "negative")]
    some = sorted(star for star in called if star is not None)
    lines += [
        "",
        f"Over all tests the unsupported part was worth {1.0 + gap.sum() / t.sum():.2f} times the supported part"
        f" (Σ (truth − estimate) / Σ t, plus 1); the slice test says {np.average(slices[told], weights=t[told]):.2f} on"
        f" average, weighted by t, with a standard deviation of {slices[told].std(ddof=1):.2f} between tests. Of"
        f" {len(called)} verdicts other than neutral {len(called) - len(some)} hold at any Γ; the Γ* of the others has"
        f" quartiles {', '.join(f'{q:.2f}' for q in np.quantile(some, [0.25, 0.5, 0.75]))}.",
        "",
        f"foretest {ft.__version__}, Python {platform.python_version()}, NumPy {np.__version__}."
        + ("" if seconds is None else f" {seconds:.0f} s of CPU time."),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="default: 0 1 2 3 4, as documented")
    parser.add_argument("--folder", type=Path, help="where what was found is kept; default: nowhere")
    options = parser.parse_args()
    seeds, begin = tuple(options.seeds), time.process_time()
    with tempfile.TemporaryDirectory(prefix="foretest-band-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        found = [test for seed in seeds for test in one_history(seed, folder)]
    text = report(found, seeds, None if options.folder else time.process_time() - begin)
    print(text)
    if seeds == SEEDS:
        into_page(DOCS / "explanation/sensitivity.md", "coverage", text)
    else:
        print("\nOther seeds than the documented: docs/explanation/sensitivity.md stays as it is.", file=sys.stderr)


if __name__ == "__main__":
    main()
