"""Vectors for samplers in other languages: those that come with Foretest, and what a check of others says.

`python -m tests.serving.test_vectors` writes the published ones: once published, a line never changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from foretest.serving import BadInput
from foretest.serving.vectors import PUBLISHED_VECTORS, check_vectors, drawn
from tests.serving.support import TABLES, analysed_policy, displays_of

LINES = PUBLISHED_VECTORS.read_text(encoding="utf-8").splitlines()
FIRST = LINES[2]  # of five items, two of which are shown


def test_every_published_vector_is_drawn_again() -> None:
    assert check_vectors(LINES).differences == []
    assert len(LINES) >= 8 * len(TABLES)


def test_published_vectors_are_of_every_kind() -> None:
    vectors = [json.loads(line) for line in LINES]
    assert {v["policy"]["policy"] for v in vectors} == {table["policy"] for table in TABLES.values()}
    assert {type(v.get("key")) for v in vectors} == {int, str, type(None)}
    assert any("candidates" in v for v in vectors)
    assert any(v["slots"] > len(v["scores"]) for v in vectors)
    assert any(len(set(v["scores"])) < len(v["scores"]) for v in vectors)
    assert any(max(v["scores"]) - min(v["scores"]) > 1e6 for v in vectors)


def test_published_probabilities_are_those_of_the_analysis() -> None:
    for line in LINES:
        v = json.loads(line)
        shown = [v["candidates"].index(item) for item in v["ranking"]] if "candidates" in v else v["ranking"]
        row = displays_of([v["scores"]], [shown], [0])
        assert analysed_policy(v["policy"]).log_prob(row, row.ranking)[0] == pytest.approx(v["log_prob"], rel=1e-12)


def changed(**fields: Any) -> str:
    """A published vector with other fields; a field that is None is left out."""
    vector = {**json.loads(FIRST), **fields}
    return json.dumps({key: value for key, value in vector.items() if value is not None})


def test_lines_that_differ_are_named() -> None:
    first = json.loads(FIRST)
    wrong = [changed(ranking=first["ranking"][::-1]), LINES[1], "", changed(log_prob=first["log_prob"] - 1e-6)]
    checked = check_vectors(wrong)
    assert checked.lines == 3
    assert [difference.line for difference in checked.differences] == [1, 4]
    assert checked.differences[0].what == (
        f"ranking {json.dumps(first['ranking'][::-1])}, expected {json.dumps(first['ranking'])}"
    )
    assert checked.differences[1].what.startswith("log_prob ")
    assert check_vectors([changed(log_prob=first["log_prob"] + 1e-12)]).differences == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: not valid JSON"),
        ("[1]", "line 1: expected an object"),
        (changed(scores=None), "line 1: scores is missing"),
        (changed(sed=1), "line 1: unknown key 'sed'. Did you mean 'seed'"),
        (changed(key=None), "line 1: expected seed and key, or uniforms"),
        (changed(uniforms=[0.5]), "line 1: expected seed and key, or uniforms"),
        (changed(seed=None, key=None, uniforms=[0.5]), "line 1: uniforms has 1 numbers, and the draw needs"),
        (changed(seed=None, key=None, uniforms=[1.0]), "line 1: uniforms: expected a list of numbers between 0 and 1"),
        (changed(policy={"policy": "plackett"}), "line 1: unknown policy 'plackett'"),
        (changed(log_prob="x"), "line 1: log_prob = 'x'"),
        (changed(ranking=3), "line 1: ranking = 3"),
        ("", "there is no line in it"),
    ],
)
def test_a_line_that_cannot_be_read(line: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_vectors([line])


def published() -> Iterator[dict[str, Any]]:
    """Vectors of every policy: few and many items, ties, fewer items than slots, scores far apart, ids, own numbers."""
    g = np.random.default_rng(2018)
    keys: list[int | str] = [0, -1, 9223372036854775807, "", "a", "d2b7e0a4-6c1f-4b8e-9f53-0a1c2d3e4f50", "Zürich"]
    for table in TABLES.values():
        for m, k, scale in (
            (1, 1, 1.0),
            (3, 5, 1.0),
            (5, 2, 2.0),
            (8, 8, 1.0),
            (12, 4, 10.0),
            (6, 3, 3e6),
            (40, 10, 1.0),
        ):
            scores = np.round(g.normal(size=m) * scale, 1).tolist()
            vector = {"policy": table, "scores": scores, "slots": k, "seed": int(g.integers(0, 100))}
            yield {**vector, "key": keys[int(g.integers(0, len(keys)))]}
        yield {**vector, "seed": 2**63 - 1, "key": 7, "candidates": [f"item-{i}" for i in range(40)]}
        given = {"policy": table, "scores": scores[:6], "slots": 3}
        yield {**given, "uniforms": np.round(g.uniform(size=7), 6).tolist()}


def main() -> None:
    lines = []
    for vector in published():
        draw = drawn(vector)
        lines.append(json.dumps({**vector, "ranking": draw.ranking, "log_prob": draw.log_prob}, ensure_ascii=False))
    PUBLISHED_VECTORS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
