"""A log with one row per display and item, written as one row per display."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from foretest.background import in_background
from foretest.convert.written import write_converted
from foretest.errors import BadInput
from foretest.log.opening import open_log, whole_displays
from foretest.settings.file import read_settings, read_tables
from foretest.settings.long_layout import LONG
from foretest.sources.long_tables import LongTables
from foretest.stores import Location

_LONG_KEYS = ("layout", "display", "item", "slot", "first_slot", "tables")


def convert_long(log: Any, config: Location, folder: Location, *, replace: bool = False) -> int:
    """Write log.parquet and settings.toml: the displays of a long log, and its settings for them; their number."""
    settings = read_settings(config)
    if settings.log.layout != LONG:
        raise BadInput(f'{config}: [log] layout is not "long": there is nothing to convert.')
    source = open_log(log, settings)
    if not isinstance(source, LongTables):
        raise BadInput("the log has one row per display already.")
    source = whole_displays(source, settings)
    [(_, schema)] = source.schemas()
    names = _plain_names(source, schema.names)
    written = pa.schema([(names[field.name], field.type) for field in schema])

    def batches() -> Iterator[pa.RecordBatch]:
        for part in source.parts(schema.names):
            for chunk in part():
                yield pa.RecordBatch.from_arrays(chunk.batch.columns, schema=written)

    tables = read_tables(config)
    own = {key: value for key, value in tables["log"].items() if key not in _LONG_KEYS}
    rewards = {reward: names[column] for reward, column in source.columns.slot_rewards.items()}
    tables["log"] = {
        **own, "id": source.columns.display, "ranking": names[source.columns.ranking], "slot_rewards": rewards,
    }  # fmt: skip
    comment = f"The displays of a log with one row per display and item: {config.name}, by foretest convert long."
    if source.left_out:
        comment += f"\nLeft out, for a display has no single value of them: {', '.join(source.left_out)}."
    return in_background(lambda: write_converted(folder, batches(), written, tables, comment, replace=replace))


def _plain_names(source: LongTables, columns: list[str]) -> dict[str, str]:
    """The names that columns are written under, none twice."""
    c = source.columns
    wanted = {c.ranking: "ranking", **{column: f"slot_{reward}" for reward, column in c.slot_rewards.items()}}
    names = {column: column for column in columns if column not in wanted}
    for column, name in wanted.items():
        while name in names.values():
            name = f"{name}_"
        names[column] = name
    return names
