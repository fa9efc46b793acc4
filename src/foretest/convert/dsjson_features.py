"""Shared features of a decision's context as columns: scalars, under their namespaces' names joined by dots."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from foretest.errors import is_finite_number

MOST = 100  # columns, the first that a log has

_BOOL, _NUMBER, _TEXT = "bool", "number", "text"


def scalars(context: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, bool | float | str]]:
    """Names and values of a context's scalars. Names that begin with _ are no features, as for the service itself.

    >>> list(scalars({"hour": 7, "User": [{"tier": "pro", "_age": 4}], "_multi": [{}], "embedding": [0.1, 0.2]}))
    [('hour', 7.0), ('User.tier', 'pro')]
    """
    for key, value in context.items():
        if key.startswith("_"):
            continue
        name = f"{prefix}{key}"
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                yield from scalars(item, f"{name}.")
            elif not isinstance(value, list) and isinstance(item, bool | str):
                yield name, item
            elif not isinstance(value, list) and is_finite_number(item):
                yield name, float(item)


class FeatureColumns:
    """The features of a log and what kinds of values each has."""

    def __init__(self) -> None:
        self.kinds: dict[str, set[str]] = {}
        self.others: set[str] = set()  # beyond the most

    def see(self, context: dict[str, Any]) -> None:
        """Note the features of one context."""
        for name, value in scalars(context):
            kind = _BOOL if isinstance(value, bool) else _TEXT if isinstance(value, str) else _NUMBER
            if name in self.kinds or len(self.kinds) < MOST:
                self.kinds.setdefault(name, set()).add(kind)
            elif len(self.others) < 10_000:
                self.others.add(name)

    def fields(self, taken: list[str]) -> dict[str, pa.Field]:
        """The column of each feature; a name that is taken gets an underscore."""
        fields: dict[str, pa.Field] = {}
        names = set(taken)
        for feature, kinds in self.kinds.items():
            name = plain_text(feature)
            while name in names:
                name = f"{name}_"
            names.add(name)
            plain = pa.bool_() if kinds == {_BOOL} else pa.float64() if _TEXT not in kinds else pa.string()
            fields[feature] = pa.field(name, plain)
        return fields


def feature_array(values: list[bool | float | str | None], kind: pa.DataType) -> pa.Array:
    """The values of one column; where some are text, numbers are the text that JSON has for them."""
    if pa.types.is_string(kind):
        texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        return pa.array([None if text is None else plain_text(text) for text in texts], kind)
    return pa.array(values if pa.types.is_boolean(kind) else [None if v is None else float(v) for v in values], kind)


def plain_text(text: str) -> str:
    """The text with half characters (lone surrogates), which no file can hold, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
