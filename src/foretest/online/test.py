"""The online A/B test, in reading order: fold both arms, check the split, compare, decide."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from typing import Any

from foretest._version import __version__
from foretest.aggregation.thinning import size_of
from foretest.diagnostics.reward_sizes import refuse_tiny
from foretest.displays.days import first_and_last
from foretest.errors import BadInput
from foretest.inference.guardrails import with_roles
from foretest.log.opening import open_log
from foretest.online.arm_audit import CONTROL, NO_COLUMN, TREATMENT, ArmAudit, audit_arm, describes_policies
from foretest.online.arms import Arm, ArmReader, Arms, fold_arm
from foretest.online.checks import (
    ANALYSIS_KEYS,
    naming_log,
    refuse_other_unit_type,
    refuse_same_files,
    refuse_same_log,
    refuse_shared_units,
    refuse_unused_settings,
)
from foretest.online.comparison import KEY as KEY
from foretest.online.comparison import Comparison
from foretest.online.covariate_balance import covariate_balance
from foretest.online.displays_per_unit import DisplaysPerUnit, displays_per_unit
from foretest.online.late_rewards import arm_notes, settle_read_at
from foretest.online.limits import cut_by_arm, cut_notes, settle_limits
from foretest.online.metric_arms import metric_places
from foretest.online.metrics import compare_metrics, counting_notes
from foretest.online.resampling import arm_counts
from foretest.online.sample_ratio import SampleRatio, sample_ratio
from foretest.online.sequential import Sequence
from foretest.online.varying_covariate import refuse_varying
from foretest.policies import Logged, Policy
from foretest.progress import Progress, stage
from foretest.provenance import rows_fingerprint, versions
from foretest.results.result import Metric, Result
from foretest.results.uplift_range import leaning
from foretest.settings.analysis import BOUNDED, Analysis
from foretest.settings.changed_fields import call_text, changed_fields
from foretest.settings.file import read_settings, read_tables, settings_from_tables
from foretest.settings.log_columns import LogColumns, multiplicities_of
from foretest.settings.long_layout import LONG
from foretest.settings.metric_roles import roles_dict
from foretest.settings.online import SEQUENTIAL_UNITS, Online, online_dict
from foretest.settings.settings import Settings
from foretest.settings.thinned import refuse_covariate
from foretest.sources import BATCH_ROWS, Source
from foretest.sources.inputs import inputs_of
from foretest.stores import Location, location

# settings have policies; where there are none, or they are of no use, these stand for them
_NO_POLICY = {"policy": "logged", "prob": NO_COLUMN}


class OnlineTest:
    """The A/B test that was run: the treatment's log against the control's, each with its own units.

    Parameters
    ----------
    log: which column plays which role; rewards, unit (else id), date and times are read, no other but for the audit.
    control, treatment: the policies that the arms ran, where each log is to be audited: was it drawn from its policy?
    split: the designed shares of units, the control's first.
    covariate: a column with one number per unit from before the test, which the uplift is adjusted for.
    sequential: also give intervals that stay valid however often the test is looked at.
    sequential_units: the number of units, of both arms, at which these are tightest; to be chosen before the test.
    metrics: what metrics are for, and made of, by name, as the tables [metrics.NAME].
    analysis: confidence_level, interval ("bootstrap" or "delta"), n_resamples, buckets, seed and window, as offline.

    Raises
    ------
    BadInput: a setting that cannot be; the message says what was expected.

    >>> import pyarrow as pa
    >>> import foretest as ft
    >>> test = ft.OnlineTest(log=ft.LogColumns(rewards=["click"]))
    >>> control, treatment = pa.table({"click": [1, 0, 0, 0] * 100}), pa.table({"click": [1, 0] * 200})
    >>> result = test.run(control, treatment)
    >>> result.metrics["click"].estimates["online"].rel_effect_size, result.metrics["click"].verdict
    (1.0, 'positive')
    """

    def __init__(
        self,
        *,
        log: LogColumns,
        control: Policy | None = None,
        treatment: Policy | None = None,
        split: Any = (0.5, 0.5),
        covariate: str | None = None,
        sequential: bool = False,
        sequential_units: int = SEQUENTIAL_UNITS,
        metrics: Mapping[str, Any] | None = None,
        **analysis: Any,
    ) -> None:
        refuse_unused_settings(analysis)
        if (control is None) != (treatment is None):
            raise BadInput("the policy of one arm is given: give both, as control and treatment, or none.")
        none, online = Logged(prob=NO_COLUMN), Online(split, covariate, sequential, sequential_units)
        settings = Settings(
            log, control or none, treatment or none, Analysis().replace(**analysis), online, metrics=metrics or {}
        )
        self.settings, self.offline = _narrow(settings), settings if describes_policies(settings) else None
        self.notes: list[str] = []
        self.unread: str | None = None  # why the settings' policies are of no use, where they are not

    @classmethod
    def from_toml(cls, path: str | Location) -> OnlineTest:
        """The test that a settings file describes; its tables [control] and [treatment] are not needed."""
        path = location(path)
        given = read_tables(path)
        tables = _without_loggers({**given, "control": _NO_POLICY, "treatment": _NO_POLICY})
        try:
            test = cls.from_settings(settings_from_tables(tables, path.parent))
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from None
        if "control" in given and "treatment" in given:
            try:
                test.offline = read_settings(path)
            except BadInput as error:
                test.unread = f"the logs of the arms were not audited: {error}"
        return test

    @classmethod
    def from_settings(cls, settings: Settings) -> OnlineTest:
        """The online test of the change that an offline test's settings describe; settings that only the offline test
        has are ignored."""
        test = cls.__new__(cls)
        test.settings, test.notes = _narrow(settings), []
        test.offline, test.unread = settings if describes_policies(settings) else None, None
        interval = settings.analysis.interval
        if interval in BOUNDED:
            test.settings = _with_analysis(test.settings, interval="delta")
            test.notes = [f'interval = "{interval}" is for offline tests: the interval here is by the delta method.']
        return test

    def __repr__(self) -> str:
        online = changed_fields(self.settings.online)
        return call_text(self, {"log": self.settings.log, **online, **changed_fields(self.settings.analysis)})

    def replace(self, **changes: Any) -> OnlineTest:
        """This test with other settings of the analysis, or another split, covariate or sequence."""
        names = [field.name for field in dataclasses.fields(Online)]
        online = {name: value for name, value in changes.items() if name in names}
        analysis = {name: value for name, value in changes.items() if name not in names}
        refuse_unused_settings(analysis)
        settings = dataclasses.replace(self.settings, online=dataclasses.replace(self.settings.online, **online))
        test = OnlineTest.from_settings(_with_analysis(settings, **analysis))
        test.notes = [] if "interval" in analysis else self.notes
        test.offline, test.unread = self.offline, self.unread
        return test

    def run(
        self,
        control_log: Any,
        treatment_log: Any,
        *,
        threads: int | None = None,
        batch_rows: int = BATCH_ROWS,
        progress: Progress | None = None,
    ) -> Result:
        """Fold and analyse two logs, each a path, glob, folder or list of files, a dataframe or an Arrow stream."""
        arms = self.arms(control_log, treatment_log, threads=threads, batch_rows=batch_rows, progress=progress)
        audits = self._audits(arms, {CONTROL: control_log, TREATMENT: treatment_log}, threads)
        result = _with_audits(self.analyse(arms), audits, self.unread)
        inputs = inputs_of(control=control_log, treatment=treatment_log)
        return dataclasses.replace(result, provenance=result.provenance | inputs)

    def arms(
        self,
        control_log: Any,
        treatment_log: Any,
        *,
        threads: int | None = None,
        batch_rows: int = BATCH_ROWS,
        progress: Progress | None = None,
    ) -> Arms:
        """Fold both logs, and refuse arms that share units, and a covariate that varies within a unit."""
        reader = ArmReader(self.settings)
        refuse_covariate(self.settings)
        refuse_same_log(control_log, treatment_log)
        control, treatment = _open("control", control_log, reader), _open("treatment", treatment_log, reader)
        refuse_same_files(control, treatment)
        refuse_other_unit_type(self.settings.log.unit, control, treatment)

        def fold(name: str, source: Source) -> Arm:
            with naming_log(name):
                done = stage(progress, name, source)
                arm = fold_arm(source, reader, threads=threads, batch_rows=batch_rows, progress=done)
                refuse_varying(arm, source, reader, batch_rows)
                return arm

        with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
            logs = {"control": control, "treatment": treatment}
            settled = settle_limits(
                settle_read_at(self.settings, logs, reader.columns, folder, threads), reader.columns, folder, threads
            )
            reader = ArmReader(settled.settings)
            arms = Arms(*(fold(name, source) for name, source in settled.logs.items()))
        refuse_shared_units(arms, self.settings.log.unit)
        return arms

    def _audits(self, arms: Arms, logs: Mapping[str, Any], threads: int | None) -> dict[str, ArmAudit]:
        """The audit of each arm's log; none where the settings have no policies."""
        if self.offline is None:
            return {}
        return {
            name: audit_arm(name, logs[name], arm.rows, self.offline, threads)
            for name, arm in arms._asdict().items()
            if arm.rows
        }

    def analyse(self, arms: Arms) -> Result:
        """From sums to verdicts."""
        analysis, online, places = self.settings.analysis, self.settings.online, metric_places(self.settings)
        names, unit = tuple(places), self.settings.log.unit
        for arm in arms:
            refuse_tiny(places, arm.positives, arm.r2)
        split, balance = sample_ratio(arms, online.split), covariate_balance(arms, online.covariate)
        per_unit = displays_per_unit(arms, self.settings)
        counts = arm_counts(analysis) if analysis.interval == "bootstrap" else None
        sequence = Sequence.of(arms, online, analysis.confidence_level) if online.sequential else None
        comparisons = compare_metrics(arms, self.settings, counts, sequence)
        metrics = with_roles(
            {
                name: _metric(comparison, split, per_unit, self.settings.definitions.formulas[name].per(unit))
                for name, comparison in comparisons.items()
            },
            self.settings.metrics,
        )
        fingerprint = rows_fingerprint(*(counts for arm in arms for counts in (arm.rows_by_bucket, arm.positives)))
        return Result(
            version=__version__,
            log={**_facts(arms.control, names), "treatment": _facts(arms.treatment, names)},
            settings=_settings_dict(self.settings),
            metrics=metrics,
            health=_health(comparisons, split)
            | ({} if per_unit is None else {"displays_per_unit": per_unit.to_dict()})
            | ({} if balance is None else {"covariate": balance.to_dict()}),
            notes=[
                *self.notes,
                *split.notes,
                *([] if per_unit is None else per_unit.notes),
                *([] if balance is None else balance.notes),
                *arm_notes(arms, self.settings),
                *counting_notes(arms, self.settings),
                *cut_notes(arms, self.settings),
            ],
            provenance={"versions": versions(), "rows_fingerprint": fingerprint},
            sequential=None if sequence is None else sequence.to_dict(),
            winsorised=cut_by_arm(arms, self.settings),
        )


