"""The checks before any row is read: columns that are missing, of the wrong type, or not the same in all files."""

from __future__ import annotations

import pyarrow as pa

from foretest.displays.column_types import is_anything, is_one_or_list_of, is_text_key, type_family
from foretest.displays.ragged import is_list
from foretest.errors import BadInput, nearest
from foretest.log.column_roles import ColumnRole, NeededColumns
from foretest.policies.logging_mixture import loggers_of
from foretest.settings.analysis import VALUE_MODEL
from foretest.sources import AGGREGATES, Remarks, Source
from foretest.sources.base import refuse_repeated


def check_schemas(needed: NeededColumns, source: Source) -> None:
    """Refuse a log that lacks a column or has one of the wrong type, by file and column."""
    roles = list(needed.roles)
    if needed.policies_too:
        log = needed.settings.log
        named = [name for name in (log.date, *log.features) if name is not None]
        roles += [*needed.slot_roles, *(ColumnRole(name, "a column", is_anything) for name in named)]
    for name, schema in source.schemas():
        if AGGREGATES in (schema.metadata or {}):
            raise BadInput(f"{name}: holds saved aggregates, expected a log. Aggregates are for foretest run.")
        if needed.policies_too:
            _check_loggers(needed, name, schema)
        for role in roles:
            _check_column(role, source, name, schema, needed)
        _check_ids(needed, name, schema)
    _check_files_agree(needed, source)


def _check_column(role: ColumnRole, source: Source, name: str, schema: pa.Schema, needed: NeededColumns) -> None:
    """The column is there, once, and of a type that its role may have."""
    column = role.column
    if column not in schema.names:
        more = ", …" if len(schema.names) > 30 else ""
        raise BadInput(
            f"{name}: no column '{column}'.{nearest(column, schema.names)} Expected {role.expected};"
            f" the log has: {', '.join(schema.names[:30])}{more}."
        )
    refuse_repeated(name, schema, column)
    kind = schema.field(column).type
    if not role.fits(kind):
        why = source.remark(name, column) if isinstance(source, Remarks) else ""
        raise BadInput(
            f"{name}: column '{column}' is {kind}{why}, expected {role.expected}. {_remedy(needed, column, kind)}"
        )


def _remedy(needed: NeededColumns, column: str, kind: pa.DataType) -> str:
    """What to do with a column of the wrong type: ids that were shown need the ids that could have been."""
    shown = column in (needed.settings.log.ranking, *needed.rankings) and needed.settings.candidates is None
    if shown and is_one_or_list_of(is_text_key)(kind):
        return (
            "If these are ids, name the column with the ids of all eligible items: [log] candidates. Else convert it,"
            " or name another column."
        )
    return "Convert it, or name another column."


def _check_loggers(needed: NeededColumns, name: str, schema: pa.Schema) -> None:
    """Every logger is priced on every row: its columns must be in every file, whichever logger showed the row."""
    for logger, policy in loggers_of(needed.settings.control).named.items():
        missing = [column for column in policy.columns if column not in schema.names]
        if missing:
            columns = ", ".join(f"'{column}'" for column in missing)
            raise BadInput(
                f"{name}: the logger '{logger}' cannot be priced on the rows of the others: the log has no column"
                f" {columns}.{nearest(missing[0], schema.names)} Every row needs the columns of every logger,"
                " whichever of them showed it."
            )


def _check_files_agree(needed: NeededColumns, source: Source) -> None:
    """Keys, strata and features mean the same in every file: 1 and "1" are two."""
    log, analysis = needed.settings.log, needed.settings.analysis
    strata = analysis.strata if needed.strata and analysis.strata != VALUE_MODEL else None
    features = [f for f in log.features if needed.features or needed.value_model_only or f in needed.audited]
    (first, begin), *others = source.schemas()
    segments = log.segments if needed.policies_too else ()
    for column in (log.unit, log.id, strata, *features, *needed.item_columns, *segments):
        for name, schema in others if column is not None else ():
            kind, other = schema.field(column).type, begin.field(column).type
            if _family(kind) != _family(other):
                raise BadInput(
                    f"{name}: column '{column}' is {kind}, but {other} in {first}: it must be of one type in all"
                    " files. Convert one of them."
                )


def _family(kind: pa.DataType) -> str:
    """Text, time or number, also of the values of a list."""
    return type_family(kind.value_type if is_list(kind) else kind)


def _check_ids(needed: NeededColumns, name: str, schema: pa.Schema) -> None:
    """Shown items are looked up among the candidates: an id that is text never equals one that is a number."""
    ranking, candidates = needed.settings.log.ranking, needed.settings.candidates
    if needed.value_model_only or ranking is None or candidates is None:
        return
    items = schema.field(candidates).type
    for column in dict.fromkeys((ranking, *needed.rankings, *needed.own_candidates)):
        ids = schema.field(column).type
        if is_text_key(ids.value_type if is_list(ids) else ids) != is_text_key(items.value_type):
            whose = "of candidates" if column in needed.own_candidates else "of shown items and of candidates"
            raise BadInput(
                f"{name}: column '{column}' is {ids} and column '{candidates}' is {items}: the ids {whose} must be of"
                " one type. Convert one of them."
            )
