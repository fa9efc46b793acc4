"""What a fold has added up so far: the fields of `Aggregates`, while batches come in."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.age_sums import AgeSums, no_ages
from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import KeptRows
from foretest.aggregation.large_units import LargeUnits, no_large_units
from foretest.aggregation.replay_sums import ReplaySums, no_replay
from foretest.aggregation.scaled_sums import ScaledSums
from foretest.aggregation.segment_sums import MOST_DAYS, SegmentSums
from foretest.aggregation.strata import Strata
from foretest.aggregation.thinning import Thinning
from foretest.aggregation.unit_counts import UnitCounts
from foretest.aggregation.weight_bins import WeightBins
from foretest.displays.batch import Floats
from foretest.estimators import DR
from foretest.log.rows import DAY
from foretest.records import dataclass
from foretest.weights.weightings import Weighting

MOST_REWARDED = 1 << 17
SAMPLED_DISPLAYS = 20_000


def squares_of(label: str) -> str:
    """The name of Σ (E_t r̂ − E_p r̂) and Σ (E_t r̂ − E_p r̂)² among the sums of an estimator's model."""
    return f"{label}: squares"


@dataclass
class FoldState:
    """The sums so far; each field means what it means in `Aggregates`."""

    plan: FoldPlan
    n: Floats
    r: Floats
    r2: Floats
    positives: Floats
    h: dict[Weighting, ScaledSums]
    hr: dict[tuple[Weighting, int], ScaledSums]
    v: dict[tuple[str, int], Floats]
    strata: dict[str, Strata]
    strata_n: dict[str, Floats]
    unsupported: dict[Weighting, int]
    approximate: dict[Weighting, int]
    max_log_w: float
    capped_rows: float
    bins: WeightBins
    rewarded: KeptRows
    sample: KeptRows
    units: UnitCounts | None
    segments: dict[str, SegmentSums]
    thinned: Thinning | None
    ages: AgeSums | None
    cut: Floats | None
    trained: Floats | None
    replay: ReplaySums | None
    large_units: LargeUnits | None

    @classmethod
    def empty(cls, plan: FoldPlan) -> FoldState:
        """The sums of no rows."""
        cells, metrics = plan.cells, len(plan.metrics)
        order = ("unit", "key", "log_w", *(f"r:{m}" for m in range(metrics)))  # later columns break ties
        models = [e for e in plan.estimators if isinstance(e, DR) or e.uses_items]
        return cls(
            plan=plan,
            n=np.zeros(cells),
            r=np.zeros((metrics, cells)),
            r2=np.zeros(metrics),
            positives=np.zeros(metrics),
            h={w: ScaledSums() for w in (*plan.weightings, *plan.normalised_weightings, *plan.slot_ratios)},
            hr={(w, m): ScaledSums() for w in [*plan.weightings, *plan.point_weightings] for m in range(metrics)},
            v={(e.label, m): np.zeros(cells) for e in models for m in range(metrics)}
            | {
                (squares_of(e.label), m): np.zeros(4 if plan.is_thinned else 2)
                for e in models
                if e.uses_items
                for m in range(metrics)
            },
            strata={table: Strata() for table in plan.tables},
            strata_n={table: np.zeros(0) for table in plan.tables},
            unsupported=dict.fromkeys(plan.point_weightings, 0),
            approximate=dict.fromkeys(plan.point_weightings, 0),
            max_log_w=-np.inf,
            capped_rows=0,
            bins=WeightBins.empty(cells, metrics),
            rewarded=KeptRows(MOST_REWARDED, order),
            sample=KeptRows(SAMPLED_DISPLAYS, order),
            units=None if plan.row_is_unit else UnitCounts.empty(),
            segments={c: SegmentSums(cells, most=MOST_DAYS if c == DAY else None) for c in plan.segments},
            thinned=Thinning.empty(cells, metrics, plan.tables) if plan.is_thinned else None,
            ages=no_ages(plan.settings),
            cut=np.zeros((2, len(plan.settings.log.rewards))) if plan.settings.winsorises else None,
            trained=None if plan.settings.trained_until is None else np.zeros(1),
            replay=no_replay(plan.settings),
            large_units=no_large_units(plan.settings),
        )

    def places(self, table: str) -> int:
        """How many pairs of stratum and cell there are by now: place = stratum·cells + cell."""
        return len(self.strata[table].labels) * self.plan.cells

    def aggregates(self, treatments: dict[str, Aggregates]) -> Aggregates:
        """The sums as aggregates, with those of the further treatments."""
        large = None if self.large_units is None or self.units is None else self.large_units.largest(self.units)
        given = {**vars(self), "plan": self.plan.lasting, "large_units": large}
        return Aggregates(**given, treatments=treatments)
