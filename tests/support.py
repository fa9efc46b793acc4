"""Small logs as Arrow tables, and the paper's formulas in plain NumPy, written without the package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft

SLOT_KEYS = ("iips", "niips", "rips", "slot-ncis-adaptive", "cascade-ncis-adaptive")
EXPOSURE_KEYS = ("pbm", "exposure-ncis-adaptive")
CURVE = (1.0, 0.6, 0.4, 0.3)  # of examination, for as many slots as a log has
MODEL_KEYS = ("point-dr-adaptive", "cascade-dr")  # those with predicted rewards of items
SCORES = {"control": ft.PlackettLuce(scores="control_scores"), "treatment": ft.PlackettLuce(scores="treatment_scores")}


def log_softmax_ranking(scores: np.ndarray, ranking: Any) -> float:
    """Plackett-Luce's log-probability, straight from its definition."""
    left = list(range(len(scores)))
    total = 0.0
    for item in ranking:
        s = scores[left]
        total += scores[item] - (s.max() + np.log(np.exp(s - s.max()).sum()))
        left.remove(int(item))
    return total


def log_softmax_rankings(scores: np.ndarray, rankings: np.ndarray) -> np.ndarray:
    """`log_softmax_ranking` of every ranking in every display, rows × rankings, with the same operations."""
    total = np.zeros((len(scores), len(rankings)))
    for column, ranking in enumerate(rankings):
        left = list(range(scores.shape[1]))
        for item in ranking:
            s = scores[:, left]
            top = s.max(axis=1, keepdims=True)
            total[:, column] += scores[:, item] - (top[:, 0] + np.log(np.exp(s - top).sum(axis=1)))
            left.remove(int(item))
    return total


def list_column(rows: np.ndarray) -> pa.Array:
    """A column of lists of one length: without a Python object for each number, in a sixth of the time."""
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(offsets, pa.array(rows.flatten()))


