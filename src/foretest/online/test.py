"""The online A/B test, in reading order: fold both arms, check the split, compare, decide."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc, ndtri

from foretest._version import __version__
from foretest.displays.batch import Floats
from foretest.errors import BadInput, nearest
from foretest.estimators.base import ratio
from foretest.files import finite_or_none
from foretest.inference.bootstrap import percentile_interval, resample_counts
from foretest.inference.buckets import Interval
from foretest.inference.delta import FEW_UNITS, delta_interval, std_error
from foretest.inference.guardrails import with_roles
from foretest.inference.verdict import FEWEST_POSITIVES, FEWEST_UNITS, decide
from foretest.inference.welch import TwoSampleError, mean_error, two_sample_error, two_sample_interval
from foretest.log.reader import is_text_key
from foretest.online.arms import Arm, ArmReader, Arms, fold_arm
from foretest.policies import Logged
from foretest.progress import stage
from foretest.provenance import rows_fingerprint, versions
from foretest.results.result import Control, Estimate, Metric, Result
from foretest.settings.analysis import BOUNDED, Analysis
from foretest.settings.file import read_tables, settings_from_tables
from foretest.settings.log_columns import LogColumns
from foretest.settings.metric_roles import roles_dict
from foretest.settings.settings import Online, Settings
from foretest.sources import BATCH_ROWS, LogFiles, Source, open_source
from foretest.sources.inputs import inputs_of

if TYPE_CHECKING:
    from foretest.progress import Progress

KEY = "online"
KEYS = ("confidence_level", "interval", "n_resamples", "buckets", "seed")
ALERT = 0.001  # of the sample-ratio check
POWER = 0.8  # of the minimum detectable effect

# settings have policies; this test asks them nothing
_NO_POLICY = {"policy": "logged", "prob": "none"}


class OnlineTest:
    """The A/B test that was run: the treatment's log against the control's, each of its own units.

    Parameters
    ----------
    log: which column plays which role; rewards, unit (else id) and date are read, no other.
    split: the designed shares of units, the control's first.
    analysis: confidence_level, interval ("bootstrap" or "delta"), n_resamples, buckets and seed, as offline.

    >>> import pyarrow as pa
    >>> test = OnlineTest(log=LogColumns(rewards=["click"]))
    >>> control, treatment = pa.table({"click": [1, 0, 0, 0] * 100}), pa.table({"click": [1, 0] * 200})
    >>> result = test.run(control, treatment)
    >>> result.metrics["click"].estimates["online"].rel_effect_size, result.metrics["click"].verdict
    (1.0, 'positive')
    """

    def __init__(self, *, log: LogColumns, split: Any = (0.5, 0.5), **analysis: Any) -> None:
        _refuse_unused(analysis)
        policy = Logged(prob=_NO_POLICY["prob"])
        self.settings = _narrow(Settings(log, policy, policy, Analysis().replace(**analysis), Online(split)))
        self.notes: list[str] = []

    @classmethod
    def from_toml(cls, path: str | Path) -> OnlineTest:
        """The test that a settings file describes; its tables [control] and [treatment] are not needed."""
        path = Path(path)
        tables = _without_loggers({**read_tables(path), "control": _NO_POLICY, "treatment": _NO_POLICY})
        try:
            return cls.from_settings(settings_from_tables(tables, path.parent))
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from None

    @classmethod
    def from_settings(cls, settings: Settings) -> OnlineTest:
        """The online test of the same change as an offline one; what only the latter needs is left aside."""
        test = cls.__new__(cls)
        test.settings, test.notes = _narrow(settings), []
        asked = settings.analysis.interval
        if asked in BOUNDED:
            test.settings = _with_analysis(test.settings, interval="delta")
            test.notes = [f'interval = "{asked}" is for offline tests: the interval here is by the delta method.']
        return test

    def replace(self, **analysis: Any) -> OnlineTest:
        """The same test with other settings of the analysis."""
        _refuse_unused(analysis)
        test = OnlineTest.from_settings(_with_analysis(self.settings, **analysis))
        test.notes = [] if "interval" in analysis else self.notes
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
        """The whole road, for two logs, each a path, glob, folder or list of files, a dataframe, an Arrow stream."""
        arms = self.arms(control_log, treatment_log, threads=threads, batch_rows=batch_rows, progress=progress)
        result = self.analyse(arms)
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
        """Fold both logs, and refuse arms that share units."""
        reader = ArmReader(self.settings)
        if control_log is treatment_log and not isinstance(control_log, str | Path):
            raise BadInput("the same log is given as control and as treatment: an A/B test has two.")
        sources = []
        for name, log in (("control", control_log), ("treatment", treatment_log)):
            try:
                source = open_source(log)
                reader.check(source)
            except BadInput as error:
                raise BadInput(f"the {name}'s log: {error}") from None
            sources.append(source)
        _refuse_same_files(*sources)
        _refuse_other_units(self.settings.log.unit, *sources)
        folded = []
        for name, source in zip(("control", "treatment"), sources, strict=True):
            try:
                done = stage(progress, name, source)
                folded.append(fold_arm(source, reader, threads=threads, batch_rows=batch_rows, progress=done))
            except BadInput as error:
                raise BadInput(f"the {name}'s log: {error}") from None
        arms = Arms(*folded)
        _refuse_shared_units(arms, self.settings.log.unit)
        return arms

    def analyse(self, arms: Arms) -> Result:
        """From sums to verdicts."""
        a, names = self.settings.analysis, self.settings.log.rewards
        ratio_check = sample_ratio(arms, self.settings.online.split)
        notes = [*self.notes, *_sample_ratio_notes(ratio_check)]
        counts = None
        if a.interval == "bootstrap":
            counts = control_counts(a), treatment_counts(a)
        metrics, detectable = {}, {}
        for m, name in enumerate(names):
            estimate, detectable[name] = _estimate(arms, m, a, counts)
            if ratio_check["alert"]:
                estimate.reasons.append(f"{_MISMATCH} (p = {ratio_check['p_value']:.2g}): find out why first")
            control = _control(arms.control, m, a, None if counts is None else counts[0])
            metrics[name] = Metric(control, {KEY: estimate}, KEY, estimate.verdict)
        log = {**_facts(arms.control, names), "treatment": _facts(arms.treatment, names)}
        health = {
            **dict.fromkeys(("effective_sample_size", "max_weight", "capped_share", "treatment_mass_kept")),
            "unsupported_rows": 0,
            "effective_positives": {name: metrics[name].estimates[KEY].effective_positives for name in names},
            "sample_ratio": ratio_check,
            "minimum_detectable_effect": detectable,
        }
        seen = rows_fingerprint(*(counts for arm in arms for counts in (arm.n, arm.positives)))
        provenance = {"versions": versions(), "rows_fingerprint": seen}
        metrics = with_roles(metrics, self.settings.metrics)
        return Result(__version__, log, self._settings_dict(), metrics, health, notes, provenance=provenance)

    def _settings_dict(self) -> dict[str, Any]:
        s = self.settings
        return {
            "log": {k: v for k, v in dataclasses.asdict(s.log).items() if v},
            "control": {},
            "treatment": {},
            **({"metrics": roles_dict(s.metrics)} if s.metrics else {}),
            "analysis": {key: getattr(s.analysis, key) for key in KEYS},
            "online": {"split": list(s.online.split)},
        }


_MISMATCH = "the units are not split as designed"


def control_counts(analysis: Analysis) -> Floats:
    """The control's resamples, the very ones of the offline test."""
    return resample_counts(analysis.buckets, analysis.n_resamples, analysis.seed)


