"""From a log to its sums: what must be known of it before the fold, step by step, and the fold itself.

A run and a check take the same road, `STEPS`, of which a check, which estimates nothing, needs those of the control.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from foretest.aggregation.cap_choice import choose_cap
from foretest.aggregation.choose_estimators import ChosenPlan, settle_dense
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.folded import Folded
from foretest.aggregation.item_model import ItemModel, fit_item_model, is_fitted
from foretest.aggregation.sample_pass import SampleFold
from foretest.aggregation.value_model import ValueModel, fit_value_model
from foretest.background import in_background
from foretest.displays.column_types import is_text_key
from foretest.displays.ragged import is_list
from foretest.engines import dispatch
from foretest.engines.latest_time import LatestTime
from foretest.engines.logger_shares import LoggerShares
from foretest.engines.reward_quantiles import RewardLimits
from foretest.engines.scan import Search, open_searches, with_answers
from foretest.errors import BadInput
from foretest.log.reader import Reader
from foretest.log.unit_columns import unit_column_notes
from foretest.offline.dense_rewards import is_dense_log
from foretest.offline.examination import fit_curves, metrics_to_fit, without_fits
from foretest.offline.fitted_control import SlopeRows, fit_control, with_control_error
from foretest.progress import Progress, stage
from foretest.records import dataclass
from foretest.settings.analysis import AUTO, BOUNDED
from foretest.settings.fitted_control import controls_to_fit, refuse_fitted_control
from foretest.settings.late_rewards import read_at_notes
from foretest.settings.settings import Settings, with_cap
from foretest.settings.trained_until import with_all_rows
from foretest.settings.winsorising import refuse_limits_to_find
from foretest.sources import BATCH_ROWS, Source, open_source, spool
from foretest.sources.long_tables import LongTables
from foretest.sources.spark_frames import SparkFrame
from foretest.storage.packed.reading import fold_packed, packed_logs, rewarded_rows
from foretest.storage.saved.resume import fold_resumably
from foretest.stores import Location
from foretest.weights.slot_marginals import counted_notes

SEARCHES: tuple[type[Search[Any]], ...] = (LatestTime, RewardLimits, LoggerShares)


class Work(NamedTuple):
    """How a pass is done: by how many threads, how many rows at a time, and who is told of the progress."""

    threads: int | None = None
    batch_rows: int = BATCH_ROWS
    progress: Progress | None = None
    saves: bool = False  # are the sums saved, to be added to those of other logs?

    @property
    def searches(self) -> Sequence[type[Search[Any]]]:
        """What is found in one scan of the log. Sums that are saved are of logs whose time was given, or have no
        ages."""
        return [kind for kind in SEARCHES if not (self.saves and kind is LatestTime)]


@dataclass(frozen=True)
class LogToFold:
    """A log on its way to the fold: the plan as far as it is known, and notes for the reader."""

    source: Source
    plan: FoldPlan
    notes: tuple[str, ...] = ()
    slope_rows: SlopeRows | None = None  # for the error of a control that was fitted
    all_slots: bool = False  # is what slots earned read, whether an estimator needs it or not?

    @cached_property
    def reader(self) -> Reader:
        """What reads all that is needed of the log."""
        reader = offline_reader(self.plan)
        slots = self.all_slots and bool(self.settings.log.slot_rewards)
        return dataclasses.replace(reader, slots=reader.slots or slots)

    @property
    def settings(self) -> Settings:
        """The settings, with what was found in the log."""
        return self.plan.settings

    def under(self, plan: FoldPlan, notes: Sequence[str] = ()) -> LogToFold:
        """The same log under a plan that knows more, with more notes."""
        return dataclasses.replace(self, plan=plan, notes=(*self.notes, *notes))

    def with_settings(self, settings: Settings) -> LogToFold:
        """The same log with what was found of it in its settings."""
        return self.under(dataclasses.replace(self.plan, settings=settings))

    def repeatable(self, folder: str) -> LogToFold:
        """The log as it can be read again: one that passes once is written to a file in a folder."""
        if self.source.repeatable:
            return self
        spooled = in_background(lambda: spool(self.source, self.reader.columns, folder))
        notes = self.source.notes() if isinstance(self.source, LongTables) else []  # known once it is read
        return dataclasses.replace(self, source=spooled, notes=(*self.notes, *notes))


class Step(NamedTuple):
    """Something that must be known of a log before its fold."""

    is_needed: Callable[[LogToFold, Work], bool]
    change: Callable[[LogToFold, Work], LogToFold]
    reads_log: Callable[[LogToFold], bool] = lambda _: True  # to its end: one that passes once becomes a file first
    of_check: bool = False  # does a check need it too?


def offline_reader(plan: FoldPlan) -> Reader:
    """The reader of the columns that the plan's estimators need."""
    features = plan.fits_value_model or (plan.reads_items and bool(plan.settings.log.item_features))
    models = [getattr(e, "model", None) for e in plan.estimators]
    extra = tuple(dict.fromkeys(name for model in models for name in getattr(model, "columns", ())))
    return Reader(
        plan.settings, features=features, strata=bool(plan.stratified), extra=extra, slots=plan.reads_slots,
        items=plan.reads_items, examination=bool(plan.exposure_bounds), days=plan.by_day,
    )  # fmt: skip


