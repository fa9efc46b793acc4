"""Predicted rewards of items: from a column, or fitted on features; their sums and expectations against plain NumPy."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.aggregation.item_model import ItemModel, all_cells, shown_cells
from foretest.aggregation.item_rewards import item_rewards
from foretest.aggregation.value_model import fold_of
from foretest.kernels.hashing import hash_integers
from foretest.log.reader import Reader
from foretest.offline.prepare_and_fold import offline_reader
from foretest.sources.base import Chunk
from tests.support import SCORES, SmallLog

DR, POINT_DR, POINT, CASCADE = "dr", "point-dr-adaptive", "point-ncis-adaptive", "cascade-dr"
SINGLE = SmallLog(rows=300, units=90, m=6, k=1, seed=4)
SLATES = SmallLog(rows=300, units=90, seed=5)


def single(keys: Any, log: dict[str, Any] | None = None, **analysis: Any) -> ft.OfflineTest:
    columns = {"rewards": ["click"], "unit": "user", "ranking": "ranking", "id": "id", **(log or {})}
    settings = {"n_resamples": 50, "weight_bound": 3.0, **analysis}
    return ft.OfflineTest(log=ft.LogColumns(**columns), **{**SCORES, **settings}, estimators=keys)


def terms_of_single(log: SmallLog, h: np.ndarray, r_hat: np.ndarray) -> np.ndarray:
    """The rows' terms of the point estimator, for single actions and r̂ of rows × items."""
    shown = r_hat[np.arange(log.rows), log.shown]
    under_t, under_p = ((np.exp(log_prob) * r_hat).sum(axis=1) for log_prob in (log.log_t, log.log_p))
    return h * (log.click - shown) + under_t + shown - under_p


# -- expectations ------------------------------------------------------------------------------------------------------


class ByItem:
    """A user's model: some function of the row and its item."""

    columns = ("predicted_click",)

    def predict(self, displays: ft.Displays, rankings: ft.Ragged) -> np.ndarray:
        lists = displays["predicted_click"]
        return np.asarray(lists.values[lists.starts + rankings.values[rankings.starts]] ** 2)


class NoMarginals:
    """A policy of one's own that knows neither marginals nor columns by name."""

    columns = score_columns = ("treatment_scores",)

    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> np.ndarray:
        return ft.PlackettLuce("treatment_scores").log_prob(displays, rankings)

    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> ft.Ragged:
        return ft.PlackettLuce("treatment_scores").sample(displays, uniforms)


@pytest.mark.parametrize("treatment", [ft.PlackettLuce("treatment_scores"), NoMarginals()], ids=["known", "own"])
def test_the_expectation_of_single_actions_is_exact(treatment: Any) -> None:
    """Over all actions, for a user's model and for predictions in a column: no draw is made."""
    r_hat = SINGLE.predicted["click"]
    w, at = np.exp(SINGLE.log_w), np.arange(SINGLE.rows)
    for estimators, predicted, more in (
        ([ft.DR(model=ByItem())], r_hat**2, {}), ([DR], r_hat, {"predictions": "predicted_click"}),
    ):  # fmt: skip
        expected = (np.exp(SINGLE.log_t) * predicted).sum(axis=1)
        value = ((SINGLE.click - predicted[at, SINGLE.shown]) * w + expected).mean()
        result = single(estimators, treatment=treatment, **more).run(SINGLE.table())
        assert result.metrics["click"].estimates[DR].treatment == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("policy", [ft.EpsilonGreedy, ft.Mallows])
def test_the_expectation_over_rankings_is_that_of_all(policy: Any) -> None:
    """Σ over all rankings of their probability times Σ_k r̂_k, by slot marginals."""
    treatment = policy("treatment_scores", 0.4)
    test = single(
        [CASCADE], {"slot_rewards": {"click": "slot_click"}}, predictions="predicted_click", treatment=treatment
    )
    aggregates = test.aggregate(SLATES.table()).aggregates
    plan = aggregates.plan
    rows = offline_reader(plan).read(Chunk(SLATES.table().to_batches()[0], "log", 0, 0))
    log_w = np.zeros(SLATES.rows)
    [predicted] = item_rewards([plan], rows, [log_w])
    r_hat = SLATES.item_rewards("click", SLATES.click)
    rankings = np.array(list(permutations(range(SLATES.m), SLATES.k)), np.int32)
    total = np.zeros(SLATES.rows)
    for ranking in rankings:
        lists = ft.Ragged.packed(np.tile(ranking, SLATES.rows), np.full(SLATES.rows, SLATES.k))
        total += np.exp(treatment.log_prob(rows.displays, lists)) * r_hat[:, np.arange(SLATES.k), ranking].sum(axis=1)
    np.testing.assert_allclose(predicted.treatment[:, 0], total, rtol=1e-7)
    shown = SLATES.rankings[SLATES.shown]
    of_slots = np.take_along_axis(r_hat, shown[:, :, None], axis=2)[:, :, 0]
    np.testing.assert_allclose(predicted.slots[:, 0], of_slots.ravel(), rtol=1e-12)


