"""IS: importance sampling."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy.typing as npt

from foretest.estimators.base import CapSettings, Estimator, Sums, ratio
from foretest.records import dataclass
from foretest.weights.weightings import Uncapped, Weighting


@dataclass(frozen=True, kw_only=True)
class IS(Estimator):
    """Importance sampling: every reward times its importance weight w. Unbiased; its variance has no bound.

    Σ w r / n  (Horvitz and Thompson 1952; paper, section 3): unbiased, and of unbounded variance.

    >>> import foretest as ft
    >>> import pyarrow as pa
    >>> log = pa.table({"click": [1, 0, 0, 0] * 25, "old": [0.25, 0.75, 0.75, 0.75] * 25, "new": [0.5] * 100})
    >>> test = ft.OfflineTest(
    ...     log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="old"), treatment=ft.Logged(prob="new"),
    ...     estimators=[ft.IS()],
    ... )
    >>> round(test.run(log).metrics["click"].estimates["is"].treatment, 6)
    0.5
    """

    key: ClassVar[str] = "is"

    def weighting(self, analysis: CapSettings) -> Weighting:
        return Uncapped()

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return sums.unit * ratio(sums.hr, sums.n)
