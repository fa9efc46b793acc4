"""Metrics that are made of others, online: losses, denominators near 0, limits of rewards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from tests.schemas import validate
from tests.support import apart

SCHEMA = Path(ft.__file__).parent / "schema" / "result-1.json"


def arm(seed: int, lift: float, first: int) -> dict[str, np.ndarray]:
    g = np.random.default_rng(seed)
    users = apart(800)[first : first + 400]
    user = np.repeat(users, g.geometric(0.4, 400))
    click = (g.random(len(user)) < 0.3 * lift).astype(float)
    change = np.where(g.random(len(user)) < 0.5, g.normal(-0.4 * lift, 1.0, len(user)), 0.0)
    return {"user": user, "click": click, "revenue": click * np.exp(g.normal(size=len(user))), "change": change}


@pytest.fixture(scope="module")
def arms() -> list[dict[str, np.ndarray]]:
    return [arm(1, 1.0, 0), arm(2, 1.3, 400)]


def online(arms: list[dict[str, np.ndarray]], metrics: Any, **more: Any) -> ft.Result:
    log = ft.LogColumns(rewards=["click", "revenue", "change"], unit="user")
    test = ft.OnlineTest(log=log, metrics={"change": {"signed": True}, **metrics}, interval="delta", **more)
    return test.run(*(pa.table(one) for one in arms))


def test_a_loss_is_compared_by_its_size(arms: list[dict[str, np.ndarray]]) -> None:
    result = online(arms, {})
    control, treatment = (one["change"].mean() for one in arms)
    e = result.metrics["change"].estimates["online"]
    assert control < 0.0
    assert e.effect_size == pytest.approx(treatment - control, rel=1e-12)
    assert e.rel_effect_size == pytest.approx((treatment - control) / -control, rel=1e-12)
    sizes = [np.abs(one["change"]) for one in arms]
    assert e.effective_positives == pytest.approx(min(s.sum() ** 2 / np.square(s).sum() for s in sizes))
    validate(json.loads(result.to_json()), json.loads(SCHEMA.read_text(encoding="utf-8")))


@pytest.mark.parametrize("interval", ["delta", "bootstrap"])
def test_no_relative_numbers_where_the_control_may_be_zero(arms: list[dict[str, np.ndarray]], interval: str) -> None:
    balance = float(arms[0]["click"].mean() / arms[0]["revenue"].mean())
    metrics = {
        "change": {"signed": True},
        "nil": {"sum": {"click": 1.0, "revenue": -balance}},
        "by_nil": {"ratio": ["click", "nil"]},
        "nil_per_user": {"per": "unit", "of": "nil"},
    }
    log = ft.LogColumns(rewards=["click", "revenue", "change"], unit="user")
    test = ft.OnlineTest(log=log, metrics=metrics, interval=interval, sequential=True)
    result = test.run(*(pa.table(one) for one in arms))
    nil, by_nil = (result.metrics[name].estimates["online"] for name in ("nil", "by_nil"))
    assert nil.effect_size is not None
    assert nil.rel_effect_size is None
    assert nil.range is not None
    assert nil.range.rel_ci_lower is None
    per_user = result.metrics["nil_per_user"].estimates["online"]
    assert per_user.effect_size is not None
    assert per_user.rel_effect_size is None
    assert by_nil.effect_size is None
    assert by_nil.verdict == "insufficient"
    assert "nil, which it is divided by, contains 0" in by_nil.reasons[0]
    validate(json.loads(result.to_json()), json.loads(SCHEMA.read_text(encoding="utf-8")))


@pytest.mark.parametrize("covariate", [None, "before"])
@pytest.mark.parametrize("interval", ["delta", "bootstrap"])
def test_a_ratio_by_exactly_nothing_has_no_number(
    arms: list[dict[str, np.ndarray]], interval: str, covariate: str | None
) -> None:
    """Sums that are 0 to the last bit, in one arm or in both."""
    metrics = {"nil": {"sum": {"click": 1.0, "other": -1.0}}, "by_nil": {"ratio": ["click", "nil"]}}
    log = ft.LogColumns(rewards=["click", "other"], unit="user")
    test = ft.OnlineTest(log=log, metrics=metrics, interval=interval, sequential=True, covariate=covariate)
    arms = [{**one, "before": np.sin(one["user"])} for one in arms]
    alike = [{**one, "other": one["click"]} for one in arms]
    for first, second in (alike, (alike[0], {**arms[1], "other": 3.0 * arms[1]["click"]})):
        result = test.run(pa.table(first), pa.table(second))
        by_nil = result.metrics["by_nil"].estimates["online"]
        assert by_nil.verdict == "insufficient"
        assert "nil, which it is divided by, contains 0" in by_nil.reasons[0]
        assert result.metrics["by_nil"].control.value is None
        validate(json.loads(result.to_json()), json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_both_arms_are_cut_at_the_controls_quantile(arms: list[dict[str, np.ndarray]]) -> None:
    revenue = arms[0]["revenue"]
    limit = float(np.quantile(revenue[revenue > 0], 0.9, method="inverted_cdf"))
    cut = [{**one, "revenue": np.minimum(one["revenue"], limit)} for one in arms]
    expected = online(cut, {})
    for winsorise in (0.9, {"limit": limit}):
        result = online(arms, {"revenue": {"winsorise": winsorise}})
        assert result.metrics["revenue"].estimates == expected.metrics["revenue"].estimates
        assert result.winsorised is not None
        found = result.winsorised["revenue"]
        assert found["limit"] == limit
        shares = [
            1.0 - after["revenue"].sum() / before["revenue"].sum() for before, after in zip(arms, cut, strict=True)
        ]
        assert [found["share_cut"], found["share_cut_treatment"]] == pytest.approx(shares, rel=1e-10)
    stream = [pa.table(one).to_reader(max_chunksize=100) for one in arms]
    log = ft.LogColumns(rewards=["click", "revenue", "change"], unit="user")
    metrics = {"change": {"signed": True}, "revenue": {"winsorise": 0.9}}
    again = ft.OnlineTest(log=log, metrics=metrics, interval="delta").run(*stream)
    assert again.winsorised is not None
    assert again.winsorised["revenue"]["limit"] == limit


def test_units_beyond_counting_one_by_one(arms: list[dict[str, np.ndarray]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Values per unit of many units: the same number, and an interval that is no narrower."""
    from foretest.aggregation.unit_counts import UnitCounts

    metrics = {"per_user": {"per": "unit", "of": "revenue"}}
    exact = online(arms, metrics).metrics["per_user"].estimates["online"]
    monkeypatch.setattr(UnitCounts, "exact", property(lambda self: False))
    many = online(arms, metrics)
    e = many.metrics["per_user"].estimates["online"]
    assert e.effect_size == pytest.approx(exact.effect_size, rel=1e-12)
    assert e.std_error is not None
    assert exact.std_error is not None
    assert exact.std_error < e.std_error < 2.0 * exact.std_error
    assert any("too many units" in note for note in many.notes)
