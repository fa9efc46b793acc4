"""Every declared quantity, merged, divided into parts, moved and taken as a difference, against plain NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from foretest.aggregation.control_slopes import _with_error
from foretest.aggregation.groups import REST, Groups
from foretest.aggregation.ledger import Key, Ledger
from foretest.aggregation.quantities import BY_NAME, DISPLAYS, ROWS, Blocks, Merge, Moves, Quantity, Reward
from foretest.aggregation.strata import Strata
from foretest.weights.weightings import Uncapped

CELLS, W = 5, Uncapped()
OWNERS: dict[Blocks, Any] = {Blocks.STRATA: "table"}
of_each = pytest.mark.parametrize("quantity", BY_NAME.values(), ids=lambda quantity: quantity.name)


def amounts_of(quantity: Quantity, seed: int, blocks: int = 3) -> np.ndarray:
    """Sums of the quantity's shape."""
    size = (CELLS if quantity.by_cell else 1) * (blocks if quantity.blocks in (Blocks.STRATA, Blocks.SLOTS) else 1)
    return np.random.default_rng(seed).normal(size=6 if quantity.blocks is Blocks.FIXED else size)


def ledger_of(quantity: Quantity, amounts: np.ndarray, exponent: int, labels: str = "abc", metric: int = 0) -> Ledger:
    """A ledger with one sum, in units of 2^exponent."""
    strata = Strata()
    for label in labels:
        strata.code(label)
    ledger = Ledger(CELLS, strata={"table": strata})
    account = ledger.account(W, metric)
    account.raise_to(exponent)
    account.open(quantity, amounts * 2.0 ** (-exponent * quantity.power), owner=OWNERS.get(quantity.blocks))
    return ledger


def sum_of(ledger: Ledger, quantity: Quantity, metric: int = 0) -> np.ndarray:
    """The one sum, in units of 1."""
    account = ledger.account(W, metric)
    array = account.get(quantity, owner=OWNERS.get(quantity.blocks))
    return np.asarray(array * 2.0 ** ((account.exponent or 0) * quantity.power))


@of_each
def test_merging_is_as_declared_in_any_order_and_unit(quantity: Quantity) -> None:
    a, b = amounts_of(quantity, 1), amounts_of(quantity, 2)
    first, second = ledger_of(quantity, a, 64), ledger_of(quantity, b, -128)
    together = {Merge.SUM: np.add, Merge.LARGEST: np.maximum, Merge.SMALLEST: np.minimum}[quantity.merge](a, b)
    for ledgers in ([first, second], [second, first]):
        np.testing.assert_allclose(sum_of(Ledger.total(ledgers), quantity), together, rtol=1e-12)
    np.testing.assert_allclose(sum_of(first, quantity), a, rtol=1e-12)
    np.testing.assert_allclose(sum_of(second, quantity), b, rtol=1e-12)


@pytest.mark.parametrize("quantity", [q for q in BY_NAME.values() if q.blocks is Blocks.STRATA], ids=lambda q: q.name)
def test_strata_merge_by_label(quantity: Quantity) -> None:
    a, b = amounts_of(quantity, 1).reshape(3, CELLS), amounts_of(quantity, 2, blocks=2).reshape(2, CELLS)
    whole = Ledger.total([ledger_of(quantity, a.ravel(), 0, "abc"), ledger_of(quantity, b.ravel(), 0, "cd")])
    assert whole.strata["table"].labels == ["a", "b", "c", "d"]
    expected = np.concatenate([a, b[1:]])
    expected[2] += b[0]
    np.testing.assert_allclose(sum_of(whole, quantity), expected.ravel())


@of_each
def test_a_metric_with_losses(quantity: Quantity) -> None:
    """What the difference of two parts has of a quantity, where both have it, and where one has."""
    a, b = amounts_of(quantity, 1), amounts_of(quantity, 2)
    gains, losses = ledger_of(quantity, a, 64, metric=0), ledger_of(quantity, b, 0, metric=1)
    expected = {Reward.LINEAR: a - b, Reward.SIZE: a + b, Reward.ABSENT: a, Reward.APART: a}[quantity.reward]
    both = replace(gains, accounts=gains.accounts | losses.accounts).with_difference(2, 0, 1)
    np.testing.assert_allclose(sum_of(both, quantity, 2), expected, rtol=1e-12)
    if quantity.apart is not None:
        np.testing.assert_allclose(sum_of(both, quantity.apart, 2), b, rtol=1e-12)
    if quantity.sizes is not None:
        assert sum_of(both, quantity.sizes, 2) == pytest.approx(a.sum() + b.sum(), rel=1e-12)
    losses.account(W, 0)
    alone = losses.with_difference(2, 0, 1)
    without = {Reward.LINEAR: -b, Reward.SIZE: b, Reward.ABSENT: b, Reward.APART: 0.0 * b}[quantity.reward]
    np.testing.assert_allclose(sum_of(alone, quantity, 2), without, rtol=1e-12)


