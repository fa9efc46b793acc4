"""The passes over a log: what must be known before the fold, the value model, and the fold itself."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.cap_choice import choose_cap
from foretest.aggregation.choose_estimators import choose_estimators, settle_dense
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.folded import Folded
from foretest.aggregation.item_model import ItemModel, fit_item_model, is_fitted
from foretest.aggregation.sample_pass import SampleFold
from foretest.aggregation.value_model import ValueModel, fit_value_model
from foretest.background import in_background
from foretest.displays.column_types import is_text_key
from foretest.displays.ragged import is_list
from foretest.engines import dispatch
from foretest.engines.latest_time import latest_time
from foretest.engines.logger_shares import count_shares
from foretest.engines.reward_quantiles import find_limits
from foretest.errors import BadInput
from foretest.log.reader import Reader
from foretest.log.unit_columns import unit_column_notes
from foretest.offline.dense_rewards import peek
from foretest.offline.examination import fit_curves, metrics_to_fit, without_fits
from foretest.offline.fitted_control import SlopeRows, fit_control, with_control_error
from foretest.policies.logging_mixture import LoggingMixture
from foretest.progress import Progress, stage
from foretest.settings.analysis import AUTO, BOUNDED
from foretest.settings.fitted_control import controls_to_fit, refuse_fitted_control
from foretest.settings.late_rewards import needs_read_at, read_at_notes, with_read_at
from foretest.settings.settings import Settings, with_cap
from foretest.settings.trained_until import with_all_rows
from foretest.settings.winsorising import limits_to_find, refuse_limits_to_find, with_limits
from foretest.sources import BATCH_ROWS, Source, open_source, spool
from foretest.sources.long_tables import LongTables
from foretest.sources.spark_frames import SparkFrame
from foretest.storage.packed.reading import fold_packed, packed_logs, rewarded_rows
from foretest.storage.saved.files import merge_saved, saved_files
from foretest.storage.saved.resume import fold_resumably
from foretest.stores import Location
from foretest.weights.slot_marginals import counted_notes


class Work(NamedTuple):
    """How a pass is done: by how many threads, how many rows at a time, and who is told of the progress."""

    threads: int | None = None
    batch_rows: int = BATCH_ROWS
    progress: Progress | None = None
    saves: bool = False  # are the sums saved, to be added to those of other logs?


class Resolved(NamedTuple):
    """A log that can be read again, and the plan with what a pass before the fold has found."""

    source: Source
    plan: FoldPlan
    slope_rows: SlopeRows | None = None  # for the error of a control that was fitted


class Curved(NamedTuple):
    """A log that can be read again, the plan with its examination curves, and notes."""

    source: Source
    plan: FoldPlan
    notes: list[str]


def offline_reader(plan: FoldPlan) -> Reader:
    """The reader of the columns that the plan's estimators need."""
    features = plan.fits_value_model or (plan.reads_items and bool(plan.settings.log.item_features))
    models = [getattr(e, "model", None) for e in plan.estimators]
    extra = tuple(dict.fromkeys(name for model in models for name in getattr(model, "columns", ())))
    return Reader(
        plan.settings, features=features, strata=bool(plan.stratified), extra=extra, slots=plan.reads_slots,
        items=plan.reads_items, examination=bool(plan.exposure_bounds), days=plan.by_day,
    )  # fmt: skip


