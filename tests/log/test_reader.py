"""The log: the same displays in every Arrow form give the same arrays and the same digits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.aggregation.choose_estimators import choose_estimators
from foretest.kernels.hashing import hash_integers
from foretest.log.reader import Reader
from foretest.log.rows import Rows
from foretest.offline.prepare_and_fold import offline_reader
from foretest.offline.test import OfflineTest
from foretest.settings.settings import Settings
from foretest.sources import Chunk, open_source
from tests.support import SCORES, SLOT_KEYS, SmallLog, build_test

LOG = SmallLog(rows=200)
TABLE = LOG.table()
ALL = ["is", "nis", "dr", "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive"]


def digits(test: OfflineTest, log: Any) -> dict[str, Any]:
    """All that a result says but its settings; which items its audit counts follows from them."""
    document = json.loads(test.run(log).to_json())
    del document["settings"]
    document["audit"]["findings"] = [f for f in document["audit"]["findings"] if f["name"] != "items by slot"]
    return dict(document)


def assert_same(got: Any, want: Any) -> None:
    """Equal, but for the rounding of sums in another order."""
    if isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            assert_same(got[key], want[key])
    elif isinstance(want, list):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            assert_same(one, other)
    else:
        assert got == (pytest.approx(want, rel=1e-9, abs=1e-12) if isinstance(want, float) else want)


def rows_of(test: OfflineTest, table: pa.Table) -> Rows:
    """The whole table as one checked batch."""
    plan, _ = choose_estimators(test.settings)
    [batch] = table.combine_chunks().to_batches()
    return offline_reader(plan).read(Chunk(batch, "the table", 0, 0))


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return digits(build_test(ALL, r_max=1.0), TABLE)


# -- forms of a column ------------------------------------------------------------------------------------------------


def cast(*columns: str, kind: Callable[[pa.DataType], pa.DataType]) -> pa.Table:
    table = TABLE
    for name in columns:
        at, to = table.column_names.index(name), kind(table[name].type)
        views = pa.types.is_list_view(to) or pa.types.is_large_list_view(to)  # Arrow cannot cast to these
        table = table.set_column(at, name, pa.array(table[name].to_pylist(), to) if views else table[name].cast(to))
    return table


LISTS = ("ranking", "control_scores", "treatment_scores")


def list_form(kind: Callable[[pa.DataType], pa.DataType]) -> pa.Table:
    return cast(*LISTS, kind=lambda old: kind(old.value_type))


def fixed_size() -> pa.Table:
    sizes = {"ranking": LOG.k, "control_scores": LOG.m, "treatment_scores": LOG.m}
    table = TABLE
    for name, size in sizes.items():
        table = table.set_column(
            table.column_names.index(name), name, table[name].cast(pa.list_(table[name].type.value_type, size))
        )
    return table


def dictionary(*columns: str) -> pa.Table:
    table = TABLE
    for name in columns:
        table = table.set_column(table.column_names.index(name), name, table[name].dictionary_encode())
    return table


def ranking_of(kind: pa.DataType) -> pa.Table:
    return cast("ranking", kind=lambda _: pa.list_(kind))


FORMS: dict[str, Callable[[], pa.Table]] = {
    "large lists": lambda: list_form(pa.large_list),
    "list views": lambda: list_form(pa.list_view),
    "large list views": lambda: list_form(pa.large_list_view),
    "lists of fixed size": fixed_size,
    "uint8 positions": lambda: ranking_of(pa.uint8()),
    "int8 positions": lambda: ranking_of(pa.int8()),
    "uint16 positions": lambda: ranking_of(pa.uint16()),
    "uint32 positions": lambda: ranking_of(pa.uint32()),
    "int64 positions": lambda: ranking_of(pa.int64()),
    "uint64 positions": lambda: ranking_of(pa.uint64()),
    "int rewards": lambda: cast("click", kind=lambda _: pa.int8()),
    "bool rewards": lambda: cast("click", kind=lambda _: pa.bool_()),
    "decimal rewards": lambda: cast("click", kind=lambda _: pa.decimal128(10, 2)),
    "int32 units": lambda: cast("user", kind=lambda _: pa.int32()),
    "uint64 units": lambda: cast("user", kind=lambda _: pa.uint64()),
    "dictionaries": lambda: dictionary("user", "id", "stratum"),
    "chunks": lambda: pa.concat_tables([TABLE.slice(0, 7), TABLE.slice(7, 100), TABLE.slice(107)]),
    "a slice of more": lambda: pa.concat_tables([TABLE.slice(150), TABLE, TABLE.slice(0, 9)]).combine_chunks().slice(
        50, 200
    ),
    "a slice of large lists": lambda: pa.concat_tables([list_form(pa.large_list)] * 2).combine_chunks().slice(200),
    "a slice of list views": lambda: pa.concat_tables([list_form(pa.list_view)] * 2).combine_chunks().slice(200),
    "a slice of lists of fixed size": lambda: pa.concat_tables([fixed_size()] * 2).combine_chunks().slice(200),
    "columns nobody asked for": lambda: TABLE.append_column("junk", pa.array([None] * 200)),
    "columns in another order": lambda: TABLE.select(sorted(TABLE.column_names)),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_digits(form: str, expected: dict[str, Any]) -> None:
    table = FORMS[form]()
    assert table.num_rows == 200
    # of bool columns the largest reward is known: here it is told of all
    assert_same(digits(build_test(ALL, r_max=1.0), table), expected)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_units_of_every_form(kind: pa.DataType) -> None:
    names = pa.array([f"user {unit}" for unit in LOG.unit])
    plain = rows_of(build_test(["cis"]), TABLE.set_column(2, "user", names)).unit
    other = rows_of(build_test(["cis"]), TABLE.set_column(2, "user", names.cast(kind))).unit
    coded = rows_of(build_test(["cis"]), TABLE.set_column(2, "user", names.dictionary_encode())).unit
    np.testing.assert_array_equal(other, plain)
    np.testing.assert_array_equal(coded, plain)
    assert len(np.unique(plain)) == len(np.unique(LOG.unit))


def test_a_slice_is_not_judged_by_what_it_leaves_out() -> None:
    """Faults in the rows around a slice are none of its own, though they share its buffers."""
    bad = TABLE.slice(0, 3).to_pydict()
    bad["control_scores"] = [[float("nan")] * 5] * 3
    bad["treatment_scores"] = [[None] * 5] * 3
    bad["ranking"] = [[9, 9]] * 3
    whole = pa.concat_tables([pa.table(bad, schema=TABLE.schema), TABLE]).combine_chunks()
    scores = {"control": ft.PlackettLuce(scores="control_scores", log_prob="p"), "treatment": SCORES["treatment"]}
    whole = whole.append_column("p", pa.array([-1.0] * whole.num_rows))
    roles = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id")
    result = ft.OfflineTest(log=roles, **scores, estimators=["cis"]).run(whole.slice(3))
    assert result.log["rows"] == 200
    with pytest.raises(ft.BadInput, match=r"column 'control_scores', row 0 .* a score is NaN; 3 rows have this fault"):
        ft.OfflineTest(log=roles, control=scores["control"], treatment=scores["control"]).run(whole)


def test_float32_scores_are_read_as_they_are() -> None:
    table = cast("control_scores", kind=lambda _: pa.list_(pa.float32()))
    column = rows_of(build_test(["cis"]), table).displays["control_scores"]
    assert column.values.dtype == np.float32
    np.testing.assert_array_equal(column.padded(0.0), LOG.control.astype(np.float32))


# -- rankings ---------------------------------------------------------------------------------------------------------


def with_ids(ids: Callable[[int], Any], kind: pa.DataType) -> pa.Table:
    """The rankings as ids, each row with ids of its own."""
    items = [[ids(100 * row + place) for place in range(LOG.m)] for row in range(LOG.rows)]
    shown = [[items[row][place] for place in LOG.rankings[LOG.shown[row]]] for row in range(LOG.rows)]
    table = TABLE.drop_columns("ranking")
    return table.append_column("ranking", pa.array(shown, kind)).append_column("items", pa.array(items, kind))


IDS: dict[str, Callable[[], pa.Table]] = {
    "integers": lambda: with_ids(lambda i: i, pa.list_(pa.int64())),
    "small integers": lambda: with_ids(lambda i: i, pa.list_(pa.int32())),
    "large integers": lambda: with_ids(lambda i: 2**60 + i, pa.list_(pa.int64())),
    "text": lambda: with_ids(lambda i: f"item-{i}", pa.list_(pa.string())),
    "large text in large lists": lambda: with_ids(lambda i: f"item-{i}", pa.large_list(pa.large_string())),
    "text in dictionaries": lambda: with_ids(lambda i: f"item-{i}", pa.list_(pa.dictionary(pa.int32(), pa.string()))),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_give_the_digits_of_positions(kind: str, expected: dict[str, Any]) -> None:
    test = build_test(ALL, r_max=1.0)
    roles = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", candidates="items", id="id")
    by_ids = OfflineTest.from_settings(Settings(roles, test.settings.control, test.settings.treatment,
                                                test.settings.analysis))  # fmt: skip
    assert_same(digits(by_ids, IDS[kind]()), expected)


def test_ids_of_two_widths(expected: dict[str, Any]) -> None:
    table = IDS["integers"]()
    table = table.set_column(
        table.column_names.index("ranking"), "ranking", table["ranking"].cast(pa.list_(pa.int32()))
    )
    roles = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", candidates="items", id="id")
    analysis = build_test(ALL, r_max=1.0).settings.analysis
    assert_same(digits(OfflineTest.from_settings(Settings(roles, **SCORES, analysis=analysis)), table), expected)


# -- one slot ---------------------------------------------------------------------------------------------------------

ONE = SmallLog(rows=200, k=1)
ONE_SLOT = [*ALL, *SLOT_KEYS]


def one_slot(**columns: Any) -> pa.Table:
    """A log of one slot, by id and by position, with other columns in place of some."""
    names = [[f"{row}-{place}" for place in range(ONE.m)] for row in range(ONE.rows)]
    shown = ONE.rankings[ONE.shown, 0].tolist()
    table = ONE.table(items=names, name=[[row[place]] for row, place in zip(names, shown, strict=True)])
    for name, column in columns.items():
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def one_slot_test(**roles: Any) -> OfflineTest:
    log = {"unit": "user", "id": "id", "ranking": "ranking", "slot_rewards": {"click": "slot_click"}, **roles}
    settings = build_test(ONE_SLOT, r_max=1.0).settings
    columns = ft.LogColumns(rewards=["click"], **log)
    return OfflineTest.from_settings(Settings(columns, settings.control, settings.treatment, settings.analysis))


def first(name: str, kind: pa.DataType | None = None) -> pa.Array:
    """A column of lists of one as a plain one."""
    values = one_slot()[name].combine_chunks().flatten()
    return values if kind is None else values.cast(kind)


PLAIN: dict[str, tuple[dict[str, str], Callable[[], pa.Table]]] = {
    "int32": ({}, lambda: one_slot(ranking=first("ranking"))),
    "int64": ({}, lambda: one_slot(ranking=first("ranking", pa.int64()))),
    "uint8": ({}, lambda: one_slot(ranking=first("ranking", pa.uint8()))),
    "a slice": ({}, lambda: pa.concat_tables([one_slot(ranking=first("ranking"))] * 2).combine_chunks().slice(200)),
    "a slot's reward": ({}, lambda: one_slot(ranking=first("ranking"), slot_click=first("slot_click"))),
    "text": ({"ranking": "name", "candidates": "items"}, lambda: one_slot(name=first("name"))),
    "text in a dictionary": (
        {"ranking": "name", "candidates": "items"}, lambda: one_slot(name=first("name").dictionary_encode()),
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", PLAIN)
def test_a_plain_column_is_a_ranking_of_one_item(form: str) -> None:
    """As in the log of a bandit, with a column of actions: every digit is that of lists of length one."""
    roles, table = PLAIN[form]
    test = one_slot_test(**roles)
    assert_same(digits(test, table()), digits(test, one_slot()))


def test_the_reward_itself_is_the_reward_of_a_single_slot() -> None:
    got = digits(one_slot_test(slot_rewards={"click": "click"}), one_slot(ranking=first("ranking")))
    assert_same(got, digits(one_slot_test(), one_slot()))


@pytest.mark.parametrize("by_id", [False, True])
def test_a_plain_column_of_csv(by_id: bool, tmp_path: Path) -> None:
    roles = {"ranking": "name", "candidates": "items"} if by_id else {}
    results = []
    for name, table in (("lists", one_slot()), ("plain", one_slot(ranking=first("ranking"), name=first("name")))):
        columns = {
            column: [json.dumps(cell) if isinstance(cell, list) else cell for cell in table[column].to_pylist()]
            for column in table.column_names
        }
        pd.DataFrame(columns).to_csv(tmp_path / f"{name}.csv", index=False)
        result = digits(one_slot_test(**roles), str(tmp_path / f"{name}.csv"))
        del result["provenance"]
        results.append(result)
    lists, plain = results
    assert_same(plain, lists)


FAULTS: dict[str, tuple[dict[str, Any], dict[str, pa.Array], str]] = {
    "null": ({}, {"ranking": pa.array([0] * 7 + [None] + [1] * 192)}, "row 7 .*: the value is null; no other row"),
    "null of a dictionary": (
        {"ranking": "name", "candidates": "items"},
        {"name": pa.DictionaryArray.from_arrays(pa.array([0] * 200), pa.array([None, "a"]))},
        "row 0 .*: the value is null; 200 rows have this fault",
    ),
    "out of range": ({}, {"ranking": pa.array([5] * 200)}, "the action 5 is outside .* of 5 eligible"),
    "negative": ({}, {"ranking": pa.array([-1] * 200)}, "the action -1 is outside"),
    "no candidate": (
        {"ranking": "name", "candidates": "items"}, {"name": pa.array(["0-0"] * 200)},
        "row 1 .*: the shown item '0-0' is not among the row's candidates .column 'items'.; 199 rows",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_a_plain_column(fault: str) -> None:
    roles, columns, message = FAULTS[fault]
    with pytest.raises(ft.BadInput, match=message):
        one_slot_test(**roles).run(one_slot(**columns))


def test_one_number_for_two_slots() -> None:
    test = one_slot_test(slot_rewards={"click": "click"})
    with pytest.raises(ft.BadInput, match="one number per row, but the row shows 2 items; 200 rows have"):
        test.run(TABLE)


def test_lengths_that_differ_from_row_to_row() -> None:
    """M from 1 to 6 and K from 1 to M: the weights are those of the definition."""
    g = np.random.default_rng(3)
    rows = 120
    m = g.integers(1, 7, rows)
    k = np.minimum(g.integers(1, 4, rows), m)
    control = [g.normal(size=n) for n in m]
    treatment = [g.normal(size=n) for n in m]
    rankings = [g.permutation(n)[:slots] for n, slots in zip(m, k, strict=True)]
    click = g.random(rows) < 0.5

    def log_prob(scores: np.ndarray, ranking: np.ndarray) -> float:
        left, total = np.exp(scores), 0.0
        for item in ranking:
            total += np.log(left[item] / left.sum())
            left[item] = 0.0
        return float(total)

    log_w = [
        log_prob(t, a) - log_prob(p, a) for t, p, a in zip(treatment, control, rankings, strict=True)
    ]  # fmt: skip
    table = pa.table(
        {
            "click": click,
            "ranking": [a.tolist() for a in rankings],
            "items": [[f"{row}-{i}" for i in range(n)] for row, n in enumerate(m)],
            "shown": [[f"{row}-{i}" for i in a] for row, a in enumerate(rankings)],
            "control_scores": [s.tolist() for s in control],
            "treatment_scores": [s.tolist() for s in treatment],
        }
    )
    for roles in (
        ft.LogColumns(rewards=["click"], ranking="ranking"),
        ft.LogColumns(rewards=["click"], ranking="shown", candidates="items"),
    ):
        test = ft.OfflineTest(log=roles, **SCORES, estimators=["is", "ncis", "point-ncis"], cap=2.0)
        result = test.run(table, batch_rows=17).metrics["click"]
        w = np.exp(log_w)
        assert result.estimates["is"].treatment == pytest.approx((w * click).mean(), rel=1e-12)
        capped = np.minimum(w, 2.0)
        assert result.estimates["ncis"].treatment == pytest.approx((capped * click).sum() / capped.sum(), rel=1e-12)
        displays = rows_of(test, table).displays
        np.testing.assert_array_equal(displays.eligible, m)
        np.testing.assert_array_equal(displays.slots, k)
        assert [displays.ranking[row].tolist() for row in range(rows)] == [a.tolist() for a in rankings]


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (pa.int64(), 2**32), (pa.int64(), 2**32 + 1), (pa.int64(), -(2**32)), (pa.int64(), 2**31 - 1),
        (pa.uint64(), 2**63 + 1), (pa.uint32(), 2**32 - 1), (pa.int8(), -1), (pa.int16(), -5), (pa.uint8(), 255),
    ],
)  # fmt: skip
def test_positions_that_do_not_fit_are_refused_not_wrapped(kind: pa.DataType, place: int) -> None:
    rankings = LOG.rankings[LOG.shown].tolist()
    rankings[170] = [0, place]
    table = TABLE.set_column(TABLE.column_names.index("ranking"), "ranking", pa.array(rankings, pa.list_(kind)))
    with pytest.raises(ft.BadInput) as error:
        build_test(["cis"]).run(table)
    assert str(error.value).startswith(
        f"the table: column 'ranking', row 170 (the first row is 0): the position {place} in the ranking is outside the"
        " row's lists of 5 eligible items; no other row has this fault."
    )


def test_negative_position_where_no_list_tells_how_many() -> None:
    roles = ft.LogColumns(rewards=["click"], ranking="ranking")
    test = ft.OfflineTest(log=roles, control=ft.Logged(prob="p"), treatment=ft.Logged(prob="p"))
    with pytest.raises(ft.BadInput, match=r"row 1 .*: the position -2 in the ranking is negative; no other row"):
        test.run(pa.table({"click": [1, 0], "ranking": [[7, 1], [3, -2]], "p": [0.5, 0.5]}))


@pytest.mark.parametrize(("ranking", "what"), [
    ([[7, 1], [3, 2**55]], "the position 36028797018963968 in the ranking"), ([7, 2**31], "the action 2147483648"),
])  # fmt: skip
def test_ids_that_no_position_can_be_where_no_list_tells_how_many(ranking: list[Any], what: str) -> None:
    roles = ft.LogColumns(rewards=["click"], ranking="ranking")
    test = ft.OfflineTest(log=roles, control=ft.Logged(prob="p"), treatment=ft.Logged(prob="p"))
    expected = (
        f"row 1 .*: {what} is beyond 10,000, and the row has no list of items; no other row.*\\[log\\] candidates"
    )
    with pytest.raises(ft.BadInput, match=expected):
        test.run(pa.table({"click": [1, 0], "ranking": ranking, "p": [0.5, 0.5]}))


# -- what is read -----------------------------------------------------------------------------------------------------


def columns_of(**changes: Any) -> set[str]:
    test = ft.OfflineTest(
        **{"log": ft.LogColumns(rewards=["click", "revenue"], unit="user", ranking="ranking", id="id", date="day",
                                features=["country"]), **SCORES, **changes}
    )  # fmt: skip
    plan, _ = choose_estimators(test.settings)
    return set(offline_reader(plan).columns)


def test_only_needed_columns_are_read() -> None:
    few = ft.LogColumns(rewards=["click"])
    always = {"click", "revenue", "user", "id", "ranking", "control_scores", "treatment_scores", "country", "day"}
    assert columns_of(estimators=["cis", "point-ncis"]) == always
    assert columns_of(estimators=["piece-ncis"]) == always
    assert columns_of(estimators=["piece-ncis"], strata="stratum") == {*always, "stratum"}
    assert columns_of(estimators=["dr"], value="v") == {*always, "v"}
    assert columns_of(estimators=["cis"], strata="stratum") == always
    logged = ft.Logged(prob="p")
    context = ft.LogColumns(rewards=["click"], features=["country"])  # the audit looks at the weights of each country
    assert columns_of(log=context, control=logged, treatment=logged, estimators=["cis"]) == {"click", "p", "country"}
    assert columns_of(log=few, control=logged, treatment=logged, estimators=["cis"]) == {"click", "p"}


def test_a_value_model_reads_no_policy() -> None:
    reader = Reader(build_test(["piece-ncis"]).settings, features=True).for_value_model()
    assert set(reader.columns) == {"click", "user", "id"}


def test_value_of_a_column_is_read_for_all_metrics() -> None:
    rows = rows_of(build_test(["dr"], metrics=("click", "revenue")), TABLE)
    assert rows.rewards.shape == (200, 2)
    np.testing.assert_array_equal(rows.rewards, np.stack([LOG.click, LOG.revenue], axis=1))
    assert rows.value is not None
    np.testing.assert_array_equal(rows.value, LOG.value)


def test_units_of_rows() -> None:
    """Without a unit each row is its own: by its id, else by its place in the whole log."""
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="p")
    )
    plan, _ = choose_estimators(test.settings)
    batch = pa.record_batch({"click": [1, 0, 1], "p": [0.5, 0.5, 0.5]})
    rows = offline_reader(plan).read(Chunk(batch, "x", 0, 1000))
    np.testing.assert_array_equal(rows.unit, hash_integers(np.array([1000, 1001, 1002])))


def test_null_in_a_dictionary_of_units() -> None:
    units = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0]), pa.array(["a", None]))
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="u"), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="p")
    )
    with pytest.raises(ft.BadInput, match=r"column 'u', row 1 .* the value is null; 2 rows have this fault"):
        test.run(pa.table({"click": [1, 0, 0, 1], "p": [0.5] * 4, "u": units}))


# -- features ---------------------------------------------------------------------------------------------------------

FEATURES: dict[str, tuple[pa.Array, list[Any]]] = {
    "text": (pa.array(["a", "b", None, "a"]), ["a", "b", None, "a"]),
    "a view of text": (pa.array(["a", "b", None, "a"], pa.string_view()), ["a", "b", None, "a"]),
    "a dictionary": (pa.array(["a", "b", None, "a"]).dictionary_encode(), ["a", "b", None, "a"]),
    "integers": (pa.array([1, 2, None, 2**60]), [1.0, 2.0, None, 2.0**60]),
    "bools": (pa.array([True, False, None, True]), [1.0, 0.0, None, 1.0]),
    "float16": (pa.array(np.array([1, 2, 3, 4], np.float16)), [1.0, 2.0, 3.0, 4.0]),
    "decimals": (pa.array([1, 2, None, 3], pa.decimal128(9, 2)), [1.0, 2.0, None, 3.0]),
    "dates": (pa.array([0, 1, None, 2], pa.date32()), [0.0, 86_400e6, None, 172_800e6]),
    "timestamps": (pa.array([0, 1, None, 2], pa.timestamp("ns", "UTC")), [0.0, 0.0, None, 0.0]),
    "seconds": (pa.array([0, 1, None, 2], pa.timestamp("s")), [0.0, 1e6, None, 2e6]),
    "times": (pa.array([0, 1, None, 2], pa.time32("ms")), [0.0, 1e3, None, 2e3]),
    "durations": (pa.array([0, 1, None, 2], pa.duration("s")), [0.0, 1e6, None, 2e6]),
}


@pytest.mark.parametrize("kind", FEATURES)
def test_features_of_every_form(kind: str) -> None:
    array, values = FEATURES[kind]
    roles = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", features=["f"])
    test = ft.OfflineTest(log=roles, **SCORES, estimators=["dr"])
    features = rows_of(test, TABLE.slice(0, 4).append_column("f", array)).features
    assert features is not None
    assert features["f"].to_pylist() == values
    assert features["f"].type in (pa.large_string(), pa.float64())


def two_files(tmp_path: Path, column: str, one: pa.Array, other: pa.Array) -> list[str]:
    paths = [str(tmp_path / "1.parquet"), str(tmp_path / "2.parquet")]
    for path, part, array in zip(paths, (TABLE.slice(0, 100), TABLE.slice(100)), (one, other), strict=True):
        kept = part.drop_columns(column) if column in part.column_names else part
        pq.write_table(kept.append_column(column, array), path)
    return paths


def test_features_of_two_forms_in_two_files(tmp_path: Path) -> None:
    roles = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", features=["f"])
    test = ft.OfflineTest(log=roles, **SCORES, estimators=["dr"], n_resamples=10)
    whole = test.run(TABLE.append_column("f", pa.array(["a", "b"] * 100))).metrics["click"].estimates["dr"]
    parts = two_files(tmp_path, "f", pa.array(["a", "b"] * 50), pa.array(["a", "b"] * 50).dictionary_encode())
    assert test.run(parts).metrics["click"].estimates["dr"].treatment == pytest.approx(whole.treatment, rel=1e-9)
    test.run(two_files(tmp_path, "f", pa.array([1] * 100), pa.array([0.5] * 100)))


@pytest.mark.parametrize("column", ["f", "user", "id", "stratum"])
def test_text_in_one_file_and_numbers_in_another(column: str, tmp_path: Path) -> None:
    roles = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", features=["f"])
    test = ft.OfflineTest(log=roles, **SCORES, estimators=["dr", "piece-ncis"], strata="stratum")
    paths = two_files(tmp_path, column, pa.array(range(100)), pa.array([str(i) for i in range(100)]))
    if column != "f":
        for path in paths:
            pq.write_table(pq.read_table(path).append_column("f", pa.array([1.0] * 100)), path)
    with pytest.raises(ft.BadInput) as error:
        test.run(paths)
    assert str(error.value) == (
        f"{paths[1]}: column '{column}' is string, but int64 in {paths[0]}: it must be of one type in all files."
        " Convert one of them."
    )


# -- a user's own policy ----------------------------------------------------------------------------------------------


class Uniform:
    """Every ranking of the same length is equally likely. No base class; `lists` names its column."""

    def __init__(self, lists: str) -> None:
        self.lists = lists
        self.sharpness = 0.0  # not text, so not a column

    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> np.ndarray:
        left = displays[self.lists].lengths[:, None] - np.arange(int(rankings.lengths.max(initial=0)))
        there = np.arange(left.shape[1]) < rankings.lengths[:, None]
        return -np.where(there, np.log(np.maximum(left, 1)), 0.0).sum(axis=1)

    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> ft.Ragged:
        noise = np.where(np.arange(uniforms.shape[1]) < displays.eligible[:, None], uniforms, np.inf)
        order = np.argsort(noise, axis=1)
        return ft.Ragged.of([row[:k] for row, k in zip(order, displays.slots, strict=True)])


ROLES = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id")


def test_own_policy_with_every_estimator() -> None:
    """A uniform policy is epsilon-greedy that always explores."""
    settings = {"estimators": ALL, "cap": 2.0, "weight_bound": 3.0, "strata": "stratum", "value": "v"}
    own = ft.OfflineTest(log=ROLES, control=SCORES["control"], treatment=Uniform("treatment_scores"), **settings)
    built_in = ft.OfflineTest(
        log=ROLES, control=SCORES["control"], treatment=ft.EpsilonGreedy(scores="treatment_scores", epsilon=1.0),
        **settings,
    )  # fmt: skip
    mine, theirs = own.run(TABLE).metrics["click"], built_in.run(TABLE).metrics["click"]
    for key in ALL:
        assert mine.estimates[key].treatment == pytest.approx(theirs.estimates[key].treatment, rel=1e-12)
        for limit in ("effect_size_ci_lower", "effect_size_ci_upper", "std_error"):
            assert getattr(mine.estimates[key], limit) == pytest.approx(getattr(theirs.estimates[key], limit), rel=1e-9)


def test_own_policy_as_control() -> None:
    """Its columns are read though no base class names them, and it must price what was shown."""
    test = ft.OfflineTest(log=ROLES, control=Uniform("control_scores"), treatment=SCORES["treatment"], cap=2.0)
    plan, _ = choose_estimators(test.settings)
    assert "control_scores" in offline_reader(plan).columns
    uniform = -np.log(5.0 * 4.0)
    shown = LOG.log_t[np.arange(LOG.rows), LOG.shown]
    value = test.run(TABLE).metrics["click"].estimates["is"].treatment
    assert value == pytest.approx((np.exp(shown - uniform) * LOG.click).mean(), rel=1e-12)


def test_own_policy_names_a_column_that_is_not_there() -> None:
    test = ft.OfflineTest(log=ROLES, control=SCORES["control"], treatment=Uniform("treatment_score"))
    with pytest.raises(ft.BadInput) as error:
        test.run(TABLE)
    assert str(error.value).startswith(
        "the table: no column 'treatment_score'. Did you mean 'treatment_scores'? Expected a column (of Uniform, whose"
        " text attributes name its columns); the log has: click, "
    )


def answering(answer: Callable[[int], Any]) -> Uniform:
    policy = Uniform("treatment_scores")
    policy.log_prob = lambda displays, rankings: answer(len(displays))  # type: ignore[method-assign]
    return policy


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda n: np.full(n, 0.25),
            "the table: column 'treatment_scores', row 0 (the first row is 0): Uniform gives the log-probability 0.25,"
            " above 0, to the shown ranking; 200 rows have this fault. Check its log_prob: it returns natural"
            " logarithms of probabilities.",
        ),
        (
            lambda n: np.where(np.arange(n) == 3, np.nan, -1.0),
            "the table: column 'treatment_scores', row 3 (the first row is 0): Uniform gives NaN as log-probability of"
            " the shown ranking; no other row has this fault. Check its columns, and its log_prob.",
        ),
        (
            lambda n: np.full((n, 1), -1.0),
            "Uniform.log_prob gives an array of shape (200, 1) for 200 displays: expected one number per display.",
        ),
        (
            lambda n: -1.0,
            "Uniform.log_prob gives an array of shape () for 200 displays: expected one number per display.",
        ),
    ],
)
def test_own_policy_with_a_wrong_answer(answer: Callable[[int], Any], message: str) -> None:
    test = ft.OfflineTest(log=ROLES, control=SCORES["control"], treatment=answering(answer), estimators=["cis"])
    with pytest.raises(ft.BadInput) as error:
        test.run(TABLE)
    assert str(error.value) == message


def test_own_policy_may_answer_with_a_list() -> None:
    test = ft.OfflineTest(
        log=ROLES, control=SCORES["control"], treatment=answering(lambda n: [-1.0] * n), estimators=["cis"]
    )
    assert test.run(TABLE).metrics["click"].estimates["cis"].treatment is not None


def test_types_are_checked_before_any_row() -> None:
    test = build_test(["cis"])
    plan, _ = choose_estimators(test.settings)
    with pytest.raises(ft.BadInput, match="column 'click' is string"):
        offline_reader(plan).check(open_source(TABLE.set_column(0, "click", pa.array(["x"] * 200))))


def test_the_first_fault_in_reading_order_is_told_whatever_the_threads(tmp_path: Path) -> None:
    """A null in the first file, a repeated item in the second: always the first, also when two threads race."""
    log = SmallLog(rows=60)
    clicks = log.click.tolist()
    clicks[7] = None
    pq.write_table(log.table().set_column(0, "click", pa.array(clicks, pa.float64())), tmp_path / "a.parquet")
    shown = log.rankings[log.shown].tolist()
    shown[2] = [1, 1]
    pq.write_table(log.table().set_column(6, "ranking", pa.array(shown)), tmp_path / "b.parquet")
    for _ in range(8):
        with pytest.raises(ft.BadInput, match=r"a\.parquet: column 'click', row 7 .*no other row has this fault"):
            build_test(["cis"]).run(tmp_path, threads=2)


def test_a_fault_is_counted_behind_other_faults() -> None:
    """Three null users, two of them in rows that also lack a click: all three are told."""
    log = SmallLog(rows=60)
    users: list[int | None] = log.unit.tolist()
    clicks: list[float | None] = log.click.tolist()
    for row in (5, 6, 50):
        users[row] = None
    clicks[40] = None
    table = log.table().set_column(0, "click", pa.array(clicks)).set_column(2, "user", pa.array(users))
    with pytest.raises(ft.BadInput, match=r"column 'user', row 5 .*3 rows have this fault"):
        build_test(["cis"]).run(table, batch_rows=20)


def test_a_stream_tells_row_and_count_too() -> None:
    log = SmallLog(rows=60)
    clicks: list[float | None] = log.click.tolist()
    clicks[25] = clicks[59] = None
    table = log.table().set_column(0, "click", pa.array(clicks))
    with pytest.raises(ft.BadInput, match=r"the stream: column 'click', row 25 .*2 rows have this fault"):
        build_test(["cis"]).run(table.to_reader(max_chunksize=10))
