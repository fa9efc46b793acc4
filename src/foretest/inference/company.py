"""Do rewards depend on the company of their slot? A test of the model behind slots, without any treatment.

If what a slot earns depends on its own item and place alone, the other shown items of a reward are a draw of the
control's p(· | a_k = i), and a row's term Σ_k r_k (S_k − E_p[S_k | a_k]) has mean 0, S_k the worth of all beside slot k
by the control's own scores. With T_u the sum over the rows of unit u,

    z = Σ_u T_u / √(Σ_u T_u²)

is nearly normal. Below 0, rewarded items appear next to weaker ones than the control would put there: slots compete. It
is the score test against rewards proportional to exp(β·S), and sees what moves with the control's scores only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import headline_of
from foretest.aggregation.fold_plan import FoldPlan
from foretest.displays.batch import Floats
from foretest.estimators import Estimator
from foretest.inference.uplift_range import reaching
from foretest.results.audit import NOT_MADE, PASS, grade
from foretest.results.result import Estimate
from foretest.results.slot_model import DEPENDS, SlotModel, SlotTest
from foretest.special import ndtr
from foretest.weights.company import has_company
from foretest.weights.prefix_weights import PrefixAdaptive

#: units with a term other than 0, below which z is not nearly normal
FEWEST_UNITS = 100


def company_test(aggregates: Aggregates, estimators: Sequence[Estimator], metric: int) -> SlotTest | None:
    """The test for a metric that one of the estimators weighs by slot; None where none does."""
    plan = aggregates.plan
    if not any(plan.weighting(e).by_slot and plan.weighs(e, metric) for e in estimators):
        return None
    columns, name = aggregates.rewarded.columns(), ("company", metric)
    if columns and name not in columns:
        if has_company(plan.settings.control):
            return _not_made("these sums are of an earlier version: fold the log again")
        # of saved sums only the names of policies are known, not whether they have scores
        return _not_made("it needs the control's scores, and sums folded by this version")
    terms = columns[name] if columns else np.zeros(0)
    used = np.isfinite(terms) & (columns["r", metric] > 0.0) if columns else np.zeros(0, np.bool_)
    if not used.any():
        return _not_made("no reward was earned beside other items")
    return _judged(_by_unit(terms[used], columns["unit"][used]), int(used.sum()))


def _by_unit(terms: Floats, unit: Floats) -> Floats:
    return np.bincount(np.unique(unit, return_inverse=True)[1], weights=terms).astype(np.float64)


def _judged(by_unit: Floats, rewards: int) -> SlotTest:
    size = float(np.abs(by_unit).max())
    if size == 0.0:
        return _not_made("the control always shows the same items beside a rewarded one", rewards)
    units = int(np.count_nonzero(by_unit))
    if units < FEWEST_UNITS:
        return _not_made(f"it needs {FEWEST_UNITS} units whose rewards have company that varies, not {units}", rewards)
    z = float((by_unit / size).sum() / np.sqrt(np.square(by_unit / size).sum()))
    p = float(2.0 * ndtr(-abs(z)))
    return SlotTest(grade(p), z, p, rewards, _meaning(grade(p), z))


def _meaning(status: str, z: float) -> str:
    if status == PASS:
        return f"no sign that {DEPENDS}"
    company = "weaker" if z < 0.0 else "stronger"
    return f"{DEPENDS}: rewarded items appear next to {company} ones than chance would put there"


def with_company(
    estimates: Mapping[str, Estimate], estimators: Sequence[Estimator], plan: FoldPlan, model: SlotModel | None,
    control: float | None,
) -> dict[str, Estimate]:  # fmt: skip
    """The estimates; where the test warns or fails, the range of each by slot that has a band spans the interval by
    ranking too, if that one has enough evidence, and a reason says why. The range of weights of prefixes reaches to the
    uplift by ranking in any case."""
    changed = dict(estimates)
    if model is None:
        return changed
    by_ranking = [e for e in estimators if not plan.weighting(e).by_slot]
    point = headline_of(None, by_ranking) if by_ranking else None
    if point is not None and estimates[point].verdict == "insufficient":
        point = None
    for estimator in estimators:
        weighting, label = plan.weighting(estimator), estimator.label
        is_prefix = isinstance(weighting, PrefixAdaptive)
        test = model.of_prefixes if is_prefix else model.beside
        if not (weighting.by_slot and weighting.banded) or not (test.warns or is_prefix):
            continue
        estimate = estimates[label]
        if point is not None and control is not None:
            estimate = reaching(estimate, estimates[point], control, spanning=test.warns)
        reasons = [_reason(test, point)] if test.warns else []
        if not reasons and estimate.range != estimates[label].range:
            reasons = [f"its range reaches to {point}, which assumes nothing of slots"]
        changed[label] = replace(estimate, reasons=[*estimate.reasons, *reasons])
    return changed


def _reason(test: SlotTest, point: str | None) -> str:
    """What a reader of an estimate by slot must know where the test warns or fails; `point` is the one by ranking whose
    interval its range spans."""
    if point is None:
        return f"{test.doubt}, and no estimate by ranking has enough evidence to be set beside it"
    return f"{test.doubt}, so its range spans the interval of {point}" + (". Trust that one" if test.fails else "")


def leading_note(metric: str, test: SlotTest | None, prefixes: str | None, reason: str | None) -> list[str]:
    """A note where no estimate by slot leads because the test fails; `prefixes` names the one of prefixes that does,
    for a reason."""
    if test is None or not test.fails:
        return []
    if prefixes is not None:
        return [f"{prefixes} leads for {metric} unless the settings name another, because {reason}."]
    return [f"no estimate by slot leads for {metric} unless the settings name it, because {test.doubt}."]


def _not_made(reason: str, rewards: int = 0) -> SlotTest:
    return SlotTest(NOT_MADE, None, None, rewards, reason)
