"""V(x): the same for every cut of the log, blind to a row's own unit, and able to learn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_limits

import foretest.aggregation.value_model
from foretest.aggregation.value_model import (
    FOLD_SALT,
    MOST_CATEGORIES,
    Encoder,
    FeatureRows,
    ValueModel,
    fit_value_model,
)
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derive

Batch = tuple[pa.RecordBatch, np.ndarray, np.ndarray]
COUNTRIES = ["fr", "de", "it", None]
RATES = np.array([0.05, 0.4, 1.0, 0.2])


def world(n: int = 2000, seed: int = 0, units: int = 1000) -> Batch:
    """Rewards with a mean of RATES[country]·(1 if x is unknown, else 2 where x > 0, else ½)."""
    rng = np.random.default_rng(seed)
    country = rng.integers(0, 4, n)
    x = rng.normal(size=n)
    unknown = rng.random(n) < 0.1
    mean = RATES[country] * np.where(unknown, 1.0, np.where(x > 0, 2.0, 0.5))
    features = pa.record_batch(
        {
            "country": pa.array([COUNTRIES[c] for c in country]),
            "x": pa.array(np.where(unknown, 0.0, x), mask=unknown),
            "day": pa.array([date(2026, 1, 1 + d) for d in rng.integers(0, 5, n)]),
        }
    )
    return features, rng.poisson(mean)[:, None].astype(float), hash_integers(rng.integers(0, units, n))


def alone(features: pa.Table, rewards: np.ndarray, unit: np.ndarray) -> FeatureRows:
    """Rows of which each stands for itself."""
    return FeatureRows(features, rewards, unit, np.ones(len(unit)))


def model_of(batches: list[Batch], folds: int, seed: int) -> ValueModel:
    return fit_value_model([alone(*rows) for rows in batches], folds, seed)


def cut(rows: Batch, edges: list[int], order: np.ndarray | None = None) -> list[Batch]:
    features, rewards, unit = rows
    order = np.arange(len(unit)) if order is None else order
    parts = np.split(order, edges)
    return [(features.take(part), rewards[part], unit[part]) for part in parts]


def folds_of(unit: np.ndarray, folds: int) -> np.ndarray:
    return (derive(unit, FOLD_SALT) % np.uint64(folds)).astype(int)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Small fits are slower on two busy cores than on one."""
    import sklearn.ensemble  # noqa: F401 - a limit holds for libraries that are loaded

    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def fitted() -> tuple[Batch, ValueModel]:
    rows = world()
    return rows, model_of([rows], 2, 0)


def test_neither_cuts_nor_order_of_the_log_matter(fitted: tuple[Batch, ValueModel]) -> None:
    rows, model = fitted
    expected = model.predict(rows[0], rows[2])
    shuffled = np.random.default_rng(1).permutation(2000)
    for parts in (cut(rows, [1, 500, 500, 1900]), cut(rows, [1000], shuffled)):
        again = model_of(parts, 2, 0)
        assert np.array_equal(again.predict(rows[0], rows[2]), expected)


def test_a_bounded_number_of_rows_is_chosen_by_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foretest.aggregation.value_model, "MOST_ROWS", 400)
    features, rewards, unit = world(units=10**9)
    smallest = np.argsort(unit)[:400]
    expected = model_of([(features.take(smallest), rewards[smallest], unit[smallest])], 2, 0).predict(features, unit)
    shuffled = np.random.default_rng(1).permutation(2000)
    for parts in (
        cut((features, rewards, unit), list(range(100, 2000, 100))),
        cut((features, rewards, unit), list(range(350, 2000, 350)), shuffled),
    ):
        assert np.array_equal(model_of(parts, 2, 0).predict(features, unit), expected)


def test_a_rows_model_never_saw_its_unit(fitted: tuple[Batch, ValueModel]) -> None:
    (features, rewards, unit), model = fitted
    before = model.predict(features, unit)
    fold = folds_of(unit, 2)
    assert 0.4 < fold.mean() < 0.6
    # all rewards of fold 0 are changed: its own predictions stay, the other fold's do not
    changed = np.where((fold == 0)[:, None], rewards + 3.0, rewards)
    after = model_of([(features, changed, unit)], 2, 0).predict(features, unit)
    assert np.array_equal(after[fold == 0], before[fold == 0])
    assert (after[fold == 1] > before[fold == 1] + 1.0).all()