def treatment_counts(analysis: Analysis) -> Floats:
    """The treatment's resamples, from another stream of the same seed."""
    stream = int(np.random.SeedSequence((analysis.seed, 1)).generate_state(1, np.uint64)[0])
    return resample_counts(analysis.buckets, analysis.n_resamples, stream)


def replicates(arms: Arms, metric: int, counts_control: Floats, counts_treatment: Floats) -> tuple[Floats, Floats]:
    """Δ* and δ* of every resample, NaN where there are no rows, or (δ*) no reward in the control.

    `counts[b, j]` says how often resample b holds bucket j of an arm. Every resample divides by its own rows.
    """
    (c_rows, c_r), (t_rows, t_r) = (
        (counts @ arm.n, counts @ arm.r[metric])
        for counts, arm in ((counts_control, arms.control), (counts_treatment, arms.treatment))
    )
    control, treatment = ratio(c_r, c_rows), ratio(t_r, t_rows)
    exists = (c_rows > 0) & (t_rows > 0)
    absolute = np.where(exists, treatment - control, np.nan)
    relative = np.where(exists & (c_r > 0), ratio(treatment, control) - 1.0, np.nan)
    return absolute, relative


def standard_errors(arms: Arms, metric: int) -> tuple[TwoSampleError, TwoSampleError]:
    """The standard errors of Δ = R_t − R_c and of δ = R_t/R_c − 1, with their degrees of freedom.

    The arms are independent: se(Δ)² = se_t² + se_c² and, by the delta method, se(δ)² = [se_t² + (1 + δ)² se_c²]/R_c².
    An arm's own se² is C/(C−1)·Σ_u (Σ_{i∈u} (r_i − R))²/n², by bucket of units; where every unit has one row it is
    s²/n, Welch's, from the rows themselves.
    """
    welch = all(arm.one_row_a_unit for arm in arms)
    if welch:
        errors = [mean_error(float(arm.r[metric].sum()), float(arm.r2[metric]), arm.rows) for arm in arms]
    else:
        errors = [arm_error(arm, metric) for arm in arms]
    counts = [arm.n_units for arm in arms]
    control, treatment = (arm.mean(metric) for arm in arms)
    absolute = _two_sample(errors, counts, welch)
    if not control > 0:
        return absolute, TwoSampleError(float("nan"), float("inf"))
    return absolute, _two_sample([errors[0] * treatment / control**2, errors[1] / control], counts, welch)


