"""The result of a test: one object, as a table, as Markdown, as JSON, as rows and as a page."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from foretest.files import html_text, json_ready, json_text
from foretest.records import dataclass
from foretest.results.document import (
    estimate_dict,
    given,
    metric_dict,
    range_fields,
    segments_dict,
    treatment_dict,
)
from foretest.results.summaries import estimate_summary, metric_summary, segment_summary, treatment_summary
from foretest.settings.metric_roles import INCREASE
from foretest.stores import Location

if TYPE_CHECKING:
    import pandas

    from foretest.results.audit import Audit
    from foretest.results.days import Days
    from foretest.results.slot_model import SlotModel
    from foretest.results.uplift_range import Range

SCHEMA = 1
#: fields of an estimate that no flat row has
NESTED = (
    "strata", "betting", "sensitivity", "calibration", "bound_choice", "range", "curves", "unsupported_noise",
    "always_valid",
)  # fmt: skip


@dataclass(frozen=True)
class Adjusted:
    """An estimate adjusted for the number of treatments that are asked about."""

    p_value: float | None  # two-sided, of the effect size
    p_adjusted: float | None  # after Holm, over the treatments
    verdict_adjusted: str
    simultaneous_ci_lower: float | None  # of the effect size: the limits of all treatments hold at once
    simultaneous_ci_upper: float | None
    rel_simultaneous_ci_lower: float | None
    rel_simultaneous_ci_upper: float | None


@dataclass(frozen=True)
class Estimate:
    """One estimator's answer for one metric. Numbers that do not exist are None.

    >>> import foretest as ft
    >>> import pyarrow as pa
    >>> log = pa.table({"click": [1, 0] * 50, "old": [0.5] * 100, "new": [0.6, 0.4] * 50})
    >>> test = ft.OfflineTest(
    ...     log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="old"), treatment=ft.Logged(prob="new"),
    ...     estimators=["ncis"],
    ... )
    >>> estimate = test.run(log).metrics["click"].estimates["ncis"]
    >>> round(estimate.rel_effect_size, 6), estimate.word
    (0.2, 'leans positive')
    """

    treatment: float | None  # what the treatment would earn per display
    std_error: float | None  # of the effect size
    effect_size: float | None  # treatment − control
    effect_size_ci_lower: float | None  # the verdict is taken on this interval
    effect_size_ci_upper: float | None
    rel_effect_size: float | None  # treatment/control − 1
    rel_effect_size_ci_lower: float | None
    rel_effect_size_ci_upper: float | None
    verdict: str  # positive, neutral, negative or insufficient, by noise alone
    reasons: list[str]  # why the evidence is insufficient, and what a reader should know of support
    effective_positives: float | None  # the number of equally weighted rewards that would be worth as much
    unsupported_rows: int = 0  # rewarded rows without support
    strata: list[dict[str, Any]] | None = None  # of a stratified estimator
    predicted_effective_positives: float | None = None  # on average over what the control might have shown
    betting: dict[str, float | None] | None = None  # ci_lower, ci_upper of the effect size, where it was asked for
    lower_bound: float | None = None  # of the treatment's value, at 95 %
    sensitivity: dict[str, float | None] | None = None  # the band of a point estimator, in units of the effect size
    robustness: str | None = None  # robust or fragile: does the band agree with the interval?
    adjusted: Adjusted | None = None  # of one of several treatments
    calibration: dict[str, Any] | None = None  # of a calibrated estimate: Γ0, its interval, τ², tests, T
    rel_std_error: float | None = None  # of the relative effect size
    unsupported: float | None = None  # T over the control's value, where there is a band
    bound_choice: dict[str, Any] | None = None  # how the bound on weights was chosen, where it was
    range: Range | None = None  # noise, and what the log cannot support; None only in files of earlier versions
    word: str = "insufficient"  # the verdict, softened where noise and range differ
    curves: list[dict[str, Any]] | None = None  # the uplift under steeper and flatter examination curves than given
    unsupported_noise: dict[str, Any] | None = None  # how `unsupported` varies, where it can be calibrated
    p_value: float | None = None  # two-sided, of no effect: of an online test
    always_valid: dict[str, Any] | None = None  # limits that hold at every look, and their verdict, where asked for
    predicted_std_error: float | None = None  # of the effect size, on average over what the control might have shown

    def __repr__(self) -> str:
        return f"<Estimate {estimate_summary(self)}>"


@dataclass(frozen=True)
class Control:
    """The control's own value, the mean reward of the log."""

    value: float | None
    std_error: float | None
    ci_lower: float | None
    ci_upper: float | None


