"""Do 90 % intervals hold what they estimate 90 % of the time?

A finite world (200 contexts, 30 rankings of 2 items among 6) in which the limit of every estimator, what it tends to
as the log grows, is a sum over all contexts and rankings. Logs are drawn from it, each is tested, and the intervals
that hold the limit are counted. The limit is not the truth: what capping cuts off is no part of this study.

    python benchmarks/interval_coverage.py [--logs N] [--rows N]

prints a Markdown table and writes it into docs/measured/coverage.md, between two comments.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import multiprocessing
import platform
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pages import DOCS, into_page

import foretest as ft
from foretest.aggregation import fold_start
from foretest.aggregation.aggregates import Aggregates
from foretest.offline import analysis as offline_analysis
from foretest.results.result import Estimate

Floats = npt.NDArray[np.float64]
Key = tuple[str, str]  # estimator, interval

SEED = 20260101  # chosen before the first log was drawn
LOGS = 2000
ROWS = 10_000
LEVEL = 0.90
BOUND = 20.0
CAPS = (10.0, 100.0)
DRAWS = 64
ADAPTIVE = "point-ncis-adaptive"

CONTEXTS, ITEMS, SLOTS, GROUPS = 200, 6, 2, 4
RANKINGS = np.array(list(itertools.permutations(range(ITEMS), SLOTS)), np.int32)


class Users(NamedTuple):
    """Who comes several times: two kinds of users, those of the second kind more eager."""

    eager_share: float
    effect: tuple[float, float]  # multiplies every click probability
    mean_displays: tuple[float, float]
    at_home: float  # displays that show the user's own context and, again, the same ranking


# a third click nearly twice as often as the others; most displays repeat
ORDINARY = Users(0.33, (0.8, 1.4), (4.0, 4.0), 0.6)
# a fifth click five times as often as the others and come twice as often; most displays repeat
UNEQUAL = Users(0.2, (0.5, 2.5), (4.0, 8.0), 0.7)


# -- the world and its limits -----------------------------------------------------------------------------------------


class World(NamedTuple):
    """Contexts x with their shares, both policies' scores and probabilities, and the click probability of a ranking."""

    share: Floats
    group: npt.NDArray[np.int64]
    control_scores: Floats
    treatment_scores: Floats
    control: Floats  # π_p, contexts × rankings
    treatment: Floats  # π_t
    click: Floats


def make_world(cold_by: float = 5.0, changes: Sequence[float] = (0.0, 0.4, 0.8, 1.2)) -> World:
    """One item of six is cold: the control hardly shows it, and the treatment lifts it, more so from group to group."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED).spawn(6)[0])
    group = np.arange(CONTEXTS) % GROUPS
    appeal = rng.normal(size=(CONTEXTS, ITEMS))
    cold = np.arange(ITEMS) == 0
    control = 0.5 * appeal + rng.normal(size=appeal.shape) - cold_by * cold
    change = np.array(changes)[group][:, None]
    treatment = control + change * (0.5 * appeal + rng.normal(size=appeal.shape) + cold_by * cold)
    rate = np.array([0.03, 0.05, 0.08, 0.12])[group][:, None]
    shown = appeal[:, RANKINGS[:, 0]] + 0.5 * appeal[:, RANKINGS[:, 1]]
    click = np.clip(rate * np.exp(0.4 * shown), 0.002, 0.3)
    share = rng.gamma(2.0, size=CONTEXTS)
    return World(
        share / share.sum(), group, control, treatment, plackett_luce(control), plackett_luce(treatment), click
    )


def plackett_luce(scores: Floats) -> Floats:
    """The probability of each of the rankings."""
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    first, second = odds[:, RANKINGS[:, 0]], odds[:, RANKINGS[:, 1]]
    total = odds.sum(axis=1, keepdims=True)
    return first / total * second / (total - first)


def adaptive_cap(alpha: Floats, beta: Floats, bound: float) -> tuple[Floats, Floats]:
    """The largest c with c ≤ bound·q(c), q(c) = Σ min(α, c·β) over the last axis, by bisection, and q there."""
    high = np.log(bound * alpha.sum(axis=-1))
    low = high - 40.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        cap = np.exp(middle)
        feasible = cap <= bound * np.minimum(alpha, cap[..., None] * beta).sum(axis=-1)
        low, high = np.where(feasible, middle, low), np.where(feasible, high, middle)
    cap = np.exp(low)
    return cap, np.minimum(alpha, cap[..., None] * beta).sum(axis=-1)


def limits(world: World) -> dict[str, float]:
    """What every estimator tends to, and the control's value: sums over all contexts and rankings."""
    mass = world.share[:, None] * world.control
    w = world.treatment / world.control
    worth = mass * world.click
    cap, q = adaptive_cap(world.treatment, world.control, BOUND)
    truth = float((worth * w).sum())
    found = {
        "control": float(worth.sum()),
        "is": truth,
        "nis": truth,
        ADAPTIVE: float((worth * np.minimum(w, cap[:, None]) / q[:, None]).sum()),
    }
    for c in CAPS:
        kept = np.minimum(w, c)
        q = (world.control * kept).sum(axis=1, keepdims=True)
        found[f"cis {c:g}"] = float((worth * kept).sum())
        found[f"ncis {c:g}"] = float((worth * kept).sum() / (mass * kept).sum())
        found[f"point-ncis {c:g}"] = float((worth * kept / q).sum())
        found[f"piece-ncis {c:g}"] = sum(
            float(world.share[g].sum() * (worth * kept)[g].sum() / (mass * kept)[g].sum())
            for g in (world.group == group for group in range(GROUPS))
        )
    return found


