"""Three loggers against one, on as many rows: how far from the truth, and do 90 % intervals hold?

A finite world (200 contexts, 30 rankings of 2 items among 6) in which the truth and the limit of every estimator, what
it tends to as the log grows, are sums over all contexts, rankings and days. Over three days production hands over to
two earlier iterations of the treatment, each half-way or three quarters of the way to it with noise of its own; what a
click is worth differs by day. Logs are drawn, of production alone and of all three, each is tested, and errors and
intervals that hold the limit are counted.

    python benchmarks/loggers.py [--logs N] [--rows N]

prints a Markdown table and writes it into docs/how-to/loggers.md, between two comments.
"""

from __future__ import annotations

import argparse
import platform
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from interval_coverage import (
    CONTEXTS,
    GROUPS,
    ITEMS,
    LEVEL,
    RANKINGS,
    adaptive_cap,
    fixed_costs_spared,
    plackett_luce,
)
from pages import DOCS, into_page
from scipy.stats import norm

import foretest as ft
from foretest.aggregation import rewarded_sums
from foretest.offline import analysis

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SEED = 20260714  # chosen before the first log was drawn
LOGS = 500
ROWS = 36_000
DISPLAYS_A_USER = 3.0
ONE, THREE, BY_USER = "one logger", "three loggers", "three loggers, by user"
NAMES = ("production", "second", "third")
SHARES = np.array([[0.8, 0.1, 0.1], [0.6, 0.2, 0.2], [0.4, 0.3, 0.3]])  # by day: 60/20/20 in all
DAY_EFFECT = np.array([0.8, 1.0, 1.2])  # multiplies every click probability
BOUND = 20.0
ESTIMATORS: dict[str, ft.Estimator] = {
    "cis 100": ft.CIS(cap=100.0, name="cis 100"),
    "ncis 100": ft.NCIS(cap=100.0, name="ncis 100"),
    "point-ncis 100": ft.PointNCIS(cap=100.0, name="point-ncis 100"),
    "point-ncis-adaptive": ft.AdaptivePointNCIS(weight_bound=BOUND),
}


class World(NamedTuple):
    """Contexts with their shares, the scores of every policy, and the click probability of a ranking."""

    share: Floats
    scores: dict[str, Floats]
    click: Floats

    def policy(self, name: str) -> Floats:
        """Its probabilities, contexts × rankings."""
        return plackett_luce(self.scores[name])


def make_world() -> World:
    """One item of six is cold: production hardly shows it, the treatment lifts it, more so from group to group."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED).spawn(4)[0])
    group = np.arange(CONTEXTS) % GROUPS
    appeal = rng.normal(size=(CONTEXTS, ITEMS))
    cold = np.arange(ITEMS) == 0
    production = 0.5 * appeal + rng.normal(size=appeal.shape) - 5.0 * cold
    change = np.array([0.0, 0.4, 0.8, 1.2])[group][:, None]

    def towards(part: float) -> Floats:
        return production + part * change * (0.5 * appeal + rng.normal(size=appeal.shape) + 5.0 * cold)

    scores = dict(zip((*NAMES, "treatment"), (production, towards(0.5), towards(0.75), towards(1.0)), strict=True))
    rate = np.array([0.03, 0.05, 0.08, 0.12])[group][:, None]
    shown = appeal[:, RANKINGS[:, 0]] + 0.5 * appeal[:, RANKINGS[:, 1]]
    share = rng.gamma(2.0, size=CONTEXTS)
    return World(share / share.sum(), scores, np.clip(rate * np.exp(0.4 * shown), 0.002, 0.3))


def shares_of(study: str) -> Floats:
    """α by day and logger."""
    return np.array([[1.0, 0.0, 0.0]] * 3) if study == ONE else SHARES


def limits(world: World, study: str) -> dict[str, float]:
    """What every estimator tends to, the truth and production's value: sums over days, contexts and rankings."""
    policies = np.stack([world.policy(name) for name in NAMES])
    treatment = world.policy("treatment")
    sums: dict[str, float] = dict.fromkeys(("control", "truth", *ESTIMATORS, "mass"), 0.0)
    for alpha, effect in zip(shares_of(study), DAY_EFFECT, strict=True):
        mix = np.tensordot(alpha, policies, 1)
        w, mass = treatment / mix, world.share[:, None] * mix / len(DAY_EFFECT)
        worth = mass * world.click * effect
        capped = np.minimum(w, 100.0)
        cap, q = adaptive_cap(treatment, mix, BOUND)
        sums["control"] += float((worth * policies[0] / mix).sum())
        sums["truth"] += float((worth * w).sum())
        sums["cis 100"] += float((worth * capped).sum())
        sums["mass"] += float((mass * capped).sum())
        sums["point-ncis 100"] += float((worth * capped / (mix * capped).sum(axis=1, keepdims=True)).sum())
        sums["point-ncis-adaptive"] += float((worth * np.minimum(w, cap[:, None]) / q[:, None]).sum())
    sums["ncis 100"] = sums["cis 100"] / sums["mass"]
    return sums


