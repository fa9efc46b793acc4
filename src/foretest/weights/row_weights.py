"""Weights of rows from those of their slots: a row's weight for a metric is the mean by what its slots earned.

h = Σ_k h_k r_k / Σ_k r_k, so that h·r = Σ_k h_k r_k, and all that is made of h and r holds as it does for rankings.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.kernels.ranking_draws import SLICE
from foretest.kernels.row_means import by_reward, log_means
from foretest.records import dataclass
from foretest.weights.noise_terms import NoiseTerms
from foretest.weights.weightings import PointWeights

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class WeighedSlots:
    """The shown slots whose weights count: those that earned something, and all where all rows are weighed."""

    places: Ints  # among the shown slots of all displays, one after the other
    counts: Ints  # of each display
    rewards: dict[int, Floats]  # of these slots, by metric
    metrics: int  # how many there are, with those of which slots are not known
    are_all: bool
    shown: int  # slots of all displays, also those that do not count
    displays_per_row: Floats  # of each of the displays

    @classmethod
    def of(
        cls, displays: Displays, earned: Mapping[int, Ragged], metrics: int, *, displays_per_row: Floats,
        dense: bool = False,
    ) -> WeighedSlots:  # fmt: skip
        """The slots of some displays that count; `earned` has the slots' rewards by metric."""
        slots, rewards = displays.slots, {m: lists.flat().astype(np.float64) for m, lists in earned.items()}
        counted = np.full(int(slots.sum()), dense)
        for r in rewards.values():
            counted |= r > 0.0
        places = np.flatnonzero(counted)
        owner = np.repeat(np.arange(len(displays)), slots)[places]
        counts = np.bincount(owner, minlength=len(displays))
        rewards = {m: r[places] for m, r in rewards.items()}
        return cls(places, counts, rewards, metrics, dense, len(counted), displays_per_row)

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Of the shown slots of all displays, one after the other: does it count?"""
        counts = np.zeros(self.shown, np.bool_)
        counts[self.places] = True
        return counts

    def noise(self, metric: int, terms: SlotTerms) -> NoiseTerms | None:
        """What the slots' terms add to the noise of a metric's uplift; None where E_p[w̃²] is not known."""
        if terms.second is None:
            return None
        owner, rows = np.repeat(np.arange(len(self.counts)), self.counts), len(self.counts)
        return NoiseTerms.of(
            terms.log_h, terms.second, self.rewards[metric], owner, rows,
            displays_per_row=self.displays_per_row[owner], dense=self.are_all,
        )  # fmt: skip

    def only(self, metrics: Container[int]) -> WeighedSlots:
        """The same slots, with the rewards of some metrics alone."""
        return replace(self, rewards={m: r for m, r in self.rewards.items() if m in metrics})


class SlotTerms(NamedTuple):
    """A weighting's terms for every slot that counts."""

    log_h: Floats
    log_capped: Floats  # log w̄_k
    log_below: Floats  # log w̄_k at a third of the cap
    slice: Floats  # (q_k − q_k')/q_k', q_k' at a third of the cap
    q: Floats
    infeasible: npt.NDArray[np.bool_]
    second: Floats | None = None  # E_p[w̃² | x], where it is known

    @classmethod
    def uncapped(cls, log_w: Floats) -> SlotTerms:
        """The terms of weights that no cap cuts."""
        nothing = np.zeros(len(log_w))
        return cls(log_w, log_w, log_w, nothing, nothing + 1.0, np.zeros(len(log_w), np.bool_))

    @classmethod
    def capped(cls, log_w: Floats, cap: Floats, q: Floats, below: Floats, second: Floats | None = None) -> SlotTerms:
        """The terms of w̃ = min(w, c)/q, 1 where there is no cap; `below` is q at a third of it, `second` E_p[w̃²]."""
        infeasible = q <= 0.0
        mass = np.where(infeasible, 1.0, q)
        with np.errstate(divide="ignore"):
            log_cap = np.log(cap)  # −∞ where there is none
        log_capped = np.minimum(log_w, log_cap)
        log_h = np.where(infeasible, 0.0, log_capped - np.log(mass))
        share = np.divide(q - below, below, out=np.zeros(len(q)), where=below > 0.0)
        second = None if second is None else np.where(infeasible, 1.0, second)
        log_below, share = np.minimum(log_w, log_cap - np.log(SLICE)), np.maximum(share, 0.0)
        return cls(log_h, log_capped, log_below, share, q, infeasible, second)


def row_weights(terms_of: Mapping[int, SlotTerms], weighed: WeighedSlots, parts: Floats | None = None) -> PointWeights:
    """The weights of rows from those of their slots, by metric; `parts` are the slots' parts in a row's mean weight,
    all the same where they are not given. That mean is known where all slots are weighed, else NaN."""
    counts, rows, metrics = weighed.counts, len(weighed.counts), weighed.metrics
    log_h, log_capped, log_below = (np.full((rows, metrics), -np.inf) for _ in range(3))
    slices, count, mass = np.zeros((rows, metrics)), np.zeros(rows), np.zeros(rows)
    unsupported, of_metric = np.zeros(rows, np.bool_), np.empty((4, rows))
    for m, r in weighed.rewards.items():
        by_reward(counts, r, *terms_of[m][:6], of_metric, count, mass, unsupported)
        log_h[:, m], log_capped[:, m], log_below[:, m], slices[:, m] = of_metric
    q = np.divide(mass, count, out=np.zeros(rows), where=count > 0)
    nothing = np.full(rows, np.nan)  # a row has no cap of its own, nor E_p[h²|x]
    log_mean = nothing
    if weighed.are_all:
        every = np.ones(len(weighed.places)) if parts is None else parts
        log_mean = log_means(counts, every, next(iter(terms_of.values())).log_h if terms_of else np.zeros(len(every)))
    return PointWeights(
        log_h, nothing, q, unsupported, np.zeros(rows, np.bool_), nothing, log_capped, log_below, slices, log_mean,
        noise={m: noise for m, terms in terms_of.items() if (noise := weighed.noise(m, terms)) is not None},
    )  # fmt: skip