def drawn_limit(world: World, sets: int = 2000) -> tuple[float, float]:
    """The adaptive estimator's limit where q and the cap come from two-sided draws, and its standard error.

    The sum over contexts and shown rankings is exact; the expectation over draws is the mean over `sets` sets for each
    context. A set is two multinomials: so many of the 30 rankings from each policy.
    """
    rng = np.random.default_rng(np.random.SeedSequence([SEED, DRAWS]))
    w = world.treatment / world.control
    worth = world.share[:, None] * world.control * world.click
    total = variance = 0.0
    for x in range(CONTEXTS):
        counts = sum(
            rng.multinomial(DRAWS // 2, policy[x] / policy[x].sum(), size=sets)
            for policy in (world.treatment, world.control)
        )
        beta = counts * 2.0 / (1.0 + w[x]) / DRAWS
        cap, q = adaptive_cap(beta * w[x], beta, BOUND)
        values = (np.minimum(w[x], cap[:, None]) / q[:, None]) @ worth[x]
        total += values.mean()
        variance += values.var(ddof=1) / sets
    return float(total), float(np.sqrt(variance))


# -- logs -------------------------------------------------------------------------------------------------------------


def rankings_of(world: World, context: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """One ranking a display, from the control."""
    below = np.cumsum(world.control, axis=1)[context] <= rng.random(len(context))[:, None]
    return np.minimum(below.sum(axis=1), len(RANKINGS) - 1)


def log_of_rows(world: World, rows: int, rng: np.random.Generator) -> pa.Table:
    """Independent displays."""
    context = rng.choice(CONTEXTS, rows, p=world.share)
    return _table(world, np.arange(rows), context, rankings_of(world, context, rng), np.ones(rows), rng)


def log_of_users(world: World, rows: int, rng: np.random.Generator, users: Users) -> pa.Table:
    """Users who come several times (`rows` displays are expected in all).

    A user has a context and a ranking of their own, shown at most of their displays, and an effect that multiplies
    every click probability. The number of displays is geometric and depends on the effect, neither on the context:
    a display's context has the same distribution as in `log_of_rows`, and `user_effect` multiplies every limit.
    """
    few, many = users.mean_displays
    count = round(rows / ((1.0 - users.eager_share) * few + users.eager_share * many))
    eager = (rng.random(count) < users.eager_share).astype(np.int64)
    user = np.repeat(np.arange(count), rng.geometric(1.0 / np.array(users.mean_displays)[eager]))
    home = rng.choice(CONTEXTS, count, p=world.share)
    home_ranking = rankings_of(world, home, rng)
    away = rng.choice(CONTEXTS, len(user), p=world.share)
    away_ranking = rankings_of(world, away, rng)
    at_home = rng.random(len(user)) < users.at_home
    context = np.where(at_home, home[user], away)
    ranking = np.where(at_home, home_ranking[user], away_ranking)
    return _table(world, user, context, ranking, np.array(users.effect)[eager][user], rng)


def user_effect(users: Users) -> float:
    """The mean effect over displays: users count as often as they come."""
    displays = np.array([1.0 - users.eager_share, users.eager_share]) * users.mean_displays
    return float(displays @ users.effect / displays.sum())


def _table(
    world: World,
    user: npt.NDArray[np.int64],
    context: npt.NDArray[np.int64],
    ranking: npt.NDArray[np.int64],
    effect: Floats,
    rng: np.random.Generator,
) -> pa.Table:
    def lists(values: npt.NDArray[np.generic]) -> pa.Array:
        return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])

    first = int(rng.integers(1 << 60))  # other names in every log, so other buckets and other draws
    return pa.table(
        {
            "display": first + np.arange(len(user)),
            "user": first + user,
            "group": world.group[context],
            "ranking": lists(RANKINGS[ranking]),
            "control": lists(world.control_scores[context]),
            "treatment": lists(world.treatment_scores[context]),
            "click": rng.random(len(user)) < world.click[context, ranking] * effect,
        }
    )