def test_cells_of_lists_of_any_length() -> None:
    lists = ft.Ragged.of([[0, 2], [1], [2, 0]])
    displays = ft.Displays({}, lists, np.array([3, 2, 4]), np.zeros(3, np.uint64))
    shown, cells = shown_cells(displays), all_cells(displays, np.array([1, 2]))
    assert np.column_stack(shown).tolist() == [[0, 0, 0], [0, 1, 2], [1, 0, 1], [2, 0, 2], [2, 1, 0]]
    assert np.column_stack(cells).tolist() == [[1, 0, 0], [1, 0, 1]] + [[2, k, i] for k in (0, 1) for i in range(4)]


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_rows", [37, 1 << 16])
def test_the_value_at_a_given_bound(batch_rows: int) -> None:
    result = single([POINT_DR], predictions="predicted_click").run(SINGLE.table(), batch_rows=batch_rows)
    terms = terms_of_single(SINGLE, SINGLE.adaptive(3.0), SINGLE.predicted["click"])
    e = result.metrics["click"].estimates[POINT_DR]
    assert e.treatment == pytest.approx(terms.mean(), rel=1e-12)
    assert e.effect_size == pytest.approx((terms - SINGLE.click).mean(), rel=1e-11)


@pytest.mark.parametrize("rare", [False, True])
def test_the_value_at_the_bound_that_the_log_chooses(rare: bool) -> None:
    """Dense rewards: a ratio of residuals; rare ones: a mean, over all rows in both cases."""
    log = SmallLog(rows=2500, units=2500, m=6, k=1, spread=3.0, seed=12)
    if rare:
        log.click = log.click * (np.random.default_rng(1).random(log.rows) < 0.1)
    result = single([POINT, POINT_DR], predictions="predicted_click", weight_bound="auto").run(log.table())
    plain, model = (result.metrics["click"].estimates[key] for key in (POINT, POINT_DR))
    assert model.bound_choice == plain.bound_choice
    assert model.bound_choice is not None
    h, r_hat = log.adaptive(model.bound_choice["bound"]), log.predicted["click"]
    if rare:
        value = terms_of_single(log, h, r_hat).mean()
    else:
        residual = log.click - r_hat[np.arange(log.rows), log.shown]
        value = (h * residual).sum() / h.sum() + terms_of_single(log, np.zeros(log.rows), r_hat).mean()
    assert model.treatment == pytest.approx(value, rel=1e-9)


def test_rankings_with_rewards_of_slots() -> None:
    columns = {"slot_rewards": {"click": "slot_click"}}
    result = single([POINT_DR, CASCADE, DR], columns, predictions="predicted_click").run(SLATES.table())
    for key in (POINT_DR, CASCADE):
        value = SLATES.model_terms(key, "click", SLATES.click, 3.0).mean()
        assert result.metrics["click"].estimates[key].treatment == pytest.approx(value, rel=1e-8)
    r_hat = SLATES.item_rewards("click", SLATES.click)
    shown = np.take_along_axis(r_hat, SLATES.rankings[SLATES.shown][:, :, None], axis=2).sum(axis=(1, 2))
    expected = (SLATES.marginals(SLATES.log_t) * r_hat).sum(axis=(1, 2))
    value = ((SLATES.click - shown) * np.exp(SLATES.log_w) + expected).mean()
    assert result.metrics["click"].estimates[DR].treatment == pytest.approx(value, rel=1e-8)


