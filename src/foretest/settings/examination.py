"""The examination curve as settings give it: numbers, "fit", an earlier result, by a column's values, by metric."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from foretest.errors import BadInput, nearest
from foretest.files import read_text
from foretest.stores import location

if TYPE_CHECKING:
    from foretest.weights.examination import Curves

FIT = "fit"
_BY_COLUMN = {"column", "curves"}
_EXPECTED = (
    f'expected one number above 0 per slot, as in [1.0, 0.6, 0.4], "{FIT}", the path of a result.json that has a curve,'
    ' {column = "device", curves = {phone = [1.0, 0.4]}}, or a table of these by metric'
)


def checked_examination(value: Any) -> Any:
    """The setting in its plain form: tuples of numbers, mappings, or "fit"; a path is replaced by what the file has."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str) and value != FIT:
        return _from_result(value)
    if isinstance(value, Mapping) and not _BY_COLUMN & set(value):
        if not value:
            raise BadInput(f"examination is an empty table: {_EXPECTED}.")
        return {name: _checked(f"examination of '{name}'", one) for name, one in value.items()}
    return _checked("examination", value)


def _checked(name: str, value: Any) -> Any:
    """One metric's curve, or curves."""
    if value == FIT:
        return FIT
    if isinstance(value, Mapping):
        return _by_column(name, value)
    return _curve(name, value)


def _curve(name: str, value: Any) -> tuple[float, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise BadInput(f"{name} = {value!r}: {_EXPECTED}.")
    for slot, number in enumerate(value, start=1):
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number) or number <= 0:
            raise BadInput(
                f"{name} = {value!r}: slot {slot} has {number!r}. A slot's number is how likely a user looks at it, in"
                " any unit, and must be above 0; leave out slots that nobody sees."
            )
    return tuple(float(number) for number in value)


def _by_column(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    if set(value) != _BY_COLUMN or not isinstance(value["column"], str) or not isinstance(value["curves"], Mapping):
        raise BadInput(f"{name} = {value!r}: {_EXPECTED}.")
    if not value["curves"]:
        raise BadInput(f"{name}: curves is empty. Give one for each value of '{value['column']}'.")
    curves = {str(label): _curve(f"{name} for '{label}'", curve) for label, curve in value["curves"].items()}
    return {"column": value["column"], "curves": curves}


def _from_result(path: str) -> Any:
    """The curves that an earlier result has, by metric where they differ."""
    if not location(path).exists():
        near = nearest(location(path).name, [FIT])
        raise BadInput(f'examination = "{path}": no such file.{near} {_EXPECTED[0].upper()}{_EXPECTED[1:]}.')
    text = read_text(location(path), "result", "expected the result.json of a run that used an examination curve.")
    try:
        document = json.loads(text)
        found = {name: metric["examination"] for name, metric in document["metrics"].items() if "examination" in metric}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BadInput(f'examination = "{path}": not a result.json. {_EXPECTED[0].upper()}{_EXPECTED[1:]}.') from None
    if not found:
        raise BadInput(f'examination = "{path}": this result has no examination curve: no estimator by exposure ran.')
    curves = {}
    for name, entry in found.items():
        given = entry if isinstance(entry, Mapping) else {}
        by_column = {key: given[key] for key in _BY_COLUMN if key in given}
        curves[name] = _checked(f"{path}: examination of '{name}'", by_column or given.get("theta"))
    return next(iter(curves.values())) if len(curves) == 1 else curves


def check_metrics(setting: Any, rewards: tuple[str, ...], slot_rewards: Mapping[str, str] | None) -> None:
    """Refuse a curve where no slot's reward is known, and a table by metric that names no reward."""
    if setting not in (None, FIT) and not slot_rewards:
        raise BadInput(
            "[analysis] examination is given, and the log does not say which slot earned the reward: name the list"
            f' column that says it, as in [log] slot_rewards = {{{rewards[0]} = "slot_{rewards[0]}"}}, or take'
            " examination out."
        )
    for name in setting if isinstance(setting, Mapping) and not _BY_COLUMN & set(setting) else ():
        if name not in rewards:
            raise BadInput(
                f"[analysis] examination names '{name}', which is no reward.{nearest(str(name), rewards)}"
                f" The rewards are: {', '.join(rewards)}."
            )


def curves_of(setting: Any, metric: str) -> Curves | None:
    """The curves that are given for a metric; None where its curve is to be fitted."""
    if isinstance(setting, Mapping) and not _BY_COLUMN & set(setting):
        setting = setting.get(metric, FIT)
    if setting is None or setting == FIT:
        return None
    from foretest.weights.examination import Curves

    if isinstance(setting, Mapping):
        return Curves(tuple(setting["curves"].values()), tuple(setting["curves"]), setting["column"])
    return Curves((setting,))


def examination_columns(setting: Any) -> tuple[str, ...]:
    """The columns whose values choose among curves."""
    tables = setting.values() if isinstance(setting, Mapping) and not _BY_COLUMN & set(setting) else [setting]
    return tuple(dict.fromkeys(table["column"] for table in tables if isinstance(table, Mapping)))
