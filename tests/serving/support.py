"""Every policy of a service beside the one of the same name that Foretest analyses with."""

from __future__ import annotations

from typing import Any

import numpy as np

from foretest import policies as analysed
from foretest import serving
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.kernels.hashing import hash_integers

TABLES: dict[str, dict[str, Any]] = {
    "plackett-luce": {"policy": "plackett-luce", "temperature": 0.5},
    "epsilon-greedy": {"policy": "epsilon-greedy", "epsilon": 0.3},
    "greedy": {"policy": "epsilon-greedy", "epsilon": 0.0},
    "random": {"policy": "epsilon-greedy", "epsilon": 1.0},
    "mallows": {"policy": "mallows", "dispersion": 0.6},
    "swap-neighbours": {"policy": "swap-neighbours", "swap": 0.3},
    "top-k": {"policy": "top-k"},
    "exploring share": {
        "policy": "mixture",
        "components": [
            {"share": 9.0, "policy": "top-k"},
            {"share": 1.0, "policy": "plackett-luce", "temperature": 2.0},
        ],
    },
    "three parts": {
        "policy": "mixture",
        "components": [
            {"share": 0.2, "policy": "mallows", "dispersion": 0.3},
            {"share": 0.3, "policy": "swap-neighbours", "swap": 0.2},
            {"share": 0.5, "policy": "epsilon-greedy", "epsilon": 0.4},
        ],
    },
}


def analysed_policy(table: dict[str, Any], scores: str = "s", **more: Any) -> Any:
    """The policy of an analysis that a service's table describes."""
    numbers = {key: value for key, value in table.items() if key != "policy"}
    if table["policy"] == "mixture":
        parts = [
            ({**part}.pop("share"), {k: v for k, v in part.items() if k != "share"}) for part in table["components"]
        ]
        return analysed.Mixture([(share, analysed_policy(part, scores)) for share, part in parts], **more)
    return analysed.POLICIES[table["policy"]](scores, **numbers, **more)


def displays_of(lists: list[Any], rankings: list[list[int]], keys: list[int]) -> Displays:
    """Displays with these scores, what they show, and their ids."""
    shown = Ragged.of([np.array(ranking, np.int32) for ranking in rankings])
    return Displays({"s": Ragged.of(lists)}, shown, np.array([len(s) for s in lists]), hash_integers(np.array(keys)))


def some_draws(table: dict[str, Any], displays: int, seed: int, **options: Any) -> tuple[Displays, list[serving.Draw]]:
    """Draws of a service for displays of 1 to 30 candidates, ties among them and more slots than some have."""
    g = np.random.default_rng(seed)
    lists, draws = [], []
    for key in range(displays):
        m = int(g.integers(1, 31))
        scores = np.round(g.normal(size=m) * g.choice([1.0, 3.0, 10.0]), 1)
        slots = int(g.integers(1, m + 3))
        lists.append(scores)
        draws.append(serving.Sampler(table, slots, seed=seed).draw(scores, key=key, **options))
    return displays_of(lists, [draw.ranking for draw in draws], list(range(displays))), draws
