"""Many past tests in one table, CSV or Parquet: a row for each test and metric, with the results of its online test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from foretest.background import in_background
from foretest.errors import BadInput, nearest
from foretest.history.online_results import (
    ARMS,
    FIRST,
    UNITS,
    UPLIFT,
    ArmResults,
    ArmSums,
    OnlineResult,
    arm_sums,
    counted_by,
    uplift_result,
)
from foretest.sources import open_source
from foretest.stores import Location

OF_TEST = ("control", "offline", "settings", "date", "shared_units")  # columns that are keys of a [[test]] table
OF_ARMS = tuple(f"{arm}_{field}" for arm in ARMS for field in ArmSums._fields)
COLUMNS = ("name", "metric", *OF_ARMS, "by", *UPLIFT, *OF_TEST)


class ListedTest(NamedTuple):
    """The table of a test, what to call it in a message, and its online results where they are known already."""

    where: str
    table: Any
    online: Mapping[str, OnlineResult] | None = None


def read_results_table(path: Location) -> list[ListedTest]:
    """The tests of a table of results, in its order; rows of one name are metrics of one test."""
    rows = _rows(path)
    by_name: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for number, row in enumerate(rows):
        name = row.get("name")
        if name is None or name == "":
            raise BadInput(f"{path}: row {number} (the first row is 0): name is missing.")
        by_name.setdefault(str(name), []).append((number, row))
    if not by_name:
        raise BadInput(f"{path}: no rows: give one for each A/B test, or leave results out.")
    return [_test(path, name, own) for name, own in by_name.items()]


def _rows(path: Location) -> list[dict[str, Any]]:
    source = open_source(str(path))
    [(_, schema), *_] = source.schemas()
    for column in schema.names:
        if column not in COLUMNS:
            raise BadInput(f"{path}: unknown column '{column}'.{nearest(column, COLUMNS)} Known: {', '.join(COLUMNS)}.")
    _refuse_missing(path, schema.names)
    names = list(dict.fromkeys(schema.names))

    def read() -> list[dict[str, Any]]:
        return [row for part in source.parts(names) for chunk in part() for row in chunk.batch.to_pylist()]

    return in_background(read)


def _refuse_missing(path: Location, columns: Sequence[str]) -> None:
    """Refuse a table without the columns of names and of results."""
    if "name" not in columns:
        raise BadInput(f"{path}: there is no column 'name', which tells the tests apart.")
    given = [names for names in (OF_ARMS, UPLIFT) if any(name in columns for name in names)]
    if not given:
        raise BadInput(
            f"{path}: there are no results: give the columns {', '.join(OF_ARMS)}, or {' and '.join(UPLIFT)}."
        )
    for names in given:
        for name in names:
            if name not in columns:
                raise BadInput(f"{path}: there is no column '{name}', which belongs to {', '.join(names)}.")


def _test(path: Location, name: str, rows: Sequence[tuple[int, Mapping[str, Any]]]) -> ListedTest:
    """One test from its rows, which agree in all that is not of a metric."""
    where = f"{path.name}: test '{name}'"
    table: dict[str, Any] = {"name": name}
    online: dict[str, OnlineResult] = {}
    for number, row in rows:
        at = f"{where}, row {number} (the first row is 0)"
        for key in OF_TEST:
            value = row.get(key)
            if value is None:
                continue
            if table.setdefault(key, value) != value:
                raise BadInput(f"{at}: {key} is {value!r}, and {table[key]!r} in another row of this test.")
        metric = row.get("metric") or FIRST
        if metric in online:
            what = f"the metric '{metric}'" if metric else "the first metric (no metric is named)"
            raise BadInput(f"{at}: {what} occurs twice: give one row per test and metric, and each test its own name.")
        online[str(metric)] = _result(at, row)
    return ListedTest(where, table, online)


def _result(where: str, row: Mapping[str, Any]) -> OnlineResult:
    arms, uplift = ([name for name in names if row.get(name) is not None] for names in (OF_ARMS, UPLIFT))
    if arms and uplift:
        raise BadInput(f"{where}: {arms[0]} and {uplift[0]} are both given: one kind of result is enough.")
    if not arms and not uplift:
        raise BadInput(f"{where}: no result: fill {', '.join(OF_ARMS)}, or {' and '.join(UPLIFT)}.")
    if uplift:
        return uplift_result(f"{where}: ", *(row.get(name) for name in UPLIFT))
    by = counted_by(f"{where}: ", row.get("by") or UNITS)
    control, treatment = (
        arm_sums(f"{where}: {arm}_", *(row.get(f"{arm}_{field}") for field in ArmSums._fields)) for arm in ARMS
    )
    return ArmResults(control, treatment, by)
