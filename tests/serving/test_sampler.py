"""The sampler: rows to log, replays, threads and coroutines, what it imports, what it refuses."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from foretest.serving import BadInput, PlackettLuce, Sampler, TopK

SAMPLER = Sampler(PlackettLuce(0.5), slots=2, seed=7)
SCORES = [0.3, 1.2, 0.7, -0.5]


def test_a_row_is_what_a_log_has() -> None:
    draw = SAMPLER.draw(SCORES, candidates=["a", "b", "c", "d"], key="view-1", slot_probabilities=True)
    row = draw.row
    assert row == {
        "id": "view-1",
        "ranking": draw.ranking,
        "scores": SCORES,
        "log_prob": draw.log_prob,
        "candidates": ["a", "b", "c", "d"],
        "slot_probabilities": draw.slot_probabilities,
    }
    assert json.loads(json.dumps(row)) == row
    assert list(SAMPLER.draw(SCORES, key=1).row) == ["id", "ranking", "scores", "log_prob"]
    assert set(draw.ranking) <= {"a", "b", "c", "d"}
    assert SAMPLER.draw(np.array(SCORES), candidates=np.array([9, 8, 7, 6]), key=1).row["candidates"] == [9, 8, 7, 6]


def test_draws_can_be_compared() -> None:
    assert SAMPLER.draw(SCORES, key=1) == SAMPLER.draw(SCORES, key=1)
    assert SAMPLER.draw(SCORES, key=1) != SAMPLER.draw(SCORES[::-1], key=1)


def test_a_draw_keeps_the_scores_it_was_made_with() -> None:
    scores = np.array(SCORES)
    draw = SAMPLER.draw(scores, key=1)
    scores[:] = 0.0
    assert draw.row["scores"] == SCORES


def test_draws_follow_from_seed_and_key_alone() -> None:
    again = Sampler({"policy": "plackett-luce", "temperature": 0.5}, 2, 7)
    for key in (0, 5, -3, "x", "5"):
        assert SAMPLER.draw(SCORES, key=key).ranking == again.draw(np.array(SCORES, np.float64), key=key).ranking
    other_seed, other_key = Sampler(PlackettLuce(0.5), 2, 8), 1000
    rankings = [SAMPLER.draw(SCORES, key=key).ranking for key in range(200)]
    assert rankings != [other_seed.draw(SCORES, key=key).ranking for key in range(200)]
    assert rankings != [SAMPLER.draw(SCORES, key=key + other_key).ranking for key in range(200)]
    assert rankings != [SAMPLER.draw(SCORES, key=str(key)).ranking for key in range(200)]


def test_fewer_candidates_than_slots_are_all_shown() -> None:
    draw = Sampler(PlackettLuce(), slots=5, seed=0).draw([0.1, 0.2], key=1)
    assert sorted(draw.ranking) == [0, 1]


def test_float32_scores_count_as_the_doubles_that_they_are() -> None:
    scores = np.array(SCORES, np.float32)
    draw = SAMPLER.draw(scores, key=3)
    assert draw.row["scores"] == scores.astype(np.float64).tolist()
    assert draw.log_prob == SAMPLER.draw(draw.row["scores"], key=3).log_prob


def test_threads_and_coroutines_may_share_a_sampler() -> None:
    g = np.random.default_rng(0)
    scores = [g.normal(size=int(g.integers(1, 3000))) for _ in range(60)]  # longer than the numbers at hand
    sampler = Sampler(PlackettLuce(), slots=10, seed=1)
    alone = [sampler.draw(s, key=key).row for key, s in enumerate(scores)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda key: sampler.draw(scores[key], key=key).row, range(60))) == alone

    async def draw(key: int) -> dict[str, Any]:
        await asyncio.sleep(0)
        return sampler.draw(scores[key], key=key).row

    async def draw_all() -> list[dict[str, Any]]:
        return await asyncio.gather(*(draw(key) for key in range(60)))

    assert asyncio.run(draw_all()) == alone
    assert pickle.loads(pickle.dumps(sampler)).draw(scores[0], key=0).row == alone[0]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([], "scores are empty"),
        ([1.0, math.nan], "the score at position 1 is NaN"),
        ([math.inf, 1.0], "the score at position 0 is infinite"),
        ([0.0, -math.inf], "the score at position 1 is infinite"),
        ([[1.0], [2.0]], r"scores have the shape \(2, 1\)"),
        (["a"], "expected a list of numbers"),
        ([None], "NaN|expected a list of numbers"),
        (3.0, "shape"),
        ([1e308, -1e308], "so far apart"),
    ],
)
def test_scores_that_are_refused(scores: Any, message: str) -> None:
    for policy in (PlackettLuce(), TopK()):
        with pytest.raises(BadInput, match=message):
            Sampler(policy, 1, 0).draw(scores, key=1)


def test_what_else_is_refused() -> None:
    with pytest.raises(BadInput, match="3 candidates and 4 scores"):
        SAMPLER.draw(SCORES, candidates=[1, 2, 3], key=1)
    with pytest.raises(BadInput, match="listed twice"):
        SAMPLER.draw(SCORES, candidates=[1, 2, 3, 1], key=1)
    for candidates, message in (
        ({"a", "b", "c", "d"}, "candidates are a set: expected a list of ids, one per score. A set has no order"),
        ("abcd", "candidates are a str: expected a list of ids"),
        (4, "candidates are a int: expected a list of ids"),
        (["a", "b", "c", None], "candidate None is a NoneType: expected ids, all integers or all text"),
        (np.array([1.0, 2.0, 3.0, np.nan]), "candidate 1.0 is a float: expected ids"),
        ([{"id": 1}, 2, 3, 4], "candidate {'id': 1} is a dict: expected ids"),
        ([1, 2, 3, "4"], "some candidates are integers and others text"),
    ):
        with pytest.raises(BadInput, match=message):
            SAMPLER.draw(SCORES, candidates=candidates, key=1)
    assert SAMPLER.draw(SCORES, candidates=[np.int64(1), 2, np.int32(3), 4], key=1).ranking
    with pytest.raises(BadInput, match="lone surrogate"):
        SAMPLER.draw(SCORES, key="\ud800")
    with pytest.raises(BadInput, match="too far apart for temperature"):
        Sampler(PlackettLuce(1e-300), 1, 0).draw([1e10, 0.0], key=1)
    for slots, seed, message in ((0, 0, "slots = 0"), (True, 0, "slots"), (1, -1, "seed = -1"), (1, 2**63, "seed = ")):
        with pytest.raises(BadInput, match=message):
            Sampler(TopK(), slots, seed)
    with pytest.raises(BadInput, match="expected a policy of foretest"):
        Sampler("plackett-luce", 1, 0)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="expected a policy of foretest"):
        Sampler(PlackettLuce, 1, 0)  # type: ignore[arg-type]


_PROGRAM = """
import sys, time
import numpy
before, began = set(sys.modules), time.process_time()
import foretest.serving
took = time.process_time() - began
foretest.serving.Sampler({"policy": "mallows", "dispersion": 0.5}, 2, 0).draw([1.0, 2.0, 3.0], key="a")
print(took, *sorted({name.split(".")[0] for name in set(sys.modules) - before}))
"""


def test_importing_it_costs_little_beside_numpy() -> None:
    """No library but NumPy, and less than 30 ms, the quickest of five times: the machine may be busy."""
    runs = [
        subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(5)
    ]
    libraries = {name for _, *names in runs for name in names} - set(sys.stdlib_module_names)
    assert libraries == {"foretest", "lazy_loader", "numpy"}  # what `import foretest` itself needs, a file of 300 lines
    assert min(float(took) for took, *_ in runs) < 0.030
