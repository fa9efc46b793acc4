"""Figure 3 as drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foretest.history.agreement import Pairs, figures
from foretest.report.charts.correlation import correlation_chart
from tests.report.support import HOSTILE, Drawing, assert_sound


def pairs(n: int = 20, noise: float = 0.5, seed: int = 0) -> Pairs:
    g = np.random.default_rng(seed)
    truth = g.normal(size=n)
    x, y = (truth + noise * g.normal(size=n) for _ in range(2))
    zero, errors = np.zeros(n), np.full(n, noise)
    decided = np.sign(np.round(x)).astype(np.int64), np.sign(np.round(y)).astype(np.int64)
    return Pairs(x, y, errors, errors, zero, x - 1, x + 1, *decided, np.full(n, 2.0), np.full(n, np.nan))


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    return {"cis": {"tests": 20, **figures(pairs())}, HOSTILE: {"tests": 20, **figures(pairs(seed=1))}}


def test_a_box_an_estimator(table: dict[str, Any]) -> None:
    spec = correlation_chart(table)
    assert_sound(spec, HOSTILE)
    drawing = Drawing(spec)
    for name in ("whiskers", "boxes", "medians", "correlations", "ceilings"):
        assert drawing.marks(name) == 2, name
    assert "cis" in drawing.words()
    assert any(word.startswith("a.b[c] </script>") for word in drawing.words())
    assert drawing.width() <= 720


def test_boxes_are_at_the_quartiles(table: dict[str, Any]) -> None:
    """Positions in the picture, by the axis from −1 to 1."""
    spec = correlation_chart(table)
    half = spec["width"] / 2.0
    [box, _] = Drawing(spec).shapes("boxes")
    numbers = [float(part) for part in box.get("d", "").replace("M", "").split("h")[0].split(",")]
    width = float(box.get("d", "").split("h")[1].split("v")[0])
    assert numbers[0] / half - 1.0 == pytest.approx(table["cis"]["correlation_q25"], abs=1e-3)
    assert width / half == pytest.approx(table["cis"]["correlation_q75"] - table["cis"]["correlation_q25"], abs=1e-3)


def test_the_words_have_the_numbers(table: dict[str, Any]) -> None:
    row = table["cis"]
    said = f"cis {row['correlation']:.2f} ({row['correlation_q10']:.2f} to {row['correlation_q90']:.2f})"
    assert said in correlation_chart(table)["description"]


def test_without_a_ceiling_none_is_drawn(table: dict[str, Any]) -> None:
    spec = correlation_chart({"cis": {**table["cis"], "noise_ceiling": None}})
    assert Drawing(spec).marks("ceilings") == 0
    assert "ceiling" not in " ".join(spec["title"]["subtitle"])


def test_an_estimator_without_correlation_is_left_out(table: dict[str, Any]) -> None:
    nothing = dict.fromkeys(table["cis"])
    spec = correlation_chart({"ncis": table["cis"], "cis": nothing})
    assert Drawing(spec).marks("correlations") == 1
    single = {**table["cis"], **{f"correlation_{q}": None for q in ("q10", "q25", "q50", "q75", "q90")}}
    drawing = Drawing(correlation_chart({"cis": single}))
    assert (drawing.marks("correlations"), drawing.marks("boxes")) == (1, 0)
