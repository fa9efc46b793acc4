"""Small logs whose policies choose from lists of their own, with every ranking of the union enumerated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import foretest as ft
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.policies.adapter import as_policy

THETA = np.array([1.0, 0.6, 0.4])
LOG = ft.LogColumns(rewards=["click"], unit="user", ranking="shown", slot_rewards={"click": "slot_click"})
CONTROL, TREATMENT, OTHER = "control_items", "treatment_items", "other_items"


def policies(scores: str, ranking: str) -> dict[str, ft.Policy]:
    """Every policy that may have a list of its own, by name."""
    return {
        "plackett-luce": ft.PlackettLuce(scores),
        "thurstone": ft.Thurstone(scores),
        "mallows": ft.Mallows(scores, 0.6),
        "epsilon-greedy": ft.EpsilonGreedy(scores, 0.5),
        "swap-neighbours": ft.SwapNeighbours(scores, 0.3),
        "top-k": ft.TopK(scores),
        "fixed": ft.Fixed(ranking),
        "mixture": ft.Mixture([(1, ft.PlackettLuce(scores)), (2, ft.EpsilonGreedy(scores, 0.2))]),
    }


class OwnRow(NamedTuple):
    """One policy's part in a row: its list of ids, scores in its order, and a fixed ranking of ids."""

    items: list[int]
    scores: np.ndarray
    fixed: list[int]


class OwnLog:
    """Rows with lists of 3 to 5 items of 7 for each policy, in any order; the control shows K of its own."""

    def __init__(self, control: ft.Policy, rows: int = 60, k: int = 2, seed: int = 0) -> None:
        g = np.random.default_rng(seed)
        self.rows, self.k = rows, k
        self.lists = {name: [self._row(g) for _ in range(rows)] for name in (CONTROL, TREATMENT, OTHER)}
        self.shown = []
        for i in range(rows):
            rankings, p = self.priced(control, CONTROL, i, self.lists[CONTROL][i].items)
            self.shown.append(rankings[int(g.choice(len(rankings), p=p / p.sum()))])
        self.user = g.integers(0, 40, rows)
        self.slots = np.eye(k)[g.integers(0, k, rows)] * (g.random(rows) < 0.7)[:, None]

    def _row(self, g: np.random.Generator) -> OwnRow:
        items = g.permutation(7)[: g.integers(3, 6)].tolist()
        return OwnRow(items, g.normal(size=len(items)), g.permutation(items)[: self.k].tolist())

    def union(self, i: int, treatment: str = TREATMENT) -> list[int]:
        first = self.lists[CONTROL][i].items
        return first + [item for item in self.lists[treatment][i].items if item not in first]

    def priced(self, policy: Any, name: str, i: int, union: list[int]) -> tuple[list[tuple[int, ...]], np.ndarray]:
        """All rankings of `union`, as ids, and their probabilities under a policy whose list `name` has: 0 for those
        with an item outside of it."""
        row, every = self.lists[name][i], list(permutations(union, self.k))
        inside = [a for a, ranking in enumerate(every) if set(ranking) <= set(row.items)]
        own = Ragged.of(np.array([[row.items.index(item) for item in every[a]] for a in inside], np.int32))
        n, m = len(inside), len(row.items)
        columns = {
            name.replace("items", "scores"): Ragged.of([row.scores] * n),
            name.replace("items", "fixed"): Ragged.of([np.array([row.items.index(x) for x in row.fixed])] * n),
        }
        displays = Displays(columns, own, np.full(n, m), np.zeros(n, np.uint64))
        out = np.zeros(len(every))
        out[inside] = np.exp(as_policy(policy).log_prob(displays, own))
        return every, out

    def table(self, ids: Any = lambda item: item, kind: pa.DataType | None = None) -> pa.Table:
        kind = pa.int64() if kind is None else kind
        columns: dict[str, Any] = {
            "click": self.slots.sum(axis=1), "user": self.user, "slot_click": pa.array(self.slots.tolist()),
            "shown": self._ids([list(map(int, row)) for row in self.shown], ids, kind),
            "id": np.arange(self.rows),
        }  # fmt: skip
        for name, rows in self.lists.items():
            columns[name] = self._ids([row.items for row in rows], ids, kind)
            columns[name.replace("items", "scores")] = pa.array([row.scores.tolist() for row in rows])
            columns[name.replace("items", "fixed")] = self._ids([row.fixed for row in rows], ids, kind)
        return pa.table(columns)

    @staticmethod
    def _ids(rows: Sequence[list[int]], ids: Any, kind: pa.DataType) -> pa.Array:
        flat = pa.array([ids(item) for row in rows for item in row], kind)
        return pa.ListArray.from_arrays(pa.array(np.cumsum([0, *map(len, rows)]), pa.int32()), flat)


class Expected(NamedTuple):
    """What enumeration gives for the treatment's value by estimator, and how much is outside the control's list."""

    values: dict[str, float]
    unsupported: dict[str, float]  # mean of t = (w̃ − w̄)·r
    kept: dict[str, float]  # mean q over all rows
    outside: float


