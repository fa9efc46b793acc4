"""What a log could show, before its result is looked at."""

from foretest.planning.plan import PlanResult, plan_log

__all__ = ["PlanResult", "plan_log"]