@dataclass(frozen=True)
class Metric:
    """The estimates for one metric.

    >>> import foretest as ft
    >>> import pyarrow as pa
    >>> log = pa.table({"click": [1, 0] * 50, "old": [0.5] * 100, "new": [0.6, 0.4] * 50})
    >>> test = ft.OfflineTest(
    ...     log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="old"), treatment=ft.Logged(prob="new"),
    ...     estimators=["ncis"],
    ... )
    >>> metric = test.run(log).metrics["click"]
    >>> metric.headline, metric.control.value
    ('ncis', 0.5)
    """

    control: Control  # the control's own value, with its interval
    estimates: dict[str, Estimate]  # by estimator
    headline: str | None  # the estimator whose verdict is the metric's
    verdict: str  # that verdict
    cap_path: dict[str, Any] | None = None  # of an offline test
    slots: dict[str, Any] | None = None  # how far the estimates by slot and by ranking are apart
    headline_reason: str | None = None  # why exposure leads and not slots, where it does
    examination: dict[str, Any] | None = None  # the examination curve, where an estimator used one
    slot_model: SlotModel | None = None  # tests of what estimates by slot assume, where there are any
    reward_model: dict[str, Any] | None = None  # whether the estimate with a reward model leads, where there is one
    role: dict[str, Any] | None = None  # role, direction, outcome, margin, guardrail: where settings give roles
    per: str | None = None  # what values are per, where that is not a display: a unit, or the metric below a ratio
    days: Days | None = None  # the headline's uplift by day, where displays have a time
    covariate: dict[str, Any] | None = None  # what an online test's adjustment for a covariate bought

    @property
    def robustness(self) -> str | None:
        """Robust or fragile: that of the headline's verdict."""
        return self.estimates[self.headline].robustness if self.headline in self.estimates else None

    @property
    def direction(self) -> str:
        """The way that is better: increase, or decrease where the settings say so."""
        return INCREASE if self.role is None else str(self.role["direction"])

    @property
    def verdicts(self) -> tuple[str, ...]:
        """The headline's verdict; where there are several treatments, also the one adjusted for their number."""
        lead = self.estimates.get(self.headline or "")
        more = () if lead is None or lead.adjusted is None else (lead.adjusted.verdict_adjusted,)
        return (self.verdict, *more)

    def __repr__(self) -> str:
        return f"<Metric {metric_summary(self)}>"


@dataclass(frozen=True)
class Treatment:
    """One of several treatments."""

    name: str
    rank: int | None  # by the first goal's uplift, from 1; None for a check
    metrics: dict[str, Metric]
    health: dict[str, Any]
    audit: Audit
    segments: list[Segment] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<Treatment {treatment_summary(self)}>"


@dataclass(frozen=True)
class Segment:
    """The rows with one value of a column, or with any of the values that have no row of their own."""

    column: str
    value: str
    rows: int
    metrics: dict[str, Metric]
    rest: bool  # is it all values without a row of their own?
    values: int | None  # how many values it has; None where that is not known

    def __repr__(self) -> str:
        return f"<Segment {segment_summary(self)}>"


