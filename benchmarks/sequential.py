"""Does the always-valid interval of an online A/B test hold at every look, and the fixed one not?

A/B tests with a known uplift are looked at once a day, on 20 days: the arms grow day by day and are analysed after each
by `OnlineTest` itself, with `sequential=True`. Counted are the tests whose interval holds the truth at all looks, and
at the last look alone; beside them stands what the joint normal law of the looks predicts for the fixed interval.

    python benchmarks/sequential.py [--tests N]

prints a Markdown table and writes it into docs/how-to/sequential.md, between two comments.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import resource
import sys
import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pages import DOCS, into_page

import foretest as ft
from foretest.inference.peeking import false_alarm
from foretest.online.arms import Arm, ArmReader, Arms
from foretest.online.test import KEY
from foretest.results.result import Estimate
from foretest.settings.online import SEQUENTIAL_UNITS
from foretest.sources import Chunk

SEED = 20261119  # chosen before the first test was drawn
TESTS = 2000
LOOKS = 20
LEVEL = 0.90
TREATMENT_IDS = 1 << 40  # no user is in both arms

Floats = npt.NDArray[np.float64]


# -- the world and its truth ------------------------------------------------------------------------------------------


class Kinds(NamedTuple):
    """Kinds of users, each a number in every tuple; the keen ones come more often and click more."""

    share: tuple[float, ...] = (0.60, 0.30, 0.10)
    daily: tuple[float, ...] = (0.2, 0.5, 1.2)  # mean displays of a user on a day
    click: tuple[float, ...] = (0.05, 0.10, 0.20)  # under the control
    lift: float = 0.10  # of the click rate, by the treatment


WORLD = Kinds()


class World(NamedTuple):
    """A kind of A/B test, and how it is tested."""

    title: str
    seed: int  # child of SEED; worlds with the same one see the same logs
    returning: bool  # the same users come day after day; else every display is of a new user
    size: int  # users of an arm, in all or a day
    reward: str = "click"
    covariate: bool = False
    tightest: int = SEQUENTIAL_UNITS


WORLDS = {
    "new users": World("New users every day, one display each; clicks", 0, False, 400),
    "spend": World("New users every day, one display each; what they spend", 1, False, 400, "spend"),
    "returning users": World("The same 1,000 users an arm every day; clicks", 2, True, 1000),
    "few units planned": World(
        "The same logs, tightest at 200 units of the 2,000 there are", 2, True, 1000, tightest=200
    ),
    "covariate": World("The same logs, adjusted for the clicks of the week before", 2, True, 1000, covariate=True),
}


def true_values(world: World) -> tuple[float, float]:
    """Reward per display of control and treatment: Σ share·displays·reward / Σ share·displays over the kinds."""
    displays = np.array(WORLD.share) * (np.array(WORLD.daily) if world.returning else 1.0)
    control = float(displays @ np.array(WORLD.click) / displays.sum())
    return control, control * (1.0 + WORLD.lift)


class Users(NamedTuple):
    """The users of an arm who come again: names, kinds, own click rates and clicks of the week before."""

    names: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int64]
    rate: Floats
    before: Floats


def users(count: int, first: int, rng: np.random.Generator) -> Users:
    """Users whose own click rates differ; the treatment is not in them yet."""
    kind = rng.choice(len(WORLD.share), count, p=WORLD.share)
    rate = np.array(WORLD.click)[kind] * 2.0 * rng.beta(2.0, 2.0, count)  # a factor of mean 1, and at most 2
    before = rng.poisson(7.0 * np.array(WORLD.daily)[kind] * rate).astype(float)
    return Users(first + np.arange(count), kind, rate, before)


def day(world: World, those: Users, treated: bool, rng: np.random.Generator) -> pa.RecordBatch:
    """The displays of one day: of all users who come, or one of each new user."""
    size = rng.poisson(np.array(WORLD.daily)[those.kind]) if world.returning else np.ones(len(those.names), np.int64)
    place = np.repeat(np.arange(len(those.names)), size)
    click = rng.random(len(place)) < those.rate[place] * (1.0 + WORLD.lift * treated)
    # what a click is worth has a mean of 1, so that both rewards have one truth
    reward = click * rng.lognormal(-0.5, 1.0, len(place)) if world.reward == "spend" else click.astype(float)
    columns = {"user": those.names[place], "before": those.before[place], world.reward: reward}
    return pa.RecordBatch.from_pydict(columns)


def seeds(world: World, tests: int) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(SEED).spawn(len(WORLDS))[world.seed].spawn(tests)


# -- testing ----------------------------------------------------------------------------------------------------------


def online_test(world: World) -> ft.OnlineTest:
    return ft.OnlineTest(
        log=ft.LogColumns(rewards=[world.reward], unit="user" if world.returning else None),
        covariate="before" if world.covariate else None,
        sequential=True,
        sequential_units=world.tightest,
        interval="delta",
        confidence_level=LEVEL,
    )


class Look(NamedTuple):
    """One look: does each interval hold the truth, absolute and relative, and how wide is it?"""

    fixed: bool
    rel_fixed: bool
    always: bool
    rel_always: bool
    fixed_width: float
    always_width: float


def look(estimate: Estimate, control: float, treatment: float) -> Look:
    """What an estimate's intervals say of the truth."""
    delta, relative, always = treatment - control, treatment / control - 1.0, estimate.always_valid
    return Look(
        estimate.effect_size_ci_lower <= delta <= estimate.effect_size_ci_upper,
        estimate.rel_effect_size_ci_lower <= relative <= estimate.rel_effect_size_ci_upper,
        always["ci_lower"] <= delta <= always["ci_upper"],
        always["rel_ci_lower"] <= relative <= always["rel_ci_upper"],
        estimate.effect_size_ci_upper - estimate.effect_size_ci_lower,
        always["ci_upper"] - always["ci_lower"],
    )


