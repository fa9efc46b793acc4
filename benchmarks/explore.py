"""Does the exploration that `foretest plan --explore` recommends show what it promises, at the cost it says?

In each world one log of 7 days asks for the cheapest exploration that makes an uplift visible in 14 days. Then logs of
14 days are simulated with the control that was recommended, and the test of the level that was promised is run on each.
What these logs show is the spread of their uplifts times z + z′, and half the width of their bands on average, as the
plan defines both. The true cost is the mean click probability that the recommended control loses on the same displays.

    python benchmarks/explore.py [--worlds default …] [--logs 60] [--seed 0]

prints a table and, for the documented seed and number of logs, writes it into docs/how-to/plan.md, between two
comments.
"""

from __future__ import annotations

import argparse
import platform
import sys
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pages import DOCS, into_page
from scipy.special import ndtri

import foretest as ft
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.policies import Policy
from foretest.settings.file import settings_from_tables
from foretest.simulate import WORLDS, World
from foretest.simulate.clicks import click_probability, clicked_slots
from foretest.simulate.displays import Displays as Drawn
from foretest.simulate.displays import chunk_generator, draw_displays

SEED, LOGS = 0, 60
LOG_DAYS, DAYS = 7, 14
TRUTH_DISPLAYS = 200_000
FACTOR = float(ndtri(0.95) + ndtri(0.8))  # at the default confidence level of 90 %
ESTIMATORS = {"ranking": "point-ncis-adaptive", "slot": "slot-ncis-adaptive", "exposure": "exposure-ncis-adaptive"}
PLAN_STREAM, LOG_STREAM, TRUTH_STREAM = 900, 901, 902
_PAPER = WORLDS["paper"]
_DENSE_RATES = (0.06, 0.08, 0.10, 0.12)


class Case(NamedTuple):
    """A world, how many displays its log of 7 days has, and the uplift that 14 days are to show."""

    world: World
    displays: int
    uplift: float


def cases() -> dict[str, Case]:
    """The worlds, with what is asked of them."""
    rates = zip(_PAPER.groups, _DENSE_RATES, strict=True)
    dense = replace(
        _PAPER, groups=tuple(replace(g, click_rate=r) for g, r in rates), click_floor=0.02, cannibalisation=0.0
    )
    return {
        "default": Case(_PAPER, 30_000, 0.13),
        "never varies": Case(WORLDS["reranker"], 20_000, 0.07),
        "dense rewards": Case(dense, 20_000, 0.07),
        "40 candidates": Case(replace(_PAPER, candidates=40, min_candidates=40), 30_000, 0.15),
    }


