"""Segments: each as a run on its rows alone, however the log is cut and however many values there are."""

from __future__ import annotations

import dataclasses
import json
from functools import reduce
from importlib.resources import files
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import foretest as ft
from foretest.aggregation import fold_start as module
from foretest.inference.multiple_testing import holm
from foretest.kernels.hashing import hash_strings
from tests.schemas import validate
from tests.storage.saved.support import assert_same_result
from tests.support import SCORES, SmallLog

SCHEMA = json.loads(files("foretest").joinpath("schema/result-1.json").read_text(encoding="utf-8"))
LOG = SmallLog(rows=3000, units=250, seed=2)
ABLE = ["is", "nis", "cis", "ncis", "point-ncis", "point-ncis-adaptive"]
BUCKETS = 128  # fewer than units: of small segments the units are counted, of large ones only the buckets
G = np.random.default_rng(7)
# values of very different sizes, some rows without one
VALUE = np.where(
    G.random(LOG.rows) < 0.1, None, np.array([f"v{k}" for k in np.minimum(G.geometric(0.2, LOG.rows), 30)])
)


def table(**extra: Any) -> pa.Table:
    return LOG.table(country=pa.array(VALUE), phone=np.arange(LOG.rows) % 3 == 0, **extra)


def by(*columns: str, estimators: Any = ABLE, **analysis: Any) -> ft.OfflineTest:
    settings = {"cap": 2.0, "weight_bound": 3.0, "n_resamples": 100, "buckets": BUCKETS, **analysis}
    log = ft.LogColumns(rewards=["click", "revenue"], unit="user", ranking="ranking", id="id", segments=columns)
    return ft.OfflineTest(log=log, **SCORES, estimators=estimators, **settings)


@pytest.fixture(scope="module")
def result() -> ft.Result:
    return by("country", "phone").run(table())


def rows_of(segment: Any, shown: list[str]) -> pa.Table:
    column = pc.fill_null(table()[segment.column].cast(pa.string()), "(none)")
    inside = pc.invert(pc.is_in(column, pa.array(shown))) if segment.rest else pc.equal(column, segment.value)
    return table().filter(inside)


def test_a_segment_is_a_run_on_its_rows(result: ft.Result) -> None:
    test = by()
    checked = 0
    for segment in result.segments:
        shown = [s.value for s in result.segments if s.column == segment.column and not s.rest]
        if segment.value not in ("v1", "(none)", "v8", shown[-1], "other", "true"):
            continue  # enough are checked
        rows = rows_of(segment, shown)
        assert segment.rows == rows.num_rows
        alone = test.run(rows)
        for name, wanted in alone.metrics.items():
            metric = segment.metrics[name]
            assert (metric.headline, metric.verdict) == (wanted.headline, wanted.verdict)
            for field in dataclasses.fields(metric.control):
                mine, theirs = getattr(metric.control, field.name), getattr(wanted.control, field.name)
                assert mine == pytest.approx(theirs, rel=1e-9), field.name
            unit = wanted.control.value or 1.0
            for label, estimate in wanted.estimates.items():
                mine = metric.estimates[label]
                assert (mine.verdict, mine.unsupported_rows) == (estimate.verdict, estimate.unsupported_rows)
                assert mine.reasons == [r.replace(", or r_max for an interval that holds with any number", "")
                                        for r in estimate.reasons]  # fmt: skip
                for number in (
                    "treatment", "std_error", "effect_size", "effect_size_ci_lower", "effect_size_ci_upper",
                    "rel_effect_size", "rel_effect_size_ci_lower", "rel_effect_size_ci_upper",
                    "effective_positives", "predicted_effective_positives",
                ):  # fmt: skip
                    wished = getattr(estimate, number)
                    if wished is not None:
                        wished = pytest.approx(wished, rel=1e-9, abs=1e-12 * unit)
                    assert getattr(mine, number) == wished, (label, number)
        checked += 1
    assert checked == 6


def test_twenty_values_then_other(result: ft.Result) -> None:
    of_country = [s for s in result.segments if s.column == "country"]
    values, counts = np.unique(np.where(VALUE == None, "(none)", VALUE).astype(str), return_counts=True)  # noqa: E711
    order = sorted(zip(-counts, values, strict=True))
    assert [s.value for s in of_country] == [*(v for _, v in order[:20]), "other"]
    assert [s.rows for s in of_country[:20]] == [-n for n, _ in order[:20]]
    assert (of_country[-1].rest, of_country[-1].values) == (True, len(values) - 20)
    assert sum(s.rows for s in of_country) == LOG.rows
    assert [(s.value, s.rest) for s in result.segments if s.column == "phone"] == [("false", False), ("true", False)]


def test_json_validates_and_small_segments_say_why(result: ft.Result) -> None:
    document = json.loads(result.to_json())
    validate(document, SCHEMA)
    assert document["segments"][0]["column"] == "country"
    smallest = next(s for s in reversed(result.segments) if s.column == "country" and not s.rest)
    lead = smallest.metrics["click"].estimates["point-ncis-adaptive"]
    assert lead.verdict == "insufficient"
    assert any("predicted effective positives: at least 30 are needed" in reason for reason in lead.reasons)
    text = str(result)
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "click by country, point-ncis-adaptive" in text