def test_prefix_weights_of_any_size() -> None:
    """Two items, log w from −690 to 690: Σ w·r̂ neither overflows nor vanishes."""
    g = np.random.default_rng(6)
    n = 40
    t, p = g.uniform(-345, 345, n), g.uniform(-345, 345, n)
    shown = (g.random(n) < 0.5).astype(int)  # also what the control hardly shows
    table = pa.table({
        "id": np.arange(n), "r": np.ones(n), "ranking": shown, "slots": np.ones(n),
        "predicted": pa.array([[0.5, 0.25]] * n),
        "control_scores": pa.array([[x, -x] for x in p]), "treatment_scores": pa.array([[x, -x] for x in t]),
    })  # fmt: skip
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["r"], ranking="ranking", id="id", slot_rewards={"r": "slots"}), **SCORES,
        estimators=[CASCADE], predictions="predicted",
    )  # fmt: skip
    model, rows = test.aggregate(table).aggregates.plan.item_model, np.arange(n)
    assert model is not None
    assert model.scales is not None
    scale = model.scales[fold_of(hash_integers(rows), 2), 0, 0]
    p_t, p_p = (1.0 / (1.0 + np.exp(-2.0 * np.column_stack([x, -x]))) for x in (t, p))
    r_hat = scale[:, None] * np.array([0.5, 0.25])
    at = r_hat[rows, shown]
    expected = (p_t[rows, shown] / p_p[rows, shown] * (1.0 - at) + ((p_t - p_p) * r_hat).sum(axis=1) + at).mean()
    assert expected > 1e100
    assert test.run(table).metrics["r"].estimates[CASCADE].treatment == pytest.approx(expected, rel=1e-9)


# -- fitted models -----------------------------------------------------------------------------------------------------


def features_log(rows: int = 4000, seed: int = 0) -> tuple[SmallLog, pa.Table]:
    """Single actions whose reward is the kind of the action."""
    log = SmallLog(rows=rows, units=rows // 2, m=6, k=1, seed=seed)
    g = np.random.default_rng(seed)
    kind = g.integers(0, 3, (rows, log.m))
    shown = kind[np.arange(rows), log.shown]
    log.click = (g.random(rows) < np.array([0.1, 0.5, 0.9])[shown]).astype(float)
    words = np.array(["poor", "fair", "fine"])[kind]
    return log, log.table(kind=pa.array(words.tolist()), age=g.normal(size=rows))


def model_of(test: ft.OfflineTest, table: pa.Table) -> tuple[ItemModel, Any]:
    plan = test.aggregate(table).aggregates.plan
    assert plan.item_model is not None
    rows = Reader(plan.settings, features=True, items=True).read(Chunk(table.to_batches()[0], "log", 0, 0))
    return plan.item_model, rows


@pytest.mark.slow
def test_a_row_is_predicted_without_its_unit() -> None:
    _, table = features_log(600)
    test = single([POINT_DR], {"item_features": ["kind"], "features": ["age"]})
    model, rows = model_of(test, table)
    cells = shown_cells(rows.displays)
    before = model.predict(rows, cells)
    unit = table["user"].to_numpy()
    own = unit == unit[0]
    click = table["click"].to_numpy()
    moved = table.set_column(0, "click", pa.array(np.where(own, 25.0, click)))
    after = model_of(test, moved)[0].predict(rows, cells)
    np.testing.assert_array_equal(after[own], before[own])
    assert np.abs(after[~own] - before[~own]).max() > 1e-3


@pytest.mark.slow
def test_features_of_items_are_learned() -> None:
    log, table = features_log()
    model, rows = model_of(single([POINT_DR], {"item_features": ["kind"]}), table)
    cells = all_cells(rows.displays, np.arange(log.rows))
    predicted = model.predict(rows, cells)[:, 0]
    truth = {"poor": 0.1, "fair": 0.5, "fine": 0.9}
    kinds = np.array([truth[word] for row in table["kind"].to_pylist() for word in row])
    assert np.abs(predicted - kinds).max() < 0.08


@pytest.mark.slow
def test_a_fitted_model_is_the_same_from_batches_of_any_size_and_threads(tmp_path: Path) -> None:
    _, table = features_log(700)
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=130)
    test = single([POINT_DR], {"item_features": ["kind", "predicted_click"], "features": ["age"]})
    whole = test.run(table).metrics["click"].estimates[POINT_DR]
    for how in ({"batch_rows": 61}, {"threads": 2}):
        other = test.run(tmp_path / "log.parquet", **how).metrics["click"].estimates[POINT_DR]
        assert (other.treatment, other.std_error) == pytest.approx((whole.treatment, whole.std_error), rel=1e-11)


