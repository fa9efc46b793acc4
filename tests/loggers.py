"""A small log of three production policies, and section by section its numbers in plain NumPy."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa

import foretest as ft
from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derive
from tests.support import SmallLog, log_softmax_rankings

NAMES = ("new", "old", "older")


class ThreeLoggers:
    """Plackett-Luce loggers with few rankings a display, all of them enumerated; shares differ by day."""

    def __init__(
        self, rows: int = 600, units: int = 150, m: int = 4, k: int = 2, seed: int = 0, drift: bool = True,
        treatment_is_near: str | None = None,
    ):  # fmt: skip
        g = np.random.default_rng(seed)
        self.rows, self.k = rows, k
        self.day = np.arange(rows) * 3 // rows
        shares = np.array([[0.6, 0.2, 0.2], [0.3, 0.5, 0.2], [0.2, 0.1, 0.7]] if drift else [[0.6, 0.2, 0.2]] * 3)
        self.logger = np.array([g.choice(3, p=shares[d]) for d in self.day])
        base = g.normal(size=(rows, m))
        self.scores = {name: base + 0.8 * g.normal(size=(rows, m)) for name in (*NAMES, "treatment")}
        if treatment_is_near is not None:
            self.scores = {name: 2.5 * (s - base) + base for name, s in self.scores.items()}
            self.scores["treatment"] = self.scores[treatment_is_near] + 0.3 * g.normal(size=(rows, m))
        self.rankings = np.array(list(permutations(range(m), k)))
        self.log_all = {name: log_softmax_rankings(scores, self.rankings) for name, scores in self.scores.items()}
        own = np.stack([self.log_all[name] for name in NAMES])[self.logger, np.arange(rows)]
        self.shown = np.array([g.choice(len(p), p=np.exp(p) / np.exp(p).sum()) for p in own])
        self.unit = g.integers(0, units, rows)  # rows of one unit are of several loggers
        self.stratum = g.integers(0, 2, rows)
        # what is earned depends on the day, as do the shares
        rate = 0.15 + 0.25 * (self.rankings[self.shown, 0] == 0) + 0.2 * self.day
        self.click = (g.random(rows) < rate).astype(float)
        self.slot_share = np.eye(k)[np.random.default_rng(seed + 1).integers(0, k, rows)]  # one slot earned it
        self.by_day = np.array([[np.mean(self.logger[self.day == d] == j) for j in range(3)] for d in range(3)])

    def table(self, **extra: Any) -> pa.Table:
        return pa.table({
            "click": self.click,
            "user": self.unit,
            "id": np.arange(self.rows),
            "day": [f"2024-05-0{d + 1}" for d in self.day],
            "policy": [NAMES[j] for j in self.logger],
            "stratum": self.stratum,
            "v": 0.2 + 0.2 * self.day,
            "ranking": pa.array(self.rankings[self.shown].tolist(), pa.list_(pa.int32())),
            "slot_click": pa.array((self.slot_share * self.click[:, None]).tolist(), pa.list_(pa.float64())),
            **{f"{name}_scores": pa.array(s.tolist(), pa.list_(pa.float64())) for name, s in self.scores.items()},
            **extra,
        })  # fmt: skip

    def mixture(self, *, by_day: bool = True) -> np.ndarray:
        """log π_mix of every ranking, rows × rankings."""
        overall = np.array([np.mean(self.logger == j) for j in range(3)])
        shares = self.by_day[self.day] if by_day else np.tile(overall, (self.rows, 1))
        return np.log(sum(shares[:, j, None] * np.exp(self.log_all[name]) for j, name in enumerate(NAMES)))

    def weights(self, key: str, cap: float, bound: float, mix: np.ndarray) -> np.ndarray:
        """h of every row against the mixture."""
        at = np.arange(self.rows), self.shown
        t, p = np.exp(self.log_all["treatment"]), np.exp(mix)
        w = t[at] / p[at]
        if key in ("is", "nis", "dr"):
            return w
        if key in ("cis", "ncis", "piece-ncis"):
            return np.minimum(w, cap)
        if key == "point-ncis":
            return np.minimum(w, cap) / np.minimum(t, cap * p).sum(axis=1)
        c = self.own_caps(bound, mix)
        return np.minimum(w, c) / np.minimum(t, c[:, None] * p).sum(axis=1)

    def own_caps(self, bound: float, mix: np.ndarray) -> np.ndarray:
        """c̃ of every row, by bisection."""
        t, p = np.exp(self.log_all["treatment"]), np.exp(mix)
        low, high = np.full(self.rows, -60.0), np.full(self.rows, np.log(bound) + 1e-12)
        for _ in range(200):
            c = np.exp((low + high) / 2)
            fits = c <= bound * np.minimum(t, c[:, None] * p).sum(axis=1)
            low, high = np.where(fits, np.log(c), low), np.where(fits, high, np.log(c))
        return np.exp(low)

    def under_one(self, mix: np.ndarray) -> SmallLog:
        """The same displays with the mixture for a control, for what `SmallLog` has in plain NumPy."""
        log = SmallLog.__new__(SmallLog)
        log.rows, log.k, log.m = self.rows, self.k, self.scores["treatment"].shape[1]
        log.rankings, log.shown, log.shares = self.rankings, self.shown, {"click": self.slot_share}
        log.log_p, log.log_t = mix, self.log_all["treatment"]
        return log

    def buckets(self, count: int) -> np.ndarray:
        """The bucket of each row."""
        return (derive(hash_integers(self.unit), BUCKET_SALT) % np.uint64(count)).astype(int)

    def error(self, phi: np.ndarray, count: int) -> float:
        """√(C/(C−1)·Σ_u [Σ_{i∈u} (φ_i − φ̄_k)]²)/n, by bucket."""
        centred = phi - np.array([phi[self.logger == j].mean() for j in range(3)])[self.logger]
        sums = np.bincount(self.buckets(count), weights=centred)
        units = min(count, len(np.unique(self.unit)))
        return float(np.sqrt(units / (units - 1) * (sums @ sums)) / self.rows)

    def baseline_weights(self, name: str, mix: np.ndarray) -> np.ndarray:
        """w_p of every row."""
        at = np.arange(self.rows), self.shown
        return np.exp(self.log_all[name][at] - mix[at])


def build(
    estimators: Any = None, *, date: str | None = "day", baseline: str = "new", treatment: Any = None, **analysis: Any
) -> ft.OfflineTest:
    """An offline test of such a log."""
    columns = analysis.pop("columns", {})
    control = analysis.pop("control", {name: ft.PlackettLuce(scores=f"{name}_scores") for name in NAMES})
    settings = {
        "cap": 2.0,
        "weight_bound": 3.0,
        "strata": "stratum",
        "value": "v",
        "buckets": 64,
        "n_resamples": 200,
        **analysis,
    }
    return ft.OfflineTest(
        log=ft.LogColumns(
            rewards=["click"], unit="user", ranking="ranking", id="id", date=date, logger="policy", **columns
        ),
        control=control,
        treatment=treatment or ft.PlackettLuce(scores="treatment_scores"),
        estimators=estimators,
        baseline=baseline,
        **settings,
    )
