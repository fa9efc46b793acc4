"""What the page shows of time."""

from __future__ import annotations

from tests.late_log import READ_AT, LateLog, late_test


def test_the_page_has_ages_and_days() -> None:
    late = LateLog(rows=2000, units=400)
    page = late_test({"read_at": READ_AT}).run(late.table()).to_html()
    assert 'id="ages"' in page
    assert "Are all rewards in?" in page
    assert 'href="#days"' in page
    assert "Day by day" in page
    assert "2026-03-05" in page
    assert "than chance explains (χ² = " in page


def test_under_a_window_there_are_days_and_no_ages() -> None:
    late = LateLog(rows=2000, units=400)
    page = late_test({"read_at": READ_AT}, window="1d").run(late.table()).to_html()
    assert 'id="ages"' not in page
    assert 'id="days"' in page
    assert "displays of the last 1 day before 2026-03-08 were left out" in page
