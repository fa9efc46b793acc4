"""Rows' terms and their limits, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.estimators import ESTIMATORS
from foretest.estimators.bounded import is_bounded
from foretest.inference.row_terms import log_weights_of_rewarded, uplift_terms, weight_bound, worst_bias
from foretest.weights.prefix_weights import PrefixAdaptive
from foretest.weights.weightings import Adaptive, Capped, Pointwise, Uncapped
from tests.support import SmallLog, build_test

LOG = SmallLog(rows=300, seed=4)


def test_terms_of_every_weighting() -> None:
    test = build_test(["is", "cis", "point-ncis", "point-ncis-adaptive"], metrics=("click", "revenue"))
    aggregates, _, _ = test.aggregate(LOG.table())
    order = np.argsort(aggregates.rewarded.columns()["log_w"])
    rewarded = np.flatnonzero(LOG.click)
    mine = rewarded[np.argsort(LOG.log_w[rewarded])]
    weightings = {
        "is": Uncapped(), "cis": Capped(2.0), "point-ncis": Pointwise(2.0), "point-ncis-adaptive": Adaptive(3.0),
    }  # fmt: skip
    for key, weighting in weightings.items():
        h = LOG.weights(key, 2.0, 3.0)
        np.testing.assert_allclose(np.exp(log_weights_of_rewarded(aggregates, weighting))[order], h[mine], rtol=1e-9)
        for metric, r in enumerate((LOG.click, LOG.revenue)):
            terms = uplift_terms(aggregates, weighting, metric)
            np.testing.assert_allclose(terms[order], ((h - 1.0) * r)[mine], rtol=1e-8, atol=1e-12)
            assert terms.sum() == pytest.approx(((h - 1.0) * r).sum(), rel=1e-9)


def test_without_rewards_there_are_no_terms() -> None:
    aggregates, _, _ = build_test(["cis"]).aggregate(LOG.table().slice(0, 0))
    assert len(uplift_terms(aggregates, Capped(2.0), 0)) == 0
    assert len(log_weights_of_rewarded(aggregates, Capped(2.0))) == 0


def test_bounds() -> None:
    assert [key for key, cls in ESTIMATORS.items() if is_bounded(cls())] == [
        "cis",
        "point-ncis-adaptive",
        "slot-ncis-adaptive",
        "cascade-ncis-adaptive",
        "exposure-ncis-adaptive",
    ]
    assert weight_bound(Capped(7.0)) == 7.0
    assert weight_bound(Adaptive(3.0)) == weight_bound(PrefixAdaptive(3.0)) == 3.0
    aggregates, _, _ = build_test(["cis", "point-ncis-adaptive"]).aggregate(LOG.table())
    assert worst_bias(aggregates, Capped(2.0), 5.0) == pytest.approx(5.0 * (1.0 - LOG.capped(2.0).mean()), rel=1e-10)
    assert worst_bias(aggregates, Adaptive(3.0), 5.0) == 0.0
