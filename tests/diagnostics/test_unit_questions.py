"""Units that have a large part of the rows: who is named, in which words, and where nothing is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation.large_units import LargeUnits
from foretest.aggregation.unit_counts import LIMIT, UnitCounts
from foretest.diagnostics.unit_questions import FEW_LARGE, LARGE

ROWS = 4000
RNG = np.random.default_rng(8)
USER = RNG.integers(0, 2000, ROWS)


def table(user: Any) -> pa.Table:
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(ROWS, 4))
    return pa.table({
        "user": user, "click": (rng.random(ROWS) < 0.1).astype(float), "old": list(scores),
        "new": list(scores + rng.normal(size=scores.shape)),
        "ranking": list(np.argsort(-(scores + rng.gumbel(size=scores.shape)), axis=1)[:, :1]),
    })  # fmt: skip


TEST = ft.OfflineTest(
    log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking"), control=ft.PlackettLuce("old"),
    treatment={"a": ft.PlackettLuce("new"), "b": ft.PlackettLuce("old", 2.0)}, estimators=["cis"], n_resamples=20,
)  # fmt: skip


def asked(user: Any) -> list[str]:
    """The kinds of questions, and the note that is about units."""
    result = TEST.check(table(user), threads=1)
    about = [note for note in result.notes if "of the rows" in note]
    assert len({tuple(t.health["questions"]) for t in result.treatments}) == 1  # of the log: every treatment has them
    return [*result.health["questions"], *about]


def test_a_unit_with_many_rows_is_named_as_the_log_has_it() -> None:
    anonymous = np.where(RNG.random(ROWS) < 0.25, "anonymous", [f"user {u}" for u in USER])
    kind, note = asked(anonymous)
    assert kind == LARGE
    assert note.startswith(f'user = "anonymous" has {100 * (anonymous == "anonymous").mean():.1f} % of the rows. Is it')
    zero, other = RNG.random((2, ROWS))
    kind, note = asked(np.where(zero < 0.1, 0, np.where(other < 0.3, -7, USER + 1)))
    assert kind == LARGE
    assert note.startswith("user = -7 has 2")
    assert ", user = 0 has " in note
    assert "ids of their own" in note


def test_a_hundredth_of_the_units_with_a_third_of_the_rows_is_asked_about() -> None:
    bots = np.where(RNG.random(ROWS) < 0.38, RNG.integers(0, 12, ROWS), USER)
    kind, note = asked(bots)
    assert kind == FEW_LARGE
    units, counts = np.unique(bots, return_counts=True)
    few = int(0.01 * len(units))
    share = np.sort(counts)[::-1][:few].sum() / ROWS
    assert note.startswith(
        f"{few} of {len(units):,} values of 'user' have {100 * share:.1f} % of the rows; the largest"
    )
    first = units[np.argsort(-counts, kind="stable")[:3]]
    assert set(note.split("the largest are ")[1].split(" and ")[0].split(", ")) == set(map(str, first))


@pytest.mark.parametrize(
    "user",
    [
        USER,
        np.arange(ROWS),
        np.arange(ROWS) % 30,  # servers: each has a thirtieth
        np.minimum(RNG.geometric(0.2, ROWS), 60),
        np.floor(1000 * RNG.random(ROWS) ** 2),  # twice as active as others, and more
        np.repeat(np.arange(ROWS), np.minimum(1 + RNG.lognormal(0.0, 1.3, ROWS).astype(int), 200))[:ROWS],
    ],
)
def test_usual_units_are_not_asked_about(user: Any) -> None:
    assert asked(np.asarray(user).astype(np.int64)) == []


def test_threads_parts_and_saved_sums_name_the_same(tmp_path: Path) -> None:
    """The large unit is in one part alone, where it has half of the rows."""
    user = np.where(np.arange(ROWS) < 800, np.where(RNG.random(ROWS) < 0.5, "crawler", "rest"), USER.astype(str))
    user[:800][user[:800] == "rest"] = [f"u{i}" for i in range((user[:800] == "rest").sum())]
    log, notes = table(user), []
    for threads, batch in ((1, ROWS), (2, 150)):
        notes.append([n for n in TEST.run(log, threads=threads, batch_rows=batch).notes if "of the rows" in n])
    for i in range(4):
        TEST.save_aggregates(log.slice(1000 * i, 1000), tmp_path / f"{i}.parquet")
    saved = TEST.run([tmp_path / f"{i}.parquet" for i in range(4)])
    notes.append([n for n in saved.notes if "of the rows" in n])
    assert notes[0] == notes[1] == notes[2]
    assert notes[0][0].startswith('user = "crawler" has ')


def test_names_are_those_of_all_large_units_also_beyond_the_limit() -> None:
    """More units than are counted one by one, in batches sorted by unit, so that each has large ones of its own."""
    counts, large, rng = UnitCounts.empty(), LargeUnits(), np.random.default_rng(1)
    bot = np.uint64(rng.integers(1 << 63))
    units = rng.integers(0, 1 << 63, LIMIT + 5000).astype(np.uint64)
    for part in [np.sort(units[:100_000]), np.full(9000, bot), *np.array_split(np.sort(units[100_000:]), 100)]:
        counts.add(part)
        large.add(part, pa.array([f"u{u}" for u in part]), counts)
    assert not counts.exact
    assert len(large.names) <= 1000
    assert large.largest(counts) == LargeUnits({int(bot): f'"u{bot}"'})
    assert counts.rows_of(np.array([bot]))[0] == pytest.approx(9000, abs=20)


def test_rows_of_units_are_counted_as_they_are() -> None:
    counts = UnitCounts.empty()
    counts.add(np.array([5, 5, 9, 5, 11], np.uint64))
    assert counts.rows == 5
    assert counts.rows_of(np.array([9, 5, 7, 11], np.uint64)).tolist() == [1, 3, 0, 1]
    assert counts.share_of_largest(0.4) == (1, 0.6)
