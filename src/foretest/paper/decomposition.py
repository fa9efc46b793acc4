"""The bias of NCIS in a simulated world, where it is known: between contexts and within them (section 5.2).

With Z = W̄/W and everything under the treatment,

    NCIS − E[R] = Cov(R, Z)/E[Z] = { Cov(E[R|X], E[Z|X]) + E[Cov(R, Z|X)] } / E[Z]

estimate − truth, as Foretest reports every bias; the paper's B is its negative. X is all of a display, also what the
log does not have. Displays and rankings are drawn; rewards are click probabilities, never clicks. D rankings per
display give an unbiased Cov(R, Z|x) and, as the rest of the whole covariance, an unbiased part between contexts; that
is split once more, into a part between groups of users and one between contexts of one group.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.diagnostics.bias_decomposition import bias_contributions
from foretest.displays.batch import Floats
from foretest.kernels.plackett_luce import log_prob
from foretest.simulate import (
    Change,
    Displays,
    World,
    chunk_generator,
    click_probability,
    draw_displays,
    sample_rankings,
)
from foretest.simulate.displays import CHUNK

DECOMPOSITION_STREAM = 6
"""The displays are others than those of a log or of a truth of the same seed."""

_STEP = 1e-30  # of the complex derivative


class Moments(NamedTuple):
    """One entry per display: means over its rankings of R, Z and RZ, and the unbiased covariance of R and Z."""

    r: Floats
    z: Floats
    rz: Floats
    within: Floats
    group: npt.NDArray[np.int64]


def decompose(
    world: World, change: Change, *, cap: float, seed: int, displays: int = CHUNK, draws: int = 8
) -> dict[str, Any]:
    """The parts of the bias of NCIS at `cap`, each with its Monte Carlo standard error; `displays` in whole chunks."""
    chunks = []
    for chunk in range(-(-displays // CHUNK)):
        rng = chunk_generator(seed, DECOMPOSITION_STREAM, chunk)
        chunks.append(display_moments(world, draw_displays(world, change, rng), rng, cap=cap, draws=draws))
    moments = Moments(*(np.concatenate(field) for field in zip(*chunks, strict=True)))
    return parts_of(moments, [group.name for group in world.groups])


def display_moments(world: World, displays: Displays, rng: np.random.Generator, *, cap: float, draws: int) -> Moments:
    """The moments of displays, from `draws` rankings of each by the treatment."""
    r, z, rz = np.zeros((3, len(displays)))
    for _ in range(draws):
        shown = sample_rankings(displays.treatment_scores, rng.standard_exponential(displays.appeal.shape), world.slots)
        reward = click_probability(world, displays, shown)
        share_kept = np.exp(np.minimum(0.0, np.log(cap) - log_weights(displays, shown)))
        r += reward
        z += share_kept
        rz += reward * share_kept
    r, z, rz = r / draws, z / draws, rz / draws
    return Moments(r, z, rz, (rz - r * z) * draws / (draws - 1), displays.group)


def log_weights(displays: Displays, rankings: npt.NDArray[np.int16]) -> Floats:
    """log π_t(a) − log π_p(a) of one ranking per display, both Plackett-Luce."""
    count, width = displays.appeal.shape
    starts, slots = np.arange(count) * width, rankings.shape[1]
    ragged_rankings = rankings.astype(np.int32).ravel(), np.arange(count) * slots, np.full(count, slots)
    treatment, control = (
        log_prob(scores.ravel(), starts, displays.length, *ragged_rankings, 1.0)
        for scores in (displays.treatment_scores, displays.control_scores)
    )
    return np.asarray(treatment - control)


def parts_of(moments: Moments, groups: list[str]) -> dict[str, Any]:
    """The parts of the bias as functions of means over displays, with standard errors by the delta method."""
    member = moments.group[:, None] == np.arange(len(groups))
    columns = [moments.r, moments.z, moments.rz, moments.within]
    rows = np.column_stack([*columns, member, member * moments.r[:, None], member * moments.z[:, None]])
    means = rows.mean(axis=0)
    values = np.real(_parts(means, len(groups)))
    moved = means + 1j * _STEP * np.eye(len(means))
    gradient = np.stack([np.imag(_parts(at, len(groups))) / _STEP for at in moved], axis=1)
    influence = (rows - means) @ gradient.T
    errors = np.sqrt(np.square(influence).mean(axis=0) / len(rows))
    names = ("truth", "kept", "limit", "bias", "between_contexts", "within_contexts", "between_groups", "inside_groups")
    document: dict[str, Any] = {
        name: {"value": float(v), "std_error": float(e)} for name, v, e in zip(names, values, errors, strict=False)
    }
    of_groups = zip(groups, values[len(names) :], errors[len(names) :], strict=True)
    document["groups"] = {
        name: {
            "share": float(means[4 + g]),
            "value": float(means[4 + len(groups) + g] / means[4 + g]) if means[4 + g] else None,
            "kept": float(means[4 + 2 * len(groups) + g] / means[4 + g]) if means[4 + g] else None,
            "bias_contribution": float(v),
            "std_error": float(e),
        }
        for g, (name, v, e) in enumerate(of_groups)
    }
    return document


def _parts(means: npt.NDArray[Any], groups: int) -> npt.NDArray[Any]:
    """truth, E[Z], NCIS's limit, its bias, the parts of the bias, and each group's contribution; real or complex."""
    truth, mass_kept, product, within = means[:4]
    share, group_r, group_z = means[4:].reshape(3, groups)
    bias = product / mass_kept - truth
    # E_t[R|g] is known here: it takes the place of the value that a log would show
    contributions = bias_contributions(share, group_z, group_z * group_r / np.where(share == 0, 1.0, share))
    between_groups = contributions.sum()
    inside = within / mass_kept
    between = bias - inside
    parts = [truth, mass_kept, product / mass_kept, bias, between, inside, between_groups, between - between_groups]
    return np.array([*parts, *contributions])


def over_tests(parts: list[dict[str, Any]], control: Floats, strata_bias: Floats) -> dict[str, Any]:
    """The parts of many tests, relative to the control's value: which dominates, and what the strata of the logs show.

    `strata_bias` is NCIS − PieceNCIS in the log of each test, relative to the control's mean reward there.
    """

    def column(name: str) -> Floats:
        return np.array([part[name]["value"] for part in parts]) / control

    bias, between, within = column("bias"), column("between_contexts"), column("within_contexts")
    there = np.isfinite(strata_bias)
    spread = there.sum() > 1 and np.std(strata_bias[there]) > 0.0 and np.std(between[there]) > 0.0
    return {
        "tests": len(parts),
        "mean": {
            "bias": float(bias.mean()),
            "between_contexts": float(between.mean()),
            "within_contexts": float(within.mean()),
            "between_groups": float(column("between_groups").mean()),
            "seen_by_strata": float(strata_bias[there].mean()) if there.any() else None,
        },
        "mean_absolute": {
            "between_contexts": float(np.abs(between).mean()),
            "within_contexts": float(np.abs(within).mean()),
        },
        "between_dominates": int((np.abs(between) > np.abs(within)).sum()),
        "strata_correlation": float(np.corrcoef(strata_bias[there], between[there])[0, 1]) if spread else None,
    }
