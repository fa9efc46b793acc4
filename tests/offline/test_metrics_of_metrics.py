"""Metrics that are made of others: sums with any sign, ratios, values per unit, against plain NumPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from tests.schemas import validate
from tests.support import CURVE, SCORES, SmallLog, apart

SCHEMA = Path(ft.__file__).parent / "schema" / "result-1.json"

SIGNED: dict[str, Any] = {"change": {"signed": True}}
SUMS: dict[str, Any] = {
    "gain": {"sum": {"click": 1.0, "revenue": 0.5}},
    "net": {"sum": {"click": 2.0, "hide": -3.0}},
    "nested": {"sum": {"net": 0.5, "revenue": 1.0}},
    **SIGNED,
}
KINDS: dict[str, Any] = {
    **SUMS,
    "rpc": {"ratio": ["revenue", "click"]},
    "npc": {"ratio": ["net", "click"]},
    "per_user": {"per": "unit", "of": "click"},
    "net_per_user": {"per": "unit", "of": "net"},
}
REWARDS = ("click", "revenue", "hide", "change")


class MixedLog(SmallLog):
    """A log with rewards of every kind, each with what its slots earned."""

    def __init__(self, rows: int = 600, units: int = 150, seed: int = 1) -> None:
        super().__init__(rows=rows, units=units, seed=seed)
        self.code, self.unit = self.unit, apart(units)[self.unit]
        g = np.random.default_rng(seed + 100)
        self.hide = (g.random(rows) < 0.1).astype(float)
        self.change = np.where(g.random(rows) < 0.4, g.normal(0.3, 1.0, rows), 0.0)

    def rewards(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in REWARDS}

    def full_table(self) -> pa.Table:
        g, shares = np.random.default_rng(5), np.array([0.3, 0.7])
        extra: dict[str, Any] = {name: getattr(self, name) for name in ("hide", "change")}
        for name, reward in self.rewards().items():
            split = reward[:, None] * self.shares.get(name, shares)
            if name == "change":  # a slot gains what another loses, also where the sum is 0
                split = split + np.outer(g.normal(size=self.rows), [1.0, -1.0])
            extra[f"slot_{name}"] = split.tolist()
        return self.table(**extra)


def offline(
    metrics: Any, *, slots: bool = False, rewards: tuple[str, ...] = REWARDS, **analysis: Any
) -> ft.OfflineTest:
    columns = ft.LogColumns(
        rewards=rewards, unit="user", id="id", ranking="ranking", segments=analysis.pop("segments", ()),
        slot_rewards={name: f"slot_{name}" for name in rewards} if slots else None,
    )  # fmt: skip
    settings: dict[str, Any] = {"weight_bound": 20.0, "interval": "delta", **SCORES, **analysis}
    return ft.OfflineTest(log=columns, metrics=metrics, **settings)


@pytest.fixture(scope="module")
def log() -> MixedLog:
    return MixedLog()


def values(result: ft.Result, metric: str) -> dict[str, float]:
    return {label: e.treatment for label, e in result.metrics[metric].estimates.items() if e.treatment is not None}


def test_a_sum_is_the_sum_of_its_parts_for_every_linear_estimator(log: MixedLog) -> None:
    result = offline(SUMS, slots=True, strata="stratum", examination=list(CURVE[:2])).run(log.full_table())
    parts = {name: values(result, name) for name in REWARDS}
    assert len(parts["click"]) >= 12
    expected = {
        "gain": {"click": 1.0, "revenue": 0.5},
        "net": {"click": 2.0, "hide": -3.0},
        "nested": {"click": 1.0, "hide": -1.5, "revenue": 1.0},
    }
    for name, factors in expected.items():
        found = values(result, name)
        assert found.keys() == parts["click"].keys()
        for label, value in found.items():
            total = sum(factor * parts[part][label] for part, factor in factors.items())
            assert value == pytest.approx(total, rel=1e-12, abs=1e-14), (name, label)


def test_a_signed_reward_is_weighed_as_it_is(log: MixedLog) -> None:
    result = offline(KINDS, estimators=["is", "nis", "cis", "ncis"], cap=2.0).run(log.full_table())
    metric, w, r = result.metrics["change"], np.exp(log.log_w), log.change
    capped = np.minimum(w, 2.0)
    assert metric.control.value == pytest.approx(r.mean(), rel=1e-12)
    expected = {"is": (w * r).mean(), "nis": (w * r).sum() / w.sum(), "cis": (capped * r).mean(),
                "ncis": (capped * r).sum() / capped.sum()}  # fmt: skip
    for label, value in expected.items():
        estimate = metric.estimates[label]
        assert estimate.treatment == pytest.approx(value, rel=1e-12)
        assert estimate.rel_effect_size in (None, pytest.approx((value - r.mean()) / abs(r.mean()), rel=1e-10))
    sizes = np.abs(capped * r)
    assert metric.estimates["cis"].effective_positives == pytest.approx(sizes.sum() ** 2 / np.square(sizes).sum())


def test_the_standard_errors_are_those_of_units(log: MixedLog) -> None:
    """`is` by the sums of units, each in a bucket of its own: a difference by its rows, a ratio by its derivative."""
    result = offline(KINDS, estimators=["is"]).run(log.full_table())
    w, n = np.exp(log.log_w), log.rows

    def error(term: np.ndarray) -> float:
        by_unit = np.bincount(log.code, weights=term - term.mean())
        units = len(np.unique(log.unit))
        return float(np.sqrt(units / (units - 1.0) * np.square(by_unit).sum()) / n)

    net = 2.0 * log.click - 3.0 * log.hide
    assert result.metrics["net"].estimates["is"].std_error == pytest.approx(error((w - 1.0) * net), rel=1e-9)
    a, b = log.revenue, log.click
    treated, control = (w * a).mean() / (w * b).mean(), a.mean() / b.mean()
    of_treated = (w * a - treated * w * b) / (w * b).mean()
    of_control = (a - control * b) / b.mean()
    ratio = result.metrics["rpc"].estimates["is"]
    assert result.metrics["rpc"].control.value == pytest.approx(control, rel=1e-12)
    assert result.metrics["rpc"].control.std_error == pytest.approx(error(of_control), rel=1e-9)
    assert ratio.treatment == pytest.approx(treated, rel=1e-12)
    assert ratio.std_error == pytest.approx(error(of_treated - of_control), rel=1e-9)
    assert ratio.rel_effect_size == pytest.approx(treated / control - 1.0, rel=1e-10)
    relative = of_treated / control - treated * of_control / control**2
    assert ratio.rel_std_error == pytest.approx(error(relative), rel=1e-9)


@pytest.mark.parametrize("interval", ["delta", "bootstrap"])
def test_a_treatment_that_is_the_control_changes_nothing(log: MixedLog, interval: str) -> None:
    same = {"control": SCORES["control"], "treatment": SCORES["control"]}
    result = offline(KINDS, slots=True, interval=interval, n_resamples=50, **same).run(log.full_table())
    assert list(result.metrics) == [*REWARDS, *(name for name in KINDS if name != "change")]
    for name, metric in result.metrics.items():
        for label, e in metric.estimates.items():
            assert abs(e.effect_size or 0.0) <= 1e-15 * max(1.0, abs(metric.control.value or 0.0)), (name, label)
            assert e.verdict in ("neutral", "insufficient")


def test_the_band_lets_losses_grow_where_gains_shrink(log: MixedLog) -> None:
    """U = d + (Γ_upper − 1) T of gains + (1 − 1/Γ_lower) T of losses, and L the other way round."""
    label, gamma = "point-ncis-adaptive", (1.25, 2.0)
    test = offline(
        {"net": {"sum": {"click": 2.0, "hide": -3.0}}, **SIGNED}, estimators=[label], gamma=gamma, weight_bound=1.05
    )
    result = test.run(log.full_table())
    net, click, hide = (result.metrics[name].estimates[label] for name in ("net", "click", "hide"))
    gains, losses = (
        factor * (e.unsupported or 0.0) * (result.metrics[name].control.value or 0.0)
        for factor, e, name in ((2.0, click, "click"), (3.0, hide, "hide"))
    )
    assert gains > 0.0
    assert losses > 0.0
    less, more, d = 1.0 - 1.0 / gamma[0], gamma[1] - 1.0, net.effect_size
    assert d is not None
    assert net.sensitivity is not None
    assert net.sensitivity["effect_size_upper"] == pytest.approx(d + more * gains + less * losses, rel=1e-9)
    assert net.sensitivity["effect_size_lower"] == pytest.approx(d - less * gains - more * losses, rel=1e-9)
    assert net.range is not None
    assert net.range.ci_lower is not None
    assert net.effect_size_ci_lower is not None
    moved = net.range.ci_lower - net.effect_size_ci_lower
    assert moved <= -(less * gains + more * losses) * (1.0 - 1e-9)
    assert net.lower_bound is None
    assert net.betting is None


def test_the_breakdown_value_of_a_metric_with_losses(log: MixedLog) -> None:
    """At Γ* the limit of the band, both factors Γ*, is 0."""
    from foretest.aggregation.differences import with_differences
    from foretest.inference.sensitivity import Terms
    from foretest.weights.weightings import Adaptive

    test = offline(
        {"net": {"sum": {"click": 2.0, "hide": -0.1}}, **SIGNED}, estimators=["point-ncis-adaptive"], weight_bound=1.05
    )
    aggregates = with_differences(test.aggregate(log.full_table()).aggregates)
    terms = Terms.of(aggregates, Adaptive(1.05), aggregates.plan.shown["net"])
    terms = type(terms)(**{**vars(terms), "d": terms.d + 3.0 * terms.n})  # far above 0
    gamma = terms.breakdown(1, 0.9)
    assert gamma is not None
    assert gamma > 1.0
    assert terms.losses is not None
    low = terms.d - (1.0 - 1.0 / gamma) * terms.t - (gamma - 1.0) * terms.losses
    assert terms.mean(low) - 1.6448536269514722 * terms.error(low) == pytest.approx(0.0, abs=1e-6)


def test_a_relative_uplift_needs_a_control_that_is_not_zero(log: MixedLog) -> None:
    """Gains and losses that cancel: absolute numbers alone, and no ratio by them."""
    balance = float(log.click.mean() / log.hide.mean())
    metrics = {**SIGNED, "nil": {"sum": {"click": 1.0, "hide": -balance}}, "by_nil": {"ratio": ["click", "nil"]}}
    result = offline(metrics, estimators=["is", "ncis"]).run(log.full_table())
    nil, by_nil = result.metrics["nil"].estimates["is"], result.metrics["by_nil"].estimates["is"]
    assert nil.effect_size is not None
    assert nil.rel_effect_size is None
    assert nil.range is not None
    assert nil.range.rel_ci_upper is None
    assert by_nil.effect_size is None
    assert by_nil.verdict == "insufficient"
    assert any("nil, which it is divided by, contains 0" in reason for reason in by_nil.reasons)


def test_a_loss_that_shrinks_is_an_uplift(log: MixedLog) -> None:
    """The relative uplift of a metric below 0 divides by its size."""
    result = offline({"loss": {"sum": {"click": 0.01, "hide": -5.0}}, **SIGNED}, estimators=["is"]).run(
        log.full_table()
    )
    e, control = result.metrics["loss"].estimates["is"], result.metrics["loss"].control.value
    assert control is not None
    assert control < 0.0
    assert e.effect_size is not None
    assert e.rel_effect_size == pytest.approx(e.effect_size / -control, rel=1e-12)
    assert e.range is not None
    assert e.range.ci_upper is not None
    assert e.range.rel_ci_upper == pytest.approx(e.range.ci_upper / -control, rel=0.5)
    assert e.range.rel_ci_upper is not None
    assert np.sign(e.range.rel_ci_upper) == np.sign(e.range.ci_upper)


def test_per_unit_scales_what_is_per_display(log: MixedLog) -> None:
    result = offline(KINDS).run(log.full_table())
    factor = log.rows / len(np.unique(log.unit))
    for name, of in (("per_user", "click"), ("net_per_user", "net")):
        scaled, plain = result.metrics[name], result.metrics[of]
        assert scaled.control.value == pytest.approx((plain.control.value or 0.0) * factor, rel=1e-12)
        for label, e in scaled.estimates.items():
            other = plain.estimates[label]
            assert e.rel_effect_size == other.rel_effect_size
            assert e.word == other.word
            assert e.std_error == pytest.approx((other.std_error or 0.0) * factor, rel=1e-12)
            assert e.range is not None
            assert other.range is not None
            assert e.range.rel_ci_lower == other.range.rel_ci_lower
            assert e.range.ci_lower == pytest.approx((other.range.ci_lower or 0.0) * factor, rel=1e-12)
    assert any("displays on average" in note for note in result.notes)


def test_saved_sums_serve_other_ratios_and_no_other_sums(log: MixedLog, tmp_path: Path) -> None:
    table, test = log.full_table(), offline(KINDS, slots=True, examination=[1.0, 0.6])
    expected, files = test.run(table), str(tmp_path / "sums.parquet")
    test.save_aggregates(table, files)
    fewer = offline(
        {**SIGNED, **SUMS, "gain": {"sum": {"click": 1.0, "revenue": 0.25}}}, slots=True, examination=[1.0, 0.6]
    )
    with pytest.raises(ft.BadInput, match=r"\[metrics\.gain\] sum"):
        fewer.run(files)
    free = offline({**KINDS, "cpr": {"ratio": ["click", "revenue"]}}, slots=True, examination=[1.0, 0.6]).run(files)
    assert free.metrics["cpr"].estimates["is"].treatment == pytest.approx(
        1.0 / (expected.metrics["rpc"].estimates["is"].treatment or 0.0)
    )


def test_the_result_is_valid_and_says_what_is_left_out(log: MixedLog) -> None:
    result = offline(KINDS, slots=True).run(log.full_table())
    document = json.loads(result.to_json())
    validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert document["settings"]["metrics"]["net"] == {"sum": {"click": 2.0, "hide": -3.0}}
    assert document["settings"]["metrics"]["rpc"] == {"ratio": ["revenue", "click"]}
    notes = " ".join(result.notes)
    assert "is without betting intervals, lower bounds and calibration" in notes
    assert "a ratio of metrics has the interval of noise alone" in notes
    assert all(metric.role is None for metric in result.metrics.values())


def test_only_a_table_with_a_role_gives_roles(log: MixedLog) -> None:
    metrics = {**KINDS, "net": {"sum": {"click": 2.0, "hide": -3.0}, "role": "goal"}}
    result = offline(metrics, estimators=["is"]).run(log.full_table())
    roles = {name: metric.role["role"] for name, metric in result.metrics.items() if metric.role is not None}
    assert roles == {name: "goal" if name == "net" else "secondary" for name in result.metrics}
