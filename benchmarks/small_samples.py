"""Do 90 % intervals hold what they estimate when there are few rewards?

The contexts, rankings and policies of `interval_coverage.py`, with other rewards: click rates of .2 %, 2 % and 30 %,
and as many displays as give 3, 10, 30, 100 or 300 effective positives on average. Two treatments: one that lifts a
hardly ever shown item in some groups, so that a few clicks carry most of the variance, and one that changes much
everywhere. What the adaptive estimator tends to is a sum over all contexts and rankings. The part of the treatment that
the log does not support earns Γ times what the supported part of the same display earns: with Γ = 1 the estimator's
limit is the truth, else only the sensitivity band claims to hold it.

    python benchmarks/small_samples.py [--logs N] [--world cold|broad]

prints a Markdown table a world and writes it into docs/measured/coverage-small.md, between two comments. Only rewarded
rows have terms other than 0, so a log is its clicks, and the ids of the rest: the intervals are the package's own.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import sys
import time
from collections.abc import Iterator
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from interval_coverage import RANKINGS, World, adaptive_cap, make_world
from pages import DOCS, into_page

import foretest as ft
from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.inference.betting import in_hash_order, mean_limits
from foretest.inference.bootstrap import percentile_interval, resample_counts
from foretest.inference.buckets import BucketSums, Interval
from foretest.inference.delta import delta_interval, std_error
from foretest.inference.sensitivity import Terms, imbens_manski
from foretest.inference.uplift import absolute_uplift_of
from foretest.inference.verdict import FEWEST_POSITIVES
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derive
from foretest.settings.analysis import Analysis

Floats = npt.NDArray[np.float64]

SEED = 20260202  # chosen before the first log was drawn
LOGS = 1000
LEVEL = 0.90
BOUND = 20.0
BUCKETS, RESAMPLES = 1024, 1000
POSITIVES = (3, 10, 30, 100, 300)
RATES = (0.002, 0.02, 0.30)
GAMMAS = (0.9, 1.0, 1.2)  # beyond the cap; the band's defaults hold them all
ESTIMATOR = ft.AdaptivePointNCIS(weight_bound=BOUND)
BAND = Analysis().gamma_at(by_slot=False)


# both were fixed, with their seeds, before any coverage in them was computed
WORLDS = {
    "cold": make_world,
    "broad": partial(make_world, cold_by=2.0, changes=(1.0, 1.0, 1.0, 1.0)),
}


class Cell(NamedTuple):
    """How many effective positives are expected, the click rate under the control, and Γ beyond the cap."""

    positives: int
    rate: float
    gamma: float = 1.0
    world: str = "cold"

    def make(self) -> World:
        return WORLDS[self.world]()

    def rewards(self) -> Rewards:
        return rewards(self.rate, self.gamma, self.world)


CELLS = [Cell(*factors, world) for world in WORLDS for factors in itertools.product(POSITIVES, RATES, GAMMAS)]


# -- the world, with its limits ----------------------------------------------------------------------------------------


class Rewards(NamedTuple):
    """A display's clicks by context and ranking, and what the adaptive weighting makes of it."""

    click: Floats
    weight: Floats  # w̃
    kept: Floats  # w̄ at the display's own cap
    second: Floats  # E_p[w̃² | x], by context
    limit: float  # of the uplift
    truth: float
    cumulated: Floats  # of the distribution of clicked (context, ranking)


@cache
def rewards(rate: float, gamma: float, name: str = "cold") -> Rewards:
    """Clicks vary as in the world, by the square root so that 30 % on average leaves all below 1; those of capped
    rankings are multiplied, display by display, so that R(ν|x) = Γ·R(π̃|x)."""
    world = WORLDS[name]()
    w = world.treatment / world.control
    cap, q = adaptive_cap(world.treatment, world.control, BOUND)
    kept = np.minimum(w, cap[:, None])
    weight = kept / q[:, None]
    click = np.sqrt(world.click)
    surrogate = world.control * weight
    beyond = world.treatment - q[:, None] * surrogate  # (1 − q)·ν
    capped = w > cap[:, None] * (1.0 + 1e-9)
    some = capped.any(axis=1)
    nu = np.where(some[:, None], beyond / np.where(some, 1.0 - q, 1.0)[:, None], 0.0)
    outside = (surrogate * click * ~capped).sum(axis=1)
    inside = (surrogate * click * capped).sum(axis=1)
    factor = np.where(some, gamma * outside / np.where(some, (nu * click).sum(axis=1) - gamma * inside, 1.0), 1.0)
    assert (factor > 0.0).all()
    click = np.where(capped, factor[:, None] * click, click)
    mass = world.share[:, None] * world.control
    click *= rate / (mass * click).sum()
    assert click.max() < 1.0
    worth = mass * click
    return Rewards(
        click,
        weight,
        kept,
        (world.control * weight**2).sum(axis=1),
        float((worth * (weight - 1.0)).sum()),
        float((worth * (w - 1.0)).sum()),
        np.cumsum(worth.ravel()) / worth.sum(),
    )