def test_known_signal_is_learned_out_of_fold() -> None:
    rows = world(8000, units=10**9)
    predicted = model_of([rows], 3, 0).predict(rows[0], rows[2])[:, 0]
    country, x = np.array([COUNTRIES.index(c) for c in rows[0]["country"].to_pylist()]), rows[0]["x"].to_pylist()
    factor = np.array([1.0 if v is None else 2.0 if v > 0 else 0.5 for v in x])
    truth = RATES[country] * factor
    assert np.corrcoef(predicted, truth)[0, 1] > 0.97
    # each of the twelve cells, null country and null x among them, in mean
    for c in range(4):
        for f in (0.5, 1.0, 2.0):
            cell = (country == c) & (factor == f)
            se = np.sqrt(truth[cell][0] / cell.sum())
            assert predicted[cell].mean() == pytest.approx(truth[cell][0], abs=4 * se + 0.1 * truth[cell][0])


def test_one_fold_uses_every_row_for_every_row() -> None:
    features, rewards, unit = world()
    model = model_of([(features, rewards, unit)], 1, 0)
    assert len(model.models) == 1
    assert np.array_equal(model.predict(features, unit), model.predict(features, unit + np.uint64(1)))


def test_metrics_have_models_of_their_own(fitted: tuple[Batch, ValueModel]) -> None:
    (features, rewards, unit), model = fitted
    both = model_of([(features, np.hstack([rewards * 0.0, rewards]), unit)], 2, 0).predict(features, unit)
    assert both.shape == (2000, 2)
    assert (both[:, 0] == 0.0).all()
    assert both[:, 1].mean() == pytest.approx(rewards.mean(), rel=0.1)
    assert np.corrcoef(both[:, 1], model.predict(features, unit)[:, 0])[0, 1] > 0.99


def test_no_reward_gives_zero() -> None:
    features, rewards, unit = world(500)
    assert (model_of([(features, rewards * 0.0, unit)], 2, 0).predict(features, unit) == 0.0).all()


def test_folds_without_reward_learn_nothing_from_the_others() -> None:
    features, rewards, unit = world(500)
    fold = folds_of(unit, 2)
    rewards = np.where((fold == 0)[:, None], 0.0, rewards)
    predicted = model_of([(features, rewards, unit)], 2, 0).predict(features, unit)
    assert (predicted[fold == 1] == 0.0).all()
    assert (predicted[fold == 0] > 0.0).all()


@pytest.mark.parametrize("kind", [pa.float64(), pa.string(), pa.null()], ids=str)
def test_a_feature_that_no_row_has_changes_nothing(kind: pa.DataType) -> None:
    features, rewards, unit = world(400)
    empty = features.append_column("empty", pa.nulls(400, kind))
    plain, more = (model_of([(f, rewards, unit)], folds=2, seed=0) for f in (features, empty))
    assert more.predict(empty, unit) == pytest.approx(plain.predict(features, unit), rel=1e-12)


def test_an_empty_log_gives_zero() -> None:
    features, _, unit = world(5)
    assert model_of([], 2, 0).predict(features, unit).tolist() == [[0.0]] * 5


def test_encoding_of_numbers_dates_text_and_nulls() -> None:
    table = pa.table(
        {
            "number": pa.array([1, None, 3, 4], pa.int16()),
            "single": pa.array([0.5, 1.5, None, 2.0], pa.float32()),
            "flag": pa.array([True, None, False, True]),
            "day": pa.array([date(1970, 1, 2), None, date(1970, 1, 1), date(1969, 12, 31)]),
            "time": pa.array([0, 5, None, 7], pa.timestamp("s")),
            "text": pa.array(["b", "b", None, "a"]),
            "coded": pa.array(["v", None, "u", "u"]).dictionary_encode(),
        }
    )
    encoder = Encoder.fit(table)
    assert encoder.names == tuple(table.column_names)
    assert encoder.categorical == [False] * 5 + [True] * 2
    nan = np.nan
    expected = np.array(
        [
            [1, nan, 3, 4],
            [0.5, 1.5, nan, 2.0],
            [1, nan, 0, 1],
            [1, nan, 0, -1],
            [0, 5, nan, 7],
            [0, 0, 2, 1],  # the commonest first; null after the last
            [1, 2, 0, 0],
        ]
    ).T
    np.testing.assert_array_equal(encoder.matrix(table), expected)
    np.testing.assert_array_equal(encoder.matrix(table.to_batches()[0].slice(1, 2)), expected[1:3])


