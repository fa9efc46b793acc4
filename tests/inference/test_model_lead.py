"""When the estimate with a reward model leads: predicted variances against plain NumPy, and models that must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.inference.bound_choice import at_chosen_bound
from foretest.inference.buckets import bucket_sums
from foretest.inference.usual_intervals import usual_intervals
from tests.support import SCORES, SmallLog

POINT, MODEL = "point-ncis-adaptive", "point-dr-adaptive"
ROWS = 3000


class Bandit(SmallLog):
    """Single actions whose worth is known."""

    def __init__(self, spread: float = 1.0, rows: int = ROWS, seed: int = 0, noise: float = 0.05) -> None:
        super().__init__(rows=rows, units=rows, m=6, k=1, spread=spread, seed=seed)
        g = np.random.default_rng(seed + 1000)
        self.unit = np.arange(rows)
        self.worth = g.uniform(0.0, 1.0, (rows, self.m))
        self.treatment = self.treatment + 1.5 * self.worth
        self.log_t = self.treatment - np.log(np.exp(self.treatment).sum(axis=1, keepdims=True))
        self.click = np.abs(self.worth[np.arange(rows), self.shown] + noise * g.normal(size=rows))
        self.predicted["click"] = self.worth

    @property
    def truth(self) -> float:
        """The uplift of these displays."""
        return float(((np.exp(self.log_t) - np.exp(self.log_p)) * self.worth).sum(axis=1).mean())


def answer(log: SmallLog, predicted: np.ndarray, **analysis: Any) -> ft.Metric:
    table = log.table()
    at = table.schema.get_field_index("predicted_click")
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking", id="id", unit="user"), **SCORES,
        predictions="predicted_click", **{"estimators": [POINT, MODEL, "ncis"], "n_resamples": 50, **analysis},
    )  # fmt: skip
    return test.run(table.set_column(at, "predicted_click", pa.array(predicted.tolist()))).metrics["click"]


@pytest.mark.parametrize("bound", ["auto", 4.0])
def test_the_predicted_variances_are_those_of_numpy(bound: Any) -> None:
    log = Bandit(rows=800)
    r_hat = 0.7 * log.worth + 0.2
    metric = answer(log, r_hat, weight_bound=bound)
    lead, e = metric.reward_model, metric.estimates[MODEL]
    assert lead is not None
    b = 4.0 if e.bound_choice is None else e.bound_choice["bound"]
    t, p, r = np.exp(log.log_t), np.exp(log.log_p), log.click
    low, high = np.full(log.rows, -60.0), np.full(log.rows, np.log(b) + 1e-12)
    for _ in range(200):
        c = np.exp((low + high) / 2)[:, None]
        fits = c[:, 0] <= b * np.minimum(t, c * p).sum(axis=1)
        low, high = np.where(fits, np.log(c[:, 0]), low), np.where(fits, high, np.log(c[:, 0]))
    capped = np.minimum(t, np.exp(low)[:, None] * p)
    w_all = capped / p / capped.sum(axis=1, keepdims=True)
    s = (p * w_all**2).sum(axis=1) - 1.0
    at = np.arange(log.rows)
    h, y = w_all[at, log.shown], r - r_hat[at, log.shown]
    beta, rho = (r.mean(), y.mean()) if bound == "auto" else (0.0, 0.0)
    delta = ((t - p) * r_hat).sum(axis=1)
    ratio = ((s * (y - rho) ** 2).sum() + ((delta - delta.mean()) ** 2).sum()) / (s * (r - beta) ** 2).sum()
    assert lead["variance_ratio"] == pytest.approx(ratio, rel=1e-8)
    errors = [metric.estimates[key].std_error or 0.0 for key in (MODEL, POINT)]
    assert lead["noise_ratio"] == pytest.approx((errors[0] / errors[1]) ** 2, rel=1e-12)
    if bound == 4.0:  # the least bound is that one
        assert lead["residual"] == pytest.approx((h * y).mean(), rel=1e-9)
        share = (h * (1.0 - capped.sum(axis=1)) * r).sum() / (h * r).sum()
        assert lead["doubt"] == pytest.approx(share * abs((h * y).mean()), rel=1e-9)


def test_a_good_model_leads() -> None:
    log = Bandit()
    metric = answer(log, log.worth)
    assert metric.headline == MODEL
    assert metric.reward_model is not None
    assert metric.reward_model["leads"]
    plain, model = metric.estimates[POINT], metric.estimates[MODEL]
    assert model.std_error is not None
    assert plain.std_error is not None
    assert model.std_error < 0.6 * plain.std_error
    assert model.word == "positive"
    assert model.range is not None
    assert model.range.kind == "band"


def test_a_poor_model_does_not_lead() -> None:
    log = Bandit()
    noise = np.random.default_rng(7).uniform(0.0, 1.0, log.worth.shape)
    metric = answer(log, noise)
    assert metric.headline == POINT
    assert metric.reward_model is not None
    assert metric.reward_model["variance_ratio"] > 1.0
    assert "does not lead: with the reward model the predicted variance is" in metric.estimates[MODEL].reasons[-1]


def test_a_model_that_errs_on_what_is_not_supported_does_not_lead() -> None:
    """Most of the treatment is beyond the bound, and where the log can check it the model is far too high."""
    log = Bandit(spread=4.0)
    metric = answer(log, 3.0 + log.worth, weight_bound=2.0)
    lead = metric.reward_model
    assert lead is not None
    assert not lead["agrees"]
    assert metric.headline == POINT
    assert "the reward model is off by" in metric.estimates[MODEL].reasons[-1]


def test_a_model_that_is_worse_where_the_treatment_goes_does_not_lead() -> None:
    """Right of all actions but those that the treatment prefers, of which the log has few."""
    log = Bandit(spread=1.5)
    noise = np.random.default_rng(3).uniform(-1.0, 1.0, log.worth.shape)
    metric = answer(log, log.worth + np.where(log.log_t - log.log_p > np.log(3.0), noise, 0.0))
    lead = metric.reward_model
    assert lead is not None
    assert lead["variance_ratio"] < 0.8 < 0.9 < lead["noise_ratio"]
    assert metric.headline == POINT
    assert "but in the log itself" in metric.estimates[MODEL].reasons[-1]


def test_a_headline_that_is_asked_for_stays() -> None:
    log = Bandit()
    assert answer(log, log.worth, headline=POINT).headline == POINT
    assert answer(log, log.worth, estimators=[MODEL, "ncis"]).headline == "ncis"
    assert answer(log, log.worth, estimators=[MODEL, "ncis"], headline=MODEL).headline == MODEL


@pytest.mark.slow
def test_intervals_hold_the_truth() -> None:
    """Of 90 % intervals of 80 logs with clicks, within four standard errors."""
    logs, rows, m, held = 80, 500, 5, 0
    lists = [f"f{j}" for j in range(3)]
    for seed in range(100, 100 + logs):
        g = np.random.default_rng(seed)
        worth = g.uniform(0.02, 0.6, (rows, m))
        control = g.normal(size=(rows, m))
        treatment = control + g.normal(size=(rows, m)) + 2.0 * worth
        p, t = (np.exp(x) / np.exp(x).sum(axis=1, keepdims=True) for x in (control, treatment))
        shown = np.minimum((p.cumsum(axis=1) < g.random((rows, 1))).sum(axis=1), m - 1)
        click = (g.random(rows) < worth[np.arange(rows), shown]).astype(float)
        starts = pa.array(np.arange(0, rows * m + 1, m, dtype=np.int32))
        columns = [pa.ListArray.from_arrays(starts, x.ravel()) for x in (control, treatment, 0.7 * worth)]
        known = {"click": click, "id": np.arange(rows), "shown": shown}
        truth = float(((t - p) * worth).sum(axis=1).mean())
        test = ft.OfflineTest(
            log=ft.LogColumns(rewards=["click"], ranking="shown", id="id"), control=ft.PlackettLuce("f0"),
            treatment=ft.PlackettLuce("f1"), predictions="f2", estimators=[MODEL], interval="delta",
        )  # fmt: skip
        aggregates = test.aggregate(pa.table(known | dict(zip(lists, columns, strict=True))), threads=1).aggregates
        estimator = at_chosen_bound(aggregates, aggregates.plan.estimators[0], 0)
        sums = bucket_sums(aggregates, estimator, 0)
        uplift = usual_intervals(aggregates, estimator, sums, None).absolute
        held += uplift.limits.lower <= truth <= uplift.limits.upper
    assert abs(held / logs - 0.9) < 4.0 * np.sqrt(0.9 * 0.1 / logs)
