"""What a row to log may hold: plain values, of one type a column over all rows. What else comes is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import numpy as np

from foretest.errors import BadInput

NOTHING, BOOL, INTEGER, LONG, NUMBER = "nothing", "bool", "integer", "long", "number"  # LONG: no float holds it exactly
TEXT, TIME, DATE = "text", "time", "date"
_WORDS = {
    NOTHING: "null", BOOL: "true or false", INTEGER: "a whole number", LONG: "a whole number beyond 2^53",
    NUMBER: "a number", TEXT: "text", TIME: "a time", DATE: "a date",
}  # fmt: skip
_IN_LISTS = {
    NOTHING: "an empty list", BOOL: "a list of true and false", INTEGER: "a list of whole numbers",
    LONG: "a list of whole numbers beyond 2^53", NUMBER: "a list of numbers", TEXT: "a list of text",
    TIME: "a list of times", DATE: "a list of dates",
}  # fmt: skip
_INT64, _INT53 = 1 << 63, 1 << 53
MOST_COLUMNS = 1000


class Kind(NamedTuple):
    """The type of a value, or of the values of a list."""

    base: str
    in_list: bool = False

    @property
    def words(self) -> str:
        """As a message says it."""
        return (_IN_LISTS if self.in_list else _WORDS)[self.base]


_NULL, _BOOL, _INTEGER, _NUMBER, _TEXT = map(Kind, (NOTHING, BOOL, INTEGER, NUMBER, TEXT))


class Value(NamedTuple):
    """A value as it waits to be written, lists of numbers as arrays, and its type."""

    plain: Any
    kind: Kind


class ColumnKinds:
    """The types of columns, as the rows so far have them: an integer column with a fraction becomes one of numbers."""

    def __init__(self) -> None:
        self.kinds: dict[str, Kind] = {}
        self.mixed: set[str] = set()  # columns with values of a narrower type than theirs

    def take(self, row: Mapping[str, Value]) -> None:
        """Widen the types so that they hold a further row, or refuse it and leave them as they are."""
        others = {name: value.kind for name, value in row.items() if self.kinds.get(name) != value.kind}
        if not others:
            return
        wider = {name: _wider(name, self.kinds.get(name, _NULL), kind) for name, kind in others.items()}
        if len(self.kinds) + len(wider.keys() - self.kinds.keys()) > MOST_COLUMNS:
            raise BadInput(
                f"column '{next(iter(wider))}' is one more than {MOST_COLUMNS:,}: log what differs by item as lists,"
                " with one value per candidate, and not as columns."
            )
        for name, kind in wider.items():
            narrower = {self.kinds.get(name, _NULL).base, others[name].base} - {kind.base, NOTHING}
            self.mixed |= {name} if narrower else set()
        self.kinds |= wider


def _wider(name: str, known: Kind, new: Kind) -> Kind:
    """The type that holds a column's earlier values and a new one."""
    if known in (_NULL, new):
        return new
    if new == _NULL:
        return known
    base = _wider_base(known.base, new.base) if known.in_list == new.in_list else None
    if base is not None:
        return Kind(base, known.in_list)
    why = ' 12 and "12" are two ids.' if TEXT in (known.base, new.base) else ""
    raise BadInput(
        f"column '{name}' is {new.words}, and was {known.words} in earlier rows: a column has one type in all"
        f" rows.{why} Convert the value before it is logged."
    )


def _wider_base(one: str, other: str) -> str | None:
    """The narrowest type of values that holds both; None where there is none.

    >>> _wider_base("integer", "number"), _wider_base("bool", "long"), _wider_base("long", "number")
    ('number', 'long', None)
    """
    if NOTHING in (one, other) or one == other:
        return other if one == NOTHING else one
    if not {one, other} <= {BOOL, INTEGER, LONG, NUMBER} or {one, other} == {LONG, NUMBER}:
        return None
    return max(one, other, key=[BOOL, INTEGER, LONG, NUMBER].index)


def as_kind(value: Any, kind: Kind) -> Any:
    """A value of a column that was widened, as the type that the column has now."""
    if value is None or kind.base not in (INTEGER, LONG, NUMBER):
        return value
    if kind.in_list:
        return np.asarray(value, np.float64 if kind.base == NUMBER else np.int64)
    return float(value) if kind.base == NUMBER else int(value)


