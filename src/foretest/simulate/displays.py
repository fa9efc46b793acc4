"""Displays of a simulated recommender: what is drawn, what is shown, how likely a click is.

Every simulation goes through three functions: `draw_displays` (contexts, and both policies' scores for a given change),
`sample_rankings` (what an arm shows), `click_probability` (what that is worth). A log also has the slot that was
clicked, by `clicked_slots`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foretest.simulate.change import Change
from foretest.simulate.world import World

CHUNK = 8192
"""Displays that share one random generator. Changing it changes every digit of every simulated log."""

RECENCY_DAYS = 5.0
"""Median of the logged feature `recency`."""

ACTIVITY_VISITS = 8.0
"""Median of the logged feature `activity`."""


@dataclass(frozen=True)
class Displays:
    """Arrays with one row per display; (n, M) arrays are padded beyond the row's `length`."""

    user: NDArray[np.int64]
    """Who sees it, counted from 0 within this set of displays."""
    owner: NDArray[np.int64]
    """Row of the user's first display, which the user's sticky rankings follow."""
    day: NDArray[np.int32]
    """Days since the world's first day."""
    group: NDArray[np.int64]
    """Index into the world's groups."""
    recency: NDArray[np.float32]
    """Days since the last visit; logged."""
    activity: NDArray[np.float32]
    """Visits in the last month; logged."""
    rate: NDArray[np.float64]
    """click_rate_g·exp(z - Var(z)/2), the part of λ that no ranking changes; never logged."""
    length: NDArray[np.int64]
    """Number of candidates."""
    appeal: NDArray[np.float64]
    """(n, M): true appeal u_j of each candidate; never logged."""
    category: NDArray[np.int8]
    """(n, M): category of each candidate; never logged."""
    cold: NDArray[np.bool_]
    """(n, M): does the control hardly ever show it? Never logged."""
    hidden: NDArray[np.float64]
    """h, the part of the intent that is by user; never logged."""
    control_scores: NDArray[np.float32]
    """(n, M): the control's scores, -inf in the padding."""
    treatment_scores: NDArray[np.float32]
    """(n, M): the treatment's scores, -inf in the padding."""

    def __len__(self) -> int:
        return len(self.user)

    def take(self, rows: NDArray[np.bool_] | slice) -> Displays:
        """The displays of some rows."""
        return Displays(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


def chunk_generator(seed: int, stream: int, chunk: int) -> np.random.Generator:
    """The counter-based generator of one chunk: a pure function of its three arguments."""
    key = np.random.SeedSequence([seed, stream, chunk]).generate_state(2, np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def draw_displays(world: World, change: Change, rng: np.random.Generator, count: int = CHUNK) -> Displays:
    """Draw `count` displays: users, contexts, candidates, and the scores of both policies.

    `change` is the treatment, `world.change` or another one on the same world.
    """
    user, owner = _users(world, rng, count)
    group = rng.choice(len(world.groups), size=count, p=[g.share for g in world.groups])[owner]
    hidden, log_activity = rng.standard_normal((2, count))[:, owner]
    log_recency = rng.standard_normal(count)
    items = owner if world.sticky else slice(None)
    length = rng.integers(world.min_candidates, world.candidates, count, endpoint=True)[items]
    candidates = _draw_candidates(world, rng, count).take(items)
    category = rng.integers(world.categories, size=candidates.appeal.shape, dtype=np.int8)[items]
    day = rng.integers(world.days, size=count, dtype=np.int32)

    padding = np.arange(world.candidates) >= length[:, None]
    candidates.control[padding] = -np.inf
    treatment = _changed_scores(world, change, candidates, group, hidden)
    intent = world.hidden_intent_sd * hidden
    intent += world.activity_effect * log_activity - world.recency_effect * log_recency
    click_rate = np.array([g.click_rate for g in world.groups])[group]
    return Displays(
        user=user,
        owner=owner,
        day=day,
        group=group,
        recency=(RECENCY_DAYS * np.exp(log_recency)).astype(np.float32),
        activity=(ACTIVITY_VISITS * np.exp(log_activity)).astype(np.float32),
        rate=click_rate * np.exp(intent - world.intent_variance / 2),
        length=length,
        appeal=candidates.appeal,
        category=category,
        cold=candidates.cold,
        hidden=hidden,
        control_scores=candidates.control.astype(np.float32),
        treatment_scores=treatment.astype(np.float32),
    )


def changed_scores(world: World, displays: Displays, change: Change, rng: np.random.Generator) -> NDArray[np.float32]:
    """The scores of one more treatment for given displays, with noise of its own; -inf in the padding."""
    noise = rng.standard_normal(displays.appeal.shape)
    control = displays.control_scores.astype(np.float64)
    candidates = _Candidates(displays.appeal, control, noise, displays.cold)
    return _changed_scores(world, change, candidates, displays.group, displays.hidden).astype(np.float32)


def _users(world: World, rng: np.random.Generator, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The user of each display, and the row of that user's first display; the last user may be cut short."""
    sizes = rng.geometric(1 / world.displays_per_user, size=count)
    first = np.cumsum(sizes) - sizes
    user = np.repeat(np.arange(count), np.clip(count - first, 0, sizes))
    return user, first[user]


class _Candidates(NamedTuple):
    """(n, M) arrays of candidates: appeal, the control's scores, the noise of a treatment, and which are cold."""

    appeal: NDArray[np.float64]
    control: NDArray[np.float64]
    noise: NDArray[np.float64]
    cold: NDArray[np.bool_]

    def take(self, rows: NDArray[np.int64] | slice) -> _Candidates:
        return _Candidates(self.appeal[rows], self.control[rows], self.noise[rows], self.cold[rows])


def _draw_candidates(world: World, rng: np.random.Generator, count: int) -> _Candidates:
    """Draw the candidates of `count` displays; the noise of the treatment is standard normal."""
    appeal, scores, noise = rng.standard_normal((3, count, world.candidates))
    cold = rng.random((count, world.candidates)) < world.cold_share
    appeal += world.cold_appeal * cold
    scores *= world.control_sharpness * np.sqrt(1 - world.control_accuracy**2)
    scores += world.control_sharpness * world.control_accuracy * appeal
    scores -= world.cold_penalty * cold
    return _Candidates(appeal, scores, noise, cold)


def _changed_scores(
    world: World, change: Change, candidates: _Candidates, group: NDArray[np.int64], hidden: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The control's scores and, in touched groups, the change; the candidates' noise is overwritten."""
    scores = candidates.noise
    scores *= change.strength * np.sqrt(1 - change.accuracy**2)
    scores += change.strength * change.accuracy * candidates.appeal
    scores += change.cold_lift * candidates.cold
    touched = np.array([g.name in change.touched for g in world.groups])[group]
    scores *= (touched * np.exp(world.intent_coupling * hidden))[:, None]
    scores += candidates.control
    return scores


def sample_rankings(scores: NDArray[np.float32], exponentials: NDArray[np.float64], slots: int) -> NDArray[np.int16]:
    """Draw each row's top-K ranking from the Plackett-Luce policy of its scores, best slot first.

    Candidate j arrives after E_j·exp(-s_j), E_j a standard exponential of `exponentials`; the first K to arrive are
    shown. -log turns this race into Gumbel top-K: the same rankings from the same numbers. Two policies that are given
    the same exponentials are coupled (common random numbers).
    """
    return first_to_arrive(mean_times(scores), exponentials, slots)


def mean_times(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """exp(-s_j), the mean time after which each candidate arrives."""
    return np.exp(-scores.astype(np.float64))


def first_to_arrive(times: NDArray[np.float64], exponentials: NDArray[np.float64], slots: int) -> NDArray[np.int16]:
    """The first K candidates of each row's race, in order."""
    arrival = times * exponentials
    rows = np.arange(len(arrival))
    rankings = np.empty((len(arrival), slots), dtype=np.int16)
    for slot in range(slots):
        rankings[:, slot] = first = arrival.argmin(axis=1)
        arrival[rows, first] = np.inf
    return rankings


def click_probability(world: World, displays: Displays, rankings: NDArray[np.int16]) -> NDArray[np.float64]:
    """P(click) of each display when it shows `rankings`, an (n, K) array of positions.

    floor + (ceiling - floor)·(1 - exp(-λ/(ceiling - floor))), λ = rate·Σ_k p_k·exp(appeal_effect·u_k)/(1 +
    cannibalisation·alike_k).
    """
    clicks, position = _slots(world, displays, rankings)
    rate = displays.rate * (clicks @ position)
    room = world.click_ceiling - world.click_floor
    probability: NDArray[np.float64] = world.click_floor - room * np.expm1(-rate / room)
    return probability


def clicked_slots(
    world: World, displays: Displays, rankings: NDArray[np.int16], uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Which slot a click of each display would be on: slot k in proportion to its share of λ.

    The floor, clicks that no ranking changes, is shared out by place alone.
    """
    clicks, position = _slots(world, displays, rankings)
    room = world.click_ceiling - world.click_floor
    shares = clicks * position
    total = shares.sum(axis=1, keepdims=True)
    earned = -room * np.expm1(-displays.rate[:, None] * total / room)
    edges = np.cumsum(world.click_floor * position + earned * shares / total, axis=1)
    last: NDArray[np.int64] = (edges[:, :-1] <= uniforms[:, None] * edges[:, -1:]).sum(axis=1)
    return last


def _slots(
    world: World, displays: Displays, rankings: NDArray[np.int16]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """exp(appeal_effect·u_k)/(1 + cannibalisation·alike_k) of each shown item, and p_k of each slot."""
    rows = np.arange(len(displays))[:, None]
    category = displays.category[rows, rankings]
    alike = np.zeros(category.shape)
    for one, other in combinations(range(category.shape[1]), 2):
        same = category[:, one] == category[:, other]
        alike[:, one] += same
        alike[:, other] += same
    position = np.arange(1, rankings.shape[1] + 1) ** -world.position_decay
    clicks: NDArray[np.float64] = np.exp(world.appeal_effect * displays.appeal[rows, rankings])
    clicks /= 1 + world.cannibalisation * alike
    return clicks, position / position.sum()
