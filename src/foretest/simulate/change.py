"""Treatments of a simulated recommender: one change of the control's scores, and a team's supply of them.

A history's treatments come from `Changes`. With q the quality of an idea and e, e', e'' independent standard
normals:

    quality     q         = quality_mean + quality_sd·e
    accuracy    α         = tanh(q)
    cold lift             = max(0, cold_lift_mean + cold_lift_slope·α + cold_lift_sd·e')
    strength              = strength_median·exp(strength_sd·e'')

and each group is touched with its own `touch_probability`, all drawn again until one is. A share
`neutral_share` of the treatments are sideways moves: α = 0 and no cold lift.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from foretest.records import dataclass


@dataclass(frozen=True, kw_only=True)
class Change:
    """What the treatment does to the control's scores.

    >>> better = Change(touched=("fans",), strength=0.4, accuracy=0.7, cold_lift=0.0)
    >>> better.accuracy
    0.7
    """

    touched: tuple[str, ...]
    """Names of the groups whose scores change; no name, no change (an A/A test)."""

    strength: float
    """Standard deviation of the change of a candidate's score at average hidden intent."""

    accuracy: float
    """Correlation α of that change with the items' true appeal: negative for a treatment that does harm."""

    cold_lift: float
    """Added to the scores of cold items, those that the control hardly ever shows."""

    def __post_init__(self) -> None:
        if not -1 <= self.accuracy <= 1:
            raise ValueError(f"accuracy is {self.accuracy}: expected a correlation, from -1 to 1")
        if self.strength < 0:
            raise ValueError(f"strength is {self.strength}: expected a standard deviation, 0 or more")


NO_CHANGE = Change(touched=(), strength=0.0, accuracy=0.0, cold_lift=0.0)
"""The treatment of an A/A test: the control itself."""


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The distribution from which a history draws its treatments; the module's docstring has the formulas.

    >>> Changes(neutral_share=0.0).strength_median
    0.4
    """

    quality_mean: float = -0.25
    """Mean quality of an idea: a little below 0, since most changes of a ranking that works make it worse."""

    quality_sd: float = 0.5
    """Standard deviation of the quality: how much ideas differ."""

    neutral_share: float = 0.2
    """Probability of a sideways move, whose accuracy is 0 and which lifts no cold item."""

    strength_median: float = 0.4
    """Median strength of a change."""

    strength_sd: float = 0.5
    """Standard deviation of the log of the strength."""

    cold_lift_mean: float = 3.0
    """Mean lift of the cold items by a treatment of accuracy 0 that is no sideways move, before the floor at 0."""

    cold_lift_slope: float = 2.0
    """How much more a treatment of accuracy 1 lifts: the better a model, the more unseen items it discovers."""

    cold_lift_sd: float = 0.5
    """Standard deviation of the lift given the accuracy."""

    def __post_init__(self) -> None:
        if not 0 <= self.neutral_share <= 1:
            raise ValueError(f"neutral_share is {self.neutral_share}: expected a probability")
        spreads = (self.quality_sd, self.strength_median, self.strength_sd, self.cold_lift_sd)
        if min(spreads) < 0:
            raise ValueError(f"spreads and the median strength are {spreads}: expected 0 or more")


def draw_change(changes: Changes, touch: Mapping[str, float], rng: np.random.Generator) -> Change:
    """Draw one treatment.

    Parameters
    ----------
    changes: the distribution to draw from.
    touch: by the name of a group, the probability that the treatment changes its scores; not all of them 0.
    rng: NumPy's generator, which is advanced.

    Returns
    -------
    The treatment, as a change of the control's scores.

    >>> change = draw_change(Changes(), {"new": 0.5, "old": 1.0}, np.random.default_rng(0))
    >>> set(change.touched) <= {"new", "old"}, change.cold_lift >= 0
    (True, True)
    """
    quality, lift, strength = rng.standard_normal(3).tolist()
    neutral = rng.random() < changes.neutral_share
    touched: tuple[str, ...] = ()
    while not touched:
        touched = tuple(group for group, probability in touch.items() if rng.random() < probability)
    accuracy = 0.0 if neutral else math.tanh(changes.quality_mean + changes.quality_sd * quality)
    cold_lift = changes.cold_lift_mean + changes.cold_lift_slope * accuracy + changes.cold_lift_sd * lift
    return Change(
        touched=touched,
        strength=changes.strength_median * math.exp(changes.strength_sd * strength),
        accuracy=accuracy,
        cold_lift=0.0 if neutral else max(0.0, cold_lift),
    )