@cache
def rows_of(cell: Cell) -> int:
    """So many that (Σr)²/Σr², over the mean of E_p[w̃²|x] at a click, is what was asked for."""
    found, world = cell.rewards(), cell.make()
    mass = world.share[:, None] * world.control
    second = float((mass * found.click * found.second[:, None]).sum()) / cell.rate
    return round(cell.positives * second / cell.rate)


def skewness(cell: Cell) -> tuple[float, float]:
    """Of the uplift's sum over a log, E d³/(E d²)^1.5 over √clicks, d = w̃ − 1; and how many clicks weigh over 10."""
    found, world = cell.rewards(), cell.make()
    share = world.share[:, None] * world.control * found.click / cell.rate
    second, third = (float((share * (found.weight - 1.0) ** k).sum()) for k in (2, 3))
    clicks = cell.rate * rows_of(cell)
    return third / second**1.5 / np.sqrt(clicks), clicks * float((share * (found.weight > 10.0)).sum())


# -- logs and their intervals ------------------------------------------------------------------------------------------


class Log(NamedTuple):
    """Rows by id, and the clicks among them: which row, and which cell of the world it shows."""

    ids: npt.NDArray[np.int64]
    clicked: npt.NDArray[np.int64]
    shown: npt.NDArray[np.int64]  # context × ranking


def log_of(cell: Cell, rng: np.random.Generator) -> Log:
    found, rows = cell.rewards(), rows_of(cell)
    clicks = int(rng.binomial(rows, cell.rate))
    clicked = np.sort(rng.choice(rows, clicks, replace=False))
    shown = np.minimum(np.searchsorted(found.cumulated, rng.random(clicks), side="right"), len(found.cumulated) - 1)
    # other ids in every log, so other buckets and another order
    return Log(int(rng.integers(1 << 60)) + np.arange(rows), clicked, shown)


class Answer(NamedTuple):
    """What the intervals of one log say, the band around them, and its effective positives."""

    intervals: dict[str, Interval]
    band: Interval
    own: float
    predicted: float


@cache
def counts() -> Floats:
    return resample_counts(BUCKETS, RESAMPLES, 0)