def _two_sample(errors: list[float], counts: list[int], welch: bool) -> TwoSampleError:
    if not all(np.isfinite(errors)):
        return TwoSampleError(float("nan"), float("inf"))
    found = two_sample_error(errors, counts)
    # sums by unit are only nearly normal: Student's quantiles where units are few, as offline
    return found if welch or min(counts) < FEW_UNITS else found._replace(degrees=float("inf"))


def arm_error(arm: Arm, metric: int) -> float:
    """The standard error of an arm's reward per display, a ratio by unit."""
    return std_error(arm.r[metric] - arm.mean(metric) * arm.n, arm.rows, arm.n_units) if arm.rows else float("nan")


def sample_ratio(arms: Arms, split: tuple[float, float]) -> dict[str, Any]:
    """χ² of the units against the designed split, in all and by day.

    While both arms have all their units at hand, all are counted; else those below a common hash, which are a random
    sample of both arms (`sampled_share` of all): an estimated number of units would err by more than chance does.
    """
    c, t = arms
    days: dict[str, tuple[int, int]] = {}
    share = 1.0
    if c.unit_days is None or t.unit_days is None:
        units = c.rows, t.rows
        by_day = c.rows_by_day, t.rows_by_day
    else:
        highest = _common_hash(arms)
        share = 1.0 if c.unit_days.complete and t.unit_days.complete else highest / 2.0**64
        units = len(c.unit_days.units(highest)), len(t.unit_days.units(highest))
        by_day = c.unit_days.units_by_day(highest), t.unit_days.units_by_day(highest)
    for day in sorted(set(by_day[0]) | set(by_day[1])):
        days[day] = by_day[0].get(day, 0), by_day[1].get(day, 0)
    p_value = split_p_value(*units, split)
    found = {day: (counts, split_p_value(*counts, split)) for day, counts in days.items()}
    return {
        "expected": list(split),
        "observed": [count / sum(units) for count in units] if sum(units) else [None, None],
        "units": list(units),
        "p_value": p_value,
        "alert": p_value is not None and p_value < ALERT,
        "sampled_share": share,
        "days_checked": len(found),
        "days": [
            {"day": day, "units": list(counts), "p_value": p}
            for day, (counts, p) in found.items()
            if p is not None and p < ALERT
        ],
    }


def split_p_value(control: int, treatment: int, split: tuple[float, float]) -> float | None:
    """P(χ²_1 ≥ Σ (observed − expected)²/expected); None where there are no units.

    >>> round(split_p_value(5000, 5300, (0.5, 0.5)), 4)
    0.0031
    """
    total = control + treatment
    if total == 0:
        return None
    statistic = sum((n - total * s) ** 2 / (total * s) for n, s in zip((control, treatment), split, strict=True))
    return float(chdtrc(1.0, statistic))