def test_rare_and_unseen_texts_share_a_code() -> None:
    texts = [f"v{i:03d}" for i in range(400)]
    # value i occurs 400 − i times: the last ones are the rarest
    table = pa.table({"text": np.repeat(texts, 400 - np.arange(400))})
    encoder = Encoder.fit(table)
    codes = encoder.matrix(pa.table({"text": pa.array([*texts, "never seen", None])}))[:, 0]
    assert codes[: MOST_CATEGORIES - 1].tolist() == list(range(MOST_CATEGORIES - 1))
    assert (codes[MOST_CATEGORIES - 1 :] == MOST_CATEGORIES - 1).all()


def test_predictions_for_texts_that_were_never_seen(fitted: tuple[Batch, ValueModel]) -> None:
    (features, _, unit), model = fitted
    other = features.set_column(0, "country", pa.array(["unheard of"] * 2000))
    predicted = model.predict(other, unit)
    assert np.isfinite(predicted).all()
    assert (predicted > 0).all()


@pytest.mark.parametrize("size", [7, 33, 400])
def test_rows_of_the_last_unit_are_chosen_by_value(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Text breaks ties by itself, not by how common it is among the rows that happen to be held."""
    monkeypatch.setattr(foretest.aggregation.value_model, "MOST_ROWS", 50)
    rng = np.random.default_rng(3)
    features = pa.table({"x": rng.integers(0, 3, 400).astype(float), "text": rng.choice(list("abcdefgh"), 400)})
    reward, unit = rng.poisson(1.0, (400, 1)).astype(float), hash_integers(rng.integers(0, 40, 400))

    def chosen(order: np.ndarray, size: int) -> tuple[list[dict[str, object]], list[float]]:
        rows = features.take(order).combine_chunks()
        batches = [
            (rows.slice(at, size).to_batches()[0], reward[order][at : at + size], unit[order][at : at + size])
            for at in range(0, 400, size)
        ]
        table, r, *_ = foretest.aggregation.value_model.smallest_rows(alone(*rows) for rows in batches)
        return table.to_pylist(), r[:, 0].tolist()

    assert chosen(rng.permutation(400), size) == chosen(np.arange(400), 400)


def test_every_kind_of_feature_is_encoded() -> None:
    table = pa.table(
        {
            "time": pa.array([1_500_001, None], pa.timestamp("us")),
            "large": pa.array([2**62 + 1, 0], pa.int64()),
            "clock": pa.array([5, 6], pa.time32("s")),
            "span": pa.array([5, 6], pa.duration("ns")),
            "view": pa.array(["b", "a"], pa.string_view()),
            "flag": pa.array([True, False]),
        }
    )
    matrix = Encoder.fit(table).matrix(table)
    np.testing.assert_array_equal(matrix[0], [1_500_001, float(2**62), 5, 5, 1, 1])


def test_rows_of_a_thinned_log_weigh_as_many_as_they_stand_for() -> None:
    """Of a log whose rewarded rows were all kept, V(x) is near the reward before it was thinned, not far above."""
    g = np.random.default_rng(0)
    x = g.integers(0, 2, 40_000)
    r = (g.random(40_000) < np.where(x == 1, 0.2, 0.05)).astype(float)
    keep = np.where(r > 0, 1.0, 0.1)
    some = np.flatnonzero(g.random(40_000) < keep)
    features = pa.RecordBatch.from_pydict({"x": x[some].astype(float)})
    unit = hash_integers(some)
    for displays in (1.0 / keep[some], np.ones(len(some))):
        rows = FeatureRows(features, r[some, None], unit, displays)
        model = fit_value_model([rows], 1, 0)
        for value in (0.0, 1.0):
            here = x[some] == value
            expected = np.average(r[some][here], weights=displays[here])
            [[predicted]] = model.predict(pa.RecordBatch.from_pydict({"x": [value]}), unit[:1])
            # learning in 80 steps of a tenth, with some shrinkage, ends within a few per cent of each mean
            assert predicted == pytest.approx(expected, rel=0.05)
