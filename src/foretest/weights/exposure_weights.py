"""Weights by exposure: a reward is weighted by its item, wherever that was shown.

Where a slot's reward is examination times worth, E[r_k | a, x] = θ_k·γ(a_k, x), the exposure of an item under a policy
is e(i) = Σ_k θ_k P(i in slot k), and E_p[Σ_k (e_t/e_p)(a_k)·r_k | x] = Σ_i e_t(i)·γ_i over the items that the control
exposes at all. A control that never varies is legal: it exposes what it shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.kernels import exposure as kernel
from foretest.kernels import weight_bounds as bounds_kernel
from foretest.kernels.row_means import mean_slopes
from foretest.kernels.slot_marginals import slot_caps
from foretest.records import dataclass
from foretest.weights.examination import Curves
from foretest.weights.row_weights import SlotTerms, WeighedSlots, row_weights
from foretest.weights.slot_weights import MarginalPart, SlotWeighting, log_ratio
from foretest.weights.weight_bounds import BoundMasses
from foretest.weights.weightings import PointWeights, Slopes

Codes = npt.NDArray[np.int64]

UNCAPPED = np.inf  # the bound of weights that no cap cuts


class SlotSlopes(NamedTuple):
    """∂ log w̃/∂ log θ_l of the shown slots, and ∂ log q/∂ log θ_l of the displays, by slot l and of all bounds first by
    bound."""

    weight: Floats
    mass: Floats


@dataclass(frozen=True)
class ExposurePrices:
    """The weights of the shown slots by variant of the curve, and caps and q of the displays by bound and variant."""

    log_w: dict[int, Floats]
    caps: dict[tuple[float, int], Floats]
    share: Floats  # θ_k/Θ of the shown slots
    slopes: dict[float, SlotSlopes]  # by bound, where the curve was fitted
    bounds: BoundMasses | None  # at all bounds that one is chosen from, with a row per display


class ExposurePricer:
    """Prices the shown slots of displays by exposure, under one metric's curves."""

    def __init__(
        self, displays: Displays, curves: Curves, bounds: Sequence[float], together: Sequence[float] = (), *,
        variants: int = 1, fitted: bool = False,
    ) -> None:  # fmt: skip
        rows, shown, slots = len(displays), int(displays.slots.sum()), displays.slots
        self.tables = [curves.table(variant) for variant in range(variants)]
        self.codes, self.together, self.fitted = curves.codes(displays), tuple(together), fitted
        self.bounds = tuple(dict.fromkeys((*bounds, *self.together)))
        self.log_w = {variant: np.empty(shown) for variant in range(variants)}
        self.caps = {
            (bound, variant): np.full((4, rows), np.nan) for bound in self.bounds for variant in range(variants)
        }
        self.masses, self.grid = BoundMasses.empty(rows, len(self.together)), np.asarray(self.together)
        count, width = len(self.bounds) if fitted else 0, self.tables[0].shape[1]
        self.slopes = SlotSlopes(np.zeros((count, shown, width)), np.zeros((count, rows, width)))
        owner = np.repeat(np.arange(rows), slots)
        place = np.arange(shown) - np.repeat(np.cumsum(slots) - slots, slots)
        theta = self.tables[0][self.codes[owner], place]
        self.share = theta / np.bincount(owner, weights=theta, minlength=rows)[owner]

    def add(self, part: MarginalPart) -> None:
        """Price the slots of some displays."""
        assert part.p is not None
        codes = self.codes[part.rows]
        for variant, table in enumerate(self.tables):
            e_t, e_p = (self._exposures(part.displays, of_policy, table, codes) for of_policy in (part.t, part.p))
            self._add_weights(part, variant, e_t, e_p)
            self._add_caps(part, variant, e_t, e_p)
            if self.fitted:
                self._add_slopes(part, e_t, e_p, table, codes)

    def _exposures(self, displays: Displays, marginals: Ragged, table: Floats, codes: Codes) -> Ragged:
        """e(i)/Θ of every item."""
        out = Ragged.packed(np.empty(0), displays.eligible)
        values = np.empty(int(displays.eligible.sum()))
        kernel.exposures(
            marginals.values, marginals.starts, displays.eligible, displays.slots, table, codes, values, out.starts
        )
        return Ragged(values, out.starts, displays.eligible)

    def _add_weights(self, part: MarginalPart, variant: int, e_t: Ragged, e_p: Ragged) -> None:
        ranking, both = part.displays.ranking, np.empty((2, part.slots.stop - part.slots.start))
        for exposures, out in zip((e_t, e_p), both, strict=True):
            kernel.shown_values(
                exposures.values, exposures.starts, ranking.values, ranking.starts, part.displays.slots, out
            )
        self.log_w[variant][part.slots] = log_ratio(*both)

    def _add_caps(self, part: MarginalPart, variant: int, e_t: Ragged, e_p: Ragged) -> None:
        """Of one list per display, as of a display with one slot."""
        once = np.ones(len(part.displays), np.int64)
        lists = (e_t.values, e_t.starts, e_p.values, e_p.starts, part.displays.eligible, once)
        if self.together and variant == 0:
            every = np.ones(len(once), np.bool_)
            bounds_kernel.bounds_of_slots(*lists, every, self.grid, *(array[part.rows] for array in self.masses))
        for bound in self.bounds:
            out = self.caps[bound, variant][:, part.rows]
            if bound == UNCAPPED:
                out[:3] = np.array([[np.inf], [1.0], [1.0]])
            elif bound in self.together and variant == 0:
                at = self.together.index(bound)
                out[:3] = [column[part.rows, at] for column in self.masses[:3]]
                out[3] = self.masses.products[part.rows, at, at]
            elif variant == 0:
                masses = BoundMasses.zeros(len(once), 1)
                bounds_kernel.bounds_of_slots(*lists, np.ones(len(once), np.bool_), np.array([bound]), *masses)
                out[:] = masses.caps([bound])[bound]
            else:
                slot_caps(*lists, float(bound), out)

    def _add_slopes(self, part: MarginalPart, e_t: Ragged, e_p: Ragged, table: Floats, codes: Codes) -> None:
        ranking = part.displays.ranking
        assert part.p is not None
        caps, masses, *_ = np.stack([self.caps[bound, 0][:, part.rows] for bound in self.bounds], axis=1)
        kernel.slopes(
            part.t.values, part.t.starts, part.p.values, part.p.starts, part.displays.eligible, e_t.values,
            e_p.values, e_t.starts, ranking.values, ranking.starts, part.displays.slots, table, codes,
            np.array(self.bounds), caps, masses, self.slopes.weight[:, part.slots], self.slopes.mass[:, part.rows],
        )  # fmt: skip

    def prices(self) -> ExposurePrices:
        """The prices of all displays."""
        slopes = dict(zip(self.bounds, map(SlotSlopes, *self.slopes), strict=True)) if self.fitted else {}
        return ExposurePrices(self.log_w, self.caps, self.share, slopes, self.masses if self.together else None)


