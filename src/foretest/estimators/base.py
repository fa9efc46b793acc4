"""What an estimator is: a weighting of rows, and a value from sums over them."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from foretest.records import dataclass
from foretest.weights.weightings import Weighting


@dataclass(frozen=True)
class Sums:
    """Sums over the rows of the log, or of many resamples of it: every field has one entry per resample.

    Sums of weights are in units of `unit`, so that weights of 1e300 neither overflow nor vanish: a linear estimator
    multiplies by it, a ratio does not need it. For a stratified estimator n, h and hr have a second axis, the stratum.

    >>> import numpy as np
    >>> import foretest as ft
    >>> one, zero = np.array([1.0]), np.array([0.0])
    >>> sums = ft.Sums(rows=4 * one, r=one, n=4 * one, hr=2 * one, h=4 * one, hv=zero, v=zero)
    >>> ft.IS().value(sums).tolist()
    [0.5]
    """

    rows: npt.NDArray[Any]  # number of rows
    r: npt.NDArray[Any]  # Σ r
    n: npt.NDArray[Any]  # number of rows (by stratum)
    hr: npt.NDArray[Any]  # Σ h·r (by stratum)
    h: npt.NDArray[Any]  # Σ h (by stratum)
    hv: npt.NDArray[Any]  # Σ h·r̂
    v: npt.NDArray[Any]  # Σ E_t r̂; of estimators with a control variate for both policies Σ (E_t r̂ + r̂ − E_p r̂)
    unit: float = 1.0  # of hr, h and hv


class CapSettings(Protocol):
    """The analysis settings that a weighting may depend on; `Analysis` has them."""

    @property
    def cap_number(self) -> float: ...

    @property
    def capping(self) -> str: ...

    @property
    def bound_number(self) -> float: ...


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """A frozen dataclass with a key, a weighting of rows, and a value from sums.

    The influence of each row, hence delta and bootstrap intervals, follow from `value`, which must therefore be
    arithmetic (+ − × ÷) on the sums, the same for real and complex numbers.

    Half of CIS, as an example:

    >>> from dataclasses import dataclass
    >>> import foretest as ft
    >>> @dataclass(frozen=True, kw_only=True)
    ... class HalfCIS(ft.CIS):
    ...     key = "half-cis"
    ...     def value(self, sums):
    ...         return super().value(sums) / 2.0
    >>> HalfCIS(cap=30).label
    'half-cis'
    """

    key: ClassVar[str]
    #: are the sums by stratum?
    stratified: ClassVar[bool] = False
    #: does it need a value model V(x)?
    uses_value: ClassVar[bool] = False
    #: does it need the predicted reward r̂(x, item) of every eligible item?
    uses_items: ClassVar[bool] = False

    name: str | None = None  # its name in results; default: the key

    @property
    def label(self) -> str:
        """Its name in results: the key, unless another was given."""
        return self.name or self.key

    def weighting(self, analysis: CapSettings) -> Weighting:
        """The weight h of a row; parameters that were not given come from the analysis settings."""
        raise NotImplementedError(f"{type(self).__name__} has no weighting")

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        """The treatment's value."""
        raise NotImplementedError(f"{type(self).__name__} has no value")


def mean_or_ratio(sums: Sums) -> npt.NDArray[Any]:
    """Σ h·r/Σ h where all rows were weighed, else Σ h·r/n."""
    return ratio(sums.hr, sums.h) if np.any(sums.h) else sums.unit * ratio(sums.hr, sums.n)


def mean_of_residuals(sums: Sums) -> npt.NDArray[Any]:
    """Σ h·(r − r̂)/n + Σ v/n; where all rows were weighed for a ratio, Σ h·(r − r̂)/Σ h + Σ v/n."""
    residual = sums.hr - sums.hv
    mean = ratio(residual, sums.h) if np.any(sums.h) else sums.unit * ratio(residual, sums.n)
    return np.asarray(mean + ratio(sums.v, sums.n))


def ratio(numerator: npt.NDArray[Any], denominator: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """numerator/denominator, 0 where the denominator is 0.

    Parameters
    ----------
    numerator, denominator: arrays whose shapes broadcast.

    Returns
    -------
    An array; complex where one of the two is.

    >>> import numpy as np
    >>> import foretest as ft
    >>> ft.ratio(np.array([1.0, 2.0]), np.array([4.0, 0.0])).tolist()
    [0.25, 0.0]
    """
    out = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape), np.result_type(numerator, denominator))
    return np.asarray(np.divide(numerator, denominator, out=out, where=denominator != 0))
