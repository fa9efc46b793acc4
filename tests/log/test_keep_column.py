"""[log] keep as a column: its types, in logs of both layouts, and what foretest init makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.convert.first_look import look_at
from foretest.convert.long_log import convert_long
from foretest.settings.file import read_settings
from tests.long_log import LONG, assert_same, long_log, short_log, three_tables
from tests.long_log import test_of as build

KEPT = 1.0 / np.random.default_rng(0).integers(1, 5, 300)


def with_keep(log: ft.LogColumns) -> ft.LogColumns:
    return ft.LogColumns(**{**log.written(), "keep": "keep"})


def long_with_keep(short: pa.Table) -> pa.Table:
    long = long_log(short)
    by_view = dict(zip(short["view"].to_pylist(), KEPT.tolist(), strict=True))
    return long.append_column("keep", pa.array([by_view[view] for view in long["view"].to_pylist()]))


@pytest.mark.parametrize(
    ("values", "kind"),
    [(["0.5"] * 300, "string"), ([True] * 300, "bool"), ([[0.5]] * 300, r"list<\w+: double>")],
)
def test_only_numbers_are_probabilities(values: list[object], kind: str) -> None:
    table = short_log().append_column("keep", pa.array(values))
    with pytest.raises(ft.BadInput, match=rf"column 'keep' is {kind}.*the probability with which a row was kept"):
        build(with_keep(SHORT)).run(table)


SHORT = ft.LogColumns(rewards=["click"], unit="user", id="view", ranking="ranking")


def test_a_missing_column_is_named() -> None:
    table = short_log().append_column("keep_prob", pa.array(KEPT))
    with pytest.raises(ft.BadInput, match=r"keep.*Did you mean 'keep_prob'"):
        build(with_keep(SHORT)).run(table)


def test_integers_and_decimals_are_read() -> None:
    table = short_log()
    for ones in (pa.array([1] * 300), pa.array(["1.00"] * 300).cast(pa.decimal128(5, 2))):
        result = build(with_keep(SHORT), estimators=["ncis"]).run(table.append_column("keep", ones))
        assert result.log["displays"] == 300.0


def test_long_logs_are_those_of_their_displays(tmp_path: Path) -> None:
    short = short_log()
    long = long_with_keep(short)
    shown = ft.LogColumns(**{**SHORT.written(), "keep": "keep", "slot_rewards": {"click": "slot_click"}})
    kinds = ["point-ncis-adaptive", "slot-ncis-adaptive"]
    wanted = build(shown, estimators=kinds).run(short.append_column("keep", pa.array(KEPT)))
    assert_same(build(with_keep(LONG), estimators=kinds).run(long), wanted)
    paths = {}
    for name, table in three_tables(long).items():
        kept = table if name != "impressions" else _joined(table, long)
        paths[name] = str(tmp_path / f"{name}.parquet")
        pq.write_table(kept, paths[name])
    tables = ft.LogColumns(**{**LONG.written(), "keep": "keep", "tables": paths})
    assert_same(build(tables, estimators=kinds).run(None), wanted)


def _joined(impressions: pa.Table, long: pa.Table) -> pa.Table:
    """The impressions with keep, which rows of candidates that were not shown then lack."""
    by_view = dict(zip(long["view"].to_pylist(), long["keep"].to_pylist(), strict=True))
    return impressions.append_column("keep", pa.array([by_view[view] for view in impressions["view"].to_pylist()]))


def test_a_display_of_a_long_log_has_one_keep() -> None:
    long = long_with_keep(short_log())
    values = long["keep"].to_pylist()
    at = long["view"].to_pylist().index("d0007")
    values[at] /= 2.0
    long = long.set_column(long.column_names.index("keep"), "keep", pa.array(values))
    with pytest.raises(ft.BadInput, match=r"column 'keep', display 'd0007': it is .* and .* in one display"):
        build(with_keep(LONG)).run(long)


def test_nan_in_a_long_log_is_refused_with_its_display() -> None:
    long = long_with_keep(short_log())
    views, keeps = (long[name].to_pylist() for name in ("view", "keep"))
    values = [np.nan if view == "d0007" else keep for view, keep in zip(views, keeps, strict=True)]
    long = long.set_column(long.column_names.index("keep"), "keep", pa.array(values))
    with pytest.raises(ft.BadInput, match=r"column 'keep', display 'd0007': the probability .* is NaN"):
        build(with_keep(LONG)).run(long)


def test_converted_logs_have_the_column(tmp_path: Path) -> None:
    short = short_log()
    pq.write_table(long_with_keep(short), tmp_path / "long.parquet")
    settings = tmp_path / "long.toml"
    settings.write_text(
        '[log]\nrewards = ["click"]\nunit = "user"\nlayout = "long"\ndisplay = "view"\nitem = "sku"\nslot = "place"\n'
        'keep = "keep"\n[control]\npolicy = "plackett-luce"\nscores = "control_scores"\n[treatment]\n'
        'policy = "plackett-luce"\nscores = "treatment_scores"\n'
    )
    convert_long(str(tmp_path / "long.parquet"), settings, tmp_path / "out")
    assert read_settings(tmp_path / "out" / "settings.toml").log.keep == "keep"
    assert sorted(pq.read_table(tmp_path / "out" / "log.parquet")["keep"].to_pylist()) == sorted(KEPT.tolist())


@pytest.mark.parametrize("name", ["keep", "keep_prob", "p_keep", "keepProbability"])
def test_init_proposes_the_role(name: str) -> None:
    look = look_at(short_log().append_column(name, pa.array(KEPT)))
    assert look.log["keep"] == name
    assert "prob" not in look.control
    assert look_at(long_with_keep(short_log()).rename_columns({"keep": name})).log["keep"] == name


def test_init_leaves_other_columns_alone() -> None:
    for values in ([5.0] * 300, [True] * 300, [0.0] * 300):
        assert "keep" not in look_at(short_log().append_column("keep", pa.array(values))).log
