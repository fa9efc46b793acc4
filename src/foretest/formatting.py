"""Numbers, names and long texts, as people read them: one formatter for the terminal, notes and the page."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

#: a letter of these kinds is shown by its number: controls, marks that turn the direction of text, lone surrogates,
#: breaks of lines and paragraphs
_NUMBERED = ("Cc", "Cf", "Cs", "Zl", "Zp")


def percent(value: float | None, *, sign: bool = False) -> str:
    """A share or a relative uplift in percent.

    >>> percent(0.0512, sign=True), percent(0.0003), percent(None), percent(12.3456, sign=True)
    ('+5.1 %', '0.03 %', '-', '+1,235 %')
    """
    if value is None:
        return "-"
    size = abs(value) * 100.0
    if size < 1e-7:  # rounding, not an uplift
        value = size = 0.0
    digits = 0 if size >= 100 else 1 if size >= 1 or size == 0 else 2 if size >= 0.01 else 3
    return f"{value * 100.0:{'+' if sign else ''},.{digits}f} %"


def round_percent(share: float) -> str:
    """A share that somebody chose, such as a confidence level, without needless decimals.

    >>> round_percent(0.9), round_percent(0.975), round_percent(0.01)
    ('90 %', '97.5 %', '1 %')
    """
    return f"{100.0 * share:g} %"


def format_number(value: float | None) -> str:
    """A value in four significant digits, a large one with thousands separators.

    >>> [format_number(value) for value in (0.020496, 29431.68, 2.5e7, 1e-9, None)]
    ['0.02050', '29,432', '25,000,000', '1.000e-09', '-']
    """
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 1e12 or abs(value) < 1e-4:
        return f"{value:.3e}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:#.4g}"


def plural(count: int, noun: str) -> str:
    """A count and its noun, in the plural unless the count is 1.

    >>> plural(1, "unit"), plural(2000, "unit")
    ('1 unit', '2,000 units')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def some_of(names: Sequence[str], most: int = 8) -> str:
    """The first of many names, and how many more there are.

    >>> some_of(["click", "revenue"]), some_of("abcdef", 4)
    ('click, revenue', 'a, b, c, d and 2 more')
    """
    left_out = len(names) - most
    return ", ".join(names[:most]) + (f" and {left_out:,} more" if left_out > 0 else "")


def shortened(text: str, most: int = 300) -> str:
    """A text of at most so many characters: of a longer one, its beginning and its end.

    >>> shortened("0123456789", 7), shortened("0123456789", 10)
    ('012…789', '0123456789')
    """
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"


def displays_text(log: Mapping[str, Any]) -> str:
    """How many displays a log has, by the facts of its result; of a thinned one also how many rows.

    >>> displays_text({"rows": 2000}), displays_text({"rows": 2000, "displays": 30_500.0})
    ('2,000 displays', '2,000 rows for 30,500 displays')
    """
    if "displays" not in log:
        return plural(log["rows"], "display")
    return f"{plural(log['rows'], 'row')} for {log['displays']:,.0f} displays"


def known_units(log: Mapping[str, Any]) -> int:
    """The number of units of a log, in the digits that are known: an estimate, accurate to 0.3 %, has three.

    It is never above the number of rows.

    >>> known_units({"rows": 3_000_000, "units": 200_134, "units_approximate": True})
    200000
    >>> known_units({"rows": 150_600, "units": 150_600, "units_approximate": True})
    150000
    """
    units, rows = int(log["units"]), int(log["rows"])
    if not log.get("units_approximate") or units < 1000:
        return units
    step = int(10 ** (len(str(units)) - 3))
    rounded = (units + step // 2) // step * step
    return rounded if rounded <= rows else units // step * step


def units_text(log: Mapping[str, Any]) -> str:
    """The number of units of a log in words.

    >>> units_text({"rows": 2000, "units": 7}), units_text({"rows": 10**6, "units": 200_134, "units_approximate": True})
    ('7 units', 'about 200,000 units')
    """
    return f"{'about ' if log.get('units_approximate') else ''}{plural(known_units(log), 'unit')}"


def span(lower: float | None, upper: float | None) -> str:
    """An interval of relative uplifts.

    >>> span(-0.01, 0.035)
    '-1.0 % to +3.5 %'
    """
    return f"{percent(lower, sign=True)} to {percent(upper, sign=True)}"


def short_span(lower: float | None, upper: float | None) -> str:
    """An interval of relative uplifts in few characters, for a column of a table.

    >>> short_span(-0.01, 0.035), short_span(None, None)
    ('-1.0 to +3.5 %', '-')
    """
    return "-" if lower is None or upper is None else span(lower, upper).replace(" % to", " to")


def p_value_column(p: float | None) -> str:
    """A p-value in three decimals, for a column in which they line up.

    >>> p_value_column(0.0312), p_value_column(0.00001), p_value_column(None), p_value_column(1.0)
    ('0.031', '<0.001', '-', '1.000')
    """
    return "-" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def p_value(p: float) -> str:
    """A p-value within a sentence.

    >>> p_value(0.0312), p_value(3e-9)
    ('p = 0.031', 'p < 0.0001')
    """
    return f"p = {p:.2g}" if p >= 1e-4 else "p < 0.0001"


def minus_signs(text: str) -> str:
    """A formatted number with a minus sign in place of each hyphen, as print has it.

    >>> minus_signs("-5.1 %")
    '−5.1 %'
    """
    return text.replace("-", "−")


def one_line(text: str) -> str:
    """A text on one line.

    >>> one_line("no such file:\\nlog.parquet")
    'no such file: log.parquet'
    """
    return " ".join(text.splitlines())


def visible(text: str) -> str:
    r"""A text as it can be shown anywhere: what has no shape of its own, or would turn the text around it, is written
    by its number.

    >>> visible("a\u202eb\x1b[1m\ud800"), visible("café ✓")
    ('a\\u202eb\\x1b[1m\\ud800', 'café ✓')
    """
    return text if text.isprintable() else "".join(map(_visible_letter, text))


def visible_lines(text: str) -> str:
    r"""A text of several lines, each as it can be shown in a terminal.

    >>> visible_lines("click\x1b[2J\nrevenue")
    'click\\x1b[2J\nrevenue'
    """
    return "\n".join(map(visible, text.split("\n")))


def visible_path(path: str) -> str:
    r"""A path from the file system as text: bytes that are not UTF-8 are written by their number.

    >>> visible_path("tests/caf\udce9")
    'tests/caf\\xe9'
    """
    return visible(os.fsencode(path).decode("utf-8", "backslashreplace"))


def _visible_letter(letter: str) -> str:
    if unicodedata.category(letter) not in _NUMBERED:
        return letter
    return letter.encode("ascii", "backslashreplace").decode() if ord(letter) > 127 else f"\\x{ord(letter):02x}"
