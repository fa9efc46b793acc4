"""Rankings drawn again in a batch are those that a service drew one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from foretest.displays.ragged import Ragged
from foretest.policies import OwnCandidates
from foretest.policies.own_candidates import places_column
from foretest.policies.replay import replayed_rankings, replays
from foretest.serving import Sampler
from tests.serving.support import TABLES, analysed_policy, displays_of, some_draws

tables = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@tables
def test_both_draw_the_same_rankings(table: dict[str, Any]) -> None:
    displays, draws = some_draws(table, 1500, seed=9)
    again = replayed_rankings(analysed_policy(table), displays, 9)
    assert [again[row].tolist() for row in range(len(draws))] == [draw.ranking for draw in draws]
    assert replays(analysed_policy(table), displays, 9).all()


@tables
def test_many_items_and_scores_far_apart(table: dict[str, Any]) -> None:
    g = np.random.default_rng(0)
    lists = [np.round(g.normal(size=m) * scale, 1) for m in (300, 1000, 2500) for scale in (0.1, 1.0, 1e3, 1e7, 1e15)]
    sampler = Sampler(table, slots=20, seed=2)
    rankings = [sampler.draw(scores, key=key).ranking for key, scores in enumerate(lists)]
    assert replays(analysed_policy(table), displays_of(lists, rankings, list(range(len(lists)))), 2).all()


def test_float32_scores_are_the_doubles_that_they_are() -> None:
    g = np.random.default_rng(1)
    lists = [g.normal(size=12).astype(np.float32) for _ in range(500)]
    sampler = Sampler(TABLES["plackett-luce"], slots=4, seed=2)
    rankings = [sampler.draw(scores, key=key).ranking for key, scores in enumerate(lists)]
    displays = displays_of(lists, rankings, list(range(500)))
    assert displays["s"].values.dtype == np.float32
    assert replays(analysed_policy(TABLES["plackett-luce"]), displays, 2).all()


def test_a_row_that_was_changed_is_seen() -> None:
    displays, draws = some_draws(TABLES["plackett-luce"], 300, seed=3)
    rankings = [list(draw.ranking) for draw in draws]
    long = [row for row, ranking in enumerate(rankings) if len(ranking) > 1]
    rankings[long[7]] = rankings[long[7]][::-1]
    changed = replace(displays, ranking=Ragged.of([np.array(ranking, np.int32) for ranking in rankings]))
    policy = analysed_policy(TABLES["plackett-luce"])
    assert np.flatnonzero(~replays(policy, changed, 3)).tolist() == [long[7]]
    assert replays(policy, displays, 4).mean() < 0.5  # another seed


def test_a_list_of_its_own() -> None:
    """A service that ranks its own list: positions in it, wherever its items are in the union with another list."""
    displays, draws = some_draws(TABLES["mallows"], 200, seed=5)
    g = np.random.default_rng(0)
    places = [g.permutation(len(scores) + 4)[: len(scores)].astype(np.int32) for scores in lists_of(displays)]
    shown = [place[np.array(draw.ranking)] for place, draw in zip(places, draws, strict=True)]
    union = replace(
        displays,
        columns={**displays.columns, places_column("items"): Ragged.of(places)},
        ranking=Ragged.of(shown),
        eligible=displays.eligible + 4,
    )
    policy = OwnCandidates(analysed_policy(TABLES["mallows"]), "items")
    assert replays(policy, union, 5).all()
    outside = next(item for item in range(len(places[0]) + 4) if item not in places[0])
    shown[0] = np.append(shown[0][:-1], np.int32(outside))
    assert np.flatnonzero(~replays(policy, replace(union, ranking=Ragged.of(shown)), 5)).tolist() == [0]


def lists_of(displays: Any) -> list[Any]:
    return [displays["s"][row] for row in range(len(displays))]
