"""Instants and durations of the settings, in whole microseconds."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

from foretest.errors import BadInput

SECOND = 1_000_000
_UNITS = {"d": 86_400 * SECOND, "h": 3_600 * SECOND, "m": 60 * SECOND, "s": SECOND}
_NAMES = {"d": "day", "h": "hour", "m": "minute", "s": "second"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant_of(where: str, value: Any) -> int:
    """A time of the settings, as text or as TOML and Python have it, in microseconds since 1970.

    >>> instant_of("read_at", "1970-01-02") // SECOND
    86400
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        moment = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):  # in UTC, a time of 9999 may be one of the year 10000
        raise BadInput(
            f'{where} = {value!r}: expected a time, as in "2026-03-08" or "2026-03-08T14:30:00Z" (without a zone: UTC).'
        ) from None
    return (moment - _EPOCH) // timedelta(microseconds=1)


def instant_text(microseconds: int) -> str:
    """A time in UTC as text that `instant_of` reads; at midnight the day alone.

    >>> instant_text(86_400 * SECOND), instant_text(90_000 * SECOND), instant_text(1)
    ('1970-01-02', '1970-01-02T01:00:00Z', '1970-01-01T00:00:00.000001Z')
    """
    moment = _EPOCH + timedelta(microseconds=int(microseconds))
    text = moment.replace(tzinfo=None).isoformat()
    return text.removesuffix("T00:00:00") if text.endswith("T00:00:00") else f"{text}Z"


def duration_of(where: str, value: Any) -> int:
    """A duration such as "7d", "36h", "90m" or "30s" in microseconds.

    >>> duration_of("window", "36h") == duration_of("window", "1.5d") == 36 * 3600 * SECOND
    True
    """
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*([dhms])\s*", value) if isinstance(value, str) else None
    amount = 0 if match is None else round(float(match[1]) * _UNITS[match[2]])
    if match is None or amount <= 0 or amount > 36_525 * _UNITS["d"]:
        raise BadInput(f'{where} = {value!r}: expected a duration above 0, as in "7d", "36h", "90m" or "30s".')
    return amount


def duration_text(microseconds: float) -> str:
    """A duration in words, in the largest unit that says it exactly.

    >>> duration_text(7 * 86_400 * SECOND), duration_text(36 * 3_600 * SECOND), duration_text(1.5 * SECOND)
    ('7 days', '36 hours', '1.5 seconds')
    """
    letter = next((unit for unit, size in _UNITS.items() if microseconds % size == 0), "s")
    amount = microseconds / _UNITS[letter]
    return f"{amount:g} {_NAMES[letter]}{'' if amount == 1 else 's'}"
