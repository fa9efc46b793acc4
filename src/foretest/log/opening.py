"""A log as its settings describe it: one row per display, or folded from one row per display and item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from foretest.errors import BadInput
from foretest.log.reader import Reader
from foretest.policies.base import Policy
from foretest.policies.logging_mixture import loggers_of
from foretest.policies.own_candidates import OwnCandidates
from foretest.settings.late_rewards import reward_columns, window_of
from foretest.settings.log_columns import LogColumns
from foretest.settings.long_layout import LONG, is_query
from foretest.settings.settings import Settings
from foretest.sources import AGGREGATES, FOLDED, Source, Sql, open_source, pack_of
from foretest.sources.long_rows import LongColumns
from foretest.sources.long_tables import LOG, LongTables
from foretest.sources.long_times import LongTimes
from foretest.sources.opening import is_spark_frame


def open_log(log: Any, settings: Settings) -> Source:
    """The displays of a log, whatever its layout; saved aggregates and packed logs, which have displays, as they are.

    log: None where [log.tables] name the tables.
    """
    columns = settings.log
    if columns.layout != LONG:
        if log is None:
            raise BadInput("no log is given: name a file, a folder, or a query.")
        return open_source(log)
    long = long_columns(settings)
    if is_spark_frame(log):
        raise BadInput(
            'layout = "long" is folded on one machine, and not in Spark: give the files, or fold the DataFrame to one'
            " row per display first, with collect_list."
        )
    if log is None:
        return LongTables(_tables(columns), long)
    source = open_source(log)
    if any(_has_displays(schema) for _, schema in source.schemas()):
        return source
    if columns.tables is not None:
        raise BadInput("[log.tables] name the tables of the log: give no other log, or leave them out.")
    return LongTables({LOG: source}, long)


def whole_displays(source: LongTables, settings: Settings) -> LongTables:
    """A long log to be written: the columns that the settings name, checked, and others of which a display has one
    value."""
    reader = Reader(
        settings, features=True, strata=True, slots=bool(settings.log.slot_rewards), items=True, examination=True
    )
    reader.check(source)
    return source.without_differing(reader.columns)


def _has_displays(schema: pa.Schema) -> bool:
    """Is it a file of ours with one row per display, or with their sums?"""
    metadata = schema.metadata or {}
    return AGGREGATES in metadata or FOLDED in metadata or pack_of(schema) is not None


def _tables(log: LogColumns) -> dict[str, Source]:
    if log.tables is None:
        raise BadInput("no log is given: name a file, a folder, or a query, or the tables in [log.tables].")
    return {name: open_source(Sql(text) if is_query(text) else text) for name, text in log.tables.items()}


def long_columns(settings: Settings) -> LongColumns:
    """The columns of a long log by what they have a value for: items, slots, or displays."""
    log, predictions = settings.log, settings.analysis.predictions
    policies = (settings.control, *settings.treatments.values())
    for policy in policies:
        _refuse_policy(policy)
    by_item = [name for policy in policies for name in policy.score_columns]
    predicted = predictions.values() if isinstance(predictions, Mapping) else [predictions] if predictions else []
    assert log.display is not None
    assert log.item is not None
    assert log.slot is not None
    assert log.ranking is not None
    return LongColumns(
        display=log.display, item=log.item, slot=log.slot, first_slot=log.first_slot, rewards=log.rewards,
        by_item=tuple(dict.fromkeys([*by_item, *log.item_features, *predicted])),
        by_slot=settings.control.slot_columns, ranking=log.ranking, slot_rewards=dict(log.slot_rewards or {}),
        times=_times(settings),
    )  # fmt: skip


def _times(settings: Settings) -> LongTimes | None:
    """The columns that say when rewards of items came, where they are named."""
    log, rewards = settings.log, reward_columns(settings.log)
    if log.time is None or not rewards:
        return None
    return LongTimes(log.time, rewards, log.reward_age is not None, window_of(settings))


def _refuse_policy(policy: Policy) -> None:
    """Refuse policies whose columns are lists of another kind."""
    for part in loggers_of(policy).policies:
        if isinstance(part, OwnCandidates) or part.ranking_columns:
            raise BadInput(
                'layout = "long" has one list of candidates for each display: policies with candidates of their own,'
                ' and "fixed", need a log with one row per display.'
            )