# -- the studies ------------------------------------------------------------------------------------------------------


class Study(NamedTuple):
    """A kind of log and a way to test it."""

    title: str
    users: Users | None  # who come several times; None: every display is somebody else's
    unit: str | None  # the unit of the test
    estimators: tuple[str, ...]
    intervals: tuple[str, ...] = ("bootstrap", "delta", "bernstein")
    normaliser: str = "auto"
    times: int = 1  # as many rows as the other studies


BY_USER = (ADAPTIVE, "cis 10", "ncis 10", "piece-ncis 10", "point-ncis 10")
STUDIES = {
    "rows": Study(
        "Independent displays",
        None,
        None,
        (ADAPTIVE, *(f"{key} {c:g}" for c in CAPS for key in ("cis", "ncis", "piece-ncis", "point-ncis")), "is", "nis"),
    ),
    "users": Study("Users who come several times, tested by user", ORDINARY, "user", BY_USER, times=2),
    "users by row": Study(
        "The same logs, wrongly tested by row", ORDINARY, None, (ADAPTIVE, "ncis 10"), ("bootstrap", "delta"), times=2
    ),
    "unequal users": Study("Very unequal users, tested by user", UNEQUAL, "user", BY_USER),
    "unequal users by row": Study(
        "The same logs, wrongly tested by row", UNEQUAL, None, (ADAPTIVE, "ncis 10"), ("bootstrap", "delta")
    ),
    "unequal users, 4 × rows": Study(
        "Very unequal users, tested by user, logs four times as long", UNEQUAL, "user", BY_USER, times=4
    ),
    "drawn": Study(
        f"Independent displays, normaliser from {DRAWS} two-sided draws a display",
        None,
        None,
        (ADAPTIVE,),
        ("bootstrap", "delta"),
        "two-sided",
    ),
}
# tests of the same users by user and by row see the same logs
SEED_OF = {
    "rows": 1, "unequal users": 2, "unequal users by row": 2, "drawn": 3, "unequal users, 4 × rows": 4,
    "users": 5, "users by row": 5,
}  # fmt: skip


def estimator(label: str) -> ft.Estimator:
    key, _, cap = label.partition(" ")
    classes = {"cis": ft.CIS, "ncis": ft.NCIS, "piece-ncis": ft.PieceNCIS, "point-ncis": ft.PointNCIS}
    if cap:
        return classes[key](name=label, cap=float(cap))
    return {ADAPTIVE: ft.AdaptivePointNCIS(weight_bound=BOUND), "is": ft.IS(), "nis": ft.NIS()}[key]


