"""A published benchmark of lower bounds on a policy's value, and ours beside it.

Sakhi et al. (2024, arXiv:2405.14335) turn classification into bandits: the logging policy prefers the label, but for
the first two labels the next one; the treatment prefers the label always; the reward is 1 for the label, flipped with
some probability. No features enter, so labels are all that is needed of a data set. 45 cells (three temperatures of the
logging policy, five of the treatment, three shares of flips) for each of three data sets; the figure is the mean of
(V − bound)/V over the cells, a bound above V counting 0 as theirs does.

    python benchmarks/lower_bounds.py [--repeats N]

prints a Markdown table and writes it into docs/measured/lower-bounds.md, between two comments.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pages import DOCS, into_page

import foretest as ft
from foretest.inference.betting import OrderedTerms, mean_lower_bound
from foretest.inference.smoothing import smoothing_bound

Floats = npt.NDArray[np.float64]

SEED = 20260303  # chosen before the first log was drawn
REPEATS = 40
LEVEL = 0.95
LOG_SHARE = 0.98

LOGGING = (0.2, 0.25, 0.3)  # temperatures
TREATMENT = (0.1, 0.2, 0.3, 0.4, 0.5)
FLIPS = (0.0, 0.1, 0.2)
CELLS = list(itertools.product(LOGGING, TREATMENT, FLIPS))


class DataSet(NamedTuple):
    """How many rows have each label, and the mean radii that were published: of one run a cell."""

    counts: tuple[int, ...]
    published: dict[str, float]


BERNSTEIN, IX, SMOOTHING, BETTING = "empirical Bernstein", "implicit exploration", "logarithmic smoothing", "betting"
DATA = {
    "optdigits": DataSet(
        (554, 571, 557, 572, 568, 558, 558, 566, 554, 562), {BERNSTEIN: 0.323, IX: 0.148, SMOOTHING: 0.113}
    ),
    "satimage": DataSet((1531, 703, 1356, 625, 707, 1508), {BERNSTEIN: 0.336, IX: 0.171, SMOOTHING: 0.140}),
    "page-blocks": DataSet((4913, 329, 28, 88, 115), {BERNSTEIN: 0.547, IX: 0.371, SMOOTHING: 0.312}),
}
TOLERANCE = 0.03  # on the published radii of logarithmic smoothing


class Log(NamedTuple):
    control: Floats  # π_0 of what was shown
    treatment: Floats  # π of it
    reward: Floats
    value: float  # of the treatment, over all rows of the data set


def preference(labels: int, temperature: float) -> tuple[float, float]:
    """softmax(onehot/τ): the probability of the preferred label, and of any other."""
    odds = np.exp(1.0 / temperature)
    return odds / (odds + labels - 1.0), 1.0 / (odds + labels - 1.0)


def log_of(data: DataSet, logging: float, treatment: float, flips: float, rng: np.random.Generator) -> Log:
    """98 % of the rows, in random order, each with an action of the logging policy."""
    labels = len(data.counts)
    every = rng.permutation(np.repeat(np.arange(labels), data.counts))
    label = every[: round(LOG_SHARE * len(every))]
    preferred = np.where(label < 2, (label + 1) % labels, label)
    (p_high, p_low), (t_high, t_low) = preference(labels, logging), preference(labels, treatment)
    other = (preferred + rng.integers(1, labels, len(label))) % labels
    shown = np.where(rng.random(len(label)) < p_high, preferred, other)
    right = shown == label
    reward = (right ^ (rng.random(len(label)) < flips)).astype(np.float64)
    value = t_high * (1.0 - flips) + (1.0 - t_high) * flips
    return Log(np.where(shown == preferred, p_high, p_low), np.where(right, t_high, t_low), reward, value)


def bernstein(log: Log) -> float:
    """Maurer and Pontil's, one-sided, on weights capped at √n; capping only lowers the value."""
    n, confidence = len(log.reward), np.log(2.0 / (1.0 - LEVEL))
    x = np.minimum(log.treatment / log.control, np.sqrt(n)) * log.reward
    half = np.sqrt(2.0 * confidence * x.var() / n) + np.sqrt(n) * 7.0 * confidence / (3.0 * (n - 1.0))
    return float(x.mean() - half)


