"""What a result says of its log, its settings and its estimators."""

from __future__ import annotations

import dataclasses
from typing import Any

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.thinning import size_of
from foretest.policies.logging_mixture import loggers_of
from foretest.provenance import public
from foretest.settings.metric_roles import roles_dict
from foretest.settings.settings import TREATMENT, Settings
from foretest.stores import without_credentials


def log_facts(aggregates: Aggregates) -> dict[str, Any]:
    """How much there is, and who showed it."""
    facts: dict[str, Any] = {
        "rows": aggregates.rows,
        **size_of(aggregates.ledger),
        "units": aggregates.n_units,
        "positives": {name: int(aggregates.positives[m]) for name, m in aggregates.plan.shown.items()},
    }
    until = aggregates.plan.settings.trained_until
    if aggregates.left_out_as_trained is not None and until is not None:
        facts["trained_until"] = {"day": until, "left_out": aggregates.left_out_as_trained}
    if not aggregates.units_exact:
        facts["units_approximate"] = True
    by_cell = aggregates.n, aggregates.rows_by_cell
    displays, rows = (cells.reshape(aggregates.plan.loggers, -1).sum(axis=1) for cells in by_cell)
    for k, name in enumerate(loggers_of(aggregates.plan.settings.control).named):
        share = float(displays[k] / aggregates.displays) if aggregates.rows else None
        facts.setdefault("loggers", {})[name] = {"rows": int(rows[k]), "share": share}
    return facts


def options_of(plan: FoldPlan) -> dict[str, dict[str, Any]]:
    """What each estimator is, with the options that were its own and not the settings'."""
    options = {}
    for e in plan.estimators:
        own = {f.name: getattr(e, f.name) for f in dataclasses.fields(e) if f.name != "name" and f.repr}
        plain = {
            k: v if isinstance(v, str | int | float) else type(v).__name__ for k, v in own.items() if v is not None
        }
        options[e.label] = {"key": e.key, **plain}
    return options


def settings_dict(settings: Settings, plan: FoldPlan) -> dict[str, Any]:
    """The settings as a settings file would say them, with the estimators that were run."""
    analysis = dataclasses.asdict(dataclasses.replace(settings.analysis, estimators=None))
    analysis["estimators"] = [e.label for e in plan.estimators]
    if settings.analysis.value_log is not None:
        analysis["value_log"] = public(settings.analysis.value_log)
    treatments = [
        {**({} if name == TREATMENT else {"name": name}), **policy.settings()}
        for name, policy in settings.treatments.items()
    ]
    tables = {
        "log": {k: v for k, v in dataclasses.asdict(settings.log).items() if v},
        "control": loggers_of(settings.control).tables(),
        TREATMENT: treatments[0] if len(treatments) == 1 else treatments,
        **({"metrics": roles_dict(settings.metrics)} if settings.metrics else {}),
        "analysis": {k: v for k, v in analysis.items() if v is not None},
    }
    return {name: _without_credentials(table) for name, table in tables.items()}


def _without_credentials(value: Any) -> Any:
    """The settings, also those of a policy of the user's own, without what a result must not show."""
    if isinstance(value, dict):
        return {key: _without_credentials(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_without_credentials, value))
    return without_credentials(value) if isinstance(value, str) else value
