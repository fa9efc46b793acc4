"""χ² of items by slot: its moments over all ways of having been shown, its pooling, its words."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from foretest.diagnostics.audit import item_slots
from foretest.diagnostics.audit.item_slots import items_by_slot, simes, slot_test


def test_over_all_ways_to_have_been_shown_the_mean_is_the_degrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """E[dᵀ V⁻ d] = rank V exactly: 3 rankings of 6 displays, each of them the shown one in turn."""
    monkeypatch.setattr(item_slots, "FEWEST_EXPECTED", 0.1)
    sets = np.random.default_rng(1).integers(0, 3, (6, 3)).astype(np.int32)
    slots = []
    for shown in product(range(3), repeat=6):
        order = np.array([[s, *(o for o in range(3) if o != s)] for s in shown])
        slots.append(slot_test(np.take_along_axis(sets, order, axis=1), np.arange(3)))
    assert {slot.degrees for slot in slots if slot} == {2}
    assert np.mean([slot.chi2 for slot in slots if slot]) == pytest.approx(2.0, rel=1e-9)


def exchangeable_cells(rows: int, rng: np.random.Generator) -> np.ndarray:
    """Items of two slots, each display with probabilities of its own."""
    p = rng.dirichlet(np.full(6, 0.5), size=(rows, 1, 2))
    return (rng.random((rows, 5, 2, 1)) > np.cumsum(p, axis=-1)[..., :-1]).sum(axis=-1)


def test_right_items_have_uniform_p_values() -> None:
    rng = np.random.default_rng(8)
    p = [items_by_slot(exchangeable_cells(300, rng), -1, "id").p_value for _ in range(300)]
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_pearsons_statistic_would_be_blind_here() -> None:
    """Probabilities near 0 and 1 leave counts little room: the covariance knows, n·p̄ does not."""
    rng = np.random.default_rng(9)
    sure = np.repeat([0, 1], 2000)
    p = np.where(sure[:, None] == np.arange(2), 0.99, 0.01)
    cells = (rng.random((4000, 5, 1)) > p[:, None, :1]).astype(np.int64)
    wrong = cells.copy()
    rare = np.flatnonzero((sure == 0) & (cells[:, 0, 0] == 0))[:40]
    wrong[rare, 0, 0] = 1  # 20 of 2 000 expected, 60 seen
    seen = (wrong[:, 0, 0] == 1).sum()
    assert stats.chisquare([seen, 4000 - seen], [2000, 2000]).pvalue > 0.05
    finding = items_by_slot(wrong, -1, "id")
    assert finding.outcome == "fail"


def test_a_pinned_item_is_named() -> None:
    rng = np.random.default_rng(10)
    cells = exchangeable_cells(2000, rng)
    cells[:150, 0, 1] = 4
    finding = items_by_slot(cells, -1, "id")
    assert finding.outcome == "fail"
    assert "in slot 2 the item 4 was shown" in finding.meaning
    assert "4th highest" in items_by_slot(cells - 1, -9, "rank").meaning
    assert "one item was shown" in items_by_slot(cells, -1, None).meaning


def test_rare_items_are_pooled() -> None:
    """1 000 displays, items 0 and 1 are half each but for 100 rare ones: three cells, two degrees."""
    rng = np.random.default_rng(11)
    codes = rng.integers(0, 2, (1000, 5)).astype(np.int32)
    rare = rng.random((1000, 5)) < 0.1
    codes[rare] = rng.integers(2, 102, rare.sum())
    slot = slot_test(codes, np.arange(102))
    assert slot is not None
    assert slot.degrees == 2
    few = slot_test(np.where(codes > 1, 0, codes)[:60], np.arange(2))
    assert few is not None
    assert few.degrees == 1
    assert slot_test(codes[:40], np.arange(102)) is None


def test_slots_that_a_display_does_not_have_are_left_out() -> None:
    cells = exchangeable_cells(600, np.random.default_rng(12))
    cells[400:, :, 1] = -1
    both, one = items_by_slot(cells, -1, "id"), items_by_slot(cells[:400], -1, "id")
    assert "2 slots" in both.meaning
    assert both.outcome == one.outcome == "pass"
    assert items_by_slot(cells[:10], -1, "id").outcome == "not made"


@pytest.mark.parametrize(
    ("p", "adjusted"), [([0.01, 0.04, 0.03], 0.03), ([0.2], 0.2), ([0.001, 0.9, 0.9, 0.9], 0.004), ([0.5, 0.5], 0.5)]
)
def test_simes_on_known_tables(p: list[float], adjusted: float) -> None:
    assert simes(p) == pytest.approx(adjusted)
    assert simes(p) == pytest.approx(float(np.min(stats.false_discovery_control(p))))
