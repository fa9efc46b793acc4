"""The sums that a log becomes, and how they add up."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from foretest.aggregation.age_sums import AgeSums
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns, KeptRows
from foretest.aggregation.large_units import LargeUnits
from foretest.aggregation.replay_sums import ReplaySums
from foretest.aggregation.scaled_sums import ScaledSums, add_padded
from foretest.aggregation.segment_sums import SegmentSums
from foretest.aggregation.strata import Strata
from foretest.aggregation.thinning import Thinning, evenly_thinned
from foretest.aggregation.unit_counts import UnitCounts
from foretest.aggregation.weight_bins import WeightBins
from foretest.displays.batch import Floats
from foretest.errors import BadInput
from foretest.formatting import plural, some_of, units_text
from foretest.log.rows import DAY
from foretest.records import dataclass
from foretest.weights.weightings import Weighting

#: a field that a file has only where it is given: files of other logs are as they were before it
OPTIONAL = {"optional": True}

CodesByTable = dict[str, list[int]]  # by table of strata: the new code of each old one


@dataclass(frozen=True)
class Aggregates:
    """All that the analysis needs of a log; `a + b` are the aggregates of both logs together.

    >>> import foretest as ft
    >>> import pyarrow as pa
    >>> log = pa.table({"click": [1, 0] * 50, "old": [0.5] * 100, "new": [0.6, 0.4] * 50})
    >>> test = ft.OfflineTest(
    ...     log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="old"), treatment=ft.Logged(prob="new"),
    ...     estimators=["ncis"],
    ... )
    >>> aggregates = test.aggregate(log).aggregates
    >>> (aggregates + aggregates).rows
    200
    """

    plan: FoldPlan
    n: Floats  # displays by cell, a bucket of units of one logger: rows, or of a thinned log Σ 1/keep, as in every sum
    r: Floats  # Σ r by metric and cell
    r2: Floats  # Σ r² by metric
    positives: Floats  # rows with a reward, by metric
    h: dict[Weighting, ScaledSums]  # h, h2, h:<strata>, hv:<estimator>:<metric>
    hr: dict[tuple[Weighting, int], ScaledSums]  # hr, hr2, hrr, hr:<strata>; pointwise t, slice, slice_expected
    v: dict[tuple[str, int], Floats]  # Σ E_t r̂ by cell, for each DR estimator and metric
    strata: dict[str, Strata]
    strata_n: dict[str, Floats]  # rows by stratum × cell
    unsupported: dict[Weighting, int]
    approximate: dict[Weighting, int]
    max_log_w: float
    capped_rows: float
    bins: WeightBins
    rewarded: KeptRows
    sample: KeptRows
    units: UnitCounts | None  # None: every row is a unit
    sampled: dict[Weighting, bool] = field(default_factory=dict)  # is Σh an estimate, from the sample of displays?
    treatments: dict[str, Aggregates] = field(default_factory=dict)  # of the same rows, for the further treatments
    segments: dict[str, SegmentSums] = field(default_factory=dict)  # by column
    thinned: Thinning | None = field(default=None, metadata=OPTIONAL)  # of a thinned log
    ages: AgeSums | None = field(default=None, metadata=OPTIONAL)  # where the log says when rewards came
    #: where rewards are winsorised: Σ of each reward column before, and of what was cut
    cut: Floats | None = field(default=None, metadata=OPTIONAL)
    #: where a treatment says until when it was trained: how many rows were left out for it
    trained: Floats | None = field(default=None, metadata=OPTIONAL)
    replay: ReplaySums | None = field(default=None, metadata=OPTIONAL)  # where the control's draws are made again
    large_units: LargeUnits | None = field(default=None, metadata=OPTIONAL)  # where rows have units

    def __repr__(self) -> str:
        return f"<Aggregates of {aggregates_summary(self)}>"

    @property
    def rows(self) -> int:
        """How many rows the log has: one per display that is in it."""
        return int(self.rows_by_cell.sum())

    @property
    def rows_by_cell(self) -> Floats:
        """How many rows each cell has."""
        return self.n if self.thinned is None else self.thinned.rows

    @property
    def displays(self) -> float:
        """How many displays the rows stand for: as many as there are rows, unless the log was thinned."""
        return self.rows if self.thinned is None else float(self.n.sum())

    @property
    def is_unevenly_thinned(self) -> bool:
        """Do rows stand for such different numbers of displays, m, that they are worth less than half of their number,
        by Kish's (Σ m)²/Σ m²?"""
        return self.thinned is not None and self.displays**2 < 0.5 * self.rows * float(self.thinned.squares[0])

    @property
    def sampled_displays(self) -> Columns:
        """The fixed sample of displays, each of which stands for equally many."""
        return self.sample.columns() if self.thinned is None else self._even_sample

    @cached_property
    def _even_sample(self) -> Columns:
        return evenly_thinned(self.sample.columns())

    @cached_property
    def _answers(self) -> dict[Hashable, Any]:
        """What the analysis has found from these sums, by its question: each is answered once."""
        return {}

    @cached_property
    def n_units(self) -> int:
        """How many units the log has."""
        return self.rows if self.units is None else self.units.units

    @property
    def units_exact(self) -> bool:
        """Is every unit counted, so that their number is no estimate?"""
        return self.units is None or self.units.exact

    @property
    def largest_unit(self) -> int:
        """How many rows the largest unit has, or an upper bound where there are very many units."""
        return min(1, self.rows) if self.units is None else self.units.largest

    def __add__(self, other: Aggregates) -> Aggregates:
        return Aggregates.total([self, other])

    @classmethod
    def total(cls, parts: Sequence[Aggregates]) -> Aggregates:
        """The aggregates of all logs together; added up at once, they are copied once."""
        _refuse_other_fits(parts)
        strata, parts = _with_common_strata(parts)
        first, counts = parts[0], [part.units for part in parts if part.units is not None]
        units = UnitCounts.total(counts) if len(counts) == len(parts) else None
        return cls(
            plan=first.plan,
            n=_sum([part.n for part in parts]),
            r=_sum([part.r for part in parts]),
            r2=_sum([part.r2 for part in parts]),
            positives=_sum([part.positives for part in parts]),
            h={w: ScaledSums.total([p.h[w] for p in parts]) for w in first.h if all(w in p.h for p in parts)},
            # a file from before further bounds were folded lacks theirs
            hr={k: ScaledSums.total([p.hr[k] for p in parts]) for k in first.hr if all(k in p.hr for p in parts)},
            v={key: _padded_sum([part.v[key] for part in parts]) for key in first.v},
            strata=strata,
            strata_n={table: _padded_sum([part.strata_n[table] for part in parts]) for table in first.strata_n},
            unsupported={w: sum(part.unsupported.get(w, 0) for part in parts) for w in first.unsupported},
            approximate={w: sum(part.approximate.get(w, 0) for part in parts) for w in first.approximate},
            max_log_w=max(part.max_log_w for part in parts),
            capped_rows=sum(part.capped_rows for part in parts),
            bins=WeightBins.total([part.bins for part in parts]),
            rewarded=KeptRows.total([part.rewarded for part in parts]),
            sample=KeptRows.total([part.sample for part in parts]),
            units=units,
            sampled={w: any(part.sampled.get(w, False) for part in parts) for part in parts for w in part.sampled},
            treatments={name: cls.total([part.treatments[name] for part in parts]) for name in first.treatments},
            # sums by day are in some files and not in others
            segments={
                name: SegmentSums.total([part.segments[name] for part in parts])
                for name in first.segments
                if all(name in part.segments for part in parts)
            },
            thinned=_total_thinning(parts),
            ages=_total_ages(parts),
            trained=_sum([part.trained for part in parts if part.trained is not None])
            if first.trained is not None
            else None,
            cut=_sum([part.cut for part in parts if part.cut is not None]) if first.cut is not None else None,
            replay=_total_replay(parts),
            large_units=_total_large_units(parts, units),
        )

    def under(self, plan: FoldPlan) -> Aggregates:
        """These sums with this plan, and those of the further treatments with its further plans."""
        treatments = {name: part.under(plan.further[name]) for name, part in self.treatments.items()}
        return replace(self, plan=plan, treatments=treatments)

    def _recoded(self, codes: CodesByTable) -> Aggregates:
        """These sums with `codes[table][k]` in place of the stratum code k of a table."""
        if all(new == list(range(len(new))) for new in codes.values()):
            return self
        cells = len(self.n)
        return replace(
            self,
            h={w: _recode_sums(sums, codes, cells) for w, sums in self.h.items()},
            hr={key: _recode_sums(sums, codes, cells) for key, sums in self.hr.items()},
            strata_n={table: _recode_array(array, codes[table], cells) for table, array in self.strata_n.items()},
            rewarded=_recode_rows(self.rewarded, codes),
            thinned=_recode_counts(self.thinned, codes, cells),
        )