def implicit_exploration(log: Log) -> float:
    """Gabbianelli et al. (2023): π/(π_0 + γ), γ = 1/(2√n)."""
    n = len(log.reward)
    x = log.treatment / (log.control + 0.5 / np.sqrt(n)) * log.reward
    return float(x.mean() - np.log(1.0 / (1.0 - LEVEL)) / np.sqrt(n))


def smoothing(log: Log) -> float:
    x = log.treatment / log.control * log.reward
    return smoothing_bound(float(np.log1p(x / np.sqrt(len(x))).sum()), len(x), level=LEVEL)


def betting(log: Log) -> float:
    """Capital ∏ (1 + λ_i (x_i − m)) in the order of the log; √n is what it takes for large, and no bound is needed."""
    x = log.treatment / log.control * log.reward
    at = np.flatnonzero(x)
    gaps = np.diff(np.concatenate([[-1], at, [len(x)]])) - 1
    return mean_lower_bound(OrderedTerms(gaps, x[at], len(x)), float(np.sqrt(len(x))), LEVEL)


BOUNDS = {BERNSTEIN: bernstein, IX: implicit_exploration, SMOOTHING: smoothing, BETTING: betting}


class Radii(NamedTuple):
    """Of one bound and data set: the mean radius over cells and repeats, its spread over repeats, and violations."""

    mean: float
    spread: float  # standard deviation, over repeats, of the mean over cells
    violations: float
    worst: float  # the largest share of violations in a cell


def study(name: str, repeats: int) -> dict[str, Radii]:
    radius = np.empty((len(BOUNDS), len(CELLS), repeats))
    violated = np.empty(radius.shape, np.bool_)
    for c, cell in enumerate(CELLS):
        for r, seed in enumerate(np.random.SeedSequence([SEED, list(DATA).index(name), c]).spawn(repeats)):
            log = log_of(DATA[name], *cell, np.random.default_rng(seed))
            found = np.array([max(0.0, bound(log)) for bound in BOUNDS.values()])
            radius[:, c, r] = np.maximum(0.0, log.value - found) / log.value
            violated[:, c, r] = found > log.value
    return {
        bound: Radii(
            float(radius[b].mean()),
            float(radius[b].mean(axis=0).std(ddof=1)) if repeats > 1 else float("nan"),
            float(violated[b].mean()),
            float(violated[b].mean(axis=1).max()),
        )
        for b, bound in enumerate(BOUNDS)
    }


def report(found: dict[str, dict[str, Radii]], repeats: int, wall: float) -> str:
    lines = [
        "| data set | bound | published | mean radius (spread of one run) | violations | worst cell |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for name, bounds in found.items():
        for bound, radii in bounds.items():
            published = DATA[name].published.get(bound)
            lines.append(
                f"| {name} | {bound} | {'' if published is None else f'{published:.3f}'}"
                f" | **{radii.mean:.3f}** (± {radii.spread:.3f}) | {radii.violations:.1%} | {radii.worst:.1%} |"
            )
    farthest = max(abs(b[SMOOTHING].mean - DATA[name].published[SMOOTHING]) for name, b in found.items())
    logs = repeats * len(CELLS)
    error = np.sqrt(LEVEL * (1.0 - LEVEL) / logs)
    return "\n".join(
        [
            f"{len(CELLS)} cells × {repeats} logs for each data set, δ = {1 - LEVEL:.2f}. The radii of logarithmic"
            f" smoothing are within {farthest:.3f} of those published (aim: {TOLERANCE}). Violations, the share of logs"
            f" whose bound is above the value, may be {1 - LEVEL:.0%}; the Monte Carlo standard error of that, over"
            f" {logs:,} logs, is {error:.1%}.",
            "",
            *lines,
            "",
            f"Seeds: `SeedSequence([{SEED}, data set, cell]).spawn({repeats})`. foretest {ft.__version__}, Python"
            f" {platform.python_version()}, NumPy {np.__version__}. {wall:,.0f} s.",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"logs of each cell (default {REPEATS})")
    options = parser.parse_args()
    begin = time.perf_counter()
    found = {name: study(name, options.repeats) for name in DATA}
    text = report(found, options.repeats, time.perf_counter() - begin)
    print(text)
    into_page(DOCS / "measured/lower-bounds.md", "lower bounds", text)


if __name__ == "__main__":
    main()
