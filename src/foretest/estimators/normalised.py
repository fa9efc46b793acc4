"""NIS: normalised importance sampling."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy.typing as npt

from foretest.estimators.base import CapSettings, Estimator, Sums, ratio
from foretest.records import dataclass
from foretest.weights.weightings import Uncapped, Weighting


@dataclass(frozen=True, kw_only=True)
class NIS(Estimator):
    """Normalised importance sampling: the mean of rewards, weighted by w.

    Σ w r / Σ w  (Powell and Swann 1966; paper, section 4.1): E_p[W] = 1 as a ratio control variate.

    >>> import foretest as ft
    >>> import pyarrow as pa
    >>> log = pa.table({"click": [1, 0, 0, 0] * 25, "old": [0.25, 0.75, 0.75, 0.75] * 25, "new": [0.5] * 100})
    >>> test = ft.OfflineTest(
    ...     log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="old"), treatment=ft.Logged(prob="new"),
    ...     estimators=[ft.NIS()],
    ... )
    >>> round(test.run(log).metrics["click"].estimates["nis"].treatment, 6)
    0.5
    """

    key: ClassVar[str] = "nis"

    def weighting(self, analysis: CapSettings) -> Weighting:
        return Uncapped()

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return ratio(sums.hr, sums.h)
