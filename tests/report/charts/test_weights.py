"""Figure 1 as drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.report.charts.weights import weights_chart
from tests.report.support import Drawing, assert_sound
from tests.support import SmallLog, build_test

LOG = SmallLog(spread=3.0)


@pytest.fixture(scope="module")
def weights() -> dict[str, Any]:
    found: dict[str, Any] = build_test(["cis"], cap=7.0).run(LOG.table()).to_dict()["weights"]
    return found


def test_a_bar_a_bin_and_the_band(weights: dict[str, Any]) -> None:
    spec = weights_chart(weights)
    assert_sound(spec)
    drawing = Drawing(spec)
    assert drawing.marks("bars") == sum(share > 0 for share in weights["share"])
    assert drawing.marks("band") == drawing.marks("median") == 1
    assert "cap 7" in drawing.words()
    assert drawing.width() <= 720


def test_the_words_have_the_numbers(weights: dict[str, Any]) -> None:
    spec = weights_chart(weights)
    for sentence in (spec["description"], " ".join(spec["title"]["subtitle"])):
        assert f"{10 ** weights['log10_quantiles']['0.9']:.3g}" in sentence
        assert f"{100 * weights['share_above_cap']:.1f} % weigh more than the cap of 7" in sentence
        assert "6,400 rankings drawn for 400 displays" in sentence


def test_the_axis_has_powers_of_ten(weights: dict[str, Any]) -> None:
    words = Drawing(weights_chart(weights)).words()
    assert words.count("10") >= 3
    assert {"−1", "0", "1"} <= set(words)


def test_the_log_s_own_weights_say_what_was_not_seen() -> None:
    w = np.exp(-np.random.default_rng(0).gamma(2.0, 1.0, 500))
    table = pa.table({"click": np.ones(500), "p": np.ones(500), "t": w})
    policies = {"control": ft.Logged(prob="p"), "treatment": ft.Logged(prob="t")}
    result = ft.OfflineTest(log=ft.LogColumns(rewards=["click"]), **policies, estimators=["cis"]).run(table)
    spec = weights_chart(result.to_dict()["weights"])
    assert_sound(spec)
    assert f"{100 * (1 - w.mean()):.1f} % of the treatment was never seen in it" in spec["description"]
    assert "to more than the log shows" in spec["description"]
    assert Drawing(spec).marks("bars") > 5


def test_what_is_off_the_axis_is_said(weights: dict[str, Any]) -> None:
    quantiles = {"0.1": None, "0.5": None, "0.9": None}
    far = {**weights, "log10_lower": [], "share": [], "share_infinite": 1.0, "log10_quantiles": quantiles}
    spec = weights_chart(far)
    assert "100 % are never shown by the control (infinite weight)." in spec["description"]
    drawing = Drawing(spec)
    assert drawing.marks("bars") == drawing.marks("band") == 0
    quantiles = {"0.1": -299.7, "0.5": 0.0, "0.9": 299.7}
    wide = {**weights, "share_beyond": 0.2, "share_below": 0.1, "log10_quantiles": quantiles}
    assert "20.0 % weigh more than the axis shows." in weights_chart(wide)["description"]
    assert "from 2e-300 to 5e299" in weights_chart(wide)["description"]
    assert Drawing(weights_chart(wide)).width() <= 720
