"""Markdown: tables, and numbers as a reader wants them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from foretest import formatting
from foretest.report.digits import NONE, decimal


def table(header: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A table whose first columns are words and whose others are numbers.

    >>> print(table(["estimator", "uplift"], [["CIS", "−1.0 %"]]))
    | estimator | uplift |
    | --- | ---: |
    | CIS | −1.0 % |
    """
    rule = ["---" if column < words else "---:" for column in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def paragraph(*sentences: str) -> str:
    """Sentences as one paragraph, in lines of at most 120 characters."""
    words = " ".join(" ".join(sentences).split())
    return textwrap.fill(words, 120, break_long_words=False, break_on_hyphens=False)


def percent(value: float | None, *, sign: bool = True) -> str:
    """A share or a relative uplift, with a real minus sign.

    >>> percent(-0.0512), percent(0.2, sign=False), percent(None)
    ('−5.1 %', '20.0 %', '–')
    """
    return NONE if value is None else formatting.minus_signs(formatting.percent(value, sign=sign))


def count(value: float | None) -> str:
    """A whole number with thousands; a large one as a power of ten.

    >>> count(150000), count(2.7e15), count(1e11), count(None)
    ('150,000', '2.7·10^15', '10^11', '–')
    """
    if value is None:
        return NONE
    if value < 1e7:
        return f"{value:,.0f}"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{'' if mantissa == '1.0' else f'{mantissa}·'}10^{int(exponent)}"


def cap(value: float | None) -> str:
    """A cap, a power of ten where it is large.

    >>> cap(1.7782794), cap(100.0), cap(17782794100389.2)
    ('1.8', '100', '1.8·10^13')
    """
    return NONE if value is None else f"{value:.2g}" if value < 100 else count(value)


def span(value: float | None, lower: float | None, upper: float | None) -> str:
    """A figure and its 10 % and 90 % quantiles.

    >>> span(0.5, 0.25, 0.75)
    '0.50 (0.25 to 0.75)'
    """
    return decimal(value) if lower is None else f"{decimal(value)} ({decimal(lower)} to {decimal(upper)})"
