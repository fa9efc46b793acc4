"""The path of the point estimators: `point-ncis` along the cap, `point-ncis-adaptive` along the bound on its weights.

Computed while the log is folded, for the rewarded rows that are kept: one set of rankings serves every cap and bound.
"""

from __future__ import annotations

import numpy as np

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns
from foretest.displays.batch import Displays, Floats
from foretest.estimators import AdaptivePointNCIS, PointNCIS
from foretest.weights.normaliser import Normaliser

CAPS = 10.0 ** (np.arange(13) / 2)  # 1 to 1e6
BOUNDS = np.array([2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0, 200.0, 500.0, 1000.0])
ALONG_CAP, ALONG_BOUND = "path:caps", "path:bounds"  # columns of the rewarded rows


def caps_of(plan: FoldPlan) -> Floats:
    """The caps of the path, the run's own among them; none where `point-ncis` does not run."""
    runs = any(type(e) is PointNCIS for e in plan.estimators)
    return _with_own(CAPS, plan.settings.analysis.cap_number) if runs else np.empty(0)


def bounds_of(plan: FoldPlan) -> Floats:
    """The bounds of the path, the run's own among them; none where `point-ncis-adaptive` does not run."""
    runs = any(type(e) is AdaptivePointNCIS for e in plan.estimators)
    return _with_own(BOUNDS, plan.settings.analysis.bound_number) if runs else np.empty(0)


def path_columns(plan: FoldPlan, normaliser: Normaliser, log_w: Floats, displays: Displays) -> Columns:
    """log h of rewarded rows along both grids, in seven digits: enough for a path, in half the memory."""
    caps, bounds = caps_of(plan), bounds_of(plan)
    if not len(caps) and not len(bounds):
        return {}
    along_caps, along_bounds = normaliser.path(displays, log_w, caps, bounds)
    columns = {ALONG_CAP: along_caps, ALONG_BOUND: along_bounds}
    with np.errstate(over="ignore"):  # a log h beyond 1e38 becomes infinite: its h is 0 or infinite anyway
        return {name: column.astype(np.float32) for name, column in columns.items() if column.shape[1]}


def _with_own(grid: Floats, own: float) -> Floats:
    """The grid with the run's own number among it."""
    return grid if np.isclose(grid, own, rtol=1e-9, atol=0.0).any() else np.sort(np.append(grid, own))
