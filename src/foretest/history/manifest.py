"""A history manifest: TOML that lists A/B tests, each with the logs of its two arms, or with results in their place."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from foretest.errors import BadInput, check_integer, is_finite_number
from foretest.files import user_path
from foretest.history.online_results import ArmResults, OnlineResult, read_online
from foretest.history.results_table import ListedTest, read_results_table
from foretest.settings.file import read_tables
from foretest.settings.unknown_keys import refuse_unknown
from foretest.storage.ownership import JSON_KEY
from foretest.stores import Location, joined, location

_PATHS = ("control", "treatment", "offline")
KEYS = ("name", *_PATHS, "online", "shared_units", "settings", "date")


class Entry(NamedTuple):
    """One A/B test of a history; paths are resolved.

    The offline side is the log `control`, or the result file `offline`; the online side is the log `treatment` with
    that of the control, or the results in `online`.
    """

    name: str
    control: Location | None
    treatment: Location | None
    settings: Location | None  # None only where the offline side is a result, which has its own
    date: str | None = None  # the day it began, where the manifest says so
    offline: Location | None = None
    online: Mapping[str, OnlineResult] | None = None  # by metric
    shared_units: int | None = None  # units of the online control arm that are in the offline log; None: not said


class Manifest(NamedTuple):
    """The tests in order, the known truth of simulated ones (the relative uplift by test and metric name), and the
    table of results, where there is one."""

    tests: list[Entry]
    truth: dict[str, float]
    results: Location | None = None


def read_manifest(path: str | Location) -> Manifest:
    """Read a manifest; paths in it are relative to its folder. Every error names the test it is about."""
    path = location(path)
    tables = read_tables(path, "manifest")
    try:
        refuse_unknown("the manifest", tables, ["settings", "truth", "results", "test"])
        results = None if "results" not in tables else joined(path.parent, _text("results", tables["results"]))
        listed = _listed(tables, results)
        tests = [_entry(test, tables.get("settings"), path.parent) for test in listed]
        names = [test.name for test in tests]
        for name in names:
            if names.count(name) > 1:
                raise BadInput(f"two tests are named '{name}'.")
        truth = {} if "truth" not in tables else _truth(_text("truth", tables["truth"]), path.parent)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    return Manifest(tests, truth, results)


def _listed(tables: Mapping[str, Any], results: Location | None) -> list[ListedTest]:
    """All tests, those of a table of results last."""
    listed = tables.get("test", [] if results is not None else None)
    if not isinstance(listed, list) or not (listed or results):
        raise BadInput("no [[test]] table: list each A/B test with name, control and treatment.")
    named = [
        ListedTest(f"test '{table['name']}'" if _has_name(table) else f"test {number}", table)
        for number, table in enumerate(listed, 1)
    ]
    return named if results is None else [*named, *read_results_table(results)]


def _has_name(table: Any) -> bool:
    return isinstance(table, Mapping) and isinstance(table.get("name"), str)


def _entry(test: ListedTest, settings: Any, folder: Location) -> Entry:
    where, table, online = test
    if not isinstance(table, Mapping):
        raise BadInput(f"{where}: expected a table, [[test]].")
    refuse_unknown(where, table, list(KEYS))
    if "name" not in table:
        raise BadInput(f"{where}: name is missing.")
    _refuse_sides(where, [*table, *(["online"] if online else [])])
    own = table.get("settings", settings)
    if own is None and "offline" not in table:
        raise BadInput(f'{where}: no settings file: write settings = "settings.toml" at the top, or in the test.')
    name = _text(f"{where}: name", table["name"])
    paths = {key: _text(f"{where}: {key}", table[key]) for key in _PATHS if key in table}
    if "control" in paths and paths["control"] == paths.get("treatment"):
        raise BadInput(f"{where}: the log {paths['control']} is listed as both arms.")
    if "online" in table:
        online = read_online(f"{where}: online", table["online"])
    places = {key: joined(folder, text) for key, text in paths.items()}
    return Entry(
        name=name,
        control=places.get("control"),
        treatment=places.get("treatment"),
        settings=None if own is None else joined(folder, _text(f"{where}: settings", own)),
        date=_date(where, table.get("date")),
        offline=places.get("offline"),
        online=online,
        shared_units=_shared_units(where, table.get("shared_units"), online),
    )


def _refuse_sides(where: str, given: Sequence[str]) -> None:
    """Refuse a test in which a side is missing, or is given twice."""
    for one, other, side in (("control", "offline", "offline"), ("treatment", "online", "online")):
        if one in given and other in given:
            raise BadInput(f"{where}: {one} and {other} are both given for the {side} side: leave one of them out.")
    if "control" not in given and "offline" not in given:
        raise BadInput(f"{where}: control is missing: give the control's log, or offline, a result.json of its test.")
    if "treatment" not in given and "online" not in given:
        raise BadInput(f"{where}: treatment is missing: give the treatment's log, or the results in online.")
    if "treatment" in given and "offline" in given:
        raise BadInput(
            f"{where}: the treatment's log is compared with the control's, and offline is given in its place: give"
            " control, or the results in online in place of treatment."
        )
    if "shared_units" in given and "online" not in given:
        raise BadInput(f"{where}: shared_units is for results in online, and both logs are given: leave it out.")


def _shared_units(where: str, value: Any, online: Mapping[str, OnlineResult] | None) -> int | None:
    """How many units of the online control arm are in the offline log, where it is said."""
    if value is None:
        return None
    value = int(value) if isinstance(value, float) and is_finite_number(value) and value.is_integer() else value
    check_integer(f"{where}: shared_units", value, 0)
    for result in (online or {}).values():
        if isinstance(result, ArmResults) and value > result.control.n:
            raise BadInput(
                f"{where}: shared_units = {value}, and the control arm has n = {result.control.n}: they are those of"
                " its units that are in the offline log too."
            )
    return int(value)


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
        truth = {test: values["rel_uplift"] for test, values in content.items() if test != JSON_KEY}
        if not all(map(is_finite_number, truth.values())):
            raise ValueError("no number")
        return {test: float(uplift) for test, uplift in truth.items()}
    except OSError as error:
        raise BadInput(f'truth = "{name}": {error.strerror or error}.') from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BadInput(f'truth = "{name}": expected JSON such as {{"<test>": {{"rel_uplift": 0.02}}}}.') from None
