"""The control's marginals of an earlier pass: those of the same displays, whatever was kept, and of no others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.policies.adapter import as_policy
from foretest.weights import control_marginals as module
from foretest.weights.control_marginals import KnownMarginals, MarginalStore, control_marginals
from foretest.weights.policy_pair import PolicyPair
from foretest.weights.slot_marginals import slot_marginals
from tests.weights.test_slot_marginals import Plain, displays_of

SIZES, SLOTS = [3, 8, 5, 1, 6, 8], [2, 3, 4, 1, 3, 4]
PLACKETT_LUCE = ft.PlackettLuce(scores="s")


def pair_of(control: Any) -> PolicyPair:
    return PolicyPair(PLACKETT_LUCE, as_policy(control))


def known_of(displays: ft.Displays, pair: PolicyPair, rows: list[int]) -> KnownMarginals:
    """The marginals of some displays, doubled, so that they can be told from those that are found anew."""
    store, part = MarginalStore(), displays.take(np.array(rows))
    for at in np.array_split(np.arange(len(rows)), 2):
        some = part.take(at)
        table = control_marginals(some, pair)
        store.add(some, pair, ft.Ragged(2.0 * table.values, table.starts, table.lengths))
    known = store.known()
    assert known is not None
    return known


@pytest.mark.parametrize("control", [PLACKETT_LUCE, Plain(PLACKETT_LUCE)], ids=["exact", "counted"])
@pytest.mark.parametrize("rows", [[4, 1, 0], [5, 4, 3, 2, 1, 0], [2]])
def test_displays_that_are_known_and_others(control: Any, rows: list[int]) -> None:
    displays, pair = displays_of(SIZES, SLOTS), pair_of(control)
    wanted = slot_marginals(pair.control, displays, pair, np.zeros(len(SIZES)))
    found = control_marginals(displays, pair, known_of(displays, pair, rows))
    assert found.lengths.tolist() == wanted.lengths.tolist()
    for row in range(len(SIZES)):
        np.testing.assert_array_equal(found[row], wanted[row] * (2.0 if row in rows else 1.0))


def test_what_differs_is_another_display() -> None:
    displays, pair = displays_of(SIZES, SLOTS), pair_of(PLACKETT_LUCE)
    known, every = known_of(displays, pair, [0, 1, 2, 3, 4, 5]), np.arange(len(SIZES))
    assert (known.places(pair.control, displays) >= 0).all()
    scores = displays["s"]
    nudged = replace(displays, columns={"s": ft.Ragged(scores.values + 1e-9, scores.starts, scores.lengths)})
    turned = ft.Ragged.of([displays.ranking[row][::-1] for row in every])
    for other in (nudged, replace(displays, eligible=displays.eligible + 1), replace(displays, ranking=turned)):
        places = known.places(pair.control, other)
        assert (places[displays.slots > 1] == -1).all()  # the ranking of one item is the same turned round
    renamed = replace(displays, identity=displays.identity + np.uint64(9))
    assert (known.places(pair.control, renamed) >= 0).all()  # exact marginals do not depend on who saw the display


def test_draws_are_those_of_a_display_s_own_key() -> None:
    displays, pair = displays_of(SIZES, SLOTS), pair_of(Plain(PLACKETT_LUCE))
    known = known_of(displays, pair, [0, 1, 2, 3, 4, 5])
    renamed = replace(displays, identity=displays.identity + np.uint64(9))
    assert (known.places(pair.control, renamed) == -1).all()


def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    displays, pair = displays_of(SIZES, SLOTS), pair_of(PLACKETT_LUCE)
    monkeypatch.setattr(module, "MOST_NUMBERS", 30)
    store = MarginalStore()
    for row in range(len(SIZES)):  # of 6, 24, 20, 1, 18 and 32 numbers
        part = displays.take(np.array([row]))
        store.add(part, pair, control_marginals(part, pair))
    assert store.numbers == 30
    known = store.known()
    assert known is not None
    assert (known.places(pair.control, displays) >= 0).tolist() == [True, True, False, False, False, False]


def test_columns_that_are_no_numbers_are_not_kept() -> None:
    class Named(Plain):
        columns = ("s", "name")

    displays, pair = displays_of(SIZES, SLOTS), pair_of(Named(PLACKETT_LUCE))
    displays = replace(displays, columns={**displays.columns, "name": np.array(list("abcdef"), object)})
    store = MarginalStore()
    store.add(displays, pair, control_marginals(displays, pair))
    assert store.known() is None
