"""What a verdict rests on: rows without support are counted among those that could be."""

from __future__ import annotations

import pytest

from foretest.aggregation.dense import LEAST_SHARE
from foretest.diagnostics.evidence import log_evidence
from foretest.inference.verdict import Evidence, judge
from tests.support import SmallLog, build_test

KEYS = ["point-ncis-adaptive", "slot-ncis-adaptive"]


@pytest.mark.parametrize(("bound", "dense"), [("auto", True), (4.0, False)])
def test_rows_without_support_are_a_share_of_what_is_counted(bound: float | str, dense: bool) -> None:
    """By slot rewarded rows are counted, also where rewards are so dense that all rows are weighed."""
    log = SmallLog(rows=300, units=90, seed=7)
    assert LEAST_SHARE < log.click.mean() < 0.9
    test = build_test(KEYS, weight_bound=bound)
    aggregates = test.aggregate(log.table()).aggregates
    rewarded = int((log.click > 0).sum())
    ranking, slot = (log_evidence(aggregates, e, 0) for e in aggregates.plan.estimators)
    assert ranking.least_mass == (0.75 if dense else 0.5)
    assert (slot.rewarded, slot.counted) == (rewarded, "rewarded row")
    assert (ranking.rewarded, ranking.counted) == ((log.rows, "row") if dense else (rewarded, "rewarded row"))


@pytest.mark.parametrize("counted", ["row", "rewarded row"])
def test_the_reason_says_of_what(counted: str) -> None:
    evidence = Evidence(
        rows=300, units=300, positives=100, effective_positives=90.0, unsupported=30, rewarded=100, counted=counted
    )
    judgement = judge(evidence)
    assert not judgement.enough
    assert judgement.reasons == [f"30 {counted}s (30.0%) have no support for the treatment"]


def test_one_row_without_support_is_in_the_singular() -> None:
    evidence = Evidence(rows=300, units=300, positives=100, effective_positives=90.0, unsupported=1, rewarded=100)
    assert judge(evidence).reasons == ["1 rewarded row (1.0%) has no support for the treatment"]
