"""Do 90 % intervals hold when 95 % of the rows without a reward were left out, and [log] keep says so?

The finite world of `interval_coverage.py`, with a treatment that changes much everywhere: what every estimator tends to
is a sum over all contexts and rankings. Pairs of logs are drawn: one with all its rows, and the same one of which every
row with a click was kept and each other row with a probability of 5 %. The thinned one is tested with keep, and without
it, as if it were the log. Displays are independent, or of users who come several times.

    python benchmarks/thinned.py [--logs N] [--rows N]

prints a Markdown table and writes it into docs/how-to/thinned-logs.md, between two comments.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from interval_coverage import (
    ADAPTIVE,
    LEVEL,
    ORDINARY,
    World,
    estimator,
    log_of_rows,
    log_of_users,
)
from pages import DOCS, into_page
from paired_logs import PairedStudy, run_study

import foretest as ft
from foretest.files import nan_if_none

SEED = 20260404  # chosen before the first log was drawn
LOGS, ROWS = 2000, 5_000
KEEP = 0.05  # of rows without a reward
AIM = 2.0  # percentage points between the coverage of both
LABELS = (ADAPTIVE, "cis 10", "ncis 10", "piece-ncis 10", "point-ncis 10")
FULL, THINNED, WITHOUT = "all rows", "thinned, with keep", "thinned, without keep"
KINDS = {"independent displays": None, "users who come several times": ORDINARY}


class Answer(NamedTuple):
    """What a test of one log says."""

    control: float
    uplift: dict[str, float]  # absolute, by estimator
    relative: dict[str, float]
    limits: dict[str, tuple[float, float]]  # of the absolute uplift
    audit: str
    rows: int


def offline_test(kind: str, *, keep: bool) -> ft.OfflineTest:
    unit = None if KINDS[kind] is None else "user"
    columns = ft.LogColumns(
        rewards=["click"], id="display", unit=unit, ranking="ranking", keep="keep" if keep else None
    )
    return ft.OfflineTest(
        log=columns,
        control=ft.PlackettLuce("control"),
        treatment=ft.PlackettLuce("treatment"),
        estimators=[estimator(label) for label in LABELS],
        strata="group",
        interval="delta",
        confidence_level=LEVEL,
    )


def answer(kind: str, log: pa.Table, *, keep: bool) -> Answer:
    result = offline_test(kind, keep=keep).run(log, threads=1)
    metric = result.metrics["click"]
    ends = {k: (nan_if_none(e.effect_size_ci_lower), nan_if_none(e.effect_size_ci_upper))
            for k, e in metric.estimates.items()}  # fmt: skip
    assert metric.control.value is not None
    assert result.audit is not None
    uplift = {label: nan_if_none(e.effect_size) for label, e in metric.estimates.items()}
    relative = {label: nan_if_none(e.rel_effect_size) for label, e in metric.estimates.items()}
    return Answer(metric.control.value, uplift, relative, ends, result.audit.outcome, result.log["rows"])


def pair(kind: str, world: World, rows: int, seed: np.random.SeedSequence) -> dict[str, Answer]:
    """The answers of one log, and of what is left of it."""
    rng, users = np.random.default_rng(seed), KINDS[kind]
    log = log_of_rows(world, rows, rng) if users is None else log_of_users(world, rows, rng, users)
    keep = np.where(np.asarray(log["click"]), 1.0, KEEP)
    some = np.flatnonzero(rng.random(len(keep)) < keep)
    thinned = log.append_column("keep", pa.array(keep)).take(some)
    return {
        FULL: answer(kind, log, keep=False),
        THINNED: answer(kind, thinned, keep=True),
        WITHOUT: answer(kind, thinned, keep=False),
    }


class Study(PairedStudy[Answer]):
    """The answers of all pairs of one kind, and the absolute uplifts that estimators tend to."""

    def bias(self, how: str, label: str) -> float:
        """How far the mean relative uplift is from the limit."""
        return float(np.mean([a.relative[label] for a in self.answers[how]])) - self.expected[label] / self.control

    def share(self, how: str, outcome: str) -> float:
        """The share of logs whose audit has this outcome."""
        return float(np.mean([a.audit == outcome for a in self.answers[how]]))

    def value(self, how: str) -> float:
        """The mean of the control's value over the true one."""
        return float(np.mean([a.control for a in self.answers[how]])) / self.control

    def rows(self, how: str) -> float:
        return float(np.mean([a.rows for a in self.answers[how]]))


