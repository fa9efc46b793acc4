"""How people click in a simulated world: the probability of a click on a display, and on which slot it is.

Three models, of which a world names one (`World.clicks`), with a_k the attraction rate·exp(appeal_effect·u_k) of the
item in slot k, p_k ∝ k^-position_decay summing to 1, and P_k the probability that the display's one click is on slot k:

    saturating      P(click) = floor + (ceiling - floor)·(1 - exp(-λ/(ceiling - floor))), λ = Σ_k p_k·a_k/(1 +
                    cannibalisation·alike_k); slot k in proportion to its part of λ, of the floor to p_k
    position-based  P_k = p_k·min(a_k, 1): how much a slot is looked at, times what its item is worth
    browsing        P_k = c_k·Π_{j<k} (1 - c_j)(1 - l_j), c = min(a, 1/2), l = min(abandonment·exp(appeal_effect·u), 1);
                    a person reads from the top, and leaves after a click or where an item draws them away
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from foretest.simulate.displays import Displays
from foretest.simulate.world import BROWSING, POSITION_BASED, SATURATING, World

_MOST_CLICKED = 0.5  # of what a browsing person looks at


def click_probability(world: World, displays: Displays, rankings: NDArray[np.int16]) -> NDArray[np.float64]:
    """The probability that a display is clicked, given what it shows.

    Parameters
    ----------
    world: the simulated recommender, with its click model.
    displays: what `draw_displays` drew.
    rankings: an (n, K) array of positions, best slot first.

    Returns
    -------
    One probability per display.

    >>> from foretest.simulate import WORLDS, chunk_generator, draw_displays
    >>> world = WORLDS["paper"]
    >>> displays = draw_displays(world, world.change, chunk_generator(0, 0, 0), count=2)
    >>> click_probability(world, displays, np.zeros((2, 4), np.int16)).shape
    (2,)
    """
    if world.clicks != SATURATING:
        by_slot = _position_based if world.clicks == POSITION_BASED else _browsing
        return np.asarray(by_slot(world, displays, rankings).sum(axis=1))
    clicks, position = _slots(world, displays, rankings)
    rate = displays.rate * (clicks @ position)
    room = world.click_ceiling - world.click_floor
    probability: NDArray[np.float64] = world.click_floor - room * np.expm1(-rate / room)
    return probability


def clicked_slots(
    world: World, displays: Displays, rankings: NDArray[np.int16], uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Which slot a click of each display would be on, by the slots' shares of its probability."""
    shares = {POSITION_BASED: _position_based, BROWSING: _browsing, SATURATING: _saturating_shares}[world.clicks]
    edges = np.cumsum(shares(world, displays, rankings), axis=1)
    last: NDArray[np.int64] = (edges[:, :-1] <= uniforms[:, None] * edges[:, -1:]).sum(axis=1)
    return last


def worth(world: World, displays: Displays) -> NDArray[np.float64]:
    """min(a, 1) of every candidate, (n, M): what an item earns for each unit of p_k in a position-based world."""
    return np.minimum(displays.rate[:, None] * np.exp(world.appeal_effect * displays.appeal), 1.0)


def slot_shares(world: World, slots: int) -> NDArray[np.float64]:
    """p_k of each of so many slots."""
    position = np.arange(1, slots + 1) ** -world.position_decay
    return np.asarray(position / position.sum())


def _position_based(world: World, displays: Displays, rankings: NDArray[np.int16]) -> NDArray[np.float64]:
    """P_k of every slot, (n, K)."""
    rows = np.arange(len(displays))[:, None]
    return np.asarray(worth(world, displays)[rows, rankings] * slot_shares(world, rankings.shape[1]))


def _browsing(world: World, displays: Displays, rankings: NDArray[np.int16]) -> NDArray[np.float64]:
    """P_k of every slot, (n, K)."""
    attraction = np.exp(world.appeal_effect * displays.appeal[np.arange(len(displays))[:, None], rankings])
    clicked = np.minimum(displays.rate[:, None] * attraction, _MOST_CLICKED)
    stays = (1.0 - clicked) * (1.0 - np.minimum(world.abandonment * attraction, 1.0))
    reached = np.cumprod(np.column_stack([np.ones(len(displays)), stays[:, :-1]]), axis=1)
    return np.asarray(clicked * reached)


def _saturating_shares(world: World, displays: Displays, rankings: NDArray[np.int16]) -> NDArray[np.float64]:
    """In proportion to what each slot contributes to λ; the floor, clicks that no ranking changes, by place alone."""
    clicks, position = _slots(world, displays, rankings)
    room = world.click_ceiling - world.click_floor
    shares = clicks * position
    total = shares.sum(axis=1, keepdims=True)
    earned = -room * np.expm1(-displays.rate[:, None] * total / room)
    return np.asarray(world.click_floor * position + earned * shares / total)


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
    clicks: NDArray[np.float64] = np.exp(world.appeal_effect * displays.appeal[rows, rankings])
    clicks /= 1 + world.cannibalisation * alike
    return clicks, slot_shares(world, rankings.shape[1])
