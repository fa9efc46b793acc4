"""What predicts the outlook of other controls for one metric of a log, from the rewarded displays of the log."""

from __future__ import annotations

from foretest.diagnostics.health import control_is_deterministic
from foretest.planning.cost import Uncertainty
from foretest.planning.explored import Explorer
from foretest.planning.levels import EXPOSURE, RANKING, SLOT, LevelsToPlan, Scale
from foretest.planning.log_to_plan import LogToPlan
from foretest.planning.policy_tables import MetricLists, PolicyTables
from foretest.planning.rewarded_sample import RewardedSample
from foretest.special import ndtri


def explorer_of(log: LogToPlan, sample: RewardedSample, m: int, scale: Scale) -> Explorer | None:
    """The explorer of the m-th metric; None where the sample has no reward of it."""
    if not sample.rewards[:, m].any():
        return None
    plan, small = log.aggregates.plan, sample.of_metric(m)
    a, curves = plan.settings.analysis, plan.examination.curves.get(m)
    able = {RANKING: True, SLOT: m in small.slots, EXPOSURE: m in small.slots and curves is not None}
    levels = LevelsToPlan(
        metric=m,
        weightings={level: log.weighting(level) for level in log.estimators if able[level]},
        curves=curves,
        curve_given=m in plan.examination.given,
    )
    return Explorer(
        sample=sample,
        lists=MetricLists(PolicyTables(small, plan.normaliser.pair, a.bound_number), m, curves),
        levels=levels,
        scale=scale,
        reach=Uncertainty(
            float(ndtri(0.5 + a.confidence_level / 2.0)),
            {level: a.gamma_at(by_slot=log.weighting(level).by_slot) for level in log.estimators},
        ),
        deterministic=bool(control_is_deterministic(log.aggregates)),
    )
