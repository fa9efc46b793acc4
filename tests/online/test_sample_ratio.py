"""The sample ratio check: its p-values, in all and by day, of all units or a sample of them."""

from __future__ import annotations

from io import StringIO
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console
from scipy import stats

from foretest.online import unit_days
from foretest.online.arms import Arms
from foretest.online.sample_ratio import sample_ratio, split_p_value
from foretest.online.unit_days import UnitSums
from foretest.terminal.result import result_table
from tests.online.support import answer, flat, online


@pytest.mark.parametrize(
    ("counts", "split"), [((5000, 5300), (0.5, 0.5)), ((900, 90), (0.9, 0.1)), ((7, 7), (0.5, 0.5))]
)
def test_sample_ratio_p_value(counts: tuple[int, int], split: tuple[float, float]) -> None:
    expected = stats.chisquare(counts, [sum(counts) * share for share in split]).pvalue
    arms = (UnitSums(float(count), float(count)) for count in counts)
    assert split_p_value(*arms, split) == pytest.approx(expected, rel=1e-10)


def units_over_days(days: dict[Any, tuple[int, int]], rows_each: int = 2) -> list[pa.Table]:
    """Arms whose days have these numbers of units, each with some rows; units return on all days."""
    tables = []
    for side in (0, 1):
        user = np.concatenate([np.repeat(np.arange(counts[side]), rows_each) for counts in days.values()])
        day = [day for day, counts in days.items() for _ in range(counts[side] * rows_each)]
        tables.append(pa.table({"user": user + side * 10**6, "day": day, "click": np.arange(len(user)) % 5 == 0}))
    return tables


@pytest.mark.parametrize("unit", ["user", None])
def test_sample_ratio_in_all_and_by_day(unit: str | None) -> None:
    days = {"2026-01-01": (1000, 1010), "2026-01-02": (500, 800), "2026-01-03": (990, 1000)}
    result = online(unit, date="day").run(*units_over_days(days))
    check = result.health["sample_ratio"]
    rows = 1 if unit else 2
    units = (1000, 1010) if unit else (4980, 5620)
    assert check["units"] == list(units)
    assert check["observed"] == pytest.approx(np.array(units) / sum(units))
    assert check["p_value"] == pytest.approx(stats.chisquare(units).pvalue)
    assert check["alert"] == (unit is None)
    [day] = check["days"]
    assert (day["day"], day["units"], check["days_checked"]) == ("2026-01-02", [500 * rows, 800 * rows], 3)
    assert day["p_value"] == pytest.approx(stats.chisquare(day["units"]).pvalue)
    assert "1 of 3 days (2026-01-02)" in " ".join(result.notes)
    assert (
        "With that many days checked, one or more would stand out by chance alone in up to 0.3% of tests"
        in " ".join(result.notes)
    )
    assert any("not split as designed" in r for r in answer(result).reasons) == (unit is None)
    console = Console(file=StringIO(), width=80, force_terminal=True, color_system="standard", legacy_windows=False)
    console.print(result_table(result))
    assert ("\x1b[1;31mMISMATCH" in console.file.getvalue()) == (unit is None)


def test_the_designed_split_is_what_counts() -> None:
    tables = units_over_days({"d": (9000, 1000)})
    assert online(split=(0.9, 0.1)).run(*tables).health["sample_ratio"]["p_value"] == 1.0
    assert online().run(*tables).health["sample_ratio"]["alert"]


def test_sampled_split_is_of_units_up_to_one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_days, "LIMIT", 1000)
    tables = units_over_days({"a": (8000, 5000), "b": (4000, 4000)})
    result = online(date="day").run(*tables)
    check = result.health["sample_ratio"]
    assert max(check["units"]) == 1000
    assert check["sampled_share"] == pytest.approx(1000 / 8000, rel=0.15)
    assert check["observed"][0] == pytest.approx(8 / 13, abs=4 * np.sqrt(8 * 5 / 13**2 / 1600))
    assert check["alert"]
    assert [day["day"] for day in check["days"]] == ["a"]
    assert "those of smallest hash" in result.notes[0]


def test_positions_are_no_units_to_share() -> None:
    """Without a unit column the rows of both arms have the same positions, and that is no contamination."""
    test = online(None)
    arms = test.arms(flat(100, 10), flat(100, 12))
    assert isinstance(arms, Arms)
    assert sample_ratio(arms, (0.5, 0.5)).units == [100, 100]
