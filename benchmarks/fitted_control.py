"""Is a fitted temperature the true one, and do 90 % intervals hold with it as often as with the true one?

The finite world of `interval_coverage.py`, with a treatment that changes much everywhere: what every estimator tends to
is a sum over all contexts and rankings. The control's scores are written with a factor, so that its temperature is .7.
Each log is tested three times: with the true temperature, with `temperature = "fit"`, and with 1, as if nobody had said
otherwise. Displays are independent, or of users who come several times.

    python benchmarks/fitted_control.py [--logs N] [--rows N]

prints Markdown tables; with --write they go into docs/how-to/fitted-control.md, between two comments.
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

SEED = 20260518  # chosen before the first log was drawn
LOGS, ROWS = 2000, 5_000
TRUE = 0.7
LABELS = (ADAPTIVE, "cis 10", "ncis 10", "piece-ncis 10", "point-ncis 10", "nis")
GIVEN, FITTED, WRONG = "true temperature", "fitted", "1 given"
TEMPERATURES: dict[str, float | str] = {GIVEN: TRUE, FITTED: "fit", WRONG: 1.0}
KINDS = {"independent displays": None, "users who come several times": ORDINARY}


class Answer(NamedTuple):
    """What a test of one log says."""

    limits: dict[str, tuple[float, float]]  # of the absolute uplift
    uplift: dict[str, float]
    audit: str
    failed: list[str]  # the audit's tests that fail
    value: float  # of the temperature
    error: float


def offline_test(kind: str, temperature: float | str) -> ft.OfflineTest:
    unit = None if KINDS[kind] is None else "user"
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], id="display", unit=unit, ranking="ranking"),
        control=ft.PlackettLuce("control", temperature),
        treatment=ft.PlackettLuce("treatment", 1.0),
        estimators=[estimator(label) for label in LABELS],
        strata="group",
        interval="delta",
        confidence_level=LEVEL,
    )


def answer(kind: str, log: pa.Table, how: str) -> Answer:
    result = offline_test(kind, TEMPERATURES[how]).run(log, threads=1)
    estimates = result.metrics["click"].estimates
    ends = {k: (nan_if_none(e.effect_size_ci_lower), nan_if_none(e.effect_size_ci_upper)) for k, e in estimates.items()}
    assert result.audit is not None
    fit = (result.control_fit or {}).get("control", {})
    uplift = {label: nan_if_none(e.effect_size) for label, e in estimates.items()}
    return Answer(
        ends, uplift, result.audit.outcome, result.audit.named("fail"), fit.get("value", np.nan),
        fit.get("std_error", np.nan),
    )  # fmt: skip


def answers_of_one(kind: str, world: World, rows: int, seed: np.random.SeedSequence) -> dict[str, Answer]:
    """The answers of one log."""
    rng, users = np.random.default_rng(seed), KINDS[kind]
    log = log_of_rows(world, rows, rng) if users is None else log_of_users(world, rows, rng, users)
    at = log.schema.get_field_index("control")
    scores = np.asarray(log["control"].combine_chunks().flatten()) * TRUE
    log = log.set_column(at, "control", pa.FixedSizeListArray.from_arrays(pa.array(scores), 6))
    return {how: answer(kind, log, how) for how in TEMPERATURES}


class Study(PairedStudy[Answer]):
    """The answers of all logs of one kind, and the absolute uplifts that estimators tend to."""

    def bias(self, how: str, label: str) -> float:
        """How far the mean uplift is from the limit, over the control's value."""
        return (float(np.mean([a.uplift[label] for a in self.answers[how]])) - self.expected[label]) / self.control

    def failing(self, how: str, test: str | None = None) -> float:
        """The share of logs whose audit fails, or one test of it."""
        return float(np.mean([a.audit == "fail" if test is None else test in a.failed for a in self.answers[how]]))

    def within(self, errors: float) -> float:
        """The share of logs whose fitted temperature is within so many standard errors of the true one."""
        return float(np.mean([abs(a.value - TRUE) <= errors * a.error for a in self.answers[FITTED]]))


def study(kind: str, logs: int, rows: int) -> Study:
    """The study of one kind of logs."""
    seeds = np.random.SeedSequence([SEED, list(KINDS).index(kind)]).spawn(logs)
    done: Study = run_study(
        Study, KINDS[kind], seeds, LABELS, lambda world, seed: answers_of_one(kind, world, rows, seed)
    )  # fmt: skip
    return done


def temperatures(studies: dict[str, Study]) -> Iterator[str]:
    yield "| logs | mean of the fitted | spread | mean standard error | within 2 standard errors |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for kind, one in studies.items():
        values, errors = np.array([(a.value, a.error) for a in one.answers[FITTED]]).T
        numbers = f"{values.mean():.4f} | {values.std(ddof=1):.4f} | {errors.mean():.4f} | {one.within(2.0):.1%}"
        yield f"| {kind} | {numbers} |"


def table(studies: dict[str, Study]) -> Iterator[str]:
    yield (
        "| logs | estimator | limit | held: true temperature | held: fitted | held: 1 given | bias: true temperature |"
        " fitted | 1 given | width: true temperature | fitted |"
    )
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for kind, one in studies.items():
        for label in LABELS:
            held = [f"{one.coverage(how, label):.1%}" for how in TEMPERATURES]
            biases = [f"{100 * one.bias(how, label):+.1f} points" for how in TEMPERATURES]
            widths = [f"{100 * one.width(how, label):.1f} points" for how in (GIVEN, FITTED)]
            limit = f"{one.expected[label] / one.control:+.1%}"
            yield f"| {kind} | `{label}` | {limit} | {' | '.join([*held, *biases, *widths])} |"


def audits(studies: dict[str, Study]) -> Iterator[str]:
    yield "| logs | temperature | audit fails | its log-likelihood | rank among draws | items by slot | capped moment |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for kind, one in studies.items():
        for how in TEMPERATURES:
            tests = (None, "log-likelihood", "rank among draws", "items by slot", "capped moment")
            yield f"| {kind} | {how} | {' | '.join(f'{one.failing(how, test):.1%}' for test in tests)} |"


def report(studies: dict[str, Study], logs: int, rows: int, wall: float) -> str:
    gaps = [s.coverage(GIVEN, label) - s.coverage(FITTED, label) for s in studies.values() for label in LABELS]
    error = float(np.sqrt(LEVEL * (1.0 - LEVEL) / logs))
    return "\n".join(
        [
            f"{logs:,} logs of {rows:,} displays of each kind; delta intervals, nominal level {LEVEL:.0%}; Monte Carlo"
            f" standard error of a coverage of {LEVEL:.0%}: {error:.2%}. Coverage with a fitted temperature is within"
            f" {100 * max(map(abs, gaps)):.1f} points of that with the true one (aim: 2).",
            "",
            *temperatures(studies),
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
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    begun = time.monotonic()
    studies = {}
    for kind in KINDS:
        studies[kind] = study(kind, options.logs, options.rows)
        print(f"{kind}: {time.monotonic() - begun:,.0f} s", file=sys.stderr)
    text = report(studies, options.logs, options.rows, time.monotonic() - begun)
    print(text)
    if options.write:
        into_page(DOCS / "how-to/fitted-control.md", "fitted control", text)


if __name__ == "__main__":
    main()
