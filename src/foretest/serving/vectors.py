"""Test vectors: what a sampler in another language must give, as lines of JSON, and the check of such lines.

A line has `policy` (a table), `scores`, `slots`, `seed` and `key`, or `uniforms` instead of these two, optionally
`candidates`; and what was drawn: `ranking` and `log_prob`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from foretest.errors import BadInput, is_finite_number, nearest
from foretest.serving.base import Floats
from foretest.serving.sampler import Draw, Sampler

#: the vectors that come with Foretest
PUBLISHED_VECTORS = Path(__file__).with_name("vectors.jsonl")
ROUNDING = 1e-9  # of a log-probability, relative to 1 + its size
_NEEDED = ("policy", "scores", "slots", "ranking", "log_prob")
_KEYS = (*_NEEDED, "seed", "key", "uniforms", "candidates")


class Difference(NamedTuple):
    """The number of a line, from 1, and what it contains compared with what it should."""

    line: int
    what: str


class CheckedVectors(NamedTuple):
    """How many lines were checked, and those that differ."""

    lines: int
    differences: list[Difference]


def check_vectors(lines: Iterable[str]) -> CheckedVectors:
    """Draw what each test vector describes, and compare it with what the vector contains.

    Use it to check a sampler in another language: let that sampler write its draws in this form.

    Parameters
    ----------
    lines: JSON objects, one per line, with `policy`, `scores`, `slots`, `seed` and `key`, and the drawn `ranking` and
        `log_prob`; empty lines are skipped.

    Returns
    -------
    How many lines were checked, and the `differences`: the number of a line, from 1, and what differs.

    Raises
    ------
    BadInput: if a line cannot be read, with its number, or if there is none.

    >>> with open(PUBLISHED_VECTORS, encoding="utf-8") as file:
    ...     checked = check_vectors(file)
    >>> checked.lines > 10, checked.differences
    (True, [])
    """
    count, differences = 0, []
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        count += 1
        try:
            vector = _vector(text)
            what = _difference(vector, drawn(vector))
        except BadInput as error:
            raise BadInput(f"line {number}: {error}") from None
        if what is not None:
            differences.append(Difference(number, what))
    if not count:
        raise BadInput("there is no line in it: expected one vector per line, as JSON.")
    return CheckedVectors(count, differences)


def drawn(vector: Mapping[str, Any]) -> Draw:
    """What the policy of a vector draws by its seed and key, or by its uniform numbers."""
    by_key = "seed" in vector and "key" in vector
    if by_key == ("uniforms" in vector):
        raise BadInput("expected seed and key, or uniforms in their place.")
    sampler = Sampler(vector["policy"], vector["slots"], vector["seed"] if by_key else 0)
    if by_key:
        return sampler.draw(vector["scores"], vector.get("candidates"), key=vector["key"])
    given = _uniforms(vector["uniforms"])

    def numbers(count: int) -> Floats:
        if count > len(given):
            raise BadInput(f"uniforms has {len(given)} numbers, and the draw needs {count}.")
        return given[:count]

    return sampler.draw_by(vector["scores"], vector.get("candidates"), numbers)


def _vector(text: str) -> dict[str, Any]:
    """A line as a vector with every key that is needed, and none that is unknown."""
    try:
        vector = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not valid JSON ({error}).") from None
    if not isinstance(vector, dict):
        raise BadInput('expected an object, as in {"policy": {…}, "scores": […], …}.')
    for key in vector:
        if key not in _KEYS:
            raise BadInput(f"unknown key '{key}'.{nearest(key, _KEYS)}")
    for key in _NEEDED:
        if key not in vector:
            raise BadInput(f"{key} is missing.")
    if not isinstance(vector["ranking"], list):
        raise BadInput(f"ranking = {vector['ranking']!r}: expected a list.")
    if not is_finite_number(vector["log_prob"]):
        raise BadInput(f"log_prob = {vector['log_prob']!r}: expected a number.")
    return vector


def _uniforms(given: Any) -> Floats:
    if not isinstance(given, list) or not all(is_finite_number(u) and 0.0 < u < 1.0 for u in given):
        raise BadInput("uniforms: expected a list of numbers between 0 and 1.")
    return np.array(given, np.float64)


def _difference(vector: Mapping[str, Any], draw: Draw) -> str | None:
    """What a vector has that is not as it should be; None where all is."""
    if vector["ranking"] != draw.ranking:
        return f"ranking {json.dumps(vector['ranking'])}, expected {json.dumps(draw.ranking)}"
    if abs(vector["log_prob"] - draw.log_prob) > ROUNDING * (1.0 + abs(draw.log_prob)):
        return f"log_prob {vector['log_prob']!r}, expected {draw.log_prob!r}"
    return None