def _with_audits(result: Result, audits: Mapping[str, ArmAudit], unread: str | None) -> Result:
    """The result with the audits of its arms, and notes on logs that could not be audited."""
    made = {name: one.audit for name, one in audits.items() if one.audit is not None}
    notes = [note for name, one in audits.items() for note in one.note(name)]
    notes += [] if unread is None else [unread]
    return dataclasses.replace(result, audits=made, notes=[*result.notes, *notes])


def _narrow(settings: Settings) -> Settings:
    """Only the settings that this test reads: rewards, date, the unit or else the id, and the analysis."""
    log, policy = settings.log, Logged(prob=NO_COLUMN)
    key = None if log.unit is not None and log.layout != LONG else log.id
    long = {name: getattr(log, name) for name in ("layout", "display", "item", "slot", "first_slot")}
    others = ("time", "reward_time", "reward_age", "read_at", *multiplicities_of(log))
    when = {name: getattr(log, name) for name in others}
    columns = LogColumns(log.rewards, unit=log.unit, id=key, date=log.date, **long, **when)
    analysis = settings.analysis.replace(baseline=None, examination=None)  # of slots, which are not read
    return dataclasses.replace(
        settings, log=columns, control=policy, treatment=policy, treatments={}, analysis=analysis, trained_until=None
    )


