"""Do rewards depend on which items are shown next to which? A test of the model behind slots, without any treatment.

If what a slot earns depends on its own item and place alone, the sums T_u of a unit's terms by pairs of items
(`weights/company.py`) have mean 0, in each of D columns. With all of them at once,

    R² = s'M⁻¹s/C,    s = Σ_u T_u,    M = Σ_u T_u T_u'

over C units, R² is what a regression of 1 on the T_u explains: nearly Beta(D/2, (C − D)/2). It finds items that help or
hinder each other whatever their scores are, where a position in the candidate list means the same item, or the same
rank, in many displays. Elsewhere it is right and finds nothing.

Do rewards depend on what stands below their slot? The terms of the items below have mean 0 also where rewards depend on
what stands above, as for users who read from the top. There are two tests of them, R² of those by pairs and z² of those
by the control's scores, which is R² of one column. Of the smaller p of the two the p-value is 1 − (1 − p)².
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.company_terms import above_columns, below_columns
from foretest.aggregation.kept_rows import Column
from foretest.displays.batch import Floats
from foretest.estimators import Estimator
from foretest.inference.company import company_test
from foretest.results.audit import NOT_MADE, PASS, grade
from foretest.results.slot_model import BELOW, DEPENDS, SlotModel, SlotTest
from foretest.special import betainc

#: units with terms other than 0, below which R² is not nearly a beta
FEWEST_UNITS = 200
_SINGULAR = 1e-9  # of the largest eigenvalue


def slot_model(aggregates: Aggregates, estimators: Sequence[Estimator], metric: int) -> SlotModel | None:
    """The tests of what is shown next to a reward; None where no estimator weighs the metric by slot."""
    company = company_test(aggregates, estimators, metric)
    if company is None:
        return None
    return SlotModel(company, pairs=pairs_test(aggregates, metric), below=below_test(aggregates, metric))


def pairs_test(aggregates: Aggregates, metric: int) -> SlotTest | None:
    """The test by pairs of items for a metric that is weighed by slot; None where rows have no such terms."""
    terms = _terms(aggregates, metric, [*above_columns(metric), *below_columns(metric)[1:]])
    if terms is None or len(terms.by_unit) < FEWEST_UNITS:
        return None if terms is None else _too_few(terms, "company that varies")
    p = _p_value(terms.by_unit)
    meaning = f"no sign that {DEPENDS}" if grade(p) == PASS else f"{DEPENDS}: some items help or hinder others"
    return SlotTest(grade(p), None, p, terms.rewards, meaning)


def below_test(aggregates: Aggregates, metric: int) -> SlotTest | None:
    """The test of the items below the slots for a metric that is weighed by slot; None where rows have no such
    terms."""
    terms = _terms(aggregates, metric, below_columns(metric))
    if terms is None or len(terms.by_unit) < FEWEST_UNITS:
        return None if terms is None else _too_few(terms, "items below that vary")
    p = _p_of_below(terms.by_unit)
    return SlotTest(grade(p), None, p, terms.rewards, f"no sign that {BELOW}" if grade(p) == PASS else BELOW)


def _p_of_below(by_unit: Floats) -> float:
    """Of the worth by scores, in the first column, and of pairs: of the smaller of two, were they independent."""
    least = min(_p_value(by_unit[:, :1]), _p_value(by_unit[:, 1:]))
    return least * (2.0 - least)


class _Terms(NamedTuple):
    """The sums of each unit's terms, those that are not all 0, and the rewarded rows behind them."""

    by_unit: Floats
    rewards: int


def _terms(aggregates: Aggregates, metric: int, names: Sequence[Column]) -> _Terms | None:
    """Some columns of terms, in units of the largest; None where rows lack one."""
    columns = aggregates.rewarded.columns()
    if any(name not in columns for name in names):
        return None
    terms = np.stack([columns[name] for name in names], axis=1)
    used = np.isfinite(terms[:, 0]) & (columns["r", metric] > 0.0)
    place = np.unique(columns["unit"][used], return_inverse=True)[1]
    by_unit = np.stack([np.bincount(place, weights=column) for column in terms[used].T], axis=1)
    by_unit = by_unit[by_unit.any(axis=1)]
    return _Terms(by_unit / np.abs(by_unit).max(initial=0.0), int(used.sum()))


def _too_few(terms: _Terms, what: str) -> SlotTest:
    few = f"it needs {FEWEST_UNITS} units whose rewards have {what}, not {len(terms.by_unit)}"
    return SlotTest(NOT_MADE, None, None, terms.rewards, few)


def _p_value(by_unit: Floats) -> float:
    """Of R², in the columns that differ from each other, over units whose terms are not all 0."""
    by_unit = by_unit[by_unit.any(axis=1)]
    if not len(by_unit):
        return 1.0
    values, vectors = np.linalg.eigh(by_unit.T @ by_unit)
    kept = values > _SINGULAR * values[-1]
    projected = (vectors.T @ by_unit.sum(axis=0))[kept]
    units, rank = len(by_unit), int(kept.sum())
    explained = min(1.0, float((projected**2 / values[kept]).sum()) / units)
    return float(betainc((units - rank) / 2.0, rank / 2.0, 1.0 - explained))
