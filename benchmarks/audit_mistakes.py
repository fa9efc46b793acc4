"""Natural mistakes: logs as users make them, and how the user should be told of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from audit_logs import (
    Case,
    Floats,
    Generator,
    Ints,
    Maker,
    Scores,
    by_noise,
    clicks,
    lists,
    log_prob,
    logged,
    put,
    scored,
)

import foretest as ft

LONG = (20_000,)
POSSIBLE_WEIGHTS = ("possible weights: fail", "possible weights: warn")
OR_ORDER = (*POSSIBLE_WEIGHTS, "asked: order of rows")
OR_UNVERIFIED = (*POSSIBLE_WEIGHTS, "unverified")  # where the weights may be as those of right probabilities


class Mistake(NamedTuple):
    """A mistake, and the signs by which a user knows of it."""

    name: str
    make: Maker
    told_by: tuple[str, ...]
    sizes: tuple[int, ...] = LONG


class Shown(NamedTuple):
    """Displays of two Plackett-Luce policies, and what the control showed."""

    scores: Scores
    shown: Ints

    def log_probs(self) -> tuple[Floats, Floats]:
        return log_prob(self.scores.control, self.shown), log_prob(self.scores.treatment, self.shown)


def draw(g: Generator, rows: int) -> Shown:
    """Logs of many kinds: 6 to 12 items, 2 or 3 slots; the treatment refines the control, or is a model of its own."""
    items, slots, sharpness = int(g.integers(6, 13)), int(g.integers(2, 4)), g.uniform(0.7, 2.0)
    appeal = g.normal(size=(rows, items))

    def model(knows: float, sharpness: float) -> Floats:
        return np.asarray(sharpness * (knows * appeal + np.sqrt(1.0 - knows**2) * g.normal(size=appeal.shape)))

    control = model(g.uniform(0.3, 0.8), sharpness)
    if g.random() < 0.5:
        treatment = control + g.uniform(0.3, 1.0) * appeal + 0.3 * g.normal(size=appeal.shape)
    else:
        treatment = model(g.uniform(0.3, 0.9), sharpness * np.exp(0.3 * g.normal()))
    user = g.integers(0, rows // 3, rows)
    s = Scores(control, treatment, appeal, user, user % 5)
    return Shown(s, by_noise(g.gumbel(size=control.shape), control, slots))


# -- logged probabilities ---------------------------------------------------------------------------------------------


def probabilities(wrong: Callable[[Shown], tuple[Floats, Floats]]) -> Maker:
    def make(g: Generator, rows: int) -> Case:
        d = draw(g, rows)
        return logged(d.scores, clicks(g, d.scores.appeal, d.shown), *wrong(d))

    return make


def arms_swapped(d: Shown) -> tuple[Floats, Floats]:
    log_p, log_t = d.log_probs()
    return log_t, log_p


def control_off_by_one(d: Shown) -> tuple[Floats, Floats]:
    log_p, log_t = d.log_probs()
    return np.roll(log_p, 1), log_t


def treatment_off_by_one(d: Shown) -> tuple[Floats, Floats]:
    log_p, log_t = d.log_probs()
    return log_p, np.roll(log_t, 1)


def treatment_of_slot_one(d: Shown) -> tuple[Floats, Floats]:
    return log_prob(d.scores.control, d.shown), log_prob(d.scores.treatment, d.shown[:, :1])


def control_of_slot_one(d: Shown) -> tuple[Floats, Floats]:
    return log_prob(d.scores.control, d.shown[:, :1]), log_prob(d.scores.treatment, d.shown)


def base_ten(d: Shown) -> tuple[Floats, Floats]:
    log_p, log_t = d.log_probs()
    return log_p / np.log(10.0), log_t / np.log(10.0)


def softmaxes(scores: Floats, shown: Ints) -> Floats:
    one = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    return np.asarray(np.take_along_axis(one, shown, axis=1).sum(axis=1))


def control_by_softmaxes(d: Shown) -> tuple[Floats, Floats]:
    return softmaxes(d.scores.control, d.shown), log_prob(d.scores.treatment, d.shown)


def both_by_softmaxes(d: Shown) -> tuple[Floats, Floats]:
    return softmaxes(d.scores.control, d.shown), softmaxes(d.scores.treatment, d.shown)


def marginal_frequencies(d: Shown) -> tuple[Floats, Floats]:
    codes = d.shown @ (d.scores.control.shape[1] ** np.arange(d.shown.shape[1]))
    return np.log(np.bincount(codes)[codes] / len(codes)), log_prob(d.scores.treatment, d.shown)


def chosen_by_reward(negatives: float) -> Maker:
    """Clicked rows and a share of the others; `rows` of them."""

    def make(g: Generator, rows: int) -> Case:
        d = draw(g, int(rows / (0.12 + 0.88 * negatives)))
        click = clicks(g, d.scores.appeal, d.shown)
        there = np.flatnonzero((click > 0) | (g.random(len(click)) < negatives))[:rows]
        log_p, log_t = d.log_probs()
        return logged(Scores(*(x[there] for x in d.scores)), click[there], log_p[there], log_t[there])

    return make


# -- treatments, rewards and units ------------------------------------------------------------------------------------


def plackett_luce(g: Generator, d: Shown) -> Case:
    return scored(g, d.scores, d.shown, ft.PlackettLuce("p"), ft.PlackettLuce("t"))


def treatment(wrong: Callable[[Generator, Scores], Floats]) -> Maker:
    def make(g: Generator, rows: int) -> Case:
        d = draw(g, rows)
        return plackett_luce(g, d._replace(scores=d.scores._replace(treatment=wrong(g, d.scores))))

    return make


def softmax(scores: Floats) -> Floats:
    return np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))


def ranks(scores: Floats) -> Floats:
    return np.asarray(np.argsort(np.argsort(-scores, axis=1), axis=1) + 1.0)


def totals(g: Generator, rows: int) -> Case:
    case = plackett_luce(g, draw(g, rows))
    user = case.table["user"].to_numpy()
    total = np.bincount(user, case.table["click"].to_numpy())[user]
    return case._replace(table=put(case.table, "click", pa.array(total)))


def no_unit(g: Generator, rows: int) -> Case:
    case = plackett_luce(g, draw(g, rows))
    return case._replace(columns=ft.LogColumns(rewards=["click"], ranking="ranking", id="id"))


# -- what the control never shows -------------------------------------------------------------------------------------


def bandit(share: float, floor: float, *, worse_elsewhere: bool = False, is_run: bool = True) -> Maker:
    """The control shows three of four items evenly, and the last never: its score is `floor`. The treatment puts
    `share` on it and the rest evenly, or, to earn less there, on the two worse ones."""

    def make(g: Generator, rows: int) -> Case:
        shown = g.integers(0, 3, rows)
        others = np.array([0.0, 0.5, 0.5]) if worse_elsewhere else np.full(3, 1.0 / 3.0)
        log_t = np.log(np.maximum(np.append((1.0 - share) * others, share), 1e-300))
        rate = np.where(shown == 0, 0.4, 0.2) if worse_elsewhere else np.full(rows, 0.2)
        table = pa.table({
            "click": (g.random(rows) < rate).astype(float), "ranking": shown, "id": np.arange(rows),
            "p": lists(np.tile([0.0, 0.0, 0.0, floor], (rows, 1))), "t": lists(np.tile(log_t, (rows, 1))),
        })  # fmt: skip
        columns = ft.LogColumns(rewards=["click"], ranking="ranking", id="id")
        return Case(table, columns, ft.PlackettLuce("p"), ft.PlackettLuce("t"), is_run)

    return make


def floored_rows(g: Generator, rows: int) -> Case:
    """One row in a hundred was shown by another policy, and has a floor under both of these."""
    d = draw(g, rows)
    floored = g.random(rows) < 0.01
    log_p, log_t = (np.where(floored, -700.0, x) for x in d.log_probs())
    return logged(d.scores, clicks(g, d.scores.appeal, d.shown), log_p, log_t)


class ProductOfSoftmaxes:
    """An own policy whose probabilities of all rankings sum to less than 1."""

    def __init__(self, scores: str) -> None:
        self.columns = self.score_columns = (scores,)

    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> Any:
        s = displays[self.columns[0]].padded(-np.inf)
        log_p = s - np.logaddexp.reduce(s, axis=1, keepdims=True)
        row = np.repeat(np.arange(len(rankings)), rankings.lengths)
        return np.bincount(row, log_p[row, rankings.flat()], minlength=len(rankings))

    def sample(self, displays: ft.Displays, uniforms: Floats) -> Any:
        return ft.PlackettLuce(self.columns[0]).sample(displays, uniforms)


def own_policy(g: Generator, rows: int) -> Case:
    """As the treatment: of a control, other tests would see it too."""
    return plackett_luce(g, draw(g, rows))._replace(treatment=ProductOfSoftmaxes("t"))


ORDER, NOT_SCORES = ("asked: order of items",), ("asked: not scores",)
NO_SUPPORT, NEVER_SHOWN = ("insufficient: the log supports only a part",), ("asked: never shown",)

MISTAKES = [
    Mistake("logged: arms swapped", probabilities(arms_swapped), POSSIBLE_WEIGHTS),
    Mistake("logged: the treatment's column off by one row", probabilities(treatment_off_by_one), OR_ORDER),
    Mistake("logged: the control's column off by one row", probabilities(control_off_by_one), OR_ORDER),
    Mistake("logged: slot 1 for the ranking, treatment", probabilities(treatment_of_slot_one), POSSIBLE_WEIGHTS),
    Mistake("logged: slot 1 for the ranking, control", probabilities(control_of_slot_one), OR_UNVERIFIED),
    Mistake("logged: log10 for ln", probabilities(base_ten), POSSIBLE_WEIGHTS, (20_000, 100_000, 200_000)),
    Mistake("logged: product of softmaxes, control", probabilities(control_by_softmaxes), POSSIBLE_WEIGHTS,
            (20_000, 50_000, 100_000)),
    Mistake("logged: product of softmaxes, both columns", probabilities(both_by_softmaxes), OR_UNVERIFIED),
    Mistake("logged: marginal frequencies", probabilities(marginal_frequencies), POSSIBLE_WEIGHTS),
    Mistake("logged: clicked rows only", chosen_by_reward(0.0), ("asked: reward in every row",)),
    Mistake("logged: 4 of 5 rows without a click dropped", chosen_by_reward(0.2), OR_UNVERIFIED),
    Mistake("logged: floored probabilities in 1 % of rows", floored_rows, POSSIBLE_WEIGHTS),
    Mistake("treatment scores in another item order", treatment(lambda g, s: g.permuted(s.treatment, axis=1)), ORDER),
    Mistake("treatment scores of another display", treatment(lambda g, s: np.roll(s.treatment, 1, axis=0)), ORDER),
    Mistake("softmax outputs for scores", treatment(lambda g, s: softmax(s.treatment)), NOT_SCORES),
    Mistake("click rates for scores", treatment(lambda g, s: 1 / (1 + np.exp(3 - 0.5 * s.treatment))), NOT_SCORES),
    Mistake("ranks for scores, 1 the best", treatment(lambda g, s: ranks(s.treatment)), NOT_SCORES),
    Mistake("identical policies", treatment(lambda g, s: s.control), ("asked: identical policies",)),
    Mistake("a user's total joined to every display", totals, ("asked: reward constant within units",)),
    Mistake("a user column, and no unit", no_unit, ("asked: unit column",)),
    Mistake("60 % of the treatment never shown", bandit(0.6, -700.0), NO_SUPPORT),
    Mistake("90 % of the treatment never shown", bandit(0.9, -700.0), NO_SUPPORT),
    Mistake("60 % never shown, the rest earns less", bandit(0.6, -700.0, worse_elsewhere=True), NO_SUPPORT),
    Mistake("a control whose zeros are e⁻⁷⁰⁰, 30 % of the treatment there", bandit(0.3, -700.0, is_run=False),
            NEVER_SHOWN),
    Mistake("an own treatment whose probabilities do not sum to 1", own_policy, ("own policy: fail",)),
]  # fmt: skip