@dataclass(frozen=True)
class Result:
    """The outcome of an offline or online A/B test, or (with no estimates) of a check of a log.

    >>> import foretest as ft
    >>> import pyarrow as pa
    >>> log = pa.table({"click": [1, 0] * 50, "old": [0.5] * 100, "new": [0.6, 0.4] * 50})
    >>> test = ft.OfflineTest(
    ...     log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="old"), treatment=ft.Logged(prob="new"),
    ...     estimators=["ncis"],
    ... )
    >>> result = test.run(log)
    >>> result.metrics["click"].verdict, result.log["rows"]
    ('positive', 100)
    """

    version: str  # of Foretest
    log: dict[str, Any]  # rows, units, positives
    settings: dict[str, Any]  # with every default filled in
    metrics: dict[str, Metric]  # by name
    health: dict[str, Any]  # what the weights say of the log
    notes: list[str] = field(default_factory=list)  # what a reader must know
    weights: dict[str, Any] | None = None  # of an offline test
    provenance: dict[str, Any] = field(default_factory=dict)  # versions, fingerprints, the command
    audit: Audit | None = None  # of an offline test

    treatments: list[Treatment] = field(default_factory=list)  # all of them, where there are several
    segments: list[Segment] = field(default_factory=list)  # of the (first) treatment, where a column is named
    winner: str | None = None  # the best treatment that passes; None where none does
    winner_reason: str | None = None  # why it wins, or why none does; None where nobody asked, as for a check
    late_rewards: dict[str, Any] | None = None  # where the log says when rewards came
    control_fit: dict[str, Any] | None = None  # what was fitted of each control, by its name
    winsorised: dict[str, Any] | None = None  # the limits of rewards that are cut, and the share that was
    sequential: dict[str, Any] | None = None  # of an online test that is looked at while it runs
    audits: dict[str, Audit] = field(default_factory=dict)  # of an online test's logs by arm, where it has policies

    @property
    def cap(self) -> float:
        """The cap of the run: that of the settings, or the one that `cap = "auto"` chose."""
        chosen = self.health.get("cap")
        return float(self.settings["analysis"]["cap"] if chosen is None else chosen["chosen"])

    def to_dict(self) -> dict[str, Any]:
        """The content of result.json, schema 1."""
        document: dict[str, Any] = json_ready(
            {
                "foretest": self.version,
                "schema": SCHEMA,
                "log": self.log,
                "settings": self.settings,
                "metrics": {name: metric_dict(metric) for name, metric in self.metrics.items()},
                **self._examination(),
                **given(control_fit=self.control_fit, winsorised=self.winsorised),
                "health": self.health,
                **given(audit=None if self.audit is None else self.audit.to_dict()),
                **({"audits": {arm: audit.to_dict() for arm, audit in self.audits.items()}} if self.audits else {}),
                "weights": self.weights,
                "notes": self.notes,
                "provenance": self.provenance,
                **({"treatments": [treatment_dict(t) for t in self.treatments]} if self.treatments else {}),
                **segments_dict(self.segments),
                **given(late_rewards=self.late_rewards, sequential=self.sequential),
                **({"winner": self.winner, "winner_reason": self.winner_reason} if self.winner_reason else {}),
            }
        )
        return document

    def _examination(self) -> dict[str, Any]:
        """The examination curve of the first metric that has one."""
        curves = [metric.examination for metric in self.metrics.values() if metric.examination is not None]
        return {"examination": curves[0]} if curves else {}

    def to_json(self, path: str | Location | None = None) -> str:
        """JSON text; with a path it is also written there, completely or not at all."""
        return json_text(self.to_dict(), path)

    def to_html(self, path: str | Location | None = None) -> str:
        """One self-contained page; with a path it is also written there, completely or not at all."""
        from foretest.report.result_page import result_page

        return html_text(result_page(self), path)

    def to_markdown(self) -> str:
        """The tables that the terminal shows, as Markdown."""
        from foretest.terminal.markdown import result_markdown

        return result_markdown(self)

    def figures(self) -> dict[str, dict[str, Any]]:
        """Vega-Lite specifications by name: `weights`, and for each metric `cap-…`, `cap-estimates-…`, `bound-…`,
        `examination-…`, `days-…`, `reward-ages-…`, where there are such."""
        from foretest.report.figures import result_figures

        return result_figures(self.to_dict())

    def to_dicts(self) -> list[dict[str, Any]]:
        """One flat row per metric and estimator, and per treatment, with its name, where there are several."""
        rows = []
        several = [({"treatment_name": t.name}, t.metrics) for t in self.treatments]
        for whose, metrics in several or [({}, self.metrics)]:
            for name, metric in metrics.items():
                for label, estimate in metric.estimates.items():
                    fields = {k: v for k, v in estimate_dict(estimate).items() if k not in NESTED}
                    first = {**whose, "metric": name, "estimator": label, "control": metric.control.value}
                    rows.append({**first, **fields, **range_fields(estimate)})
        return rows

    def to_pandas(self) -> pandas.DataFrame:
        """The rows of `to_dicts` as a DataFrame (pandas must be installed)."""
        import pandas

        return pandas.DataFrame(self.to_dicts())

    def __str__(self) -> str:
        from foretest.terminal.result import render

        return render(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from foretest.report.notebook import result_html

        return result_html(self)
