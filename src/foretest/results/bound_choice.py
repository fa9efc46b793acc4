"""How a bound on normalised weights was chosen: what result.json has as `bound_choice`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from foretest.records import dataclass


@dataclass(frozen=True)
class BoundRow:
    """One of the bounds that were looked at."""

    bound: float
    value: float  # the treatment's, at this bound
    predicted_std_error: float  # over all that the control could have shown
    effective_positives: float  # predicted
    events: float | None  # rewards that carry the difference to the least bound; None where there is none
    admissible: bool


@dataclass(frozen=True)
class BoundChoice:
    """The bound that was chosen, and those it was chosen from."""

    bound: float
    rows: tuple[BoundRow, ...]
    lower: float = 0.0  # how far larger admissible bounds move the value beyond noise, down and up
    upper: float = 0.0

    @property
    def reason(self) -> str:
        """Why this bound and no other, in a sentence."""
        admissible = [row.bound for row in self.rows if row.admissible]
        if len(admissible) == 1:
            return (
                f"The bound on weights stays at {self.bound:g}: too few rewards carry the difference to a larger one."
            )
        most = f"{admissible[-1]:g}"
        if self.bound == admissible[0]:
            return (
                f"The bound on weights is {self.bound:g}: up to {most} the log would carry a larger one, which would"
                " add more noise than it takes away bias."
            )
        return (
            f"The bound on weights is {self.bound:g}, the best balance of noise and bias among those that the log can"
            f" carry ({admissible[0]:g} to {most})."
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields as result.json has them."""
        return {"bound": self.bound, "reason": self.reason, "bounds": [asdict(row) for row in self.rows]}
