"""A history manifest: TOML that lists A/B tests, each with the logs of its two arms."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from foretest.errors import BadInput, is_finite_number
from foretest.files import user_path
from foretest.settings.file import read_tables
from foretest.settings.unknown_keys import refuse_unknown
from foretest.stores import Location, joined, location


class Entry(NamedTuple):
    """One A/B test of a history; paths are resolved."""

    name: str
    control: Location
    treatment: Location
    settings: Location
    date: str | None = None  # the day it began, where the manifest says so


class Manifest(NamedTuple):
    """The tests in order, and the known truth of simulated ones (the relative uplift by test and metric name)."""

    tests: list[Entry]
    truth: dict[str, float]


def read_manifest(path: str | Location) -> Manifest:
    """Read a manifest; paths in it are relative to its folder. Every error names the test it is about."""
    path = location(path)
    tables = read_tables(path, "manifest")
    try:
        refuse_unknown("the manifest", tables, ["settings", "truth", "test"])
        listed = tables.get("test")
        if not isinstance(listed, list) or not listed:
            raise BadInput("no [[test]] table: list each A/B test with name, control and treatment.")
        tests = [_entry(table, number, tables.get("settings"), path.parent) for number, table in enumerate(listed, 1)]
        names = [test.name for test in tests]
        for name in names:
            if names.count(name) > 1:
                raise BadInput(f"two tests are named '{name}'.")
        truth = {} if "truth" not in tables else _truth(_text("truth", tables["truth"]), path.parent)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    return Manifest(tests, truth)


def _entry(table: Any, number: int, settings: Any, folder: Location) -> Entry:
    if not isinstance(table, Mapping):
        raise BadInput(f"test {number}: expected a table, [[test]].")
    name = table.get("name")
    where = f"test '{name}'" if isinstance(name, str) else f"test {number}"
    refuse_unknown(where, table, ["name", "control", "treatment", "settings", "date"])
    for key in ("name", "control", "treatment"):
        if key not in table:
            raise BadInput(f"{where}: {key} is missing.")
    own = table.get("settings", settings)
    if own is None:
        raise BadInput(f'{where}: no settings file: write settings = "settings.toml" at the top, or in the test.')
    values = {key: _text(f"{where}: {key}", value) for key, value in table.items() if key not in ("settings", "date")}
    if values["control"] == values["treatment"]:
        raise BadInput(f"{where}: the log {values['control']} is listed as both arms.")
    return Entry(
        values["name"],
        joined(folder, values["control"]),
        joined(folder, values["treatment"]),
        joined(folder, _text(f"{where}: settings", own)),
        _date(where, table.get("date")),
    )


def _date(where: str, value: Any) -> str | None:
    """A day, as TOML has it or as text."""
    if isinstance(value, datetime.datetime):
        value = value.date()
    try:
        day = datetime.date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        day = value
    if day is not None and not isinstance(day, datetime.date):
        raise BadInput(f"{where}: date = {value!r}: expected a day, as in date = 2026-03-02.")
    return None if day is None else day.isoformat()


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise BadInput(f"{where} = {value!r}: expected text.")
    return value


def _truth(name: str, folder: Location) -> dict[str, float]:
    path = joined(folder, name)
    user_path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        truth = {test: values["rel_uplift"] for test, values in content.items()}
        if not all(map(is_finite_number, truth.values())):
            raise ValueError("no number")
        return {test: float(uplift) for test, uplift in truth.items()}
    except OSError as error:
        raise BadInput(f'truth = "{name}": {error.strerror or error}.') from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BadInput(f'truth = "{name}": expected JSON such as {{"<test>": {{"rel_uplift": 0.02}}}}.') from None