class SmallLog:
    """A Plackett-Luce log with few rankings a display, all of them enumerated."""

    def __init__(self, rows: int = 400, units: int = 120, m: int = 5, k: int = 2, spread: float = 1.5, seed: int = 0):
        g = np.random.default_rng(seed)
        self.rows, self.m, self.k = rows, m, k
        self.control = g.normal(size=(rows, m))
        self.treatment = self.control + spread * g.normal(size=(rows, m))
        self.rankings = np.array(list(permutations(range(m), k)))
        self.log_p = log_softmax_rankings(self.control, self.rankings)
        self.log_t = log_softmax_rankings(self.treatment, self.rankings)
        cumulated = np.cumsum(np.exp(self.log_p), axis=1)
        self.shown = (cumulated <= g.random((rows, 1)) * cumulated[:, -1:]).sum(axis=1)
        self.unit = g.integers(0, units, rows)
        self.stratum = g.integers(0, 3, rows)
        self.value = np.exp(g.normal(size=rows)) * 0.3
        rate = np.clip(self.value * (1.0 + 0.5 * (self.rankings[self.shown, 0] == 0)), 0.0, 0.9)
        self.click = (g.random(rows) < rate).astype(float)
        self.revenue = self.click * np.exp(g.normal(size=rows))
        # which slot earned it: a click one of them, revenue all, in different shares
        self.shares = {"click": np.eye(k)[g.integers(0, k, rows)], "revenue": g.dirichlet(np.ones(k), rows)}
        self.predicted = {name: 0.2 * np.exp(g.normal(size=(rows, m))) for name in ("click", "revenue")}

    @property
    def log_w(self) -> np.ndarray:
        at = np.arange(self.rows), self.shown
        return self.log_t[at] - self.log_p[at]

    def table(self, order: Any = None, **extra: Any) -> pa.Table:
        columns = {
            "click": self.click,
            "revenue": self.revenue,
            "user": self.unit,
            "id": np.arange(self.rows),
            "stratum": self.stratum,
            "v": self.value,
            "ranking": list_column(self.rankings[self.shown].astype(np.int32)),
            "control_scores": list_column(self.control),
            "treatment_scores": list_column(self.treatment),
            "slot_click": self.slots("click", self.click),
            "slot_revenue": self.slots("revenue", self.revenue),
            **{f"predicted_{name}": list_column(lists) for name, lists in self.predicted.items()},
            **extra,
        }
        table = pa.table(columns)
        return table if order is None else table.take(order)

    def slots(self, metric: str, r: np.ndarray) -> pa.Array:
        """The list column that shares the rewards `r` out among the slots."""
        return list_column(self.shares[metric] * r[:, None])

    # -- weights --------------------------------------------------------------------------------------------------

    def capped(self, cap: float, capping: str = "max") -> np.ndarray:
        w = np.exp(self.log_w)
        return np.minimum(w, cap) if capping == "max" else np.where(w < cap, w, 0.0)

    def q(self, cap: float, capping: str = "max") -> np.ndarray:
        t, p = np.exp(self.log_t), np.exp(self.log_p)
        return np.minimum(t, cap * p).sum(axis=1) if capping == "max" else np.where(t < cap * p, t, 0.0).sum(axis=1)

    def adaptive(self, bound: float) -> np.ndarray:
        """w̃ by bisection on log c̃."""
        t, p = np.exp(self.log_t), np.exp(self.log_p)
        low, high = np.full(self.rows, -60.0), np.full(self.rows, np.log(bound) + 1e-12)
        for _ in range(200):
            mid = (low + high) / 2
            c = np.exp(mid)
            fits = c <= bound * np.minimum(t, c[:, None] * p).sum(axis=1)
            low, high = np.where(fits, mid, low), np.where(fits, high, mid)
        c = np.exp(low)
        return np.minimum(np.exp(self.log_w), c) / np.minimum(t, c[:, None] * p).sum(axis=1)

    def marginals(self, log_prob: np.ndarray) -> np.ndarray:
        """P(item in slot) of every row, summed over all rankings: rows × slots × items."""
        shows = self.rankings[:, :, None] == np.arange(self.m)
        return np.einsum("ra,aki->rki", np.exp(log_prob), shows)

    def slot_weights(self, key: str, bound: float) -> np.ndarray:
        """h_k of every row, rows × slots."""
        at, shown = np.arange(self.rows), self.rankings[self.shown]
        if key == "rips":

            def prefixes(log_prob: np.ndarray) -> np.ndarray:
                same = [(self.rankings[None, :, :k] == shown[:, None, :k]).all(axis=2) for k in range(1, self.k + 1)]
                return np.stack([(np.exp(log_prob) * s).sum(axis=1) for s in same], axis=1)

            return prefixes(self.log_t) / prefixes(self.log_p)
        if key == "cascade-ncis-adaptive":
            prefix = [self.prefix_terms(k, bound) for k in range(1, self.k + 1)]
            return np.stack([capped / q for capped, q, _, _ in prefix], axis=1)
        t, p = self.marginals(self.log_t), self.marginals(self.log_p)
        w = np.stack([t[at, k, shown[:, k]] / p[at, k, shown[:, k]] for k in range(self.k)], axis=1)
        if key in ("iips", "niips"):
            return w
        low, high = np.full(w.shape, -60.0), np.full(w.shape, np.log(bound) + 1e-12)
        for _ in range(200):
            c = np.exp((low + high) / 2)
            fits = c <= bound * np.minimum(t, c[:, :, None] * p).sum(axis=2)
            low, high = np.where(fits, np.log(c), low), np.where(fits, high, np.log(c))
        c = np.exp(low)
        return np.minimum(w, c) / np.minimum(t, c[:, :, None] * p).sum(axis=2)

    def prefix_terms(self, k: int, bound: float) -> tuple[np.ndarray, ...]:
        """Of the first k slots of every row: w̄ at the adaptive cap c̃, q, and both at a third of it."""
        at = np.arange(self.rows)
        place = np.unique(self.rankings[:, :k], axis=0, return_inverse=True)[1].ravel()  # of each ranking's prefix
        t, p = (
            np.stack([np.exp(log[:, place == j]).sum(axis=1) for j in range(place.max() + 1)], axis=1)
            for log in (self.log_t, self.log_p)
        )
        w = t[at, place[self.shown]] / p[at, place[self.shown]]
        low, high = np.full(self.rows, -60.0), np.full(self.rows, np.log(bound) + 1e-12)
        for _ in range(200):
            c = np.exp((low + high) / 2)
            fits = c <= bound * np.minimum(t, c[:, None] * p).sum(axis=1)
            low, high = np.where(fits, np.log(c), low), np.where(fits, high, np.log(c))
        c = np.exp(low)
        return tuple(
            part for cap in (c, c / 3.0) for part in (np.minimum(w, cap), np.minimum(t, cap[:, None] * p).sum(axis=1))
        )

    def exposures(self, log_prob: np.ndarray, curve: Any = CURVE) -> np.ndarray:
        """e(i)/Θ of every row, rows × items."""
        theta = np.asarray(curve[: self.k])
        return np.einsum("rki,k->ri", self.marginals(log_prob), theta / theta.sum())

    def exposure_weights(self, key: str, bound: float, curve: Any = CURVE) -> np.ndarray:
        """h_k of every row by the exposure of its items, rows × slots."""
        at, shown = np.arange(self.rows)[:, None], self.rankings[self.shown]
        t, p = self.exposures(self.log_t, curve), self.exposures(self.log_p, curve)
        w = t[at, shown] / p[at, shown]
        if key == "pbm":
            return w
        low, high = np.full(self.rows, -60.0), np.full(self.rows, np.log(bound) + 1e-12)
        for _ in range(200):
            c = np.exp((low + high) / 2)
            fits = c <= bound * np.minimum(t, c[:, None] * p).sum(axis=1)
            low, high = np.where(fits, np.log(c), low), np.where(fits, high, np.log(c))
        c = np.exp(low)
        return np.minimum(w, c[:, None]) / np.minimum(t, c[:, None] * p).sum(axis=1)[:, None]

    def item_rewards(self, metric: str, r: np.ndarray, folds: int = 2) -> np.ndarray:
        """r̂ of every item in every slot, rows × slots × items: the prediction times Σr/Σr̂ of that slot in the rows of
        the other folds."""
        from foretest.aggregation.value_model import FOLD_SALT
        from foretest.kernels.hashing import hash_integers
        from foretest.kernels.random import derived_bucket

        at, shown = np.arange(self.rows), self.rankings[self.shown]
        fold = derived_bucket(hash_integers(self.unit), FOLD_SALT, folds)
        earned = self.shares[metric] * r[:, None]
        scales = np.empty((folds, self.k))
        for f in range(folds):
            seen = np.flatnonzero(fold != f)
            for k in range(self.k):
                expected = self.predicted[metric][at, shown[:, k]]
                scales[f, k] = earned[seen, k].sum() / expected[seen].sum()
        return scales[fold][:, :, None] * self.predicted[metric][:, None, :]

    def model_terms(self, key: str, metric: str, r: np.ndarray, bound: float) -> np.ndarray:
        """The rows' terms of an estimator with predicted rewards."""
        r_hat, earned = self.item_rewards(metric, r), self.shares[metric] * r[:, None]
        shown = np.take_along_axis(r_hat, self.rankings[self.shown][:, :, None], axis=2)[:, :, 0]
        h = self.adaptive(bound)[:, None] if key == "point-dr-adaptive" else self.slot_weights("rips", bound)
        under_t, under_p = ((self.marginals(log) * r_hat).sum(axis=(1, 2)) for log in (self.log_t, self.log_p))
        return (h * (earned - shown)).sum(axis=1) + under_t + shown.sum(axis=1) - under_p

    def weights(self, key: str, cap: float, bound: float, capping: str = "max", metric: str = "click") -> np.ndarray:
        """h of every row, as the estimator's table has it."""
        if key == "cascade-dr":
            key = "rips"
        if key in SLOT_KEYS:
            return (self.slot_weights(key, bound) * self.shares[metric]).sum(axis=1)
        if key in EXPOSURE_KEYS:
            return (self.exposure_weights(key, bound) * self.shares[metric]).sum(axis=1)
        if key in ("is", "nis", "dr"):
            return np.exp(self.log_w)
        if key in ("cis", "ncis", "piece-ncis"):
            return self.capped(cap, capping)
        if key == "point-ncis":
            q = self.q(cap, capping)
            return np.divide(self.capped(cap, capping), q, out=np.zeros(self.rows), where=q > 0)
        return self.adaptive(bound)

    def estimate(
        self, key: str, r: np.ndarray, cap: float, bound: float, capping: str = "max"
    ) -> tuple[float, np.ndarray]:
        """The treatment's value and the influence ψ of every row."""
        if key in MODEL_KEYS:
            term = self.model_terms(key, "click", r, bound)
            return term.mean(), term - term.mean()
        h = self.weights(key, cap, bound, capping)
        if key == "dr":
            term = (r - self.value) * h + self.value
            return term.mean(), term - term.mean()
        if key == "niips":
            w, earned = self.slot_weights(key, bound), self.shares["click"] * r[:, None]
            by_slot = (w * earned).sum(axis=0) / w.sum(axis=0)
            return by_slot.sum(), (w * (earned - by_slot) / w.mean(axis=0)).sum(axis=1)
        if key in ("nis", "ncis"):
            theta = (h * r).sum() / h.sum()
            return theta, h * (r - theta) / h.mean()
        if key == "piece-ncis":
            theta, psi = 0.0, np.zeros(self.rows)
            for g in np.unique(self.stratum):
                rows = self.stratum == g
                theta_g = (h * r)[rows].sum() / h[rows].sum()
                theta += rows.mean() * theta_g
                psi[rows] = h[rows] * (r[rows] - theta_g) / h[rows].mean() + theta_g
            return theta, psi - theta
        return (h * r).mean(), h * r - (h * r).mean()