def plain_row(row: Mapping[str, Any]) -> dict[str, Value]:
    """A copy of a row, each value checked: what is done to its lists later changes nothing here."""
    if not isinstance(row, Mapping):
        of_draw = ', as in log.write({**draw.row, "user": 7})' if hasattr(row, "row") else ""
        raise BadInput(f"the row is a {type(row).__name__}: expected values by the names of columns{of_draw}.")
    values = {}
    for name, value in row.items():
        if type(name) is not str or not name:
            raise BadInput(f"column {name!r}: expected a name, text that is not empty.")
        _check_text(name, name)
        values[name] = _plain(name, value)
    if not values:
        raise BadInput("the row is empty: expected at least one column.")
    return values


def _plain(name: str, value: Any) -> Value:
    """A value checked, by its exact type."""
    kind = type(value)
    if kind is float:
        if not math.isfinite(value):
            raise BadInput(f"column '{name}' is {value}: expected a finite number, or None where there is none.")
        return Value(value, _NUMBER)
    if kind is str:
        _check_text(name, value)
        return Value(value, _TEXT)
    if kind is int:
        return Value(value, Kind(_integer_base(name, value, value)))
    if value is None:
        return Value(value, _NULL)
    if kind is bool:
        return Value(value, _BOOL)
    if kind is list or kind is tuple:
        return _plain_list(name, value)
    return _other(name, value)


def _integer_base(name: str, low: int, high: int) -> str:
    """The type of whole numbers, by the lowest and the highest."""
    if low < -_INT64 or high >= _INT64:
        raise BadInput(f"column '{name}' has a whole number that 64 bits cannot hold: log it as text.")
    return INTEGER if low >= -_INT53 and high <= _INT53 else LONG


def _check_text(name: str, text: str) -> None:
    """Refuse text that cannot be written as UTF-8."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        raise BadInput(f"column '{name}' has a lone surrogate in its text, which no file can hold.") from None


def _other(name: str, value: Any) -> Value:
    """Times, NumPy's numbers and arrays, and subclasses of the plain types."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise BadInput(f"column '{name}' is a time without a zone: log one with it, such as datetime.now(UTC).")
        try:
            moment = value.astimezone(UTC)
        except OverflowError:
            raise BadInput(f"column '{name}' is a time before the year 1 or after 9999 in UTC.") from None
        return Value(datetime.combine(moment.date(), moment.time(), UTC), Kind(TIME))
    if isinstance(value, date):
        return Value(date(value.year, value.month, value.day), Kind(DATE))
    for plain in (str, int, float):
        if isinstance(value, plain):
            return _plain(name, plain(value))
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "biufU":
        return _plain_list(name, value.tolist())
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return _plain(name, value.item())
    raise BadInput(
        f"column '{name}' is a {type(value).__name__}: expected a number, text, true or false, a datetime with a zone,"
        " a date, None, or a list of these."
    )


def _plain_list(name: str, values: list[Any] | tuple[Any, ...]) -> Value:
    """A copy of a list, of numbers as an array, which takes a quarter of the memory, and of others as a tuple, which
    Python's garbage collector need not look into again and again."""
    if not len(values):
        return Value((), Kind(NOTHING, True))
    first = type(values[0])
    if first is str:
        with suppress(TypeError):  # there is something else in it
            _check_text(name, "".join(values))
            return Value(tuple(values), Kind(TEXT, True))
    numbers = _as_numbers(values) if first is float or first is int else None
    if first is int and numbers is not None and numbers.dtype.kind == "i":
        return Value(numbers, Kind(_integer_base(name, int(numbers.min()), int(numbers.max())), True))
    if first is float and numbers is not None and np.isfinite(numbers).all():
        return Value(numbers, Kind(NUMBER, True))
    members = [_plain(name, value) for value in values]
    base = NOTHING
    for place, (_, kind) in enumerate(members):
        if kind.in_list or kind.base == NOTHING:
            raise BadInput(f"column '{name}' has {kind.words} at position {place} of a list: expected a value there.")
        wider = _wider_base(base, kind.base)
        if wider is None:
            raise BadInput(f"column '{name}' is a list with {_WORDS[base]} and {kind.words}: expected one type.")
        base = wider
    return Value(as_kind(tuple(member.plain for member in members), Kind(base, True)), Kind(base, True))


def _as_numbers(values: list[Any] | tuple[Any, ...]) -> np.ndarray[Any, np.dtype[Any]] | None:
    """Values as an array of float64 or int64; None where they are not such numbers, and nothing else."""
    try:
        numbers = np.array(values)
    except (ValueError, OverflowError):  # lists among them, or a number beyond any type
        return None
    return numbers if numbers.ndim == 1 and numbers.dtype in (np.float64, np.int64) else None
