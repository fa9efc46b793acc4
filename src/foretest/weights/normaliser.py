"""The pointwise normaliser: q(x) = E_t[w̄/w | x] of a display, or an estimate whose mean is 1/q(x).

Exact where that is cheap (no weight above the cap, few rankings for what a ranking costs, one slot, a deterministic
treatment), else from drawn rankings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.kernels import normaliser as kernel
from foretest.kernels import point_path as path_kernel
from foretest.kernels import weight_bounds as bounds_kernel
from foretest.kernels.ranking_draws import SLICE, W, Z
from foretest.records import dataclass
from foretest.weights import enumeration_cost
from foretest.weights.batch_draws import BatchDraws, MeansAt
from foretest.weights.control_marginals import KnownMarginals
from foretest.weights.enumeration import Priced, exact_bounds, exact_masses, exact_path, is_cheap
from foretest.weights.enumeration_cost import Purpose, most_enumerated
from foretest.weights.inverse_mass import LEAST_MASS, InverseMass, count_trials, lahiri, midzuno_sen
from foretest.weights.policy_pair import FROM_TREATMENT, NONE, PolicyPair, z_of
from foretest.weights.weight_bounds import BoundMasses

FEW_DRAWS = 32  # for means over many displays

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]


class Masses(NamedTuple):
    """What is known of the displays' weights at a cap c."""

    cap: Floats  # c; 0 where there is none
    inverse: Floats  # an estimate of 1/q, 0 where q = 0
    q: Floats  # q at c and, from the same rankings, at c/3: their means are right, not those of their inverses
    q_below: Floats
    squares: Floats  # E_p[w̄²]
    stuck: Mask  # past the bound on trials

    @classmethod
    def at_bound(cls, masses: BoundMasses, at: int) -> Masses:
        """The masses at one of several bounds."""
        q = masses.q[:, at]
        squares = masses.products[:, at, at] * q * q
        return cls(masses.cap[:, at], _reciprocal(q), q, masses.q_below[:, at], squares, np.zeros(len(q), np.bool_))

    @classmethod
    def uncut(cls, n: int, cap: float) -> Masses:
        """The masses of n displays of which the cap cuts nothing off, for those that it does cut to be filled in."""
        return cls(np.full(n, cap), np.ones(n), np.ones(n), np.ones(n), np.empty(n), np.zeros(n, np.bool_))


class _TreatmentSide(NamedTuple):
    mean: Floats  # of z at the cap
    mean_below: Floats  # at a third of it
    z: Floats  # displays × draws; without columns where the kernel draws, which tells no more than means