def build_test(
    estimators: Any = None, *, metrics: tuple[str, ...] = ("click",), unit: str | None = "user", **analysis: Any
) -> ft.OfflineTest:
    """An offline test of a SmallLog, strata and V(x) from columns; slots are read where an estimator is by slot.

    200 resamples, not 1000: they are most of the time of a test on a small log, and no identity depends on how many.
    """
    settings = {"cap": 2.0, "weight_bound": 3.0, "strata": "stratum", "value": "v", "n_resamples": 200, **analysis}
    by_slot = any(getattr(e, "key", e) in (*SLOT_KEYS, *EXPOSURE_KEYS, *MODEL_KEYS) for e in estimators or ())
    if any(getattr(e, "key", e) in MODEL_KEYS for e in estimators or ()):
        settings.setdefault("predictions", {name: f"predicted_{name}" for name in metrics})
    if any(getattr(e, "key", e) in EXPOSURE_KEYS for e in estimators or ()):
        settings.setdefault("examination", CURVE)
    slots = {name: f"slot_{name}" for name in metrics} if by_slot else None
    columns = ft.LogColumns(rewards=metrics, unit=unit, ranking="ranking", id="id", slot_rewards=slots)
    return ft.OfflineTest(log=columns, **SCORES, estimators=estimators, **settings)


