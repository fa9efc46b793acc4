"""Is the covariate alike in both arms? What was measured before the test differs by chance alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from foretest.files import finite_or_none
from foretest.formatting import format_number, p_value
from foretest.inference.welch import two_sample_p_value
from foretest.online.adjustment import imbalance, is_constant
from foretest.online.arms import Arms
from foretest.online.sample_ratio import ALERT
from foretest.records import dataclass


@dataclass(frozen=True)
class CovariateBalance:
    """The mean of the covariate over the units of each arm, the control's first, and the p of no difference."""

    column: str
    means: list[float | None]
    p_value: float | None
    alert: bool
    constant: bool  # has it one value in all units?
    sampled_shares: list[float]  # of the units of each arm, whose value is counted

    def to_dict(self) -> dict[str, Any]:
        """The content of `health.covariate` in result.json."""
        return asdict(self)

    @property
    def notes(self) -> list[str]:
        """What a reader should know of the covariate, in words."""
        notes = []
        if self.constant:
            notes.append(f"the covariate '{self.column}' has one value in all units: it adjusts nothing.")
        if self.alert and self.p_value is not None:
            control, treatment = (format_number(mean) for mean in self.means)
            notes.append(
                f"the covariate '{self.column}' differs between the arms beyond chance: {control} in the control,"
                f" {treatment} in the treatment ({p_value(self.p_value)}). It is from before the test, or should be:"
                " find out whether the treatment can change it, or who is missing from one arm, before you believe the"
                " adjusted uplift."
            )
        if min(self.sampled_shares) < 1.0:
            shares = " and ".join(f"{share:.1%}" for share in self.sampled_shares)
            notes.append(
                f"over 2^21 units: the covariate is counted, and checked to have one value per unit, on a random"
                f" {shares} of the units of control and treatment, which lessens what it buys."
            )
        return notes


def covariate_balance(arms: Arms, column: str | None) -> CovariateBalance | None:
    """How alike the arms are in the covariate; None without one."""
    if column is None:
        return None
    apart = imbalance(arms)
    shares = [arm.covariate.share for arm in arms if arm.covariate is not None]
    if apart is None:
        return CovariateBalance(column, [None, None], None, False, False, shares)
    if is_constant(arms):
        return CovariateBalance(column, [apart.control, apart.treatment], None, False, True, shares)
    p = finite_or_none(two_sample_p_value(apart.treatment - apart.control, apart.error))
    return CovariateBalance(
        column, [apart.control, apart.treatment], p, p is not None and p < ALERT, constant=False, sampled_shares=shares
    )