@dataclass(frozen=True)
class Normaliser:
    """How 1/q(x) is found for a pair of policies.

    method: `auto`, or one of `exact`, `midzuno-sen`, `lahiri`, `two-sided`; draws: S; seed: of the draws.
    """

    treatment: Any
    control: Any
    method: str = "auto"
    draws: int = 256
    seed: int = 0
    batch: BatchDraws | None = field(default=None, compare=False, repr=False)
    known: KnownMarginals | None = field(default=None, compare=False, repr=False)  # of the control, from another pass

    @cached_property
    def pair(self) -> PolicyPair:
        """The two policies, to draw rankings from."""
        return PolicyPair(self.treatment, self.control, self.seed)

    def for_batch(self, displays: Displays, cap: MeansAt | None = None) -> Normaliser:
        """A normaliser for one batch of displays, whose two-sided draws are made once and shared by all estimators;
        those that will be asked for a cap's masses find them with the draws."""
        return replace(self, batch=BatchDraws(displays, self.pair, self.draws, cap))

    def at_cap(self, displays: Displays, cap: float, *, zero: bool) -> Masses:
        """The masses at one cap."""
        masses = Masses.uncut(len(displays), cap)
        rows = np.arange(len(displays))
        if self.method in ("auto", "exact"):
            rows = self._fill_certified(masses, displays, cap, zero)
            rows = self._fill_exact(masses, displays, rows, cap=cap, zero=zero)
        if len(rows):
            self._fill_from_draws(masses, displays, rows, cap, zero)
        return masses

    def at_adaptive_cap(self, displays: Displays, bound: float, purpose: Purpose = Purpose.REWARDED) -> Masses:
        """The masses at the largest c̃ with c̃/q_c̃ ≤ bound; cap and q are 0 where there is none."""
        masses = Masses.uncut(len(displays), bound)
        rows = np.arange(len(displays))
        if self.method != "two-sided":
            rows = self._fill_certified(masses, displays, bound, False)
            rows = self._fill_exact(masses, displays, rows, bound=bound, purpose=purpose)
        if len(rows):
            w = self._weights_of(displays, rows)
            masses.cap[rows], masses.q[rows], masses.q_below[rows] = kernel.adaptive_caps_of_draws(w, bound)
            masses.squares[rows] = kernel.squares_of_draws(w, masses.cap[rows], False)
            masses.inverse[rows] = _reciprocal(masses.q[rows])
        return masses

    def at_bounds(
        self, displays: Displays, bounds: Sequence[float], purpose: Purpose = Purpose.REWARDED
    ) -> BoundMasses:
        """The masses at the adaptive caps of several ascending bounds, from one set of rankings."""
        masses, grid = BoundMasses.empty(len(displays), len(bounds)), np.asarray(bounds)
        most, rows = np.full(len(displays), np.inf), np.arange(len(displays))
        if self.method != "two-sided":
            most = self._log_most(displays) if self.pair.is_fused else most
            few = np.full(len(displays), self.method == "exact")
            if self.method != "exact":
                few = self._is_cheap(displays, purpose, self.draws)
            exact, rows = np.flatnonzero(few), np.flatnonzero(~few)
            if len(exact):
                part, priced = displays.take(exact), self._priced(displays, exact)
                masses.put(exact, exact_bounds(self.pair, part, most[exact], grid, priced=priced))
        if len(rows):
            drawn = BoundMasses.empty(len(rows), len(bounds))
            bounds_kernel.bounds_of_draws(self._weights_of(displays, rows), most[rows], grid, *drawn)
            masses.put(rows, drawn)
        return masses

    def path(self, displays: Displays, log_w: Floats, caps: Floats, bounds: Floats) -> tuple[Floats, Floats]:
        """log h of the shown rankings at each cap (h = w̄/q, max capping) and at each bound (h = w̃), by display.

        Over all rankings where these are few, else on one set of two-sided draws, those of the adaptive cap.
        """
        of_caps, of_bounds = np.empty((len(displays), len(caps))), np.empty((len(displays), len(bounds)))
        most = self._log_most(displays) if self.method != "two-sided" else np.full(len(displays), np.inf)
        few = self._is_little(displays) & (self.method != "two-sided")
        rows = np.flatnonzero(few)
        if len(rows):
            of_caps[rows], of_bounds[rows] = exact_path(
                self.pair, displays.take(rows), log_w[rows], most[rows], caps, bounds,
                priced=self._priced(displays, rows),
            )  # fmt: skip
        # no ranking weighs more than the least cap and bound: no draw is needed
        least = np.log(min(caps.min(initial=np.inf), bounds.min(initial=np.inf)))
        for rows, needed in ((~few & (most <= least), False), (~few & (most > least), True)):
            rows = np.flatnonzero(rows)
            if len(rows):
                w = self._weights_of(displays, rows) if needed else np.ones((len(rows), 1))
                of_caps[rows], of_bounds[rows] = path_kernel.path_of_draws(w, log_w[rows], most[rows], caps, bounds)
        return of_caps, of_bounds

    def mass(self, displays: Displays, cap: float, *, zero: bool, log_w: Floats) -> Floats:
        """q(x): exact where cheap, else the mean of z = w̄/w over the treatment's draws, whose log w are given.

        No z is above 1, so that what no cap cuts off is 1 without noise.
        """
        q: Floats = z_of(log_w, cap, zero).mean(axis=1)
        exact = np.flatnonzero(self._is_cheap(displays, Purpose.SAMPLED, 2 * log_w.shape[1]))
        if len(exact):
            q[exact] = np.minimum(exact_masses(self.pair, displays.take(exact), cap=cap, zero=zero).q, 1.0)
        return q

    # -- which displays are exact ---------------------------------------------------------------------------------

    def _most_enumerated(self, purpose: Purpose, draws: int) -> int:
        """How many rankings of a display are gone through where `draws` draws would do; `exact` asks for no less."""
        exact = self.method == "exact"
        return enumeration_cost.MOST if exact else most_enumerated(draws, purpose, fused=self.pair.is_fused)

    def _is_cheap(self, displays: Displays, purpose: Purpose, draws: int) -> Mask:
        """Displays whose rankings are all enumerated, for that costs little more than `draws` draws."""
        return is_cheap(self.pair, displays, self._most_enumerated(purpose, draws))

    def _is_little(self, displays: Displays) -> Mask:
        """Displays whose rankings are all enumerated even where a few draws would do."""
        most = self._most_enumerated(Purpose.REWARDED, self.draws)
        return is_cheap(self.pair, displays, min(most, enumeration_cost.FEW_RANKINGS))

    def _priced(self, displays: Displays, rows: Indices) -> Priced | None:
        """The probabilities of all rankings of some rows; a batch keeps them. None where the kernel enumerates."""
        batch = self._batch_of(displays)
        if self.pair.is_fused or batch is None or self.method == "exact":  # which may be millions
            return None
        return batch.priced(rows)

    def _fill_certified(self, masses: Masses, displays: Displays, cap: float, zero: bool) -> Indices:
        """Fill in the rows where no weight reaches the cap (q = 1); the rows that are left."""
        certified = np.flatnonzero(self._certified(displays, cap, zero))
        masses.squares[certified], cut = self._at_little_cost(displays, certified, cap, zero)
        masses.q_below[certified] -= cut
        return np.setdiff1d(np.arange(len(displays)), certified, assume_unique=True)

    def _fill_exact(
        self, masses: Masses, displays: Displays, rows: Indices, *, cap: float = np.nan, zero: bool = False,
        bound: float = np.nan, purpose: Purpose = Purpose.REWARDED,
    ) -> Indices:  # fmt: skip
        """Fill in the rows whose rankings are all enumerated; the rows that are left."""
        exact = rows
        if self.method != "exact":
            exact = rows[self._is_cheap(displays.take(rows), purpose, self.draws)]
        if len(exact):
            of_all = exact_masses(
                self.pair, displays.take(exact), cap=cap, zero=zero, bound=bound, priced=self._priced(displays, exact)
            )
            if not np.isnan(bound):
                masses.cap[exact] = of_all.cap
            masses.q[exact], masses.squares[exact], masses.q_below[exact] = of_all.q, of_all.squares, of_all.q_below
            masses.inverse[exact] = _reciprocal(of_all.q)
        return np.setdiff1d(rows, exact, assume_unique=True)

    def _certified(self, displays: Displays, cap: float, zero: bool) -> Mask:
        """Rows where no ranking's weight can reach the cap, so that q = 1."""
        if not self.pair.is_fused:
            return np.zeros(len(displays), np.bool_)
        bound = self._log_most(displays)
        # the bound is exact for equal policies: a hair of rounding must not hide that
        return np.asarray(bound < np.log(cap) - 1e-12 if zero else bound <= np.log(cap) + 1e-12)

    def _log_most(self, displays: Displays) -> Floats:
        """No ranking of a display has a larger log w; found once for a batch."""
        batch = self._batch_of(displays)
        if batch is None:
            return self.pair.log_weight_bound(displays)
        if batch.most is None:
            batch.most = self.pair.log_weight_bound(displays)
        return batch.most

    # -- what is left is drawn ------------------------------------------------------------------------------------

    def _fill_from_draws(self, masses: Masses, displays: Displays, rows: Indices, cap: float, zero: bool) -> None:
        """Fill in rows by the settings' method; those past the bound on trials from two-sided draws."""
        stuck = np.ones(len(rows), np.bool_)  # of `two-sided` all: it tries nothing else
        if self.method != "two-sided":
            part = displays.take(rows)
            of_treatment = self._treatment_side(displays, rows, part, cap, zero)
            masses.q[rows], masses.q_below[rows] = of_treatment.mean, of_treatment.mean_below
            masses.inverse[rows], stuck = self._inverse(part, cap, zero, of_treatment)
            masses.stuck[rows] = stuck
        masses.squares[rows], _ = self._at_little_cost(displays, rows, cap, zero)
        late = rows[stuck]
        if len(late):
            log_w = self._log_weights_of(displays, late)
            masses.q[late], masses.q_below[late] = (
                kernel.two_sided_means(log_w, c, zero) for c in (cap, cap / SLICE)
            )  # fmt: skip
            masses.inverse[late] = _reciprocal(masses.q[late])

    def _inverse(self, displays: Displays, cap: float, zero: bool, of_treatment: _TreatmentSide) -> InverseMass:
        """A random estimate of 1/q by the method that is unbiased here."""
        if zero or not self.control.full_support:
            return count_trials(self.pair, displays, cap, zero, of_treatment.z)
        if self.method == "lahiri":
            # the kernel sums the last slot out, which divides the variance by two or so: such a draw counts for two
            return lahiri(self.pair, displays, cap, self.draws // 2 if self.pair.is_fused else self.draws)
        return midzuno_sen(self.pair, displays, cap, of_treatment.mean, self.draws // 2)

    def _treatment_side(
        self, displays: Displays, rows: Indices, part: Displays, cap: float, zero: bool
    ) -> _TreatmentSide:  # fmt: skip
        """z of the treatment's side of the two-sided draws, which a batch has or is given now: a_2..a_S of Midzuno-Sen.

        `part` is displays.take(rows).
        """
        batch, half = self._batch_of(displays), self.draws // 2
        if self.pair.is_fused:
            known = None if batch is None else batch.means_at(MeansAt(cap, zero), rows)
            if known is not None:
                return _TreatmentSide(known[:, 0], known[:, 1], NONE)
            means = np.empty((len(rows), 2))
            shared = batch if batch is not None and len(batch.missing(rows)) == len(rows) else None
            want, from_p = (W, half) if shared else (Z, 0)
            w = self.pair.fused_draws(part, want, half, from_p, cap=cap, zero=zero, means=means)
            if shared:
                shared.put(rows, w)
            return _TreatmentSide(means[:, 0], means[:, 1], NONE)
        if batch is None:
            log_w = self.pair.draw(part, FROM_TREATMENT, 0, max(1, half), from_treatment=True)
        else:
            log_w = batch.log_weights(rows)[:, :half]
        z = z_of(log_w, cap, zero)
        return _TreatmentSide(z.mean(axis=1), z_of(log_w, cap / SLICE, zero).mean(axis=1), z)

    def _at_little_cost(self, displays: Displays, rows: Indices, cap: float, zero: bool) -> tuple[Floats, Floats]:
        """E_p[w̄²] at the cap, and 1 − q at a third of it, of some rows: exact where that takes little, else from the
        batch's draws, or a few where there is no batch."""
        squares, cut = np.empty(len(rows)), np.empty(len(rows))
        few = self._is_little(displays.take(rows))
        if few.any():
            priced = self._priced(displays, rows[few])
            of_all = exact_masses(self.pair, displays.take(rows[few]), cap=cap, zero=zero, priced=priced)
            squares[few], cut[few] = of_all.squares, np.maximum(0.0, 1.0 - of_all.q_below)
        if not few.all():
            many = rows[~few]
            w = (
                self.pair.two_sided_weights(displays.take(many), min(FEW_DRAWS, self.draws))
                if self._batch_of(displays) is None
                else self._weights_of(displays, many)
            )
            squares[~few] = kernel.squares_of_draws(w, np.full(len(many), cap), zero)
            cut[~few] = kernel.cut_of_draws(w, cap / SLICE, zero)
        return squares, cut

    def _weights_of(self, displays: Displays, rows: Indices) -> Floats:
        """w of two-sided draws of some rows, as many as the settings say."""
        batch = self._batch_of(displays)
        return self.pair.two_sided_weights(displays.take(rows), self.draws) if batch is None else batch.weights(rows)

    def _log_weights_of(self, displays: Displays, rows: Indices) -> Floats:
        """log w of the same draws."""
        batch = self._batch_of(displays)
        if batch is None:
            return np.hstack(self.pair.two_sided_draws(displays.take(rows), self.draws))
        return batch.log_weights(rows)

    def _batch_of(self, displays: Displays) -> BatchDraws | None:
        """The batch, if these are its displays."""
        return self.batch if self.batch is not None and self.batch.displays is displays else None


def _reciprocal(q: Floats) -> Floats:
    """1/q; 0 where there is no mass."""
    return np.divide(1.0, q, out=np.zeros_like(q), where=q >= LEAST_MASS)