@dataclass
class Logs:
    """Logs of a world under any control."""

    world: World

    def __post_init__(self) -> None:
        kind = ft.TopK if self.world.temperature == 0.0 else ft.PlackettLuce
        self.control, self.treatment = kind("control_scores"), kind("treatment_scores")

    def drawn(self, seed: int, stream: int, number: int, displays: int) -> Drawn:
        """Displays with their candidates, shown to nobody yet."""
        return draw_displays(self.world, self.world.change, chunk_generator(seed, stream, number), displays)

    def rankings(self, drawn: Drawn, policy: Policy, g: np.random.Generator) -> npt.NDArray[np.int16]:
        """What a policy shows."""
        count, items = drawn.control_scores.shape
        lengths, slots = np.full(count, items), self.world.slots
        lists = {
            name: Ragged.packed(getattr(drawn, name).astype(np.float64).ravel(), lengths)
            for name in ("control_scores", "treatment_scores")
        }
        shown = Ragged.packed(np.tile(np.arange(slots, dtype=np.int32), count), np.full(count, slots))
        displays = Displays(lists, shown, lengths, np.arange(count, dtype=np.uint64))
        some = policy.sample(displays, g.random((count, items + 1)))
        return np.asarray(some.flat()).reshape(count, slots).astype(np.int16)

    def table(self, seed: int, stream: int, number: int, displays: int, policy: Policy, days: int) -> pa.Table:
        """The log of a control."""
        drawn, g = self.drawn(seed, stream, number, displays), np.random.default_rng([seed, stream, number])
        rankings = self.rankings(drawn, policy, g)
        click = g.random(displays) < click_probability(self.world, drawn, rankings)
        slot = clicked_slots(self.world, drawn, rankings, g.random(displays))
        by_slot = (np.arange(self.world.slots) == slot[:, None]) & click[:, None]
        return pa.table({
            "click": click, "id": np.arange(displays), "day": g.integers(0, days, displays),
            "ranking": _lists(rankings.astype(np.int32)), "slot_click": _lists(by_slot.astype(np.float64)),
            "control_scores": _lists(drawn.control_scores), "treatment_scores": _lists(drawn.treatment_scores),
        })  # fmt: skip

    def value(self, policy: Policy, drawn: Drawn, seed: int) -> float:
        """The mean click probability of what a policy shows."""
        rankings = self.rankings(drawn, policy, np.random.default_rng([seed, TRUTH_STREAM]))
        return float(click_probability(self.world, drawn, rankings).mean())

    def test(self, control: Policy, *estimators: str, examination: Any = "fit") -> ft.OfflineTest:
        """The test of the treatment against a control, with the defaults."""
        log = ft.LogColumns(
            rewards=["click"], id="id", date="day", ranking="ranking", slot_rewards={"click": "slot_click"}
        )
        return ft.OfflineTest(
            log=log, control=control, treatment=self.treatment, estimators=list(estimators), interval="delta",
            examination=examination,
        )  # fmt: skip


def _lists(rows: npt.NDArray[Any]) -> pa.Array:
    """An array with a row per list."""
    offsets = np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, np.ascontiguousarray(rows).ravel())


def policy_of(table: dict[str, Any]) -> Policy:
    """The policy that a [control] table makes."""
    tables = {"log": {"rewards": ["click"]}, "control": table, "treatment": {"policy": "top-k", "scores": "s"}}
    return settings_from_tables(tables).control


class Shown(NamedTuple):
    """What one log shows: the uplift, the half-width of its band, and the control's value."""

    uplift: float
    half_band: float
    control: float


def shown_by(result: ft.Result, label: str) -> Shown:
    """What the test of a level shows, relative to the control."""
    metric = result.metrics["click"]
    estimate, control = metric.estimates[label], metric.control.value or np.nan
    band = estimate.sensitivity
    assert band is not None
    others = [one["effect_size"] - estimate.effect_size for one in estimate.curves or ()]
    moved = 0.5 * (max([0.0, *others]) - min([0.0, *others]))
    half = (band["effect_size_upper"] - band["effect_size_lower"]) / 2.0 + moved
    return Shown((estimate.effect_size or np.nan) / control, half / control, control)


class Study(NamedTuple):
    """What was promised for a world, and what was found."""

    world: str
    case: Case
    explore: dict[str, Any]
    shown: list[Shown]
    true_cost: float

    @property
    def choice(self) -> dict[str, Any]:
        chosen: dict[str, Any] = self.explore["recommended"]
        return chosen

    @property
    def promised(self) -> dict[str, float]:
        """The two parts of the smallest uplift, and their sum."""
        parts: dict[str, float] = self.choice["levels"][self.choice["level"]]["smallest_uplift"]
        return parts

    @property
    def sampling(self) -> float:
        return FACTOR * float(np.std([one.uplift for one in self.shown], ddof=1))

    @property
    def identification(self) -> float:
        return float(np.mean([one.half_band for one in self.shown]))

    @property
    def ratio(self) -> float:
        """Promised over shown."""
        return self.promised["total"] / (self.sampling + self.identification)

    @property
    def errors(self) -> tuple[float, float]:
        """The standard errors of what was promised, and of what so many logs show."""
        return float(self.choice["smallest_uplift_std_error"]), self.sampling / np.sqrt(2.0 * (len(self.shown) - 1))

    @property
    def apart(self) -> float:
        """The distance of what was promised and what was shown, in standard errors of their difference."""
        difference = self.promised["total"] - self.sampling - self.identification
        return float(abs(difference) / np.hypot(*self.errors))

    @property
    def cost_holds(self) -> bool:
        """Is the true cost within the interval?"""
        return bool(self.choice["cost_ci_lower"] <= self.true_cost <= self.choice["cost_ci_upper"])


