"""Do rewards depend on which items stand beside which? A test of the model behind slots, without any treatment.

If what a slot earns depends on its own item and place alone, the sums T_u of a unit's terms by pairs of items
(`weights/company.py`) have mean 0, in each of D columns. With all of them at once,

    R² = s'M⁻¹s/C,    s = Σ_u T_u,    M = Σ_u T_u T_u'

over C units, R² is what a regression of 1 on the T_u explains: nearly Beta(D/2, (C − D)/2). It finds items that help or
hinder each other whatever their scores are, where a position in the candidate list means the same item, or the same
rank, in many displays. Elsewhere it is right and finds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import betainc

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.company_terms import pair_columns
from foretest.displays.batch import Floats
from foretest.estimators import Estimator
from foretest.inference.company import company_test
from foretest.results.audit import NOT_MADE, PASS, grade
from foretest.results.slot_model import DEPENDS, SlotModel, SlotTest

#: units with terms other than 0, below which R² is not nearly a beta
FEWEST_UNITS = 200
_SINGULAR = 1e-9  # of the largest eigenvalue


def slot_model(aggregates: Aggregates, estimators: Sequence[Estimator], metric: int) -> SlotModel | None:
    """Both tests of what stands beside a reward; None where no estimator weighs the metric by slot."""
    company = company_test(aggregates, estimators, metric)
    return None if company is None else SlotModel(company, pairs=pairs_test(aggregates, metric))


def pairs_test(aggregates: Aggregates, metric: int) -> SlotTest | None:
    """The test for a metric that is weighed by slot; None where rows have no such terms."""
    columns, names = aggregates.rewarded.columns(), pair_columns(metric)
    if any(name not in columns for name in names):
        return None
    terms = np.stack([columns[name] for name in names], axis=1)
    used = np.isfinite(terms[:, 0]) & (columns[f"r:{metric}"] > 0.0)
    place = np.unique(columns["unit"][used], return_inverse=True)[1]
    by_unit = np.stack([np.bincount(place, weights=column) for column in terms[used].T], axis=1)
    by_unit = by_unit[by_unit.any(axis=1)]
    if len(by_unit) < FEWEST_UNITS:
        few = f"it needs {FEWEST_UNITS} units whose rewards have company that varies, not {len(by_unit)}"
        return SlotTest(NOT_MADE, None, None, int(used.sum()), few)
    p = _p_value(by_unit / np.abs(by_unit).max())
    meaning = f"no sign that {DEPENDS}" if grade(p) == PASS else f"{DEPENDS}: some items help or hinder others"
    return SlotTest(grade(p), None, p, int(used.sum()), meaning)


def _p_value(by_unit: Floats) -> float:
    """Of R², in the columns that differ from each other."""
    values, vectors = np.linalg.eigh(by_unit.T @ by_unit)
    kept = values > _SINGULAR * values[-1]
    projected = (vectors.T @ by_unit.sum(axis=0))[kept]
    units, rank = len(by_unit), int(kept.sum())
    explained = min(1.0, float((projected**2 / values[kept]).sum()) / units)
    return float(betainc((units - rank) / 2.0, rank / 2.0, 1.0 - explained))
