"""How items that the log hardly shows compare with those that it shows: by the scores that both policies give them.

Within a list that a control shows with probabilities ρ(i), a reward is of item i with probability proportional to
ρ(i)·γ(i). With log γ(i) = b·z(i), z the scores within the display in units of their spread, b is the maximum of
Σ r·[b·z(a) − log Σ_i ρ(i) e^{b·z(i)}]/r̄ − |b|²/2, a conditional logit with a little shrinkage. Beside the scores of
both policies, z has how far they are apart, (z_t − z_p)²/2: weights are largest where the treatment lifts an item most,
and such items may be worth more than a line through all items says. It says how much less an item is worth that hardly
anyone was shown; where scores say nothing, or each list shows one item, all are worth the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.aggregation.treatment_scores import scores_of
from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged, places_within
from foretest.planning.item_lists import ItemLists
from foretest.policies import Policy
from foretest.policies.own_candidates import candidates_of, places_column

_ROUNDS = 25
_STEP = 1e-8
_FURTHEST = 3.0  # spreads from the mean: no score counts as further out
_MOST = 5.0  # how much more or less an item is taken to be worth than those of its list


def standard_scores(policies: tuple[Policy, ...], displays: Displays) -> Floats:
    """z of every item, a row per policy that has scores; 0, the mean, of items that a policy does not know."""
    first = np.cumsum(displays.eligible) - displays.eligible
    rows = []
    for policy in policies:
        scores = scores_of(policy, displays)
        if scores is None:
            continue
        padded = np.where(
            np.arange(scores.lengths.max(initial=0)) < scores.lengths[:, None], scores.padded(0.0), np.nan
        )
        z = np.zeros(int(displays.eligible.sum()))
        z[np.repeat(first, scores.lengths) + _places(policy, displays, scores)] = _standard(padded.astype(np.float64))[
            np.isfinite(padded)
        ]
        rows.append(z)
    return np.array(rows).reshape(len(rows), int(displays.eligible.sum()))


def worth_features(control: Policy, treatment: Policy, displays: Displays) -> Floats:
    """What worth is fitted by, a row each: the scores of both policies, and half the square of their difference."""
    z = standard_scores((control, treatment), displays)
    return z if len(z) < 2 else np.vstack([z, 0.5 * (z[1] - z[0]) ** 2])


def _places(policy: Policy, displays: Displays, scores: Ragged) -> npt.NDArray[np.int64]:
    """Where the items of a policy's scores stand among those of their display."""
    candidates = candidates_of(policy)
    return places_within(scores.lengths) if candidates is None else displays[places_column(candidates)].flat()


def _standard(padded: Floats) -> Floats:
    """By row: less its mean, over its standard deviation; 0 where scores are equal, or too large to square."""
    with np.errstate(over="ignore", invalid="ignore"):
        centred = padded - np.nanmean(padded, axis=1, keepdims=True)
        spread = np.nanstd(padded, axis=1, keepdims=True)
        some = np.isfinite(spread) & (spread > 0.0)
        z = np.divide(centred, spread, out=np.zeros_like(padded), where=some)
    return np.asarray(np.clip(z, -_FURTHEST, _FURTHEST))


def relative_worth(lists: ItemLists, z: Floats) -> Floats:
    """γ(i)/Σ_j ρ(j) γ(j) of every cell, with b fitted to the rewards; `z` has a row per score."""
    b = np.zeros(len(z))
    for _ in range(_ROUNDS if len(z) else 0):
        gradient, curvature = _derivatives(lists, z, b)
        move = np.linalg.solve(curvature, gradient)
        b = b + np.clip(move, -1.0, 1.0)
        if np.abs(move).max() < _STEP:
            break
    gamma = np.exp(b @ z) if len(z) else np.ones(len(lists.control))
    return np.clip(gamma / _by_list(lists, lists.control * gamma)[lists.of_cell], 1.0 / _MOST, _MOST)


def _by_list(lists: ItemLists, cells: Floats) -> Floats:
    """The sum of each list, above 0."""
    return np.maximum(np.bincount(lists.of_cell, weights=cells, minlength=len(lists.lengths)), 1e-300)


def _derivatives(lists: ItemLists, z: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The gradient of the likelihood at b, and its curvature with the sign turned."""
    chance = lists.control * np.exp(b @ z)
    chance = chance / _by_list(lists, chance)[lists.of_cell]
    r = lists.reward / lists.reward.mean()  # the shrinkage is the same in any unit
    weight = np.bincount(lists.owner, weights=r, minlength=len(lists.lengths))
    means = np.array([np.bincount(lists.of_cell, weights=chance * row, minlength=len(lists.lengths)) for row in z])
    gradient = z[:, lists.cell] @ r - means @ weight - b
    by_cell = chance * weight[lists.of_cell]
    return gradient, (z * by_cell) @ z.T - (means * weight) @ means.T + np.eye(len(z))