def answer(cell: Cell, log: Log) -> Answer:
    """The intervals of the uplift, as a run of the package would give them for this log."""
    found = cell.rewards()
    rows = len(log.ids)
    weight = found.weight.ravel()[log.shown]
    second = found.second[log.shown // len(RANKINGS)]
    unit = hash_integers(log.ids)
    bucket = (derive(unit, BUCKET_SALT) % np.uint64(BUCKETS)).astype(np.int64)
    at = bucket[log.clicked]
    n = np.bincount(bucket, minlength=BUCKETS).astype(np.float64)
    zero = np.zeros(BUCKETS)
    sums = BucketSums(
        {
            "rows": n, "n": n, "h": zero, "hv": zero, "v": zero,
            "r": np.bincount(at, minlength=BUCKETS).astype(np.float64),
            "hr": np.bincount(at, weights=weight, minlength=BUCKETS),
        },
        1.0,
    )  # fmt: skip
    absolute = absolute_uplift_of(ESTIMATOR)
    estimate = float(absolute(sums.total())[0])
    error = std_error(sums.influence(absolute), rows, rows)
    hashes = unit[log.clicked]
    order = np.argsort(hashes)

    def bets(terms: Floats, highest: float) -> Interval:
        return mean_limits(in_hash_order(hashes[order], terms[order], rows, 0), -1.0, highest, LEVEL)

    plain = bets(weight - 1.0, BOUND - 1.0)
    # noise is never less than over all that the control could have shown
    drawn, expected = np.square(weight - 1.0).sum(), (second - 1.0).sum()
    on_average = delta_interval(estimate, error * np.sqrt(expected / drawn) if drawn else 0.0, rows, LEVEL)
    resampled = percentile_interval(absolute(sums.resampled(counts())), LEVEL)
    alone = {"bootstrap": resampled, "delta": delta_interval(estimate, error, rows, LEVEL)}
    intervals = {
        **{
            name: Interval(min(limits.lower, on_average.lower), max(limits.upper, on_average.upper))
            for name, limits in alone.items()
        },
        "betting": Interval(min(plain.lower, estimate), max(plain.upper, estimate)),
    }
    cut = weight - found.kept.ravel()[log.shown]  # t, as every reward is 1
    of_buckets = np.bincount(at, weights=cut, minlength=BUCKETS)
    bounds = Terms(n, sums.arrays["hr"] - sums.arrays["r"], of_buckets, zero, zero, rows).bounds(BAND)
    predicted = len(weight) ** 2 / second.sum() if len(weight) else 0.0
    observed = weight.sum() ** 2 / (weight @ weight) if weight.any() else 0.0
    if min(predicted, observed) < FEWEST_POSITIVES:
        low, high = 1.0 - 1.0 / BAND[0], BAND[1] - 1.0
        around = Interval(
            min(bets(weight - 1.0 - low * cut, BOUND - 1.0).lower, bounds.lower),
            max(bets(weight - 1.0 + high * cut, BAND[1] * BOUND - 1.0).upper, bounds.upper),
        )
        own = intervals["betting"]
    else:
        around, own = imbens_manski(bounds, rows, LEVEL), intervals["bootstrap"]
    return Answer(
        intervals,
        Interval(min(own.lower, around.lower), max(own.upper, around.upper)),
        observed,
        predicted,
    )


class Coverage(NamedTuple):
    logs: int
    held: float
    below: float  # share of logs with the limit below the interval
    above: float
    width: float  # mean, over the control's click rate

    @property
    def std_error(self) -> float:
        """Monte Carlo, of a coverage of LEVEL."""
        return float(np.sqrt(LEVEL * (1.0 - LEVEL) / self.logs))


class Found(NamedTuple):
    """One cell: by interval the coverage of the limit; of the truth that of the bootstrap and of the band; and the
    median effective positives, predicted and of the log itself."""

    coverage: dict[str, Coverage]
    truth: dict[str, Coverage]
    predicted: float
    own: float


def seeds(cell: Cell, logs: int) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence([SEED, CELLS.index(cell)]).spawn(logs)


def study(cell: Cell, logs: int) -> Found:
    answers = [answer(cell, log_of(cell, np.random.default_rng(seed))) for seed in seeds(cell, logs)]
    found = cell.rewards()

    def covered(intervals: list[Interval], value: float) -> Coverage:
        lower, upper = np.array(intervals).T
        below, above = float((value < lower).mean()), float((value > upper).mean())
        return Coverage(logs, 1.0 - below - above, below, above, float((upper - lower).mean()) / cell.rate)

    names = answers[0].intervals
    return Found(
        {name: covered([a.intervals[name] for a in answers], found.limit) for name in names},
        {
            "bootstrap": covered([a.intervals["bootstrap"] for a in answers], found.truth),
            "band": covered([a.band for a in answers], found.truth),
        },
        float(np.median([a.predicted for a in answers])),
        float(np.median([a.own for a in answers])),
    )


def table(log: Log, rng: np.random.Generator) -> pa.Table:
    """The same log as a table, for the package itself: rows without click show anything."""
    world = make_world()
    shown = rng.integers(0, world.click.size, len(log.ids))
    shown[log.clicked] = log.shown
    context, ranking = np.divmod(shown, len(RANKINGS))
    lists = {
        "ranking": RANKINGS[ranking],
        "control": world.control_scores[context],
        "treatment": world.treatment_scores[context],
    }
    columns = {name: pa.FixedSizeListArray.from_arrays(pa.array(v.ravel()), v.shape[1]) for name, v in lists.items()}
    return pa.table({"display": log.ids, **columns, "click": np.isin(np.arange(len(log.ids)), log.clicked)})


# -- the page ----------------------------------------------------------------------------------------------------------


def as_wanted(name: str, cell: Cell, c: Coverage) -> bool | None:
    """Betting: at least 90 % everywhere; bootstrap and delta: 88–92 % from 100 effective positives; the band: the truth
    at least 88 % of the time; ± 2 standard errors."""
    if name == "betting":
        return c.held >= LEVEL - 2.0 * c.std_error
    if name == "band":
        return c.held >= LEVEL - 0.02 - 2.0 * c.std_error
    return abs(c.held - LEVEL) <= 0.02 + 2.0 * c.std_error if cell.positives >= 100 else None


def lines(found: dict[Cell, Found]) -> Iterator[str]:
    yield (
        "| click rate | Γ | effective positives | rows | predicted | of the log itself | bootstrap | delta | betting"
        " | truth: bootstrap | truth: band | width: delta | betting | band |"
    )
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | --- | --- | --- | --- | --- | ---: | ---: | ---: |"
    for cell, cells in sorted(found.items(), key=lambda item: (item[0].rate, item[0].gamma, item[0].positives)):
        every = [*cells.coverage.values(), *cells.truth.values()]
        shares = [f"**{c.held:.1%}** ({c.below:.1%} / {c.above:.1%})" for c in every]
        drawn = (cells.coverage["delta"], cells.coverage["betting"], cells.truth["band"])
        widths = [f"{100 * c.width:,.0f} points" for c in drawn]
        facts = [f"{100 * cell.rate:g} %", f"{cell.gamma:g}", str(cell.positives), f"{rows_of(cell):,}"]
        facts += [f"{cells.predicted:.1f}", f"{cells.own:.1f}"]
        yield f"| {' | '.join([*facts, *shares, *widths])} |"


def report(found: dict[Cell, Found], wall: float) -> str:
    some = next(iter(found.values())).coverage["delta"]
    judged = [
        (name, cell, as_wanted(name, cell, c))
        for cell, f in found.items()
        for name, c in [*f.coverage.items(), ("band", f.truth["band"])]
    ]
    missed = [
        f"{name} at {cell.positives}, {100 * cell.rate:g} %, Γ = {cell.gamma:g}"
        for name, cell, good in judged
        if good is False
    ]
    cell = max(cell for cell in found if cell.positives <= 100 and cell.gamma == 1.0)
    skew, heavy = skewness(cell)
    return "\n".join(
        [
            f"{some.logs:,} logs a row, nominal level {LEVEL:.0%}; Monte Carlo standard error of a coverage of"
            f" {LEVEL:.0%}: {some.std_error:.2%}. The aim, ± 2 of these: betting at least 90 % everywhere, bootstrap"
            f" and delta 88–92 % from 100 effective positives, the band (Γ from 1/{BAND[0]:g} to {BAND[1]:g}) the truth"
            f" at least 88 % everywhere. Missed by: {'; '.join(missed) or 'none'}. The limit of the relative uplift at"
            f" Γ = 1: {cell.rewards().limit / cell.rate:+.2%}. With {cell.positives} effective positives a log has"
            f" {heavy:.1f} clicks with a weight over 10, and the uplift a skewness of {skew:.2f}.",
            "",
            *lines(found),
            "",
            f"Seeds: `SeedSequence([{SEED}, row]).spawn({some.logs})`. foretest {ft.__version__}, Python"
            f" {platform.python_version()}, NumPy {np.__version__}. {wall:,.0f} s.",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=LOGS, help=f"logs of each row of the table (default {LOGS})")
    parser.add_argument("--world", choices=list(WORLDS), action="append", help="one world only (default: both)")
    options = parser.parse_args()
    for world in options.world or WORLDS:
        begin = time.perf_counter()
        found = {}
        for cell in CELLS:
            if cell.world == world:
                found[cell] = study(cell, options.logs)
                print(f"{cell}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)
        text = report(found, time.perf_counter() - begin)
        print(text)
        into_page(DOCS / "measured/coverage-small.md", f"few rewards, {world}", text)


if __name__ == "__main__":
    main()
