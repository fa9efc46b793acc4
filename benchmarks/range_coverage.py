"""Does the first interval that a person sees hold the true uplift? Ten simulated worlds, the default headline.

Histories of each world (the tests that `foretest simulate history` draws), of each test the control's log alone, with
the slot that was clicked; estimators, bound and factors are the defaults. In two of the worlds slots compete, which
estimators by slot assume they do not.

    python benchmarks/range_coverage.py [--seeds 0 1 …] [--worlds default sharp …] [--tests 4] [--displays 60000]
                                        [--results FILE]

prints a table and, for the documented seeds, writes it into docs/measured/range-coverage.md, between two comments. What
was found of each test is a line of FILE: a run that was stopped goes on from there.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pages import DOCS, into_page

import foretest as ft
from foretest.results.uplift_range import is_good
from foretest.simulate import WORLDS, World, draw_test, simulate_log, true_values
from foretest.simulate.displays import CHUNK

SEEDS = tuple(range(10))
TESTS, DISPLAYS = 4, 60_000
TRUTH_DISPLAYS, TRUTH_DRAWS = 16 * CHUNK, 2  # a standard error of less than .1 points
COMPETING = ("saturating clicks", "slots that compete")
RANKING, SLOT = "point-ncis-adaptive", "slot-ncis-adaptive"
LEADING = [RANKING, SLOT, "cascade-ncis-adaptive", "exposure-ncis-adaptive"]  # those of the default that may lead
COLUMNS = ["display_id", "user", "ranking", "control_scores", "treatment_scores", "click", "slot_click"]

_PAPER = WORLDS["paper"]
_DENSE_RATES = (0.06, 0.08, 0.10, 0.12)  # of a display: so many that slots hardly take clicks from each other


def _worlds() -> dict[str, World]:
    rates = zip(_PAPER.groups, _DENSE_RATES, strict=True)
    return {
        "default": _PAPER,
        "sharp": WORLDS["sharp"],
        "mild": WORLDS["mild"],
        "dense rewards": replace(
            _PAPER, groups=tuple(replace(g, click_rate=r) for g, r in rates), click_floor=0.02, cannibalisation=0.0
        ),
        "40 candidates": replace(_PAPER, candidates=40, min_candidates=40),
        "five displays a user": replace(_PAPER, displays_per_user=5.0),
        "unsupported items above": replace(_PAPER, cold_appeal=2.2),
        "unsupported items below": replace(_PAPER, cold_appeal=-0.5),
        "saturating clicks": WORLDS["rewards"],
        "slots that compete": replace(_PAPER, categories=2, cannibalisation=1.0),
    }


@dataclass(frozen=True)
class Answer:
    """What one estimator said of one test; limits are of the absolute uplift."""

    estimate: float
    noise: tuple[float, float]
    limits: tuple[float, float]  # of the range
    unsupported: float  # T
    gamma: tuple[float, float]  # factors assumed
    slice_gamma: tuple[float, float]  # what the log says of them
    bound: float
    verdict: str
    word: str


@dataclass(frozen=True)
class Test:
    """One test: its truth, what each estimator said, and which of them leads."""

    world: str
    seed: int
    number: int
    displays: int
    control: float  # the true value
    uplift: float
    headline: str
    answers: dict[str, Answer]

    @property
    def leads(self) -> Answer:
        """What the headline said."""
        return self.answers[self.headline]

    @classmethod
    def of(cls, line: str) -> Test:
        """From a line of the results."""
        fields = json.loads(line)
        return cls(**{**fields, "answers": {label: Answer(**a) for label, a in fields["answers"].items()}})


def one_test(name: str, seed: int, number: int, displays: int) -> Test:
    """Simulate a test and ask the default headline."""
    world = _worlds()[name]
    drawn = draw_test(world, number, seed)
    truth = true_values(world, drawn.change, drawn.seed, displays=TRUTH_DISPLAYS, draws=TRUTH_DRAWS)["click"]
    log = pa.Table.from_batches(simulate_log(replace(world, change=drawn.change), displays, drawn.seed))
    test = ft.OfflineTest(
        log=ft.LogColumns(
            rewards=["click"], unit="user", ranking="ranking", id="display_id", slot_rewards={"click": "slot_click"}
        ),
        control=ft.PlackettLuce(scores="control_scores"),
        treatment=ft.PlackettLuce(scores="treatment_scores"),
        estimators=LEADING,
    )
    metric = test.run(log.select(COLUMNS), threads=1).metrics["click"]
    assert metric.headline is not None
    answers = {label: answer(e, metric.control.value or 0.0) for label, e in metric.estimates.items()}
    return Test(name, seed, number, displays, truth.control, truth.effect_size, metric.headline, answers)


def answer(e: Any, control: float) -> Answer:
    """The fields that the study needs; numbers that do not exist are infinite, or the widest limits."""
    band = e.sensitivity
    chosen = e.bound_choice
    return Answer(
        estimate=_or(e.effect_size, np.nan), noise=_limits(e.effect_size_ci_lower, e.effect_size_ci_upper),
        limits=_limits(e.range.ci_lower, e.range.ci_upper), unsupported=_or(e.unsupported, 0.0) * control,
        gamma=(band["gamma_lower"], band["gamma_upper"]),
        slice_gamma=(_or(band["slice_gamma_ci_lower"], 0.0), _or(band["slice_gamma_ci_upper"], np.inf)),
        bound=20.0 if chosen is None else chosen["bound"], verdict=e.verdict, word=e.word,
    )  # fmt: skip


def _or(value: float | None, other: float) -> float:
    return other if value is None else float(value)


def _limits(lower: float | None, upper: float | None) -> tuple[float, float]:
    return _or(lower, -np.inf), _or(upper, np.inf)


# -- figures ----------------------------------------------------------------------------------------------------------


def holds(limits: Iterable[float], test: Test) -> bool:
    """Is the true uplift within the limits?"""
    lower, upper = limits
    return lower <= test.uplift <= upper


def width(limits: Iterable[float], test: Test) -> float:
    """As a share of the control's value."""
    lower, upper = limits
    return (upper - lower) / test.control


