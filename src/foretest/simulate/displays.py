"""Displays of a simulated recommender: what is drawn, and what is shown.

Every simulation goes through three functions: `draw_displays` (contexts, and both policies' scores for a given change),
`shown_rankings` (what an arm shows), and `click_probability` of `clicks` (what that is worth).
"""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foretest.records import dataclass
from foretest.simulate.change import Change
from foretest.simulate.world import World

CHUNK = 8192
"""Displays that share one random generator. Changing it changes every digit of every simulated log."""

CONTROL_STREAM = 0
"""The stream of random numbers from which a control's log draws its displays."""

RECENCY_DAYS = 5.0
"""Median of the logged feature `recency`."""

ACTIVITY_VISITS = 8.0
"""Median of the logged feature `activity`."""


@dataclass(frozen=True)
class Displays:
    """Arrays with one row per display; (n, M) arrays are padded beyond the row's `length`.

    >>> from foretest.simulate import WORLDS
    >>> world = WORLDS["paper"]
    >>> displays = draw_displays(world, world.change, chunk_generator(0, 0, 0), count=3)
    >>> len(displays), displays.control_scores.shape
    (3, (3, 20))
    """

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
    """The counter-based random generator of one chunk of displays: a pure function of its arguments.

    Parameters
    ----------
    seed: of the log or the history.
    stream: what the numbers are for, so that logs, truths and slots share none.
    chunk: the number of the chunk, from 0.

    Returns
    -------
    NumPy's generator, at its beginning.

    >>> float(chunk_generator(0, 0, 0).random()) == float(chunk_generator(0, 0, 0).random())
    True
    """
    key = np.random.SeedSequence([seed, stream, chunk]).generate_state(2, np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def draw_displays(world: World, change: Change, rng: np.random.Generator, count: int = CHUNK) -> Displays:
    """Draw displays: users, contexts, candidates, and the scores of both policies.

    Parameters
    ----------
    world: the simulated recommender.
    change: the treatment, `world.change` or another one on the same world.
    rng: NumPy's generator, which is advanced.
    count: how many displays.

    Returns
    -------
    The displays, with nothing shown yet.

    >>> from foretest.simulate import WORLDS
    >>> world = WORLDS["mild"]
    >>> draw_displays(world, world.change, chunk_generator(0, 0, 0), count=2).treatment_scores.dtype
    dtype('float32')
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
    """The scores of one more treatment for given displays, with noise of its own.

    Parameters
    ----------
    world: the simulated recommender.
    displays: what `draw_displays` drew.
    change: the further treatment.
    rng: NumPy's generator, which is advanced.

    Returns
    -------
    An (n, M) array of scores, -inf in the padding.

    >>> from foretest.simulate import WORLDS
    >>> world, rng = WORLDS["mild"], chunk_generator(0, 0, 0)
    >>> displays = draw_displays(world, world.change, rng, count=2)
    >>> changed_scores(world, displays, world.change, rng).shape
    (2, 20)
    """
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

    Parameters
    ----------
    scores: an (n, M) array, -inf for items that cannot be shown.
    exponentials: standard exponential numbers of the same shape.
    slots: K.

    Returns
    -------
    An (n, K) array of positions.

    >>> scores = np.array([[0.0, 5.0, 1.0]], np.float32)
    >>> sample_rankings(scores, np.ones((1, 3)), slots=2).tolist()
    [[1, 2]]

    Candidate j arrives after E_j·exp(-s_j), E_j a standard exponential of `exponentials`; the first K to arrive are
    shown. -log turns this race into Gumbel top-K: the same rankings from the same numbers. Two policies that are given
    the same exponentials are coupled (common random numbers).
    """
    arrival = np.exp(-scores.astype(np.float64)) * exponentials
    rows = np.arange(len(arrival))
    rankings = np.empty((len(arrival), slots), dtype=np.int16)
    for slot in range(slots):
        rankings[:, slot] = first = arrival.argmin(axis=1)
        arrival[rows, first] = np.inf
    return rankings


def shown_rankings(world: World, scores: NDArray[np.float32], exponentials: NDArray[np.float64]) -> NDArray[np.int16]:
    """What the world's policy shows on these scores: drawn at its temperature, at 0 always the best scores.

    Parameters
    ----------
    world: the simulated recommender, of which the temperature and the number of slots are used.
    scores: an (n, M) array, -inf for items that cannot be shown.
    exponentials: standard exponential numbers of the same shape; not needed at temperature 0.

    Returns
    -------
    An (n, K) array of positions, best slot first.

    >>> from foretest.simulate import WORLDS
    >>> scores = np.array([[0.0, 5.0, 1.0, 2.0, 0.5, -1.0]], np.float32)
    >>> shown_rankings(WORLDS["reranker"], scores, np.empty(0)).tolist()
    [[1, 3, 2, 4, 0, 5]]
    """
    if world.temperature == 1.0:
        return sample_rankings(scores, exponentials, world.slots)
    sorted_by = scores.astype(np.float64)
    if world.temperature > 0.0:  # the logarithm of the race: at low temperatures its times would overflow
        sorted_by = sorted_by / world.temperature - np.log(exponentials)
    return np.argsort(-sorted_by, axis=1, kind="stable")[:, : world.slots].astype(np.int16)
