"""Sums of weights of any size: a running power of two keeps 1e-300 from underflow and 1e300 from overflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats
from foretest.kernels.exponential import exponentials
from foretest.records import dataclass

_STEP = 64  # exponents move in steps, so that rescaling is exact and rare
MODEL_MOMENTS = "model_moments"
SQUARES = (
    "h2", "hr2", "bound_products", "bound_products_r", "bound_products_1", MODEL_MOMENTS, "noise_second",
    "noise_observed", "noise_observed_r", "noise_observed_1", "noise_expected", "noise_expected_r", "noise_expected_1",
)  # fmt: skip
_LN2 = float(np.log(2.0))


@dataclass
class ScaledSums:
    """Named arrays of sums of h (of h² where the name is among SQUARES) in units of 2^exponent (or its square)."""

    arrays: dict[str, Floats] = field(default_factory=dict)
    exponent: int | None = None

    def scaled(self, log_h: Floats) -> Floats:
        """h in units of 2^exponent, after raising the exponent to what the largest needs."""
        top = float(log_h.max(initial=-np.inf))
        if top == -np.inf:
            return np.zeros(len(log_h))
        self.raise_to(_STEP * int(np.ceil(top / (_STEP * _LN2))))
        assert self.exponent is not None
        unit = self.exponent * _LN2
        if top > unit:  # by rounding, beyond 1e15
            log_h = np.minimum(log_h, unit)
        return np.asarray(exponentials(log_h, unit))

    def raise_to(self, exponent: int) -> None:
        """Take a larger exponent for the unit, and express the sums in it."""
        if self.exponent is None:
            self.exponent = exponent
        elif exponent > self.exponent:
            for name, array in self.arrays.items():
                array[:] = _shifted(array, (self.exponent - exponent) * (2 if name in SQUARES else 1))
            self.exponent = exponent

    def add(self, name: str, amounts: Any) -> None:
        """Add a scalar or an array; of two arrays the shorter is taken to end in zeros."""
        amounts = np.atleast_1d(np.asarray(amounts, dtype=np.float64))
        self.arrays[name] = add_padded(self.arrays.get(name), amounts)

    def get(self, name: str, size: int = 1) -> Floats:
        """The sums of a name; zeros where nothing was added."""
        array = self.arrays.get(name)
        return np.zeros(size) if array is None else array

    @property
    def log_unit(self) -> float:
        """The logarithm of the unit, 2^exponent."""
        return 0.0 if self.exponent is None else self.exponent * _LN2

    def __add__(self, other: ScaledSums) -> ScaledSums:
        return ScaledSums.total([self, other])

    @classmethod
    def total(cls, parts: Sequence[ScaledSums]) -> ScaledSums:
        """The sums of all parts, in units of the largest exponent."""
        total = cls(exponent=max((p.exponent for p in parts if p.exponent is not None), default=None))
        for part in parts:
            shift = 0 if part.exponent is None or total.exponent is None else part.exponent - total.exponent
            for name, array in part.arrays.items():
                total.add(name, _shifted(array, shift * (2 if name in SQUARES else 1)) if shift else array)
        return total


def _shifted(array: Floats, shift: int) -> Floats:
    """The array times 2^shift, shift below 0; scores of 1e300 make a shift that no machine's integer holds."""
    return np.asarray(np.ldexp(array, max(shift, -10_000)))


def add_padded(left: npt.NDArray[Any] | None, right: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """left + right, the shorter one filled up with zeros; `left` is changed in place where it is long enough."""
    if left is None:
        return right.copy()
    if len(left) < len(right):
        left = np.concatenate([left, np.zeros(len(right) - len(left), left.dtype)])
    left[: len(right)] += right
    return left