def draw_log(world: World, study: str, rows: int, rng: np.random.Generator) -> pa.Table:
    """A log of three days, of independent displays, or by user: a user has one logger, some displays on one day, and
    mostly the same context and ranking."""
    user = np.arange(rows)
    if study == BY_USER:
        user = np.repeat(np.arange(rows), rng.geometric(1.0 / DISPLAYS_A_USER, rows))[:rows]
    people = int(user[-1]) + 1
    day = rng.integers(0, len(DAY_EFFECT), people)
    logger = (np.cumsum(shares_of(study), axis=1)[day] <= rng.random(people)[:, None]).sum(axis=1)
    home = np.where(rng.random(rows) < (0.6 if study == BY_USER else 0.0), user, people + np.arange(rows))
    _, place = np.unique(home, return_inverse=True)  # displays of one place have one context and ranking
    context = rng.choice(CONTEXTS, rows, p=world.share)[place]
    below = np.stack([np.cumsum(world.policy(name), axis=1) for name in NAMES])[logger[user], context]
    ranking = np.minimum((below <= rng.random(rows)[place][:, None]).sum(axis=1), len(RANKINGS) - 1)
    first = int(rng.integers(1 << 60))  # other names in every log, so other buckets
    columns = {
        "display": first + np.arange(rows),
        "user": first + user,
        "day": day[user],
        "policy": np.array(NAMES)[logger[user]],
        "ranking": _lists(RANKINGS[ranking]),
        "click": rng.random(rows) < world.click[context, ranking] * DAY_EFFECT[day[user]],
    }
    return pa.table(columns | {name: _lists(scores[context]) for name, scores in world.scores.items()})


