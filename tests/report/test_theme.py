"""Colours: contrast by the formula of WCAG 2, and never the only sign."""

from __future__ import annotations

from typing import Any

import pytest

from foretest.report import theme
from foretest.report.charts.cap import CURVES
from foretest.report.charts.cap_estimates import ESTIMATORS
from foretest.report.charts.examination import SIGNS


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2)."""
    channels = [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a: str, b: str) -> float:
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def test_the_formula() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("config", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_text_and_marks_stand_out(config: dict[str, Any]) -> None:
    background = config["background"]
    texts = [
        config["title"]["color"], config["title"]["subtitleColor"], config["axis"]["labelColor"],
        config["axis"]["titleColor"], config["legend"]["labelColor"], config["text"]["color"],
        config["style"]["guide-text"]["color"],
    ]  # fmt: skip
    assert min(contrast(colour, background) for colour in texts) >= 4.5
    marks = [theme.BLUE, theme.VERMILION, theme.GREEN, theme.ORANGE, theme.RED, theme.PURPLE, theme.GREY]
    marks += [config["style"]["guide"]["color"], config["style"]["strong"]["color"]]
    assert min(contrast(colour, background) for colour in marks) >= 3.0


@pytest.mark.parametrize("signs", [theme.OUTCOMES, theme.VERDICTS], ids=["outcomes", "verdicts"])
def test_a_shape_or_dash_says_what_the_colour_says(signs: dict[str, theme.Sign]) -> None:
    assert len({sign.colour for sign in signs.values()}) == len(signs)
    assert len({sign.shape for sign in signs.values()}) == len(signs)


def test_the_papers_dashes() -> None:
    dashes = {name: sign.dash for name, sign in theme.OUTCOMES.items()}
    assert dashes["right"][0] <= 2 < dashes["false positive"][0]  # dotted, dashed
    assert dashes["false negative"][1] == 0  # plain


#: colours as seen with the three kinds of dichromacy (Machado, Oliveira and Fernandes 2009, severity 1)
VISION = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


@pytest.mark.parametrize("vision", list(VISION))
@pytest.mark.parametrize(
    "colours",
    [
        [sign.colour for sign in theme.OUTCOMES.values()],
        [sign.colour for sign in theme.VERDICTS.values()],
        [sign.colour for _, sign in CURVES.values()],
        [sign.colour for _, sign in ESTIMATORS.values()],
        [sign.colour for sign in SIGNS],
    ],
    ids=["outcomes", "verdicts", "curves", "estimators", "examination"],
)
def test_colours_differ_for_every_eye(vision: str, colours: list[str]) -> None:
    seen = []
    for colour in colours:
        channels = [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        seen.append(_lab([sum(m * c for m, c in zip(row, linear, strict=True)) for row in VISION[vision]]))
    for i, a in enumerate(seen):
        for b in seen[i + 1 :]:
            assert sum((u - v) ** 2 for u, v in zip(a, b, strict=True)) ** 0.5 > 10.0


def _lab(linear: list[float]) -> tuple[float, float, float]:
    """CIELAB (D65) of linear RGB."""
    matrix = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
    clipped = [min(1.0, max(0.0, c)) for c in linear]
    xyz = [sum(m * c for m, c in zip(row, clipped, strict=True)) for row in matrix]
    x, y, z = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (xyz[0] / 0.95047, xyz[1], xyz[2] / 1.08883)
    )
    return 116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)
