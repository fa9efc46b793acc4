"""What aggregates were made with: told in every saved file, compared by name before anything is added up."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from foretest._version import __version__
from foretest.aggregation.cap_choice import CapChoice
from foretest.aggregation.choose_estimators import choose_estimators
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.value_model import Encoder, ValueModel
from foretest.errors import BadInput
from foretest.estimators import ESTIMATORS, Estimator
from foretest.kernels import hashing
from foretest.log.logger_columns import shares_of
from foretest.policies.base import Policy, policy_columns, policy_settings
from foretest.policies.pooled import ALL, Pooled
from foretest.provenance import fingerprint
from foretest.settings.analysis import AUTO, Analysis
from foretest.settings.log_columns import LogColumns
from foretest.settings.metric_roles import roles_dict
from foretest.settings.settings import TREATMENT, Settings, with_cap

#: Raise it with every change of what a field of `Aggregates` or a column of its kept rows is or means.
LAYOUT = 2
#: What may still change once a log is folded; estimators may be fewer.
FREE = ("confidence_level", "interval", "n_resamples", "headline", "gamma", "decide_on", "ignore_audit")


class OtherLayout(BadInput):
    """Aggregates that another version wrote."""


Tables = dict[str, dict[str, Any]]
Days = dict[str, list[int]]  # rows of each logger by day


@dataclass(frozen=True)
class Recipe:
    """The settings, objects and inputs behind some aggregates, as JSON can say them."""

    settings: Tables  # as a settings file has them
    estimators: list[dict[str, Any]]
    policies: dict[str, dict[str, Any]]  # what an analysis asks of a policy
    treatments: list[str]  # their names
    value_model: str | None  # its fingerprint
    r_max: dict[str, float]
    notes: list[str] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)  # path, rows and content of each file
    cap_choice: dict[str, Any] | None = None  # how the cap was chosen, where it was; the settings have the number
    layout: int = LAYOUT
    hash: str = hashing.NAME
    foretest: str = __version__

    @classmethod
    def of(
        cls, plan: FoldPlan, notes: Sequence[str] = (), r_max: Mapping[str, float] | None = None, inputs: Any = ()
    ) -> Recipe:
        """What the aggregates of a plan are made with."""
        names = list(plan.settings.treatments)
        roles = {"control": plan.settings.control}
        roles |= {role: plan.settings.treatments[name] for name, role in _treatment_roles(names).items()}
        return cls(
            settings=tables_of(plan.settings),
            estimators=[_told(e) for e in plan.estimators],
            policies={
                role: {"columns": list(policy_columns(p)), "can_draw": bool(getattr(p, "can_draw", True))}
                for role, p in roles.items()
            },
            treatments=names,
            value_model=None if plan.value_model is None else plan.value_model.fingerprint,
            r_max=dict(r_max or {}),
            notes=list(notes),
            inputs=list(inputs),
            cap_choice=None if plan.cap_choice is None else plan.cap_choice.to_dict(),
        )

    @property
    def fingerprint(self) -> str:
        """A hash of all that must be the same for sums to add up."""
        same = [self.layout, self.hash, _flat(self.settings), self.estimators, self.value_model]
        return digest(json.dumps(same, sort_keys=True).encode())

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "fingerprint": self.fingerprint}

    @classmethod
    def from_json(cls, name: str, document: Mapping[str, Any]) -> Recipe:
        """Read it back; another layout or hash is refused, with the version that wrote it."""
        layout, hashed, version = (document.get(key) for key in ("layout", "hash", "foretest"))
        if layout != LAYOUT or hashed != hashing.NAME:
            raise OtherLayout(
                f"{name}: aggregates of Foretest {version}, in layout {layout} with hash {hashed}; Foretest"
                f" {__version__} has layout {LAYOUT} with hash {hashing.NAME}. Fold the log again with foretest"
                " aggregate."
            )
        return cls(**{f.name: document[f.name] for f in dataclasses.fields(cls)})

    def recorded(self, name: str) -> Settings:
        """The settings as they were, for an analysis: its policies have names and columns, but no code is imported."""
        objects = [e["label"] for e in self.estimators if not e["plain"]]
        if objects:
            raise BadInput(
                f"{name}: made with estimators that are Python objects ({', '.join(objects)}), which a settings file"
                " cannot name. Analyse it from Python, with the OfflineTest that has them: test.run(path)."
            )
        tables = self.settings
        roles = _treatment_roles(self.treatments)
        treatments = {name: Recorded(tables[role], **self.policies[role]) for name, role in roles.items()}
        control: Any = Recorded(tables["control"], **self.policies["control"])
        if "loggers" in tables["control"]:
            each = tables["control"]["loggers"]
            control = {name: Recorded(table, **self.policies["control"]) for name, table in each.items()}
        return Settings(
            log=LogColumns(**tables["log"]),
            control=control,
            treatment=treatments[self.treatments[0]],
            treatments=treatments,
            analysis=Analysis(**tables["analysis"]),
            metrics=tables.get("metrics", {}),
        )

    def plan(self, name: str, settings: Settings, days: Days | None = None) -> FoldPlan:
        """The plan these aggregates were folded under, with a test's objects where it has them; `days` are the loggers'
        rows by day of all files that are added up."""
        settings = _with_shares(self._with_its_cap(settings), self.days if days is None else days)
        mine = {e.label: e for e in choose_estimators(settings)[0].estimators}
        estimators = []
        for told in self.estimators:
            label = told["label"]
            if label in mine and _told(mine[label]) == told:
                estimators.append(mine[label])
            elif told["plain"] and label not in mine:
                estimators.append(ESTIMATORS[told["key"]]())
            else:
                raise BadInput(
                    f"{name} was made with {_an_estimator(told)}, the test has"
                    f" {_an_estimator(_told(mine[label])) if label in mine else 'none of that name'}. Give the test the"
                    " estimators that the log was folded with."
                )
        model = None if self.value_model is None else ValueModel((), Encoder((), ()), self.value_model)
        choice = None if self.cap_choice is None else CapChoice.from_dict(self.cap_choice)
        return FoldPlan(settings, tuple(estimators), model, choice)

    def _with_its_cap(self, settings: Settings) -> Settings:
        """A test that leaves the cap to be chosen takes the one that was chosen for these aggregates."""
        if settings.analysis.cap != AUTO or self.cap_choice is None:
            return settings
        return with_cap(settings, self.settings["analysis"]["cap"])

    @property
    def days(self) -> Days:
        """Of several loggers, their rows by day, whose shares these aggregates were folded with."""
        return dict(self.settings["control"].get("shares", {}))

    def refuse_other(self, name: str, other: Recipe, other_name: str) -> None:
        """Refuse to add up what was made with other settings, by the first that differs."""
        difference = _difference(_without_shares(self.settings), _without_shares(other.settings))
        if difference is not None:
            key, mine, theirs = difference
            raise BadInput(
                f"{name} was made {_with(key, mine)}, {other_name} {_with(key, theirs)}: their sums do not add up."
                f" Fold one of the logs again with foretest aggregate{self._one_cap(key, other)}."
            )
        mine, theirs = ([e["label"] for e in r.estimators] for r in (self, other))
        if mine != theirs:
            raise BadInput(
                f"{name} was made with the estimators {', '.join(mine)}, {other_name} with {', '.join(theirs)}:"
                " their sums do not add up. Fold one of the logs again with foretest aggregate."
            )
        for a, b in zip(self.estimators, other.estimators, strict=True):
            if a != b:
                raise BadInput(f"{name} was made with {_an_estimator(a)}, {other_name} with {_an_estimator(b)}.")
        if self.value_model != other.value_model:
            raise BadInput(
                f"{name} was made with another value model V(x) than {other_name}: a cross-fitted one belongs to its"
                " log. Fold both with the same: name a column that holds V (value), a strata column (strata), or one"
                " log that it is fitted on (value_log)."
            )

    def _one_cap(self, key: str, other: Recipe) -> str:
        """What to do about caps that were chosen for each log apart."""
        if key != "cap" or (self.cap_choice is None and other.cap_choice is None):
            return ""
        return f': cap = "auto" chooses for each log apart, so give all of them one, as in cap = {other._cap}'

    @property
    def _cap(self) -> str:
        return _value(self.settings["analysis"]["cap"])

    def refuse_settings(self, name: str, settings: Settings) -> None:
        """Refuse a test whose settings are others than those of the fold, but for what may change."""
        difference = _difference(self.settings, tables_of(_with_shares(self._with_its_cap(settings), self.days)))
        if difference is not None:
            key, mine, theirs = difference
            said = f"the settings say {_value(theirs)}" if theirs is not None else "the settings name none"
            raise BadInput(
                f"{name} was made {_with(key, mine)}, {said}. Of a folded log only {', '.join(FREE[:-1])} and"
                f" {FREE[-1]} can change: fold it again with foretest aggregate, or leave {key} as it was."
            )
        held = [e["label"] for e in self.estimators]
        for item in settings.analysis.estimators or ():
            label = item.label if isinstance(item, Estimator) else item
            if label not in held:
                raise BadInput(
                    f"{name} was made without {label}: it holds {', '.join(held)}. Fold the log again with foretest"
                    " aggregate, or leave it out."
                )


class Recorded(Policy):
    """A policy that is only told of: what an analysis of saved sums needs, and no more."""

    def __init__(self, table: Mapping[str, Any], columns: Sequence[str], can_draw: bool) -> None:
        self._table, self._columns = dict(table), tuple(columns)
        self.can_draw = can_draw

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def settings(self) -> dict[str, Any]:
        return self._table


def days_of_all(files: Sequence[tuple[str, Recipe]]) -> Days:
    """The loggers' rows by day of several files. A day belongs to one of them: its shares are those of all its rows."""
    found: Days = {}
    whose: dict[str, str] = {}
    for name, recipe in files:
        for day, rows in recipe.days.items():
            if day in whose:
                both = f"{whose[day]} and {name}"
                if day == ALL:
                    raise BadInput(
                        f"{both} were folded each with the loggers' shares of its own log, so their sums do not add up."
                        " Fold the logs together, in one foretest aggregate; or name their days in [log] date, so that"
                        " each day has its own shares, and fold them again."
                    )
                raise BadInput(
                    f"{both} both have rows of the day {day}, each with the loggers' shares of its own rows, so their"
                    " sums do not add up. Fold all rows of a day together, in one foretest aggregate."
                )
            found[day], whose[day] = rows, name
    return found


