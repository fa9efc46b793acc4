"""Numbers on a page: formatted as in the terminal, with real minus signs and spaces that do not break."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, log10

from foretest.formatting import format_number, minus_signs, p_value, percent, round_percent

NONE = "–"  # there is no number
_SPACE = "\N{NO-BREAK SPACE}"
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def pct(value: float | None, *, sign: bool = False) -> str:
    """A share or a relative uplift in percent.

    >>> pct(-0.0512, sign=True), pct(None)
    ('−5.1\\xa0%', '–')
    """
    return NONE if value is None else minus_signs(percent(value, sign=sign)).replace(" ", _SPACE)


def num(value: float | None, *, sign: bool = False) -> str:
    """A value in four significant digits.

    >>> num(0.020496), num(1e-9), num(-0.002, sign=True), num(0.002, sign=True)
    ('0.02050', '1.000\\xa0×\\xa010⁻⁹', '−0.002000', '+0.002000')
    """
    if value is None:
        return NONE
    digits, _, power = format_number(value).partition("e")
    text = minus_signs(digits)
    if power:
        text += f"{_SPACE}×{_SPACE}10{str(int(power)).translate(_RAISED)}"
    return f"+{text}" if sign and value > 0 else text


def decimal(value: float | None, digits: int = 2) -> str:
    """A value with a fixed number of decimals, and no minus sign before a zero.

    >>> decimal(-0.357), decimal(-0.001), decimal(None)
    ('−0.36', '0.00', '–')
    """
    return NONE if value is None else minus_signs(f"{value:z.{digits}f}")


def interval_text(lower: float | None, upper: float | None, form: Callable[..., str] = pct) -> str:
    """An interval of uplifts, relative ones or, with `form=num`, absolute ones.

    >>> interval_text(-0.01, 0.035), interval_text(None, None)
    ('−1.0\\xa0% to +3.5\\xa0%', 'no interval')
    """
    return "no interval" if lower is None else f"{form(lower, sign=True)} to {form(upper, sign=True)}"


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
    return [NONE if v is None else minus_signs(format(v, form)) for v in values]


def count(value: float) -> str:
    """A number of things, with a decimal only below ten.

    >>> count(200_252), count(3.456), count(12.3), count(0)
    ('200,252', '3.5', '12', '0')
    """
    return f"{value:,.1f}" if 0 < value < 10 and value != int(value) else f"{value:,.0f}"


def tally(value: int) -> str:
    """A number of rows, exact as long as that is easy to read.

    >>> tally(200_252), tally(123_456_789), tally(4_200_000_000)
    ('200,252', '123.5\\xa0million', '4.20\\xa0billion')
    """
    if value < 10_000_000:
        return f"{value:,}"
    return f"{value / 1e9:.2f}{_SPACE}billion" if value >= 1e9 else f"{value / 1e6:.1f}{_SPACE}million"


def estimate_of_count(value: int) -> str:
    """An estimated number of rows or units, in three digits.

    >>> estimate_of_count(200_000), estimate_of_count(123_000_000), estimate_of_count(4_210_000_000)
    ('200,000', '123\\xa0million', '4.21\\xa0billion')
    """
    if value < 10_000_000:
        return f"{value:,}"
    return f"{value / 1e9:.3g}{_SPACE}billion" if value >= 1e9 else f"{value / 1e6:.3g}{_SPACE}million"


def p_text(p: float | None) -> str:
    """A p-value, to follow "p" or to stand in a column of p-values.

    >>> p_text(0.25), p_text(0.00001)
    ('0.25', 'below 0.0001')
    """
    return NONE if p is None else p_value(p).removeprefix("p = ").replace("p < ", "below ")


def level(value: float) -> str:
    """A confidence level.

    >>> level(0.9), level(0.995)
    ('90\\xa0%', '99.5\\xa0%')
    """
    return round_percent(value).replace(" ", _SPACE)


def size(bytes_: int) -> str:
    """A number of bytes, in the unit that reads best.

    >>> size(900), size(32_421_327)
    ('900\\xa0bytes', '32.4\\xa0MB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if bytes_ >= factor:
            return f"{bytes_ / factor:.1f}{_SPACE}{unit}"
    return f"{bytes_}{_SPACE}bytes"
