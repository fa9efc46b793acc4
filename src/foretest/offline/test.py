"""The offline A/B test, in reading order: fold the log, estimate, put intervals on the uplift, decide."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Never

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import ChosenPlan, choose_estimators
from foretest.aggregation.folded import Folded
from foretest.calibration.estimate import refuse_unfit
from foretest.calibration.file import Calibration
from foretest.errors import BadInput
from foretest.estimators import Estimator
from foretest.log.opening import open_log
from foretest.offline.analysis import analyse, check_result
from foretest.offline.packing import pack_log
from foretest.offline.prepare_and_fold import Work, fold_for_check, fold_log
from foretest.policies import Policy
from foretest.progress import Progress
from foretest.provenance import files_read
from foretest.results.result import Result
from foretest.settings.analysis import AUTO, DEFAULT_CAP, VALUE_MODEL, Analysis
from foretest.settings.changed_fields import Fields, call_text, changed_fields
from foretest.settings.file import read_settings
from foretest.settings.log_columns import LogColumns
from foretest.settings.metric_roles import MetricRole
from foretest.settings.settings import TREATMENT, Settings
from foretest.settings.unknown_keys import refuse_unknown
from foretest.sources import BATCH_ROWS, LakeLog, Source, open_source
from foretest.sources.inputs import inputs_of
from foretest.storage.saved.files import merge_saved, refuse_to_replace, saved_files, write_aggregates
from foretest.storage.saved.inputs import recorded_inputs
from foretest.storage.saved.resume import remove_parts
from foretest.stores import Location, location


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

    The other keywords are the keys of the settings file's [analysis] table; `Analysis` explains each.

    Raises
    ------
    BadInput: a setting that cannot be, or settings that do not go together; the message says what was expected.

    >>> import foretest as ft
    >>> test = ft.OfflineTest(
    ...     log=ft.LogColumns(rewards=["click"]),
    ...     control=ft.Logged(prob="control"),
    ...     treatment=ft.Logged(prob="treatment"),
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
        metrics: Mapping[str, MetricRole | Mapping[str, Any]] | None = None,
        estimators: Sequence[str | Estimator] | None = None,
        cap: float | str = DEFAULT_CAP,
        capping: str = "max",
        weight_bound: float | str = AUTO,
        headline: str | None = None,
        normaliser: str = "auto",
        draws: int = 256,
        confidence_level: float = 0.90,
        interval: str = "bootstrap",
        n_resamples: int = 1000,
        buckets: int = 1024,
        strata: str = VALUE_MODEL,
        strata_base: float = 2.0,
        value: str | None = None,
        value_log: str | Path | None = None,
        predictions: str | Mapping[str, str] | None = None,
        folds: int = 2,
        seed: int = 0,
        gamma: float | tuple[float, float] | list[float] | None = None,
        gamma_slots: float | tuple[float, float] | list[float] = (1.3, 2.0),
        examination: Any = None,
        decide_on: str = "interval",
        r_max: float | Mapping[str, float] | None = None,
        ignore_audit: bool = False,
        baseline: str | None = None,
        window: str | None = None,
        **unknown: Never,
    ) -> None:
        names = [f.name for f in dataclasses.fields(Analysis)]
        given = locals()
        refuse_unknown("[analysis]", unknown, names)
        treatments = _named(treatment)
        self.settings = Settings(
            log=log,
            control=control,  # type: ignore[arg-type]  # several become one that prices by their mixture
            treatment=next(iter(treatments.values())),
            treatments=treatments,
            metrics=metrics or {},  # type: ignore[arg-type]  # tables become objects
            analysis=Analysis(**{name: given[name] for name in names}),
        )

    @classmethod
    def from_toml(cls, path: str | Location) -> OfflineTest:
        """The test that a settings file describes."""
        return cls.from_settings(read_settings(path))

    @classmethod
    def from_aggregates(cls, paths: Any) -> OfflineTest:
        """The test that saved aggregates were made for, as their (first) file describes it."""
        files = saved_files(open_source(paths))
        if not files:
            raise BadInput("no aggregates, but a log: it needs settings, as in OfflineTest.from_toml.")
        return cls.from_settings(files[0].settings())

    @classmethod
    def from_settings(cls, settings: Settings) -> OfflineTest:
        """The test with these settings."""
        test = cls.__new__(cls)
        test.settings = settings
        return test

    @cached_property
    def _chosen(self) -> ChosenPlan:
        """The plan of a run with the estimators that can run, and notes on the others."""
        return choose_estimators(self.settings)

    def __repr__(self) -> str:
        return call_text(self, _arguments(self.settings), in_lines=True)

    def replace(self, **analysis: Any) -> OfflineTest:
        """A copy of the test with other [analysis] settings; for other policies or columns make another test."""
        others = {"log", "control", "treatment", "metrics", "baseline", "online"} & set(analysis)
        if others:
            raise BadInput(
                f"replace({', '.join(sorted(others))}=…): it changes settings of the analysis alone, such as cap. Make"
                " another OfflineTest for another log, policy or metric."
            )
        changed = dataclasses.replace(self.settings, analysis=self.settings.analysis.replace(**analysis))
        return OfflineTest.from_settings(changed)

    def run(
        self,
        log: Any,
        *,
        threads: int | None = None,
        batch_rows: int = BATCH_ROWS,
        progress: Progress | None = None,
        calibration: Calibration | str | Location | None = None,
    ) -> Result:
        """The whole road, for any log: a path, glob, folder or list of files, SQL, a dataframe, an Arrow stream; or
        from saved aggregates of this test, which are recognised by their content. With a `calibration` (or the file
        that `foretest history` wrote) the calibrated estimates are added to the plain ones."""
        files = {} if calibration is None or isinstance(calibration, Calibration) else {"calibration": calibration}
        if calibration is not None:
            calibration = calibration if isinstance(calibration, Calibration) else Calibration.read(calibration)
            refuse_unfit(calibration, self._chosen.plan)
        source = open_log(log, self.settings)
        folded = self._fold(source, Work(threads, batch_rows, progress))
        result = analyse(self._chosen, folded, calibration)
        # saved aggregates have their value model: its log may be gone
        value_log = None if saved_files(source) else self.settings.analysis.value_log
        # of a table the version that was read: by now there may be a newer one
        inputs = inputs_of(log=source if isinstance(source, LakeLog) else log, value_log=value_log)
        if files:
            read = {role: files_read([location(file)]) for role, file in files.items()}
            inputs = {"inputs": inputs.get("inputs", {}) | read}
        return dataclasses.replace(result, provenance=result.provenance | inputs)

    def check(self, log: Any, *, threads: int | None = None, progress: Progress | None = None) -> Result:
        """Schema and health only: every row is read and checked, nothing is estimated."""
        source = open_log(log, self.settings)
        return check_result(self._chosen.plan, fold_for_check(self._chosen, source, Work(threads, progress=progress)))

    def aggregate(
        self, log: Any, *, threads: int | None = None, batch_rows: int = BATCH_ROWS, progress: Progress | None = None
    ) -> Folded:
        """Fold a log, or add up saved aggregates: the sums, notes for the reader, and the known bounds of rewards."""
        return self._fold(open_log(log, self.settings), Work(threads, batch_rows, progress))

    def _fold(self, source: Source, work: Work, parts: Location | None = None) -> Folded:
        """Fold a log, or add up saved aggregates."""
        saved = saved_files(source)
        return merge_saved(saved, self.settings) if saved else fold_log(self._chosen, source, work, parts)

    def analyse(
        self,
        aggregates: Aggregates,
        notes: list[str],
        r_max: dict[str, float],
        calibration: Calibration | None = None,
    ) -> Result:
        """From sums to verdicts, under this test's settings: level, interval, resamples and headline may be others than
        those of the fold; estimators must be among those that were folded."""
        return analyse(self._chosen, Folded(aggregates, notes, r_max), calibration)

    def save_aggregates(
        self,
        log: Any,
        path: str | Location,
        *,
        threads: int | None = None,
        batch_rows: int = BATCH_ROWS,
        progress: Progress | None = None,
    ) -> Aggregates:
        """Fold a log into a file of sums, which `run` accepts instead of the log. If there are several files, progress
        is saved in `<path>.parts`: after a kill the same call continues from there."""
        path, source = location(path), open_log(log, self.settings)
        refuse_to_replace(path)
        parts = path.with_name(f"{path.name}.parts")
        inputs = [known for file in saved_files(source) for known in file.recipe.inputs] or recorded_inputs(source)
        folded = self._fold(source, Work(threads, batch_rows, progress), parts)
        write_aggregates(path, *folded, inputs=inputs)
        remove_parts(parts)
        return folded.aggregates

    def pack(self, log: Any, out: str | Location, *, replace: bool = False, progress: Progress | None = None) -> None:
        """Rewrite a log as a folder in which rows with a reward are a file of their own: `run` then reads only these
        for the estimators that need no others (`is`, `cis`, `point-ncis`, `point-ncis-adaptive`). Of a packed log that
        is there its three files are replaced; with `replace` also those that Foretest did not make."""
        work = Work(progress=progress)
        pack_log(self.settings, open_log(log, self.settings), location(out), work, replace=replace)


def _arguments(settings: Settings) -> Fields:
    """The arguments of a test with these settings; of the analysis, those that differ from their defaults."""
    alone = list(settings.treatments) == [TREATMENT]
    return {
        "log": settings.log,
        "control": settings.control,
        "treatment": settings.treatment if alone else settings.treatments,
        **({"metrics": settings.metrics} if settings.metrics else {}),
        **changed_fields(settings.analysis),
    }


def _named(treatment: Policy | Mapping[str, Policy]) -> dict[str, Policy]:
    """The treatments by name; one alone is called "treatment"."""
    if not isinstance(treatment, Mapping):
        return {TREATMENT: treatment}
    if not treatment:
        raise BadInput("treatment is empty: give a policy, or a dict of name to policy.")
    return dict(treatment)
