""" "PointNCIS just needs to read the positive examples" (section 6.2): what that saves, in CPU time of this run.

The normaliser q(x) is the expensive part of a pointwise estimator. It is timed on the rewarded rows of a log, and on
one row in eight of all. NCIS needs every row read and weighted, and no normaliser; PointNCIS needs all three, of
rewarded rows alone, where the log lets them be read apart. Their costs are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation.choose_estimators import choose_estimators
from foretest.offline.test import OfflineTest
from foretest.paper.estimators import NAMES
from foretest.paper.rows import read_displays
from foretest.weights.weightings import log_weights

MOST_ROWS = 1 << 17
EVERY = 8  # one row in eight stands for all of them
REPEATS = 3
RARE = 1e-3  # the click rate of display advertising, as the paper has it


def normaliser_cost(test: OfflineTest, log: Any) -> dict[str, Any]:
    """CPU microseconds per row of reading, weights and normalisers; what PointNCIS saves, also with rarer rewards."""
    reading, (displays, rewards) = _timed(lambda: read_displays(test, log, MOST_ROWS))
    settings, normaliser = test.settings, choose_estimators(test.settings)[0].normaliser
    a = settings.analysis
    rewarded, every = np.flatnonzero(rewards), np.arange(0, len(displays), EVERY)
    rate = len(rewarded) / len(displays)

    def cost(method: Callable[[Any], Any]) -> _Cost:
        method(displays.take(rewarded[:64]))  # compiled, if it was not
        seconds_of_rewarded, seconds_of_every = (
            _timed(partial(method, displays.take(rows))).seconds for rows in (rewarded, every)
        )
        return _Cost(1e6 * seconds_of_rewarded / max(1, len(rewarded)), 1e6 * seconds_of_every / len(every))

    weights = cost(lambda part: log_weights(settings.treatment, settings.control, part))
    ncis_cost = 1e6 * reading / len(displays) + weights.any_row
    normalisers = {
        "point-ncis": cost(lambda part: normaliser.at_cap(part, a.cap_number, zero=False)),
        "point-ncis-adaptive": cost(lambda part: normaliser.at_adaptive_cap(part, a.bound_number)),
    }
    rows = {}
    for key, (rewarded_row, any_row) in normalisers.items():
        point_cost = ncis_cost + rewarded_row
        rows[key] = {
            "name": NAMES[key].name,
            "microseconds_a_rewarded_row": rewarded_row,
            "microseconds_a_row": any_row,
            "all_rows_over_rewarded": any_row / rewarded_row / rate if rate and rewarded_row else None,
            "ncis_over_point": ncis_cost / (rate * point_cost) if rate else None,
            "ncis_over_point_at_one_in_a_thousand": ncis_cost / (RARE * point_cost),
            "break_even_rate": min(1.0, ncis_cost / point_cost),
        }
    return {
        "rows": len(displays),
        "rewarded": len(rewarded),
        "draws": a.draws,
        "reading_microseconds_a_row": 1e6 * reading / len(displays),
        "weights_microseconds_a_row": weights.any_row,
        "normalisers": rows,
    }


class _Cost(NamedTuple):
    """Microseconds of a rewarded row, and of any row."""

    rewarded_row: float
    any_row: float


class _Timed(NamedTuple):
    """CPU seconds of some work, and what it returned."""

    seconds: float
    answer: Any


def _timed(work: Callable[[], Any]) -> _Timed:
    """Time some work: the least of a few runs, as others on a shared machine slow the rest."""
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        answer = work()
        seconds.append(time.process_time() - start)
    return _Timed(min(seconds), answer)