def apart(count: int, buckets: int = 1024) -> np.ndarray:
    """Unit ids of which no two fall into one bucket."""
    from foretest.aggregation.fold_plan import BUCKET_SALT
    from foretest.kernels.hashing import hash_integers
    from foretest.kernels.random import derive

    ids = np.arange(50 * count)
    bucket = derive(hash_integers(ids), BUCKET_SALT) % np.uint64(buckets)
    _, first = np.unique(bucket, return_index=True)
    return np.sort(ids[first])[:count]


def read_only(values: Any) -> np.ndarray:
    """Values as Arrow gives them: machine code for these comes with the package, for others it is compiled first."""
    view = np.asarray(values).view()
    view.flags.writeable = False
    return view


def assert_close(a: Any, b: Any, where: str = "", rel: float = 1e-9) -> None:
    """Two documents say the same: numbers to a relative error, all else exactly."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            assert_close(a[key], b[key], f"{where}/{key}", rel)
    elif isinstance(a, list):
        assert len(a) == len(b), where
        for at, (mine, theirs) in enumerate(zip(a, b, strict=True)):
            assert_close(mine, theirs, f"{where}/{at}", rel)
    elif isinstance(a, float):
        assert a == pytest.approx(b, rel=rel, abs=1e-12), where
    else:
        assert a == b, where


@contextmanager
def few_resamples_of_tests() -> Iterator[None]:
    """Quantiles of a history's figures from 40 resamples of its tests, not 1000: most of a small history's time."""
    from foretest.history.agreement import figures

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "__defaults__", (0, 40))  # of seed and resamples
        yield
