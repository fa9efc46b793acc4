"""Features as numbers: texts, gaps, outliers, and columns that join."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from foretest.aggregation.audit_context import features_that_vary, ids_column, sampled_context
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.settings.log_columns import LogColumns

LONG = "a text that is longer than twenty-four bytes"


def displays(rows: int) -> Displays:
    nothing = Ragged.packed(np.empty(0, np.int32), np.zeros(rows, np.int64))
    return Displays({}, nothing, nothing.lengths, np.arange(rows).astype(np.uint64))


def columns_of(table: pa.Table, *names: str) -> dict:
    [batch] = table.combine_chunks().to_batches()
    log = LogColumns(rewards=["r"], features=names)
    columns, _ = sampled_context(batch, np.arange(len(batch)), displays(len(batch)), log)
    return columns


def test_texts_become_indicators_of_their_frequent_values() -> None:
    texts = ["fr"] * 300 + ["de"] * 200 + [None] * 150 + [LONG] * 120 + ["rare"] * 30
    columns = columns_of(pa.table({"country": texts}), "country")
    features = {f.name: f.values for f in features_that_vary(columns)}
    assert list(features) == [
        "country = 'fr'", "country = 'de'", "country = missing", f"country = {LONG[:24]!r}",
    ]  # fmt: skip
    for name, count in zip(features, (300, 200, 150, 120), strict=True):
        assert features[name].sum() == count
    assert features["country = 'de'"].nonzero()[0].tolist() == list(range(300, 500))


def test_columns_of_parts_join() -> None:
    texts = (["été", "hiver"] * 200)[:300]
    whole = columns_of(pa.table({"s": pa.array(texts).dictionary_encode()}), "s")
    parts = [columns_of(pa.table({"s": texts[a:b]}), "s") for a, b in ((0, 110), (110, 300))]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in whole}
    for left, right in zip(features_that_vary(whole), features_that_vary(joined), strict=True):
        assert left.name == right.name
        np.testing.assert_array_equal(left.values, right.values)
    assert [f.name for f in features_that_vary(whole)] == ["s = 'été'", "s = 'hiver'"]


def test_numbers_are_drawn_in_and_gaps_are_features() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=1000)
    x[0] = 1e9
    gaps = [None if i % 5 == 0 else float(v) for i, v in enumerate(x)]
    features = {f.name: f.values for f in features_that_vary(columns_of(pa.table({"x": x, "g": gaps}), "x", "g"))}
    assert list(features) == ["x", "g", "g missing"]
    assert features["x"].max() == pytest.approx(np.quantile(x, 0.99))
    assert features["x"].min() == pytest.approx(np.quantile(x, 0.01))
    assert features["g missing"].mean() == pytest.approx(0.2)
    known = np.arange(1000) % 5 != 0
    np.testing.assert_allclose(features["g"][~known], features["g"][known].mean())


def test_what_does_not_vary_is_left_out() -> None:
    table = pa.table({"one": [1.0] * 200, "same": ["a"] * 200, "flag": [True] + [False] * 199, "null": [None] * 200})
    table = table.set_column(3, "null", pa.array([None] * 200, pa.float64()))
    assert [f.name for f in features_that_vary(columns_of(table, "one", "same", "flag", "null"))] == ["flag"]


@pytest.mark.parametrize(
    "kind", [pa.int16(), pa.int64(), pa.uint64(), pa.string(), pa.large_string(), pa.string_view()]
)
def test_ids_of_candidates(kind: pa.DataType) -> None:
    items = [[9, 9, 9], [3, 1], [8], [1, 2, 7]]
    texts = not pa.types.is_integer(kind)
    lists = pa.array([[str(i) for i in row] for row in items] if texts else items, pa.list_(kind))
    [batch] = pa.table({"items": lists}).to_batches()
    log = LogColumns(rewards=["r"], ranking="ranking", candidates="items")
    _, sampled = sampled_context(batch, np.array([1, 3]), displays(2), log)
    ids = sampled[ids_column("hashed items" if texts else "items")]
    assert [len(ids[0]), len(ids[1])] == [2, 3]
    assert ids[0][1] == ids[1][0]
    assert len(set(ids.flat().tolist())) == 4
    if not texts:
        assert ids.flat().tolist() == [3, 1, 1, 2, 7]