def test_a_separate_log_is_fitted_on_whole(tmp_path: Path) -> None:
    """Every row of it, without columns of policies; equal rows of both logs are then predicted alike."""
    _, table = features_log(900)
    narrow = table.select(["click", "user", "id", "ranking", "kind"])
    pq.write_table(narrow, tmp_path / "fitted.parquet")
    test = single([POINT_DR], {"item_features": ["kind"]}, value_log=tmp_path / "fitted.parquet")
    model, rows = model_of(test, table)
    assert model.fitted is not None
    assert len(model.fitted.models) == 1
    predicted = model.predict(rows, shown_cells(rows.displays))[:, 0]
    assert len(np.unique(predicted)) == 3


# -- which estimators run ----------------------------------------------------------------------------------------------


def test_without_predictions_nothing_changes() -> None:
    result = single(None).run(SINGLE.table())
    assert POINT_DR not in result.metrics["click"].estimates
    assert not any(POINT_DR in note or CASCADE in note for note in result.notes)
    assert result.metrics["click"].reward_model is None
    with pytest.raises(ft.BadInput, match="it needs predicted rewards of items: name their list column"):
        single([POINT_DR]).run(SINGLE.table())


def test_where_rewards_are_rare_rankings_are_not_all_weighed() -> None:
    """By default; a list of estimators is followed."""
    log = SmallLog(rows=1500, units=500, seed=9)
    log.click = log.click * (np.random.default_rng(2).random(log.rows) < 0.1)
    columns = {"slot_rewards": {"click": "slot_click"}}
    result = single(None, columns, predictions="predicted_click").run(log.table())
    assert POINT_DR not in result.metrics["click"].estimates
    assert CASCADE in result.metrics["click"].estimates
    assert [note for note in result.notes if POINT_DR in note] == [
        f"{POINT_DR} was left out: rewards are rare, and it weights every row. List it to run it."
    ]
    listed = single([POINT_DR], columns, predictions="predicted_click", weight_bound="auto").run(log.table())
    value = log.model_terms(POINT_DR, "click", log.click, 20.0).mean()
    assert listed.metrics["click"].estimates[POINT_DR].treatment == pytest.approx(value, rel=1e-8)


def test_a_reward_without_predictions_is_answered_by_the_others() -> None:
    columns = {"rewards": ["click", "revenue"]}
    result = single([POINT_DR, POINT], columns, predictions={"click": "predicted_click"}).run(SINGLE.table())
    assert list(result.metrics["click"].estimates) == [POINT_DR, POINT]
    assert list(result.metrics["revenue"].estimates) == [POINT]
    assert f"{POINT_DR} was left out for revenue: [analysis] predictions has no column for it." in result.notes


