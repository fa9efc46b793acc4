"""First contact with a log that says when: the roles of times are proposed, and run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.convert.starting_settings import starting_settings
from tests.convert.test_first_look import ROWS, display_log
from tests.late_log import BEGIN

HOUR = np.timedelta64(3_600_000_000, "us")


@pytest.mark.parametrize(
    ("time", "reward_time"), [("ts", "clicked_at"), ("timestamp", "conversion_time"), ("shown_at", "reward_time")]
)
def test_times_are_proposed(tmp_path_factory: pytest.TempPathFactory, time: str, reward_time: str) -> None:
    clicks = np.asarray(display_log()["clicks"])
    shown = BEGIN + np.arange(ROWS) * HOUR
    log = display_log(**{time: pa.array(shown), reward_time: pa.array(shown + HOUR, mask=clicks == 0)})
    proposed = starting_settings(log)
    assert proposed.look.log["time"] == time
    assert proposed.look.log["reward_time"] == reward_time
    path = tmp_path_factory.mktemp("init") / "test.toml"
    path.write_text(proposed.text, encoding="utf-8")
    assert ft.OfflineTest.from_toml(path).replace(n_resamples=10, window="1d").run(log).log["rows"] == ROWS - 24


def test_a_time_that_is_none_of_a_display_is_left_alone() -> None:
    born = pa.array([None] + [BEGIN] * (ROWS - 1))
    assert not {"time", "reward_time"} & set(starting_settings(display_log(time_of_birth=born)).look.log)
