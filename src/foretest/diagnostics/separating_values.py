"""Which values of a column of the context tell some displays from the others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.aggregation.audit_context import DAY, MOST_VALUES, Feature, features_that_vary, is_context
from foretest.aggregation.kept_rows import Columns
from foretest.formatting import some_of

FEWEST_DISPLAYS = 30  # with a value
MOST_OF_VALUE = 0.5  # of its displays are among the some
FEW_OF_OTHERS = 0.2  # times as many of the other displays may be

Truths = npt.NDArray[np.bool_]


def separating_values(sample: Columns, some: Truths, judged: Truths) -> str:
    """The values of the column that best tells some of the judged displays from the others, as a clause; empty where
    none does."""
    best, clause = FEW_OF_OTHERS, ""
    for name, column in sample.items():
        if not is_context(name) and name != DAY:
            continue
        there, values = np.zeros(len(some), np.bool_), []
        for value in _values(features_that_vary({name: column})):
            rows = judged & (value.values == 1.0)
            if rows.sum() >= FEWEST_DISPLAYS and some[rows].mean() >= MOST_OF_VALUE:
                there |= rows
                values.append(value.name)
        others = judged & ~there
        if values and others.any() and some[others].mean() <= best * some[there].mean():
            best = float(some[others].mean() / some[there].mean())
            clause = f"nearly all where {some_of(values, 3)}"
    return clause


def _values(features: list[Feature]) -> list[Feature]:
    """Indicators as they are, and one for each value of a number that has few."""
    indicators = []
    for feature in features:
        different = np.unique(feature.values)
        if np.isin(different, (0.0, 1.0)).all() and " = " in feature.name:
            indicators.append(feature)
        elif len(different) <= MOST_VALUES:
            indicators += [
                Feature(f"{feature.name} = {v:g}", (feature.values == v).astype(np.float64)) for v in different
            ]
    return indicators