def _sample_ratio_notes(check: dict[str, Any]) -> list[str]:
    notes = []
    if check["sampled_share"] < 1.0:
        notes.append(
            f"over 2^17 units: split and shared units are checked on a random {check['sampled_share']:.1%} of units,"
            " those of smallest hash."
        )
    if check["days"]:
        named = ", ".join(found["day"] for found in check["days"][:5])
        more = ", …" if len(check["days"]) > 5 else ""
        notes.append(
            f"sample ratio by day: p < {ALERT:g} on {len(check['days'])} of {check['days_checked']} days"
            f" ({named}{more}). That many days are looked at: by chance alone one or more would show in up to"
            f" {min(1.0, ALERT * check['days_checked']):.1%} of tests."
        )
    return notes


def _estimate(
    arms: Arms, metric: int, analysis: Analysis, counts: tuple[Floats, Floats] | None
) -> tuple[Estimate, dict[str, float | None]]:
    """The uplift, its intervals and the verdict; and the smallest uplift that this test could show."""
    level = analysis.confidence_level
    enough, reasons = _reasons_against(arms, metric)
    effective = [arm.effective_positives(metric) for arm in arms]
    positives = min((e or 0.0) for e in effective)
    control, treatment = (arm.mean(metric) for arm in arms)
    delta = treatment - control
    error, rel_error = standard_errors(arms, metric)
    relative = treatment / control - 1.0 if control > 0 else float("nan")
    if min(arm.n_units for arm in arms) < 2:  # resamples of one unit do not differ
        limits = rel_limits = Interval(float("nan"), float("nan"))
    elif counts is None:
        limits = two_sample_interval(delta, error, level)
        rel_limits = two_sample_interval(relative, rel_error, level)
    else:
        absolutes, relatives = replicates(arms, metric, *counts)
        limits, rel_limits = percentile_interval(absolutes, level), percentile_interval(relatives, level)
    estimate = Estimate(
        treatment=finite_or_none(treatment),
        std_error=finite_or_none(error.std_error),
        effect_size=finite_or_none(delta),
        effect_size_ci_lower=finite_or_none(limits.lower),
        effect_size_ci_upper=finite_or_none(limits.upper),
        rel_effect_size=finite_or_none(relative),
        rel_effect_size_ci_lower=finite_or_none(rel_limits.lower),
        rel_effect_size_ci_upper=finite_or_none(rel_limits.upper),
        verdict=decide(limits, enough, control),
        reasons=reasons,
        effective_positives=positives,
    )
    factor = float(ndtri(0.5 + level / 2.0) + ndtri(POWER))
    detectable: dict[str, float | None] = {
        "absolute": _positive(factor * error.std_error),
        "relative": _positive(factor * rel_error.std_error),
        "power": POWER,
    }
    return estimate, detectable


def _reasons_against(arms: Arms, metric: int) -> tuple[bool, list[str]]:
    """Can both arms carry an interval?"""
    reasons = []
    if not any(arm.positives[metric] for arm in arms) and all(arm.rows for arm in arms):
        return False, ["no row has a reward"]
    for name, arm in zip(("control", "treatment"), arms, strict=True):
        effective, units = arm.effective_positives(metric) or 0.0, arm.n_units
        if arm.rows == 0:
            reasons.append(f"the {name}'s log is empty")
            continue
        if units < FEWEST_UNITS:
            reasons.append(
                f"only {units} unit{'s' if units != 1 else ''} in the {name}: an interval needs at least {FEWEST_UNITS}"
            )
        if effective < FEWEST_POSITIVES:
            reasons.append(
                f"only {effective:.1f} effective positives in the {name}: at least {FEWEST_POSITIVES:.0f} are needed"
            )
    return not reasons, reasons


def _control(arm: Arm, metric: int, analysis: Analysis, counts: Floats | None) -> Control:
    """The control's reward per display and its interval, as offline."""
    if arm.rows == 0:
        return Control(None, None, None, None)
    value, error = arm.mean(metric), arm_error(arm, metric)
    if arm.n_units < 2:
        limits = Interval(float("nan"), float("nan"))
    elif counts is None:
        limits = delta_interval(value, error, arm.n_units, analysis.confidence_level)
    else:
        rows = counts @ arm.n
        resampled = np.where(rows > 0, ratio(counts @ arm.r[metric], rows), np.nan)
        limits = percentile_interval(resampled, analysis.confidence_level)
    return Control(value, finite_or_none(error), finite_or_none(limits.lower), finite_or_none(limits.upper))


