"""How much of the differences between loggers is noise in a part of a log, by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.inference.by_logger import by_unit, fixed_in_part
from foretest.inference.delta import std_error


@pytest.mark.parametrize("part", [40, 200, 400])
def test_the_error_of_a_part_is_that_of_units_drawn_without_replacement(part: int) -> None:
    """400 units, 240 of one logger and 160 of another, whose means are 1.5 apart; `part` of them are the segment."""
    g = np.random.default_rng(11)
    units, times = 400, 3000
    means, errors = np.empty(times), {fixed: np.empty(times) for fixed in (0.0, fixed_in_part(part, units), 1.0)}
    for s in range(times):
        logger = g.permutation(np.repeat([0, 1], [240, 160]))[:part]
        phi = 1.5 * logger + g.normal(size=part)
        means[s] = phi.mean()
        cells = np.zeros((2, part, 2))
        cells[logger, np.arange(part)] = np.stack([phi - phi.mean(), np.ones(part)], axis=1)
        influence, rows = cells[..., 0].ravel(), cells[..., 1].ravel()
        for fixed, estimated in errors.items():
            estimated[s] = std_error(by_unit(influence, rows, 2, fixed), part, part)
    spread = means.std(ddof=1)
    ratios = {fixed: estimated.mean() / spread for fixed, estimated in errors.items()}
    noise = 4.0 / np.sqrt(2 * times)  # four standard errors of a standard deviation
    assert ratios[fixed_in_part(part, units)] == pytest.approx(1.0, abs=noise)
    if part == 40:
        assert ratios[1.0] < 1.0 - noise
    if part == 400:
        assert ratios[0.0] > 1.0 + noise