def fold_log(settings: Settings, source: Source, work: Work, parts: Location | None = None) -> Folded:
    """Fold a log, or add up saved aggregates. With `parts`, a folder, the fold goes on there after a kill."""
    saved = saved_files(source)
    if saved:
        return merge_saved(saved, settings)
    plan, notes = choose_estimators(settings)
    if parts is not None:
        notes += read_at_notes(settings)
        refuse_fitted_control(settings, "sums of several days add up only under one number")
        refuse_limits_to_find(settings, "sums of several days add up only under one limit")
        plan, left_out = without_fits(plan)
        notes += left_out
    if plan.slot_bounds is not None or plan.exposure_bounds:
        plans = (plan, *plan.further.values())
        notes += dict.fromkeys(note for p in plans for note in counted_notes(p.normaliser.pair))
    work = work._replace(saves=parts is not None)
    reader = offline_reader(plan)
    reader.check(source)
    notes += unit_column_notes(settings.log, source)
    r_max = reader.r_max(source)
    require_r_max(plan, r_max)
    with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
        source, long_notes = _folded_once(source, reader, folder)
        notes += long_notes
        source, plan = _with_read_at(source, reader, plan, folder, work)
        source, plan = _with_limits(source, reader, plan, folder, work)
        plan = dataclasses.replace(plan, by_day=_has_days(source, settings, work))
        source, dense = peek(source, plan)
        plan, dense_notes = settle_dense(plan, dense)
        notes, reader = notes + dense_notes, offline_reader(plan)
        source, plan, slope_rows = resolve_control_and_cap(source, reader, plan, folder, work)
        reader = offline_reader(plan)
        source, plan, left_out = _with_curves(source, reader, plan, folder, work)
        notes += left_out
        packed, packed_notes = fold_packed(source, reader, plan, work.threads, work.batch_rows, work.progress)
        notes += packed_notes
        if packed is not None:
            return Folded(packed, notes, r_max)
        source, plan = _with_models(source, reader, plan, folder, work)
        aggregates = fold_resumably(
            source, reader, plan, parts, threads=work.threads, batch_rows=work.batch_rows,
            progress=stage(work.progress, "read", source),
        )  # fmt: skip
        aggregates = with_control_error(aggregates, reader, plan, slope_rows)
    return Folded(aggregates, notes, r_max)


def _with_models(
    source: Source, reader: Reader, plan: FoldPlan, folder: str, work: Work
) -> tuple[Source, FoldPlan]:  # fmt: skip
    """The plan with the models of values and of items' rewards that its estimators need."""
    settings = plan.settings
    fits_items = plan.reads_items and is_fitted(settings)
    if (plan.fits_value_model or fits_items) and settings.analysis.value_log is None and not source.repeatable:
        source = _spooled(source, reader, folder)
    if plan.fits_value_model:
        plan = dataclasses.replace(plan, value_model=_fit_value_model(settings, source, reader, work))
    if plan.reads_items:
        model = _fit_item_model(settings, source, reader, work) if fits_items else ItemModel(settings)
        plan = dataclasses.replace(plan, item_model=model)
    return source, plan


def fold_without_estimators(settings: Settings, source: Source, work: Work) -> Folded:
    """Read and check every row and fold what health and the audit need, for a check."""
    plan, notes = choose_estimators(settings)
    reader = offline_reader(plan)
    reader.check(source)
    notes += unit_column_notes(settings.log, source)
    slots = bool(settings.log.slot_rewards)
    whole = dataclasses.replace(reader, slots=slots, items=plan.reads_items, examination=bool(plan.exposure_bounds))
    with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
        source, long_notes = _folded_once(source, whole, folder)
        notes += long_notes
        source, plan = _with_read_at(source, reader, plan, folder, work)
        source, plan = _with_limits(source, reader, plan, folder, work)
        reader = offline_reader(plan)
        source, plan, _ = resolve_control_and_cap(source, reader, plan, folder, work)
        bare = dataclasses.replace(plan, estimators=())
        all_columns = dataclasses.replace(
            offline_reader(bare), slots=slots, items=plan.reads_items, examination=bool(plan.exposure_bounds)
        )
        done = stage(work.progress, "check", source)
        aggregates = dispatch.aggregate(source, all_columns, bare, threads=work.threads, progress=done)
    return Folded(aggregates, notes, {})


def resolve_control_and_cap(source: Source, reader: Reader, plan: FoldPlan, folder: str, work: Work) -> Resolved:
    """Find what the fold must know beforehand: the shares of several loggers, what is fitted of the control, and a
    number for `cap = "auto"`.

    A stream is first written to a file in `folder`, as it is read twice.
    """
    control, automatic = plan.settings.control, plan.settings.analysis.cap == AUTO
    to_fit = bool(controls_to_fit(plan.settings))
    if (automatic or to_fit or isinstance(control, LoggingMixture)) and not source.repeatable:
        source = _spooled(source, reader, folder)
    if isinstance(control, LoggingMixture):
        done = stage(work.progress, "loggers", source)
        shares = count_shares(source, reader, threads=work.threads, progress=done)
        settings = dataclasses.replace(plan.settings, control=control.with_shares(shares))
        plan = dataclasses.replace(plan, settings=settings)
    slope_rows = None
    if to_fit:
        done = stage(work.progress, "fit", source)
        plan, slope_rows = fit_control(source, reader, plan, work.threads, done)
    if automatic:
        choice = choose_cap(_sample_of(source, plan, work))
        plan = dataclasses.replace(plan, settings=with_cap(plan.settings, choice.chosen), cap_choice=choice)
    return Resolved(source, plan, slope_rows)