def _without_loggers(tables: dict[str, Any]) -> dict[str, Any]:
    """A settings file's tables without the logger column and the baseline, which only an offline test has."""
    narrowed = dict(tables)
    for name, key in (("log", "logger"), ("analysis", "baseline")):
        if isinstance(narrowed.get(name), Mapping):
            narrowed[name] = {k: v for k, v in narrowed[name].items() if k != key}
    return narrowed


def _with_analysis(settings: Settings, **changes: Any) -> Settings:
    return dataclasses.replace(settings, analysis=settings.analysis.replace(**changes))


def _open(arm: str, log: Any, reader: ArmReader) -> Source:
    """An arm's log, with its columns checked."""
    with naming_log(arm):
        source = open_log(log, reader.settings)
        reader.check(source)
        return source


def _metric(comparison: Comparison, split: SampleRatio, per_unit: DisplaysPerUnit | None, per: str | None) -> Metric:
    """One metric of the result; a split that is not as designed is among the reasons. What is per display leans at most
    where the arms differ in displays per unit."""
    differ = None if per_unit is None or per is not None else per_unit.reason
    estimates = {}
    for label, estimate in comparison.estimates.items():
        reasons = [*estimate.reasons, *(reason for reason in (split.reason, differ) if reason is not None)]
        word = estimate.word if differ is None else leaning(estimate.word)
        estimates[label] = dataclasses.replace(estimate, reasons=reasons, word=word)
    gain = None if comparison.gain is None else comparison.gain._asdict()
    return Metric(comparison.control, estimates, KEY, comparison.estimate.verdict, covariate=gain, per=per)


