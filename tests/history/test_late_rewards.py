"""A history under a window: offline and online leave out the same displays of the control's log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretest.history.run import run_history
from tests.history.test_run import SETTINGS, write
from tests.late_log import BEGIN

pytestmark = [pytest.mark.usefixtures("few_resamples"), pytest.mark.slow]

HOUR = np.timedelta64(3_600_000_000, "us")
WINDOW = 40 * HOUR


def test_offline_and_online_are_those_of_what_the_window_leaves(tmp_path: Path) -> None:
    g = np.random.default_rng(0)
    places = {name: tmp_path / name for name in ("late", "plain")}
    for place in places.values():
        place.mkdir()
        write(place, tests=2)
    for test in ("t0", "t1"):
        tables = {arm: pq.read_table(places["plain"] / test / f"{arm}.parquet") for arm in ("control", "treatment")}
        # the treatment's log ends later: it says when both were read
        shown = {arm: BEGIN + g.integers(0, hours, 300) * HOUR for arm, hours in (("control", 190), ("treatment", 200))}
        read_at = max(times.max() for times in shown.values())
        for arm, table in tables.items():
            click = np.asarray(table["click"])
            age = g.integers(0, 80, 300) * HOUR
            late = table.append_column("ts", pa.array(shown[arm]))
            late = late.append_column("at", pa.array(shown[arm] + age, mask=click == 0))
            pq.write_table(late, places["late"] / test / f"{arm}.parquet")
            for name in ("click", "revenue"):
                at = table.schema.get_field_index(name)
                table = table.set_column(at, name, pa.array(np.where(age <= WINDOW, np.asarray(table[name]), 0.0)))
            plain = table.filter(pa.array(read_at - shown[arm] >= WINDOW))
            pq.write_table(plain, places["plain"] / test / f"{arm}.parquet")
    windowed = SETTINGS.replace('unit = "user"', 'unit = "user"\ntime = "ts"\nreward_time = "at"')
    (places["late"] / "settings.toml").write_text(windowed + 'window = "40h"\n')
    late, plain = (run_history(place / "manifest.toml").to_dict() for place in places.values())
    assert not late["failures"]
    for mine, theirs in zip(late["tests"], plain["tests"], strict=True):
        for number in ("rel_effect_size", "rel_effect_size_ci_lower", "rel_std_error"):
            assert mine["online"][number] == pytest.approx(theirs["online"][number], rel=1e-9), number
            for label, estimate in theirs["offline"].items():
                assert mine["offline"][label][number] == pytest.approx(estimate[number], rel=1e-9), (label, number)
