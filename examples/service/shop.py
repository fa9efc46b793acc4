"""The shop of the example: what each model scores, and how its users really behave, which a real shop does not know."""

from __future__ import annotations

from itertools import permutations

import numpy as np

SLOTS, TEMPERATURE, SEED = 3, 0.5, 7
GROUPS, CANDIDATES = 4, 6
CATALOGUE = ["bread", "milk", "tea", "jam", "rice", "oil", "salt", "soap", "eggs", "corn", "figs", "nuts"]

_g = np.random.default_rng(2024)
_eligible = np.array([_g.permutation(len(CATALOGUE))[:CANDIDATES] for _ in range(GROUPS)])
_liking = _g.normal(0.0, 1.0, (GROUPS, CANDIDATES))
_old = 0.5 * _liking + _g.normal(0.0, 0.5, _liking.shape)
_new = 0.9 * _liking + _g.normal(0.0, 0.2, _liking.shape)

LOOKED_AT = (0.9, 0.6, 0.4)  # how likely a user looks at each slot
CLICKED = 1.0 / (1.0 + np.exp(1.0 - _liking))  # and then clicks, by group and candidate


def candidates(user: int) -> list[str]:
    """What may be shown to a user."""
    return [CATALOGUE[item] for item in _eligible[user % GROUPS]]


def old_scores(user: int) -> list[float]:
    """The model in production."""
    return [float(score) for score in _old[user % GROUPS]]


def new_scores(user: int) -> list[float]:
    """The model that somebody would like to try."""
    return [float(score) for score in _new[user % GROUPS]]


def clicks(user: int, ranking: list[str], luck: np.random.Generator) -> list[str]:
    """The items of a ranking that a user clicks."""
    liking = dict(zip(candidates(user), CLICKED[user % GROUPS], strict=True))
    shown = zip(ranking, LOOKED_AT, strict=True)
    return [item for item, looks in shown if luck.random() < looks * liking[item]]


def true_clicks(scores: np.ndarray) -> float:
    """The expected clicks of a display under a model: the sum over all rankings of each group, no simulation."""
    total = 0.0
    for group in range(GROUPS):
        odds = np.exp(scores[group] / TEMPERATURE)
        for ranking in permutations(range(CANDIDATES), SLOTS):
            left = odds.sum() - np.cumsum([0.0, *odds[list(ranking[:-1])]])
            probability = np.prod(odds[list(ranking)] / left)
            total += probability * np.dot(LOOKED_AT, CLICKED[group, list(ranking)])
    return float(total / GROUPS)


def true_uplift() -> float:
    """What an online test of endless length would show."""
    return true_clicks(_new) / true_clicks(_old) - 1.0
