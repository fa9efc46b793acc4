"""What a JSON file says, field by field, as the types of dataclasses have it: what is not so is named."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from foretest.errors import is_finite_number
from foretest.results.audit import FAIL, NOT_MADE, PASS, UNVERIFIED, WARN
from foretest.results.result import Estimate
from foretest.results.uplift_range import KINDS, WORDS, Range

VERDICTS = ("positive", "neutral", "negative", "insufficient")
_CHOICES = {(Estimate, "verdict"): VERDICTS, (Estimate, "word"): WORDS, (Range, "kind"): KINDS}
_OUTCOMES = (FAIL, WARN, UNVERIFIED, NOT_MADE, PASS)


class Damaged(ValueError):
    """A file that is not as Foretest writes it; the message says what is wrong."""


def checked(kind: Any, where: str, value: Any) -> Any:
    """The value of a field, if it is of that kind: a number is NaN where the file has null and null is none of its
    kinds; of a dataclass all fields without a default must be there, and no other."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin is UnionType:
        return None if value is None and NoneType in args else checked(args[0], where, value)
    if dataclasses.is_dataclass(kind):
        return _checked_object(kind, where, value)
    if origin is dict:
        if not isinstance(value, Mapping):
            raise Damaged(f"{where} is no table")
        return {str(key): checked(args[1], f"{where}.{key}", inner) for key, inner in value.items()}
    if origin is list:
        if not isinstance(value, list):
            raise Damaged(f"{where} is no list")
        return [checked(args[0], where, inner) for inner in value]
    if kind is float:
        return math.nan if value is None else number(where, value)
    if kind is int:
        return count(where, value)
    if not isinstance(value, kind):
        raise Damaged(f"{where} is no {'text' if kind is str else 'true or false'}")
    return value


def _checked_object(kind: Any, where: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise Damaged(f"{where} is no table")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name in [*value, *fields]:
        if name not in fields:
            raise Damaged(f"{where}.{name} is no field")
        if name not in value and fields[name].default is fields[name].default_factory is dataclasses.MISSING:
            raise Damaged(f"{where}.{name} is missing")
    hints = _kinds(kind)
    content = {name: checked(hints[name], f"{where}.{name}", inner) for name, inner in value.items()}
    for name, inner in content.items():
        if inner not in _CHOICES.get((kind, name), (inner,)):
            raise Damaged(f"{where}.{name} is {inner!r}")
    if kind is Estimate and content.get("unsupported_noise") is not None:
        for name in ("std_error", "covariance"):
            checked(float, f"{where}.unsupported_noise.{name}", content["unsupported_noise"][name])
    return kind(**content)


@cache
def _kinds(cls: type) -> dict[str, Any]:
    """The kinds of a class's fields."""
    return get_type_hints(cls, localns={"Range": Range})


def checked_audit(where: str, value: Any) -> dict[str, Any] | None:
    """The outcomes of an audit, as agreement.json has them; None where there was none."""
    if value is None:
        return None
    audit: dict[str, Any] = checked(dict[str, Any], where, value)
    checked(bool, f"{where}.ignored", audit["ignored"])
    outcomes = {"outcome": audit["outcome"], **checked(dict[str, str], f"{where}.tests", audit["tests"])}
    for name, outcome in outcomes.items():
        if outcome not in _OUTCOMES:
            raise Damaged(f"{where}.{name} is {outcome!r}")
    return audit


def number(where: str, value: Any) -> float:
    """A finite number."""
    if not is_finite_number(value):
        raise Damaged(f"{where} is no number")
    return float(value)


def count(where: str, value: Any) -> int:
    """A whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Damaged(f"{where} is no count")
    return value
