""" "PointNCIS just needs to read the positive examples" (section 6.2): what that saves, in CPU time of this run.

The normaliser q(x) is the dear part of a pointwise estimator. It is timed on the rewarded rows of a log, and on one row
in eight of all. NCIS needs every row read and weighted, and no normaliser; PointNCIS needs all three, of rewarded rows
alone, where the log lets them be read apart. The two are set against each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

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
    """CPU microseconds a row of reading, weights and normalisers; what PointNCIS saves, here and with rarer rewards."""
    reading, (displays, rewards) = _timed(lambda: read_displays(test, log, MOST_ROWS))
    settings, normaliser = test.settings, choose_estimators(test.settings)[0].normaliser
    a = settings.analysis
    rewarded, every = np.flatnonzero(rewards), np.arange(0, len(displays), EVERY)
    rate = len(rewarded) / len(displays)

    def cost(method: Callable[[Any], Any]) -> tuple[float, float]:
        """Microseconds of a rewarded row, and of any row."""
        method(displays.take(rewarded[:64]))  # compiled, if it was not
        some, of_all = (_timed(partial(method, displays.take(rows)))[0] for rows in (rewarded, every))
        return 1e6 * some / max(1, len(rewarded)), 1e6 * of_all / len(every)

    weights = cost(lambda part: log_weights(settings.treatment, settings.control, part))
    of_ncis = 1e6 * reading / len(displays) + weights[1]
    normalisers = {
        "point-ncis": cost(lambda part: normaliser.at_cap(part, a.cap_number, zero=False)),
        "point-ncis-adaptive": cost(lambda part: normaliser.at_adaptive_cap(part, a.weight_bound)),
    }
    rows = {}
    for key, (of_rewarded, of_any) in normalisers.items():
        of_point = of_ncis + of_rewarded
        rows[key] = {
            "name": NAMES[key].name,
            "microseconds_a_rewarded_row": of_rewarded,
            "microseconds_a_row": of_any,
            "all_rows_over_rewarded": of_any / of_rewarded / rate if rate and of_rewarded else None,
            "ncis_over_point": of_ncis / (rate * of_point) if rate else None,
            "ncis_over_point_at_one_in_a_thousand": of_ncis / (RARE * of_point),
            "break_even_rate": min(1.0, of_ncis / of_point),
        }
    return {
        "rows": len(displays),
        "rewarded": len(rewarded),
        "draws": a.draws,
        "reading_microseconds_a_row": 1e6 * reading / len(displays),
        "weights_microseconds_a_row": weights[1],
        "normalisers": rows,
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds, the least of a few (on a shared machine the rest is somebody else's work), and what came of it."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        answer = work()
        found.append(time.process_time() - start)
    return min(found), answer