def fold_log(chosen: ChosenPlan, source: Source, work: Work, parts: Location | None = None) -> Folded:
    """Fold a log. With `parts`, a folder, the fold goes on there after a kill, and its sums are saved."""
    (plan, notes), settings = chosen, chosen.plan.settings
    notes = [*notes]
    if parts is not None:
        notes += read_at_notes(settings)
        refuse_fitted_control(settings, "sums of several days add up only under one number")
        refuse_limits_to_find(settings, "sums of several days add up only under one limit")
        plan, left_out = without_fits(plan)
        notes += left_out
    if plan.slot_bounds is not None or plan.exposure_bounds:
        plans = (plan, *plan.further.values())
        notes += dict.fromkeys(note for p in plans for note in counted_notes(p.normaliser.pair))
    work, log = work._replace(saves=parts is not None), _checked(LogToFold(source, plan, tuple(notes)))
    r_max = log.reader.r_max(source)
    require_r_max(plan, r_max)
    with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
        log = prepare(log, work, STEPS, folder)
        packed, more = fold_packed(log.source, log.reader, log.plan, work.threads, work.batch_rows, work.progress)
        notes = [*log.notes, *more]
        if packed is not None:
            return Folded(packed, notes, r_max)
        log = prepare(log, work, MODELS, folder)
        aggregates = fold_resumably(
            log.source, log.reader, log.plan, parts, threads=work.threads, batch_rows=work.batch_rows,
            progress=stage(work.progress, "read", log.source),
        )  # fmt: skip
        aggregates = with_control_error(aggregates, log.reader, log.plan, log.slope_rows)
    return Folded(aggregates, notes, r_max)


def fold_for_check(chosen: ChosenPlan, source: Source, work: Work) -> Folded:
    """Read and check every row and fold what health and the audit need, without estimators."""
    log = _checked(LogToFold(source, chosen.plan, tuple(chosen.notes), all_slots=True))
    with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
        log = prepare(log, work, [step for step in STEPS if step.of_check], folder)
        bare = dataclasses.replace(log.plan, estimators=())
        reader = dataclasses.replace(
            offline_reader(bare), slots=log.reader.slots, items=log.reader.items, examination=log.reader.examination
        )
        done = stage(work.progress, "check", log.source)
        aggregates = dispatch.aggregate(log.source, reader, bare, threads=work.threads, progress=done)
    return Folded(aggregates, [*log.notes], {})


def prepare(log: LogToFold, work: Work, steps: Sequence[Step], folder: str) -> LogToFold:
    """The log after those steps that it needs."""
    for step in steps:
        if step.is_needed(log, work):
            log = step.change(log.repeatable(folder) if step.reads_log(log) else log, work)
    return log


def _checked(log: LogToFold) -> LogToFold:
    """The log, whose columns are as the settings say; with notes on them."""
    log.reader.check(log.source)
    return log.under(log.plan, unit_column_notes(log.settings.log, log.source))


# -- the steps ------------------------------------------------------------------------------------------------------


def _with_answers(log: LogToFold, work: Work) -> LogToFold:
    found = with_answers(log.settings, log.source, work.searches, threads=work.threads, progress=work.progress)
    return log.with_settings(found)


def _with_days(log: LogToFold, work: Work) -> LogToFold:
    """Are there to be sums by day? Where only a date is named, not in files, which they would make larger, and not of a
    packed log, whose rows would all have to be read."""
    columns = log.settings.log
    by_day = columns.time is not None
    if columns.time is None and columns.date is not None:
        by_day = not work.saves and (isinstance(log.source, SparkFrame) or not packed_logs(log.source))
    return log.under(dataclasses.replace(log.plan, by_day=by_day))


def _with_density(log: LogToFold, work: Work) -> LogToFold:
    source, is_dense = is_dense_log(log.source, log.plan)
    return dataclasses.replace(log, source=source).under(*settle_dense(log.plan, is_dense))


def _with_fitted_control(log: LogToFold, work: Work) -> LogToFold:
    done = stage(work.progress, "fit", log.source)
    plan, rows = fit_control(log.source, log.reader, log.plan, work.threads, done)
    return dataclasses.replace(log, plan=plan, slope_rows=rows)


def _with_cap(log: LogToFold, work: Work) -> LogToFold:
    """The plan with a cap that is chosen on a sample of displays with draws from both policies."""
    bare = dataclasses.replace(log.plan, estimators=())
    done = stage(work.progress, "cap", log.source)
    sample = dispatch.aggregate(
        log.source, offline_reader(bare), bare, threads=work.threads, progress=done, kind=SampleFold
    )  # fmt: skip
    choice = choose_cap(sample)
    settings = with_cap(log.settings, choice.chosen)
    return log.under(dataclasses.replace(log.plan, settings=settings, cap_choice=choice))


