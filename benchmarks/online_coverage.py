"""Do the 90 % intervals of an online A/B test hold the true uplift 90 % of the time?

Users of three kinds, who differ in how often they come, click and spend: the true reward per display of both arms is a
sum over the kinds. A/B tests are drawn from this world as two Arrow tables each, every one is tested by `OnlineTest`
itself, and the intervals that hold the truth are counted.

    python benchmarks/online_coverage.py [--tests N]

prints a Markdown table and writes it into docs/measured/online-coverage.md, between two comments.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import platform
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pages import DOCS, into_page

import foretest as ft
from foretest.online import resampling
from foretest.online.test import KEY
from foretest.results.result import Estimate

Floats = npt.NDArray[np.float64]

SEED = 20260301  # chosen before the first test was drawn
TESTS = 2000
LEVEL = 0.90
METRICS = ("click", "revenue")
INTERVALS = ("bootstrap", "delta")
TREATMENT_IDS = 1 << 40  # no user is in both arms


# -- the world and its truth ------------------------------------------------------------------------------------------


class Kinds(NamedTuple):
    """Kinds of users, each a number in every tuple. Those who come more often click and spend more, too."""

    share: tuple[float, ...]
    displays: tuple[float, ...]  # mean of a geometric number
    click: tuple[float, ...]  # mean rate of a display, under the control
    lift: tuple[float, ...]  # of that rate, by the treatment
    price: tuple[float, ...]  # mean of a click's revenue
    price_spread: float  # sd of its log
    own_spread: float  # sd of the factor, of mean 1, that multiplies a user's click rate


WORLD = Kinds(
    share=(0.60, 0.30, 0.10),
    displays=(1.5, 3.0, 8.0),
    click=(0.010, 0.030, 0.080),
    lift=(0.0, 0.05, 0.15),
    price=(10.0, 15.0, 30.0),
    price_spread=1.0,
    own_spread=0.5,
)


class Study(NamedTuple):
    """A kind of A/B test, and how it is tested."""

    title: str
    repeated: bool  # users come several times; else each has one display
    unit: str | None  # None: every row is a unit
    users: tuple[int, int]  # of both arms, the control first
    seed: int  # child of SEED; studies with the same one see the same logs
    treated: bool = True  # False: an A/A test


STUDIES = {
    "one display": Study(
        "Every user has one display (the delta interval is Welch's)", False, "user", (20_000, 20_000), 0
    ),
    "users": Study("Users come several times", True, "user", (8_000, 8_000), 1),
    "users by row": Study("The same logs, wrongly tested by row", True, None, (8_000, 8_000), 1),
    "small arm": Study("Users come several times; nine in ten are the control's", True, "user", (14_400, 1_600), 2),
    "a/a": Study("Users come several times; both arms are the control", True, "user", (8_000, 8_000), 3, treated=False),
}  # fmt: skip
WRONG = ("users by row",)  # what shows that the unit matters: no promise


def click_rates(treated: bool) -> Floats:
    """The mean click rate of each kind."""
    return np.array(WORLD.click) * (1.0 + np.array(WORLD.lift) if treated else 1.0)


def true_values(study: Study) -> dict[str, tuple[float, float]]:
    """Reward per display of control and treatment, by metric: Σ share·displays·reward / Σ share·displays.

    A user's own factor and a click's price are independent of all but the kind, so their means are enough.
    """
    displays = np.array(WORLD.share) * (np.array(WORLD.displays) if study.repeated else 1.0)
    found = {}
    for metric, worth in (("click", np.ones(len(displays))), ("revenue", np.array(WORLD.price))):
        control, treatment = (
            float(displays @ (click_rates(treated) * worth) / displays.sum()) for treated in (False, study.treated)
        )
        found[metric] = control, treatment
    return found


def arm(study: Study, users: int, treated: bool, first: int, rng: np.random.Generator) -> pa.Table:
    """One arm's log: user, click, revenue."""
    kind = rng.choice(len(WORLD.share), users, p=WORLD.share)
    shape = WORLD.own_spread**-2
    own = rng.gamma(shape, 1.0 / shape, users)
    size = rng.geometric(1.0 / np.array(WORLD.displays)[kind]) if study.repeated else np.ones(users, np.int64)
    user = np.repeat(np.arange(users), size)
    rate = (click_rates(treated)[kind] * own)[user]
    if rate.max() > 1.0:
        raise RuntimeError("a click rate above 1: the truth would not be exact")
    click = rng.random(len(user)) < rate
    sd = WORLD.price_spread
    price = np.array(WORLD.price)[kind][user] * rng.lognormal(-(sd**2) / 2.0, sd, len(user))
    return pa.table({"user": user + first, "click": click, "revenue": click * price})