def offline_test(study: Study, interval: str) -> ft.OfflineTest:
    bounded = interval == "bernstein"
    labels = [e for e in study.estimators if not bounded or e == ADAPTIVE or e.startswith("cis")]
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], id="display", unit=study.unit, ranking="ranking"),
        control=ft.PlackettLuce("control"),
        treatment=ft.PlackettLuce("treatment"),
        estimators=[estimator(label) for label in labels],
        strata="group",
        interval=interval,
        confidence_level=LEVEL,
        normaliser=study.normaliser,
        draws=DRAWS,
    )


class Answer(NamedTuple):
    """What one test of one log says."""

    lower: float
    upper: float
    rel_lower: float
    rel_upper: float
    value: float
    effective_positives: float
    effective_units: float
    insufficient: bool


def seeds(name: str, logs: int) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(SEED).spawn(6)[SEED_OF[name]].spawn(logs)


def log_of(study: Study, world: World, rows: int, seed: np.random.SeedSequence) -> pa.Table:
    rng = np.random.default_rng(seed)
    if study.users is None:
        return log_of_rows(world, study.times * rows, rng)
    return log_of_users(world, study.times * rows, rng, study.users)


def answers(study: Study, table: pa.Table) -> dict[Key, Answer]:
    """Every interval of a log, as `OfflineTest.run` gives it; the log is folded once for all kinds of interval."""
    aggregates, notes, r_max = offline_test(study, study.intervals[0]).aggregate(table, threads=1)
    units = {e.label: effective_units(aggregates, e) for e in aggregates.plan.estimators}
    found = {}
    for interval in study.intervals:
        result = offline_test(study, interval).analyse(aggregates, notes, r_max)
        for label, estimate in result.metrics["click"].estimates.items():
            found[label, interval] = answer(estimate, units[label])
    return found


def effective_units(aggregates: Aggregates, estimator: ft.Estimator) -> float:
    """(Σ T)²/Σ T² over units, T = Σ h r of a unit's rows: effective positives with units for rows."""
    plan, kept = aggregates.plan, aggregates.rewarded.columns()
    weighting = plan.weighting(estimator)
    log_h = kept["log_h", weighting] if weighting in plan.point_weightings else weighting.log_h(kept["log_w"])
    total = np.bincount(np.unique(kept["unit"], return_inverse=True)[1], weights=np.exp(log_h) * kept["r", 0])
    return float(total.sum() ** 2 / (total @ total))


def answer(estimate: Estimate, units: float) -> Answer:
    return Answer(
        estimate.effect_size_ci_lower,
        estimate.effect_size_ci_upper,
        estimate.rel_effect_size_ci_lower,
        estimate.rel_effect_size_ci_upper,
        estimate.treatment,
        estimate.effective_positives,
        units,
        estimate.verdict == "insufficient",
    )


_resample_counts = functools.cache(offline_analysis.resample_counts)


@contextmanager
def fixed_costs_spared() -> Iterator[None]:
    """What a small run mostly spends its time on, and no interval depends on.

    The health report prices 16 displays, not 20 000, the resamples, the same for every log, are drawn once, and
    there is no path over caps.
    """
    with (
        patch.object(fold_start, "SAMPLED_DISPLAYS", 16),
        patch.object(offline_analysis, "resample_counts", _resample_counts),
        patch.object(offline_analysis, "_with_cap_paths", lambda answers, *_: answers),
    ):
        yield


class Coverage(NamedTuple):
    """How the intervals of one estimator did over many logs."""

    logs: int
    covered: float
    below: float  # share of logs with the limit below the interval
    above: float
    rel_covered: float
    rel_below: float
    rel_above: float
    rel_width: float  # mean width of the relative interval
    error: float  # mean of the estimates − their limit, in standard errors of that mean
    positives: tuple[float, float, float]  # effective: lowest, median, highest
    units: tuple[float, float, float]
    insufficient: float

    @property
    def std_error(self) -> float:
        """Monte Carlo, of a coverage of LEVEL."""
        return float(np.sqrt(LEVEL * (1.0 - LEVEL) / self.logs))


