"""A column that is named like a unit, where the settings name none."""

from __future__ import annotations

import re

import pyarrow as pa

from foretest.displays.column_types import is_key
from foretest.settings.log_columns import LogColumns
from foretest.sources import Source

NO_UNIT = "but [log] unit is not set, so every row counts as independent"  # in the note, by which it is known

_WHO = ("user", "session", "visitor", "member", "customer", "cookie", "account", "client", "subscriber", "household")
_ALONE = ("uid", "uuid", "guid", "deviceid", "anonymousid", "profileid", "personid")  # a device may be a kind of device
_ENDS = ("", "id", "key", "hash", "uid", "uuid", "identifier")


def is_named_like_a_unit(name: str) -> bool:
    """Does a column's name say that it holds somebody who is shown displays?

    >>> [is_named_like_a_unit(name) for name in ("user", "UserID", "session_id", "uid", "device", "user_agent")]
    [True, True, True, True, False, False]
    """
    word = re.sub(r"[^a-z]", "", name.lower())
    return word in _ALONE or any(word == who + end for who in _WHO for end in _ENDS)


def unit_column_notes(log: LogColumns, source: Source) -> list[str]:
    """A note where no unit is named although the log has a column that is named like one; else nothing."""
    if log.unit is not None:
        return []
    [(_, schema), *_] = source.schemas()
    taken = {*log.rewards, log.id, log.ranking, log.candidates, log.logger, log.date}
    named = [name for name in schema.names if name not in taken and is_named_like_a_unit(name)]
    named = [name for name in named if _may_be_a_unit(schema, name)]
    if not named:
        return []
    return [
        f"the log has a column '{named[0]}', {NO_UNIT}. If one {_plain(named[0])} has several rows, intervals are too"
        f' narrow: name it, unit = "{named[0]}".'
    ]


def _may_be_a_unit(schema: pa.Schema, name: str) -> bool:
    return schema.names.count(name) == 1 and is_key(schema.field(name).type)


def _plain(name: str) -> str:
    """The word for whom a column names, in a sentence."""
    word = re.sub(r"[^a-z]", "", name.lower())
    return next((who for who in _WHO if word.startswith(who)), "value of it")
