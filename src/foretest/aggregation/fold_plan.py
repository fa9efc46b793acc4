"""What a fold adds up: fixed before the first row is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from foretest.aggregation.control_fit import FittedNumber
from foretest.aggregation.examination import Examination, FittedCurve
from foretest.aggregation.item_model import ItemModel
from foretest.aggregation.value_model import ValueModel
from foretest.displays.batch import Floats, Hashes
from foretest.estimators import DR, Estimator
from foretest.kernels.random import derived_bucket
from foretest.log.rows import DAY, Rows
from foretest.policies.as_shown import served
from foretest.policies.logging_mixture import loggers_of
from foretest.records import dataclass
from foretest.settings.analysis import AUTO, VALUE_MODEL
from foretest.settings.examination import curves_of
from foretest.settings.metric_kinds import Combination, Difference
from foretest.settings.settings import Settings
from foretest.weights.control_marginals import KnownMarginals
from foretest.weights.examination import VARIANTS
from foretest.weights.exposure_weights import ExposureAdaptive, ExposureWeighting
from foretest.weights.normaliser import Normaliser
from foretest.weights.prefix_weights import PrefixAdaptive
from foretest.weights.slot_weights import SlotAdaptive, SlotRatio, SlotWeighting
from foretest.weights.weight_bounds import GRID
from foretest.weights.weightings import Adaptive, Capped, PointWeighting, Uncapped, Weighting

if TYPE_CHECKING:
    from foretest.aggregation.cap_choice import CapChoice

#: weightings with an adaptive cap
Bounded = Adaptive | SlotAdaptive | PrefixAdaptive | ExposureAdaptive

# salts: what is derived from a unit's hash must not share bits with the samples of smallest hashes
BUCKET_SALT = 1


@dataclass(frozen=True)
class FoldPlan:
    """What a fold adds up: fixed before the first row is read."""

    settings: Settings
    estimators: tuple[Estimator, ...] = ()
    value_model: ValueModel | None = None
    cap_choice: CapChoice | None = None  # how `cap = "auto"` was settled; the settings then have the number
    item_model: ItemModel | None = None  # what predicts rewards of items, where an estimator asks for it
    dense: bool = False  # are rewards so dense that all rows are weighed, not the rewarded alone?
    fits: Mapping[int, FittedCurve] = field(default_factory=dict)  # examination curves by metric, fitted beforehand
    by_day: bool = False  # are there sums by day?
    control_fits: tuple[FittedNumber, ...] = ()  # numbers of the control, fitted beforehand; the settings have them
    #: what has sums, where these are also of differences of parts, as they are once the log is folded
    combined: tuple[Combination, ...] = ()
    known_marginals: KnownMarginals | None = field(default=None, compare=False, repr=False)  # from the fit of curves

    @cached_property
    def further(self) -> dict[str, FoldPlan]:
        """The plans of the treatments after the first, by name: the same sums of the same rows, for another policy."""
        by_treatment = list(self.settings.by_treatment().items())
        return {name: replace(self, settings=settings) for name, settings in by_treatment[1:]}

    @property
    def segments(self) -> tuple[str, ...]:
        """Columns whose values have sums of their own; none without estimators, which alone use these sums."""
        if not self.estimators:
            return ()
        return (*self.settings.log.segments, *([DAY] if self.by_day else []))

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """What has sums of its own: the parts of the metrics, and once a log is folded also their differences."""
        return tuple(combination.name for combination in self.combined or self.of_parts)

    @cached_property
    def of_parts(self) -> tuple[Combination, ...]:
        """The metrics that are parts as they stand, which a log is folded into."""
        definitions = self.settings.definitions
        return definitions.combinations[: len(definitions.parts)]

    def combination(self, metric: int) -> Combination:
        """What one of `metrics` is made of, and what it can have."""
        return self.settings.definitions.combinations[metric]

    @cached_property
    def shown(self) -> dict[str, int]:
        """The place in `metrics` of every metric that a result has and that has sums of its own."""
        return self.settings.definitions.linear

    @cached_property
    def rewards(self) -> dict[str, int]:
        """The place in `metrics` of every one that is a reward column as it stands."""
        return {part.name: m for m, part in enumerate(self.settings.definitions.parts) if part.is_column}

    def main_part(self, metric: int) -> int:
        """The part that stands for a metric where a test is of rewards that are 0 or more: its gains, or itself."""
        return self.combination(metric).gains

    @cached_property
    def by_slot(self) -> frozenset[str]:
        """Those of `metrics` of which the log says which slot earned them."""
        metrics, slots = self.settings.definitions, self.settings.log.slot_rewards or {}
        known = {part.name for part in metrics.parts if all(term.column in slots for term in part.terms)}
        return frozenset(
            combination.name
            for combination in metrics.combinations
            if known.issuperset(metrics.parts[place].name for place in combination.places)
        )

    @cached_property
    def differences(self) -> dict[int, Difference]:
        """By place in `metrics`, those that are one part less another."""
        begin = len(self.of_parts)
        return dict(enumerate(self.settings.definitions.differences[: len(self.metrics) - begin], begin))

    @property
    def loggers(self) -> int:
        """How many policies logged the rows."""
        return len(loggers_of(self.settings.control).names)

    @property
    def cells(self) -> int:
        """How many cells there are: sums are by logger and bucket of units, cell = logger·buckets + bucket."""
        return self.loggers * self.settings.analysis.buckets

    def cells_of(self, rows: Rows) -> npt.NDArray[np.int64]:
        """The cell of each row."""
        return self.cells_at(rows.unit, loggers_of(self.settings.control).of_rows(rows.displays))

    def cells_at(self, unit: Hashes, logger: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The cell of each row by its unit's hash and the number of its logger."""
        buckets = self.settings.analysis.buckets
        return np.asarray(logger * buckets + derived_bucket(unit, BUCKET_SALT, buckets))

    @property
    def row_is_unit(self) -> bool:
        """Is every row a unit of its own?"""
        return self.settings.log.unit is None

    @cached_property
    def normaliser(self) -> Normaliser:
        """What computes q(x) of the two policies; the control as it served."""
        a, control = self.settings.analysis, served(self.settings.control)
        return Normaliser(
            self.settings.treatment, control, a.normaliser, a.draws, a.seed, known=self.known_marginals
        )  # fmt: skip

    @property
    def lasting(self) -> FoldPlan:
        """The plan without what is of use in the fold alone."""
        return self if self.known_marginals is None else replace(self, known_marginals=None)

    @cached_property
    def health_weighting(self) -> Capped:
        """The weighting whose sums the health report shows: the run's own cap."""
        return Capped(self.settings.analysis.cap_number, self.settings.analysis.capping)

    @cached_property
    def weightings(self) -> list[Weighting]:
        """The weightings of all rows: the estimators' and the two that the health report needs."""
        own = [self.weighting(e) for e in self.estimators]
        return list(dict.fromkeys([Uncapped(), self.health_weighting, *(w for w in own if not w.pointwise)]))

    @cached_property
    def point_weightings(self) -> list[PointWeighting]:
        """The pointwise weightings, which are computed for rewarded rows only."""
        own = [self.weighting(e) for e in self.estimators]
        # those of further bounds last: files from before these were folded have the others in these places
        further = [w for e in self.estimators for w in self.bound_weightings(e)]
        every = (*own, *further, *self.varied_weightings)
        return list(dict.fromkeys(w for w in every if isinstance(w, PointWeighting)))

    @cached_property
    def varied_weightings(self) -> list[ExposureAdaptive]:
        """The weightings by exposure under steeper and flatter curves, where curves are given."""
        if not self.examination.given:
            return []
        own = (w for e in self.estimators for w in (self.weighting(e), *self.bound_weightings(e)))
        by_exposure = dict.fromkeys(w for w in own if isinstance(w, ExposureAdaptive))
        return [replace(w, curve=curve) for curve in range(1, len(VARIANTS)) for w in by_exposure]

    @cached_property
    def examination(self) -> Examination:
        """The examination curves of the metrics whose slots are known."""
        setting = self.settings.analysis.examination
        given = {m: curves_of(setting, name) for m, name in enumerate(self.metrics) if name in self.by_slot}
        return Examination({m: curves for m, curves in given.items() if curves is not None}, dict(self.fits))

    def bound_weightings(self, estimator: Estimator) -> tuple[Bounded, ...]:
        """The weightings of an estimator at all bounds that the log chooses among, ascending; none where the bound is
        a number."""
        own = self.weighting(estimator)
        automatic = self.settings.analysis.weight_bound == AUTO and getattr(estimator, "weight_bound", 0.0) is None
        if not automatic or not isinstance(own, Bounded):
            return ()
        return tuple(replace(own, bound=bound) for bound in GRID)

    def chooses_bound(self, kind: type[PointWeighting]) -> bool:
        """Is a bound to be chosen for estimators with this kind of weights: by ranking, slot, prefix or exposure?"""
        return any(isinstance(w, kind) for e in self.estimators for w in self.bound_weightings(e))

    @cached_property
    def normalised_weightings(self) -> list[Bounded]:
        """The weightings whose estimators divide by their mean weight, of all rows: where rewards are dense and the
        bound is chosen by the log."""
        return list(dict.fromkeys(w for e in self.estimators for w in self.bound_weightings(e))) if self.dense else []

    @cached_property
    def slot_bounds(self) -> tuple[float, ...] | None:
        """The bounds of weights by slot whose caps are needed; None where no estimator needs P(item in slot)."""
        marginal = [
            w
            for w in self.point_weightings
            if isinstance(w, SlotWeighting) and w.marginal and not isinstance(w, ExposureWeighting)
        ]
        return tuple(dict.fromkeys(bound for w in marginal for bound in w.bounds)) if marginal else None

    @cached_property
    def slot_ratios(self) -> list[SlotRatio]:
        """The weighting of all rows slot by slot, where an estimator divides by it."""
        return [w for w in self.point_weightings if isinstance(w, SlotRatio)]

    @cached_property
    def prefix_bounds(self) -> tuple[float, ...]:
        """The bounds of weights of prefixes; none where no estimator has such."""
        by_prefix = (w for w in self.point_weightings if isinstance(w, PrefixAdaptive))
        return tuple(dict.fromkeys(w.bound for w in by_prefix))

    @cached_property
    def exposure_bounds(self) -> tuple[float, ...]:
        """The bounds of weights by exposure, infinite for those without one; none where no estimator has such."""
        by_exposure = (w for w in self.point_weightings if isinstance(w, ExposureWeighting))
        return tuple(dict.fromkeys(w.bound_or_none for w in by_exposure))

    @property
    def reads_slots(self) -> bool:
        """Does any estimator need to know what each slot earned?"""
        return any(self.weighting(e).by_slot for e in self.estimators)

    def predicts_items(self, estimator: Estimator) -> bool:
        """Does it need predicted rewards of items? `dr` takes them for r̂ where all rewards have them."""
        plain = isinstance(estimator, DR) and estimator.model is None and self.settings.treatment.can_draw
        return estimator.uses_items or (plain and self.settings.predicted_metrics == self.metrics)

    @property
    def reads_items(self) -> bool:
        """Does any estimator need predicted rewards of items?"""
        return any(self.predicts_items(e) for e in self.estimators)

    @property
    def fits_value_model(self) -> bool:
        """Is V(x) to be fitted: does an estimator need it, and no column has it?"""
        needs_v = any(
            e.uses_value and getattr(e, "model", None) is None and not self.predicts_items(e) for e in self.estimators
        )
        by_value = bool(self.stratified) and self.settings.analysis.strata == VALUE_MODEL
        return self.settings.analysis.value is None and (needs_v or by_value)

    def weighs(self, estimator: Estimator, metric: int) -> bool:
        """Can the estimator answer for this metric? By slot, only where the log says which slot earned it; with
        predicted rewards of items, only where it has them; by stratum, only where rows were folded by its strata."""
        if estimator.stratified and not self.has_strata(metric):
            return False
        if estimator.uses_items and self.metrics[metric] not in self.settings.predicted_metrics:
            return False
        return not self.weighting(estimator).by_slot or self.metrics[metric] in self.by_slot

    @cached_property
    def stratified(self) -> list[Weighting]:
        """The weightings whose sums are also by stratum."""
        return list(dict.fromkeys(self.weighting(e) for e in self.estimators if e.stratified))

    def weighting(self, estimator: Estimator) -> Weighting:
        """The weighting of an estimator under these settings."""
        return estimator.weighting(self.settings.analysis)

    def gamma(self, estimator: Estimator) -> tuple[float, float]:
        """The factors of what unsupported recommendations may earn, at the level of the estimator's weights."""
        return self.settings.analysis.gamma_at(by_slot=self.weighting(estimator).by_slot)

    @property
    def can_draw(self) -> bool:
        """Can rankings be drawn from both policies, and rankings that were not shown be priced?"""
        return self.settings.treatment.can_draw and self.settings.control.can_draw

    @property
    def prices_rankings(self) -> bool:
        """Are the weights of whole rankings known, and not only those of slots?"""
        return self.settings.control.prices_rankings

    def table_of(self, metric: int) -> str:
        """The name of a metric's table of strata: one for all, unless each metric has a value model of its own."""
        a = self.settings.analysis
        return "" if a.strata != VALUE_MODEL or a.value is not None else self.metrics[metric]

    def has_strata(self, metric: int) -> bool:
        """Are rows folded by strata of this metric?"""
        return self.table_of(metric) in self._tables

    @property
    def tables(self) -> list[str]:
        """The names of the tables of strata; none where no estimator is stratified."""
        return self._tables if self.stratified else []

    @cached_property
    def _tables(self) -> list[str]:
        """A table for each part, which is what a log is folded into, or one for all of them."""
        return list(dict.fromkeys(self.table_of(m) for m in range(len(self.of_parts))))

    def values(self, rows: Rows) -> Floats | None:
        """V(x), one column per metric; None where no estimator asks for it."""
        if rows.value is not None:
            return np.repeat(rows.value[:, None], len(self.metrics), axis=1)
        if self.value_model is not None and rows.features is not None:
            return self.value_model.predict(rows.features, rows.unit)
        return None
