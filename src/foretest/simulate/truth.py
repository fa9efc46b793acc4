"""What the treatment is really worth in a simulated world."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foretest.displays.batch import Displays as ScoredDisplays
from foretest.displays.ragged import Ragged
from foretest.policies import PlackettLuce
from foretest.simulate.change import Change
from foretest.simulate.clicks import click_probability, slot_shares, worth
from foretest.simulate.displays import CHUNK, CONTROL_STREAM, Displays, chunk_generator, draw_displays, shown_rankings
from foretest.simulate.world import POSITION_BASED, World

TRUTH_STREAM = 1
"""The displays of the truth are others than those of a log of the same seed."""


class Truth(NamedTuple):
    """True values per display of one metric, up to the Monte Carlo error of the relative uplift.

    >>> Truth(control=0.02, treatment=0.022, effect_size=0.002, rel_uplift=0.1, std_error=0.003).rel_uplift
    0.1
    """

    control: float
    """Mean reward of a display under the control."""
    treatment: float
    """Mean reward of a display under the treatment."""
    effect_size: float
    """treatment - control."""
    rel_uplift: float
    """treatment / control - 1."""
    std_error: float
    """Monte Carlo standard error of `rel_uplift`."""


def true_values(
    world: World, change: Change, seed: int, *, displays: int = 32 * CHUNK, draws: int = 4
) -> dict[str, Truth]:
    """The true value of both policies, for each metric, on a separate population of displays.

    Parameters
    ----------
    world: the simulated recommender.
    change: the treatment, such as `world.change`.
    seed: the same as that of a log; the displays are different ones.
    displays: how many, rounded up to chunks of 8,192.
    draws: rankings per policy and display.

    Returns
    -------
    A `Truth` for each of `click` and `revenue`.

    >>> from foretest.simulate import WORLDS
    >>> truth = true_values(WORLDS["reranker"], WORLDS["reranker"].change, seed=0, displays=8192)["click"]
    >>> round(truth.rel_uplift, 2)
    0.13

    Averages click probabilities, never clicks, over `draws` rankings per policy and display, both policies with
    the same random numbers; where a display's mean over all rankings is known (`is_exact`), it takes that and draws
    none. With p_i and t_i the mean rewards of display i and δ the relative uplift, the standard error is that of the
    mean of (t_i - (1 + δ)·p_i)/mean(p).
    """
    # Reward per display does not depend on how displays fall to users; without repeats they are independent.
    single = replace(world, displays_per_user=1.0, sticky=False)
    both = _BothMetrics(single)
    for chunk in range(-(-displays // CHUNK)):
        rng = chunk_generator(seed, TRUTH_STREAM, chunk)
        drawn = draw_displays(single, change, rng)
        values = _exact(single, drawn) if is_exact(single) else _mean_probabilities(single, drawn, rng, draws)
        both.add(drawn, *values)
    return both.truth()


def values_of_log(world: World, rows: int, seed: int) -> dict[str, Truth]:
    """The true value of both policies on the displays of the control's log itself, for each metric; exact, so that
    there is no Monte Carlo error. For worlds that `is_exact` is true of."""
    if not is_exact(world):
        raise ValueError(f"world {world.name!r}: its rankings are drawn, and their mean is not known")
    both = _BothMetrics(world)
    for chunk in range(-(-rows // CHUNK)):
        drawn = draw_displays(world, world.change, chunk_generator(seed, CONTROL_STREAM, chunk))
        some = drawn.take(slice(rows - chunk * CHUNK))
        both.add(some, *_exact(world, some))
    return {metric: truth._replace(std_error=0.0) for metric, truth in both.truth().items()}


def is_exact(world: World) -> bool:
    """Is a display's mean click probability over all rankings known? So it is where each policy shows one ranking, and
    where clicks are position-based, from the probabilities of items in slots."""
    return world.temperature == 0.0 or world.clicks == POSITION_BASED


def exact_values(world: World, displays: Displays, scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """The mean click probability of each display over all rankings of the policy on these scores.

    Position-based: Σ_i worth_i·Σ_k p_k·P(i in k), the item's worth times its exposure.
    """
    if world.temperature == 0.0:
        return click_probability(world, displays, shown_rankings(world, scores, np.empty(0)))
    is_item = np.arange(scores.shape[1]) < displays.length[:, None]
    lists = Ragged.packed(scores[is_item], displays.length)
    shown = Ragged.packed(np.zeros(len(displays) * world.slots, np.int32), np.full(len(displays), world.slots))
    rows = ScoredDisplays({"s": lists}, shown, displays.length, np.zeros(len(displays), np.uint64))
    table = np.zeros((len(displays), world.slots, scores.shape[1]))
    known = np.broadcast_to(is_item[:, None, :], table.shape)
    table[known] = PlackettLuce("s", world.temperature).slot_marginals(rows).flat()
    return np.asarray(np.einsum("k,nki,ni->n", slot_shares(world, world.slots), table, worth(world, displays)))


def _exact(world: World, displays: Displays) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The exact mean click probability of each display under control and treatment."""
    scores = displays.control_scores, displays.treatment_scores
    return exact_values(world, displays, scores[0]), exact_values(world, displays, scores[1])


def _mean_probabilities(
    world: World, displays: Displays, rng: np.random.Generator, draws: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean click probability of each display under control and treatment, over drawn rankings."""
    # Equal scores and equal random numbers give equal rankings: only changed displays need a second draw.
    changed = (displays.control_scores != displays.treatment_scores).any(axis=1)
    touched = displays.take(changed)
    control, treatment = np.zeros((2, len(displays)))
    for _ in range(draws):
        exponentials = rng.standard_exponential(displays.appeal.shape)
        shown = shown_rankings(world, displays.control_scores, exponentials)
        probability = click_probability(world, displays, shown)
        control += probability
        shown = shown_rankings(world, touched.treatment_scores, exponentials[changed])
        probability[changed] = click_probability(world, touched, shown)
        treatment += probability
    return control / draws, treatment / draws


class _BothMetrics:
    """The moments of clicks and of revenue, whose mean by click is known by group."""

    def __init__(self, world: World) -> None:
        self.revenue = np.array([group.revenue for group in world.groups])
        self.clicks, self.revenues = _Moments(), _Moments()

    def add(self, displays: Displays, control: NDArray[np.float64], treatment: NDArray[np.float64]) -> None:
        of_click = self.revenue[displays.group]
        self.clicks.add(control, treatment)
        self.revenues.add(control * of_click, treatment * of_click)

    def truth(self) -> dict[str, Truth]:
        return {"click": self.clicks.truth(), "revenue": self.revenues.truth()}


class _Moments:
    """Sums of (p, t) and of their products, from which a `Truth` follows."""

    def __init__(self) -> None:
        self.count = 0
        self.sums = np.zeros(2)
        self.products = np.zeros((2, 2))

    def add(self, control: NDArray[np.float64], treatment: NDArray[np.float64]) -> None:
        pairs = np.stack([control, treatment])
        self.count += len(control)
        self.sums += pairs.sum(axis=1)
        self.products += pairs @ pairs.T

    def truth(self) -> Truth:
        control, treatment = (self.sums / self.count).tolist()
        ratio = treatment / control
        contrast = np.array([-ratio, 1.0]) / control
        # The contrast has mean 0 by construction, so its second moment is its variance.
        variance = float(contrast @ self.products @ contrast) / self.count
        std_error = (max(variance, 0.0) / self.count) ** 0.5
        return Truth(control, treatment, treatment - control, ratio - 1, std_error)
