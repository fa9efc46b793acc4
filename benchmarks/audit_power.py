"""Do the audit and the questions stay silent on right logs, and speak up on wrong ones?

Logs are drawn, right ones of every policy and wrong ones of every mistake that is known to be made, and given to
`OfflineTest.check`, or to `run` where the verdict is what speaks up. Of the right ones at most 2 % should fail and 4 %
be questioned; a mistake should be caught in at least 95 of 100 logs.

    python benchmarks/audit_power.py [--right N] [--wrong N] [--faults N] [--save FILE]

prints Markdown tables and writes them into docs/explanation/audit.md, between two comments. With --save, rows of the
tables that are in the file are taken from there.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from audit_faults import FAULTS
from audit_logs import RIGHT_LOGS, Maker, thurstone
from audit_mistakes import MISTAKES, Mistake
from pages import DOCS, into_page

import foretest as ft
from foretest.diagnostics.audit import FAIL, UNVERIFIED, WARN

SEED = 20261118  # chosen before the first log was drawn
RIGHT, WRONG, FAULTY = 15, 100, 40  # logs of a row of the tables
LONG, SHORT = 20_000, 2_000
OF_RIGHT, OF_MISTAKE, OF_FAULT = range(3)  # the tables, which have seeds of their own


# -- what a result says -----------------------------------------------------------------------------------------------


def signs(result: Any) -> list[str]:
    """All that a user is told may be wrong: tests that fail or warn, questions by kind, and what is `unverified`."""
    audit = result.audit
    found = [f"{f.name}: {f.outcome}" for f in audit.findings if f.outcome in (FAIL, WARN)]
    found += [f"asked: {kind}" for kind in result.health["questions"]]
    if audit.outcome == UNVERIFIED and any("thinned or chosen by reward" in note for note in result.notes):
        found.append(UNVERIFIED)
    estimates = [e for metric in result.metrics.values() for e in metric.estimates.values()]
    if estimates and all(any("the log supports only" in reason for reason in e.reasons) for e in estimates):
        found.append("insufficient: the log supports only a part")
    return found


class Row(NamedTuple):
    """What was said of the logs of one row of a table."""

    signs: list[list[str]]

    def share(self, is_such: Callable[[list[str]], bool]) -> int:
        return sum(map(is_such, self.signs))

    def counts(self, of: Callable[[str], bool]) -> str:
        found = Counter(sign for log in self.signs for sign in set(log) if of(sign))
        return ", ".join(f"{sign} {n}" for sign, n in found.most_common()) or "none"


def fails(log: list[str]) -> bool:
    return any(sign.endswith(f": {FAIL}") for sign in log)


def is_questioned(log: list[str]) -> bool:
    return not fails(log) and any(sign.endswith(f": {WARN}") or sign.startswith("asked: ") for sign in log)


def generator(table: int, place: int, rows: int, number: int) -> np.random.Generator:
    return np.random.default_rng([SEED, table, place, rows, number])


class Study:
    """The rows that are known, by name, and the file that keeps them."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.known: dict[str, list[list[str]]] = json.loads(file.read_text()) if file and file.exists() else {}

    def row(self, make: Maker, key: tuple[int, int], rows: int, logs: int) -> Row:
        """`logs` logs of a kind; `key` is its table and its place there, which choose the seeds."""
        name = f"{key[0]}.{key[1]}.{rows}.{logs}"
        if name not in self.known:
            self.known[name] = [signs(make(generator(*key, rows, n), rows).result()) for n in range(logs)]
            if self.file:
                self.file.write_text(json.dumps(self.known))
        return Row(self.known[name])


# -- tables -----------------------------------------------------------------------------------------------------------


def sizes_of(make: Maker) -> tuple[int, ...]:
    """A Thurstone probability is a nested integral: 20 000 rows would take a minute a log."""
    return (SHORT,) if make is thurstone else (LONG, SHORT)


def right_rows(study: Study, logs: int, sizes: tuple[int, ...] = (LONG, SHORT)) -> dict[tuple[str, int], Row]:
    return {
        (name, rows): study.row(make, (OF_RIGHT, place), rows, logs)
        for rows in sizes
        for place, (name, make) in enumerate(RIGHT_LOGS.items())
        if rows in sizes_of(make)
    }


def right_table(right: dict[tuple[str, int], Row]) -> Iterable[str]:
    all_logs = Row([log for row in right.values() for log in row.signs])
    logs, failed, asked = len(all_logs.signs), all_logs.share(fails), all_logs.share(is_questioned)
    yield (
        f"**Right logs.** Of {logs:,} right logs {failed} fail ({failed / logs:.1%}; aim: at most 2 %) and {asked} are"
        f" questioned ({asked / logs:.1%}; aim: at most 4 %): a test warns, or a question is asked."
    )
    yield from ("", "| right log | rows | logs | fail | questioned | by |", "| --- | ---: | ---: | ---: | ---: | --- |")
    for (name, rows), row in right.items():
        by = row.counts(lambda sign: sign != UNVERIFIED)
        yield f"| {name} | {rows:,} | {len(row.signs)} | {row.share(fails)} | {row.share(is_questioned)} | {by} |"


def mistake_table(study: Study, logs: int) -> Iterable[str]:
    yield "**Mistakes.** Logs of which the user is told, out of all (aim: at least 95 of 100), and by what."
    yield from ("", "| mistake | rows | told | by |", "| --- | ---: | ---: | --- |")
    for place, mistake in enumerate(MISTAKES):
        for rows in mistake.sizes:
            row = study.row(mistake.make, (OF_MISTAKE, place), rows, logs)
            caught, by = row.share(partial(is_caught, mistake)), row.counts(mistake.told_by.__contains__)
            yield f"| {mistake.name} | {rows:,} | **{caught} of {len(row.signs)}** | {by} |"


def is_caught(mistake: Mistake, log: list[str]) -> bool:
    return any(sign in mistake.told_by for sign in log)


def fault_table(study: Study, logs: int) -> Iterable[str]:
    yield "**Faults of a control with scores.** Logs whose audit fails (aim: at least 95 %), and by which tests."
    yield from ("", "| fault | rows | logs | fail | tests |", "| --- | ---: | ---: | ---: | --- |")
    for place, fault in enumerate(FAULTS):
        row = study.row(fault.make, (OF_FAULT, place), fault.rows, logs)
        by = row.counts(lambda sign: sign.endswith(f": {FAIL}"))
        yield f"| {fault.name} | {fault.rows:,} | {logs} | **{row.share(fails) / logs:.1%}** | {by} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--right", type=int, default=RIGHT, help=f"right logs of each kind and size (default {RIGHT})")
    parser.add_argument("--wrong", type=int, default=WRONG, help=f"logs of each mistake (default {WRONG})")
    parser.add_argument("--faults", type=int, default=FAULTY, help=f"logs of each fault (default {FAULTY})")
    parser.add_argument("--save", type=Path, help="a JSON file that keeps the rows of the tables")
    options = parser.parse_args()
    study = Study(options.save)
    parts = (
        right_table(right_rows(study, options.right)),
        mistake_table(study, options.wrong),
        fault_table(study, options.faults),
    )
    text = "\n\n".join("\n".join(part) for part in parts)
    text += (
        f"\n\nSeeds: from {SEED}, chosen beforehand. foretest {ft.__version__}, Python {platform.python_version()},"
        f" NumPy {np.__version__}."
    )
    print(text)
    into_page(DOCS / "explanation/audit.md", "audit", text)


if __name__ == "__main__":
    main()
