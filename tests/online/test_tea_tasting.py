"""The online test against tea-tasting: numbers that nobody here wrote."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
import tea_tasting

import foretest as ft
from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derived_bucket
from foretest.results.result import Estimate

BUCKETS = 4096
LEVEL = 0.9


class Users(NamedTuple):
    """Users of one arm: names, displays and the covariate of each."""

    names: np.ndarray
    displays: np.ndarray
    before: np.ndarray


def apart(count: int, first: int) -> np.ndarray:
    """Users of whom no two share a bucket."""
    names = np.arange(first, first + 20 * count)
    bucket = derived_bucket(hash_integers(names), BUCKET_SALT, BUCKETS)
    chosen = names[np.sort(np.unique(bucket, return_index=True)[1])][:count]
    assert len(chosen) == count
    return chosen


def arm(count: int, lift: float, seed: int, first: int, *, repeats: bool) -> tuple[Users, pa.Table]:
    """Users whose taste shows before and in the test, and who come the more often the more they like it."""
    g = np.random.default_rng(seed)
    taste = g.gamma(2.0, 0.5, count)
    displays = 1 + g.poisson(3.0 * taste) if repeats else np.ones(count, np.int64)
    users = Users(apart(count, first), displays, 1000.0 + g.poisson(6.0 * taste).astype(float))
    of_row = np.repeat(np.arange(count), displays)
    click = (g.random(len(of_row)) < np.clip(0.3 * lift * taste[of_row], 0, 1)).astype(float)
    revenue = click * np.exp(g.normal(size=len(of_row)))
    columns = {"user": users.names[of_row], "before": users.before[of_row], "click": click, "revenue": revenue}
    return users, pa.table(columns).take(g.permutation(len(of_row)))


def by_user(users: Users, table: pa.Table, variant: int) -> pa.Table:
    """What tea-tasting reads: one row per user."""
    place = np.searchsorted(np.sort(users.names), table["user"].to_numpy())
    order = np.argsort(users.names)
    sums = {name: np.bincount(place, weights=table[name].to_numpy()) for name in ("click", "revenue")}
    return pa.table(
        {"variant": np.full(len(order), variant), "rows": users.displays[order], "before": users.before[order], **sums}
    )


@pytest.fixture(scope="module", params=[True, False], ids=["several displays", "one display"])
def both(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Both arms as logs, and by user."""
    sizes = (260, 1.0, 1, 0), (310, 1.2, 2, 1 << 30)
    arms = [arm(*size, repeats=request.param) for size in sizes]
    users = pa.concat_tables([by_user(*one, variant) for variant, one in enumerate(arms)])
    return {"logs": [table for _, table in arms], "users": users, "repeats": request.param}


def ours(both: dict[str, Any], **more: Any) -> ft.Result:
    log = ft.LogColumns(rewards=["click", "revenue"], unit="user")
    settings = {"interval": "delta", "confidence_level": LEVEL, "buckets": BUCKETS, **more}
    return ft.OnlineTest(log=log, **settings).run(*both["logs"])


def theirs(both: dict[str, Any], metric: str, covariate: str | None) -> Any:
    """A ratio of means by normal quantiles; Welch's difference of means where every user has one display."""
    if both["repeats"]:
        analysed = tea_tasting.RatioOfMeans(metric, "rows", covariate, use_t=False, confidence_level=LEVEL)
    else:
        analysed = tea_tasting.Mean(metric, covariate, use_t=True, equal_var=False, confidence_level=LEVEL)
    return analysed.analyze(both["users"], 0, 1, "variant")


def agree(estimate: Estimate, expected: Any) -> None:
    half = (expected.effect_size_ci_upper - expected.effect_size_ci_lower) / 2.0
    assert estimate.effect_size == pytest.approx(expected.effect_size, rel=1e-9)
    assert estimate.std_error == pytest.approx(expected.effect_size / expected.statistic, rel=1e-9)
    assert estimate.effect_size_ci_lower == pytest.approx(expected.effect_size_ci_lower, abs=1e-9 * half)
    assert estimate.effect_size_ci_upper == pytest.approx(expected.effect_size_ci_upper, abs=1e-9 * half)
    assert estimate.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert estimate.treatment == pytest.approx(expected.treatment, rel=1e-9)
    assert estimate.rel_effect_size == pytest.approx(expected.rel_effect_size, rel=1e-9)


@pytest.mark.parametrize("metric", ["click", "revenue"])
def test_the_uplift_without_a_covariate(metric: str, both: dict[str, Any]) -> None:
    result, expected = ours(both), theirs(both, metric, None)
    agree(result.metrics[metric].estimates["online"], expected)
    assert result.metrics[metric].control.value == pytest.approx(expected.control, rel=1e-9)


@pytest.mark.parametrize("metric", ["click", "revenue"])
def test_the_uplift_adjusted_for_a_covariate(metric: str, both: dict[str, Any]) -> None:
    found, expected = ours(both, covariate="before").metrics[metric], theirs(both, metric, "before")
    agree(found.estimates["online"], expected)
    agree(found.estimates["unadjusted"], theirs(both, metric, None))
    assert found.covariate is not None
    assert found.covariate["control"] == pytest.approx(expected.control, rel=1e-9)
    assert 0.01 < found.covariate["variance_removed"] < 0.9


def test_the_covariate_itself_is_compared_as_a_metric_would_be(both: dict[str, Any]) -> None:
    found = ours(both, covariate="before").health["covariate"]
    expected = tea_tasting.Mean("before", use_t=not both["repeats"], equal_var=False).analyze(
        both["users"], 0, 1, "variant"
    )
    assert found["means"] == pytest.approx([expected.control, expected.treatment], rel=1e-12)
    assert found["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)


MADE: dict[str, Any] = {
    "rpc": {"ratio": ["revenue", "click"]},
    "per_user": {"per": "unit", "of": "revenue"},
    "net": {"sum": {"revenue": 1.0, "click": -0.8}},
}


@pytest.mark.parametrize("covariate", [None, "before"])
def test_ratios_sums_and_values_per_unit(covariate: str | None, both: dict[str, Any]) -> None:
    """Revenue per click is a ratio of means, revenue per user a mean; a sum is a column of its own."""
    result = ours(both, covariate=covariate, metrics=MADE)
    net = both["users"]["revenue"].to_numpy() - 0.8 * both["users"]["click"].to_numpy()
    with_net = {**both, "users": both["users"].append_column("net", pa.array(net))}
    normal = {"use_t": False, "confidence_level": LEVEL}
    expected = {
        "rpc": tea_tasting.RatioOfMeans("revenue", "click", covariate, **normal).analyze(
            both["users"], 0, 1, "variant"
        ),
        "per_user": tea_tasting.Mean("revenue", covariate, equal_var=False, **normal).analyze(
            both["users"], 0, 1, "variant"
        ),
        "net": theirs(with_net, "net", covariate),
    }
    assert list(result.metrics) == ["click", "revenue", *MADE]
    for name, numbers in expected.items():
        agree(result.metrics[name].estimates["online"], numbers)
        if covariate is None:
            assert result.metrics[name].control.value == pytest.approx(numbers.control, rel=1e-9)
