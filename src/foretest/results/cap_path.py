"""A metric along the caps: what result.json has as `cap_path`, the data of Figure 2."""

from __future__ import annotations

from typing import Any

from foretest.records import dataclass

Column = list[float | None]  # one number per cap; None where there is none
Band = list[float]  # the lowest and the highest cap


@dataclass(frozen=True)
class PathEstimates:
    """An estimator's answers along a path, one column for each number of an estimate."""

    treatment: Column
    std_error: Column
    effect_size: Column
    effect_size_ci_lower: Column
    effect_size_ci_upper: Column
    rel_effect_size: Column
    rel_effect_size_ci_lower: Column
    rel_effect_size_ci_upper: Column

    def to_dict(self) -> dict[str, Column]:
        """The columns by name."""
        return dict(vars(self))


@dataclass(frozen=True)
class PointPath:
    """A point estimator along a grid of its own, from the rewarded rows that were kept."""

    grid_name: str  # "caps" or "bounds"
    grid: Column
    rewarded_rows: int
    notes: list[str]
    estimates: PathEstimates
    effective_positives: Column

    def to_dict(self) -> dict[str, Any]:
        """The grid under its name, what it comes from, and the columns."""
        return {
            self.grid_name: self.grid,
            "rewarded_rows": self.rewarded_rows,
            "notes": self.notes,
            **self.estimates.to_dict(),
            "effective_positives": self.effective_positives,
        }


@dataclass(frozen=True)
class PathCriteria:
    """How small an uplift noise and bias let CIS show, relative to the control's value, and where both are small."""

    noise_seen: Column  # in this log
    noise_expected: Column  # from the weights alone
    noise: Column  # the larger of the two
    bias_bound: Column
    bias_bound_loose: Column  # as the paper prints it
    sensitivity: Column  # noise + bias_bound
    noise_band: Band | None
    bias_band: Band | None
    both_band: Band | None
    satisfies_both: bool | None  # None where the bound is unknown


@dataclass(frozen=True)
class CapPath:
    """CIS and NCIS of one metric at every cap from 1 to 1e25, and the point estimators along their own grids."""

    metric: str
    capping: str
    interval: str
    confidence_level: float
    sought: float  # the uplift to be seen
    cap: float  # the run's own
    weight_bound: float
    r_max: float | None
    control: float | None
    source: str  # of the treatment's mass: "draws" or "log"
    max_log10_weight: float | None
    caps: Column
    cis: PathEstimates
    ncis: PathEstimates
    point_ncis: PointPath | None
    point_ncis_adaptive: PointPath | None
    effective_positives: Column
    variance: Column  # of CIS's value
    treatment_mass_kept: Column
    share_above_cap: Column
    criteria: PathCriteria
    notes: list[str]
    bound_choice: dict[str, Any] | None = None  # how the bound was chosen, where it was

    def to_dict(self) -> dict[str, Any]:
        """The path as result.json has it: the criteria beside the other columns, estimators by their keys."""
        document: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, PathCriteria):
                document |= vars(value)
            elif isinstance(value, PathEstimates | PointPath):
                document[_key(name)] = value.to_dict()
            else:
                document[_key(name)] = value
        return document


def _key(name: str) -> str:
    """A field's name in result.json.

    >>> _key("point_ncis_adaptive"), _key("max_log10_weight")
    ('point-ncis-adaptive', 'max_log10_weight')
    """
    return name.replace("_", "-") if name.startswith("point_ncis") else name
