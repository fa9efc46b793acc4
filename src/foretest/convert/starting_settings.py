"""A settings file to start from, for a log that nobody has described yet."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from foretest.convert.dsjson_lines import looks_like_dsjson
from foretest.convert.dsjson_survey import lines_of
from foretest.convert.first_look import FIRST_ROWS, LONG, FirstLook, look_at
from foretest.convert.settings_text import settings_text
from foretest.displays.column_types import is_number
from foretest.errors import BadInput, nearest
from foretest.report.board.texts import visible
from foretest.sources import AGGREGATES, Source, open_source
from foretest.sources.base import refuse_repeated
from foretest.sources.json_files import JsonFiles

_FIRST_LINES = 20
MISSING = "MISSING"
_SCORED = 'policy = "plackett-luce" and scores = "column", each in a line'
_EXAMPLES = {"log": 'rewards = ["column"]', "control": _SCORED, "treatment": _SCORED}


class StartingSettings(NamedTuple):
    """What a log seems to be, and settings for it as text."""

    look: FirstLook
    text: str


def starting_settings(log: Any, rewards: Sequence[str] = ()) -> StartingSettings:
    """Look at the first rows of a log, and write what they say as a settings file; `rewards` names the rewards."""
    source = open_source(log)
    _refuse_dsjson(source)
    if any(AGGREGATES in (schema.metadata or {}) for _, schema in source.schemas()):
        raise BadInput("these are saved aggregates, which contain their settings: foretest run reads them as they are.")
    rows = _first_rows(source)
    _check_rewards(rewards, rows)
    look = look_at(rows, rewards)
    return StartingSettings(look, settings_text(look.tables, _comment(look), _hints(look)))


def _check_rewards(rewards: Sequence[str], rows: pa.Table) -> None:
    """Refuse a reward that is no column of numbers."""
    for name in rewards:
        if name not in rows.column_names:
            known = ", ".join(rows.column_names)
            raise BadInput(f"--reward {name}: no such column.{nearest(name, rows.column_names)} The log has: {known}.")
        kind = rows.schema.field(name).type
        if not is_number(kind):
            raise BadInput(f"--reward {name}: the column is {kind}, expected a number or bool in every row.")


def _refuse_dsjson(source: Source) -> None:
    """Refuse the log of a decision service, which has a converter of its own."""
    if not isinstance(source, JsonFiles):
        return
    [place, *_] = source.places
    path = place.path
    if any(looks_like_dsjson(line) for line in islice(lines_of(place), _FIRST_LINES)):
        raise BadInput(
            f"{path}: decision-service JSON (dsjson), whose lines are not displays yet. foretest convert dsjson {path}"
            " -o OUT writes them as a log, with settings that run as they are."
        )


def _first_rows(source: Source) -> pa.Table:
    """Some thousand rows, with all columns; none of files whose columns are others than those of the first."""
    [(file, schema), *_] = source.schemas()
    names = schema.names
    for name in names:
        refuse_repeated(file, schema, name)
    chunks = (chunk.batch for part in source.parts(names, FIRST_ROWS) for chunk in part())
    batches: list[pa.RecordBatch] = []
    for batch in islice(chunks, 64):
        if batches and not batch.schema.equals(batches[0].schema):
            break
        batches.append(batch)
        if sum(some.num_rows for some in batches) >= FIRST_ROWS:
            break
    table = pa.Table.from_batches(batches) if batches else schema.empty_table()
    if not len(table):
        raise BadInput("the log has no row: there is nothing to look at.")
    return table.slice(0, FIRST_ROWS)


def _comment(look: FirstLook) -> str:
    """What a reader must check."""
    lines = ["Proposed by foretest init from names, types and the first rows: check every line.", ""]
    if look.missing:
        lines += [f"A skeleton, which does not run yet: write what is marked {MISSING}.", ""]
    lines += [f"{role}: {visible(column)}" for column, role in look.roles.items()]
    unused = [visible(column.name) for column in look.free]
    if unused:
        lines += ["", f"Not used: {', '.join(unused)}."]
    drawn = [f"{key} = {look.control[key]!r}" for key in look.drawn]
    if drawn:
        lines += ["", f"The logged probabilities are those of {', '.join(drawn)}."]
    elif look.control.get("policy") == "plackett-luce":
        lines += [
            "", "The control is taken to draw from the softmax of its scores. If production sorts and adds no noise,",
            'its policy is "top-k"; for other ways to draw see docs/reference/log-format.md, "Policies".',
        ]  # fmt: skip
    if look.guessed is not None:
        lines += ["", *_guess(look.guessed)]
    if "unit" not in look.log:
        lines += ["", "No column looks like a user: every display counts as independent of all others."]
    if look.layout == LONG:
        lines += ["", "Rows without a slot are candidates that were not shown."]
    return "\n".join(lines)


def _hints(look: FirstLook) -> dict[str, str]:
    """What to write where something is missing, and in place of a temperature that the log does not tell."""
    hints = {table: f"{MISSING}: {what}.\nAs in: {_EXAMPLES[table]}" for table, what in look.lacks.items()}
    if "temperature" in look.control and "temperature" not in look.drawn:
        hints["control"] = '1.0 is the default: write production\'s own temperature, or "fit" if nobody knows it'
    if "temperature" in look.treatment:
        own = look.treatment["temperature"] == "control"
        hints["treatment"] = f"{'the same' if own else '1.0 is the default'}: or write the temperature to try"
    return hints


def _guess(reward: str) -> list[str]:
    """What a reader must know of a reward that no name gives away."""
    return [
        "The reward is a guess: no column is named like one, and"
        f" '{visible(reward)}' is the only one left with a number of at",
        "least 0 in every row. Is it what the treatment should raise?",
    ]  # fmt: skip


def first_look_text(look: FirstLook) -> str:
    """The layout, the role of each column, those without one, and what is missing."""
    roles = {visible(name): role for name, role in look.roles.items()}
    width = max(map(len, roles), default=0)
    lines = [f"The log has {look.layout}.", ""]
    lines += [f"  {name:{width}}  {role}" for name, role in roles.items()]
    unused = [visible(column.name) for column in look.free]
    if unused:
        lines += ["", f"Not used: {', '.join(unused)}."]
    if look.guessed is not None:
        lines += ["", *_guess(look.guessed)]
    if look.missing:
        lines += ["", "Missing:", *(f"  - {what}." for what in look.missing)]
    return "\n".join(lines)
