"""Settings, estimators and any other values as JSON, for the files that say what their sums were made with."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from foretest.estimators import ESTIMATORS, Estimator
from foretest.policies.base import Policy, class_path
from foretest.settings.changed_fields import changed_fields
from foretest.settings.metric_roles import roles_dict
from foretest.settings.settings import TREATMENT, Settings
from foretest.stores import is_address

Tables = dict[str, dict[str, Any]]  # the tables of a settings file


class EstimatorRecord(TypedDict):
    """An estimator as a file records it."""

    label: str
    key: str
    plain: bool  # is it the built-in one with no parameter changed?
    what: Any  # its class and parameters


class PolicyRecord(TypedDict):
    """What an analysis of saved sums needs to know of a policy, beside its table in the settings."""

    columns: list[str]
    can_draw: bool


def estimator_record(estimator: Estimator) -> EstimatorRecord:
    """How a file records an estimator: two are the same if their records are."""
    cls = ESTIMATORS.get(estimator.key)
    plain = cls is type(estimator) and estimator == cls()
    return {"label": estimator.label, "key": estimator.key, "plain": plain, "what": described(estimator)}


def policy_record(policy: Policy) -> PolicyRecord:
    return {"columns": list(policy.columns), "can_draw": bool(policy.can_draw)}


def treatment_roles(names: Sequence[str]) -> dict[str, str]:
    """The name of the table that describes each treatment, by the treatment's name.

    >>> treatment_roles(["bold"]), treatment_roles(["bold", "shy"])
    ({'bold': 'treatment'}, {'bold': 'treatment bold', 'shy': 'treatment shy'})
    """
    return {name: f"{TREATMENT} {name}" if len(names) > 1 else TREATMENT for name in names}


def tables_of(settings: Settings) -> Tables:
    """Settings as the tables of a settings file; estimators that are objects by their labels."""
    a = settings.analysis
    analysis = {f.name: getattr(a, f.name) for f in dataclasses.fields(a)}
    if a.estimators is not None:
        analysis["estimators"] = [item.label if isinstance(item, Estimator) else item for item in a.estimators]
    if a.value_log is not None:
        analysis["value_log"] = a.value_log if is_address(a.value_log) else os.path.abspath(a.value_log)
    tables = {
        "log": changed_fields(settings.log),
        "control": settings.control.settings(),
        **{
            role: settings.treatments[name].settings()
            for name, role in treatment_roles(list(settings.treatments)).items()
        },
        "analysis": analysis,
        **({"metrics": roles_dict(settings.metrics)} if settings.metrics else {}),
    }
    return {
        name: {key: described(value) for key, value in table.items() if value is not None and value != ()}
        for name, table in tables.items()
    }


def described(value: Any, depth: int = 5) -> Any:
    """A value as JSON: numbers, text, lists and tables as they are, arrays by a hash, objects by class and attributes.

    >>> from pathlib import Path
    >>> described({"cap": 2.0, "where": Path("a.parquet"), "limits": (0, float("inf"))})
    {'cap': 2.0, 'where': 'a.parquet', 'limits': [0, 'inf']}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.generic):
        return described(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if depth == 0:
        return class_path(value)
    if isinstance(value, np.ndarray):
        content = value.tobytes() if value.dtype.kind != "O" else repr(value.tolist()).encode()
        return {"array": digest(content), "dtype": str(value.dtype), "shape": list(value.shape)}
    if isinstance(value, Mapping):
        return {str(key): described(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [described(item, depth - 1) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((described(item, depth - 1) for item in value), key=str)
    return _described_object(value, depth)


def _described_object(value: Any, depth: int) -> Any:
    """A function or a class by its path, a policy by its settings, any other object by its class and attributes."""
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}:{value.__qualname__}"
    if isinstance(value, Policy):
        return described(value.settings(), depth - 1)
    if dataclasses.is_dataclass(value):
        attributes = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    else:
        attributes = dict(getattr(value, "__dict__", {}))
    return {"class": class_path(value), **{key: described(item, depth - 1) for key, item in attributes.items()}}


def digest(content: bytes) -> str:
    """BLAKE2b of some bytes, as 32 hexadecimal digits."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
