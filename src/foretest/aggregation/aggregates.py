"""The sums that a log becomes, and how they add up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import KeptRows
from foretest.aggregation.scaled_sums import ScaledSums, add_padded
from foretest.aggregation.segment_sums import SegmentSums
from foretest.aggregation.strata import Strata
from foretest.aggregation.unit_counts import UnitCounts
from foretest.aggregation.weight_bins import WeightBins
from foretest.displays.batch import Floats
from foretest.weights.weightings import Weighting


@dataclass(frozen=True)
class Aggregates:
    """All that the analysis needs of a log. `a + b` is the aggregates of both logs together."""

    plan: FoldPlan
    n: Floats  # rows by bucket
    r: Floats  # Σ r by metric and bucket
    r2: Floats  # Σ r² by metric
    positives: Floats  # rows with a reward, by metric
    h: dict[Weighting, ScaledSums]  # h, h2, h:<strata>, hv:<estimator>:<metric>
    hr: dict[tuple[Weighting, int], ScaledSums]  # hr, hr2, hrr, hr:<strata>; pointwise t, slice, slice_expected
    v: dict[tuple[str, int], Floats]  # Σ E_t r̂ by bucket, of each DR estimator and metric
    strata: dict[str, Strata]
    strata_n: dict[str, Floats]  # rows by stratum × bucket
    unsupported: dict[Weighting, int]
    approximate: dict[Weighting, int]
    max_log_w: float
    capped_rows: int
    bins: WeightBins
    rewarded: KeptRows
    sample: KeptRows
    units: UnitCounts | None  # None: every row is a unit
    sampled: dict[Weighting, bool] = field(default_factory=dict)  # is Σh an estimate, from the sample of displays?
    treatments: dict[str, Aggregates] = field(default_factory=dict)  # of the same rows, for the further treatments
    segments: dict[str, SegmentSums] = field(default_factory=dict)  # by column

    @property
    def rows(self) -> int:
        return int(self.n.sum())

    @cached_property
    def n_units(self) -> int:
        return self.rows if self.units is None else self.units.units

    @property
    def largest_unit(self) -> int:
        return min(1, self.rows) if self.units is None else self.units.largest

    def __add__(self, other: Aggregates) -> Aggregates:
        return Aggregates.total([self, other])

    @classmethod
    def total(cls, parts: Sequence[Aggregates]) -> Aggregates:
        """The aggregates of all logs together, added up once over all."""
        first = parts[0]
        strata = {table: Strata() for table in first.strata}
        codes = [
            {table: [strata[table].code(label) for label in found.labels] for table, found in part.strata.items()}
            for part in parts
        ]
        parts = [part._recoded(new) for part, new in zip(parts, codes, strict=True)]
        units = [part.units for part in parts if part.units is not None]

        def summed(name: str) -> Any:
            return sum(getattr(part, name) for part in parts)

        def padded(arrays: Iterable[Floats]) -> Floats:
            return reduce(add_padded, arrays, np.zeros(0))

        return cls(
            plan=first.plan,
            n=summed("n"),
            r=summed("r"),
            r2=summed("r2"),
            positives=summed("positives"),
            h={w: ScaledSums.total([part.h[w] for part in parts]) for w in first.h},
            hr={key: ScaledSums.total([part.hr[key] for part in parts]) for key in first.hr},
            v={key: padded(part.v[key] for part in parts) for key in first.v},
            strata=strata,
            strata_n={table: padded(part.strata_n[table] for part in parts) for table in first.strata_n},
            unsupported={w: sum(part.unsupported[w] for part in parts) for w in first.unsupported},
            approximate={w: sum(part.approximate[w] for part in parts) for w in first.approximate},
            max_log_w=max(part.max_log_w for part in parts),
            capped_rows=summed("capped_rows"),
            bins=WeightBins.total([part.bins for part in parts]),
            rewarded=KeptRows.total([part.rewarded for part in parts]),
            sample=KeptRows.total([part.sample for part in parts]),
            units=UnitCounts.total(units) if len(units) == len(parts) else None,
            sampled={w: any(part.sampled.get(w, False) for part in parts) for part in parts for w in part.sampled},
            segments={
                column: SegmentSums.total([part.segments[column] for part in parts]) for column in first.segments
            },
            treatments={name: cls.total([part.treatments[name] for part in parts]) for name in first.treatments},
        )

    def under(self, plan: FoldPlan) -> Aggregates:
        """The same sums with this plan, and with those of its further treatments below."""
        treatments = {name: held.under(plan.further[name]) for name, held in self.treatments.items()}
        return replace(self, plan=plan, treatments=treatments)

    def _recoded(self, codes: dict[str, list[int]]) -> Aggregates:
        """The same sums with other integers for the strata."""
        if all(new == list(range(len(new))) for new in codes.values()):
            return self
        buckets = len(self.n)

        def moved(array: Floats, new: list[int]) -> Floats:
            out = np.zeros((max(new, default=-1) + 1, buckets))
            held = array.reshape(-1, buckets)
            out[new[: len(held)]] = held
            return out.ravel()

        def table_of(name: str) -> str | None:
            kind, _, table = name.partition(":")
            return table if name.startswith(("h:", "hr:")) and kind in ("h", "hr") else None

        def recode(sums: ScaledSums) -> ScaledSums:
            arrays = {}
            for name, array in sums.arrays.items():
                table = table_of(name)
                arrays[name] = array if table is None else moved(array, codes[table])
            return ScaledSums(arrays, sums.exponent)

        parts = []
        for part in self.rewarded.parts:
            changed = {f"stratum:{t}": np.asarray(new)[part[f"stratum:{t}"]] for t, new in codes.items() if len(new)}
            parts.append({**part, **changed})
        kept = self.rewarded
        return Aggregates(**{
            **vars(self),
            "h": {w: recode(sums) for w, sums in self.h.items()},
            "hr": {key: recode(sums) for key, sums in self.hr.items()},
            "strata_n": {t: moved(sums, codes[t]) for t, sums in self.strata_n.items()},
            "rewarded": replace(kept, parts=parts),
        })  # fmt: skip