def is_wrong(test: Test) -> bool:
    """Does the word, leaning or not, point to the wrong side of 0?"""
    good = is_good(test.leads.word)
    return good is not None and test.uplift != 0.0 and good != (test.uplift > 0.0)


def relative_width(tests: list[Test]) -> float:
    """The median width of the range over that of the noise interval by ranking."""
    ranking = np.median([width(t.answers[RANKING].noise, t) for t in tests])
    return float(np.median([width(t.leads.limits, t) for t in tests]) / ranking)


def row(world: str, tests: list[Test]) -> str:
    """A row of the table."""
    words = Counter(test.leads.word.removeprefix("leans ") for test in tests)
    leads = sum(test.headline == SLOT for test in tests)
    error = np.sqrt(np.mean([((t.leads.estimate - t.uplift) / t.control) ** 2 for t in tests]))
    cells = [
        f"{world}{' *' if world in COMPETING else ''}",
        f"**{np.mean([holds(t.leads.limits, t) for t in tests]):.0%}**",
        f"{np.mean([holds(t.leads.noise, t) for t in tests]):.0%}",
        f"{100 * np.median([width(t.leads.limits, t) for t in tests]):.1f}",
        f"{relative_width(tests):.2f}",
        f"{100 * error:.1f}",
        f"{np.mean([t.leads.word == 'positive' for t in tests]):.0%}",
        f"{words['positive'] / len(tests):.0%}, {words['negative'] / len(tests):.0%}",
        f"{sum(is_wrong(t) for t in tests)}",
        f"{leads / len(tests):.0%}",
    ]
    return f"| {' | '.join(cells)} |".replace("%", " %")


def report(tests: list[Test]) -> str:
    """The table, and the figures over all worlds."""
    by_world = {name: [t for t in tests if t.world == name] for name in _worlds()}
    by_world = {name: some for name, some in by_world.items() if some}
    seeds = sorted({t.seed for t in tests})
    own = {name: np.mean([holds(t.leads.limits, t) for t in some]) for name, some in by_world.items()}
    apart = [share for name, share in own.items() if name not in COMPETING]
    ratios = [relative_width(some) for some in by_world.values()]
    wrong = sum(is_wrong(t) for t in tests)
    lines = [
        f"Seeds {seeds[0]} to {seeds[-1]}, {len(tests):,} tests of {tests[0].displays:,} displays, level 90 %.",
        "",
        "| world | range holds the truth | noise interval does | median width of the range, points | over that of the"
        " noise interval by ranking | RMSE, points | *positive* | leaning or more: up, down | wrong sign"
        " | slots lead |",
        "| --- |" + " ---: |" * 9,
        *(row(name, some) for name, some in by_world.items()),
        "",
        f"\\* Slots compete. Where they do not, ranges hold the truth in {np.mean(apart):.0%} of the tests on average"
        f" over the worlds, in {min(apart):.0%} at the least. Over all worlds they are {np.mean(ratios):.2f} times as"
        f" wide as the noise interval by ranking on average, {max(ratios):.2f} times at the most, and {wrong} words"
        f" of {len(tests):,} have the wrong sign.".replace("%", " %"),
        "",
        f"foretest {ft.__version__}, Python {platform.python_version()}, NumPy {np.__version__}.",
    ]
    return "\n".join(lines)


def study(asked: list[tuple[str, int, int]], displays: int, results: Path) -> list[Test]:
    """All tests that are asked for, those that the results have already from there."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    known = {(t.world, t.seed, t.number): t for t in map(Test.of, lines) if t.displays == displays}
    with results.open("a", encoding="utf-8") as file:
        for key in asked:
            if key not in known:
                known[key] = one_test(*key, displays)
                print(json.dumps(asdict(known[key])), file=file, flush=True)
    return [known[key] for key in asked]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="default: 0 to 9, as documented")
    parser.add_argument("--worlds", nargs="+", default=list(_worlds()), choices=list(_worlds()))
    parser.add_argument("--tests", type=int, default=TESTS, help="of each seed and world")
    parser.add_argument("--displays", type=int, default=DISPLAYS, help="of each test")
    parser.add_argument("--results", type=Path, help="a line for each test, where a run goes on; default: nowhere")
    options = parser.parse_args()
    asked = [(w, s, n) for w in options.worlds for s in options.seeds for n in range(1, options.tests + 1)]
    with tempfile.TemporaryDirectory(prefix="foretest-range-") as folder:
        tests = study(asked, options.displays, options.results or Path(folder) / "tests.jsonl")
    text = report(tests)
    print(text)
    documented = tuple(options.seeds) == SEEDS and len(options.worlds) == len(_worlds())
    if documented and (options.tests, options.displays) == (TESTS, DISPLAYS):
        into_page(DOCS / "measured/range-coverage.md", "range coverage", text)
    else:
        print("\nOther tests than the documented: docs/measured/range-coverage.md stays as it is.", file=sys.stderr)


if __name__ == "__main__":
    main()
