"""The display key, and rows taken, copied and put together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xxhash

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.kernels.hashing import hash_integers

CONTROL = [[0.5, 1.25, -3.0], [0.0, 2.0], [0.5, 1.25, -3.0], [7.0]]
RANKINGS = [[1, 0], [0], [1, 0], [0]]


def by_content(kind: type = np.float64, treatment: float = 0.0, reward: float = 0.0) -> Displays:
    control = Ragged.of([np.array(row, kind) for row in CONTROL])
    return Displays(
        {
            "control": control,
            "treatment": Ragged(control.values + kind(treatment), control.starts, control.lengths),
            "logged": np.array([0.5, 0.25, 0.5, 1.0], kind),
            "reward": np.full(4, reward),
        },
        Ragged.of([np.array(row, np.int32) for row in RANKINGS]),
        control.lengths,
        hash_integers(np.array([10, 10, 10, 11])),
        ("control", "logged"),
    )


def test_the_key_is_a_chain_of_unit_ranking_and_control_columns() -> None:
    def digest(words: list[int], numbers: list[float]) -> int:
        return xxhash.xxh64_intdigest(np.array(words, "<u8").tobytes() + np.array(numbers, "<f8").tobytes())

    expected = []
    for unit, ranking, scores, p in zip([10, 10, 10, 11], RANKINGS, CONTROL, [0.5, 0.25, 0.5, 1.0], strict=True):
        key = xxhash.xxh64_intdigest(unit.to_bytes(8, "little"))
        expected.append(digest([digest([digest([key, *ranking], [])], scores)], [p]))
    assert by_content().key().tolist() == expected


def test_equal_rows_have_equal_keys_and_others_have_not() -> None:
    key = by_content().key()
    assert key[0] == key[2]
    assert len(set(key.tolist())) == 3
    rows = by_content()
    changed = [
        replace(rows, identity=hash_integers(np.array([12, 10, 10, 11]))),
        replace(rows, ranking=Ragged.of([np.array(row, np.int32) for row in [[0, 1], *RANKINGS[1:]]])),
        replace(rows, columns={**rows.columns, "logged": np.array([0.4, 0.25, 0.5, 1.0])}),
        replace(rows, columns={**rows.columns, "control": Ragged.of([[0.5, 1.25, -2.9], *CONTROL[1:]])}),
    ]
    for other in changed:
        assert (other.key() != key).tolist() == [True, False, False, False]


def test_neither_treatment_nor_reward_enters() -> None:
    assert np.array_equal(by_content(treatment=5.0, reward=1.0).key(), by_content().key())


def test_single_and_double_precision_agree() -> None:
    assert np.array_equal(by_content(np.float32).key(), by_content(np.float64).key())


def test_minus_zero_is_zero_and_integer_types_agree() -> None:
    rows = by_content()
    minus = replace(rows, columns={**rows.columns, "control": Ragged.of([CONTROL[0], [-0.0, 2.0], *CONTROL[2:]])})
    assert np.array_equal(minus.key(), rows.key())
    wide = replace(rows, ranking=Ragged.of([np.array(row, np.int64) for row in RANKINGS]))
    assert np.array_equal(wide.key(), rows.key())


def test_an_id_is_the_key_whatever_the_row_holds() -> None:
    rows = replace(by_content(), key_columns=None)
    assert np.array_equal(rows.key(), rows.identity)


def test_the_key_follows_the_row() -> None:
    rows = by_content()
    key = rows.key()
    order = np.array([3, 1, 0, 0])
    assert np.array_equal(rows.take(order).key(), key[order])
    assert np.array_equal(rows.take(order).compact().key(), key[order])
    both = Displays.concatenate([rows.take(order), rows])
    assert np.array_equal(both.key(), np.concatenate([key[order], key]))
    assert rows.key().tolist() == key.tolist()  # asking changes nothing


def test_text_columns_of_a_users_control_are_left_out_of_the_key() -> None:
    rows = by_content()
    named = replace(
        rows,
        columns={**rows.columns, "name": np.array(["a", "b", "c", "d"])},
        key_columns=("control", "logged", "name"),
    )
    assert np.array_equal(named.key(), rows.key())


def test_rows_taken_and_put_together() -> None:
    rows = by_content()
    part = rows.take(np.array([2, 0]))
    assert len(part) == 2
    assert part.slots.tolist() == [2, 2]
    assert part.eligible.tolist() == [3, 3]
    assert part["control"][1].tolist() == CONTROL[0]
    compact = part.compact()
    assert len(compact["control"].values) == 6
    assert compact["logged"].tolist() == [0.5, 0.5]
    both = Displays.concatenate([compact, rows])
    assert [both["control"][i].tolist() for i in range(6)] == [CONTROL[2], CONTROL[0], *CONTROL]
    assert [both.ranking[i].tolist() for i in range(6)] == [RANKINGS[2], RANKINGS[0], *RANKINGS]
    assert both["logged"].tolist() == [0.5, 0.5, 0.5, 0.25, 0.5, 1.0]


def test_a_column_that_was_not_read_is_named() -> None:
    with pytest.raises(BadInput, match=r"the column 'scores' was not read"):
        by_content()["scores"]