def adaptive(t: np.ndarray, p: np.ndarray, bound: float) -> tuple[float, float]:
    """c̃ and q of one list, by bisection of log c̃; 0 where no cap keeps the bound."""
    if p[t > 0].sum() < 1.0 / bound:
        return 0.0, 0.0
    low, high = -60.0, float(np.log(bound)) + 1e-12
    for _ in range(200):
        c = np.exp((low + high) / 2)
        low, high = (np.log(c), high) if c <= bound * np.minimum(t, c * p).sum() else (low, np.log(c))
    c = float(np.exp(low))
    return c, float(np.minimum(t, c * p).sum())


def _capped(w: float, c: float, q: float) -> tuple[float, float]:
    """w̃ and w̄."""
    return (1.0, 0.0) if q <= 0.0 else (min(w, c) / q, min(w, c))


def expected(
    log: OwnLog, control: Any, treatment: Any, cap: float, bound: float, name: str = TREATMENT
) -> Expected:  # fmt: skip
    """Every estimator's value over all rankings of every row's union, in plain NumPy."""
    n, theta = log.rows, THETA[: log.k]
    value: dict[str, float] = {}
    unsupported: dict[str, float] = {}
    kept: dict[str, float] = {}
    outside = 0.0

    def add(to: dict[str, float], key: str, term: float) -> None:
        to[key] = to.get(key, 0.0) + term / n

    for i in range(n):
        union, shown, r = log.union(i, name), log.shown[i], log.slots[i]
        rankings, p = log.priced(control, CONTROL, i, union)
        _, t = log.priced(treatment, name, i, union)
        at = rankings.index(shown)
        w, total = t[at] / p[at], float(r.sum())
        add(value, "is", w * total)
        q = float(np.minimum(t, cap * p).sum())
        add(value, "point-ncis", min(w, cap) / q * total if q > 0 else 0.0)
        add(kept, "point-ncis", q)
        c, q = adaptive(t, p, bound)
        h, capped = _capped(w, c, q)
        add(value, "point-ncis-adaptive", h * total)
        add(unsupported, "point-ncis-adaptive", (h - capped) * total)
        shows = np.array([[[item == other for other in union] for item in ranking] for ranking in rankings], float)
        big_t, big_p = (np.einsum("a,aki->ki", x, shows) for x in (t, p))
        where = [union.index(item) for item in shown]
        own = set(log.lists[CONTROL][i].items)
        outside += sum(big_t[:, j].sum() for j, item in enumerate(union) if item not in own) / log.k / n
        e_t, e_p = theta @ big_t / theta.sum(), theta @ big_p / theta.sum()
        e_c, e_q = adaptive(e_t, e_p, bound)
        add(kept, "exposure-ncis-adaptive", e_q)
        for slot, j in enumerate(where):
            w_k, w_e = big_t[slot, j] / big_p[slot, j], e_t[j] / e_p[j]
            c, q = adaptive(big_t[slot], big_p[slot], bound)
            h, capped = _capped(w_k, c, q)
            of_e, capped_e = _capped(w_e, e_c, e_q)
            before = [a for a, ranking in enumerate(rankings) if ranking[: slot + 1] == shown[: slot + 1]]
            add(kept, "slot-ncis-adaptive", q / log.k)
            add(value, "iips", w_k * r[slot])
            add(value, "rips", t[before].sum() / p[before].sum() * r[slot])
            add(value, "slot-ncis-adaptive", h * r[slot])
            prefixes = list(dict.fromkeys(ranking[: slot + 1] for ranking in rankings))
            place = [prefixes.index(ranking[: slot + 1]) for ranking in rankings]
            of_t, of_p = (np.bincount(place, weights=x) for x in (t, p))
            c, q = adaptive(of_t, of_p, bound)
            of_prefix, capped_prefix = _capped(of_t[place[at]] / of_p[place[at]], c, q)
            add(kept, "cascade-ncis-adaptive", q / log.k)
            add(value, "cascade-ncis-adaptive", of_prefix * r[slot])
            add(unsupported, "cascade-ncis-adaptive", (of_prefix - capped_prefix) * r[slot])
            add(value, "pbm", w_e * r[slot])
            add(value, "exposure-ncis-adaptive", of_e * r[slot])
            add(unsupported, "slot-ncis-adaptive", (h - capped) * r[slot])
            add(unsupported, "exposure-ncis-adaptive", (of_e - capped_e) * r[slot])
    return Expected(value, unsupported, kept, outside)


def own_test(control: ft.Policy, treatment: ft.Policy, **analysis: Any) -> ft.OfflineTest:
    """A test of two policies with lists of their own."""
    return ft.OfflineTest(
        log=LOG, control=ft.OwnCandidates(control, CONTROL), treatment=ft.OwnCandidates(treatment, TREATMENT),
        **{"examination": THETA.tolist(), "interval": "delta", "weight_bound": 4.0, "cap": 3.0, **analysis},
    )  # fmt: skip
