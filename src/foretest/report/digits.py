"""Numbers on a page: those of the terminal, with a page's typography."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from foretest.formatting import format_number, percent

NONE = "–"
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def pct(value: float | None, *, sign: bool = False) -> str:
    """A share or a relative uplift; the space before % does not break, the minus is a minus.

    >>> pct(-0.0512, sign=True), pct(None)
    ('−5.1\\xa0%', '–')
    """
    return NONE if value is None else percent(value, sign=sign).replace("-", "−").replace(" ", "\N{NO-BREAK SPACE}")


def num(value: float | None, *, sign: bool = False) -> str:
    """A value in four significant digits.

    >>> num(0.020496), num(1e-9), num(-0.002, sign=True), num(0.002, sign=True)
    ('0.02050', '1.000\\xa0×\\xa010⁻⁹', '−0.002000', '+0.002000')
    """
    if value is None:
        return NONE
    digits, _, power = format_number(value).partition("e")
    said = digits.replace("-", "−")
    if power:
        said += f"\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10{str(int(power)).translate(_RAISED)}"
    return f"+{said}" if sign and value > 0 else said


def aligned(values: Sequence[float | None], *, sign: bool = False) -> list[str]:
    """A column of values with the same decimals, four significant digits for the largest.

    >>> aligned([0.00959, 0.0000351, None])
    ['0.009590', '0.000035', '–']
    >>> aligned([-1.5, 0.25], sign=True)
    ['−1.500', '+0.250']
    """
    largest = max((abs(v) for v in values if v is not None), default=0.0)
    decimals = min(12, max(0, 3 - floor(log10(largest)))) if largest > 0 else 0
    form = f"{'+' if sign else ''},.{decimals}f"
    return [NONE if v is None else format(v, form).replace("-", "−") for v in values]


def count(value: float) -> str:
    """A number of things, of which a tenth matters only below ten.

    >>> count(200_252), count(3.456), count(12.3), count(0)
    ('200,252', '3.5', '12', '0')
    """
    return f"{value:,.1f}" if 0 < value < 10 and value != int(value) else f"{value:,.0f}"


def tally(value: int) -> str:
    """A number of rows, exact while it is easy to read.

    >>> tally(200_252), tally(123_456_789), tally(4_200_000_000)
    ('200,252', '123.5\\xa0million', '4.20\\xa0billion')
    """
    if value < 10_000_000:
        return f"{value:,}"
    return (
        f"{value / 1e9:.2f}\N{NO-BREAK SPACE}billion" if value >= 1e9 else f"{value / 1e6:.1f}\N{NO-BREAK SPACE}million"
    )


def chance(p: float | None) -> str:
    """A p-value.

    >>> chance(0.25), chance(0.00001)
    ('0.25', 'below 0.0001')
    """
    return NONE if p is None else "below 0.0001" if p < 1e-4 else f"{p:.2g}"


def level(value: float) -> str:
    """A confidence level.

    >>> level(0.9), level(0.995)
    ('90\\xa0%', '99.5\\xa0%')
    """
    return f"{100.0 * value:g}\N{NO-BREAK SPACE}%"


def size(count: int) -> str:
    """Bytes, in the unit that reads best.

    >>> size(900), size(32_421_327)
    ('900\\xa0bytes', '32.4\\xa0MB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f}\N{NO-BREAK SPACE}{unit}"
    return f"{count}\N{NO-BREAK SPACE}bytes"
