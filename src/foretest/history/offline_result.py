"""The offline side of a past test from the result.json that foretest run wrote, so that its log need not be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from foretest.calibration.file import validity
from foretest.calibration.fit import CALIBRATED
from foretest.errors import BadInput, is_finite_number
from foretest.files import read_text
from foretest.history.fields import VERDICTS, Damaged, checked, count, number
from foretest.history.records import BoundPath
from foretest.records import dataclass
from foretest.results.range_text import range_of
from foretest.results.result import SCHEMA, Estimate
from foretest.results.uplift_range import Range, leaning
from foretest.settings.analysis import AUTO, DEFAULT_BOUND, Analysis
from foretest.stores import Location

_REMEDY = "run foretest run again, and name the result.json that it writes."
_NUMBERS = (
    "treatment", "std_error", "effect_size", "effect_size_ci_lower", "effect_size_ci_upper", "rel_effect_size",
    "rel_effect_size_ci_lower", "rel_effect_size_ci_upper", "effective_positives", "rel_std_error", "unsupported",
)  # fmt: skip


@dataclass(frozen=True)
class OfflineMetric:
    """One metric of a result."""

    control: float | None
    estimates: dict[str, Estimate]
    bounds: BoundPath | None
    weight_bounds: dict[str, float]  # of the estimators that can be calibrated
    days: list[str]  # the first and the last, where the uplift is known by day
    signed: bool  # may the metric be negative?


class OfflineResult(NamedTuple):
    """What a history takes from a result.json."""

    metrics: dict[str, OfflineMetric]
    audit: dict[str, Any] | None  # the outcomes
    units: int
    rows: int
    confidence_level: float
    settings: dict[str, Any]  # as the file has them
    validity: dict[str, Any]  # those that a calibration depends on


def read_offline_result(path: Location) -> OfflineResult:
    """Read the result of an offline test; what is none, or damaged, or of another version, is refused."""
    text = read_text(path, "result file", f"a result is JSON: {_REMEDY}")
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}: not whole JSON (line {error.lineno}), cut short or damaged: {_REMEDY}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, thousands of brackets
        raise BadInput(f"{path}: no JSON of a result: {_REMEDY}") from None
    _refuse_other(path, document)
    try:
        return _result(document)
    except (Damaged, KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise BadInput(f"{path}: damaged ({what}): {_REMEDY}") from None


def _refuse_other(path: Location, document: Any) -> None:
    """Refuse what is no result of one offline treatment under this schema."""
    if not isinstance(document, Mapping) or "foretest" not in document or "health" not in document:
        raise BadInput(f"{path}: not a result of foretest run: {_REMEDY}")
    if document.get("schema") != SCHEMA:
        raise BadInput(
            f"{path}: written under schema {document.get('schema')}, and this Foretest reads schema {SCHEMA}: {_REMEDY}"
        )
    health = document["health"]
    if isinstance(health, Mapping) and "sample_ratio" in health:
        raise BadInput(
            f"{path}: the result of an online test, and offline is the side of the log: name the result.json of"
            " foretest run, and give the online results in online."
        )
    if document.get("treatments"):
        raise BadInput(
            f"{path}: a result of several treatments, and a test of a history has one: run foretest run with one"
            " [treatment]."
        )
    if not document.get("metrics"):
        raise BadInput(f"{path}: a result without estimates, as of foretest check: {_REMEDY}")


def _result(document: Mapping[str, Any]) -> OfflineResult:
    log, settings = document["log"], document["settings"]
    analysis = settings["analysis"]
    level = _number("settings.analysis.confidence_level", analysis["confidence_level"])
    if level is None or not 0.0 < level < 1.0:
        raise Damaged("settings.analysis.confidence_level is no level")
    given = {key: analysis.get(key, getattr(Analysis(), key)) for key in ("weight_bound", "normaliser", "draws")}
    bounds = {label: _weight_bound(document, label, given["weight_bound"]) for label in CALIBRATED}
    return OfflineResult(
        metrics={
            name: _metric(name, metric, bounds, settings.get("metrics", {}).get(name, {}))
            for name, metric in document["metrics"].items()
        },
        audit=_audit(document.get("audit")),
        units=count("log.units", log["units"]),
        rows=count("log.rows", log["rows"]),
        confidence_level=level,
        settings=dict(settings),
        validity=validity(given, {role: settings[role] for role in ("control", "treatment")}),
    )


def _metric(
    name: str, metric: Mapping[str, Any], bounds: Mapping[str, float], table: Mapping[str, Any]
) -> OfflineMetric:
    estimates = {
        label: _estimate(f"metrics.{name}.estimates.{label}", estimate)
        for label, estimate in metric["estimates"].items()
        if label not in CALIBRATED.values()  # by another history, which may have had this test in it
    }
    days = [day["day"] for day in metric.get("days") or [] if isinstance(day.get("day"), str)]
    return OfflineMetric(
        control=_number(f"metrics.{name}.control.value", metric["control"]["value"]),
        estimates=estimates,
        bounds=_bound_path(metric.get("cap_path")),
        weight_bounds={label: bounds[label] for label in estimates if label in bounds},
        days=[min(days), max(days)] if days else [],
        signed=bool(table.get("signed")) or any(factor < 0.0 for factor in (table.get("sum") or {}).values()),
    )


def _estimate(where: str, document: Mapping[str, Any]) -> Estimate:
    """An estimate; fields that files of earlier versions lack have their defaults."""
    word = {"word": leaning(document["verdict"])} if document["verdict"] in VERDICTS else {}
    given = {**dict.fromkeys(_NUMBERS), **word, **_with_names(Estimate, document)}
    given.pop("adjusted", None)
    if given.get("range") is not None:
        given["range"] = {**dict.fromkeys(_names(Range)), **_with_names(Range, given["range"])}
    estimate: Estimate = checked(Estimate, where, given)
    return Estimate(**{**vars(estimate), "range": range_of(estimate)})


def _names(cls: type) -> list[str]:
    return [one.name for one in fields(cls)]


def _with_names(cls: type, document: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says of the fields that a class has; files of other versions may have others."""
    return {name: value for name, value in document.items() if name in _names(cls)}


def _bound_path(path: Mapping[str, Any] | None) -> BoundPath | None:
    """Offline uplifts along the bound on the adaptive weights, where the result has them."""
    adaptive = (path or {}).get("point-ncis-adaptive")
    if path is None or adaptive is None:
        return None
    return BoundPath(path["weight_bound"], adaptive["bounds"], adaptive["rel_effect_size"])


def _weight_bound(document: Mapping[str, Any], label: str, given: Any) -> float:
    """The bound of an estimator that can be calibrated: its own, or that of the settings."""
    own = document.get("provenance", {}).get("estimators", {}).get(label, {}).get("weight_bound")
    bound = own if own is not None else DEFAULT_BOUND if given == AUTO else given
    if not is_finite_number(bound):
        raise Damaged("settings.analysis.weight_bound is no number")
    return float(bound)


def _audit(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The outcomes of the audit, as agreement.json has them."""
    if document is None:
        return None
    return {
        "outcome": document["outcome"],
        "ignored": bool(document.get("ignored", False)),
        "tests": {finding["name"]: finding["outcome"] for finding in document["findings"]},
    }


def _number(where: str, value: Any) -> float | None:
    return None if value is None else number(where, value)