def test_verdicts_are_adjusted_over_the_values_of_a_column(result: ft.Result) -> None:
    for column in ("country", "phone"):
        leads = [s.metrics["click"].estimates["ncis"] for s in result.segments if s.column == column]
        families = [e.adjusted for e in leads]
        wanted = holm([float("nan") if a is None or a.p_value is None else a.p_value for a in families])
        assert [a.p_adjusted for a in families if a is not None] == pytest.approx(wanted, rel=1e-12)


# -- how the log is cut -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_of_many_values_those_of_smallest_hash_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """In any order of rows and parts, and no row is lost."""
    monkeypatch.setattr(module, "MOST_VALUES", 8)
    test = by("country", estimators=["ncis", "point-ncis-adaptive"], buckets=256)
    whole, notes, r_max = test.aggregate(table())
    wanted = test.analyse(whole, notes, r_max)
    cut = [table().slice(begin, 250) for begin in range(0, LOG.rows, 250)]
    parts = [test.aggregate(part, batch_rows=60)[0] for part in cut]
    for order in (parts, parts[::-1]):
        assert_same_result(test.analyse(reduce(add, order), notes, r_max), wanted)
    mixed = table().take(np.random.default_rng(0).permutation(LOG.rows))
    assert_same_result(test.run(mixed, batch_rows=77), wanted)
    assert sum(s.rows for s in wanted.segments) == LOG.rows
    values = sorted({"(none)" if v is None else v for v in VALUE})
    encoded = [v.encode() for v in values]
    ends = np.cumsum([0, *map(len, encoded)])
    hashes = hash_strings(np.frombuffer(b"".join(encoded), np.uint8), ends)
    kept = {values[i] for i in np.argsort(hashes)[:8]}
    assert {s.value for s in wanted.segments} == {*kept, "other"}
    assert wanted.segments[-1].values is None
    assert any("more than 8 values" in note for note in wanted.notes)


def test_a_batch_whose_units_are_all_known() -> None:
    """Of a value with more units than buckets the smallest hashes are kept: a short batch may have none of them."""
    test, log = by("phone", estimators=["ncis"], buckets=16), table().slice(0, 500)
    wanted = test.run(log)
    for batch_rows in (1, 2, 499):
        assert_same_result(test.run(log, batch_rows=batch_rows, threads=1), wanted)


# -- columns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint64(), pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_every_kind_of_column(kind: pa.DataType) -> None:
    number = np.arange(LOG.rows) % 4
    text = pa.array([None if n == 3 else str(n) for n in number])
    column = text.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else text.cast(kind)
    found = by("x", estimators=["ncis"], buckets=64).run(table(x=column))
    assert [(s.value, s.rows) for s in found.segments] == [("(none)", 750), ("0", 750), ("1", 750), ("2", 750)]


def test_bad_columns_are_told_in_a_sentence() -> None:
    with pytest.raises(
        ft.BadInput, match=r"column 'v' is double, expected an integer, string or bool column \(a segment"
    ):
        by("v").run(table())
    with pytest.raises(ft.BadInput, match=r"no column 'contry'. Did you mean 'country'\?"):
        by("contry").run(table())
    with pytest.raises(ft.BadInput, match="segments names a column twice"):
        by("phone", "phone")
    with pytest.raises(ft.BadInput, match="expected a list of column names"):
        ft.LogColumns(rewards=["click"], segments="phone")  # type: ignore[arg-type]


def test_what_cannot_be_told_by_segment_is_noted() -> None:
    more: dict[str, Any] = {"strata": "stratum", "value": "v", "buckets": 256}
    found = by("phone", estimators=["dr", "piece-ncis", "ncis"], **more).run(table())
    assert list(found.segments[0].metrics["click"].estimates) == ["ncis"]
    assert found.metrics["click"].headline == "piece-ncis"
    assert found.segments[0].metrics["click"].headline == "ncis"
    assert any(note.startswith("dr, piece-ncis cannot be given by segment") for note in found.notes)
    none = by("phone", estimators=["piece-ncis"], **more).run(table())
    assert none.segments == []
    bounded = by("phone", estimators=["cis"], interval="betting", r_max=1e9, buckets=256).run(table())
    assert any("intervals by segment are by the delta method" in note for note in bounded.notes)
    empty = by("phone").run(table().slice(0, 0))
    assert empty.segments == []


def test_a_segment_of_one_unit_is_no_fault() -> None:
    lonely = np.where(np.arange(LOG.rows) == 5, "one", "many")
    found = by("x", buckets=256).run(table(x=lonely))
    one = found.segments[-1]
    assert (one.value, one.rows) == ("one", 1)
    assert all(e.verdict == "insufficient" for e in one.metrics["click"].estimates.values())
    validate(json.loads(found.to_json()), SCHEMA)