@dataclass(frozen=True)
class ExposureWeighting(SlotWeighting):
    """A weight for every slot that earned something, by the exposure of its item."""

    marginal: ClassVar[bool] = True

    @property
    def variant(self) -> int:
        """Which variant of the curve it is for."""
        return 0

    @property
    def bound_or_none(self) -> float:
        """The bound of its weights, infinite where there is none."""
        return UNCAPPED

    def of_exposures(self, prices: Mapping[int, ExposurePrices], weighed: WeighedSlots) -> PointWeights:
        """The weights of rewarded rows, one column per metric; `prices` by metric."""
        terms = {m: self._terms_of(prices[m], weighed) for m in weighed.rewards}
        parts = next(iter(prices.values())).share[weighed.places] if prices else None
        weights = row_weights(terms, weighed, parts)
        if not any(self.bound_or_none in prices[m].slopes for m in weighed.rewards):
            return weights
        slopes = {m: prices[m].slopes.get(self.bound_or_none) for m in weighed.rewards}
        return weights._replace(slopes=_row_slopes(weights, terms, slopes, weighed))

    def _terms_of(self, prices: ExposurePrices, weighed: WeighedSlots) -> SlotTerms:
        log_w = prices.log_w[self.variant][weighed.places]
        if self.bound_or_none == UNCAPPED:
            return SlotTerms.uncapped(log_w)
        caps = np.repeat(prices.caps[self.bound_or_none, self.variant], weighed.counts, axis=1)
        if self.variant:  # of steeper and flatter curves no noise is asked for
            caps = caps[:3]
        return SlotTerms.capped(log_w, *caps)


def _row_slopes(
    weights: PointWeights, terms: Mapping[int, SlotTerms], slopes: Mapping[int, SlotSlopes | None],
    weighed: WeighedSlots,
) -> Slopes:  # fmt: skip
    """The slopes of rows' weights: the mean of their slots' by r·h, and of w̄ by r·w̄, as ∂ log w̄ = ∂ log w̃ + ∂ log q."""
    rows, metrics = weights.log_h.shape
    width = max(s.weight.shape[1] for s in slopes.values() if s is not None)
    of_h, of_capped = np.zeros((rows, metrics, width)), np.zeros((rows, metrics, width))
    for m, of_slots in slopes.items():
        if of_slots is not None:
            of_rows = (np.ascontiguousarray(log[:, m]) for log in (weights.log_h, weights.log_capped))
            mean_slopes(
                weighed.counts, weighed.rewards[m], terms[m].log_h, terms[m].log_capped, *of_rows,
                of_slots.weight[weighed.places], of_slots.mass, m, of_h, of_capped,
            )  # fmt: skip
    return Slopes(of_h, of_capped)


@dataclass(frozen=True)
class ExposureUncapped(ExposureWeighting):
    """h_k = w_k = e_t(a_k)/e_p(a_k)."""


@dataclass(frozen=True)
class ExposureAdaptive(ExposureWeighting):
    """h_k = min(w_k, c̃)/q ≤ bound, q(x) = Σ_i min(e_t(i), c̃·e_p(i))/Θ; where no cap keeps the bound, 1 in all slots.

    `curve` is the variant of the examination curve.
    """

    banded: ClassVar[bool] = True
    bound: float
    curve: int = 0

    @property
    def variant(self) -> int:
        return self.curve

    @property
    def bound_or_none(self) -> float:
        return self.bound

    @property
    def bounds(self) -> tuple[float, ...]:
        return (self.bound,)
