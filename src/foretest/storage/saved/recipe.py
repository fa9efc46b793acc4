"""What aggregates were made with: recorded in every saved file, and compared before anything is added up."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from foretest._version import __version__
from foretest.aggregation.cap_choice import CapChoice
from foretest.aggregation.choose_estimators import choose_estimators
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.item_model import ItemModel
from foretest.aggregation.value_model import Encoder, ValueModel
from foretest.errors import BadInput
from foretest.estimators import ESTIMATORS, Estimator
from foretest.kernels import hashing
from foretest.policies.base import Policy
from foretest.records import dataclass
from foretest.settings.analysis import AUTO, DEFAULT_BOUND, GAMMA, Analysis
from foretest.settings.log_columns import LogColumns
from foretest.settings.settings import Settings, with_cap
from foretest.storage.saved.differences import (
    binding_settings,
    estimator_text,
)
from foretest.storage.saved.inputs import InputFile
from foretest.storage.saved.json_values import (
    EstimatorRecord,
    PolicyRecord,
    Tables,
    digest,
    estimator_record,
    policy_record,
    tables_of,
    treatment_roles,
)
from foretest.storage.saved.logger_days import Days, with_shares

#: Raise it with every change of what a field of `Aggregates` or a column of its kept rows is or means.
LAYOUT = 3
#: that are read, by the table of old names in `old_layouts`
READ_LAYOUTS = (2, LAYOUT)


class OtherLayout(BadInput):
    """Aggregates that another version wrote."""


@dataclass(frozen=True)
class Recipe:
    """The settings, objects and inputs that some aggregates were made with, as JSON has them."""

    settings: Tables
    estimators: list[EstimatorRecord]
    policies: dict[str, PolicyRecord]  # by the policy's table in the settings
    treatments: list[str]  # their names
    value_model: str | None  # its fingerprint
    r_max: dict[str, float]
    notes: list[str] = field(default_factory=list)
    inputs: list[InputFile] = field(default_factory=list)
    item_model: str | None = None  # the fingerprint of a fitted reward model
    cap_choice: dict[str, Any] | None = None  # how the cap was chosen, where it was; the settings have the number
    layout: int = LAYOUT
    hash: str = hashing.NAME
    foretest: str = __version__

    @classmethod
    def of(
        cls,
        plan: FoldPlan,
        notes: Sequence[str] = (),
        r_max: Mapping[str, float] | None = None,
        inputs: Sequence[InputFile] = (),
    ) -> Recipe:
        """What the aggregates of a plan are made with."""
        names = list(plan.settings.treatments)
        policies = {"control": plan.settings.control}
        policies |= {role: plan.settings.treatments[name] for name, role in treatment_roles(names).items()}
        return cls(
            settings=tables_of(plan.settings),
            estimators=[estimator_record(estimator) for estimator in plan.estimators],
            policies={role: policy_record(policy) for role, policy in policies.items()},
            treatments=names,
            value_model=None if plan.value_model is None else plan.value_model.fingerprint,
            r_max=dict(r_max or {}),
            notes=list(notes),
            inputs=list(inputs),
            item_model=None if plan.item_model is None else plan.item_model.fingerprint,
            cap_choice=None if plan.cap_choice is None else plan.cap_choice.to_dict(),
        )

    @property
    def fingerprint(self) -> str:
        """A hash of everything that must be the same for sums to add up."""
        same = [self.layout, self.hash, binding_settings(self.settings), self.estimators, self.value_model]
        same += [] if self.item_model is None else [self.item_model]
        return digest(json.dumps(same, sort_keys=True).encode())

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "fingerprint": self.fingerprint}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Recipe:
        """Read it back, from a header of this layout."""
        given = {f.name: document[f.name] for f in dataclasses.fields(cls) if f.name != "item_model"}
        recipe = cls(**given, item_model=document.get("item_model"))  # not in files of earlier versions
        return dataclasses.replace(recipe, settings=_with_defaults_of_now(recipe.settings))

    def recorded(self, name: str) -> Settings:
        """The settings as they were, for an analysis: policies have their tables and columns, no code is imported."""
        objects = [record["label"] for record in self.estimators if not record["plain"]]
        if objects:
            raise BadInput(
                f"{name}: made with estimators that are Python objects ({', '.join(objects)}), which a settings file"
                " cannot name. Analyse it from Python, with the OfflineTest that has them: test.run(path)."
            )
        tables = self.settings
        roles = treatment_roles(self.treatments)
        treatments = {name: RecordedPolicy(tables[role], **self.policies[role]) for name, role in roles.items()}
        of_control = self.policies["control"]
        control: Any = RecordedPolicy(tables["control"], **of_control)
        if "loggers" in tables["control"]:
            loggers = tables["control"]["loggers"]
            control = {name: RecordedPolicy(table, **of_control) for name, table in loggers.items()}
        return Settings(
            log=LogColumns(**tables["log"]),
            control=control,
            treatment=treatments[self.treatments[0]],
            treatments=treatments,
            analysis=Analysis(**tables["analysis"]),
            metrics=tables.get("metrics", {}),
        )

    def plan(self, name: str, settings: Settings, days: Days | None = None) -> FoldPlan:
        """The plan these aggregates were folded under, with a test's own estimator objects where it has them.

        `days` are the loggers' rows by day of all files that are added up.
        """
        settings = with_shares(self.with_its_cap(settings), self.days if days is None else days)
        estimators = self._estimators(name, {e.label: e for e in choose_estimators(settings)[0].estimators})
        model = None if self.value_model is None else ValueModel((), Encoder((), ()), self.value_model)
        choice = None if self.cap_choice is None else CapChoice.from_dict(self.cap_choice)
        items = None if self.item_model is None else ItemModel(settings, scales_fingerprint=self.item_model)
        return FoldPlan(settings, estimators, model, choice, items)

    def _estimators(self, name: str, mine: Mapping[str, Estimator]) -> tuple[Estimator, ...]:
        """The estimators of these aggregates, `mine` by label being a test's; one of that label must be the same."""
        estimators: list[Estimator] = []
        for record in self.estimators:
            label = record["label"]
            if label in mine and estimator_record(mine[label]) == record:
                estimators.append(mine[label])
            elif record["plain"] and label not in mine:
                estimators.append(ESTIMATORS[record["key"]]())
            else:
                has = estimator_text(estimator_record(mine[label])) if label in mine else "none of that name"
                raise BadInput(
                    f"{name} was made with {estimator_text(record)}, the test has {has}. Give the test the estimators"
                    " that the log was folded with."
                )
        return tuple(estimators)

    def with_its_cap(self, settings: Settings) -> Settings:
        """A test whose cap is "auto" takes the cap that was chosen for these aggregates."""
        if settings.analysis.cap != AUTO or self.cap_choice is None:
            return settings
        return with_cap(settings, self.settings["analysis"]["cap"])

    @property
    def days(self) -> Days:
        """The rows of several loggers by day, whose shares these aggregates were folded with; empty for one control."""
        return dict(self.settings["control"].get("shares", {}))


