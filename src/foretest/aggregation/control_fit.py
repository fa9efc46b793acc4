"""The number of a control that was fitted from the log before the fold, and its error."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats, Hashes
from foretest.kernels.random import derive
from foretest.records import dataclass

_SALT = 13  # units of the fit and of the audit are told apart by a hash of their own
_LAST = np.uint64((1 << 64) - 1)


@dataclass(frozen=True)
class FittedNumber:
    """A temperature, sigma or epsilon as the log shows it. Errors are by unit."""

    control: str  # the name of the logger; "control" where there is one
    logger: int  # its number
    parameter: str
    value: float
    std_error: float
    rows: int  # that it was fitted on
    information: float  # of these rows, as if they were independent; on the scale that the number is fitted on
    #: of each cell on that scale: they sum to 0, and the number of a resample is moved by the sum of its cells'
    influence: Floats = field(compare=False, repr=False)

    @property
    def information_per_row(self) -> float:
        """What a row tells, on average."""
        return self.information / self.rows

    def to_dict(self) -> dict[str, Any]:
        """The fit as result.json has it."""
        return {"parameter": self.parameter, "value": self.value, "std_error": self.std_error, "rows": self.rows}

    def sentence(self) -> str:
        """The fit in words."""
        whose = "" if self.control == "control" else f" of '{self.control}'"
        return f"{self.parameter}{whose} fitted from the log: {_rounded(self.value, self.std_error)}"


def _rounded(value: float, error: float) -> str:
    """A number in as many digits as its standard error has use for.

    >>> _rounded(0.8213, 0.0104)
    '0.821 (standard error 0.010)'
    """
    digits = 4 if not error > 0.0 else int(np.clip(1 - np.floor(np.log10(error)), 0, 12))
    return f"{value:.{digits}f} (standard error {error:.{digits}f})"


def is_fitted_on(unit: Hashes) -> npt.NDArray[np.bool_]:
    """Which units a control is fitted on: half of them, by hash; the audit has the other half."""
    return np.asarray(derive(unit, _SALT) >> np.uint64(63) == 0)


def units_to_audit(unit: Hashes) -> Hashes:
    """The hashes of units that the audit may sample, and the highest hash for all others."""
    return np.where(is_fitted_on(unit), _LAST, unit)


def information_ratio(fits: tuple[FittedNumber, ...], rows_by_logger: Floats) -> float:
    """I_audit/I_fit, how well the audited rows would tell the number against how well it is known; the largest where
    several loggers are fitted."""
    return max((fit.information_per_row * rows_by_logger[fit.logger] / fit.information for fit in fits), default=0.0)
