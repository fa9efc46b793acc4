"""The tables of a settings file, from its JSON Schema and the defaults of the dataclasses and policies that read it."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from foretest.policies import POLICIES
from foretest.settings.analysis import GAMMA, Analysis
from foretest.settings.json_schema import settings_schema
from foretest.settings.log_columns import LogColumns
from foretest.settings.metric_roles import MetricRole
from foretest.settings.online import Online
from generated.markdown import cell, code, table, value

_TITLES = ["key", "type", "default", "meaning"]
#: where a key is explained
_MORE = {
    "estimators": "../explanation/estimators.md#the-eight",
    "cap": "../explanation/estimators.md#choosing-the-cap",
    "capping": "../explanation/estimators.md#weights",
    "interval": "../explanation/estimators.md#intervals",
    "weight_bound": "../explanation/estimators.md#the-bound-chosen-by-the-log",
    "normaliser": "../explanation/estimators.md#the-normaliser",
    "value": "../explanation/estimators.md#the-value-model",
    "predictions": "../explanation/estimators.md#with-a-reward-model",
    "gamma": "../explanation/sensitivity.md#the-range",
    "gamma_slots": "../explanation/sensitivity.md#the-range",
    "examination": "../explanation/exposure.md#the-curve",
    "decide_on": "../explanation/sensitivity.md#the-verdict",
    "r_max": "figures.md#noise-and-bias-of-cis",
    "ignore_audit": "../explanation/audit.md",
    "baseline": "../how-to/loggers.md",
    "window": "../how-to/late-rewards.md",
    "unit": "log-format.md#roles",
    "ranking": "log-format.md#roles",
    "slot_rewards": "../explanation/slots.md",
    "segments": "../how-to/many.md#segments",
    "logger": "../how-to/loggers.md",
    "keep": "../how-to/thinned-logs.md",
    "item_features": "../explanation/estimators.md#with-a-reward-model",
    "time": "../how-to/late-rewards.md",
    "reward_time": "../how-to/late-rewards.md",
    "reward_age": "../how-to/late-rewards.md",
    "read_at": "../how-to/late-rewards.md",
    "layout": "log-format.md#one-row-per-display-and-item",
    "role": "../how-to/many.md#roles-of-metrics",
    "margin": "../how-to/many.md#roles-of-metrics",
    "sum": "../how-to/metrics.md",
    "ratio": "../how-to/metrics.md",
    "per": "../how-to/metrics.md",
    "winsorise": "../how-to/metrics.md#heavy-tails",
    "split": "../how-to/online.md",
    "covariate": "../how-to/online.md#a-covariate-from-before-the-test",
    "sequential": "../how-to/sequential.md",
}
#: defaults that are chosen later, in words
_DEFAULTS = {"gamma": f"{value(list(GAMMA))} for rankings", "examination": '`"fit"`', "r_max": "1 for bool columns"}


def parts() -> dict[str, str]:
    """The text of each table, by name."""
    schema = settings_schema()["properties"]
    return {
        "log": _keys(LogColumns, schema["log"]),
        "policies": _policies(settings_schema()["$defs"]["policy"]["oneOf"]),
        "metrics": _keys(MetricRole, schema["metrics"]["additionalProperties"]),
        "analysis": _keys(Analysis, schema["analysis"]),
        "online": _keys(Online, schema["online"]),
    }


def _keys(cls: type[Any], schema: dict[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = []
    for field in dataclasses.fields(cls):
        entry = schema["properties"][field.name]
        default = "needed" if field.name in needed else _DEFAULTS.get(field.name) or value(field.default)
        rows.append([code(field.name), type_text(entry), default, _meaning(field.name, entry)])
    return table(_TITLES, rows)


def _policies(schemas: list[dict[str, Any]]) -> str:
    sections = []
    for schema in schemas:
        name = schema["properties"]["policy"].get("const")
        if name is None:  # a class of the user's own
            continue
        cls = POLICIES[name]
        defaults = {p.name: p.default for p in inspect.signature(cls).parameters.values()}
        rows = [
            [
                code(key),
                type_text(entry),
                "needed" if key in schema["required"] else value(defaults.get(key)),
                cell(entry.get("description", "")),
            ]
            for key, entry in schema["properties"].items()
            if key not in ("policy", "name")
        ]
        sections.append(f'### {name}\n\n`policy = "{name}"`, in Python `ft.{cls.__name__}`.\n\n{table(_TITLES, rows)}')
    return "\n\n".join(sections)


def _meaning(key: str, entry: dict[str, Any]) -> str:
    text = cell(entry.get("description", ""))
    return f"{text} ([more]({_MORE[key]}))" if key in _MORE else text


def type_text(schema: dict[str, Any]) -> str:
    """A type in words.

    >>> type_text({"anyOf": [{"type": "number"}, {"type": "string"}]})
    'number or text'
    """
    if "enum" in schema:
        return " or ".join(value(one) for one in schema["enum"])
    if "const" in schema:
        return value(schema["const"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_text(one) for one in schema["anyOf"]))
    if schema.get("type") == "array":
        items = type_text(schema.get("items", {}))
        return f"{schema['minItems']} {items}s" if "maxItems" in schema else f"list of {items}" if items else "list"
    words = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false", "object": "table"}
    return words.get(schema.get("type", ""), "")
