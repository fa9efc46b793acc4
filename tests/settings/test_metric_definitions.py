"""Settings of metrics that are made of others: each fault is one sentence with the table and the remedy."""

from __future__ import annotations

from typing import Any

import pytest

import foretest as ft
from foretest.settings.metric_definitions import metric_definitions
from foretest.settings.metric_roles import checked_roles
from tests.support import SCORES

REWARDS = ("click", "revenue", "hide")


def settings(metrics: dict[str, Any], *, unit: str | None = "user", keep: str | None = None, **analysis: Any) -> Any:
    columns = ft.LogColumns(rewards=REWARDS, unit=unit, keep=keep, ranking="ranking", id="id")
    return ft.OfflineTest(log=columns, metrics=metrics, **SCORES, **analysis).settings


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "a sum of an unknown metric": (
        {"x": {"sum": {"clik": 1.0}}},
        "[metrics.x] sum names 'clik', which is no metric. Did you mean 'click'?",
    ),
    "a sum of itself": ({"x": {"sum": {"click": 1.0, "x": 1.0}}}, "[metrics.x] sum names itself"),
    "sums of one another": (
        {"x": {"sum": {"y": 1.0}}, "y": {"sum": {"x": 1.0}}},
        "[metrics.y] sum names x, which is made of it",
    ),
    "a sum of a ratio": (
        {"x": {"sum": {"r": 1.0}}, "r": {"ratio": ["revenue", "click"]}},
        "[metrics.x] sum names r, which is a ratio or per unit",
    ),
    "an empty sum": ({"x": {"sum": {}}}, "[metrics.x] sum = {}: expected a factor for each metric"),
    "a factor that is text": ({"x": {"sum": {"click": "1"}}}, "[metrics.x] sum: click"),
    "a factor of 0": ({"x": {"sum": {"click": 0.0}}}, "[metrics.x] sum: click = 0 adds nothing"),
    "losses alone": ({"x": {"sum": {"hide": -1.0}}}, "[metrics.x] sum has no factor above 0"),
    "a ratio of one": ({"x": {"ratio": ["click"]}}, "[metrics.x] ratio = ['click']: expected two metrics"),
    "a ratio of the same": ({"x": {"ratio": ["click", "click"]}}, "[metrics.x] ratio is of click by itself"),
    "a ratio of itself": ({"x": {"ratio": ["x", "click"]}}, "[metrics.x] ratio names itself"),
    "a ratio of an unknown metric": (
        {"x": {"ratio": ["revenue", "clicks"]}},
        "[metrics.x] ratio names 'clicks', which is no metric. Did you mean 'click'?",
    ),
    "a ratio of a ratio": (
        {"x": {"ratio": ["y", "click"]}, "y": {"ratio": ["revenue", "click"]}},
        "[metrics.x] ratio names y, which is a ratio or per unit itself",
    ),
    "per something else": ({"x": {"per": "user", "of": "click"}}, "[metrics.x] per = 'user': a metric is per display"),
    "per without of": ({"x": {"per": "unit"}}, "[metrics.x] per and of belong together"),
    "per unit of an unknown metric": ({"x": {"per": "unit", "of": "clik"}}, "[metrics.x] of names 'clik'"),
    "two definitions": (
        {"x": {"sum": {"click": 1.0}, "ratio": ["revenue", "click"]}},
        "[metrics.x] sum and ratio are both given",
    ),
    "a reward that is a sum": ({"click": {"sum": {"hide": 1.0}}}, "[metrics.click] is a column of [log] rewards"),
    "a signed sum": ({"x": {"sum": {"click": 1.0}, "signed": True}}, "[metrics.x] signed is for a column of rewards"),
    "signed that is text": ({"click": {"signed": "yes"}}, "[metrics.click] signed = 'yes': expected true or false"),
    "a name that a part has": (
        {"x": {"sum": {"click": 1.0, "hide": -1.0}}, "x (gains)": {"sum": {"click": 1.0}}},
        "two metrics are named 'x (gains)': rename one of them",
    ),
    "no metric at all": ({"x": {}}, "[metrics.x]: there is no metric 'x'."),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_sentence(fault: str) -> None:
    metrics, sentence = FAULTS[fault]
    with pytest.raises(ft.BadInput) as caught:
        settings(metrics)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_metric_cannot_have() -> None:
    ratio, net = {"x": {"ratio": ["revenue", "click"]}}, {"x": {"sum": {"click": 1.0, "hide": -1.0}}}
    for metrics in (ratio, net):
        with pytest.raises(ft.BadInput, match='interval = "bernstein" is for rewards of 0 or more, and x is not one'):
            settings(metrics, interval="bernstein", r_max=1.0)
    per_unit = {"x": {"per": "unit", "of": "click"}}
    with pytest.raises(ft.BadInput, match=r'\[metrics.x\] per = "unit": name the column of units in \[log\] unit'):
        settings(per_unit, unit=None)
    with pytest.raises(ft.BadInput, match=r"of a thinned log \(\[log\] keep\)"):
        settings(per_unit, keep="keep")
    settings({"x": {"sum": {"click": 1.0, "hide": 1.0}}}, interval="bernstein", r_max=1.0)


def test_parts_are_zero_or_more() -> None:
    """Signed rewards and factors of either sign: gains and losses are sums of what is 0 or more."""
    tables = {"change": {"signed": True}, "x": {"sum": {"click": 2.0, "change": -0.5}}, "y": {"sum": {"x": 2.0}}}
    metrics = metric_definitions(("click", "change"), checked_roles(tables, ("click", "change")))
    parts = {part.name: {(t.column, t.sign): t.share for t in part.terms} for part in metrics.parts}
    assert parts == {
        "click": {("click", 1): 1.0},
        "change (gains)": {("change", 1): 1.0},
        "change (losses)": {("change", -1): 1.0},
        "x (gains)": {("click", 1): 2.0, ("change", -1): 0.5},
        "x (losses)": {("change", 1): 0.5},
        "y (gains)": {("click", 1): 4.0, ("change", -1): 1.0},
        "y (losses)": {("change", 1): 1.0},
    }
    assert metrics.names == ("click", "change", "x", "y")
    assert list(metrics.linear) == ["click", "change", "x", "y"]
