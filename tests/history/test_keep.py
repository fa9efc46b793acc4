"""A history of thinned logs: offline and online as their copies say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from foretest.history.run import run_history
from tests.history.test_run import SETTINGS, write

pytestmark = [pytest.mark.usefixtures("few_resamples"), pytest.mark.slow]


def test_offline_and_online_are_those_of_copies(tmp_path: Path) -> None:
    g = np.random.default_rng(0)
    places = {name: tmp_path / name for name in ("thinned", "full")}
    for place in places.values():
        place.mkdir()
        write(place, tests=2)
    for log in sorted(places["full"].glob("t*/*.parquet")):
        table = pq.read_table(log)
        m = g.integers(1, 4, len(table))
        pq.write_table(table.append_column("keep", [1.0 / m]), places["thinned"] / log.relative_to(places["full"]))
        pq.write_table(table.take(np.repeat(np.arange(len(table)), m)), log)
    keep = SETTINGS.replace('unit = "user"', 'unit = "user"\nkeep = "keep"')
    (places["thinned"] / "settings.toml").write_text(keep)
    # copies are repeated rows, with which no log passes its audit, and no test counts in a calibration
    (places["full"] / "settings.toml").write_text(f"{SETTINGS}ignore_audit = true\n")
    thinned, full = (run_history(place / "manifest.toml").to_dict() for place in places.values())
    assert not thinned["failures"]
    for mine, theirs in zip(thinned["tests"], full["tests"], strict=True):
        for number in ("rel_effect_size", "rel_effect_size_ci_lower", "rel_effect_size_ci_upper", "rel_std_error"):
            assert mine["online"][number] == pytest.approx(theirs["online"][number], rel=1e-9), number
            for label, estimate in theirs["offline"].items():
                if "_ci_" in number and estimate["predicted_std_error"] is not None:
                    continue  # of predicted noise a row that stands for m adds m² squares, m copies m
                assert mine["offline"][label][number] == pytest.approx(estimate[number], rel=1e-9), (label, number)
