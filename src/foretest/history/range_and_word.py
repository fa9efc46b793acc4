"""How well what people look at first agreed with online: the range of each test, and its word."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats
from foretest.records import dataclass

if TYPE_CHECKING:
    from foretest.history.agreement import Pairs

Decisions = npt.NDArray[np.int64]  # −1, 0, 1
Figure = Floats | np.float64  # one number, or one for each resample

_DECIDED = {"negative": -1, "neutral": 0, "insufficient": 0, "positive": 1}
FULL_WORDS = _DECIDED | {"leans positive": 0, "leans negative": 0}  # a word that leans decides nothing
WITH_LEANS = _DECIDED | {"leans positive": 1, "leans negative": -1}  # it decides for the side it leans to


@dataclass(frozen=True)
class Seen:
    """One entry per test: the relative limits of its range, and what its word decides, with and without leans.

    `z` is the normal quantile of its confidence level. NaN where there is no number.
    """

    lower: Floats
    upper: Floats
    z: Floats
    word: Decisions
    leaning: Decisions

    def take(self, tests: npt.NDArray[np.int64]) -> Seen:
        """The entries of some tests, in the shape of `tests`."""
        return Seen(**{name: column[tests] for name, column in vars(self).items()})


def widened_range(x: Floats, lower: Floats, upper: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Ranges that allow for the noise of an online result too: each half-width h, from the estimate x to that end, is
    √(h² + noise²). NaN where a number is."""
    down, up = np.maximum(x - lower, 0.0), np.maximum(upper - x, 0.0)
    return x - np.hypot(down, noise), x + np.hypot(up, noise)


def range_held(p: Pairs, seen: Seen) -> Figure:
    """The share of ranges that held the online result, allowing for its noise z·se_y (`widened_range`).

    Tests without a range or a standard error do not count.
    """
    lower, upper = widened_range(p.x, seen.lower, seen.upper, seen.z * p.y_error)
    inside = (p.y >= lower) & (p.y <= upper)
    return share(inside, np.isfinite(lower + upper))


def range_coverage(p: Pairs, seen: Seen) -> Figure:
    """The share of ranges that contain the truth. Tests without a range do not count."""
    inside = (seen.lower <= p.truth) & (p.truth <= seen.upper)
    return share(inside, np.isfinite(seen.lower + seen.upper))


def precision_word(p: Pairs, seen: Seen) -> Figure:
    """The share of tests whose word decided as online did; a word that leans counts as neutral."""
    return share(seen.word == p.online)


def fnr_word(p: Pairs, seen: Seen) -> Figure:
    """The share of tests whose word is lower than online; a word that leans counts as neutral."""
    return share(seen.word < p.online)


def fpr_word(p: Pairs, seen: Seen) -> Figure:
    """The share of tests whose word is higher than online; a word that leans counts as neutral."""
    return share(seen.word > p.online)


def precision_leans(p: Pairs, seen: Seen) -> Figure:
    """The share of tests whose word decided as online did; a word that leans counts as its side."""
    return share(seen.leaning == p.online)


def fnr_leans(p: Pairs, seen: Seen) -> Figure:
    """The share of tests whose word is lower than online; a word that leans counts as its side."""
    return share(seen.leaning < p.online)


def fpr_leans(p: Pairs, seen: Seen) -> Figure:
    """The share of tests whose word is higher than online; a word that leans counts as its side."""
    return share(seen.leaning > p.online)


def share(mask: npt.NDArray[np.bool_], among: npt.NDArray[np.bool_] | None = None) -> Figure:
    """The share of tests for which the mask holds, among all or those of another mask; NaN of none."""
    among = np.ones_like(mask) if among is None else among
    count, of = (np.count_nonzero(those, axis=-1) for those in (mask & among, among))
    with np.errstate(invalid="ignore"):
        shares: Figure = np.divide(count, of)
    return shares


def _of_pairs(figure: Callable[[Pairs, Seen], Figure]) -> Callable[[Pairs], Figure]:
    """A figure as one of pairs; NaN where they have no ranges and words."""
    return lambda pairs: np.float64(np.nan) if pairs.seen is None else figure(pairs, pairs.seen)


SEEN_FIGURES = {
    f.__name__: _of_pairs(f)
    for f in (range_held, precision_word, fnr_word, fpr_word, precision_leans, fnr_leans, fpr_leans)
}
SEEN_TRUTH_FIGURES = {range_coverage.__name__: _of_pairs(range_coverage)}
