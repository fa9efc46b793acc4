"""Rewards that are cut at a limit: given, or a quantile of the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.engines.reward_quantiles import weighted_quantile
from tests.schemas import validate
from tests.support import SCORES, SmallLog

SCHEMA = Path(ft.__file__).parent / "schema" / "result-1.json"


def offline(winsorise: Any, *, keep: str | None = None, slots: bool = False, **more: Any) -> ft.OfflineTest:
    columns = ft.LogColumns(
        rewards=("click", "revenue"), unit="user", id="id", ranking="ranking", keep=keep,
        slot_rewards={"click": "slot_click", "revenue": "slot_revenue"} if slots else None,
    )  # fmt: skip
    metrics = {"revenue": {} if winsorise is None else {"winsorise": winsorise}}
    return ft.OfflineTest(log=columns, metrics=metrics, **{**SCORES, "interval": "delta", "weight_bound": 20.0, **more})


def slots_of(log: SmallLog, revenue: np.ndarray) -> dict[str, Any]:
    return {"slot_click": log.slots("click", log.click), "slot_revenue": log.slots("revenue", revenue)}


def test_a_quantile_is_that_of_rewarded_rows_and_a_limit_is_the_same() -> None:
    log = SmallLog()
    quantile = 0.8
    limit = weighted_quantile(log.revenue[log.revenue > 0], np.ones(int(log.click.sum())), quantile)
    assert np.isclose(limit, np.quantile(log.revenue[log.revenue > 0], quantile, method="inverted_cdf"))
    cut = np.minimum(log.revenue, limit)
    table = log.table(**slots_of(log, log.revenue))
    by_hand = offline(None, slots=True).run(log.table(**slots_of(log, cut), revenue=cut))
    for given in (quantile, {"limit": limit}):
        result = offline(given, slots=True).run(table)
        for label, e in result.metrics["revenue"].estimates.items():
            other = by_hand.metrics["revenue"].estimates[label]
            assert e.treatment == pytest.approx(other.treatment, rel=1e-12), label
            assert e.std_error == pytest.approx(other.std_error, rel=1e-9), label
        assert result.winsorised is not None
        share = 1.0 - cut.sum() / log.revenue.sum()
        assert result.winsorised["revenue"]["limit"] == pytest.approx(limit, rel=1e-15)
        assert result.winsorised["revenue"]["share_cut"] == pytest.approx(share, rel=1e-12)
        assert any("of all revenue in the log is above it and was cut off" in note for note in result.notes)
        validate(json.loads(result.to_json()), json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_a_thinned_log_has_the_quantile_of_all_displays() -> None:
    log = SmallLog(rows=300)
    keep = np.where(np.arange(300) % 3 == 0, 0.25, 1.0)
    result = offline(0.7, keep="keep").run(log.table(keep=keep))
    rewarded = log.revenue > 0
    assert result.winsorised is not None
    limit = weighted_quantile(log.revenue[rewarded], 1.0 / keep[rewarded], 0.7)
    assert result.winsorised["revenue"]["limit"] == limit
    cut, m = np.minimum(log.revenue, limit), 1.0 / keep
    assert result.metrics["revenue"].control.value == pytest.approx((m * cut).sum() / m.sum(), rel=1e-12)


def test_a_check_a_stream_and_another_cut_of_the_log_find_the_same_limit() -> None:
    table = SmallLog().table()
    test = offline(0.9)
    expected = test.run(table)
    stream = table.to_reader(max_chunksize=50)
    for result in (test.run(stream), test.run(table, threads=2, batch_rows=64), test.check(table)):
        assert result.winsorised is not None
        assert expected.winsorised is not None
        assert result.winsorised["revenue"] == pytest.approx(expected.winsorised["revenue"], rel=1e-12)
        assert any("was cut off" in note for note in result.notes)


def test_saved_sums_need_a_limit(tmp_path: Path) -> None:
    table, path = SmallLog().table(), str(tmp_path / "a.parquet")
    with pytest.raises(ft.BadInput, match=r"\[metrics.revenue\] winsorise = 0.9 is a quantile of one log, and sums of"):
        offline(0.9).save_aggregates(table, path)
    offline({"limit": 1.5}).save_aggregates(table, path)
    saved, direct = offline({"limit": 1.5}).run(path), offline({"limit": 1.5}).run(table)
    assert saved.winsorised == direct.winsorised
    assert saved.metrics["revenue"].estimates["is"] == direct.metrics["revenue"].estimates["is"]
    with pytest.raises(ft.BadInput, match="winsorise"):
        offline({"limit": 2.5}).run(path)


@pytest.mark.parametrize("given", [0, -1.0, "0.9", 99.9, True, {}, {"limit": 0.0}, {"quantile": 1.0}, float("nan")])
def test_what_is_no_quantile_and_no_limit_is_refused(given: Any) -> None:
    with pytest.raises(ft.BadInput, match=r"\[metrics.revenue\] winsorise"):
        offline(given)


def test_only_rewards_of_zero_or_more_are_cut() -> None:
    table = SmallLog().table()
    columns = ft.LogColumns(rewards=("click", "revenue"), ranking="ranking", id="id")
    for metrics in ({"revenue": {"winsorise": 0.9, "signed": True}}, {"x": {"winsorise": 2, "sum": {"click": 1.0}}}):
        with pytest.raises(ft.BadInput, match="winsorise is for a column of rewards of 0 or more"):
            ft.OfflineTest(log=columns, metrics=metrics, **SCORES)
    nothing = table.set_column(table.schema.get_field_index("revenue"), "revenue", [np.zeros(len(table))])
    with pytest.raises(ft.BadInput, match="no row of the log has a reward in 'revenue', so that it has no quantile"):
        offline(0.9).run(nothing)