def _with_shares(settings: Settings, days: Days) -> Settings:
    """Of several loggers, the shares that were counted before the fold."""
    control = settings.control
    if not isinstance(control, Pooled):
        return settings
    rows = {(day, code): n for day, counts in days.items() for code, n in enumerate(counts)}
    return dataclasses.replace(settings, control=control.with_shares(shares_of(rows, len(control.names))))


def _without_shares(tables: Tables) -> Tables:
    """Each day's shares are its own: they may be others in every file."""
    return {**tables, "control": {key: value for key, value in tables["control"].items() if key != "shares"}}


def _treatment_roles(names: Sequence[str]) -> dict[str, str]:
    """The table that describes each treatment, by its name: [treatment] where there is one."""
    return {name: f"{TREATMENT} {name}" if len(names) > 1 else TREATMENT for name in names}


def tables_of(settings: Settings) -> Tables:
    """Settings as the tables of a settings file; estimators that are objects by their labels."""
    a = settings.analysis
    analysis = {f.name: getattr(a, f.name) for f in dataclasses.fields(a)}
    if a.estimators is not None:
        analysis["estimators"] = [item.label if isinstance(item, Estimator) else item for item in a.estimators]
    if a.value_log is not None:
        analysis["value_log"] = os.path.abspath(a.value_log)
    log = {f.name: getattr(settings.log, f.name) for f in dataclasses.fields(settings.log)}
    tables = {
        "log": log,
        "control": policy_settings(settings.control),
        **{
            role: policy_settings(settings.treatments[name])
            for name, role in _treatment_roles(list(settings.treatments)).items()
        },
        "analysis": analysis,
        **({"metrics": roles_dict(settings.metrics)} if settings.metrics else {}),
    }
    return {
        name: {key: described(value) for key, value in table.items() if value is not None and value != ()}
        for name, table in tables.items()
    }


