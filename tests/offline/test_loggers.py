"""Several loggers, end to end: values, paired uplifts and intervals against plain NumPy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.inference.bootstrap import resample_counts
from tests.loggers import ThreeLoggers, build

KEYS = ("is", "nis", "cis", "ncis", "piece-ncis", "dr", "point-ncis", "point-ncis-adaptive")
LOG = ThreeLoggers()


def value_of(log: ThreeLoggers, key: str, h: np.ndarray) -> tuple[float, np.ndarray]:
    """The treatment's value and the influence of each row, as the table of estimators has them."""
    r, v = log.click, 0.2 + 0.2 * log.day
    if key in ("nis", "ncis"):
        theta = (h * r).sum() / h.sum()
        return theta, h * (r - theta) / h.mean()
    if key == "piece-ncis":
        theta, psi = 0.0, np.zeros(log.rows)
        for g in np.unique(log.stratum):
            rows = log.stratum == g
            of_g = (h * r)[rows].sum() / h[rows].sum()
            theta += rows.mean() * of_g
            psi[rows] = h[rows] * (r[rows] - of_g) / h[rows].mean() + of_g
        return theta, psi - theta
    terms = h * (r - v) + v if key == "dr" else h * r
    return terms.mean(), terms - terms.mean()


@pytest.fixture(scope="module", params=[(True, "new"), (True, "older"), (False, "old")])
def run(request):
    by_day, baseline = request.param
    test = build(KEYS, date="day" if by_day else None, baseline=baseline, interval="delta", buckets=128)
    return by_day, baseline, test.run(LOG.table()).metrics["click"]


@pytest.mark.parametrize("key", KEYS)
def test_value_uplift_and_error(key, run):
    by_day, baseline, metric = run
    found = metric.estimates[key]
    mix = LOG.mixture(by_day=by_day)
    h, w_p = LOG.weights(key, 2.0, 3.0, mix), LOG.baseline_weights(baseline, mix)
    value, psi = value_of(LOG, key, h)
    control = (w_p * LOG.click).mean()
    assert metric.control.value == pytest.approx(control, rel=1e-9)
    assert found.treatment == pytest.approx(value, rel=1e-7)
    assert found.effect_size == pytest.approx(value - control, rel=1e-6, abs=1e-9)
    assert found.std_error == pytest.approx(LOG.error(psi - w_p * LOG.click, 128), rel=1e-6)
    assert metric.control.std_error == pytest.approx(LOG.error(w_p * LOG.click, 128), rel=1e-6)
    relative = (psi - value / control * (w_p * LOG.click - control)) / control
    half = found.rel_effect_size_ci_upper - found.rel_effect_size
    error = max(LOG.error(relative, 128), (found.predicted_std_error or 0.0) / control)
    assert half == pytest.approx(1.6448536 * error, rel=1e-5)


def test_bootstrap_weighs_each_loggers_sums():
    buckets, resamples, seed = 64, 200, 5
    test = build(["ncis", "cis"], buckets=buckets, n_resamples=resamples, seed=seed)
    metric = test.run(LOG.table()).metrics["click"]
    mix = LOG.mixture()
    h, w_p, r = LOG.weights("cis", 2.0, 3.0, mix), LOG.baseline_weights("new", mix), LOG.click
    bucket, counts = LOG.buckets(buckets), resample_counts(buckets, resamples, seed)
    uplifts = {"ncis": [], "cis": []}
    for count in counts:
        times = count[bucket]  # copies of each row
        for j in range(3):
            mine = LOG.logger == j
            times[mine] *= mine.sum() / times[mine].sum()
        control = (times * w_p * r).sum() / times.sum()
        uplifts["ncis"].append((times * h * r).sum() / (times * h).sum() - control)
        uplifts["cis"].append((times * h * r).sum() / times.sum() - control)
    for key, replicates in uplifts.items():
        lower, upper = np.quantile(replicates, [0.05, 0.95])
        assert metric.estimates[key].effect_size_ci_lower == pytest.approx(lower, abs=1e-10)
        assert metric.estimates[key].effect_size_ci_upper == pytest.approx(upper, abs=1e-10)


@pytest.mark.parametrize("interval", ["bootstrap", "delta"])
@pytest.mark.parametrize("key", ["is", "cis", "point-ncis", "point-ncis-adaptive"])
def test_the_baseline_itself_has_no_uplift(key, interval):
    # w_p is at most 1/0.2, so that a cap and a bound above cut nothing
    test = build([key], treatment=ft.PlackettLuce(scores="new_scores"), cap=20.0, weight_bound=20.0, interval=interval)
    found = test.run(LOG.table()).metrics["click"].estimates[key]
    for number in (found.effect_size, found.effect_size_ci_lower, found.effect_size_ci_upper):
        assert abs(number) < 1e-12


def test_constant_shares_are_wrong_where_shares_vary():
    # rewards and shares both differ by day: the expectation of mean(w_p r) over what the loggers might have shown
    earned = 0.15 + 0.25 * (LOG.rankings[:, 0] == 0)[None, :] + 0.2 * LOG.day[:, None]
    shown, baseline = np.exp(LOG.mixture()), np.exp(LOG.log_all["new"])
    truth = (baseline * earned).sum(axis=1).mean()
    by_day, constant = (
        (shown * baseline / np.exp(LOG.mixture(by_day=by_day)) * earned).sum(axis=1).mean() for by_day in (True, False)
    )
    assert by_day == pytest.approx(truth, rel=1e-12)
    assert abs(constant - truth) > 0.01 * truth


def test_a_stream_is_read_twice():
    test = build(["cis"], n_resamples=50)
    streamed = pa.RecordBatchReader.from_batches(LOG.table().schema, LOG.table().to_batches(max_chunksize=100))
    found = test.run(streamed).metrics["click"].estimates["cis"]
    assert found.effect_size == pytest.approx(
        test.run(LOG.table()).metrics["click"].estimates["cis"].effect_size, abs=1e-12
    )
