"""Section 4.3, on a path whose noise and bias bound are known functions of the cap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foretest.paper.cap_bands import LENGTHS, cap_bands

ROWS = 1_000_000


def path(noise: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
    """A path over the caps 1, 10, …, 1e8, with the bands that go with it."""
    caps = 10.0 ** np.arange(9)

    def band(small: np.ndarray) -> list[float] | None:
        return [float(caps[small].min()), float(caps[small].max())] if small.any() else None

    small, unbiased = noise <= 0.01, bias <= 0.01
    return {
        "sought": 0.01, "cap": 100.0, "control": 0.02, "caps": caps.tolist(), "noise": noise.tolist(),
        "bias_bound": bias.tolist(), "noise_band": band(small), "bias_band": band(unbiased),
        "satisfies_both": bool((small & unbiased).any()),
    }  # fmt: skip


def test_noise_that_grows_with_the_root_of_the_cap() -> None:
    """noise = 0.0009·√c in 10^6 rows: at most 1 % up to c = 123, and at N rows up to c = 123·N/10^6."""
    caps = 10.0 ** np.arange(9)
    bands = cap_bands(path(0.0009 * np.sqrt(caps), 9.0 / caps), ROWS)
    assert bands["noise_band"] == [1.0, 100.0]
    assert bands["bias_band"] == [1000.0, 1e8]
    assert bands["satisfies_both"] is False
    # at c = 1000, the lowest cap of the bias band, the noise is 0.9·√10 %: 8.1 times the rows make it 1 %
    assert bands["rows_needed_for_both"] == pytest.approx(8.1 * ROWS)
    assert [row["rows"] for row in bands["by_length"]] == [ROWS, *LENGTHS]
    assert [row["highest_cap_of_noise"] for row in bands["by_length"]] == [1e2, 1e2, 1e3, 1e5, 1e7]
    assert bands["at_cap"] == pytest.approx({"cap": 100.0, "noise": 0.009, "bias_bound": 0.09})
    assert bands["lowest_noise"] == pytest.approx(0.0009)


def test_a_cap_that_satisfies_both_needs_no_more_rows() -> None:
    bands = cap_bands(path(np.full(9, 0.005), np.linspace(0.05, 0.0, 9)), ROWS)
    assert bands["satisfies_both"] is True
    assert bands["rows_needed_for_both"] == pytest.approx(ROWS / 4)


def test_no_band_at_all() -> None:
    bands = cap_bands(path(np.full(9, 0.5), np.full(9, 0.5)), ROWS)
    assert bands["noise_band"] is None
    assert bands["bias_band"] is None
    assert bands["rows_needed_for_both"] is None
    assert bands["by_length"][0]["highest_cap_of_noise"] is None
    assert bands["by_length"][-1]["highest_cap_of_noise"] == 1e8