def _facts(arm: Arm, names: tuple[str, ...]) -> dict[str, Any]:
    """The size of an arm, for result.json."""
    facts: dict[str, Any] = {
        "rows": arm.rows,
        **size_of(arm.ledger),
        "units": arm.n_units,
        "positives": {name: int(arm.positives[m]) for m, name in enumerate(names)},
    }
    if not arm.units_exact:
        facts["units_approximate"] = True
    days = first_and_last(arm.rows_by_day)
    return {**facts, **({"last_day": days[-1]} if days else {})}


def _health(comparisons: dict[str, Comparison], split: SampleRatio) -> dict[str, Any]:
    """The health of an online test, with the keys of an offline one, for result.json."""
    return {
        **dict.fromkeys(("effective_sample_size", "max_weight", "capped_share", "treatment_mass_kept")),
        "unsupported_rows": 0,
        "effective_positives": {name: c.estimate.effective_positives for name, c in comparisons.items()},
        "sample_ratio": split.to_dict(),
        "minimum_detectable_effect": {name: c.detectable._asdict() for name, c in comparisons.items()},
    }


def _settings_dict(settings: Settings) -> dict[str, Any]:
    """The settings as a settings file would have them, for result.json."""
    return {
        "log": {k: v for k, v in dataclasses.asdict(settings.log).items() if v},
        "control": {},
        "treatment": {},
        **({"metrics": roles_dict(settings.metrics)} if settings.metrics else {}),
        "analysis": {k: v for k in ANALYSIS_KEYS if (v := getattr(settings.analysis, k)) is not None},
        "online": online_dict(settings.online),
    }