def _with_curves(log: LogToFold, work: Work) -> LogToFold:
    """The plan with the examination curves that are not given, fitted on the rewarded rows."""
    packed = [] if isinstance(log.source, SparkFrame) else packed_logs(log.source)
    rewarded = log.source if not packed or any(one.base is None for one in packed) else rewarded_rows(packed)
    done = stage(work.progress, "examination", rewarded)
    return log.under(*fit_curves(rewarded, log.reader, log.plan, work.threads, done))


def _with_value_model(log: LogToFold, work: Work) -> LogToFold:
    return log.under(dataclasses.replace(log.plan, value_model=_fit_value_model(log, work)))


def _with_item_model(log: LogToFold, work: Work) -> LogToFold:
    model = _fit_item_model(log, work) if is_fitted(log.settings) else ItemModel(log.settings)
    return log.under(dataclasses.replace(log.plan, item_model=model))


STEPS = (
    # several passes read the displays of a long log, and in parallel
    Step(lambda log, _: isinstance(log.source, LongTables), lambda log, _: log, of_check=True),
    Step(lambda log, work: bool(open_searches(log.settings, work.searches)), _with_answers, of_check=True),
    Step(lambda *_: True, _with_days, reads_log=lambda _: False),
    Step(lambda *_: True, _with_density, reads_log=lambda _: False),
    Step(lambda log, _: bool(controls_to_fit(log.settings)), _with_fitted_control, of_check=True),
    Step(lambda log, _: log.settings.analysis.cap == AUTO, _with_cap, of_check=True),
    Step(lambda log, _: bool(metrics_to_fit(log.plan)), _with_curves),
)

#: what a packed log does without, unless all of its rows are read; a model may be fitted on another log
MODELS = (
    Step(
        lambda log, _: log.plan.fits_value_model, _with_value_model,
        reads_log=lambda log: log.settings.analysis.value_log is None,
    ),
    Step(
        lambda log, _: log.plan.reads_items, _with_item_model,
        reads_log=lambda log: log.settings.analysis.value_log is None and is_fitted(log.settings),
    ),
)  # fmt: skip


def _fit_value_model(log: LogToFold, work: Work) -> ValueModel:
    """V(x): cross-fitted on the log, or fitted on a separate one."""
    source, narrow, folds = _log_to_fit_on(log.settings, log.source, log.reader.for_value_model())
    rows = dispatch.value_model_rows(source, narrow, stage(work.progress, "value model", source))
    return fit_value_model(rows, folds, log.settings.analysis.seed, work.threads)


def _fit_item_model(log: LogToFold, work: Work) -> ItemModel:
    """The predicted rewards of items: cross-fitted on the log, or fitted on a separate one."""
    source, narrow, folds = _log_to_fit_on(log.settings, log.source, log.reader.for_item_model())
    rows = dispatch.value_model_rows(source, narrow, stage(work.progress, "reward model", source))
    return fit_item_model(rows, log.settings, folds, work.threads)


def _log_to_fit_on(settings: Settings, log: Source, narrow: Reader) -> tuple[Source, Reader, int]:
    """The log that a model is fitted on, checked, what reads it, and in how many folds: a separate one in one."""
    a = settings.analysis
    source, folds = (log, a.folds) if a.value_log is None else (open_source(a.value_log), 1)
    if a.value_log is not None:  # of any days: those that a treatment was trained on are no worse
        narrow = dataclasses.replace(narrow, settings=with_all_rows(narrow.settings))
    narrow.check(source)
    if a.value_log is not None:
        _refuse_other_features(log, source, (*settings.log.features, *narrow.item_columns))
    return source, narrow, folds


def _refuse_other_features(log: Source, value_log: Source, features: tuple[str, ...]) -> None:
    """A feature that is text in one log and a number in the other would be encoded as something else."""
    [(_, mine), *_], [(name, theirs), *_] = log.schemas(), value_log.schemas()
    for feature in features:
        kinds = [schema.field(feature).type for schema in (mine, theirs)]
        is_text = [is_text_key(kind.value_type if is_list(kind) else kind) for kind in kinds]
        if is_text[0] != is_text[1]:
            raise BadInput(f"{name}: the feature '{feature}' is {kinds[1]}, but {kinds[0]} in the log that is tested.")


def _columns_of(plan: FoldPlan, name: str) -> str:
    """The reward columns that a metric is made of."""
    part = next(part for part in plan.settings.definitions.parts if part.name == name)
    return " = a number, ".join(term.column for term in part.terms)


def require_r_max(plan: FoldPlan, r_max: Mapping[str, float]) -> None:
    """Refuse an interval that needs the largest possible reward where that is not known."""
    interval = plan.settings.analysis.interval
    for name in plan.metrics if interval in BOUNDED else ():
        if name not in r_max:
            raise BadInput(
                f"[analysis] interval = \"{interval}\" needs r_max, the largest possible reward of '{name}':"
                f" add r_max = a number, or r_max = {{{_columns_of(plan, name)} = a number}}."
            )
