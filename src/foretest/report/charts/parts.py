"""What charts share: the frame of a specification, axes of powers of ten and of percentages, short numbers."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor
from textwrap import wrap
from typing import Any

from foretest.report.theme import SCHEMA

Spec = dict[str, Any]

_LINE = 112  # characters of a subtitle's line, at the width of a chart


def frame(title: str, sentences: list[str], description: str, **rest: Any) -> Spec:
    """A specification's outer part. `description` may contain names from users: it is read aloud and never run."""
    lines = [line for sentence in sentences for line in wrap(sentence, _LINE)]
    heading = {"text": title, "subtitle": lines} if lines else {"text": title}
    return {"$schema": SCHEMA, "description": description, "title": heading, **rest}


def powers_of_ten(field: str, title: str, lowest: float, highest: float) -> tuple[Spec, list[Spec]]:
    """A channel x whose values are exponents of ten, and the layers that label it: 10 with a raised exponent.

    The labels are marks, because few fonts have raised digits and an axis cannot raise any.
    """
    step = next(s for s in (1, 2, 5, 10, 20) if highest - lowest <= 15 * s or s == 20)
    ticks = [k for k in range(ceil(lowest), floor(highest) + 1) if k % step == 0]
    channel = quantitative(
        field,
        scale={"domain": [lowest, highest], "nice": False, "zero": False},
        axis={"title": title, "values": ticks, "labels": False, "grid": False, "titlePadding": 24},
    )
    data = {"values": [{field: k, "base": "10", "exponent": f"{k}".replace("-", "−")} for k in ticks]}
    # both meet a little right of the tick, so that the pair is centred
    texts = [
        ("base", {"align": "right", "dy": 16, "fontSize": 12}),
        ("exponent", {"align": "left", "dy": 11, "fontSize": 9}),
    ]
    labels = [
        {
            "data": data,
            "mark": {"type": "text", "style": "guide-text", "dx": 4, "aria": False, **look},
            "encoding": {"x": channel, "y": {"value": "height"}, "text": {"field": name}},
        }
        for name, look in texts
    ]
    return channel, labels


def percent_axis(title: str | None, *, sign: bool = False, **rest: Any) -> Spec:
    """An axis of shares, labelled in percent."""
    plus = "datum.value > 0 ? '+' : ''" if sign else "''"
    return {"title": title, "labelExpr": f"({plus}) + format(100 * datum.value, ',~r') + ' %'", **rest}


def power(value: float) -> str:
    """A cap or a weight, in a few characters.

    >>> power(100.0), power(10**1.5), power(31622.8), power(1e23), power(3.162e13), power(0.001)
    ('100', '31.6', '31,600', '1e23', '3.2e13', '0.001')
    """
    if 1e-4 < value < 1e6:
        return f"{float(f'{value:.3g}'):,.10g}"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"


def power_of(exponent: float) -> str:
    """10^exponent, also where that is beyond a float.

    >>> power_of(2.0), power_of(400.0)
    ('100', '1e400')
    """
    return power(10.0**exponent) if abs(exponent) < 300 else f"1e{exponent:.0f}"


def quantitative(field: str, **rest: Any) -> Spec:
    """A channel of numbers."""
    return {"field": field, "type": "quantitative", **rest}


def tooltip(titles: Mapping[str, str]) -> list[Spec]:
    """The lines of a tooltip: titles by field; the fields are text already."""
    return [{"field": field, "type": "nominal", "title": title} for field, title in titles.items()]


def corner(name: str) -> Spec:
    """A name from the user above the plot, at the right; as the text of a mark it is data."""
    mark = {"type": "text", "align": "right", "baseline": "bottom", "dy": -10, "y": 0, "fontWeight": 600, "limit": 220}
    encoding = {"x": {"value": "width"}, "text": {"field": "name"}}
    return {"data": {"values": [{"name": name}]}, "mark": mark, "encoding": encoding}