def _refuse_other_fits(parts: Sequence[Aggregates]) -> None:
    """Refuse to add sums whose weights are by other examination curves, or other numbers of the control."""
    if any(part.plan.control_fits != parts[0].plan.control_fits for part in parts[1:]):
        raise BadInput(
            "these sums are by different controls, each fitted to its own log: write the fitted number in [control],"
            " and fold the logs again."
        )
    first = parts[0].plan.fits
    if any(part.plan.fits != first for part in parts[1:]):
        raise BadInput(
            "these sums are by different examination curves, each fitted to its own log: give [analysis] examination,"
            " as numbers or as the result.json of one of them, and fold the logs again."
        )


def _total_thinning(parts: Sequence[Aggregates]) -> Thinning | None:
    """The counts of all parts of a thinned log; sums of one that was thinned and of one that was not do not add up."""
    counts = [part.thinned for part in parts if part.thinned is not None]
    if counts and len(counts) < len(parts):
        raise BadInput(
            "some of these sums are of a log with [log] keep and some of one without: fold the logs again, all with"
            " keep (1 in rows that were not thinned)."
        )
    return Thinning.total(counts) if counts else None


def _total_ages(parts: Sequence[Aggregates]) -> AgeSums | None:
    """The counts by age of all parts; none where a part has none."""
    ages = [part.ages for part in parts if part.ages is not None]
    return AgeSums.total(ages) if ages and len(ages) == len(parts) else None


