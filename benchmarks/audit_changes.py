"""How often does the audit see that something changed what was drawn, by rows and exploration: two slots swapped after
the draw, a control that was changed in the middle of the log, rows of another policy?

`python benchmarks/audit_changes.py` draws logs of Plackett-Luce controls with 10 items, and writes three tables into
docs/explanation/audit.md, each between two comments; `--only NAME` makes one of them.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from audit_logs import Floats, Generator, Ints, lists
from pages import DOCS, into_page

import foretest as ft
from foretest.diagnostics.audit import FAIL, Audit

SEED = 20261119  # chosen before the first log was drawn
LOGS, RIGHT = 20, 200  # of a cell of a table; of right logs
SHARE, ITEMS = 0.1, 10
TEMPERATURES = (0.25, 0.5, 1.0, 2.0)  # of scores with a standard deviation of 1
SLOTS, ROWS = (2, 3, 5), (20_000, 2_000)
DAYS = 14


def draw(g: Generator, scores: Floats, slots: int) -> Ints:
    return np.argsort(-(scores + g.gumbel(size=scores.shape)), axis=1)[:, :slots]


def audited(
    g: Generator, scores: Floats, shown: Ints, control: Any, day: Ints | None = None, temperature: float = 1.0
) -> Audit:
    """The audit of a log with three displays a user."""
    rows = len(scores)
    table = pa.table({
        "p": lists(scores), "t": lists(scores + 0.7 * g.normal(size=scores.shape)), "ranking": lists(shown),
        "click": (g.random(rows) < 0.1).astype(float), "user": g.integers(0, rows // 3, rows),
        "day": np.zeros(rows, np.int64) if day is None else day,
    })  # fmt: skip
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", date=None if day is None else "day")
    treatment = ft.PlackettLuce("t", temperature)
    test = ft.OfflineTest(log=columns, control=control, treatment=treatment, estimators=["cis"])
    audit = test.check(table, threads=1).audit
    assert audit is not None
    return audit


def best_first(temperature: float) -> float:
    """How often the control shows its best item first: little exploration is near 1, none of the scores near 1/10."""
    scores = np.random.default_rng(SEED).normal(size=(100_000, ITEMS)) / temperature
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return float((1.0 / odds.sum(axis=1)).mean())


# -- two slots swapped ------------------------------------------------------------------------------------------------


def swapped_log_fails(g: Generator, rows: int, slots: int, temperature: float, *, by_rule: bool) -> bool:
    """Does the audit fail a log whose first two slots changed places in a tenth of the displays?"""
    scores = g.normal(size=(rows, ITEMS))
    shown = draw(g, scores / temperature, slots)
    first, second = (scores[np.arange(rows), shown[:, slot]] for slot in (0, 1))
    change = (g.random(rows) < SHARE) & (~np.bool_(by_rule) | (second < first))
    shown[change, :2] = shown[change, 1::-1]
    control = ft.PlackettLuce("p", temperature)
    return audited(g, scores, shown, control, temperature=temperature).outcome == FAIL


def swaps(logs: int) -> Iterable[str]:
    columns = [f"{how}, {rows:,} rows" for how in ("any display", "by a rule") for rows in ROWS]
    yield f"| best item first | slots | {' | '.join(columns)} |"
    yield f"| ---: | ---: |{' ---: |' * len(columns)}"
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
            yield f"| {best_first(temperature):.0%} | {slots} | {cells} |"


# -- a control that was changed ---------------------------------------------------------------------------------------


def redeployed_outcome(g: Generator, rows: int, times: float) -> str:
    """The outcome by day of a control whose temperature was multiplied in the middle, and is fitted to the whole."""
    scores, day = g.normal(size=(rows, ITEMS)), g.integers(0, DAYS, rows)
    temperature = 0.5 * np.where(day < DAYS // 2, 1.0, times)
    shown = draw(g, scores / temperature[:, None], 3)
    findings = audited(g, scores, shown, ft.PlackettLuce("p", "fit"), day).findings
    return next(finding.outcome for finding in findings if finding.name == "likelihood by day")


def redeployed(logs: int) -> Iterable[str]:
    yield f"| temperature from the middle on | {' | '.join(f'{rows:,} rows' for rows in ROWS)} |"
    yield f"| --- |{' ---: |' * len(ROWS)}"
    for place, times in enumerate((1.0, 1.05, 1.1, 1.2, 1.5)):
        many = RIGHT * logs // LOGS if times == 1.0 else logs
        cells = []
        for rows in ROWS:
            outcomes = [
                redeployed_outcome(np.random.default_rng([SEED, 2, place, rows, n]), rows, times) for n in range(many)
            ]
            warns = f" ({outcomes.count('warn')} warn)" if times == 1.0 else ""
            cells.append(f"{outcomes.count(FAIL)} of {many}{warns}")
        name = "as before: a right log" if times == 1.0 else f"{times - 1.0:.0%} higher"
        yield f"| {name} | {' | '.join(cells)} |"


# -- rows of another policy -------------------------------------------------------------------------------------------


def other_is_named(g: Generator, rows: int, temperature: float, share: float) -> bool:
    """Does a remedy say that a share of the rows, which show items at random, is of another policy?"""
    scores = g.normal(size=(rows, ITEMS))
    shown = draw(g, np.where(g.random(rows)[:, None] < share, 0.0, scores / temperature), 3)
    findings = audited(g, scores, shown, ft.PlackettLuce("p", temperature)).findings
    return any("come from another policy" in (finding.remedy or "") for finding in findings)


def other(logs: int) -> Iterable[str]:
    shares = (0.01, 0.03, 0.1)
    columns = [f"{share:.0%}, {rows:,} rows" for share in shares for rows in ROWS]
    yield f"| best item first | {' | '.join(columns)} |"
    yield f"| ---: |{' ---: |' * len(columns)}"
    for t, temperature in enumerate(TEMPERATURES):
        counts = [
            sum(
                other_is_named(np.random.default_rng([SEED, 3, t, place, rows, n]), rows, temperature, share)
                for n in range(logs)
            )
            for place, share in enumerate(shares)
            for rows in ROWS
        ]
        yield f"| {best_first(temperature):.0%} | {' | '.join(f'{count} of {logs}' for count in counts)} |"


TABLES: dict[str, Callable[[int], Iterable[str]]] = {"swaps": swaps, "redeployed": redeployed, "other": other}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=LOGS, help="logs of each cell")
    parser.add_argument("--only", choices=list(TABLES), action="append", help="the table to make")
    options = parser.parse_args()
    for name in options.only or TABLES:
        lines = []
        for line in TABLES[name](options.logs):
            lines.append(line)
            print(line, flush=True)
        lines += ["", f"Seeds: from {SEED}. foretest {ft.__version__}, Python {platform.python_version()}."]
        into_page(DOCS / "explanation/audit.md", name, "\n".join(lines))


if __name__ == "__main__":
    main()