def _with_read_at(
    source: Source, reader: Reader, plan: FoldPlan, folder: str, work: Work
) -> tuple[Source, FoldPlan]:  # fmt: skip
    """The plan with the time at which the log was read: as given, or the log's latest time, found in a pass over that
    column. Sums that are saved are of logs whose time was given, or have no ages."""
    settings = plan.settings
    if work.saves or not needs_read_at(settings):
        return source, plan
    if not source.repeatable:
        source = _spooled(source, reader, folder)
    done = stage(work.progress, "times", source)
    latest = latest_time(source, settings, threads=work.threads, progress=done)
    return source, dataclasses.replace(plan, settings=with_read_at(settings, latest))


def _with_limits(source: Source, reader: Reader, plan: FoldPlan, folder: str, work: Work) -> tuple[Source, FoldPlan]:
    """The plan with the limits of rewards that are cut at a quantile of the log, found in a pass over rewards."""
    if not limits_to_find(plan.settings):
        return source, plan
    if not source.repeatable:
        source = _spooled(source, reader, folder)
    done = stage(work.progress, "limits", source)
    limits = find_limits(source, plan.settings, threads=work.threads, progress=done)
    return source, dataclasses.replace(plan, settings=with_limits(plan.settings, limits))


def _has_days(source: Source, settings: Settings, work: Work) -> bool:
    """Are there to be sums by day? Where only a date is named, not in files, which they would make larger, and not of a
    packed log, whose rows would all have to be read."""
    log = settings.log
    if log.time is not None or log.date is None:
        return log.time is not None
    return not work.saves and (isinstance(source, SparkFrame) or not packed_logs(source))


def _folded_once(source: Source, reader: Reader, folder: str) -> tuple[Source, list[str]]:
    """A long log folded to a file of displays, with notes on it: several passes read these, and in parallel; any other
    log as it is."""
    if not isinstance(source, LongTables):
        return source, []
    return _spooled(source, reader, folder), source.notes()


def _with_curves(source: Source, reader: Reader, plan: FoldPlan, folder: str, work: Work) -> Curved:
    """Fit the examination curves that are not given, on the rewarded rows; a stream is first written to a file."""
    if not metrics_to_fit(plan):
        return Curved(source, plan, [])
    if not source.repeatable:
        source = _spooled(source, reader, folder)
    packed = [] if isinstance(source, SparkFrame) else packed_logs(source)
    rewarded = source if not packed or any(log.base is None for log in packed) else rewarded_rows(packed)
    done = stage(work.progress, "examination", rewarded)
    return Curved(source, *fit_curves(rewarded, reader, plan, work.threads, done))


def _sample_of(source: Source, plan: FoldPlan, work: Work) -> Aggregates:
    """A sample of displays with draws from both policies, which the cap is chosen on."""
    bare = dataclasses.replace(plan, estimators=())
    done = stage(work.progress, "cap", source)
    return dispatch.aggregate(
        source, offline_reader(bare), bare, threads=work.threads, progress=done, kind=SampleFold
    )  # fmt: skip


def _fit_value_model(settings: Settings, log: Source, reader: Reader, work: Work) -> ValueModel:
    """V(x): cross-fitted on the log, or fitted on a separate one."""
    source, narrow, folds = _log_to_fit_on(settings, log, reader.for_value_model())
    done = stage(work.progress, "value model", source)
    rows = dispatch.value_model_rows(source, narrow, done)
    return fit_value_model(rows, folds, settings.analysis.seed, work.threads)


def _fit_item_model(settings: Settings, log: Source, reader: Reader, work: Work) -> ItemModel:
    """The predicted rewards of items: cross-fitted on the log, or fitted on a separate one."""
    source, narrow, folds = _log_to_fit_on(settings, log, reader.for_item_model())
    done = stage(work.progress, "reward model", source)
    return fit_item_model(dispatch.value_model_rows(source, narrow, done), settings, folds, work.threads)


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


def _spooled(source: Source, reader: Reader, folder: str) -> Source:
    """A stream as a file in `folder`, so that it can be read again."""
    return in_background(lambda: spool(source, reader.columns, folder))


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
