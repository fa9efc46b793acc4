"""The content of plan.json."""

from __future__ import annotations

from typing import Any

from foretest._version import __version__
from foretest.aggregation.thinning import size_of
from foretest.files import json_ready
from foretest.formatting import some_of
from foretest.online.comparison import POWER
from foretest.planning.cheapest_plan import CheapestPlan, cheapest_plan
from foretest.planning.goal import Goal
from foretest.planning.log_to_plan import LogToPlan
from foretest.planning.recommendation import recommend
from foretest.planning.smallest_uplift import plan_metric
from foretest.results.result import Result
from foretest.settings.settings import Settings

SCHEMA = 1


def plan_document(
    settings: Settings, result: Result, log: LogToPlan, notes: list[str], goal: Goal | None
) -> dict[str, Any]:  # fmt: skip
    """The content of plan.json."""
    parts = log.aggregates.plan.shown
    metrics = {
        name: plan_metric(result.metrics[name], m, log)
        for name, m in parts.items()
        if settings.definitions.formulas[name].is_planned
    }
    left_out = [name for name in settings.definitions.names if name not in metrics]
    if left_out:
        notes = [
            *notes,
            f"{some_of(left_out)} left out of the plan, which is for rewards of 0 or more, and sums of them.",
        ]
    first, plan = next(iter(metrics.items()))
    recommended = recommend(first, plan.exploration) if plan.exploration else None
    explore: dict[str, Any] = {}
    if goal is not None:
        cheapest = _cheapest(first, result, parts[first], log, goal)
        explore["explore"] = cheapest.to_dict() if isinstance(cheapest, CheapestPlan) else None
        notes = [*notes, cheapest] if isinstance(cheapest, str) else notes
    document: dict[str, Any] = json_ready(
        {
            **_heading(settings, log),
            "metrics": {name: metric.to_dict() for name, metric in metrics.items()},
            "recommended": None if recommended is None else recommended.to_dict(),
            **explore,
            "notes": notes,
        }
    )
    return document


def _cheapest(name: str, result: Result, m: int, log: LogToPlan, goal: Goal) -> CheapestPlan | str | None:
    """The cheapest exploration, or why there is none; None where notes of the log say it already."""
    return None if log.sample is None else cheapest_plan(name, result.metrics[name], m, log, goal)


def _heading(settings: Settings, log: LogToPlan) -> dict[str, Any]:
    """What the numbers are of."""
    return {
        "foretest": __version__,
        "schema": SCHEMA,
        "headline": log.estimator.label,
        "confidence_level": settings.analysis.confidence_level,
        "power": POWER,
        "gamma": list(settings.analysis.gamma_at(by_slot=False)),
        "gamma_slots": list(settings.analysis.gamma_at(by_slot=True)),
        "split": list(log.split),
        "unit": settings.log.unit,
        "log": {
            "rows": log.aggregates.rows,
            **size_of(log.aggregates.ledger),
            "units": log.aggregates.n_units,
            **({} if log.aggregates.units_exact else {"units_approximate": True}),
            "days": log.days,
        },
    }
