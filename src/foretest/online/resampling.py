"""The bootstrap of an online test: both arms are resampled by bucket of units, each from its own stream."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from foretest.displays.batch import Floats
from foretest.estimators.base import ratio
from foretest.inference.bootstrap import resample_counts
from foretest.online.metric_arms import MetricArms
from foretest.settings.analysis import Analysis


class ArmCounts(NamedTuple):
    """For each arm `counts[b, j]`: how often resample b has bucket j."""

    control: Floats
    treatment: Floats


class Replicates(NamedTuple):
    """Δ* and δ* of every resample; NaN where it has no rows, or (δ*) no reward in the control."""

    absolute: Floats
    relative: Floats
    control: Floats  # the control's value, as it is without a covariate


def arm_counts(analysis: Analysis) -> ArmCounts:
    """The resamples of both arms: the control's are those of the offline test, the treatment's are from another stream
    of the same seed."""
    stream = int(np.random.SeedSequence((analysis.seed, 1)).generate_state(1, np.uint64)[0])
    return ArmCounts(
        resample_counts(analysis.buckets, analysis.n_resamples, analysis.seed),
        resample_counts(analysis.buckets, analysis.n_resamples, stream),
    )


def replicates(sides: MetricArms, counts: ArmCounts, theta: float = 0.0) -> Replicates:
    """The uplift of every resample; each divides by its own rows. With θ it is adjusted for the covariate, whose means
    are resampled too: θ itself stays, as its noise is of second order."""
    plain, treatment = (side.resampled(drawn) for drawn, side in zip(counts, sides, strict=True))
    control = plain
    exists: Any = True
    if theta:
        sums = [arm.covariate.by_bucket() for arm in sides.arms if arm.covariate is not None]
        c_x, t_x = (drawn @ one.x for drawn, one in zip(counts, sums, strict=True))
        c_units, t_units = (drawn @ one.units for drawn, one in zip(counts, sums, strict=True))
        overall = ratio(c_x + t_x, c_units + t_units)
        control = control - theta * (ratio(c_x, c_units) - overall)
        treatment = treatment - theta * (ratio(t_x, t_units) - overall)
        exists = (c_units > 0) & (t_units > 0)
    absolute = np.where(exists, treatment - control, np.nan)
    sign = np.where(control < 0, -1.0, 1.0)  # of a loss the uplift is over its size
    relative = np.where(exists & (control != 0), (ratio(treatment, control) - 1.0) * sign, np.nan)
    return Replicates(absolute, relative, plain)
