"""Any nested sums as a table of named arrays, and back, to the last bit."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import foretest as ft
from foretest.aggregation.flat import (
    _classes,
    array_row,
    batch_of,
    flatten,
    from_batch,
    from_batches,
    restore,
    to_batch,
)
from foretest.aggregation.quantities import BY_NAME
from foretest.displays.merging import merged
from foretest.storage.saved.recipe import LAYOUT
from tests.storage.saved.support import assert_same_bits, folded
from tests.support import SmallLog, build_test

LOG = SmallLog()
ESTIMATORS = ["is", "nis", "dr", "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive"]


@pytest.mark.parametrize("strata", ["stratum", "value-model"])
@pytest.mark.parametrize("unit", ["user", None])
def test_a_batch_gives_the_same_bits_back(strata: str, unit: str | None) -> None:
    test = build_test(ESTIMATORS, metrics=("click", "revenue"), unit=unit, strata=strata, buckets=32)
    before = folded(test, LOG.table())
    batch = to_batch(before)
    assert isinstance(batch, pa.RecordBatch)
    assert_same_bits(from_batch(batch, before.plan), before)


def test_a_batch_survives_a_stream_of_arrow() -> None:
    before = folded(build_test(["ncis"]), LOG.table())
    sink = pa.BufferOutputStream()
    batch = to_batch(before)
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    again = pa.ipc.open_stream(sink.getvalue()).read_next_batch()
    assert_same_bits(from_batch(again, before.plan), before)


def test_sums_of_batches_add_up() -> None:
    test = build_test(ESTIMATORS, buckets=32)
    whole = folded(test, LOG.table())
    parts = [folded(test, LOG.table().slice(begin, 100)) for begin in range(0, 400, 100)]
    again = [from_batch(to_batch(part), whole.plan) for part in parts]
    assert_same_bits(merged(again), merged(parts))


def test_nothing_was_folded() -> None:
    before = folded(build_test(["cis", "point-ncis"]), LOG.table().slice(0, 0))
    assert before.max_log_w == -np.inf
    assert_same_bits(from_batch(to_batch(before), before.plan), before)


def test_weights_of_any_size_and_an_estimator_of_ones_own() -> None:
    @dataclasses.dataclass(frozen=True)
    class Tempered(ft.Weighting):
        power: float

        def log_h(self, log_w: Any) -> Any:
            return self.power * log_w

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Own(ft.NIS):
        key = "own"

        def weighting(self, analysis: Any) -> Any:
            return Tempered(0.5)

    log = LOG.table(control_scores=pa.array((300.0 * LOG.control).tolist()))
    before = folded(build_test([Own(), "nis"]), log)
    assert before.max_log_w > 300
    assert_same_bits(from_batch(to_batch(before), before.plan), before)


def test_keys_of_any_shape_need_no_line_of_code() -> None:
    """What a later version adds to a dict, under keys that are not there today."""
    before = folded(build_test(["dr"]), LOG.table())
    more: dict[Any, Any] = {("segment", 3, None, True): np.arange(6.0).reshape(2, 3), 7: np.float32([1.5])}
    wider = dataclasses.replace(before, sampled=more)
    assert_same_bits(from_batch(to_batch(wider), before.plan), wider)


def test_keys_that_read_alike_stay_apart() -> None:
    before = folded(build_test(["dr"]), LOG.table())
    more: dict[Any, Any] = {("1", 2): np.ones(1), (1, "2"): np.zeros(2)}
    assert_same_bits(from_batch(to_batch(dataclasses.replace(before, sampled=more)), before.plan).sampled, more)


def test_what_is_no_array_and_no_number_is_refused() -> None:
    before = folded(build_test(["dr"]), LOG.table())
    with pytest.raises(TypeError, match="neither an array nor a number"):
        to_batch(dataclasses.replace(before, sampled={("dr", 0): object()}))  # type: ignore[dict-item]


def test_a_file_cannot_name_a_class() -> None:
    before = folded(build_test(["cis"]), LOG.table())
    flat = flatten(before)
    for wrong in ("Popen", "os:system", "FoldPlan"):
        with pytest.raises(KeyError):
            restore(flat._replace(tree={"class": wrong, "fields": {}}), before.plan)
    with pytest.raises(TypeError):
        restore(flat._replace(tree={"class": "Strata", "fields": {}}), before.plan)
    with pytest.raises(TypeError, match="an array of"):
        from_batches([batch_of([{**array_row("a", np.ones(1)), "stored": "O"}])])


_DTYPES = st.sampled_from([np.float64, np.float32, np.int64, np.uint64, np.int32, np.uint8, np.bool_])


@given(st.data())
def test_arrays_are_stored_narrow_and_come_back_as_they_were(data: st.DataObject) -> None:
    dtype = np.dtype(data.draw(_DTYPES))
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=5, min_side=0))
    small = st.integers(0, 200) if dtype.kind in "iuf" else None
    array = data.draw(hnp.arrays(dtype, shape, elements=data.draw(st.sampled_from([None, small]))))
    flat = from_batches([batch_of([array_row("a", array)])])
    assert_same_bits(flat.arrays["a"], array)


@pytest.mark.parametrize(
    ("values", "dtype", "stored"),
    [
        ([0.0, 1.0, 255.0], np.float64, "|u1"),
        ([0.0, 256.0], np.float64, "<u2"),
        ([0.0, -1.0], np.float64, "|i1"),
        ([0.5, 1e20], np.float64, "<f8"),
        ([0.5, -0.25], np.float64, "<f4"),
        ([0.0, -0.0], np.float64, "<f4"),  # no integer has a sign of zero
        ([1.0, np.nan], np.float64, "<f4"),
        ([1.0, -np.inf], np.float64, "<f4"),
        ([0.1], np.float64, "<f8"),
        ([0, 3], np.int64, "|u1"),
        ([-70_000, 3], np.int64, "<i4"),
        ([2**40], np.uint64, "<u8"),
        ([2**32 - 1], np.uint64, "<u4"),
    ],
)
def test_the_narrowest_type_that_holds_each_number(values: list[float], dtype: type, stored: str) -> None:
    row = array_row("a", np.array(values, dtype))
    assert row["stored"] == stored
    assert row["dtype"] == np.dtype(dtype).newbyteorder("<").str


def test_pieces_of_an_array_are_joined() -> None:
    array = np.random.default_rng(0).normal(size=(7, 3))
    rows = [array_row("a", array[:4]), array_row("b", np.ones(2)), array_row("a", array[4:])]
    assert_same_bits(from_batches([batch_of(rows[:1]), batch_of(rows[1:])]).arrays["a"], array)


def test_another_structure_has_another_layout() -> None:
    """If this fails, a field was added or changed: files of before cannot be read any more. Raise LAYOUT, and say here
    what the structure is now. A field that a file has only where it is given (OPTIONAL) needs no other layout."""
    fields = sorted(f"{name}.{k}: {v}" for name, cls in _classes().items() for k, v in cls.__annotations__.items())
    fields += sorted(BY_NAME)
    assert (LAYOUT, hashlib.sha256("\n".join(fields).encode()).hexdigest()[:16]) == (3, "934549740a336001")
