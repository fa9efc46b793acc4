"""What is kept of the treatment itself: how its scores compare with the control's in each sampled display, and the
log-probability of a ranking drawn from it.

No law binds a treatment as probabilities bind the control, so these columns lead to questions and never to failures.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns
from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.kernels.ranking_draws import LOG_W
from foretest.kernels.score_lists import MOST, rank_correlations, spreads_and_shapes
from foretest.policies.base import Policy
from foretest.policies.control_number import main_policy
from foretest.policies.own_candidates import OwnCandidates, places_column
from foretest.policies.probabilities import Probabilities
from foretest.weights.policy_pair import FROM_TREATMENT, PolicyPair

CORRELATION, COMPARED = "score_correlation", "score_items"  # the second: how many items are compared
TIES = "score_ties"  # of the treatment's scores, the share that equal the score before them; NaN of a single item
SPREAD_CONTROL, SPREAD_TREATMENT = "score_spread_control", "score_spread_treatment"
# the same over the temperature or sigma, which saved sums do not have; NaN where only the order of scores matters
SCALED_CONTROL, SCALED_TREATMENT = "score_scaled_control", "score_scaled_treatment"
SHAPE_CONTROL, SHAPE_TREATMENT = "score_shape_control", "score_shape_treatment"
DRAWN_TREATMENT = "drawn_log_t"  # log π_t of a ranking drawn from the treatment: minus its mean is the entropy
ONE_IN = 4  # displays has such a draw, chosen by its key; NaN elsewhere: enough for the mean of 20 000 to 0.02


def noise_scale(policy: Policy) -> float:
    """The scale on which a policy reads its scores, temperature or sigma; NaN where only their order matters."""
    if isinstance(policy, Probabilities):  # whose scores are log p
        return 1.0
    scale = getattr(policy, "temperature", getattr(policy, "sigma", None))
    return float(scale) if isinstance(scale, int | float) and scale > 0.0 else np.nan


def treatment_columns(plan: FoldPlan, displays: Displays) -> Columns:
    """The treatment's columns of some displays, whose keys are known."""
    control, treatment = plan.settings.control, plan.settings.treatment
    columns: Columns = {}
    lists = [scores_of(policy, displays) for policy in (control, treatment)]
    if lists[0] is not None and lists[1] is not None:
        columns |= compared_scores(lists[0], lists[1], common_scores(treatment, displays, lists[0], lists[1]))
        for policy, scaled, spread in (
            (control, SCALED_CONTROL, SPREAD_CONTROL),
            (treatment, SCALED_TREATMENT, SPREAD_TREATMENT),
        ):
            columns[scaled] = columns[spread] / np.float32(noise_scale(main_policy(policy)))
    if treatment.can_draw:
        drawn = np.full(len(displays), np.nan)
        some = np.flatnonzero(displays.key() % np.uint64(ONE_IN) == 0)
        drawn[some] = _drawn(plan.normaliser.pair, displays.take(some))
        columns[DRAWN_TREATMENT] = drawn
    return columns


def compared_scores(control: Ragged, treatment: Ragged, common: tuple[Ragged, Ragged] | None = None) -> Columns:
    """Rank correlation, spreads and shapes of two score lists, display by display; `common` are the scores of the items
    that both have, where that is not all."""
    both = (control, treatment) if common is None else common
    (p, p_starts), (t, t_starts) = map(_plain, both)
    correlation = rank_correlations(p, p_starts, t, t_starts, both[0].lengths.astype(np.int64))
    compared = np.minimum(both[0].lengths, MOST)
    of_lists = [spreads_and_shapes(*_plain(lists), lists.lengths.astype(np.int64)) for lists in (control, treatment)]
    (spread_control, shape_control), (spread_treatment, shape_treatment) = of_lists
    with np.errstate(over="ignore"):  # a spread of 1e39 is infinite
        return {
            CORRELATION: correlation.astype(np.float32),
            COMPARED: compared.astype(np.uint8),
            TIES: _ties(treatment),
            SPREAD_CONTROL: spread_control.astype(np.float32),
            SPREAD_TREATMENT: spread_treatment.astype(np.float32),
            SHAPE_CONTROL: shape_control,
            SHAPE_TREATMENT: shape_treatment,
        }


def _ties(lists: Ragged) -> npt.NDArray[np.float32]:
    """The share of scores that equal the one before them in their list."""
    scores, counts = replace(lists, values=lists.values.astype(np.float64, copy=False)).flat(), lists.lengths
    total = np.zeros(len(scores) + 1, np.int32)
    np.cumsum(scores[1:] == scores[:-1], out=total[2:])
    end = np.cumsum(counts)
    with np.errstate(invalid="ignore"):
        shares = (total[end] - total[np.minimum(end - counts + 1, len(scores))]) / (counts - 1.0)
    return np.where(counts > 1, shares, np.nan).astype(np.float32)


def common_scores(treatment: Policy, displays: Displays, p: Ragged, t: Ragged) -> tuple[Ragged, Ragged] | None:
    """Both scores of the items that control and treatment share, in the treatment's order; None where lists are one."""
    if not isinstance(treatment, OwnCandidates):
        return None
    places: Ragged = displays[places_column(treatment.candidates)]
    row = np.repeat(np.arange(len(places)), places.lengths)
    place, own = places.flat(), t.flat()
    shared = np.flatnonzero(place < p.lengths[row])
    counts = np.bincount(row[shared], minlength=len(places))
    of_control = p.values[p.starts[row[shared]] + place[shared]]
    return Ragged.packed(of_control, counts), Ragged.packed(own[shared], counts)


def _plain(lists: Ragged) -> tuple[Floats, Floats]:
    """Values and starts as the kernels take them: one type, so that they are compiled once."""
    return lists.values.astype(np.float64), lists.starts.astype(np.int64)


def scores_of(policy: Policy, displays: Displays) -> Ragged | None:
    """The score lists that a policy ranks by; None where it has none."""
    ranked = main_policy(policy)
    names = ranked.score_columns
    column = displays.columns.get(names[0]) if names else None
    if not isinstance(column, Ragged) or column.values.dtype.kind not in "biuf":
        return None
    return ranked.as_scores(column) if isinstance(ranked, Probabilities) else column


def _drawn(pair: PolicyPair, displays: Displays) -> Floats:
    """log π_t of the first ranking that is drawn from the treatment for each display."""
    if pair.is_fused:
        log_t = np.empty((len(displays), 1))
        # the kernel tells the log-probabilities of its second policy
        turned = replace(pair, treatment=pair.control, control=pair.treatment)
        turned.fused_draws(displays, LOG_W, 0, 1, streams=(FROM_TREATMENT, FROM_TREATMENT), log_p=log_t)
        return log_t[:, 0]
    rankings = pair.treatment.sample(displays, pair.uniforms(displays, FROM_TREATMENT, 0, 1))
    return np.asarray(pair.treatment.log_prob(displays, rankings), np.float64)
