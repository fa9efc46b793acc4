"""Pairs of items that help or hinder each other: the statistic in plain NumPy, its size, and what it finds."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import beta, kstest

import foretest as ft
from foretest.inference.company_pairs import _p_of_below, _p_value, below_test, pairs_test, slot_model
from foretest.results.slot_model import SlotModel, SlotTest
from foretest.weights.company import PAIRS, company_excess
from tests.schemas import validate
from tests.support import SCORES

BOTH = ["point-ncis-adaptive", "slot-ncis-adaptive"]
SCHEMA = json.loads(files("foretest").joinpath("schema/result-1.json").read_text(encoding="utf-8"))


def simulated(rows: int, seed: int, strength: float = 0.0, units: int | None = None) -> pa.Table:
    """Three slots of six items; `strength` is how much a pair of items changes the odds of a reward."""
    g = np.random.default_rng(seed)
    control = g.normal(scale=0.3, size=(rows, 6))
    treatment = control + g.normal(scale=0.5, size=6)
    ranking = np.argsort(-(control + g.gumbel(size=control.shape)), axis=1)[:, :3]
    pairs = np.random.default_rng(99).choice([-1.0, 1.0], size=(6, 6))
    logit = -1.0 + 0.3 * ranking - 0.2 * np.arange(3)
    for a in range(3):
        logit[:, a] += strength * sum(pairs[ranking[:, a], ranking[:, b]] for b in range(3) if b != a)
    slots = (g.random((rows, 3)) < 1.0 / (1.0 + np.exp(-logit))).astype(float)
    return pa.table({
        "click": slots.sum(axis=1), "slot_click": slots.tolist(), "ranking": ranking.tolist(),
        "user": np.arange(rows) % (units or rows), "id": np.arange(rows),
        "control_scores": control.tolist(), "treatment_scores": treatment.tolist(),
    })  # fmt: skip


def built(estimators: list[str] = BOTH) -> ft.OfflineTest:
    log = ft.LogColumns(
        rewards=["click"], unit="user", ranking="ranking", id="id", slot_rewards={"click": "slot_click"}
    )
    return ft.OfflineTest(log=log, **SCORES, estimators=estimators, n_resamples=100)


def p_value(by_unit: np.ndarray) -> float:
    """The chance of an R² as large, of a regression of 1 on the columns."""
    ones = np.ones(len(by_unit))
    fitted = by_unit @ np.linalg.lstsq(by_unit, ones, rcond=None)[0]
    units, columns = by_unit.shape
    return float(beta.sf((fitted**2).sum() / units, columns / 2, (units - columns) / 2))


def test_statistic_is_that_of_a_regression() -> None:
    aggregates = built().aggregate(simulated(900, 4, strength=0.1, units=400)).aggregates
    found, columns = pairs_test(aggregates, 0), aggregates.rewarded.columns()
    assert found is not None
    above, below = (np.stack([columns[name, 0, number] for number in numbers], axis=1)
                    for name, numbers in (("above", range(PAIRS)), ("below", range(1 + PAIRS))))  # fmt: skip
    terms = np.nan_to_num(np.hstack([above, below]))  # where nothing is compared
    by_unit = np.stack([terms[columns["unit"] == unit].sum(axis=0) for unit in np.unique(columns["unit"])])

    def of_columns(some: list[int]) -> float:
        return p_value(by_unit[:, some][by_unit[:, some].any(axis=1)])

    pairs = [number for number in range(1 + 2 * PAIRS) if number != PAIRS]
    assert found.p_value == pytest.approx(of_columns(pairs), rel=1e-6)
    assert found.rewards == np.isfinite(above[:, 0]).sum() < len(above)
    least = min(of_columns([PAIRS]), of_columns(pairs[PAIRS:]))
    of_below = below_test(aggregates, 0)
    assert of_below is not None
    assert of_below.p_value == pytest.approx(1.0 - (1.0 - least) ** 2, rel=1e-6)


def test_columns_that_say_the_same_count_once() -> None:
    """Of two items all signs are the same up to their sign."""
    g = np.random.default_rng(3)
    one = g.normal(size=(300, 1))
    assert _p_value(one @ np.array([[1.0, -1.0, 1.0]])) == pytest.approx(p_value(one), rel=1e-9)


def test_size() -> None:
    """Right logs: p of both tests is uniform, over 200 of them."""
    found = []
    for seed in range(200):
        log = simulated(300, 1000 + seed)
        rankings, lists = (np.array(log[name].to_pylist()) for name in ("ranking", "control_scores"))
        displays = ft.Displays(
            {"control_scores": ft.Ragged.of(lists)}, ft.Ragged.of(rankings.astype(np.int32)), np.full(300, 6),
            np.arange(300).astype(np.uint64) + np.uint64(1000 * seed),
        )  # fmt: skip
        earned = np.array(log["slot_click"].to_pylist()).ravel()
        excess = company_excess(SCORES["control"], displays, earned > 0.0, seed=0)
        by_row = np.where(earned[:, None] > 0.0, excess, 0.0).reshape(300, 3, -1).sum(axis=1)
        below = by_row[:, 1 + PAIRS :]
        pairs = np.hstack([by_row[:, 1 : 1 + PAIRS], below[:, 1:]])
        found.append((_p_value(pairs), _p_of_below(below)))
    for p in np.array(found).T:
        assert kstest(p, "uniform").pvalue > 0.001
        assert 2 <= np.sum(p < 0.05) <= 20  # of 10 expected


def test_pairs_are_found_whatever_their_scores() -> None:
    """Neither the company's scores nor the comparison with rankings needs to notice: slots do not lead."""
    result = built().run(simulated(3000, 5, strength=0.4))
    metric = result.metrics["click"]
    assert metric.slot_model is not None
    pairs = metric.slot_model.pairs
    assert pairs is not None
    assert (pairs.status, pairs.z) == ("fail", None)
    assert metric.slot_model.beside == pairs
    assert metric.headline == "point-ncis-adaptive"
    assert "pairs of items" in str(result)
    assert "some items help or hinder others" in result.to_html()
    document = json.loads(result.to_json())
    validate(document, SCHEMA)
    assert document["metrics"]["click"]["slot_model"]["pairs"]["p_value"] == pairs.p_value


