"""The sampler: a ranking for a display, its probability, and the row to log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from foretest.errors import BadInput, check_integer
from foretest.serving.base import Floats, Numbers, Scores, ServingPolicy
from foretest.serving.generator import display_state, seed_state, uniforms
from foretest.serving.tables import policy_from_table

LARGEST_SEED = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Draw:
    """A ranking that was drawn for one display, with its probability and the row to log.

    `Sampler.draw` returns it.

    >>> draw = Sampler({"policy": "plackett-luce"}, slots=1, seed=7).draw([0.0, 0.0], key="display-1")
    >>> draw.ranking, round(draw.log_prob, 3)
    ([1], -0.693)
    >>> sorted(draw.row)
    ['id', 'log_prob', 'ranking', 'scores']
    """

    ranking: list[Any]  # best slot first: positions among the scores, or ids where candidates were given
    log_prob: float  # of this ranking, under the policy
    slot_probabilities: list[float] | None  # P(a_k in slot k), where asked for
    _key: int | str = field(repr=False, compare=False)  # the display's id
    _scores: Floats = field(repr=False, compare=False)  # of all candidates
    _candidates: list[Any] | None = field(repr=False, compare=False)  # their ids, where they were given

    @property
    def row(self) -> dict[str, Any]:
        """One row of a display log: plain numbers, text and lists."""
        row = {"id": self._key, "ranking": self.ranking, "scores": self._scores.tolist(), "log_prob": self.log_prob}
        if self._candidates is not None:
            row["candidates"] = self._candidates
        if self.slot_probabilities is not None:
            row["slot_probabilities"] = self.slot_probabilities
        return row


class Sampler:
    """Draws rankings from a policy, each by the seed and the display's key alone.

    It holds no state: threads and coroutines may share one, and the same key gives the same ranking again.

    Parameters
    ----------
    policy: an object of this package, or a table as in the settings file without the names of columns.
    slots: K, how many items a display shows; fewer where it has fewer candidates.
    seed: from 0 to 2^63 − 1; the settings file has it as `[control] replay_seed`.

    >>> sampler = Sampler({"policy": "plackett-luce", "temperature": 0.5}, slots=2, seed=7)
    >>> sampler.draw([0.3, 1.2, 0.7], candidates=["bread", "milk", "tea"], key=1042).ranking
    ['milk', 'tea']
    """

    def __init__(self, policy: ServingPolicy | Mapping[str, Any], slots: int, seed: int) -> None:
        check_integer("slots", slots, 1)
        check_integer("seed", seed, 0, LARGEST_SEED)
        self.policy = policy_from_table(policy) if isinstance(policy, Mapping) else policy
        if isinstance(self.policy, type) or not callable(getattr(self.policy, "draw", None)):
            raise BadInput(
                f"policy = {policy!r}: expected a policy of foretest.serving, as in PlackettLuce(temperature=0.5), or a"
                ' table, as in {"policy": "plackett-luce", "temperature": 0.5}.'
            )
        self.slots, self.seed = int(slots), int(seed)
        self._of_seed = seed_state(self.seed)

    def __repr__(self) -> str:
        return f"Sampler({self.policy!r}, slots={self.slots}, seed={self.seed})"

    def draw(
        self, scores: Any, candidates: Sequence[Any] | None = None, *, key: int | str, slot_probabilities: bool = False
    ) -> Draw:
        """A ranking of a display's candidates.

        Parameters
        ----------
        scores: one finite number per candidate, a list or an array.
        candidates: the ids of the candidates, in the order of the scores; without, rankings are positions.
        key: the display's id, an integer or text, never used for another display.
        slot_probabilities: also compute how likely each shown item was in its slot.
        """
        numbers = partial(uniforms, display_state(self._of_seed, key))
        return self._drawn(scores, candidates, key, numbers, slot_probabilities)

    def draw_by(self, scores: Any, candidates: Sequence[Any] | None, numbers: Numbers) -> Draw:
        """A ranking from given uniform numbers instead of those of a key: for test vectors."""
        return self._drawn(scores, candidates, "", numbers, by_slot=False)

    def _drawn(
        self, scores: Any, candidates: Sequence[Any] | None, key: int | str, numbers: Numbers, by_slot: bool
    ) -> Draw:
        checked = Scores.of(scores)
        ids = None if candidates is None else _ids(candidates, len(checked.values))
        ranking, log_prob = self.policy.draw(checked, min(self.slots, len(checked.values)), numbers)
        marginals = self.policy.slot_probabilities(checked, ranking) if by_slot else None
        shown = ranking if ids is None else [ids[item] for item in ranking]
        # a sum that is 1 but for rounding is no probability above 1
        below_1 = None if marginals is None else [min(p, 1.0) for p in marginals]
        return Draw(shown, min(log_prob, 0.0), below_1, key, checked.values, ids)


def _ids(candidates: Sequence[Any], count: int) -> list[Any]:
    """The ids as a list, one per score, none of them twice: all integers, or all text, as a log can have them."""
    if isinstance(candidates, str | bytes | Set) or not isinstance(candidates, Iterable):
        order = " A set has no order, and scores are in the order of the candidates." * isinstance(candidates, Set)
        raise BadInput(f"candidates are a {type(candidates).__name__}: expected a list of ids, one per score.{order}")
    ids: list[Any] = candidates.tolist() if hasattr(candidates, "tolist") else list(candidates)
    if len(ids) != count:
        raise BadInput(f"there are {len(ids)} candidates and {count} scores: expected one score per candidate.")
    kinds = set(map(type, ids))
    if kinds != {str} and kinds != {int}:  # which is quick
        _check_kinds(ids, kinds)
    if len(set(ids)) < count:
        raise BadInput("a candidate is listed twice: list each eligible item once.")
    return ids


def _check_kinds(ids: list[Any], kinds: set[type]) -> None:
    """Refuse ids of which some are neither integers nor text, and both among each other."""
    wrong = next((kind for kind in kinds if not issubclass(kind, str | int | np.integer) or kind is bool), None)
    if wrong is not None:
        one = next(one for one in ids if type(one) is wrong)
        raise BadInput(f"candidate {one!r} is a {wrong.__name__}: expected ids, all integers or all text.")
    if any(issubclass(kind, str) for kind in kinds) and not all(issubclass(kind, str) for kind in kinds):
        raise BadInput(
            "some candidates are integers and others text: expected ids of one kind, all integers or all text."
        )
