"""What the treatment is really worth in a simulated world."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foretest.simulate.change import Change
from foretest.simulate.displays import (
    CHUNK,
    Displays,
    chunk_generator,
    click_probability,
    draw_displays,
    first_to_arrive,
    mean_times,
)
from foretest.simulate.world import World

TRUTH_STREAM = 1
"""The displays of the truth are others than those of a log of the same seed."""


class Truth(NamedTuple):
    """True values per display of one metric, up to the Monte Carlo error of the relative uplift."""

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
    """The true value of both policies, for each metric, on a population of displays of its own.

    Averages click probabilities, never clicks, over `draws` rankings per policy and display, both policies with
    the same random numbers. With p_i and t_i the mean rewards of display i and δ the relative uplift, the
    standard error is that of the mean of (t_i - (1 + δ)·p_i)/mean(p). `displays` is rounded up to chunks.
    """
    # Reward per display does not depend on how displays fall to users; without repeats they are independent.
    single = replace(world, displays_per_user=1.0, sticky=False)
    revenue = np.array([group.revenue for group in world.groups])
    clicks, revenues = _Moments(), _Moments()
    for chunk in range(-(-displays // CHUNK)):
        rng = chunk_generator(seed, TRUTH_STREAM, chunk)
        drawn = draw_displays(single, change, rng)
        control, treatment = _mean_probabilities(single, drawn, rng, draws)
        clicks.add(control, treatment)
        revenue_of_click = revenue[drawn.group]
        revenues.add(control * revenue_of_click, treatment * revenue_of_click)
    return {"click": clicks.truth(), "revenue": revenues.truth()}


def _mean_probabilities(
    world: World, displays: Displays, rng: np.random.Generator, draws: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean click probability of each display under control and treatment."""
    # Equal scores and equal random numbers give equal rankings: only changed displays need a second draw.
    changed = (displays.control_scores != displays.treatment_scores).any(axis=1)
    touched = displays.take(changed)
    control_times, treatment_times = mean_times(displays.control_scores), mean_times(touched.treatment_scores)
    control, treatment = np.zeros((2, len(displays)))
    for _ in range(draws):
        exponentials = rng.standard_exponential(displays.appeal.shape)
        shown = first_to_arrive(control_times, exponentials, world.slots)
        probability = click_probability(world, displays, shown)
        control += probability
        shown = first_to_arrive(treatment_times, exponentials[changed], world.slots)
        probability[changed] = click_probability(world, touched, shown)
        treatment += probability
    return control / draws, treatment / draws


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
