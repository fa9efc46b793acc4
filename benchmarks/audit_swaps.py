"""Two slots swapped after the draw: how often does the audit fail, by rows, slots and exploration?

`python benchmarks/audit_swaps.py` draws logs of Plackett-Luce controls with 10 items whose first two slots changed
places in a share of the displays, in any of them or only where the second item has the lower score. It writes a table
into docs/explanation/audit.md, between two comments.
"""

from __future__ import annotations

import argparse
import platform

import numpy as np
import pyarrow as pa
from audit_logs import Generator, lists
from pages import DOCS, into_page

import foretest as ft
from foretest.diagnostics.audit import FAIL

SEED = 20261119  # chosen before the first log was drawn
LOGS = 20  # of a cell of the table
SHARE, ITEMS = 0.1, 10
TEMPERATURES = (0.25, 0.5, 1.0, 2.0)  # of scores with a standard deviation of 1
SLOTS, ROWS = (2, 3, 5), (20_000, 2_000)


def swapped_log_fails(g: Generator, rows: int, slots: int, temperature: float, *, by_rule: bool) -> bool:
    """Does the audit fail a log whose first two slots changed places in a tenth of the displays?"""
    scores = g.normal(size=(rows, ITEMS))
    shown = np.argsort(-(scores / temperature + g.gumbel(size=scores.shape)), axis=1)[:, :slots]
    first, second = (scores[np.arange(rows), shown[:, slot]] for slot in (0, 1))
    change = (g.random(rows) < SHARE) & (~np.bool_(by_rule) | (second < first))
    shown[change, :2] = shown[change, 1::-1]
    table = pa.table({
        "p": lists(scores), "t": lists(scores + 0.7 * g.normal(size=scores.shape)), "ranking": lists(shown),
        "click": (g.random(rows) < 0.1).astype(float), "user": g.integers(0, rows // 3, rows),
    })  # fmt: skip
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking"), estimators=["cis"],
        control=ft.PlackettLuce("p", temperature), treatment=ft.PlackettLuce("t", temperature),
    )  # fmt: skip
    audit = test.check(table, threads=1).audit
    return audit is not None and audit.outcome == FAIL


def best_first(temperature: float) -> float:
    """How often the control shows its best item first: little exploration is near 1, none of the scores near 1/10."""
    scores = np.random.default_rng(SEED).normal(size=(100_000, ITEMS)) / temperature
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return float((1.0 / odds.sum(axis=1)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=LOGS, help="logs of each cell")
    logs = parser.parse_args().logs
    columns = [f"{how}, {rows:,} rows" for how in ("any display", "by a rule") for rows in ROWS]
    lines = [
        f"| best item first | slots | {' | '.join(columns)} |", f"| ---: | ---: |{' ---: |' * len(columns)}"
    ]  # fmt: skip
    for t, temperature in enumerate(TEMPERATURES):
        for slots in SLOTS:
            fails = [
                sum(
                    swapped_log_fails(
                        np.random.default_rng([SEED, by_rule, t, slots, rows, n]), rows, slots, temperature,
                        by_rule=bool(by_rule),
                    )
                    for n in range(logs)
                )
                for by_rule in (0, 1)
                for rows in ROWS
            ]  # fmt: skip
            cells = " | ".join(f"{count} of {logs}" for count in fails)
            lines.append(f"| {best_first(temperature):.0%} | {slots} | {cells} |")
            print(lines[-1], flush=True)
    lines += ["", f"Seeds: from {SEED}. foretest {ft.__version__}, Python {platform.python_version()}."]
    into_page(DOCS / "explanation/audit.md", "swaps", "\n".join(lines))


if __name__ == "__main__":
    main()
