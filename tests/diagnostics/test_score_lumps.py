"""Lumps among rank correlations: simulated displays whose true correlations are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from foretest.diagnostics.score_lumps import _EDGES, _TRUE, _likelihoods, score_lump
from foretest.kernels.score_lists import rank_correlations

ROWS = 4000


def correlations(rng: np.random.Generator, true: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Rank correlations of two models whose scores correlate as `true` says in each display."""
    most, starts = int(items.max()), np.arange(len(items)) * int(items.max())
    control, noise = rng.normal(size=(2, len(items), most))
    treatment = true[:, None] * control + np.sqrt(1.0 - true[:, None] ** 2) * noise
    return np.asarray(rank_correlations(control.ravel(), starts, treatment.ravel(), starts, items), np.float32)


def lump_of(rng: np.random.Generator, true: np.ndarray, low: int = 8, high: int = 20) -> object:
    items = rng.integers(low, high + 1, len(true))
    return score_lump(correlations(rng, true, items), items, len(true))


@pytest.mark.parametrize("items", [6, 20])
def test_bins_have_the_probabilities_of_normal_scores(items: int) -> None:
    """Pearson's correlations of normal pairs, whose density it is: within a hundredth of all, in every bin."""
    rng = np.random.default_rng(items)
    for true in (0.0, 0.5, -0.8):
        pairs = multivariate_normal.rvs(cov=[[1.0, true], [true, 1.0]], size=(20_000, items), random_state=rng)
        x, y = (pairs[..., side] - pairs[..., side].mean(axis=1, keepdims=True) for side in (0, 1))
        r = (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
        expected = _likelihoods(items)[np.argmin(np.abs(_TRUE - true))]
        np.testing.assert_allclose(np.histogram(r, _EDGES)[0] / len(r), expected, atol=0.012)


def test_the_share_of_a_lump_is_that_of_its_displays() -> None:
    rng = np.random.default_rng(1)
    wrong = rng.random(ROWS) < 0.3
    lump = lump_of(rng, np.where(wrong, 0.0, 0.8))
    assert lump is not None
    assert lump.share == pytest.approx(wrong.mean(), abs=0.03)
    assert not lump.is_reversed
    assert (lump.displays == wrong).mean() > 0.95
    turned = rng.random(ROWS) < 0.2
    reverse = lump_of(rng, np.where(turned, -0.6, 0.6))
    assert reverse is not None
    assert reverse.share == pytest.approx(turned.mean(), abs=0.03)
    assert reverse.is_reversed
    assert (reverse.displays == turned).mean() > 0.95


@pytest.mark.parametrize("true", [0.1, 0.2, 0.4, 0.9])
@pytest.mark.parametrize("longest", [4, 6, 20])
def test_a_model_that_agrees_little_or_in_short_lists_has_none(true: float, longest: int) -> None:
    """Correlations below 0 are many in short lists, and where two models share little."""
    rng = np.random.default_rng(2)
    assert lump_of(rng, np.full(ROWS, true), 2, longest) is None


def test_agreement_in_every_shade_is_no_lump() -> None:
    rng = np.random.default_rng(3)
    assert lump_of(rng, rng.uniform(-0.1, 1.0, ROWS)) is None
    in_a_third = np.where(rng.random(ROWS) < 0.3, rng.uniform(-0.2, 0.8, ROWS), 0.97)
    assert lump_of(rng, in_a_third) is None
    assert lump_of(rng, np.where(rng.random(ROWS) < 0.3, 0.35, 0.9)) is None


def test_few_displays_and_constant_lists_are_not_judged() -> None:
    rng = np.random.default_rng(4)
    wrong = np.where(rng.random(90) < 0.3, 0.0, 0.9)
    assert lump_of(rng, wrong) is None
    items = np.full(ROWS, 12)
    of_rows = correlations(rng, np.where(rng.random(ROWS) < 0.3, 0.0, 0.9), items)
    constant = rng.random(ROWS) < 0.5
    lump = score_lump(np.where(constant, np.nan, of_rows), items, ROWS)
    assert lump is not None
    assert not (lump.judged & constant).any()
    # rows of few units say less: as many displays of forty users are no proof
    assert score_lump(of_rows, items, 4) is None
