"""The pointwise normaliser: q(x) = E_t[w̄/w | x] of a display, or an estimate whose mean is 1/q(x).

Exact where that is cheap (no weight above the cap, few rankings, one slot, a deterministic treatment), else by drawing
rankings. Everything here uses a policy's `log_prob` and `sample` alone; for two Plackett-Luce policies compiled
kernels take the place of `draw` and of the enumeration, and are tested equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations
from math import perm
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.kernels import normaliser as kernel
from foretest.kernels import plackett_luce
from foretest.kernels import point_path as path_kernel
from foretest.kernels.random import uniforms
from foretest.kernels.ranking_draws import LOG_W, SLICE, W, Z, draws
from foretest.policies import PlackettLuce
from foretest.weights.batch_draws import BatchDraws

CHEAP_RANKINGS = 12_000
# for means over many displays: enumerate as many rankings as a few draws would cost, else draw a few
FEW_RANKINGS = 1_000
FEW_DRAWS = 32
MOST_RANKINGS = 5_000_000
PRICED = 1 << 16  # rankings in one call of a policy, or those of one display
MOST_TRIALS = 100_000
ACCEPTANCES = 64  # m, where trials to the m-th acceptance are counted

# one stream of random numbers a purpose
FIRST, ACCEPT, FROM_CONTROL, FROM_TREATMENT, SETS, TRIALS, MODEL = 0, 2, 3, 4, 5, 6, 7

NONE, NOT_SHOWN = np.empty((0, 0)), np.empty((0, 0, 0), np.int32)  # where only weights are asked for

Mask = npt.NDArray[np.bool_]


class Masses(NamedTuple):
    """What is known of the displays' weights at a cap c."""

    cap: Floats  # c; 0 where there is none
    inverse: Floats  # an estimate of 1/q, 0 where q = 0
    q: Floats  # q at c and, from the same rankings, at c/3: their means are right, not those of their inverses
    q_below: Floats
    squares: Floats  # E_p[w̄²]
    stuck: Mask  # past the bound on trials


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

    def for_batch(self, displays: Displays) -> Normaliser:
        """The same for one batch of displays, whose two-sided draws are made once, whoever asks for them."""
        return replace(self, batch=BatchDraws(displays))

    def inverse(self, displays: Displays, cap: float, *, zero: bool) -> tuple[Floats, Mask, Mask]:
        """An estimate of 1/q(x) at one cap (0 where q = 0), the rows with q = 0, the rows past the bound on trials."""
        found = self.at_cap(displays, cap, zero=zero)
        return found.inverse, found.inverse == 0.0, found.stuck

    def adaptive(self, displays: Displays, bound: float) -> tuple[Floats, Floats, Floats]:
        """For each display the largest c̃ with c̃/q_c̃ ≤ bound, q there, and E_p[w̄²]; 0 where there is none."""
        found = self.at_adaptive_cap(displays, bound)
        return found.cap, found.q, found.squares

    def at_cap(self, displays: Displays, cap: float, *, zero: bool) -> Masses:
        """Everything at one cap.

        Midzuno-Sen and Lahiri need z > 0 for every ranking of the treatment, or E = (1 − P(z=0)^S)/q: under zero
        capping, and where the control may give probability 0, trials are counted instead.
        """
        n = len(displays)
        answer, q, below, squares = np.ones(n), np.ones(n), np.ones(n), np.empty(n)
        stuck = np.zeros(n, np.bool_)
        left = np.arange(n)
        if self.method in ("auto", "exact"):
            certified = np.flatnonzero(self._certified(displays, cap, zero))
            squares[certified], cut = self._at_little_cost(displays, certified, cap, zero)
            below[certified] -= cut
            left = np.setdiff1d(left, certified, assume_unique=True)
            exact = left if self.method == "exact" else left[self._is_cheap(displays.take(left))]
            if len(exact):
                _, q[exact], squares[exact], below[exact] = self._exactly(displays.take(exact), cap=cap, zero=zero)
                answer[exact] = _reciprocal(q[exact])
            left = np.setdiff1d(left, exact, assume_unique=True)
        if len(left):
            if self.method == "two-sided":
                stuck[left] = True
            else:
                part = displays.take(left)
                q[left], below[left] = self._mean_z(displays, left, part, cap, zero)
                if zero or not getattr(self.control, "full_support", False):
                    answer[left], stuck[left] = self._trials(part, cap, zero)
                elif self.method == "lahiri":
                    answer[left], stuck[left] = self._lahiri(part, cap)
                else:
                    answer[left], stuck[left] = self._midzuno_sen(part, cap, q[left])
            squares[left], _ = self._at_little_cost(displays, left, cap, zero)
            late = np.flatnonzero(stuck)
            if len(late):
                log_w = np.hstack(self.two_sided_draws(displays.take(late), self.draws))
                q[late], below[late] = (kernel.two_sided_means(log_w, c, zero) for c in (cap, cap / SLICE))
                answer[late] = _reciprocal(q[late])
            stuck &= self.method != "two-sided"
        return Masses(np.full(n, cap), answer, q, below, squares, stuck)

    def at_adaptive_cap(self, displays: Displays, bound: float) -> Masses:
        """Everything at the largest c̃ with c̃/q_c̃ ≤ bound; 0 where there is none."""
        n = len(displays)
        cap, q, below, squares = np.full(n, bound), np.ones(n), np.ones(n), np.empty(n)
        left = np.arange(n)
        if self.method != "two-sided":
            certified = np.flatnonzero(self._certified(displays, bound, False))
            squares[certified], cut = self._at_little_cost(displays, certified, bound, False)
            below[certified] -= cut
            left = np.setdiff1d(left, certified, assume_unique=True)
            exact = left if self.method == "exact" else left[self._is_cheap(displays.take(left))]
            if len(exact):
                cap[exact], q[exact], squares[exact], below[exact] = self._exactly(displays.take(exact), bound=bound)
            left = np.setdiff1d(left, exact, assume_unique=True)
        if len(left):
            w = self._weights_of(displays, left)
            cap[left], q[left], below[left] = kernel.adaptive_caps_of_draws(w, bound)
            squares[left] = kernel.squares_of_draws(w, cap[left], False)
        return Masses(cap, _reciprocal(q), q, below, squares, np.zeros(n, np.bool_))

    def path(self, displays: Displays, log_w: Floats, caps: Floats, bounds: Floats) -> tuple[Floats, Floats]:
        """log h of the shown rankings at each cap (h = w̄/q, max capping) and at each bound (h = w̃), one row a display.

        Over all rankings where these are few, else on one set of two-sided draws, those of `adaptive`.
        """
        of_caps, of_bounds = np.empty((len(displays), len(caps))), np.empty((len(displays), len(bounds)))
        most = self._log_most(displays) if self.method != "two-sided" else np.full(len(displays), np.inf)
        few = self._is_cheap(displays, FEW_RANKINGS) & (self.method != "two-sided")
        rows = np.flatnonzero(few)
        if len(rows):
            of_caps[rows], of_bounds[rows] = self._path_exactly(
                displays.take(rows), log_w[rows], most[rows], caps, bounds
            )
        # no ranking weighs more than the least cap and bound: no draw is needed
        least = np.log(min(caps.min(initial=np.inf), bounds.min(initial=np.inf)))
        for rows, needed in ((~few & (most <= least), False), (~few & (most > least), True)):
            rows = np.flatnonzero(rows)
            if len(rows):
                w = self._weights_of(displays, rows) if needed else np.ones((len(rows), 1))
                of_caps[rows], of_bounds[rows] = path_kernel.path_of_draws(w, log_w[rows], most[rows], caps, bounds)
        return of_caps, of_bounds

    def capped_squares(self, displays: Displays, cap: float, *, zero: bool = False) -> Floats:
        """E_p[w̄²], for what is averaged over many displays: exact where that takes little, else from a few draws."""
        return self._at_little_cost(displays, np.arange(len(displays)), cap, zero)[0]

    def _at_little_cost(
        self, displays: Displays, rows: npt.NDArray[np.int64], cap: float, zero: bool
    ) -> tuple[Floats, Floats]:
        """E_p[w̄²] at the cap, and 1 − q at a third of it, of some rows: exact where that takes little, else from the
        batch's draws, or a few where there is no batch."""
        squares, cut = np.empty(len(rows)), np.empty(len(rows))
        few = self._is_cheap(displays.take(rows), FEW_RANKINGS)
        if few.any():
            _, _, squares[few], below = self._exactly(displays.take(rows[few]), cap=cap, zero=zero)
            cut[few] = np.maximum(0.0, 1.0 - below)
        if not few.all():
            many = rows[~few]
            w = (
                self._two_sided_weights(displays.take(many), min(FEW_DRAWS, self.draws))
                if self._batch_of(displays) is None
                else self._weights_of(displays, many)
            )
            squares[~few] = kernel.squares_of_draws(w, np.full(len(many), cap), zero)
            cut[~few] = kernel.cut_of_draws(w, cap / SLICE, zero)
        return squares, cut

    def mass(self, displays: Displays, cap: float, *, zero: bool, log_w: Floats) -> Floats:
        """q(x): exact where cheap, else from the two-sided draws `log_w`, at most 1."""
        q = np.ones(len(displays))
        # a ranking above the cap rules a certificate out: no bound is needed
        inside = np.flatnonzero(log_w.max(axis=1) <= np.log(cap) + 1e-12)
        certified = inside[self._certified(displays.take(inside), cap, zero)]
        left = np.setdiff1d(np.arange(len(displays)), certified, assume_unique=True)
        exact = left[self._is_cheap(displays.take(left))]
        if len(exact):
            _, q[exact], _, _ = self._exactly(displays.take(exact), cap=cap, zero=zero)
        left = np.setdiff1d(left, exact, assume_unique=True)
        q[left] = kernel.two_sided_means(log_w[left], cap, zero)
        return np.minimum(q, 1.0)

    def two_sided_draws(self, displays: Displays, count: int) -> tuple[Floats, Floats]:
        """log w of count/2 rankings from the treatment, and of as many from the control."""
        return (
            self.draw(displays, FROM_TREATMENT, 0, count // 2, from_treatment=True),
            self.draw(displays, FROM_CONTROL, 0, count // 2, from_treatment=False),
        )

    def _weights_of(self, displays: Displays, rows: npt.NDArray[np.int64]) -> Floats:
        """w of two-sided draws of some rows, as many as the settings say."""
        batch = self._batch_of(displays)
        if batch is None:
            return self._two_sided_weights(displays.take(rows), self.draws)
        missing = batch.missing(rows)
        if len(missing):
            batch.put(missing, self._two_sided_weights(displays.take(missing), self.draws))
        return batch.of(rows)

    def _batch_of(self, displays: Displays) -> BatchDraws | None:
        """The batch, if these are its displays."""
        return self.batch if self.batch is not None and self.batch.displays is displays else None

    def _two_sided_weights(self, displays: Displays, count: int) -> Floats:
        """w of `count` rankings, half from each policy."""
        if self._fused:
            return self._fused_draws(displays, W, count // 2, count // 2)
        return _exp(np.hstack(self.two_sided_draws(displays, count)))

    def draw(self, displays: Displays, stream: int, first: int, count: int, *, from_treatment: bool) -> Floats:
        """log w of rankings number first .. first+count−1 of each display, one row a display."""
        if self._fused:
            counts = (count, 0) if from_treatment else (0, count)
            return self._fused_draws(displays, LOG_W, *counts, streams=(stream, stream), first=first)
        source = self.treatment if from_treatment else self.control
        out = np.empty((len(displays), count))
        step = max(1, (1 << 16) // max(count, 1))
        for begin in range(0, len(displays), step):
            rows = np.arange(begin, min(begin + step, len(displays)))
            part = displays.take(np.repeat(rows, count))
            rankings = source.sample(part, self.uniforms(displays.take(rows), stream, first, count))
            out[rows] = (self.treatment.log_prob(part, rankings) - self.control.log_prob(part, rankings)).reshape(
                len(rows), count
            )
        return out

    def control_draws(self, displays: Displays, count: int, log_p: Floats, shown: npt.NDArray[np.int32]) -> Floats:
        """log w of the control's rankings, both policies being Plackett-Luce; the kernel fills log_p and shown."""
        return self._fused_draws(displays, LOG_W, 0, count, log_p=log_p, shown=shown)

    def uniforms(self, displays: Displays, stream: int, first: int, count: int) -> Floats:
        """What `sample` is handed for draws first .. first+count−1: a row for each display and draw."""
        width = int(displays.eligible.max(initial=0)) + 1
        return np.asarray(uniforms(self.seed, stream, displays.key(), first, count, width)).reshape(-1, width)

    # -- random estimates of 1/q ----------------------------------------------------------------------------------

    def _z(self, displays: Displays, stream: int, first: int, count: int, cap: float, zero: bool = False) -> Floats:
        """Values in [0, 1] with mean q: z = w̄/w of rankings from the treatment."""
        if self._fused:
            return self._fused_draws(displays, Z, count, 0, streams=(stream, stream), first=first, cap=cap, zero=zero)
        return _kept(self.draw(displays, stream, first, count, from_treatment=True), cap, zero)

    def _mean_z(
        self, displays: Displays, rows: npt.NDArray[np.int64], part: Displays, cap: float, zero: bool
    ) -> tuple[Floats, Floats]:
        """The mean z of a_2..a_S at the cap, and of the same rankings at a third of it; `part` is displays.take(rows).

        They are the treatment's side of the two-sided draws: a batch that has yet to draw these is given their weights.
        """
        batch, half = self._batch_of(displays), self.draws // 2
        shared = batch if batch is not None and len(batch.missing(rows)) == len(rows) else None
        if self._fused:
            means = np.empty((len(rows), 2))
            want, from_p = (W, half) if shared else (Z, 0)
            w = self._fused_draws(part, want, half, from_p, cap=cap, zero=zero, means=means)
            if shared:
                shared.put(rows, w)
            return means[:, 0], means[:, 1]
        log_w = self.draw(part, FROM_TREATMENT, 0, max(1, self._rest), from_treatment=True)
        if shared:
            of_control = self.draw(part, FROM_CONTROL, 0, half, from_treatment=False)
            shared.put(rows, _exp(np.hstack([log_w[:, :half], of_control])))
        return _kept(log_w, cap, zero).mean(axis=1), _kept(log_w, cap / SLICE, zero).mean(axis=1)

    def _midzuno_sen(self, displays: Displays, cap: float, mean_z: Floats) -> tuple[Floats, Mask]:
        """Draw a_1 until u < z_1, then a_2..a_S; S/Σz_i has mean 1/q exactly (the paper's text inverts a ratio).

        `mean_z` is that of a_2..a_S.
        """
        first, stuck = self._first_accepted(displays, cap)
        total = first + self._rest * mean_z
        return (1 + self._rest) / np.where(stuck, 1.0, total), stuck

    @property
    def _set_size(self) -> int:
        """S. The kernel sums the last slot out, which divides the variance by two or so: such a draw counts for two."""
        return self.draws // 2 if self._fused else self.draws

    @property
    def _rest(self) -> int:
        """How many a_2..a_S are: by the kernel all of the treatment's side of the two-sided draws, a_1 beside them."""
        return self._set_size if self._fused else self._set_size - 1

    def _first_accepted(self, displays: Displays, cap: float) -> tuple[Floats, Mask]:
        """z of the first trial that passes u < z."""
        z_first = np.zeros(len(displays))
        waiting = np.arange(len(displays))
        done = 0
        while len(waiting) and done < MOST_TRIALS:
            block = min(MOST_TRIALS - done, max(4, (1 << 15) // len(waiting)) if done else 4)
            part = displays.take(waiting)
            z = self._z(part, FIRST, done, block, cap)
            u = uniforms(self.seed, ACCEPT, part.key(), done, block, 1)[:, :, 0]
            passed = u < z
            some = passed.any(axis=1)
            z_first[waiting[some]] = z[some, passed[some].argmax(axis=1)]
            waiting = waiting[~some]
            done += block
        return z_first, np.isin(np.arange(len(displays)), waiting)

    def _lahiri(self, displays: Displays, cap: float) -> tuple[Floats, Mask]:
        """Draw whole sets of S, accept one with probability mean(z), return 1/mean(z)."""
        answer = np.ones(len(displays))
        waiting = np.arange(len(displays))
        sets, size = 0, self._set_size
        while len(waiting) and sets * size < MOST_TRIALS:
            part = displays.take(waiting)
            mean = self._z(part, SETS, sets * size, size, cap).mean(axis=1)
            passed = uniforms(self.seed, ACCEPT, part.key(), sets, 1, 1)[:, 0, 0] < mean
            answer[waiting[passed]] = 1.0 / mean[passed]
            waiting = waiting[~passed]
            sets += 1
        return answer, np.isin(np.arange(len(displays)), waiting)

    def _trials(self, displays: Displays, cap: float, zero: bool) -> tuple[Floats, Mask]:
        """Trials to the m-th acceptance, over m: mean 1/q, also where z may be 0."""
        n = len(displays)
        trials = np.zeros(n)
        accepted = np.zeros(n, np.int64)
        waiting = np.arange(n)
        done = 0
        while len(waiting) and done < MOST_TRIALS:
            block = min(MOST_TRIALS - done, max(128, (1 << 15) // len(waiting)))
            part = displays.take(waiting)
            z = self._z(part, TRIALS, done, block, cap, zero)
            passed = uniforms(self.seed, ACCEPT, part.key(), done, block, 1)[:, :, 0] < z
            running = accepted[waiting, None] + passed.cumsum(axis=1)
            reached = running[:, -1] >= ACCEPTANCES
            trials[waiting[reached]] = done + 1 + (running[reached] >= ACCEPTANCES).argmax(axis=1)
            accepted[waiting] = running[:, -1]
            waiting = waiting[~reached]
            done += block
        return trials / ACCEPTANCES, np.isin(np.arange(n), waiting)

    # -- exact answers ------------------------------------------------------------------------------------------

    def _certified(self, displays: Displays, cap: float, zero: bool) -> Mask:
        """Rows where no ranking's weight can reach the cap, so that q = 1."""
        if not self._fused:
            return np.zeros(len(displays), np.bool_)
        bound = self._log_most(displays)
        # the bound is exact for equal policies: a hair of rounding must not hide that
        return np.asarray(bound < np.log(cap) - 1e-12 if zero else bound <= np.log(cap) + 1e-12)

    def _log_most(self, displays: Displays) -> Floats:
        """No ranking of a display has a larger log w; infinite where none is known."""
        if not self._fused:
            return np.full(len(displays), np.inf)
        batch = self._batch_of(displays)
        if batch is None:
            return self._log_weight_bound(displays)
        if batch.most is None:
            batch.most = self._log_weight_bound(displays)
        return batch.most

    def _log_weight_bound(self, displays: Displays) -> Floats:
        t, p = displays[self.treatment.scores], displays[self.control.scores]
        return np.asarray(plackett_luce.log_weight_bound(
            t.values, t.starts, p.values, p.starts, t.lengths, displays.slots,
            1.0 / self.treatment.temperature, 1.0 / self.control.temperature,
        ))  # fmt: skip

    def _is_cheap(self, displays: Displays, most: int = CHEAP_RANKINGS) -> Mask:
        if getattr(self.treatment, "deterministic", False):
            return np.ones(len(displays), np.bool_)
        m, k = displays.eligible, displays.slots
        log_rankings = gammaln(m + 1.0) - gammaln(m - k + 1.0)  # of M!/(M−K)!
        return np.asarray((k == 1) | (log_rankings < np.log(most + 0.5)))

    def _exactly(
        self, displays: Displays, *, cap: float = np.nan, zero: bool = False, bound: float = np.nan
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Over all rankings: q at `cap`, or the adaptive cap for `bound` and q there; then E_p[w̄²] at that cap, and q
        at a third of it."""
        most = max(perm(int(m), int(k)) for m, k in zip(displays.eligible, displays.slots, strict=True))
        if most > MOST_RANKINGS and not getattr(self.treatment, "deterministic", False):
            raise BadInput(
                f'normaliser = "exact": a display has {most:,} rankings, more than {MOST_RANKINGS:,}. Use "auto".'
            )
        if self._fused:
            t, p = displays[self.treatment.scores], displays[self.control.scores]
            return kernel.enumerate_all(  # type: ignore[no-any-return]
                t.values, t.starts, p.values, p.starts, t.lengths, displays.slots,
                1.0 / self.treatment.temperature, 1.0 / self.control.temperature, most, cap, zero, bound,
            )  # fmt: skip
        answers = np.empty((4, len(displays)))
        for i, alpha, beta in self._all_masses(displays):
            answers[:, i] = _solve(alpha, beta, cap, zero, bound)
        return answers[0], answers[1], answers[2], answers[3]

    def _path_exactly(
        self, displays: Displays, log_w: Floats, most: Floats, caps: Floats, bounds: Floats
    ) -> tuple[Floats, Floats]:
        """`path` over all rankings."""
        if self._fused:
            rankings = max(perm(int(m), int(k)) for m, k in zip(displays.eligible, displays.slots, strict=True))
            t, p = displays[self.treatment.scores], displays[self.control.scores]
            return path_kernel.path_of_all(  # type: ignore[no-any-return]
                t.values, t.starts, p.values, p.starts, t.lengths, displays.slots, 1.0 / self.treatment.temperature,
                1.0 / self.control.temperature, rankings, log_w, most, caps, bounds,
            )  # fmt: skip
        of_caps, of_bounds = np.empty((len(displays), len(caps))), np.empty((len(displays), len(bounds)))
        for i, alpha, beta in self._all_masses(displays):
            of_caps[i], of_bounds[i] = path_kernel.path_of_rankings(alpha, beta, log_w[i], caps, bounds)
        return of_caps, of_bounds

    def _all_masses(self, displays: Displays) -> Iterator[tuple[int, Floats, Floats]]:
        """π_t and π_p of all rankings of each display, many displays of one shape at a time.

        A deterministic treatment has one ranking: π_t = (1, 0), π_p = (π_p(a), 1 − π_p(a)).
        """
        if getattr(self.treatment, "deterministic", False):
            width = int(displays.eligible.max(initial=0)) + 1
            rankings = self.treatment.sample(displays, np.full((len(displays), width), 0.5))
            for i, p in enumerate(np.exp(self.control.log_prob(displays, rankings))):
                yield i, np.array([1.0, 0.0]), np.array([p, 1.0 - p])
            return
        shapes, shape = np.unique(np.stack([displays.eligible, displays.slots]), axis=1, return_inverse=True)
        for which, (m, k) in enumerate(shapes.T.tolist()):
            every = np.array(list(permutations(range(m), k)), np.int32)
            rows, step = np.flatnonzero(shape == which), max(1, PRICED // len(every))
            for some in (rows[at : at + step] for at in range(0, len(rows), step)):
                part = displays.take(np.repeat(some, len(every)))
                rankings = Ragged.packed(np.tile(every.ravel(), len(some)), np.full(len(part), k))
                masses = (
                    np.exp(policy.log_prob(part, rankings)).reshape(len(some), -1)
                    for policy in (self.treatment, self.control)
                )
                yield from zip(some.tolist(), *masses, strict=True)

    # -- two Plackett-Luce policies -----------------------------------------------------------------------------

    @property
    def _fused(self) -> bool:
        return type(self.treatment) is PlackettLuce and type(self.control) is PlackettLuce

    def _fused_draws(
        self, displays: Displays, want: int, from_t: int, from_p: int, *,
        streams: tuple[int, int] = (FROM_TREATMENT, FROM_CONTROL), first: int = 0, cap: float = np.nan,
        zero: bool = False, means: Floats = NONE, log_p: Floats = NONE, shown: npt.NDArray[np.int32] = NOT_SHOWN,
    ) -> Floats:  # fmt: skip
        t, p = displays[self.treatment.scores], displays[self.control.scores]
        return draws(  # type: ignore[no-any-return]
            t.values, t.starts, p.values, p.starts, t.lengths, displays.slots,
            1.0 / self.treatment.temperature, 1.0 / self.control.temperature, displays.key(), self.seed,
            *streams, first, from_t, from_p, want, cap, zero, means, log_p, shown,
        )  # fmt: skip


def _exp(log_w: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(log_w))


def _kept(log_w: Floats, cap: float, zero: bool) -> Floats:
    """z = w̄/w."""
    log_cap = np.log(cap)
    return np.asarray(np.where(log_w < log_cap, 1.0, 0.0) if zero else np.exp(np.minimum(0.0, log_cap - log_w)))


def _solve(alpha: Floats, beta: Floats, cap: float, zero: bool, bound: float) -> tuple[float, float, float, float]:
    if np.isnan(bound):
        found, q = 0.0, float(kernel.capped_mass(alpha, beta, len(alpha), cap, zero))
    else:
        found, q = kernel.adaptive_cap(alpha, beta, len(alpha), bound)
    at = cap if np.isnan(bound) else found
    squares = float(kernel.capped_squares(alpha, beta, len(alpha), at, zero))
    return found, q, squares, float(kernel.capped_mass(alpha, beta, len(alpha), at / SLICE, zero))


def _reciprocal(q: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.divide(1.0, q, out=np.zeros_like(q), where=q > 0.0)
