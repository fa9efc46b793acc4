"""The offline A/B test, in reading order: fold the log, estimate, put intervals on the uplift, decide."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foretest._version import __version__
from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.cap_choice import choose_cap
from foretest.aggregation.choose_estimators import choose_estimators
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.sample_pass import SampleFold
from foretest.aggregation.value_model import ValueModel, fit_value_model
from foretest.background import in_background
from foretest.calibration.estimate import refuse_unfit
from foretest.calibration.file import Calibration
from foretest.diagnostics.audit import Audit, audit
from foretest.diagnostics.cap_path import cap_path
from foretest.diagnostics.health import control_is_deterministic, health
from foretest.diagnostics.weight_distribution import weight_distribution
from foretest.displays.batch import Floats
from foretest.engines import dispatch
from foretest.engines.logger_shares import count_shares
from foretest.errors import BadInput
from foretest.inference.bootstrap import resample_counts
from foretest.inference.by_logger import counts_by_logger
from foretest.inference.guardrails import with_roles
from foretest.inference.verdict import DETERMINISTIC
from foretest.log.column_types import is_text_key
from foretest.log.reader import Reader
from foretest.offline.estimates import audited_segment, estimate_metrics, ignored_audit
from foretest.offline.result_facts import log_facts, options_of, settings_dict
from foretest.offline.segments import segment_table
from foretest.offline.treatments import compare, ranked
from foretest.policies import Policy
from foretest.policies.pooled import Pooled
from foretest.progress import Progress, stage
from foretest.provenance import files_read, rows_fingerprint, versions
from foretest.results.result import Metric, Result, Segment, Treatment
from foretest.settings.analysis import AUTO, BOUNDED, Analysis
from foretest.settings.file import read_settings
from foretest.settings.log_columns import LogColumns
from foretest.settings.settings import TREATMENT, Settings, with_cap
from foretest.sources import BATCH_ROWS, Source, open_source, spool
from foretest.sources.inputs import inputs_of
from foretest.storage.packed.reading import fold_packed
from foretest.storage.packed.writing import pack
from foretest.storage.saved.files import merge_saved, refuse_to_replace, saved_files, write_aggregates
from foretest.storage.saved.inputs import recorded_inputs
from foretest.storage.saved.resume import fold_resumably
from foretest.weights.slot_marginals import counted_notes


class OfflineTest:
    """What an online A/B test of `treatment` against `control` would show, from the control's log.

    Parameters
    ----------
    log: which column plays which role.
    control, treatment: policies; the control is the one that produced the log. Several treatments are a dict, by name;
        so are several controls, whose names the log's `logger` column has (`baseline` says which of them the
        treatment is compared with).
    estimators: keys or objects; by default all that the columns and policies allow.
    metrics: what a metric is for, by name: `MetricRole` objects, or the keys of a [metrics.NAME] table.
    analysis: the other keys of the settings file's [analysis] table, by name (cap, confidence_level, seed, …).

    >>> from foretest import Logged
    >>> test = OfflineTest(
    ...     log=LogColumns(rewards=["click"]),
    ...     control=Logged(prob="control"),
    ...     treatment=Logged(prob="treatment"),
    ...     estimators=["ncis"],
    ... )
    >>> import pyarrow as pa
    >>> log = pa.table({"click": [1, 0] * 50, "control": [0.5] * 100, "treatment": [0.6, 0.4] * 50})
    >>> round(test.run(log).metrics["click"].estimates["ncis"].rel_effect_size, 6)
    0.2
    """

    def __init__(
        self,
        *,
        log: LogColumns,
        control: Policy | Mapping[str, Policy],
        treatment: Policy | Mapping[str, Policy],
        estimators: Any = None,
        metrics: Mapping[str, Any] | None = None,
        **analysis: Any,
    ) -> None:
        treatments = named_treatments(treatment)
        self.settings = Settings(
            log=log,
            control=control,  # type: ignore[arg-type]  # several become one that prices by their mixture
            treatment=next(iter(treatments.values())),
            treatments=treatments,
            metrics=metrics or {},
            analysis=Analysis().replace(**analysis, **({} if estimators is None else {"estimators": estimators})),
        )

    @classmethod
    def from_toml(cls, path: str | Path) -> OfflineTest:
        """The test that a settings file describes."""
        return cls.from_settings(read_settings(path))

    @classmethod
    def from_aggregates(cls, paths: Any) -> OfflineTest:
        """The test that saved aggregates were made for, as their (first) file tells it."""
        files = saved_files(open_source(paths))
        if not files:
            raise BadInput("no aggregates, but a log: it needs settings, as in OfflineTest.from_toml.")
        return cls.from_settings(files[0].recipe.recorded(files[0].name))

    @classmethod
    def from_settings(cls, settings: Settings) -> OfflineTest:
        test = cls.__new__(cls)
        test.settings = settings
        return test

    def replace(self, **analysis: Any) -> OfflineTest:
        """The same test with other [analysis] settings."""
        changed = dataclasses.replace(self.settings, analysis=self.settings.analysis.replace(**analysis))
        return OfflineTest.from_settings(changed)

    def run(
        self,
        log: Any,
        *,
        threads: int | None = None,
        batch_rows: int = BATCH_ROWS,
        progress: Progress | None = None,
        calibration: Calibration | str | Path | None = None,
    ) -> Result:
        """The whole road, for any log: a path, glob, folder or list of files, SQL, a dataframe, an Arrow stream; or
        from saved aggregates of this test, which are recognised by what they hold. With a `calibration` (or the file
        that `foretest history` wrote) the calibrated estimates stand beside the plain ones."""
        file = Path(calibration) if isinstance(calibration, str | Path) else None
        calibration = Calibration.read(calibration) if isinstance(calibration, str | Path) else calibration
        if calibration is not None:
            refuse_unfit(calibration, choose_estimators(self.settings)[0])
        source = open_source(log)
        aggregates, notes, r_max = self._aggregate(source, None, threads, batch_rows, progress)
        result = self.analyse(aggregates, notes, r_max, calibration)
        # saved aggregates have their value model: its log may be gone
        value_log = None if saved_files(source) else self.settings.analysis.value_log
        inputs = inputs_of(log=log, value_log=value_log)
        if file is not None:
            inputs = {"inputs": inputs.get("inputs", {}) | {"calibration": files_read([file])}}
        return dataclasses.replace(result, provenance=result.provenance | inputs)

    def check(self, log: Any, *, threads: int | None = None, progress: Progress | None = None) -> Result:
        """Schema and health only: every row is read and checked, nothing is estimated."""
        source = open_source(log)
        plan, notes = choose_estimators(self.settings)
        reader = offline_reader(plan)
        reader.check(source)
        with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
            source, plan = self._resolve_shares_and_cap(source, reader, plan, folder, threads, progress)
            bare = dataclasses.replace(plan, estimators=())
            every = dataclasses.replace(offline_reader(bare), slots=bool(self.settings.log.slot_rewards))
            aggregates = dispatch.aggregate(
                source, every, bare, threads=threads, progress=stage(progress, "check", source)
            )
        found, facts, settings = audit(aggregates), log_facts(aggregates), settings_dict(self.settings, plan)
        notes, weights = [*_said(plan), *notes, *ignored_audit(found)], weight_distribution(aggregates)
        if control_is_deterministic(aggregates):
            notes.append(f"{DETERMINISTIC}.")
        each = by_treatment(aggregates) if aggregates.treatments else {}
        several = [Treatment(name, None, {}, health(held), audit(held)) for name, held in each.items()]
        return Result(
            __version__, facts, settings, {}, health(aggregates), notes, weights, audit=found, treatments=several
        )

    def aggregate(
        self, log: Any, *, threads: int | None = None, batch_rows: int = BATCH_ROWS, progress: Progress | None = None
    ) -> tuple[Aggregates, list[str], dict[str, float]]:
        """Fold a log, or add up saved aggregates: the sums, notes for the reader, and the known bounds of rewards."""
        return self._aggregate(open_source(log), None, threads, batch_rows, progress)

    def save_aggregates(
        self,
        log: Any,
        path: str | Path,
        *,
        threads: int | None = None,
        batch_rows: int = BATCH_ROWS,
        progress: Progress | None = None,
    ) -> Aggregates:
        """Fold a log into a file, which `run` takes in place of the log. Of several files those that are folded are
        remembered beside it, in `<path>.parts`: after a kill the same call goes on from there."""
        path, source = Path(path), open_source(log)
        refuse_to_replace(path)
        parts = path.with_name(f"{path.name}.parts")
        inputs = [known for file in saved_files(source) for known in file.recipe.inputs] or recorded_inputs(source)
        aggregates, notes, r_max = self._aggregate(source, parts, threads, batch_rows, progress)
        write_aggregates(path, aggregates, notes, r_max, inputs=inputs)
        shutil.rmtree(parts, ignore_errors=True)
        return aggregates

    def pack(self, log: Any, out: str | Path, *, progress: Progress | None = None) -> None:
        """Rewrite a log as a folder in which rows with a reward are a file of their own: `run` then reads only these
        for the estimators that need no others (`is`, `cis`, `point-ncis`, `point-ncis-adaptive`)."""
        source = open_source(log)
        with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
            settings = self.settings
            if settings.analysis.cap == AUTO or isinstance(settings.control, Pooled):
                plan = choose_estimators(settings)[0]
                Reader(settings).check(source)
                if not source.repeatable:
                    source = in_background(lambda: spool(source, source.schemas()[0][1].names, folder))
                settings = self._resolve_shares_and_cap(source, offline_reader(plan), plan, folder, None, progress)[
                    1
                ].settings
            pack(source, settings, Path(out), progress=stage(progress, "pack", source))

    def _aggregate(
        self, source: Source, parts: Path | None, threads: int | None, batch_rows: int, progress: Progress | None
    ) -> tuple[Aggregates, list[str], dict[str, float]]:
        saved = saved_files(source)
        if saved:
            return merge_saved(saved, self.settings)
        plan, notes = choose_estimators(self.settings)
        if plan.slot_bounds is not None:
            each = (plan, *plan.further.values())
            notes += dict.fromkeys(note for p in each for note in counted_notes(p.normaliser.pair))
        reader = offline_reader(plan)
        reader.check(source)
        r_max = reader.r_max(source)
        if plan.settings.analysis.interval in BOUNDED:
            _require_r_max(plan, r_max)
        with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
            source, plan = self._resolve_shares_and_cap(source, reader, plan, folder, threads, progress)
            packed, said = fold_packed(source, reader, plan, threads, batch_rows, progress)
            notes += said
            if packed is not None:
                return packed, notes, r_max
            if reader.features:
                if self.settings.analysis.value_log is None and not source.repeatable:
                    source = _spooled(source, reader, folder)
                plan = dataclasses.replace(plan, value_model=self._fit(source, reader, threads, progress))
            done = stage(progress, "read", source)
            aggregates = fold_resumably(
                source, reader, plan, parts, threads=threads, batch_rows=batch_rows, progress=done
            )
        return aggregates, notes, r_max

    def _resolve_shares_and_cap(
        self,
        source: Source,
        reader: Reader,
        plan: FoldPlan,
        folder: str,
        threads: int | None,
        progress: Progress | None,
    ) -> tuple[Source, FoldPlan]:
        """The source and the plan with what a pass of its own must find before the fold: the shares of several loggers,
        and a number for the cap, where it is `auto`.

        A stream is spooled, as it is read twice.
        """
        pooled, automatic = plan.settings.control, self.settings.analysis.cap == AUTO
        if (automatic or isinstance(pooled, Pooled)) and not source.repeatable:
            source = _spooled(source, reader, folder)
        if isinstance(pooled, Pooled):
            counted = count_shares(source, reader, threads=threads, progress=stage(progress, "loggers", source))
            settled = dataclasses.replace(plan.settings, control=pooled.with_shares(counted))
            plan = dataclasses.replace(plan, settings=settled)
        if not automatic:
            return source, plan
        bare = dataclasses.replace(plan, estimators=())
        done = stage(progress, "cap", source)
        sample = dispatch.aggregate(source, offline_reader(bare), bare, threads=threads, progress=done, kind=SampleFold)
        choice = choose_cap(sample)
        return source, dataclasses.replace(plan, settings=with_cap(plan.settings, choice.chosen), cap_choice=choice)

    def analyse(
        self,
        aggregates: Aggregates,
        notes: list[str],
        r_max: dict[str, float],
        calibration: Calibration | None = None,
    ) -> Result:
        """From sums to verdicts, under this test's settings: level, interval, resamples and headline may be others than
        those of the fold; estimators must be among those that were folded."""
        used = dataclasses.replace(self.settings, control=aggregates.plan.settings.control)
        if used.analysis.cap == AUTO:  # the fold has the number
            used = with_cap(used, aggregates.plan.settings.analysis.cap_number)
        plan, more = self._plan_for(aggregates, used)
        a, notes = used.analysis, list(dict.fromkeys([*_said(aggregates.plan), *notes, *more]))
        aggregates = aggregates.under(dataclasses.replace(aggregates.plan, settings=used))
        if a.interval in BOUNDED:
            _require_r_max(plan, r_max)
        counts = resample_counts(a.buckets, a.n_resamples, a.seed) if a.interval == "bootstrap" else None
        drawn, counts = counts, counts_for(aggregates, counts)
        each = by_treatment(aggregates)
        audits = {name: audit(held) for name, held in each.items()}
        answers = {}
        for name, held in each.items():
            answers[name], said = estimate_metrics(held, plan.estimators, counts, r_max, audits[name], calibration)
            notes += said
        if len(each) > 1:
            answers = compare(each, answers, counts, r_max)
        roles = self.settings.metrics
        answers = {name: with_roles(held, roles) for name, held in answers.items()}
        tables = {name: segment_table(held, plan.estimators, drawn) for name, held in each.items()}
        notes = list(dict.fromkeys([*notes, *(note for _, said in tables.values() for note in said)]))
        segments = {
            name: [audited_segment(segment, audits[name], roles) for segment in table]
            for name, (table, _) in tables.items()
        }
        several = _several(each, answers, audits, segments) if len(each) > 1 else []
        (metrics, *_), (found, *_), (first, *_) = answers.values(), audits.values(), segments.values()
        for m, name in enumerate(plan.metrics):
            path = cap_path(aggregates, m, counts, r_max.get(name), plan.estimators)
            metrics[name] = dataclasses.replace(metrics[name], cap_path=path)
        facts, settings, notes = (
            log_facts(aggregates),
            settings_dict(self.settings, plan),
            [*notes, *ignored_audit(found)],
        )
        weights = weight_distribution(aggregates)
        seen = rows_fingerprint(aggregates.n, aggregates.positives)
        provenance = {"versions": versions(), "rows_fingerprint": seen, "estimators": options_of(plan)}
        notes += ignored_audit(found)
        return Result(
            __version__, facts, settings, metrics, health(aggregates), notes, weights, provenance, found, several, first
        )

    def _plan_for(self, aggregates: Aggregates, settings: Settings) -> tuple[FoldPlan, list[str]]:
        """The estimators to analyse, among those that were folded, and notes on what was left out."""
        plan, notes = choose_estimators(settings)
        folded = {e.label: e for e in aggregates.plan.estimators}
        chosen = []
        for estimator in plan.estimators:
            label = estimator.label
            if self.settings.analysis.estimators is None and label not in folded:
                notes.append(f"{label} was left out: the aggregates do not hold it.")
                continue
            if folded.get(label) != estimator or aggregates.plan.weighting(estimator) != plan.weighting(estimator):
                raise BadInput(f"the aggregates do not hold {label} with these settings: fold the log again.")
            chosen.append(estimator)
        if not chosen:
            raise BadInput(f"the aggregates hold none of the estimators that can run: {', '.join(folded)}.")
        return dataclasses.replace(plan, estimators=tuple(chosen)), notes

    def _fit(self, log: Source, reader: Reader, threads: int | None, progress: Progress | None) -> ValueModel:
        """V(x): cross-fitted on the log, or fitted on a separate one."""
        a = self.settings.analysis
        source, folds = (log, a.folds) if a.value_log is None else (open_source(a.value_log), 1)
        narrow = reader.for_value_model()
        narrow.check(source)
        if a.value_log is not None:
            _refuse_other_features(log, source, self.settings.log.features)
        done = stage(progress, "value model", source)

        return fit_value_model(dispatch.value_model_rows(source, narrow, done), folds, a.seed, threads)


def _said(plan: FoldPlan) -> list[str]:
    """How the cap was chosen, in words."""
    return [] if plan.cap_choice is None else [plan.cap_choice.sentence()]


def offline_reader(plan: FoldPlan) -> Reader:
    needs_v = any(e.uses_value and getattr(e, "model", None) is None for e in plan.estimators)
    stratified = any(e.stratified for e in plan.estimators)
    by_value = plan.settings.analysis.strata == "value-model"
    features = plan.settings.analysis.value is None and (needs_v or (stratified and by_value))
    models = [getattr(e, "model", None) for e in plan.estimators]
    extra = tuple(dict.fromkeys(name for model in models for name in getattr(model, "columns", ())))
    slots = any(plan.weighting(e).by_slot for e in plan.estimators)
    return Reader(plan.settings, features=features, strata=stratified, extra=extra, slots=slots)


def _spooled(source: Source, reader: Reader, folder: str) -> Source:
    return in_background(lambda: spool(source, reader.columns, folder))


def _refuse_other_features(log: Source, value_log: Source, features: tuple[str, ...]) -> None:
    """A feature that is text in one log and a number in the other would be encoded as something else."""
    [(_, mine), *_], [(name, theirs), *_] = log.schemas(), value_log.schemas()
    for feature in features:
        kinds = [schema.field(feature).type for schema in (mine, theirs)]
        if is_text_key(kinds[0]) != is_text_key(kinds[1]):
            raise BadInput(f"{name}: the feature '{feature}' is {kinds[1]}, but {kinds[0]} in the log that is tested.")


def _require_r_max(plan: FoldPlan, r_max: dict[str, float]) -> None:
    for name in plan.metrics:
        if name not in r_max:
            raise BadInput(
                f'[analysis] interval = "{plan.settings.analysis.interval}" needs r_max, the largest possible reward'
                f" of '{name}':"
                f" add r_max = a number, or r_max = {{{name} = a number}}."
            )


def counts_for(aggregates: Aggregates, counts: Floats | None) -> Floats | None:
    """Resamples of buckets as resamples of the sums by logger and bucket."""
    return None if counts is None else counts_by_logger(counts, aggregates.n, aggregates.plan.loggers)


def named_treatments(treatment: Any) -> dict[str, Policy]:
    """One policy, or several by name."""
    if not isinstance(treatment, Mapping):
        return {TREATMENT: treatment}
    if not treatment:
        raise BadInput("treatment is empty: give a policy, or a dict of name to policy.")
    return dict(treatment)


def by_treatment(aggregates: Aggregates) -> dict[str, Aggregates]:
    """The sums of every treatment, by name, the first first."""
    first = next(iter(aggregates.plan.settings.treatments))
    return {first: aggregates, **aggregates.treatments}


def _several(
    each: dict[str, Aggregates],
    answers: dict[str, dict[str, Metric]],
    audits: dict[str, Audit],
    segments: dict[str, list[Segment]],
) -> list[Treatment]:
    order = ranked(answers)
    return [
        Treatment(name, order.index(name) + 1, answers[name], health(held), audits[name], segments[name])
        for name, held in each.items()
    ]