def _facts(arm: Arm, names: tuple[str, ...]) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "rows": arm.rows,
        "units": arm.n_units,
        "positives": {name: int(arm.positives[m]) for m, name in enumerate(names)},
    }
    if not arm.units_exact:
        facts["units_approximate"] = True
    return facts


def _refuse_unused(analysis: dict[str, Any]) -> None:
    for key in analysis:
        if key not in KEYS:
            raise BadInput(f"the online test has no setting '{key}'.{nearest(key, KEYS)} Known: {', '.join(KEYS)}.")
    if analysis.get("interval") in BOUNDED:
        raise BadInput(f'interval = "{analysis["interval"]}" is not for online tests. Known: bootstrap, delta.')


def _narrow(settings: Settings) -> Settings:
    """Only what this test reads: rewards, date, and the unit or else the id."""
    log, policy = settings.log, Logged(prob=_NO_POLICY["prob"])
    columns = LogColumns(log.rewards, unit=log.unit, id=None if log.unit is not None else log.id, date=log.date)
    analysis = settings.analysis.replace(baseline=None)
    return dataclasses.replace(
        settings, log=columns, control=policy, treatment=policy, treatments={}, analysis=analysis
    )


def _without_loggers(tables: dict[str, Any]) -> dict[str, Any]:
    """Who showed a row, and whom the treatment is compared with, are the offline test's business."""
    found = dict(tables)
    for name, key in (("log", "logger"), ("analysis", "baseline")):
        if isinstance(found.get(name), Mapping):
            found[name] = {k: v for k, v in found[name].items() if k != key}
    return found


def _with_analysis(settings: Settings, **changes: Any) -> Settings:
    return dataclasses.replace(settings, analysis=settings.analysis.replace(**changes))


def _common_hash(arms: Arms) -> int:
    """Below it, the units of both arms are all at hand."""
    for arm in arms:
        assert arm.unit_days is not None
        arm.unit_days.pairs()
    return min(arm.unit_days.highest for arm in arms if arm.unit_days is not None)


def _refuse_same_files(control: Source, treatment: Source) -> None:
    if isinstance(control, LogFiles) and isinstance(treatment, LogFiles):
        control_files = {path.resolve() for path in control.paths}
        for path in treatment.paths:
            if path.resolve() in control_files:
                raise BadInput(f"{path}: this file is in the control's log and in the treatment's. Leave one out.")


def _refuse_other_units(unit: str | None, control: Source, treatment: Source) -> None:
    """1 and "1" are two units: a unit in both arms would not be seen."""
    if unit is None:
        return
    [(first, mine), *_], [(name, theirs), *_] = control.schemas(), treatment.schemas()
    kinds = mine.field(unit).type, theirs.field(unit).type
    if is_text_key(kinds[0]) != is_text_key(kinds[1]):
        raise BadInput(
            f"the treatment's log: {name}: column '{unit}' is {kinds[1]}, but {kinds[0]} in the control's, {first}:"
            " it must be of one type in both. Convert one of them."
        )


def _refuse_shared_units(arms: Arms, unit: str | None) -> None:
    if arms.control.unit_days is None or arms.treatment.unit_days is None:
        return
    highest = _common_hash(arms)
    c, t = arms.control.unit_days.units(highest), arms.treatment.unit_days.units(highest)
    shared = len(np.intersect1d(c, t, assume_unique=True))
    if not shared:
        return
    count = f"{shared:,} unit{'s are' if shared != 1 else ' is'} in both arms"
    where = f"(column '{unit}'; the control has {len(c):,}, the treatment {len(t):,})"
    if not (arms.control.unit_days.complete and arms.treatment.unit_days.complete):
        where = f"(column '{unit}'), of the {len(c):,} and {len(t):,} units of smallest hash that were compared"
    raise BadInput(f"{count} {where}: a unit must see one policy only. Leave such units out of both logs.")


def _positive(value: float) -> float | None:
    """A number above 0; without any variance there is no smallest effect to speak of."""
    return value if np.isfinite(value) and value > 0 else None
