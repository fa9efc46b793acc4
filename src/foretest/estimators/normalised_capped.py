"""NCIS: normalised capped importance sampling, a global model of the capping bias."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy.typing as npt

from foretest.estimators.base import Sums, ratio
from foretest.estimators.capped import CIS
from foretest.records import dataclass


@dataclass(frozen=True, kw_only=True)
class NCIS(CIS):
    """Normalised capped importance sampling: the mean of rewards, weighted by the capped weights.

    Σ w̄ r / Σ w̄  (paper, section 5.1): what capping cuts off is worth the average of what it leaves.

    >>> import foretest as ft
    >>> import pyarrow as pa
    >>> log = pa.table({"click": [1, 0, 0, 0] * 25, "old": [0.25, 0.75, 0.75, 0.75] * 25, "new": [0.5] * 100})
    >>> test = ft.OfflineTest(
    ...     log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="old"), treatment=ft.Logged(prob="new"),
    ...     estimators=[ft.NCIS(cap=1.5)],
    ... )
    >>> round(test.run(log).metrics["click"].estimates["ncis"].treatment, 6)
    0.428571
    """

    key: ClassVar[str] = "ncis"

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return ratio(sums.hr, sums.h)