def coverage(found: list[Answer], limit: float, control: float) -> Coverage:
    lower, upper, rel_lower, rel_upper, value, positives, units, insufficient = np.array(found, float).T
    uplift, relative = limit - control, limit / control - 1.0
    below, above = uplift < lower, uplift > upper
    rel_below, rel_above = relative < rel_lower, relative > rel_upper
    return Coverage(
        len(found),
        1.0 - below.mean() - above.mean(),
        below.mean(),
        above.mean(),
        1.0 - rel_below.mean() - rel_above.mean(),
        rel_below.mean(),
        rel_above.mean(),
        (rel_upper - rel_lower).mean(),
        (value.mean() - limit) / (value.std(ddof=1) / np.sqrt(len(value))),
        (positives.min(), float(np.median(positives)), positives.max()),
        (units.min(), float(np.median(units)), units.max()),
        insufficient.mean(),
    )


def limits_of(study: Study, world: World) -> dict[str, float]:
    """The limits in this kind of log."""
    found = limits(world)
    if study.users is not None:
        found = {label: user_effect(study.users) * limit for label, limit in found.items()}
    if study.normaliser == "two-sided":
        found[ADAPTIVE] = drawn_limit(world)[0]
    return found


def summarise(study: Study, world: World, logs: list[dict[Key, Answer]]) -> dict[Key, Coverage]:
    limit = limits_of(study, world)
    keys = [key for key in itertools.product(study.estimators, study.intervals) if key in logs[0]]
    return {key: coverage([log[key] for log in logs], limit[key[0]], limit["control"]) for key in keys}


def run_study(name: str, logs: int, rows: int, estimators: tuple[str, ...]) -> dict[Key, Coverage]:
    """A study in this process: the small version of it."""
    world, study = make_world(), STUDIES[name]._replace(estimators=estimators)
    found = [answers(study, log_of(study, world, rows, seed)) for seed in seeds(name, logs)]
    return summarise(study, world, found)


# -- two processes, and the page --------------------------------------------------------------------------------------


class Task(NamedTuple):
    name: str
    rows: int
    seed: np.random.SeedSequence


def work(task: Task) -> tuple[str, dict[Key, Answer], int]:
    study = STUDIES[task.name]
    table = log_of(study, make_world(), task.rows, task.seed)
    with fixed_costs_spared():
        return task.name, answers(study, table), table.num_rows


def start_worker() -> None:
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)  # two processes on two cores


def run_all(logs: int, rows: int) -> Iterator[tuple[str, dict[Key, Answer], int]]:
    tasks = [Task(name, rows, seed) for name in STUDIES for seed in seeds(name, logs)]
    begin = last = time.perf_counter()
    # spawned, not forked: a fork of a process with threads may hang
    with multiprocessing.get_context("spawn").Pool(2, start_worker) as pool:
        for done, outcome in enumerate(pool.imap(work, tasks, chunksize=10), start=1):
            now = time.perf_counter()
            if now - last > 15.0 or done == len(tasks):
                last, left = now, (now - begin) * (len(tasks) - done) / done
                print(f"{done:,} of {len(tasks):,} tests, {now - begin:.0f} s, {left:.0f} s left", file=sys.stderr)
            yield outcome


def as_wanted(c: Coverage) -> bool:
    """88–92 %, ± 2 Monte Carlo standard errors, both uplifts."""
    room = 0.02 + 2.0 * c.std_error
    return all(abs(share - LEVEL) <= room for share in (c.covered, c.rel_covered))


