"""All that a fold of a log leaves: the ledger of its sums, and what is no sum beside it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np

from foretest.aggregation.age_sums import AgeSums
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns, KeptRows
from foretest.aggregation.large_units import LargeUnits
from foretest.aggregation.ledger import Account, Ledger
from foretest.aggregation.quantities import (
    CAPPED_ROWS,
    CUT,
    DISPLAYS,
    LARGEST_LOG_WEIGHT,
    LEFT_OUT_AS_TRAINED,
    POSITIVES,
    REWARDS,
    ROWS,
    SQUARED_REWARDS,
    SQUARES,
    Quantity,
)
from foretest.aggregation.replay_sums import ReplaySums
from foretest.aggregation.thinning import evenly_thinned, size_of
from foretest.aggregation.unit_counts import UnitCounts
from foretest.aggregation.weight_bins import WeightBins
from foretest.displays.batch import Floats
from foretest.displays.merging import by, merged
from foretest.errors import BadInput
from foretest.formatting import plural, some_of, units_text
from foretest.log.rows import DAY
from foretest.records import dataclass
from foretest.weights.weightings import Weighting

#: a field that a file has only where it is given: files of other logs are as they were before it
OPTIONAL = {"optional": True}


def _in_all(parts: Sequence[dict[str, Ledger]]) -> dict[str, Ledger]:
    """The ledgers of what all parts have sums of: sums by day are in some files and not in others."""
    return {name: merged([part[name] for part in parts]) for name in parts[0] if all(name in part for part in parts)}


def _in_any(parts: Sequence[dict[Weighting, bool]]) -> dict[Weighting, bool]:
    """What is so of some part is so of the whole."""
    return {weighting: any(part.get(weighting, False) for part in parts) for part in parts for weighting in part}


def _one_plan(plans: Sequence[FoldPlan]) -> FoldPlan:
    """The plan of all; sums whose weights are by other examination curves, or other numbers of the control, are
    refused."""
    plan = plans[0]
    if any(other.control_fits != plan.control_fits for other in plans[1:]):
        raise BadInput(
            "these sums are by different controls, each fitted to its own log: write the fitted number in [control],"
            " and fold the logs again."
        )
    if any(other.fits != plan.fits for other in plans[1:]):
        raise BadInput(
            "these sums are by different examination curves, each fitted to its own log: give [analysis] examination,"
            " as numbers or as the result.json of one of them, and fold the logs again."
        )
    return plan


def _one_ledger(ledgers: Sequence[Ledger]) -> Ledger:
    """The sums of all; those of a log that was thinned and of one that was not are refused."""
    if len({ledger.plain.has(ROWS) for ledger in ledgers}) > 1:
        raise BadInput(
            "some of these sums are of a log with [log] keep and some of one without: fold the logs again, all with"
            " keep (1 in rows that were not thinned)."
        )
    return Ledger.total(ledgers)


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

    plan: FoldPlan = field(metadata=by(_one_plan))  # what was added up
    ledger: Ledger = field(metadata=by(_one_ledger))  # every sum
    rewarded: KeptRows  # the rewarded rows, at most 2^17
    sample: KeptRows  # a fixed sample of displays, at most 20 000
    units: UnitCounts | None  # rows per unit; None: every row is a unit
    sampled: dict[Weighting, bool] = field(
        default_factory=dict, metadata=by(_in_any)
    )  # is Σh estimated from the sample?
    treatments: dict[str, Aggregates] = field(default_factory=dict)  # of the same rows, for the further treatments
    segments: dict[str, Ledger] = field(default_factory=dict, metadata=by(_in_all))  # by column
    replay: ReplaySums | None = field(default=None, metadata=OPTIONAL)  # where the control's draws are made again
    large_units: LargeUnits | None = field(default=None, metadata=OPTIONAL)  # where rows have units

    def __repr__(self) -> str:
        return f"<Aggregates of {aggregates_summary(self)}>"

    # -- accounts of the ledger ---------------------------------------------------------------------------------------

    def weights(self, weighting: Weighting) -> Account:
        """The sums of weights of all rows."""
        return self.ledger.accounts[weighting, None]

    def weighted(self, weighting: Weighting, metric: int) -> Account:
        """The sums of weighted rewards of a metric."""
        return self.ledger.accounts[weighting, metric]

    def has_weights(self, weighting: Weighting) -> bool:
        """Were all rows weighed by this weighting?"""
        return (weighting, None) in self.ledger.accounts

    def has_weighted(self, weighting: Weighting, metric: int) -> bool:
        """Were the rewards of a metric weighed by this weighting? Files of earlier versions lack some."""
        return (weighting, metric) in self.ledger.accounts

    # -- displays and rewards -----------------------------------------------------------------------------------------

    @property
    def n(self) -> Floats:
        """Displays by cell, a bucket of units of one logger: rows, or of a thinned log Σ 1/keep, as in every sum."""
        return self.ledger.plain.get(DISPLAYS, size=self.ledger.cells)

    @property
    def r(self) -> list[Floats]:
        """Σ r by cell, of each metric."""
        plain, cells = self.ledger.plain, self.ledger.cells
        return [plain.get(REWARDS, m, size=cells) for m in range(len(self.plan.metrics))]

    @property
    def r2(self) -> Floats:
        """Σ r² of each metric."""
        return np.array([self.ledger.plain.total(SQUARED_REWARDS, m) for m in range(len(self.plan.metrics))])

    @property
    def positives(self) -> Floats:
        """Rows with a reward, of each metric."""
        return np.array([self.ledger.plain.total(POSITIVES, m) for m in range(len(self.plan.metrics))])

    @property
    def rows(self) -> int:
        """How many rows the log has: one per display that is in it."""
        return int(self.rows_by_cell.sum())

    @property
    def rows_by_cell(self) -> Floats:
        """How many rows each cell has."""
        return self.ledger.plain.get(ROWS, size=self.ledger.cells)

    @property
    def row_word(self) -> str:
        """What a row is called: a display, unless rows stand for several."""
        return "row" if size_of(self.ledger) else "display"

    @property
    def displays(self) -> float:
        """How many displays the rows stand for: as many as there are rows, unless the log was thinned."""
        return float(self.n.sum())

    @property
    def rows_worth(self) -> float:
        """How many rows that stand for equally many displays these are worth, by Kish's (Σ m)²/Σ m²."""
        squares = self.ledger.plain.total(SQUARES)
        return self.displays**2 / squares if squares else float(self.rows)  # parts in old files have no Σ m²

    def largest_count(self, quantity: Quantity) -> int:
        """The largest count of any weighting: of rows without support, or with an approximate normaliser."""
        plain = self.ledger.plain
        return max((int(array.sum()) for key, array in plain.sums.items() if key.quantity is quantity), default=0)

    @property
    def max_log_w(self) -> float:
        """The largest log w of a row; −∞ without rows."""
        return self.ledger.plain.total(LARGEST_LOG_WEIGHT)

    @property
    def capped_rows(self) -> float:
        """Displays whose weight is above the cap."""
        return self.ledger.plain.total(CAPPED_ROWS)

    @cached_property
    def bins(self) -> WeightBins:
        """The sums by bin of log w."""
        return WeightBins(self.ledger.plain, self.ledger.cells)

    @property
    def ages(self) -> AgeSums | None:
        """How old rewards were, where the log says when they came."""
        return AgeSums.of(self.ledger.plain)

    @property
    def cut(self) -> Floats | None:
        """Where rewards are winsorised: Σ of each reward column before, and of what was cut."""
        return self.ledger.plain.get(CUT) if self.ledger.plain.has(CUT) else None

    @property
    def left_out_as_trained(self) -> int | None:
        """How many rows a treatment was trained on, where it says until when."""
        plain = self.ledger.plain
        return int(plain.total(LEFT_OUT_AS_TRAINED)) if plain.has(LEFT_OUT_AS_TRAINED) else None

    # -- what is no sum -----------------------------------------------------------------------------------------------

    @cached_property
    def sampled_displays(self) -> Columns:
        """The fixed sample of displays, each of which stands for equally many."""
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

    # -- several logs -------------------------------------------------------------------------------------------------

    def __add__(self, other: Aggregates) -> Aggregates:
        return merged([self, other])

    @staticmethod
    def total(parts: Sequence[Aggregates]) -> Aggregates:
        """The aggregates of all logs together; added up at once, they are copied once."""
        return merged(parts)

    def under(self, plan: FoldPlan) -> Aggregates:
        """These sums with this plan, and those of the further treatments with its further plans."""
        treatments = {name: part.under(plan.further[name]) for name, part in self.treatments.items()}
        return replace(self, plan=plan, treatments=treatments)


def aggregates_summary(aggregates: Aggregates) -> str:
    """How large a log is, and what of it was added up, in a line."""
    plan = aggregates.plan
    unit, size = plan.settings.log.unit, plural(aggregates.rows, aggregates.row_word)
    size += "".join(f" for {displays:,.0f} displays" for displays in size_of(aggregates.ledger).values())
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
