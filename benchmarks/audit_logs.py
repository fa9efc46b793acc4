"""Right logs, and what logs are made of: the material of `audit_power.py`.

Every policy is drawn in plain NumPy, or by a simulated world, never by the classes that the audit is run with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import foretest as ft
from foretest.simulate import WORLDS, World, simulate_log

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Generator = np.random.Generator


class Case(NamedTuple):
    """A log with the test that a user makes of it."""

    table: pa.Table
    columns: ft.LogColumns
    control: Any
    treatment: Any
    is_run: bool = False  # `run`, whose verdicts are looked at; else `check`, which is quicker

    def result(self) -> Any:
        """What the user gets. Verdicts need an estimator and some resamples; the audit and the questions neither."""
        test = ft.OfflineTest(
            log=self.columns, control=self.control, treatment=self.treatment,
            estimators=["is", "cis", "point-ncis", "point-ncis-adaptive"] if self.is_run else ["cis"], n_resamples=20,
        )  # fmt: skip
        return test.run(self.table, threads=1) if self.is_run else test.check(self.table, threads=1)


Maker = Callable[[Generator, int], Case]


# -- columns ----------------------------------------------------------------------------------------------------------


def lists(values: npt.NDArray[Any], lengths: Ints | None = None) -> pa.Array:
    """A list column: the rows of a matrix, each up to its length."""
    lengths = np.full(len(values), values.shape[1]) if lengths is None else lengths
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    flat = values[np.arange(values.shape[1]) < lengths[:, None]]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))


def put(table: pa.Table, name: str, column: Any) -> pa.Table:
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, pa.array(column) if isinstance(column, np.ndarray) else column)


def shown_of(table: pa.Table) -> Ints:
    shown = table["ranking"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return shown.reshape(table.num_rows, -1).astype(np.int64)


def lengths_of(table: pa.Table) -> Ints:
    return np.asarray(pa.compute.list_value_length(table["control_scores"]).to_numpy(), np.int64)


def scores_of(table: pa.Table, column: str = "control_scores") -> Floats:
    """A policy's scores, −inf beyond a row's candidates."""
    lengths = lengths_of(table)
    out = np.full((table.num_rows, int(lengths.max())), -np.inf)
    flat = table[column].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    out[np.arange(out.shape[1]) < lengths[:, None]] = flat
    return out


def log_prob(scores: Floats, shown: Ints) -> Floats:
    """Plackett-Luce's log-probability of what was shown."""
    left, rows, total = scores.copy(), np.arange(len(scores)), np.zeros(len(scores))
    for item in shown.T:
        most = left.max(axis=1)
        total += left[rows, item] - most - np.log(np.exp(left - most[:, None]).sum(axis=1))
        left[rows, item] = -np.inf
    return total


# -- simulated worlds -------------------------------------------------------------------------------------------------

WORLD_COLUMNS = ft.LogColumns(
    rewards=["click"], unit="user", ranking="ranking", id="display_id", date="day",
    features=["group", "recency", "activity"],
)  # fmt: skip


def small(name: str, **changes: Any) -> World:
    return replace(WORLDS[name], candidates=12, min_candidates=8, slots=3, **changes)


PAPER = small("paper")


def simulated(world: World, rows: int, g: Generator) -> pa.Table:
    return pa.Table.from_batches(list(simulate_log(world, rows, int(g.integers(2**31)))))


def world_case(table: pa.Table, control: Any = None, candidates: str | None = None) -> Case:
    columns = WORLD_COLUMNS if candidates is None else replace(WORLD_COLUMNS, candidates=candidates)
    return Case(table, columns, control or ft.PlackettLuce("control_scores"), ft.PlackettLuce("treatment_scores", 1.0))


def plain(world: World) -> Maker:
    return lambda g, rows: world_case(simulated(world, rows, g))


def with_ids(g: Generator, rows: int) -> Case:
    """Items with ids, 60 in all, the popular ones eligible more often; a probability logged in single precision."""
    table = simulated(PAPER, rows, g)
    shown, lengths = shown_of(table), lengths_of(table)
    popular = g.standard_exponential((rows, 60)) * np.arange(1, 61)  # a race: the 12 first are eligible
    ids = np.argsort(popular, axis=1)[:, :12].astype(np.int32)
    table = put(table, "items", lists(ids, lengths))
    table = put(table, "ranking", lists(np.take_along_axis(ids, shown, axis=1)))
    table = put(table, "log_p", log_prob(scores_of(table), shown).astype(np.float32))
    return world_case(table, ft.PlackettLuce("control_scores", log_prob="log_p"), "items")


