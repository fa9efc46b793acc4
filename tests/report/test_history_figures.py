"""The figures of a history's page: what they are called, and correlations that are beyond 1."""

from __future__ import annotations

from foretest.report.history_figures import AGREEMENT, NOISE_AND_TRUTH, figure_table, history_facts


def test_a_correlation_beyond_1_is_not_known() -> None:
    row = {"tests": 12, "deconvolved_correlation": 1.96, "deconvolved_correlation_low": 1.2}
    row |= {"deconvolved_correlation_high": 0.8, "deconvolved_correlation_q10": 0.2, "deconvolved_correlation_q90": 3.0}
    table = figure_table("", {"cis": row}, "cis", NOISE_AND_TRUTH)
    assert table is not None
    removed, ends = table.rows[0].cells
    assert (removed.text, removed.span) == ("not known from 12 tests", "")
    assert (ends.text, ends.span) == ("not known from 12 tests", "to 0.80")
    row |= {"deconvolved_correlation": 0.9, "deconvolved_correlation_q90": 0.95}
    table = figure_table("", {"cis": row}, "cis", NOISE_AND_TRUTH)
    assert table is not None
    assert (table.rows[0].cells[0].text, table.rows[0].cells[0].span) == ("0.90", "0.20 to 0.95")


def test_false_negatives_are_a_share_of_all_tests_and_the_miss_rate_stands_beside_them() -> None:
    names = list(AGREEMENT)
    assert AGREEMENT["fnr"].title == "false negatives, share of all tests"
    assert names[names.index("fnr") + 1] == "miss_rate"
    assert AGREEMENT["miss_rate"].title == "miss rate"
    facts = history_facts([], {"fnr": 0.3, "miss_rate": 0.6})
    shown = {fact.name: fact.value for fact in facts}
    assert shown["false negatives, share of all tests"] == "30\N{NO-BREAK SPACE}%"
    assert shown["miss rate"] == "60\N{NO-BREAK SPACE}%"