def watched(world: World, seed: np.random.SeedSequence, looks: int = LOOKS) -> list[Look]:
    """One A/B test, looked at after every day."""
    rng, test = np.random.default_rng(seed), online_test(world)
    reader = ArmReader(test.settings)
    base = int(rng.integers(1 << 38))  # other names in every test, so other buckets
    firsts = (base, base + TREATMENT_IDS)
    arms = Arms(*(Arm.empty(test.settings) for _ in firsts))
    regulars = [users(world.size, first, rng) for first in firsts]
    found, position = [], 0
    for _ in range(looks):
        for treated, (arm, first) in enumerate(zip(arms, firsts, strict=True)):
            those = regulars[treated] if world.returning else users(world.size, first, rng)
            batch = day(world, those, bool(treated), rng)
            arm.add(reader.read(Chunk(batch, "a day", 0, first + position)))
        position += 1 << 20
        found.append(look(test.analyse(arms).metrics[world.reward].estimates[KEY], *true_values(world)))
    return found


class Coverage(NamedTuple):
    """How both intervals did over many tests."""

    tests: int
    always: float  # share of tests in which it holds at all looks
    rel_always: float
    fixed: float
    rel_fixed: float
    last: float  # the fixed one, at the last look alone
    widening: float  # how much wider the always-valid one is, at the last look

    @property
    def std_error(self) -> float:
        """Monte Carlo, of a coverage of LEVEL."""
        return float(np.sqrt(LEVEL * (1.0 - LEVEL) / self.tests))


def coverage(tests: list[list[Look]]) -> Coverage:
    found = np.array(tests, float)  # test, look, field
    all_looks, last = found.all(axis=1).mean(axis=0), found[:, -1].mean(axis=0)
    return Coverage(
        len(tests), *(float(all_looks[at]) for at in (2, 3, 0, 1)), float(last[0]),
        float((found[:, -1, 5] / found[:, -1, 4]).mean()),
    )  # fmt: skip


def run_study(name: str, tests: int, looks: int = LOOKS) -> Coverage:
    """A study in this process: the small version of it."""
    return coverage([watched(WORLDS[name], seed, looks) for seed in seeds(WORLDS[name], tests)])


# -- two processes, and the page --------------------------------------------------------------------------------------


class Task(NamedTuple):
    name: str
    seed: np.random.SeedSequence


def work(task: Task) -> tuple[str, list[Look]]:
    return task.name, watched(WORLDS[task.name], task.seed)


def start_worker() -> None:
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)  # two processes on two cores


def run_all(tests: int) -> dict[str, Coverage]:
    tasks = [Task(name, seed) for name, world in WORLDS.items() for seed in seeds(world, tests)]
    found: dict[str, list[list[Look]]] = {name: [] for name in WORLDS}
    begin = last = time.perf_counter()
    # spawned, not forked: a fork of a process with threads may hang
    with multiprocessing.get_context("spawn").Pool(2, start_worker) as pool:
        for done, (name, looks) in enumerate(pool.imap(work, tasks, chunksize=20), start=1):
            found[name].append(looks)
            now = time.perf_counter()
            if now - last > 15.0:
                last, left = now, (now - begin) * (len(tasks) - done) / done
                print(f"{done:,} of {len(tasks):,} tests, {now - begin:.0f} s, {left:.0f} s left", file=sys.stderr)
    return {name: coverage(looks) for name, looks in found.items()}


def report(found: dict[str, Coverage], wall: float, cpu: float) -> str:
    some = next(iter(found.values()))
    short = [name for name, c in found.items() if min(c.always, c.rel_always) < LEVEL]
    verdict = "in all of them" if not short else f"not in: {', '.join(short)}"
    predicted = 1.0 - false_alarm([1.0] * LOOKS, LEVEL)
    lines = [
        f"{some.tests:,} A/B tests a row, {LOOKS} looks each, nominal level {LEVEL:.0%}, true uplift"
        f" {WORLD.lift:+.0%}; Monte Carlo standard error of a coverage of {LEVEL:.0%}: {some.std_error:.2%}. The"
        f" always-valid interval contains the truth at all looks in at least {LEVEL:.0%} of tests, absolute and"
        f" relative: {verdict}. For the fixed one the joint normal law of {LOOKS} equal looks predicts"
        f" {predicted:.1%}.",
        "",
        "| A/B test | always valid, all looks: absolute | relative | fixed, all looks: absolute | relative"
        " | fixed, last look alone | how much wider |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, c in found.items():
        lines.append(
            f"| {WORLDS[name].title} | **{c.always:.1%}** | **{c.rel_always:.1%}** | {c.fixed:.1%} | {c.rel_fixed:.1%}"
            f" | {c.last:.1%} | {c.widening:.2f}× |"
        )
    lines += [
        "",
        f"Seeds: a test from each child of the children of `SeedSequence({SEED})`. foretest {ft.__version__}, Python"
        f" {platform.python_version()}, NumPy {np.__version__}, PyArrow {pa.__version__}. {wall:,.0f} s on two"
        f" processes, {cpu:,.0f} s of CPU time.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=TESTS, help=f"A/B tests of each row (default {TESTS})")
    options = parser.parse_args()
    begin = time.perf_counter()
    found = run_all(options.tests)
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    text = report(found, time.perf_counter() - begin, sum(u.ru_utime + u.ru_stime for u in usage))
    print(text)
    into_page(DOCS / "how-to/sequential.md", "sequential", text)


if __name__ == "__main__":
    main()