def logs_of(study: Study, seed: np.random.SeedSequence) -> tuple[pa.Table, pa.Table]:
    """Both arms of one A/B test."""
    rng = np.random.default_rng(seed)
    base = int(rng.integers(1 << 38))  # other names in every test, so other buckets
    control = arm(study, study.users[0], False, base, rng)
    return control, arm(study, study.users[1], study.treated, base + TREATMENT_IDS, rng)


def seeds(study: Study, tests: int) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(SEED).spawn(len(STUDIES))[study.seed].spawn(tests)


# -- testing ----------------------------------------------------------------------------------------------------------


def online_test(study: Study, interval: str) -> ft.OnlineTest:
    total = sum(study.users)
    return ft.OnlineTest(
        log=ft.LogColumns(rewards=METRICS, unit=study.unit),
        split=(study.users[0] / total, study.users[1] / total),
        interval=interval,
        confidence_level=LEVEL,
    )


class Answer(NamedTuple):
    """What one test says of one metric."""

    lower: float
    upper: float
    rel_lower: float
    rel_upper: float
    delta: float
    positives: float
    called: bool  # positive or negative


Key = tuple[str, str]  # metric, interval


def answer(estimate: Estimate) -> Answer:
    return Answer(
        estimate.effect_size_ci_lower,
        estimate.effect_size_ci_upper,
        estimate.rel_effect_size_ci_lower,
        estimate.rel_effect_size_ci_upper,
        estimate.effect_size,
        estimate.effective_positives,
        estimate.verdict in ("positive", "negative"),
    )


def answers(study: Study, control: pa.Table, treatment: pa.Table) -> dict[Key, Answer]:
    """Both intervals of both metrics, as `OnlineTest.run` gives them; the logs are folded once."""
    arms = online_test(study, INTERVALS[0]).arms(control, treatment, threads=1)
    found = {}
    for interval in INTERVALS:
        result = online_test(study, interval).analyse(arms)
        for metric in METRICS:
            found[metric, interval] = answer(result.metrics[metric].estimates[KEY])
    return found


_resample_counts = functools.cache(resampling.resample_counts)


@contextmanager
def resamples_kept() -> Iterator[None]:
    """The resamples, the same for every test of one seed, are drawn once."""
    usual = resampling.resample_counts
    resampling.resample_counts = _resample_counts
    try:
        yield
    finally:
        resampling.resample_counts = usual


class Coverage(NamedTuple):
    """How one interval did over many tests."""

    tests: int
    held: float
    below: float  # share of tests with the truth below the interval
    above: float
    rel_held: float
    rel_below: float
    rel_above: float
    rel_width: float
    error: float  # mean of the uplifts − the truth, in standard errors of that mean
    fewest: float  # effective positives
    called: float  # share of tests called positive or negative

    @property
    def std_error(self) -> float:
        """Monte Carlo, of a coverage of LEVEL."""
        return float(np.sqrt(LEVEL * (1.0 - LEVEL) / self.tests))


def coverage(found: list[Answer], control: float, treatment: float) -> Coverage:
    lower, upper, rel_lower, rel_upper, delta, positives, called = np.array(found, float).T
    truth, relative = treatment - control, treatment / control - 1.0
    below, above = truth < lower, truth > upper
    rel_below, rel_above = relative < rel_lower, relative > rel_upper
    return Coverage(
        len(found),
        float(1.0 - below.mean() - above.mean()),
        float(below.mean()),
        float(above.mean()),
        float(1.0 - rel_below.mean() - rel_above.mean()),
        float(rel_below.mean()),
        float(rel_above.mean()),
        float((rel_upper - rel_lower).mean()),
        float((delta.mean() - truth) / (delta.std(ddof=1) / np.sqrt(len(delta)))),
        float(positives.min()),
        float(called.mean()),
    )


def summarise(study: Study, tests: list[dict[Key, Answer]]) -> dict[Key, Coverage]:
    truth = true_values(study)
    return {key: coverage([test[key] for test in tests], *truth[key[0]]) for key in tests[0]}


def run_study(name: str, tests: int) -> dict[Key, Coverage]:
    """A study in this process: the small version of it."""
    study = STUDIES[name]
    with resamples_kept():
        return summarise(study, [answers(study, *logs_of(study, seed)) for seed in seeds(study, tests)])


