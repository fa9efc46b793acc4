"""Rankings drawn from a treatment and its control, and their weights by both.

Everything here uses a policy's `log_prob` and `sample` alone; for two Plackett-Luce policies a compiled kernel draws
and weighs at once, and is tested equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.kernels import plackett_luce
from foretest.kernels.random import uniforms
from foretest.kernels.ranking_draws import LOG_W, W, Z, draws
from foretest.policies import PlackettLuce
from foretest.policies.call_size import rankings_at_once
from foretest.policies.repeated_rankings import log_probs
from foretest.records import dataclass

# one stream of random numbers for each purpose
FIRST, ACCEPT, FROM_CONTROL, FROM_TREATMENT, SETS, TRIALS, MODEL = 0, 2, 3, 4, 5, 6, 7

NONE, NOT_SHOWN = np.empty((0, 0)), np.empty((0, 0, 0), np.int32)  # where only weights are asked for


@dataclass(frozen=True)
class PolicyPair:
    """A treatment and the control that it is weighed against; `seed` is that of all draws."""

    treatment: Any
    control: Any
    seed: int = 0

    @property
    def is_fused(self) -> bool:
        """Are both policies Plackett-Luce, so that the compiled kernel draws and weighs?"""
        return type(self.treatment) is PlackettLuce and type(self.control) is PlackettLuce

    @property
    def is_deterministic(self) -> bool:
        """Has the treatment one ranking per display?"""
        return bool(self.treatment.deterministic)

    def uniforms(self, displays: Displays, stream: int, first: int, count: int) -> Floats:
        """What `sample` is given for draws first .. first+count−1: one row for each display and draw."""
        width = int(displays.eligible.max(initial=0)) + 1
        return np.asarray(uniforms(self.seed, stream, displays.key(), first, count, width)).reshape(-1, width)

    def draw(self, displays: Displays, stream: int, first: int, count: int, *, from_treatment: bool) -> Floats:
        """log w of rankings number first .. first+count−1 of each display, one row per display."""
        if self.is_fused:
            counts = (count, 0) if from_treatment else (0, count)
            return self.fused_draws(displays, LOG_W, *counts, streams=(stream, stream), first=first)
        source = self.treatment if from_treatment else self.control
        log_w = np.empty((len(displays), count))
        step = max(1, rankings_at_once(displays) // max(count, 1))
        for begin in range(0, len(displays), step):
            rows = np.arange(begin, min(begin + step, len(displays)))
            part = displays.take(np.repeat(rows, count))
            rankings = source.sample(part, self.uniforms(displays.take(rows), stream, first, count))
            log_t, log_p = log_probs([self.treatment, self.control], part, rankings, max(count, 1))
            log_w[rows] = (log_t - log_p).reshape(len(rows), count)
        return log_w

    def two_sided_draws(self, displays: Displays, count: int) -> tuple[Floats, Floats]:
        """log w of count/2 rankings from the treatment, and of as many from the control."""
        return (
            self.draw(displays, FROM_TREATMENT, 0, count // 2, from_treatment=True),
            self.draw(displays, FROM_CONTROL, 0, count // 2, from_treatment=False),
        )

    def two_sided_weights(
        self, displays: Displays, count: int, *, cap: float = np.nan, zero: bool = False, means: Floats = NONE
    ) -> Floats:
        """w of `count` rankings, half from each policy; the kernel fills `means`, of z at a cap and a third of it."""
        if self.is_fused:
            return self.fused_draws(displays, W, count // 2, count // 2, cap=cap, zero=zero, means=means)
        return weights_of(np.hstack(self.two_sided_draws(displays, count)))

    def treatment_z(
        self, displays: Displays, stream: int, first: int, count: int, cap: float, zero: bool = False
    ) -> Floats:
        """Values in [0, 1] with mean q: z = w̄/w of rankings from the treatment."""
        if self.is_fused:
            return self.fused_draws(
                displays, Z, count, 0, streams=(stream, stream), first=first, cap=cap, zero=zero
            )  # fmt: skip
        return z_of(self.draw(displays, stream, first, count, from_treatment=True), cap, zero)

    def log_weight_bound(self, displays: Displays) -> Floats:
        """No ranking of a display has a larger log w; infinite where no bound is known."""
        if not self.is_fused:
            return np.full(len(displays), np.inf)
        return np.asarray(plackett_luce.log_weight_bound(*self.score_lists(displays)))

    def score_lists(self, displays: Displays) -> tuple[Any, ...]:
        """What every kernel for two Plackett-Luce policies begins with: both score lists, K, and 1/T of both."""
        t, p = displays[self.treatment.scores], displays[self.control.scores]
        inverse = 1.0 / self.treatment.temperature, 1.0 / self.control.temperature
        return t.values, t.starts, p.values, p.starts, t.lengths, displays.slots, *inverse

    def fused_draws(
        self, displays: Displays, want: int, from_t: int, from_p: int, *,
        streams: tuple[int, int] = (FROM_TREATMENT, FROM_CONTROL), first: int = 0, cap: float = np.nan,
        zero: bool = False, means: Floats = NONE, log_p: Floats = NONE, shown: npt.NDArray[np.int32] = NOT_SHOWN,
    ) -> Floats:  # fmt: skip
        """The kernel's draws of two Plackett-Luce policies: `from_t` and `from_p` of each display, as `want` says."""
        return draws(  # type: ignore[no-any-return]
            *self.score_lists(displays), displays.key(), self.seed,
            *streams, first, from_t, from_p, want, cap, zero, means, log_p, shown,
        )  # fmt: skip


def weights_of(log_w: Floats) -> Floats:
    """w, infinite where it overflows."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(log_w))


def z_of(log_w: Floats, cap: float, zero: bool) -> Floats:
    """z = w̄/w: what the cap leaves of a weight."""
    log_cap = np.log(cap)
    return np.asarray(np.where(log_w < log_cap, 1.0, 0.0) if zero else np.exp(np.minimum(0.0, log_cap - log_w)))