def study(name: str, case: Case, seed: int, logs: int, days: int = DAYS) -> Study:
    """Ask for the cheapest exploration, and simulate it."""
    world = Logs(case.world)
    theta = case.world.examination
    given = "fit" if theta is None or case.world.temperature > 0.0 else list(theta)
    log = world.table(seed, PLAN_STREAM, 0, case.displays, world.control, LOG_DAYS)
    test = world.test(world.control, *ESTIMATORS.values(), examination=given)
    explore = ft.plan_log(test, log, uplift=case.uplift, days=days, threads=1).to_dict()["explore"]
    choice = explore["recommended"]
    if choice is None:
        raise SystemExit(f"{name}: {explore['sentence']}")
    level, control = choice["level"], policy_of(choice["settings"])
    curve = given if choice["levels"][level].get("examination") == "given" else "fit"
    tested, displays = world.test(control, ESTIMATORS[level], examination=curve), case.displays * days // LOG_DAYS
    shown = [
        shown_by(tested.run(world.table(seed, LOG_STREAM, n, displays, control, days), threads=1), ESTIMATORS[level])
        for n in range(logs)
    ]
    drawn = world.drawn(seed, TRUTH_STREAM, 0, TRUTH_DISPLAYS)
    lost = 1.0 - world.value(control, drawn, seed) / world.value(world.control, drawn, seed)
    return Study(name, case, explore, shown, lost)


def row(one: Study) -> str:
    """A row of the table."""
    choice, promised, (of_promise, of_logs) = one.choice, one.promised, one.errors
    shown = one.sampling + one.identification
    cells = [
        one.world, percent(one.case.uplift), f"{choice['kind']}, {choice['parameter']} {choice['value']:g}",
        choice["level"],
        f"{percent(promised['total'])} ± {100 * of_promise:.1f} ("
        f"{_parts(promised['sampling'], promised['identification'])})",
        f"{percent(shown)} ± {100 * of_logs:.1f} ({_parts(one.sampling, one.identification)})", f"**{one.ratio:.2f}**",
        f"{percent(choice['cost'])} ({percent(choice['cost_ci_lower'])} to {percent(choice['cost_ci_upper'])})",
        percent(one.true_cost),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _parts(sampling: float, identification: float) -> str:
    return f"{100 * sampling:.1f} + {100 * identification:z.1f}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %".replace("-", "−")


def report(studies: list[Study], seed: int, logs: int) -> str:
    """The table, and what is in it."""
    holds = sum(one.cost_holds for one in studies)
    lines = [
        f"Seed {seed}, {logs} logs of {DAYS} days in each world. After ±: standard errors; in brackets: sampling +"
        " identification; both in points.",
        "",
        "| world | uplift asked | recommended | level | promised | shown by the logs | promised / shown | cost, with"
        " its interval | true cost |",
        "| --- | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |",
        *map(row, studies),
        "",
        f"{sum(abs(one.ratio - 1.0) <= 0.2 for one in studies)} of {len(studies)} promises are within 20 % of what the"
        f" logs show, all of them within {max(one.apart for one in studies):.1f} standard errors, and {holds} of"
        f" {len(studies)} true costs are within their intervals.",
        "",
        f"foretest {ft.__version__}, Python {platform.python_version()}, NumPy {np.__version__}.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", default=list(cases()), choices=list(cases()))
    parser.add_argument("--logs", type=int, default=LOGS, help="of each world")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    text = report(
        [study(w, cases()[w], options.seed, options.logs) for w in options.worlds], options.seed, options.logs
    )
    print(text)
    if (options.worlds, options.logs, options.seed) == (list(cases()), LOGS, SEED):
        into_page(DOCS / "plan.md", "explore", text)
    else:
        print("\nOther logs than the documented: docs/how-to/plan.md stays as it is.", file=sys.stderr)


if __name__ == "__main__":
    main()
