"""Settings as they would be written: the fields that differ from their defaults."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from foretest.formatting import shortened

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Fields = dict[str, Any]  # values by name, in the order of the constructor


def changed_fields(instance: DataclassInstance) -> Fields:
    """The fields that have no default, or another value than their default."""
    return {
        field.name: value
        for field in dataclasses.fields(instance)
        if (value := getattr(instance, field.name)) is not _default(field) and value != _default(field)
    }


def call_text(instance: object, fields: Fields, *, in_lines: bool = False) -> str:
    """The constructor's call with these arguments, in one line or in one line for each; long values are cut short."""
    arguments = [f"{name}={shortened(repr(value))}" for name, value in fields.items()]
    if in_lines:
        return f"{type(instance).__name__}(\n" + "".join(f"    {text},\n" for text in arguments) + ")"
    return f"{type(instance).__name__}({', '.join(arguments)})"


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