def refuse_other_layout(name: str, document: Any) -> None:
    """Refuse a header of another layout or hash, with the version that wrote it."""
    values = document if isinstance(document, Mapping) else {}
    layout, hashed, version = (values.get(key) for key in ("layout", "hash", "foretest"))
    if layout not in READ_LAYOUTS or hashed != hashing.NAME:
        raise OtherLayout(
            f"{name}: aggregates of Foretest {version}, in layout {layout} with hash {hashed}; Foretest"
            f" {__version__} has layout {LAYOUT} with hash {hashing.NAME}. Fold the log again with foretest aggregate."
        )


def _with_defaults_of_now(tables: Tables) -> Tables:
    """The settings of a saved file. Files from before `gamma_slots` have defaults of then written out, which have moved
    since: these count as not given."""
    analysis = tables["analysis"]
    if "gamma_slots" in analysis:
        return tables
    analysis = {**analysis, "gamma_slots": list(Analysis().gamma_slots)}
    if tuple(analysis.get("gamma") or ()) == GAMMA:
        analysis["gamma"] = None
    if analysis.get("weight_bound") == DEFAULT_BOUND:
        analysis["weight_bound"] = AUTO
    return {**tables, "analysis": analysis}


class RecordedPolicy(Policy):
    """A policy as a saved file records it: what an analysis of saved sums needs, and no more."""

    def __init__(self, table: Mapping[str, Any], columns: Sequence[str], can_draw: bool) -> None:
        self._table, self._columns = dict(table), tuple(columns)
        self.can_draw = can_draw
        until = table.get("trained_until")
        self._trained_until = until if isinstance(until, str) else None
        by_slot = table.get("policy") == "logged-slots"
        self.prices_rankings, self.knows_all_slots = not by_slot, not by_slot or "matrix" in table

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def settings(self) -> dict[str, Any]:
        return self._table