@of_each
def test_only_what_moves_has_the_error_of_a_fitted_number(quantity: Quantity) -> None:
    """Sum + factor·(above − below)·influence, stratum by stratum; the rows that show it are as declared."""
    influence = np.array([0.5, -1.0, 0.25, 0.25, 0.0])
    amounts = [amounts_of(quantity, seed) for seed in range(5)]
    whole, *ends = (ledger_of(quantity, a, 0) for a in amounts)
    moved = sum_of(_with_error(whole, ((ends[0], ends[1]), (ends[2], ends[3])), (2.0, 3.0), influence), quantity)
    if quantity.moves is Moves.NEVER:
        np.testing.assert_array_equal(moved, amounts[0])
        return
    factor, above, below = (2.0, *amounts[1:3]) if quantity.moves is Moves.WITH_ALL_ROWS else (3.0, *amounts[3:])
    slopes = factor * (above - below).reshape(-1, CELLS).sum(axis=1)
    np.testing.assert_allclose(moved, amounts[0] + (slopes[:, None] * influence).ravel(), rtol=1e-12)


@of_each
def test_parts_of_a_log_have_what_is_declared_of_them(quantity: Quantity) -> None:
    """By group and cell against NumPy; values that share a block are added up, and all parts together are the log."""
    g = np.random.default_rng(0)
    values, cell, amounts = np.array(list("xyzxy"))[g.integers(0, 5, 60)], g.integers(0, CELLS, 60), g.normal(size=60)
    ledger = Ledger(CELLS, groups=Groups(8, most=2))
    assert ledger.groups is not None
    if quantity.unthinned is not None and quantity.in_parts:
        ledger.plain.open(quantity, np.zeros(0))
    for rows in np.array_split(np.arange(60), 4):
        code = ledger.groups.codes(pa.array(values[rows]), ledger.move_to_rest)
        ledger.plain.add(quantity, amounts[rows], ledger.places(cell[rows], code))
    if not quantity.in_parts:
        assert not ledger.plain.has(quantity) or quantity.blocks in (Blocks.STRATA, Blocks.SLOTS, Blocks.FIXED)
        return
    apart = ledger.groups.labels
    assert len(apart) == 2
    for code, label in [(REST, None), *enumerate(apart, start=1)]:
        chosen = values == label if label is not None else ~np.isin(values, apart)
        expected = np.bincount(cell[chosen], amounts[chosen], CELLS) if quantity.by_cell else [amounts[chosen].sum()]
        np.testing.assert_allclose(ledger.of_groups([code]).plain.get(quantity), expected, rtol=1e-12, atol=1e-13)
    whole = ledger.of_groups([REST, 1, 2]).plain.total(quantity)
    assert whole == pytest.approx(amounts.sum(), rel=1e-12)
    assert ledger.by_group(Key(quantity), ledger.plain).sum() == pytest.approx(amounts.sum(), rel=1e-12)


def test_counts_of_rows_are_those_of_displays_unless_they_were_opened() -> None:
    ledger, cell = Ledger(CELLS), np.array([0, 0, 3])
    at = ledger.places(cell)
    ledger.plain.add(DISPLAYS, np.array([2.0, 4.0, 1.0]), at)
    ledger.plain.add(ROWS, 1.0, at)
    assert ledger.plain.get(ROWS).tolist() == ledger.plain.get(DISPLAYS).tolist() == [6.0, 0.0, 0.0, 1.0, 0.0]
    ledger.plain.open(ROWS, np.zeros(0))
    ledger.plain.add(ROWS, 1.0, at)
    assert ledger.plain.get(ROWS).tolist() == [2.0, 0.0, 0.0, 1.0, 0.0]
