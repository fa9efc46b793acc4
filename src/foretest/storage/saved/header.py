"""The header of a saved file, checked part by part: what is read from it later has the type that it is used as."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from foretest.errors import is_finite_number

Check = Callable[[Any], bool]


def check_header(document: Any) -> None:
    """Refuse, with a ValueError that names the part, a header that cannot have been written by `write_aggregates`."""
    if not isinstance(document, Mapping):
        raise ValueError("its header is no table")
    for name, is_right in _PARTS.items():
        if name not in document and name not in ("rows", "packed", "item_model"):
            raise ValueError(f"its header has no {name}")
        if name in document and not is_right(document[name]):
            raise ValueError(f"its header has a wrong {name}")
    settings, policies = document["settings"], document["policies"]
    for table in ("log", "control", "analysis"):
        if table not in settings:
            raise ValueError(f"its header has no [{table}]")
    if "control" not in policies:
        raise ValueError("its header has no control")
    if not _is_days(settings["control"].get("shares", {})):
        raise ValueError("its header has wrong shares of loggers")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _all_in_list(is_right: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(is_right, value))


def _all_in_table(is_right: Check) -> Check:
    return lambda value: isinstance(value, Mapping) and all(map(is_right, value.values()))


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


_is_days = _all_in_table(_all_in_list(lambda value: is_finite_number(value) and value >= 0))


def _is_estimator(value: Any) -> bool:
    return (
        _is_table(value)
        and all(isinstance(value.get(key), str) for key in ("label", "key"))
        and isinstance(value.get("plain"), bool)
        and _is_table(value.get("what"))
        and isinstance(value["what"].get("class"), str)
    )


def _is_policy(value: Any) -> bool:
    if not _is_table(value) or set(value) != {"columns", "can_draw"}:
        return False
    return isinstance(value["can_draw"], bool) and _all_in_list(_is_text)(value["columns"])


def _is_input(value: Any) -> bool:
    return _is_table(value) and all(isinstance(value.get(key), str) for key in ("path", "content"))


def _is_place(value: Any) -> bool:
    """Where the kept rows are: the number of a row group, and the blocks from there."""
    return (
        _is_table(value)
        and all(_is_count(value.get(key)) for key in ("group", "limit"))
        and all(_all_in_list(_is_count)(value.get(key)) for key in ("ends", "hashes"))
    )


_PARTS: dict[str, Check] = {
    "settings": _all_in_table(_is_table),
    "estimators": _all_in_list(_is_estimator),
    "policies": _all_in_table(_is_policy),
    "treatments": lambda value: _all_in_list(_is_text)(value) and len(value) > 0,
    "value_model": lambda value: value is None or _is_text(value),
    "item_model": lambda value: value is None or _is_text(value),
    "r_max": _all_in_table(is_finite_number),
    "notes": _all_in_list(_is_text),
    "inputs": _all_in_list(_is_input),
    "cap_choice": lambda value: value is None or _is_table(value),
    "rows": _is_count,
    "kept": _all_in_table(_is_place),
    "packed": _is_table,
}