def _lists(values: npt.NDArray[np.generic]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


def offline_test(study: str) -> ft.OfflineTest:
    control: dict[str, object] = {"control": ft.PlackettLuce(NAMES[0])}
    columns: dict[str, object] = {"rewards": ["click"], "id": "display", "ranking": "ranking"}
    if study != ONE:
        control = {"control": {name: ft.PlackettLuce(name) for name in NAMES}, "baseline": NAMES[0]}
        columns |= {"logger": "policy", "date": "day"}
    if study == BY_USER:
        columns["unit"] = "user"
    return ft.OfflineTest(
        log=ft.LogColumns(**columns), treatment=ft.PlackettLuce("treatment"), estimators=list(ESTIMATORS.values()),
        confidence_level=LEVEL, **control,
    )  # fmt: skip


@contextmanager
def costs_spared() -> Iterator[None]:
    """What a small run mostly spends its time on, and no estimate or interval depends on."""
    with (
        fixed_costs_spared(),
        patch.object(rewarded_sums, "path_columns", lambda *_: {}),
        patch.object(analysis, "with_days", lambda aggregates, estimators, counts, metrics: (metrics, [])),
    ):
        yield


class Found(NamedTuple):
    """What one estimator says of the logs of a study: one entry a log."""

    uplift: Floats  # relative
    held: Floats  # does the bootstrap interval of the absolute uplift hold its limit?
    rel_held: Floats  # does that of the relative?
    delta_held: Floats  # does the delta interval of the absolute?
    positives: Floats  # effective


def run_study(world: World, study: str, logs: int, rows: int, number: int) -> dict[str, Found]:
    """Draw and test the logs of a study, `number` the place of its seeds."""
    limit, z = limits(world, study), norm.ppf(0.5 + LEVEL / 2)
    test = offline_test(study)
    told: dict[str, list[tuple[float, ...]]] = {label: [] for label in ESTIMATORS}
    for done, seed in enumerate(np.random.SeedSequence(SEED).spawn(4)[number].spawn(logs)):
        if done % 100 == 0:
            print(f"{study}: {done:,} of {logs:,} logs", file=sys.stderr, flush=True)
        found = test.run(draw_log(world, study, rows, np.random.default_rng(seed)), threads=1)
        for label, e in found.metrics["click"].estimates.items():
            uplift, relative = limit[label] - limit["control"], limit[label] / limit["control"] - 1.0
            held = e.effect_size_ci_lower <= uplift <= e.effect_size_ci_upper
            rel_held = e.rel_effect_size_ci_lower <= relative <= e.rel_effect_size_ci_upper
            delta_held = abs(e.effect_size - uplift) <= z * e.std_error
            told[label].append((e.rel_effect_size, held, rel_held, delta_held, e.effective_positives))
    return {label: Found(*np.array(answers, float).T) for label, answers in told.items()}


def rmse(found: Found, truth: float) -> float:
    return float(np.sqrt(np.mean((found.uplift - truth) ** 2)))


def report(found: dict[str, dict[str, Found]], world: World, logs: int, rows: int, cpu: float) -> str:
    known = limits(world, ONE)
    truth = known["truth"] / known["control"] - 1.0
    lines = [
        f"{logs:,} logs of {rows:,} displays a study; the treatment's true uplift is {truth:+.1%}. Errors are of the"
        " relative uplift against the truth, in points; *held* is the share of 90 % intervals of the absolute (and of"
        " the relative) uplift that hold the estimator's own limit, with a Monte Carlo standard error of"
        f" {np.sqrt(LEVEL * (1 - LEVEL) / logs):.1%}.",
        "",
        "| estimator | log | bias | RMSE | … of one logger's | held, bootstrap | held, delta"
        " | effective positives: median |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for label in ESTIMATORS:
        of_one = rmse(found[ONE][label], truth)
        for study, answers in found.items():
            one = answers[label]
            ratio = f"{rmse(one, truth) / of_one:.2f}" if study == THREE else ""
            held = f"{one.held.mean():.1%} ({one.rel_held.mean():.1%}) | {one.delta_held.mean():.1%}"
            lines.append(
                f"| `{label}` | {study} | {100 * (one.uplift.mean() - truth):+.1f} | {100 * rmse(one, truth):.1f}"
                f" | {ratio} | {held} | {np.median(one.positives):,.0f} |"
            )
    lines += [
        "",
        f"Seeds: `SeedSequence({SEED}).spawn(4)` (the world, then the logs of each study). foretest {ft.__version__},"
        f" Python {platform.python_version()}, NumPy {np.__version__}. {cpu:,.0f} s of CPU time.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=LOGS, help=f"logs of each study (default {LOGS})")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"displays of a log (default {ROWS})")
    options = parser.parse_args()
    world = make_world()
    with costs_spared():
        found = {
            study: run_study(world, study, options.logs, options.rows, number)
            for number, study in enumerate((ONE, THREE, BY_USER), start=1)
        }
    usage = resource.getrusage(resource.RUSAGE_SELF)
    text = report(found, world, options.logs, options.rows, usage.ru_utime + usage.ru_stime)
    print(text)
    into_page(DOCS / "how-to/loggers.md", "loggers", text)


if __name__ == "__main__":
    main()