def study(kind: str, logs: int, rows: int) -> Study:
    """The study of one kind of logs."""
    seeds = np.random.SeedSequence([SEED, list(KINDS).index(kind)]).spawn(logs)
    done: Study = run_study(
        Study, KINDS[kind], seeds, LABELS, lambda world, seed: pair(kind, world, rows, seed)
    )  # fmt: skip
    return done


def table(studies: dict[str, Study]) -> Iterator[str]:
    yield (
        "| logs | estimator | limit | held: all rows | held: with keep | held: without keep | relative bias: all rows"
        " | with keep | without keep | width: all rows | with keep |"
    )
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for kind, one in studies.items():
        for label in LABELS:
            held = [f"{one.coverage(how, label):.1%}" for how in (FULL, THINNED, WITHOUT)]
            widths = [f"{100 * one.width(how, label):.1f} points" for how in (FULL, THINNED)]
            biases = [f"{100 * one.bias(how, label):+.1f} points" for how in (FULL, THINNED, WITHOUT)]
            limit = f"{one.expected[label] / one.control:+.1%}"
            yield f"| {kind} | `{label}` | {limit} | {' | '.join([*held, *biases, *widths])} |"


def audits(studies: dict[str, Study]) -> Iterator[str]:
    yield "| logs | | rows | control's value, of the true one | audit fails | audit warns |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for kind, one in studies.items():
        for how in (FULL, THINNED, WITHOUT):
            facts = f"{one.rows(how):,.0f} | {one.value(how):.3f} | {one.share(how, 'fail'):.1%}"
            yield f"| {kind} | {how} | {facts} | {one.share(how, 'warn'):.1%} |"


def report(studies: dict[str, Study], logs: int, rows: int, wall: float) -> str:
    apart = {(kind, label): 100.0 * abs(one.coverage(FULL, label) - one.coverage(THINNED, label))
             for kind, one in studies.items() for label in LABELS}  # fmt: skip
    missed = [f"`{label}`, {kind} ({points:.1f})" for (kind, label), points in apart.items() if points > AIM]
    error = float(np.sqrt(LEVEL * (1.0 - LEVEL) / logs))
    return "\n".join(
        [
            f"{logs:,} pairs of logs of {rows:,} displays of each kind; delta intervals, nominal level {LEVEL:.0%};"
            f" Monte Carlo standard error of a coverage of {LEVEL:.0%}: {error:.2%}. The aim: with keep within"
            f" {AIM:g} points of all rows. Missed by: {'; '.join(missed) or 'none'}.",
            "",
            *table(studies),
            "",
            *audits(studies),
            "",
            f"Seeds: `SeedSequence([{SEED}, kind]).spawn({logs})`. foretest {ft.__version__}, Python"
            f" {platform.python_version()}, NumPy {np.__version__}. {wall:,.0f} s.",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=LOGS)
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    begun = time.monotonic()
    studies = {}
    for kind in KINDS:
        studies[kind] = study(kind, options.logs, options.rows)
        print(f"{kind}: {time.monotonic() - begun:,.0f} s", file=sys.stderr)
    text = report(studies, options.logs, options.rows, time.monotonic() - begun)
    print(text)
    if options.logs == LOGS and options.rows == ROWS:
        into_page(DOCS / "how-to/thinned-logs.md", "thinned logs", text)


if __name__ == "__main__":
    main()