def test_nothing_to_find_leaves_slots_in_the_lead() -> None:
    result = built().run(simulated(3000, 5))
    metric = result.metrics["click"]
    assert metric.slot_model is not None
    assert metric.slot_model.pairs is not None
    assert metric.slot_model.pairs.status == "pass"
    assert metric.headline == "slot-ncis-adaptive"
    assert "pairs of items" not in str(result)


def test_few_units_and_earlier_sums() -> None:
    aggregates = built().aggregate(simulated(150, 1)).aggregates
    few = pairs_test(aggregates, 0)
    assert few is not None
    assert (few.status, few.p_value) == ("not made", None)
    assert few.sentence.startswith("it needs 200 units whose rewards have company that varies")
    for part in aggregates.rewarded.parts:
        del part["below", 0, 3]
    assert pairs_test(aggregates, 0) is below_test(aggregates, 0) is None


def test_days_of_an_earlier_version_add_up_without_them() -> None:
    """Of days some of which lack the terms none of the two tests is made; the company's is."""
    log = simulated(900, 4)
    old, new = (built().aggregate(part).aggregates for part in (log.slice(0, 400), log.slice(400)))
    for part in old.rewarded.parts:
        for name in [name for name in part if name[0] in ("above", "below")]:
            del part[name]
    for first, second in ((old, new), (new, old)):
        model = slot_model(first + second, first.plan.estimators, 0)
        assert model is not None
        assert (model.pairs, model.below) == (None, None)
        assert model.company.p_value is not None
        assert model.of_prefixes == model.beside == model.company


def test_the_worse_of_both_counts() -> None:
    bad, good = SlotTest("warn", None, 0.004, 9, ""), SlotTest("pass", 1.0, 0.3, 9, "")
    unknown = SlotTest("not made", None, None, 0, "")
    assert SlotModel(good, pairs=bad).beside == SlotModel(bad, pairs=good).beside == bad
    assert SlotModel(unknown, pairs=good).beside == SlotModel(good, pairs=unknown).beside == good
    assert SlotModel(unknown, pairs=None).beside == unknown
