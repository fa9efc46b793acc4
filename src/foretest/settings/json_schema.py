"""The JSON Schema of a settings file, made from the dataclasses and policies that read it: editors complete and check
TOML by it. `schema/settings-1.json` is what this writes: python -m foretest.settings.json_schema."""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from foretest.policies import POLICIES, Mixture, Policy
from foretest.settings.analysis import Analysis
from foretest.settings.key_help import parameter_texts
from foretest.settings.log_columns import LogColumns
from foretest.settings.long_layout import LAYOUTS
from foretest.settings.metric_kinds import UNIT
from foretest.settings.metric_roles import DIRECTIONS, ROLES, MetricRole
from foretest.settings.online import Online

FILE = Path(__file__).parent.parent / "schema" / "settings-1.json"

_PAIR = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_NAMES = {"type": "array", "items": {"type": "string"}}
#: what a type does not say, by dataclass and key
_KNOWN: dict[tuple[type[Any], str], dict[str, Any]] = {
    (LogColumns, "rewards"): {**_NAMES, "minItems": 1},
    (LogColumns, "layout"): {"enum": list(LAYOUTS)},
    (LogColumns, "first_slot"): {"enum": [0, 1]},
    (Analysis, "estimators"): {**_NAMES, "minItems": 1},
    (Analysis, "capping"): {"enum": ["max", "zero"]},
    (Analysis, "interval"): {"enum": ["bootstrap", "delta", "bernstein", "betting"]},
    (Analysis, "decide_on"): {"enum": ["interval", "band"]},
    (Analysis, "gamma"): {"anyOf": [{"type": "number"}, _PAIR]},
    (Analysis, "gamma_slots"): {"anyOf": [{"type": "number"}, _PAIR]},
    (MetricRole, "role"): {"enum": list(ROLES)},
    (MetricRole, "direction"): {"enum": list(DIRECTIONS)},
    (MetricRole, "per"): {"const": UNIT},
}
_OWN_CANDIDATES = "the list column with the ids of the policy's own candidates, where they differ from the log's"


def settings_schema() -> dict[str, Any]:
    """The schema of a settings file; an online test needs neither [control] nor [treatment]."""
    several = {"type": "array", "items": {"$ref": "#/$defs/named policy"}, "minItems": 1}
    policies = {"anyOf": [{"$ref": "#/$defs/policy"}, several]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of a Foretest test",
        "type": "object",
        "required": ["log"],
        "properties": {
            "log": {**_table(LogColumns), "required": ["rewards"]},
            "control": {"description": "the policy that produced the log, or several", **policies},
            "treatment": {"description": "the policy to try, or several", **policies},
            "metrics": {
                "description": "what metrics are for, and made of, by name",
                "type": "object",
                "additionalProperties": _table(MetricRole),
            },
            "analysis": _table(Analysis),
            "online": _table(Online),
        },
        "additionalProperties": False,
        "$defs": {"policy": _policies(["name"]), "named policy": _policies(["name"]), "part": _policies(["share"])},
    }


def _table(cls: type[Any]) -> dict[str, Any]:
    """The table that a dataclass reads."""
    hints = typing.get_type_hints(cls)
    properties = {}
    for field in dataclasses.fields(cls):
        schema = dict(_KNOWN.get((cls, field.name)) or _of_type(hints[field.name]))
        properties[field.name] = _explained(schema, field.metadata.get("help"))
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _explained(schema: dict[str, Any], text: str | None) -> dict[str, Any]:
    return schema if text is None else {"description": text, **schema}


def _policies(also: list[str]) -> dict[str, Any]:
    """Any policy; a class of the user's own takes any key. `also` are keys that the table has beside its policy's."""
    more: dict[str, Any] = {key: {"type": "number" if key == "share" else "string"} for key in also}
    own = {
        "properties": {"policy": {"type": "string", "pattern": "^[^:]+:[^:]+$"}, **more},
        "required": ["policy"],
    }
    return {"type": "object", "oneOf": [*(_policy(name, cls, more) for name, cls in POLICIES.items()), own]}


def _policy(name: str, cls: type[Policy], more: Mapping[str, Any]) -> dict[str, Any]:
    parameters = [p for p in inspect.signature(cls).parameters.values() if p.kind is not p.VAR_KEYWORD]
    hints = typing.get_type_hints(cls.__init__, vars(inspect.getmodule(cls)))
    texts = parameter_texts(cls)
    properties = {p.name: _explained(_of_type(hints[p.name]), texts.get(p.name)) for p in parameters if p.name in hints}
    if cls is Mixture:
        parts = {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 1}
        properties["components"] = _explained(parts, texts.get("components"))
    if cls.can_draw:
        properties["candidates"] = _explained({"type": "string"}, _OWN_CANDIDATES)
    return {
        "properties": {"policy": {"const": name}, **properties, **more},
        "required": ["policy", *(p.name for p in parameters if p.default is p.empty)],
        "additionalProperties": False,
    }


_PLAIN: dict[Any, dict[str, Any]] = {
    date: {"type": "string", "format": "date"}, str: {"type": "string"},
    bool: {"type": "boolean"}, int: {"type": "integer"}, float: {"type": "number"}, Any: {},
}  # fmt: skip


def _of_type(hint: Any) -> dict[str, Any]:
    """The schema of a type; TOML has no null, so that a key that may be None is left out instead."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        ignored = {type(None), *([str] if date in arguments else [])}  # a date may be written as text
        kinds = [_of_type(one) for one in arguments if one not in ignored]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if origin is tuple:
        items = _of_type(arguments[0])
        same = {"type": "array", "items": items}
        return same if arguments[-1] is Ellipsis else {**same, "minItems": len(arguments), "maxItems": len(arguments)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of_type(arguments[1])}
    return {}


def schema_text() -> str:
    """The schema as it is shipped."""
    return json.dumps(settings_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(schema_text(), encoding="utf-8")