def _total_replay(parts: Sequence[Aggregates]) -> ReplaySums | None:
    """The counts of replayed rows of all parts; none where a part has none."""
    counts = [part.replay for part in parts if part.replay is not None]
    return ReplaySums.total(counts) if counts and len(counts) == len(parts) else None


def _total_large_units(parts: Sequence[Aggregates], units: UnitCounts | None) -> LargeUnits | None:
    """The names of large units of all parts; none where a part has none."""
    names = [part.large_units for part in parts if part.large_units is not None]
    return LargeUnits.total(names, units) if units is not None and len(names) == len(parts) else None


def aggregates_summary(aggregates: Aggregates) -> str:
    """How large a log is, and what of it was added up, in a line."""
    plan = aggregates.plan
    unit, size = plan.settings.log.unit, plural(aggregates.rows, "display")
    if aggregates.thinned is not None:
        size = f"{plural(aggregates.rows, 'row')} for {aggregates.displays:,.0f} displays"
    units = units_text(
        {"rows": aggregates.rows, "units": aggregates.n_units, "units_approximate": not aggregates.units_exact}
    )
    names_of = {
        "metrics": plan.metrics,
        "estimators": [estimator.label for estimator in plan.estimators] or ["none"],
        "treatments": list(plan.settings.treatments) if aggregates.treatments else [],
        "segments by": [column for column in aggregates.segments if column != DAY],
    }
    return "; ".join(
        [
            size if unit is None else f"{size}, {units} ({unit})",
            *(f"{what} {some_of(names)}" for what, names in names_of.items() if names),
        ]
    )


def _with_common_strata(parts: Sequence[Aggregates]) -> tuple[dict[str, Strata], list[Aggregates]]:
    """Strata with the labels of all parts, and the parts with their codes."""
    strata = {table: Strata() for table in parts[0].strata}
    recoded = []
    for part in parts:
        codes = {table: [strata[table].code(label) for label in old.labels] for table, old in part.strata.items()}
        recoded.append(part._recoded(codes))
    return strata, recoded


def _recode_sums(sums: ScaledSums, codes: CodesByTable, cells: int) -> ScaledSums:
    """The sums with new stratum codes in the arrays that are by stratum: h:<strata> and hr:<strata>."""
    arrays = {}
    for name, array in sums.arrays.items():
        kind, colon, table = name.partition(":")
        by_stratum = colon and kind in ("h", "hr")
        arrays[name] = _recode_array(array, codes[table], cells) if by_stratum else array
    return ScaledSums(arrays, sums.exponent)


def _recode_counts(thinned: Thinning | None, codes: CodesByTable, cells: int) -> Thinning | None:
    if thinned is None:
        return None
    strata = {table: _recode_array(array, codes[table], cells) for table, array in thinned.strata.items()}
    return replace(thinned, strata=strata)


def _recode_array(array: Floats, codes: list[int], cells: int) -> Floats:
    """Sums by stratum and cell with the strata in other places; the last strata may have no sums yet."""
    moved, by_stratum = np.zeros((max(codes, default=-1) + 1, cells)), array.reshape(-1, cells)
    moved[codes[: len(by_stratum)]] = by_stratum
    return moved.ravel()


def _recode_rows(rows: KeptRows, codes: CodesByTable) -> KeptRows:
    """The kept rows with new codes in their columns stratum:<strata>."""
    columns = {f"stratum:{table}": np.asarray(new) for table, new in codes.items() if len(new)}
    parts = [{**part, **{name: new[part[name]] for name, new in columns.items()}} for part in rows.parts]
    return replace(rows, parts=parts)


def _sum(arrays: Sequence[Floats]) -> Floats:
    return np.asarray(sum(arrays))


def _padded_sum(arrays: Sequence[Floats]) -> Floats:
    """The sum of arrays of any length, the shorter ones filled up with zeros."""
    return reduce(add_padded, arrays, np.zeros(0))
