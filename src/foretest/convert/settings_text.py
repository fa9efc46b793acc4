"""A settings file as text, from its tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def settings_text(tables: Mapping[str, Any], comment: str, hints: Mapping[str, str] | None = None) -> str:
    """TOML with these tables, after a comment. `hints` are comments by table, each the last lines of its own.

    >>> print(settings_text({"log": {"rewards": ["click"]}, "control": {"policy": "logged"}}, "A log.", {"log": "id?"}))
    # A log.
    <BLANKLINE>
    [log]
    rewards = ["click"]
    # id?
    <BLANKLINE>
    [control]
    policy = "logged"
    <BLANKLINE>
    """
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    for name, table in tables.items():
        for one in table if isinstance(table, list) else [table]:
            lines += ["", *_table(name, one, is_list=isinstance(table, list))]
        if hints and name in hints:
            lines += [f"# {line}" for line in hints[name].splitlines()]
    return "\n".join(lines) + "\n"


def _table(name: str, table: Mapping[str, Any], *, is_list: bool = False) -> Iterator[str]:
    """The lines of one table: its values, then the tables in it."""
    yield f"[[{name}]]" if is_list else f"[{name}]"
    inner = {key: value for key, value in table.items() if _is_tables(value)}
    for key, value in table.items():
        if key not in inner and value is not None:
            yield f"{_key(key)} = {_value(value)}"
    for key, tables in inner.items():
        for one in tables:
            yield ""
            yield from _table(f"{name}.{_key(key)}", one, is_list=True)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)


def _text(value: str) -> str:
    """TOML's basic strings have JSON's escapes, and one more."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if key and all(c.isascii() and (c.isalnum() or c in "_-") for c in key) else _text(key)