def markdown(found: dict[str, dict[Key, Coverage]]) -> str:
    lines = []
    for name, table in found.items():
        lines += [f"**{STUDIES[name].title}**", ""]
        lines += [
            "| estimator | interval | absolute: held | limit below / above | relative: held | limit below / above"
            " | mean width, relative | effective positives: median (range) | … by unit | insufficient |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        for (label, interval), c in table.items():
            positives, units = (
                f"{median:,.0f} ({low:,.0f}–{high:,.0f})" for low, median, high in (c.positives, c.units)
            )
            lines.append(
                f"| `{label}` | {interval} | **{c.covered:.1%}** | {c.below:.1%} / {c.above:.1%}"
                f" | **{c.rel_covered:.1%}** | {c.rel_below:.1%} / {c.rel_above:.1%} | {100 * c.rel_width:.1f} points"
                f" | {positives} | {units} | {c.insufficient:.0%} |"
            )
        lines.append("")
    return "\n".join(lines)


def facts(world: World) -> str:
    """What is known of the world before any log is drawn."""
    limit, (drawn, drawn_error) = limits(world), drawn_limit(world)
    w = world.treatment / world.control
    _, q = adaptive_cap(world.treatment, world.control, BOUND)
    binds = float(world.share[(w > BOUND * q[:, None]).any(axis=1)].sum())
    far = float((world.share[:, None] * world.treatment)[w > 100.0].sum())
    relative = {label: value / limit["control"] - 1.0 for label, value in limit.items() if label != "control"}
    listed = ", ".join(f"`{label}` {value:+.2%}" for label, value in relative.items())
    return (
        f"The world: click rate {limit['control']:.2%}; the adaptive cap binds in {binds:.0%} of displays and keeps"
        f" {float(world.share @ q):.1%} of the treatment's mass; {far:.1%} of that mass has w > 100, and the largest"
        f" weight is {w.max():,.0f}. Limits of the relative uplift: {listed}. With {DRAWS} draws `{ADAPTIVE}` tends to"
        f" {drawn / limit['control'] - 1.0:+.3%} (standard error {drawn_error / limit['control']:.3%}), a shift of"
        f" {(drawn - limit[ADAPTIVE]) / limit['control']:+.3%}."
    )


def report(found: dict[str, dict[Key, Coverage]], rows: dict[str, list[int]], wall: float, cpu: float) -> str:
    some = next(iter(found["rows"].values()))
    # seen by row, repeated users are the mistake this study shows
    headline = {
        f"{name}, {interval}": c
        for name, table in found.items()
        for (label, interval), c in table.items()
        if label == ADAPTIVE and interval != "bernstein" and not name.endswith("by row")
    }
    inside = [name for name, c in headline.items() if as_wanted(c)]
    outside = [name for name in headline if name not in inside]
    fewest = min(c.positives[0] for c in headline.values())
    farthest = max(abs(c.error) for c in headline.values())
    sizes = ", ".join(f"{name} {min(n):,}–{max(n):,}" for name, n in rows.items())
    return "\n".join(
        [
            f"{some.logs:,} logs a study, nominal level {LEVEL:.0%}; Monte Carlo standard error of a coverage of"
            f" {LEVEL:.0%}: {some.std_error:.2%}. Does `{ADAPTIVE}` hold its limit 88–92 % of the time, ± 2 of these,"
            f" for both uplifts? Yes: {'; '.join(inside) or 'nowhere'}. No: {'; '.join(outside) or 'nowhere'}. The"
            f" fewest effective positives in any of these logs: {fewest:.0f}. The mean of the adaptive estimates is"
            f" at most {farthest:.1f} standard errors from the limit found by enumeration.",
            "",
            facts(make_world()),
            "",
            markdown(found),
            f"Seeds: `SeedSequence({SEED}).spawn(6)` (the world, then a log from each child of the other five)."
            f" Rows of a log: {sizes}. foretest {ft.__version__}, Python {platform.python_version()}, NumPy"
            f" {np.__version__}, PyArrow {pa.__version__}. {wall:,.0f} s on two processes, {cpu:,.0f} s of CPU time.",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=LOGS, help=f"logs of each study (default {LOGS})")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"displays of a log (default {ROWS})")
    options = parser.parse_args()
    begin = time.perf_counter()
    logs: dict[str, list[dict[Key, Answer]]] = {name: [] for name in STUDIES}
    rows: dict[str, list[int]] = {name: [] for name in STUDIES}
    for name, outcome, size in run_all(options.logs, options.rows):
        logs[name].append(outcome)
        rows[name].append(size)
    world = make_world()
    found = {name: summarise(STUDIES[name], world, outcomes) for name, outcomes in logs.items()}
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    text = report(found, rows, time.perf_counter() - begin, sum(u.ru_utime + u.ru_stime for u in usage))
    print(text)
    into_page(DOCS / "measured/coverage.md", "coverage", text)


if __name__ == "__main__":
    main()
