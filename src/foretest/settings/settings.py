"""The settings of a test: one set of dataclasses behind the Python API, the command line and the TOML file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from foretest.errors import BadInput, choose, nearest
from foretest.records import dataclass
from foretest.settings.analysis import Analysis
from foretest.settings.changed_fields import call_text, changed_fields
from foretest.settings.examination import check_metrics
from foretest.settings.late_rewards import check_window
from foretest.settings.log_columns import LogColumns
from foretest.settings.online import Online, check_covariate
from foretest.settings.predictions import check_predictions, predicted_metrics

if TYPE_CHECKING:
    from foretest.policies import Policy
    from foretest.settings.metric_definitions import MetricDefinitions
    from foretest.settings.metric_roles import MetricRole

TREATMENT = "treatment"  # the name of one alone


@dataclass(frozen=True)
class Settings:
    """Everything a settings file says.

    >>> import foretest as ft
    >>> settings = ft.Settings(
    ...     log=ft.LogColumns(rewards=["click"], ranking="shown"),
    ...     control=ft.PlackettLuce("old_scores"),
    ...     treatment=ft.PlackettLuce("new_scores"),
    ... )
    >>> ft.OfflineTest.from_settings(settings).settings.analysis.cap
    100.0
    """

    log: LogColumns  # which column plays which role
    control: Policy  # the policy that produced the log
    treatment: Policy  # the first, where there are several
    analysis: Analysis = field(default_factory=Analysis)  # the table [analysis]
    online: Online = field(default_factory=Online)  # the table [online]
    treatments: Mapping[str, Policy] = field(default_factory=dict)  # by name, the first included
    metrics: Mapping[str, MetricRole] = field(default_factory=dict)  # what a metric is for, or made of
    trained_until: str | None = None  # the latest of the treatments': rows up to that day are left out for all

    def __post_init__(self) -> None:
        if not isinstance(self.log, LogColumns):
            raise BadInput(
                f"log is of type {type(self.log).__name__}: expected LogColumns, the names of the log's columns;"
                " the log itself is given to run()."
            )
        self._check_loggers()
        self._check_policies()
        if self.metrics:
            from foretest.settings.metric_limits import refuse_metrics
            from foretest.settings.metric_roles import checked_roles

            object.__setattr__(self, "metrics", checked_roles(self.metrics, self.log.rewards))
            refuse_metrics(self.definitions, self.log, self.analysis)
        check_metrics(self.analysis.examination, self.log.rewards, self.log.slot_rewards)
        check_predictions(self.log, self.analysis)
        check_window(self)
        check_covariate(self.log, self.online)
        if isinstance(self.analysis.r_max, Mapping):
            for name in self.analysis.r_max:
                if name not in self.log.rewards:
                    raise BadInput(
                        f"[analysis] r_max names '{name}', which is no reward.{nearest(name, self.log.rewards)}"
                        f" The rewards are: {', '.join(self.log.rewards)}."
                    )

    @cached_property
    def definitions(self) -> MetricDefinitions:
        """All metrics: rewards, and those that are made of them."""
        from foretest.settings.metric_definitions import metric_definitions

        return metric_definitions(self.log.rewards, self.metrics)

    @property
    def winsorises(self) -> bool:
        """Is a reward cut at a limit?"""
        return any(table.winsorising is not None for table in self.metrics.values())

    def is_signed(self, reward: str) -> bool:
        """May the reward be negative?"""
        return reward in self.metrics and self.metrics[reward].signed

    def _check_loggers(self) -> None:
        """Several policies by name produced the log together: they become one that prices rows by their mixture."""
        from foretest.policies.logging_mixture import LoggingMixture

        given, baseline = self.control, self.analysis.baseline
        if isinstance(given, Mapping):
            for name, policy in given.items():
                if not isinstance(name, str) or not name.strip():
                    raise BadInput(f"a control is named {name!r}: expected text, as the logger column has it.")
                _check_policy(f"the control '{name}'", policy)
            if not given:
                raise BadInput("control is empty: give a policy, or a dict of name to policy.")
            names = ", ".join(given)
            if self.log.logger is None:
                raise BadInput(
                    f"there are several controls ({names}), and no column says which of them showed a row: name it in"
                    ' [log] logger, as in logger = "policy".'
                )
            if baseline is None:
                raise BadInput(
                    f"there are several controls ({names}): say which of them the treatment is compared with, as in"
                    f' [analysis] baseline = "{next(iter(given))}".'
                )
            choose("[analysis] baseline", baseline, given)
            object.__setattr__(self, "control", LoggingMixture(given, baseline))
            return
        if isinstance(given, LoggingMixture):
            chosen = choose("[analysis] baseline", baseline, given.loggers)
            if chosen != given.baseline:
                object.__setattr__(self, "control", LoggingMixture(given.loggers, chosen, given.shares))
            return
        if self.log.logger is not None:
            raise BadInput(
                f'[log] logger = "{self.log.logger}" is given, and one control: give a [[control]] table, with a name,'
                " for each policy that the column names, or leave logger out."
            )
        if baseline is not None:
            raise BadInput(f"baseline = {baseline!r} is for several [[control]] tables, and there is one control.")

    def _check_policies(self) -> None:
        """An object without the base class, which needs only log_prob and sample, becomes a `Policy` here."""
        from foretest.policies.adapter import as_policy
        from foretest.policies.base import refuse_slots_alone
        from foretest.policies.control_number import refuse_control_number, refuse_missing_number, with_control_number
        from foretest.policies.fitted_parameter import refuse_fit, refuse_logged

        for role in ("control", "treatment"):
            _check_policy(role, getattr(self, role))
        object.__setattr__(self, "control", as_policy(self.control))
        refuse_control_number(self.control)
        treatments = {}
        for name, given in self._named_treatments().items():
            role = "the treatment" if name == TREATMENT else f"the treatment '{name}'"
            refuse_slots_alone(given, role)
            remedy = 'give a number, or "control" for the control\'s'
            refuse_fit(given, role, "a treatment has no log of its own to fit it on", remedy)
            policy = as_policy(given)
            refuse_missing_number(policy, self.control, role)
            treatments[name] = with_control_number(policy, self.control, role)
        for name, policy in getattr(self.control, "loggers", {"": self.control}).items():
            refuse_logged(policy, f"the control '{name}'" if name else "the control")
        object.__setattr__(self, "treatments", treatments)
        object.__setattr__(self, "treatment", next(iter(self.treatments.values())))
        from foretest.settings.own_candidates import check_own_candidates

        check_own_candidates(self.log, self.control, self.treatments, self.analysis)
        from foretest.settings.replay import check_replay

        check_replay(self.log, self.control, self.treatments)
        from foretest.settings.trained_until import last_training_day

        until = last_training_day(self.log, self.control, self.treatments, self.trained_until)
        object.__setattr__(self, "trained_until", until)

    @property
    def candidates(self) -> str | None:
        """The list column with the ids of the items that the control may show; None where rankings are positions."""
        from foretest.policies.own_candidates import candidates_of

        return self.log.candidates or candidates_of(self.control)

    def _named_treatments(self) -> dict[str, Policy]:
        """The treatments by name; a single one is named "treatment", unless it was given a name."""
        named = dict(self.treatments) or {TREATMENT: self.treatment}
        for name, policy in named.items():
            if not isinstance(name, str) or not name.strip():
                raise BadInput(f"a treatment is named {name!r}: expected text.")
            _check_policy(f"the treatment '{name}'", policy)
        if len(named) == 1:
            named = dict.fromkeys(named, self.treatment)
        elif next(iter(named.values())) is not self.treatment:
            raise ValueError("`treatment` is the first of `treatments`")
        return named

    def __repr__(self) -> str:
        fields = changed_fields(self)
        if list(self.treatments) == [TREATMENT]:
            del fields["treatments"]  # the one that `treatment` is
        fields.pop("trained_until", None)  # a treatment says it
        return call_text(self, fields, in_lines=True)

    @property
    def predicted_metrics(self) -> tuple[str, ...]:
        """The rewards that items have a prediction of."""
        return predicted_metrics(self.log, self.analysis)

    def by_treatment(self) -> dict[str, Settings]:
        """Settings with one treatment each, by its name."""
        if len(self.treatments) == 1:
            return dict.fromkeys(self.treatments, self)
        return {
            name: dataclasses.replace(self, treatment=policy, treatments={name: policy})
            for name, policy in self.treatments.items()
        }


def with_cap(settings: Settings, cap: float) -> Settings:
    """Settings with a number for the cap."""
    return dataclasses.replace(settings, analysis=settings.analysis.replace(cap=cap))


def _check_policy(role: str, policy: Any) -> None:
    if isinstance(policy, type):
        raise BadInput(f"{role} is the class {policy.__name__}: expected a policy, as in {policy.__name__}(…).")
    for method in ("log_prob", "sample"):
        if not callable(getattr(policy, method, None)):
            raise BadInput(
                f'{role} = {policy!r} has no {method}: expected a policy, as in PlackettLuce(scores="column"),'
                " or an object with log_prob(displays, rankings) and sample(displays, uniforms)."
            )


def with_treatment_of(settings: Settings, control: Policy) -> Settings:
    """Settings whose one treatment is the control, so that no other policy's columns are read; as they are where the
    control cannot be a treatment: several policies, or one that prices no rankings."""
    from foretest.policies.logging_mixture import loggers_of

    if loggers_of(control).named or not control.prices_rankings:
        return settings
    return dataclasses.replace(settings, treatment=control, treatments={TREATMENT: control})