def described(value: Any, depth: int = 5) -> Any:
    """A value as JSON: what a settings file can say as it is, arrays and objects by what they hold."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.generic):
        return described(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    kind = type(value)
    name = f"{kind.__module__}:{kind.__qualname__}"
    if depth == 0:
        return name
    if isinstance(value, np.ndarray):
        content = value.tobytes() if value.dtype.kind != "O" else repr(value.tolist()).encode()
        return {"array": digest(content), "dtype": str(value.dtype), "shape": list(value.shape)}
    if isinstance(value, Mapping):
        return {str(key): described(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [described(item, depth - 1) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((described(item, depth - 1) for item in value), key=str)
    if hasattr(value, "__qualname__"):  # a function or a class
        return f"{value.__module__}:{value.__qualname__}"
    if isinstance(value, Policy):
        return described(policy_settings(value), depth - 1)
    if dataclasses.is_dataclass(value):
        held = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    else:
        held = dict(getattr(value, "__dict__", {}))
    return {"class": name, **{key: described(item, depth - 1) for key, item in held.items()}}


def digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def recorded_inputs(source: Any) -> list[dict[str, Any]]:
    """The files of a source: where they are, and what they are known by; none of a table or a stream."""
    return [{"path": str(Path(path).resolve()), "content": fingerprint(Path(path))} for path in source_paths(source)]


def source_paths(source: Any) -> list[Path]:
    return [Path(path) for path in getattr(source, "paths", ())]


def refuse_repeated(inputs: Sequence[tuple[str, list[dict[str, Any]]]]) -> None:
    """Refuse aggregates that share an input file: its rows would count twice."""
    seen: dict[tuple[str, str], str] = {}
    for name, files in inputs:
        for file in files:
            key = file["path"], file["content"]
            if seen.setdefault(key, name) != name:
                raise BadInput(
                    f"{seen[key]} and {name} were both made from {file['path']}, so its rows would count twice. Leave"
                    " one out."
                )


def _told(estimator: Estimator) -> dict[str, Any]:
    cls = ESTIMATORS.get(estimator.key)
    plain = cls is type(estimator) and estimator == cls()
    return {"label": estimator.label, "key": estimator.key, "plain": plain, "what": described(estimator)}


def _an_estimator(told: Mapping[str, Any]) -> str:
    """An estimator with the parameters that were given to it, and its class if it is a user's own."""
    what = told["what"]
    given = {k: v for k, v in what.items() if k not in ("class", "name") and v is not None}
    own = [] if what["class"].startswith("foretest.") else [what["class"]]
    said = ", ".join([*own, *(f"{key} = {_value(value)}" for key, value in given.items())])
    return f"{told['label']} ({said})" if said else str(told["label"])


def _flat(tables: Tables) -> dict[str, Any]:
    """Settings by the name a reader knows them by, without what may change."""
    named: dict[str, Any] = {}
    for table, settings in tables.items():
        if table == "metrics":  # roles are for the reading
            continue
        for key, value in settings.items():
            if table != "analysis":
                named[f"[{table}] {key}"] = value
            elif key not in FREE and key != "estimators":
                named[key] = value
    return named


def _difference(mine: Tables, theirs: Tables) -> tuple[str, Any, Any] | None:
    a, b = _flat(mine), _flat(theirs)
    for key in dict.fromkeys([*a, *b]):
        if a.get(key) != b.get(key):
            return key, a.get(key), b.get(key)
    return None


def first_difference(mine: Tables, theirs: Tables) -> str | None:
    """How settings were other than they are now, in words; None where they are the same.

    >>> first_difference({"analysis": {"buckets": 1024}}, {"analysis": {"buckets": 64}})
    'with buckets = 1024, not with buckets = 64'
    """
    difference = _difference(mine, theirs)
    if difference is None:
        return None
    key, before, now = difference
    return f"{_with(key, before)}, not {_with(key, now)}"


def _with(key: str, value: Any) -> str:
    return f"without {key}" if value is None else f"with {key} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)
