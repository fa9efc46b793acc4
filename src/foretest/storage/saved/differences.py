"""What differs between the settings that sums were made with, in words."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from foretest.storage.saved.json_values import EstimatorRecord, Tables

#: What may still change once a log is folded; estimators may be fewer.
FREE = ("confidence_level", "interval", "n_resamples", "headline", "gamma", "gamma_slots", "decide_on", "ignore_audit")


class Difference(NamedTuple):
    """A setting that two tables of settings do not share, and its value in each; None where it is not given."""

    key: str
    mine: Any
    theirs: Any


def binding_settings(tables: Tables) -> dict[str, Any]:
    """The settings that must agree for sums to add up, by the name that a user knows: without those that are free."""
    named: dict[str, Any] = {}
    for table, settings in tables.items():
        if table == "metrics":
            named |= _definitions(settings)
            continue
        for key, value in settings.items():
            if table == "log" and key == "read_at":  # every log has its own
                continue
            if table != "analysis":
                named[f"[{table}] {key}"] = value
            elif key not in FREE and key != "estimators":
                named[key] = value
    return named


def _definitions(metrics: dict[str, Any]) -> dict[str, Any]:
    """What a log is folded into; the roles of metrics, ratios and values per unit matter only for reading a result."""
    return {
        f"[metrics.{name}] {key}": table[key]
        for name, table in metrics.items()
        for key in ("sum", "signed", "winsorise")
        if key in table
    }


def find_difference(mine: Tables, theirs: Tables) -> Difference | None:
    """The first setting that differs; None where all that must agree do."""
    a, b = binding_settings(mine), binding_settings(theirs)
    for key in dict.fromkeys([*a, *b]):
        if a.get(key) != b.get(key):
            return Difference(key, a.get(key), b.get(key))
    return None


def difference_text(mine: Tables, theirs: Tables) -> str | None:
    """How settings differed from what they are now, in words; None where they are the same.

    >>> difference_text({"analysis": {"buckets": 1024}}, {"analysis": {"buckets": 64}})
    'with buckets = 1024, not with buckets = 64'
    """
    difference = find_difference(mine, theirs)
    if difference is None:
        return None
    return f"{with_setting(difference.key, difference.mine)}, not {with_setting(difference.key, difference.theirs)}"


def with_setting(key: str, value: Any) -> str:
    """A setting and its value, as what something was made with.

    >>> with_setting("cap", 5.0), with_setting("strata", None)
    ('with cap = 5', 'without strata')
    """
    return f"without {key}" if value is None else f"with {key} = {value_text(value)}"


def value_text(value: Any) -> str:
    """A value as a settings file has it; whole numbers without a fraction."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def estimator_text(record: EstimatorRecord) -> str:
    """An estimator's label with the parameters that were given to it, and its class if it is a user's own."""
    what = record["what"]
    given = {k: v for k, v in what.items() if k not in ("class", "name") and v is not None}
    own = [] if what["class"].startswith("foretest.") else [what["class"]]
    details = ", ".join([*own, *(f"{key} = {value_text(value)}" for key, value in given.items())])
    return f"{record['label']} ({details})" if details else record["label"]
