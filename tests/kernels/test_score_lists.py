"""Two score lists of a display: rank correlation against SciPy, spreads and shapes against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from foretest.aggregation.treatment_scores import (
    CORRELATION,
    SHAPE_CONTROL,
    SHAPE_TREATMENT,
    SPREAD_CONTROL,
    SPREAD_TREATMENT,
    compared_scores,
)
from foretest.displays.ragged import Ragged
from foretest.kernels.score_lists import EQUAL, EVENLY_SPACED, MOST, PROBABILITIES, RATES, SHORT, SORTED


def shapes_of(*lists: list[float]) -> list[int]:
    ragged = Ragged.of([np.array(values, float) for values in lists])
    return [int(bits) for bits in compared_scores(ragged, ragged)[SHAPE_TREATMENT]]


def test_correlations_and_spreads_are_those_of_the_lists() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, MOST + 1, 60)
    control = [rng.normal(size=n).round(1) for n in lengths]  # with ties
    treatment = [c + rng.normal(size=n) for c, n in zip(control, lengths, strict=True)]
    columns = compared_scores(Ragged.of(control), Ragged.of([t.astype(np.float32) for t in treatment]))
    for i, (c, t) in enumerate(zip(control, treatment, strict=True)):
        assert columns[CORRELATION][i] == pytest.approx(spearmanr(c, t).statistic, abs=1e-6)
        assert columns[SPREAD_CONTROL][i] == pytest.approx(c.std(), rel=1e-6, abs=1e-9)
        assert columns[SPREAD_TREATMENT][i] == pytest.approx(t.std(), rel=1e-6)


def test_of_long_lists_some_items_are_compared() -> None:
    rng = np.random.default_rng(1)
    control, treatment = rng.normal(size=(2, 3, 500))
    at = np.arange(MOST) * 500 // MOST
    columns = compared_scores(Ragged.of(control), Ragged.of(treatment))
    expected = [spearmanr(c[at], t[at]).statistic for c, t in zip(control, treatment, strict=True)]
    np.testing.assert_allclose(columns[CORRELATION], expected, atol=1e-6)


def test_a_constant_list_has_no_correlation() -> None:
    columns = compared_scores(Ragged.of([[1.0, 1.0, 1.0], [2.0]]), Ragged.of([[1.0, 2.0, 3.0], [1.0]]))
    assert np.isnan(columns[CORRELATION]).all()
    assert columns[SHAPE_CONTROL].tolist() == [EQUAL | SHORT, EQUAL | SHORT]


def test_shapes() -> None:
    assert shapes_of([0.5, 0.2, 0.1, 0.2], [0.02, 0.01, 0.03, 0.05], [1.2, -0.3, 4.0, 0.1]) == [
        RATES | PROBABILITIES, RATES, 0,
    ]  # fmt: skip
    # ranks from 1, from 0, descending ranks, shares of ranks; not five whole numbers of which one is there twice
    assert [bits & EVENLY_SPACED for bits in shapes_of(
        [3, 1, 2, 4], [2, 0, 3, 1], [-1, -2, -4, -3], [0.25, 1.0, 0.5, 0.75], [1, 2, 2, 4], [1, 2, 3, 5]
    )] == [EVENLY_SPACED] * 4 + [0, 0]  # fmt: skip
    assert [bits & SORTED for bits in shapes_of([5, 3, 3, 1], [1, 2, 7, 9], [1, 3, 2, 4])] == [SORTED, SORTED, 0]
    assert shapes_of([2.0, 7.0], [1.0, 1.0, 1.0, 1.0]) == [SHORT, EQUAL]