def logged_world(world: World) -> Maker:
    """A world of which only the probabilities of what was shown are known."""

    def make(g: Generator, rows: int) -> Case:
        table = simulated(world, rows, g)
        for name, column in (("p", "control_scores"), ("t", "treatment_scores")):
            table = put(table, name, log_prob(scores_of(table, column), shown_of(table)))
        return Case(table, WORLD_COLUMNS, ft.Logged(log_prob="p"), ft.Logged(log_prob="t"))

    return make


# -- plain logs of every policy ---------------------------------------------------------------------------------------


class Scores(NamedTuple):
    """What both models say of the candidates, by display, and what there is to know of the displays."""

    control: Floats
    treatment: Floats
    appeal: Floats
    user: Ints
    group: Ints


def scores(g: Generator, rows: int, *, items: int = 8, sharpness: float, distance: float, users: bool) -> Scores:
    """A new model that is `distance` away from the control, farther in some groups; 4 displays a user, or 1."""
    appeal, user = g.normal(size=(rows, items)), g.integers(0, rows // 4, rows) if users else np.arange(rows)
    group = (user * 2654435761 % 2**32) % 5
    control = sharpness * (0.5 * appeal + 0.85 * g.normal(size=appeal.shape))
    change = 0.6 * appeal + 0.5 * g.normal(size=appeal.shape)
    return Scores(control, control + distance * change * (0.5 + 0.25 * group[:, None]), appeal, user, group)


LIGHT = {"sharpness": 1.0, "distance": 0.5}
HEAVY = {"sharpness": 2.0, "distance": 1.5}


def clicks(g: Generator, appeal: Floats, shown: Ints) -> Floats:
    worth = np.take_along_axis(appeal, shown, axis=1).mean(axis=1)
    return (g.random(len(shown)) < np.minimum(0.15 * np.exp(0.5 * worth), 0.95)).astype(float)


def by_noise(noise: Floats, s: Floats, slots: int) -> Ints:
    """Plackett-Luce with Gumbel noise, Thurstone with Gaussian."""
    return np.argsort(-(s + noise), axis=1)[:, :slots]


def by_rank(draw: Callable[[int], Ints], s: Floats, slots: int) -> Ints:
    """Slot by slot the item left whose rank is drawn, of as many as are left: Mallows and epsilon-greedy."""
    left, shown = np.argsort(-s, axis=1, kind="stable"), np.empty((len(s), slots), np.int64)
    for slot in range(slots):
        rank = draw(left.shape[1])
        shown[:, slot] = left[np.arange(len(s)), rank]
        left = left[np.arange(left.shape[1]) != rank[:, None]].reshape(len(s), -1)
    return shown


def greedy_ranks(g: Generator, rows: int, epsilon: float) -> Callable[[int], Ints]:
    return lambda left: np.where(g.random(rows) < epsilon, g.integers(0, left, rows), 0)


def mallows_ranks(g: Generator, rows: int, dispersion: float) -> Callable[[int], Ints]:
    return lambda left: g.choice(left, rows, p=(odds := dispersion ** np.arange(left)) / odds.sum())


def scored(g: Generator, s: Scores, shown: Ints, control: Any, treatment: Any) -> Case:
    """The test of two policies with scores."""
    rows = len(shown)
    table = pa.table({
        "p": lists(s.control), "t": lists(s.treatment), "ranking": lists(shown), "click": clicks(g, s.appeal, shown),
        "user": s.user, "id": np.arange(rows), "group": s.group, "day": np.arange(rows) * 7 // rows + 1,
    })  # fmt: skip
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", features=["group"], date="day")
    return Case(table, columns, control, treatment)


def logged(s: Scores, click: Floats, log_p: Floats, log_t: Floats) -> Case:
    """The test of two policies of which only the probabilities of what was shown are known."""
    rows = len(click)
    table = pa.table({
        "p": np.minimum(log_p, 0.0), "t": np.minimum(log_t, 0.0), "click": click, "user": s.user[:rows],
        "group": s.group[:rows], "day": np.arange(rows) * 7 // rows + 1,
    })  # fmt: skip
    columns = ft.LogColumns(rewards=["click"], unit="user", features=["group"], date="day")
    return Case(table, columns, ft.Logged(log_prob="p"), ft.Logged(log_prob="t"))


def plackett_luce(weights: dict[str, float], slots: int, *, users: bool, is_logged: bool = False) -> Maker:
    def make(g: Generator, rows: int) -> Case:
        s = scores(g, rows, **weights, users=users)
        shown = by_noise(g.gumbel(size=s.control.shape), s.control, slots)
        if is_logged:
            return logged(s, clicks(g, s.appeal, shown), log_prob(s.control, shown), log_prob(s.treatment, shown))
        return scored(g, s, shown, ft.PlackettLuce("p"), ft.PlackettLuce("t"))

    return make


def thurstone(g: Generator, rows: int) -> Case:
    s = scores(g, rows, items=4, **LIGHT, users=False)
    shown = by_noise(g.normal(size=s.control.shape), s.control, 2)
    return scored(g, s, shown, ft.Thurstone("p"), ft.Thurstone("t"))


def mallows(g: Generator, rows: int) -> Case:
    s = scores(g, rows, **LIGHT, users=True)
    shown = by_rank(mallows_ranks(g, rows, 0.7), s.control, 3)
    return scored(g, s, shown, ft.Mallows("p", 0.7), ft.Mallows("t", 0.7))


def epsilon_greedy(slots: int, *, users: bool) -> Maker:
    def make(g: Generator, rows: int) -> Case:
        s = scores(g, rows, **LIGHT, users=users)
        shown = by_rank(greedy_ranks(g, rows, 0.3), s.control, slots)
        return scored(g, s, shown, ft.EpsilonGreedy("p", 0.3), ft.EpsilonGreedy("t", 0.1))

    return make


def mixture(g: Generator, rows: int) -> Case:
    """Nine displays of ten by Plackett-Luce, the tenth by epsilon-greedy."""
    s = scores(g, rows, **LIGHT, users=True)
    parts = by_noise(g.gumbel(size=s.control.shape), s.control, 3), by_rank(greedy_ranks(g, rows, 0.5), s.control, 3)
    shown = np.where((g.random(rows) < 0.9)[:, None], *parts)
    control = ft.Mixture([(0.9, ft.PlackettLuce("p")), (0.1, ft.EpsilonGreedy("p", 0.5))])
    return scored(g, s, shown, control, ft.PlackettLuce("t"))


def logged_bandit(g: Generator, rows: int) -> Case:
    """One slot, 10 items, both policies epsilon-greedy: a probability is one of two numbers."""
    s = scores(g, rows, items=10, **HEAVY, users=False)
    shown = by_rank(greedy_ranks(g, rows, 0.3), s.control, 1)
    log_p, log_t = (np.log(0.7 * (shown[:, 0] == x.argmax(axis=1)) + 0.03) for x in (s.control, s.treatment))
    return logged(s, clicks(g, s.appeal, shown), log_p, log_t)


def logged_control(g: Generator, rows: int) -> Case:
    """The control has its probabilities alone, the treatment scores."""
    s = scores(g, rows, **LIGHT, users=True)
    shown = by_noise(g.gumbel(size=s.control.shape), s.control, 3)
    case = scored(g, s, shown, ft.Logged(log_prob="log_p"), ft.PlackettLuce("t"))
    return case._replace(table=put(case.table.drop_columns(["p"]), "log_p", log_prob(s.control, shown)))


RIGHT_LOGS: dict[str, Maker] = {
    "world `paper`, 3 slots": plain(PAPER),
    "world `sharp`: a nearly deterministic control": plain(small("sharp")),
    "world `no-overlap`: heavier weights": plain(small("no-overlap")),
    "world `dense`: light weights": plain(small("dense")),
    "world `paper`, 4 displays a user": plain(small("paper", displays_per_user=4.0)),
    "world `no-overlap`, 4 displays a user, all alike": plain(small("no-overlap", displays_per_user=4.0, sticky=True)),
    "world `paper`, item ids and a logged probability": with_ids,
    "plackett-luce, 3 slots, heavy weights, 4 displays a user": plackett_luce(HEAVY, 3, users=True),
    "plackett-luce, 1 slot, light weights": plackett_luce(LIGHT, 1, users=False),
    "plackett-luce, 1 slot, heavy weights, 4 displays a user": plackett_luce(HEAVY, 1, users=True),
    "thurstone, 2 slots": thurstone,
    "mallows, 3 slots, 4 displays a user": mallows,
    "epsilon-greedy, 3 slots, 4 displays a user": epsilon_greedy(3, users=True),
    "epsilon-greedy, 1 slot": epsilon_greedy(1, users=False),
    "mixture of plackett-luce and epsilon-greedy, 3 slots, 4 displays a user": mixture,
    "logged, 3 slots, light weights": plackett_luce(LIGHT, 3, users=False, is_logged=True),
    "logged, 3 slots, heavy weights, 4 displays a user": plackett_luce(HEAVY, 3, users=True, is_logged=True),
    "logged, 1 slot, light weights, 4 displays a user": plackett_luce(LIGHT, 1, users=True, is_logged=True),
    "logged, 1 slot, epsilon-greedy, heavy weights": logged_bandit,
    "logged control, treatment with scores, 4 displays a user": logged_control,
    "logged, world `no-overlap`": logged_world(small("no-overlap")),
    "logged, world `no-overlap`, 4 displays a user, all alike": logged_world(
        small("no-overlap", displays_per_user=4.0, sticky=True)
    ),
}