# -- two processes, and the page --------------------------------------------------------------------------------------


class Task(NamedTuple):
    name: str
    seed: np.random.SeedSequence


def work(task: Task) -> tuple[str, dict[Key, Answer]]:
    study = STUDIES[task.name]
    with resamples_kept():
        return task.name, answers(study, *logs_of(study, task.seed))


def start_worker() -> None:
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)  # two processes on two cores


def run_all(tests: int) -> dict[str, list[dict[Key, Answer]]]:
    tasks = [Task(name, seed) for name, study in STUDIES.items() for seed in seeds(study, tests)]
    found: dict[str, list[dict[Key, Answer]]] = {name: [] for name in STUDIES}
    begin = last = time.perf_counter()
    # spawned, not forked: a fork of a process with threads may hang
    with multiprocessing.get_context("spawn").Pool(2, start_worker) as pool:
        for done, (name, outcome) in enumerate(pool.imap(work, tasks, chunksize=20), start=1):
            found[name].append(outcome)
            now = time.perf_counter()
            if now - last > 15.0:
                last, left = now, (now - begin) * (len(tasks) - done) / done
                print(f"{done:,} of {len(tasks):,} tests, {now - begin:.0f} s, {left:.0f} s left", file=sys.stderr)
    return found


def as_wanted(c: Coverage) -> bool:
    """88–92 %, ± 2 Monte Carlo standard errors, both uplifts."""
    room = 0.02 + 2.0 * c.std_error
    return all(abs(share - LEVEL) <= room for share in (c.held, c.rel_held))


def facts(study: Study) -> str:
    """The truth of a study, in words."""
    truth = true_values(study)
    return "; ".join(
        f"{metric} {control:.4g} per display, uplift {treatment / control - 1.0:+.2%}"
        for metric, (control, treatment) in truth.items()
    )


def report(found: dict[str, dict[Key, Coverage]], wall: float, cpu: float) -> str:
    some = next(iter(next(iter(found.values())).values()))
    named = {
        f"{name}, {metric}, {interval}": c
        for name, table in found.items()
        for (metric, interval), c in table.items()
        if name not in WRONG
    }
    outside = [name for name, c in named.items() if not as_wanted(c)]
    verdict = "all of them" if not outside else f"all but {'; '.join(outside)}"
    farthest = max(abs(c.error) for table in found.values() for c in table.values())
    lines = [
        f"{some.tests:,} A/B tests a study, nominal level {LEVEL:.0%}; Monte Carlo standard error of a coverage of"
        f" {LEVEL:.0%}: {some.std_error:.2%}. Which intervals, wrong units aside, hold the true uplift 88–92 % of the"
        f" time, ± 2 of these, absolute and relative? Of {len(named)}: {verdict}. The mean uplift of a study is at most"
        f" {farthest:.1f} of its standard errors from the truth.",
        "",
    ]
    for name, table in found.items():
        study = STUDIES[name]
        lines += [
            f"**{study.title}** ({study.users[0]:,} and {study.users[1]:,} users; {facts(study)})",
            "",
            "| metric | interval | absolute: held | truth below / above | relative: held | truth below / above"
            " | mean width, relative | called |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        for (metric, interval), c in table.items():
            lines.append(
                f"| {metric} | {interval} | **{c.held:.1%}** | {c.below:.1%} / {c.above:.1%} | **{c.rel_held:.1%}**"
                f" | {c.rel_below:.1%} / {c.rel_above:.1%} | {100.0 * c.rel_width:.1f} points | {c.called:.1%} |"
            )
        lines.append("")
    lines.append(
        f"Seeds: a test from each child of the children of `SeedSequence({SEED})`. foretest {ft.__version__}, Python"
        f" {platform.python_version()}, NumPy {np.__version__}, PyArrow {pa.__version__}. {wall:,.0f} s on two"
        f" processes, {cpu:,.0f} s of CPU time."
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=TESTS, help=f"A/B tests of each study (default {TESTS})")
    options = parser.parse_args()
    begin = time.perf_counter()
    found = {name: summarise(STUDIES[name], tests) for name, tests in run_all(options.tests).items()}
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    text = report(found, time.perf_counter() - begin, sum(u.ru_utime + u.ru_stime for u in usage))
    print(text)
    into_page(DOCS / "measured/online-coverage.md", "online coverage", text)


if __name__ == "__main__":
    main()
