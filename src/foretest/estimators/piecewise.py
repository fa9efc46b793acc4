"""PieceNCIS: NCIS in each stratum of contexts."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy.typing as npt

from foretest.estimators.base import Sums, ratio
from foretest.estimators.normalised_capped import NCIS
from foretest.records import dataclass


@dataclass(frozen=True, kw_only=True)
class PieceNCIS(NCIS):
    """NCIS within each stratum of contexts; a stratum counts by its share of the rows.

    Σ_g (n_g/n)·Σ_{i∈g} w̄ r / Σ_{i∈g} w̄  (paper, section 5.3).

    What capping cuts off is worth the average of what it leaves in the same stratum. A stratum with Σ w̄ = 0 has no
    estimate: it contributes 0, and shares stay as they are.

    >>> import foretest as ft
    >>> import pyarrow as pa
    >>> old, device = [0.25, 0.75, 0.75, 0.75] * 25, ["phone", "desk"] * 50
    >>> log = pa.table({"click": [1, 0, 0, 0] * 25, "old": old, "new": [0.5] * 100, "device": device})
    >>> test = ft.OfflineTest(
    ...     log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="old"), treatment=ft.Logged(prob="new"),
    ...     estimators=[ft.PieceNCIS(cap=1.5)], strata="device",
    ... )
    >>> round(test.run(log).metrics["click"].estimates["piece-ncis"].treatment, 6)
    0.346154
    """

    key: ClassVar[str] = "piece-ncis"
    stratified: ClassVar[bool] = True

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        # n·hr first: where every weight is 1 the quotient is then exact, and so is an uplift of 0
        return ratio(ratio(sums.n * sums.hr, sums.h).sum(axis=-1), sums.rows)