def test_several_loggers_are_refused() -> None:
    table = SINGLE.table(by=["a", "b"] * (SINGLE.rows // 2))
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking", id="id", logger="by"),
        control={"a": SCORES["control"], "b": SCORES["control"]}, treatment=SCORES["treatment"], baseline="a",
        estimators=[POINT_DR], predictions="predicted_click",
    )  # fmt: skip
    with pytest.raises(ft.BadInput, match="compared with those of one control, and several produced the log"):
        test.run(table)


# -- saved and packed logs ---------------------------------------------------------------------------------------------


def test_saved_days_add_up(tmp_path: Path) -> None:
    test = single([POINT, POINT_DR], predictions="predicted_click", weight_bound="auto")
    table = SINGLE.table()
    for day, part in enumerate((table.slice(0, 120), table.slice(120))):
        test.save_aggregates(part, tmp_path / f"{day}.parquet")
    added = test.run(sorted(map(str, tmp_path.glob("*.parquet"))))
    whole = test.run(table)
    for key in (POINT, POINT_DR):
        a, b = (found.metrics["click"].estimates[key] for found in (added, whole))
        assert (a.treatment, a.std_error) == pytest.approx((b.treatment, b.std_error), rel=1e-11)
    a, b = (found.metrics["click"].reward_model for found in (added, whole))
    assert a is not None
    assert b is not None
    assert a["variance_ratio"] == pytest.approx(b["variance_ratio"], rel=1e-9)
    assert (a["leads"], a["reason"]) == (b["leads"], b["reason"])


def test_days_with_models_of_their_own_do_not_add_up(tmp_path: Path) -> None:
    _, table = features_log(400)
    test = single([POINT_DR], {"item_features": ["kind"]})
    for day, part in enumerate((table.slice(0, 200), table.slice(200))):
        test.save_aggregates(part, tmp_path / f"{day}.parquet")
    alone = test.run(str(tmp_path / "0.parquet")).metrics["click"].estimates[POINT_DR]
    assert alone.treatment == pytest.approx(
        test.run(table.slice(0, 200)).metrics["click"].estimates[POINT_DR].treatment, rel=1e-12
    )
    with pytest.raises(ft.BadInput, match="was made with another reward model than"):
        test.run(sorted(map(str, tmp_path.glob("*.parquet"))))


# -- bad input ---------------------------------------------------------------------------------------------------------


def with_predictions(change: Any) -> pa.Table:
    lists: list[Any] = SINGLE.predicted["click"].tolist()
    change(lists)
    table = SINGLE.table()
    return table.set_column(table.schema.get_field_index("predicted_click"), "predicted_click", pa.array(lists))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda v: v[3].pop(), "row 3 (the first row is 0): the list has length 5, but the row has 6 eligible items"),
        (lambda v: v[4].__setitem__(1, None), "row 4 (the first row is 0): the list holds a null"),
        (lambda v: v.__setitem__(5, None), "row 5 (the first row is 0): the value is null"),
        (lambda v: v[6].__setitem__(0, float("nan")), "row 6 (the first row is 0): a prediction is NaN"),
        (lambda v: v[7].__setitem__(0, float("-inf")), "row 7 (the first row is 0): a prediction is infinite"),
        (lambda v: v[8].__setitem__(0, 1e150), "row 8 (the first row is 0): a prediction is 1e+150, beyond 1e+100"),
    ],
)
def test_bad_predictions(change: Any, said: str) -> None:
    with pytest.raises(ft.BadInput) as caught:
        single([POINT_DR], predictions="predicted_click").run(with_predictions(change))
    assert "column 'predicted_click'" in str(caught.value)
    assert said in str(caught.value)
    with pytest.raises(ft.BadInput):
        single(None, predictions="predicted_click").check(with_predictions(change))


def test_predictions_of_rankings_need_the_rewards_of_slots() -> None:
    with pytest.raises(
        ft.BadInput,
        match=r"row 0 .*: the row shows 2 items, and predictions are of single actions; 300 rows have this fault\.",
    ):
        single([POINT_DR], predictions="predicted_click").run(SLATES.table())


@pytest.mark.parametrize(
    ("columns", "analysis", "said"),
    [
        ({}, {"predictions": 3}, "predictions = 3: expected the name of a list column"),
        ({}, {"predictions": {}}, "expected the name of a list column"),
        ({}, {"predictions": {"sale": "p"}}, "predictions names 'sale', which is no reward"),
        ({"item_features": ["kind"]}, {"predictions": "p"}, "are both given"),
        ({"ranking": None}, {"predictions": "p"}, r"predictions is given without \[log\] ranking"),
        ({"ranking": None, "item_features": ["kind"]}, {}, "item_features is given without ranking"),
        ({"item_features": ["kind", "kind"]}, {}, "item_features names a column twice"),
        ({"item_features": "kind"}, {}, "expected a list of column names"),
        ({"rewards": ["click", "revenue"]}, {"predictions": "p"}, "does not say which reward it predicts"),
        (
            {"rewards": ["click", "revenue"], "slot_rewards": {"revenue": "slot_revenue"}},
            {"predictions": {"click": "p"}},
            "predictions is of click, but",
        ),
        ({}, {"predictions": "click"}, "expected a list of numbers .the predicted reward of each eligible item."),
        ({}, {"predictions": "clicks"}, "no column 'clicks'"),
        ({"item_features": ["v"]}, {}, "expected a list of numbers or strings .a feature of each eligible item."),
    ],
)
def test_bad_settings(columns: dict[str, Any], analysis: dict[str, Any], said: str) -> None:
    with pytest.raises(ft.BadInput, match=said):
        single(None, columns, **analysis).run(SINGLE.table())


def test_a_feature_of_items_is_of_one_type_in_all_files(tmp_path: Path) -> None:
    _, table = features_log(100)
    pq.write_table(table, tmp_path / "a.parquet")
    numbers = pa.array([[0.5] * 6] * 100)
    pq.write_table(table.set_column(table.schema.get_field_index("kind"), "kind", numbers), tmp_path / "b.parquet")
    with pytest.raises(ft.BadInput, match=r"column 'kind' is .* it must be of one type in all files"):
        single([POINT_DR], {"item_features": ["kind"]}).run(str(tmp_path))
