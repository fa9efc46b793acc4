"""The cost of the normaliser: what is counted, and that the ratios are of what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.paper.normaliser_cost import normaliser_cost
from tests.support import SmallLog, build_test


def test_ratios_follow_from_the_costs() -> None:
    log = SmallLog(rows=800)
    cost = normaliser_cost(build_test(["point-ncis"]), log.table())
    rewarded = int(np.count_nonzero(log.click))
    assert (cost["rows"], cost["rewarded"]) == (800, rewarded)
    rate = rewarded / 800
    of_ncis = cost["reading_microseconds_a_row"] + cost["weights_microseconds_a_row"]
    for row in cost["normalisers"].values():
        of_point = of_ncis + row["microseconds_a_rewarded_row"]
        assert row["microseconds_a_rewarded_row"] > 0.0
        ratio = row["microseconds_a_row"] / (rate * row["microseconds_a_rewarded_row"])
        assert row["all_rows_over_rewarded"] == pytest.approx(ratio)
        assert row["ncis_over_point"] == pytest.approx(of_ncis / (rate * of_point))
        assert row["break_even_rate"] == pytest.approx(of_ncis / of_point)
        # at the rate of break-even the two cost the same
        assert of_ncis / (row["break_even_rate"] * of_point) == pytest.approx(1.0)


def test_a_log_without_rewards_has_no_ratio() -> None:
    log = SmallLog(rows=200)
    log.click[:] = 0.0
    cost = normaliser_cost(build_test(["point-ncis"]), log.table())
    assert cost["normalisers"]["point-ncis"]["all_rows_over_rewarded"] is None
