"""Ranges as bars in the rows of a table: where each bar begins and ends, in percent of the cell's width.

The bar inside a bar is noise alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """An estimate and the limits of its range; None for a number that does not exist."""

    lower: float | None
    middle: float | None
    upper: float | None
    sound: bool = True  # may it set the scale? an estimate without enough evidence may not
    noise: tuple[float, float] | None = None  # limits of noise alone, where the span is wider than that


class Bar(NamedTuple):
    """A drawn range, in percent from the left; `cut_left` and `cut_right` say where it goes beyond the scale."""

    zero: float
    begin: float
    width: float
    point: float | None
    cut_left: bool
    cut_right: bool
    inner: tuple[float, float] | None = None  # begin and width of the bar inside it, which is noise alone

    @property
    def style(self) -> str:
        """The bar as CSS variables."""
        point = "" if self.point is None else f";--point:{self.point:.2f}%"
        inner = "" if self.inner is None else f";--inner:{self.inner[0]:.2f}%;--inner-width:{self.inner[1]:.2f}%"
        return f"--zero:{self.zero:.2f}%;--begin:{self.begin:.2f}%;--width:{self.width:.2f}%{point}{inner}"


def bars(spans: Sequence[Span]) -> list[Bar | None]:
    """Bars on one scale, which contains 0 and the sound spans; None where there is nothing to draw.

    >>> [bar.style for bar in bars([Span(-1.0, 1.0, 3.0), Span(0.0, 9.0, 99.0, sound=False)])]  # doctest: +ELLIPSIS
    ['--zero:27.27%;--begin:4.55%;--width:90.91%;--point:50.00%', '--zero:27.27%;--begin:27.27%;...']
    """
    lowest, highest = scale(spans)
    return [_bar(span, lowest, highest) for span in spans]


def scale(spans: Sequence[Span]) -> tuple[float, float]:
    """The ends of the scale: 0 and the sound spans, with a margin; all spans where none is sound."""
    for chosen in ([s for s in spans if s.sound], list(spans)):
        values = [v for span in chosen for v in span[:3] if v is not None and math.isfinite(v)]
        if values:
            lowest, highest = min(0.0, *values), max(0.0, *values)
            margin = 0.05 * (highest - lowest) or 1.0
            return lowest - margin, highest + margin
    return -1.0, 1.0


def _bar(span: Span, lowest: float, highest: float) -> Bar | None:
    if span.lower is None or span.upper is None:
        return None

    def place(value: float) -> float:
        return 100.0 * (min(max(value, lowest), highest) - lowest) / (highest - lowest)

    begin, end = place(span.lower), place(span.upper)
    inside = span.middle is not None and lowest <= span.middle <= highest
    point = place(span.middle) if inside and span.middle is not None else None
    inner = None
    if span.noise is not None:
        inner_begin, inner_end = (place(limit) for limit in span.noise)
        inner = inner_begin, inner_end - inner_begin
    return Bar(place(0.0), begin, end - begin, point, span.lower < lowest, span.upper > highest, inner)
