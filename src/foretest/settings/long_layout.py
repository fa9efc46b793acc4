"""A log with one row per display and item: [log] layout = "long", and what it means for the other keys of [log]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from foretest.errors import BadInput, choose
from foretest.settings.unknown_keys import refuse_unknown

if TYPE_CHECKING:
    from foretest.settings.log_columns import LogColumns

DISPLAY, LONG = LAYOUTS = ("display", "long")
TABLES = ("impressions", "candidates", "rewards")
RANKING = "foretest: ranking"  # of the folded log: names that no column of a log has
_OF_DISPLAYS = ("ranking", "candidates", "id", "slot_rewards")  # what a long log says by display, item and slot


def slot_column(reward: str) -> str:
    """The column of the folded log with what each slot earned."""
    return f"foretest: {reward} by slot"


def long_column(log: LogColumns, column: str) -> str:
    """The column of a long log behind one of the folded log."""
    made = {RANKING: log.slot or RANKING, **{slot_column(reward): reward for reward in log.rewards}}
    return made.get(column, column)


def derived_fields(log: LogColumns) -> dict[str, Any]:
    """The fields of the folded log, which a long log need not name."""
    return {
        "id": log.display, "ranking": RANKING, "slot_rewards": {reward: slot_column(reward) for reward in log.rewards},
    }  # fmt: skip


def is_query(text: str) -> bool:
    """Is it a query, and not a path?

    >>> is_query("select * from 'a.parquet'"), is_query("selected.parquet")
    (True, False)
    """
    return text.lstrip("( \n").partition(" ")[0].partition("\n")[0].upper() in ("SELECT", "WITH", "FROM")


def check_layout(log: LogColumns) -> None:
    """Refuse what one of the two layouts does not have."""
    choose("[log] layout", log.layout, LAYOUTS)
    own = {"display": log.display, "item": log.item, "slot": log.slot, "tables": log.tables}
    if log.layout == DISPLAY:
        given = next((name for name, value in own.items() if value is not None), None)
        given = "first_slot" if given is None and log.first_slot != 1 else given
        if given is not None:
            raise BadInput(f'[log] {given} is for logs with one row per display and item: add layout = "long".')
        return
    for name in ("display", "item", "slot"):
        value = own[name]
        if value is None:
            raise BadInput(f'[log] layout = "long" needs {name} = "column": {_PURPOSE[name]}.')
        if not isinstance(value, str):
            raise BadInput(f"[log] {name} = {value!r}: expected the name of a column.")
    if type(log.first_slot) is not int or log.first_slot not in (0, 1):
        raise BadInput(f"[log] first_slot = {log.first_slot!r}: expected 1 or 0, what the best slot is called.")
    names = [log.display, log.item, log.slot, *log.rewards]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"[log] names the column '{twice}' for two of display, item, slot and rewards.")
    derived = derived_fields(log)
    for name in _OF_DISPLAYS:
        value = getattr(log, name)
        if value is not None and value != derived.get(name):
            raise BadInput(
                f'[log] {name} is for logs with one row per display: with layout = "long" leave it out, for display,'
                " item and slot say it."
            )
    _check_tables(log.tables)


_PURPOSE = {
    "display": "which display a row belongs to",
    "item": "which item a row is about",
    "slot": "where the item was shown; null for a candidate that was not",
}


def _check_tables(tables: Any) -> None:
    if tables is None:
        return
    if not isinstance(tables, Mapping) or not all(isinstance(value, str) and value for value in tables.values()):
        raise BadInput(f"[log.tables] = {tables!r}: expected a path or a SELECT for each of {', '.join(TABLES)}.")
    refuse_unknown("[log.tables]", tables, list(TABLES))
    if "impressions" not in tables:
        raise BadInput('[log.tables] needs impressions = "path": the table with what was shown, and in which slot.')
