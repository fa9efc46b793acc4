"""The JSON documents that Foretest writes, field by field, from the schemas that ship with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import foretest
from generated.markdown import cell, code, table, value

_SCHEMAS = Path(foretest.__file__).parent / "schema"
DOCUMENTS = {
    "result": ("result.json", "[explained](result-json.md)"),
    "plan": ("plan.json", "[explained](../how-to/plan.md)"),
    "agreement": ("agreement.json", "[explained](../how-to/history.md)"),
    "calibration": ("calibration.json", "[explained](../how-to/calibration.md)"),
    "display-log": (
        "display-log.jsonl",
        "one row of a log as a service writes it, [explained](../how-to/what-to-log.md)",
    ),
}
_WORDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false", "object": "object",
          "array": "list", "null": "null"}  # fmt: skip


def text() -> str:
    """One section per document, one table per kind of object in it."""
    return "\n\n".join(_document(name, *words) for name, words in DOCUMENTS.items())


def _document(name: str, title: str, more: str) -> str:
    schema = json.loads((_SCHEMAS / f"{name}-1.json").read_text(encoding="utf-8"))
    parts = [f"## {title}", f"`foretest/schema/{name}-1.json`, {more}."]
    parts.append(_fields(schema, title))
    for kind, definition in schema["$defs"].items():
        if definition.get("properties"):
            parts += [f"### {_kind_title(kind, title)}", _fields(definition, title)]
    return "\n\n".join(parts)


def _kind_title(kind: str, title: str) -> str:
    return f"{kind} in {title}"


def _anchor(kind: str, title: str) -> str:
    return "#" + _kind_title(kind, title).lower().replace(" ", "-").replace(".", "")


def _fields(schema: dict[str, Any], title: str) -> str:
    rows = (
        [code(path), _type(entry, title) + ("" if needed else ", or absent"), cell(entry.get("description", ""))]
        for path, entry, needed in _walk(schema, "")
    )
    return table(["field", "type", "meaning"], rows)


def _walk(schema: dict[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Every field, those of objects within it too; NAME stands for any key, [] for any place of a list."""
    for name, entry in schema.get("properties", {}).items():
        yield f"{prefix}{name}", entry, name in schema.get("required", ())
        yield from _inside(entry, f"{prefix}{name}")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _inside(schema["additionalProperties"], f"{prefix}NAME")


def _inside(entry: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
    yield from _walk(entry, f"{path}.")
    if isinstance(entry.get("items"), dict):
        yield from _inside(entry["items"], f"{path}[]")
    for kind in (*entry.get("oneOf", ()), *entry.get("anyOf", ())):
        yield from _inside(kind, path)


def _type(entry: dict[str, Any], title: str) -> str:
    if "$ref" in entry:
        kind = entry["$ref"].rpartition("/")[2]
        schema = json.loads((_SCHEMAS / f"{title.partition('.')[0]}-1.json").read_text(encoding="utf-8"))["$defs"][kind]
        return f"[{kind}]({_anchor(kind, title)})" if schema.get("properties") else _type(schema, title)
    if "const" in entry:
        return value(entry["const"])
    if "enum" in entry:
        return " or ".join("null" if one is None else value(one) for one in entry["enum"])
    if "oneOf" in entry or "anyOf" in entry:
        kinds = [_type(one, title) for one in (*entry.get("oneOf", ()), *entry.get("anyOf", ()))]
        return " or ".join(dict.fromkeys(sorted(kinds, key=lambda kind: kind == "null")))
    kinds = entry.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    names = [_one_type(kind, entry, title) for kind in sorted(kinds, key=lambda kind: kind == "null")]
    return " or ".join(names)


def _one_type(kind: str, entry: dict[str, Any], title: str) -> str:
    if kind == "array" and (inner := _type(entry.get("items", {}), title)):
        return f"list of {inner}"
    if kind == "object" and isinstance(entry.get("additionalProperties"), dict):
        inner = _type(entry["additionalProperties"], title)
        return f"by name: {inner}" if inner else "object"
    return _WORDS[kind]
