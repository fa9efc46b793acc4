"""calibration.json: what a history learned, with the settings under which it is valid."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from foretest._version import __version__
from foretest.calibration.fit import LEVEL, Fit
from foretest.errors import BadInput, is_finite_number
from foretest.files import json_ready, json_text, read_text
from foretest.formatting import plural
from foretest.records import dataclass
from foretest.settings.settings import Settings
from foretest.stores import Location, location

SCHEMA = 1
KIND = "calibration"
MOST_SHOWN = 4  # fits in a repr
MOST_TESTS = 10**9  # of a history: more is no count
#: keys of [analysis] on which an uplift and its unsupported term depend
ANALYSIS = ("weight_bound", "normaliser", "draws")


@dataclass(frozen=True)
class Learned:
    """The fit of one metric and estimator; `reason` says why it is not used, None where it is."""

    fit: Fit
    weight_bound: float
    reason: str | None
    first: str | None = None  # days of the first and the last test, where they are known
    last: str | None = None

    @property
    def used(self) -> bool:
        return self.reason is None

    def summary(self) -> str:
        """Γ0 with its interval, as far as they are known, and why it is not used where it is not."""
        gamma, (lower, upper) = self.fit.gamma, self.fit.interval()
        limits = "" if math.isnan(lower) else f" ({lower:.2f} to {upper:.2f})"
        known = "Γ0 unknown" if math.isnan(gamma) else f"Γ0 {gamma:.2f}{limits}"
        return f"{known}, {'used' if self.used else f'not used: {self.reason}'}"

    def to_dict(self) -> dict[str, Any]:
        lower, upper = self.fit.interval()
        fit = self.fit
        document: dict[str, Any] = json_ready(
            {
                "gamma": fit.gamma, "variance": fit.variance, "tau2": fit.tau2, "tests": fit.tests,
                "gamma_ci_lower": lower, "gamma_ci_upper": upper, "ci_level": LEVEL,
                "weight_bound": self.weight_bound, "dates": {"first": self.first, "last": self.last},
                "used": self.used, "reason": self.reason,
            }
        )  # fmt: skip
        return document


@dataclass(frozen=True)
class Calibration:
    """What `foretest history` learned: a fit for each metric and estimator. `OfflineTest.run` takes it, or its file.

    >>> import foretest as ft
    >>> sorted(ft.Calibration(settings={}, metrics={}).to_dict())
    ['foretest', 'kind', 'metrics', 'schema', 'settings', 'tests']
    """

    settings: dict[str, Any]  # those on which an uplift depends, by name; a list where tests differ
    metrics: dict[str, dict[str, Learned]]  # a fit by metric and estimator
    tests: list[dict[str, str | None]] = field(default_factory=list)  # name and day
    name: str = "the calibration"  # in messages: the name of its file

    def __repr__(self) -> str:
        fits = [
            f"{metric} {label}: {learned.summary()}"
            for metric, by_estimator in self.metrics.items()
            for label, learned in by_estimator.items()
        ]
        more = [f"{len(fits) - MOST_SHOWN:,} more"] if len(fits) > MOST_SHOWN else []
        shown = "; ".join([*fits[:MOST_SHOWN], *more]) or "no fit"
        return f"<Calibration of {plural(len(self.tests), 'test')}; {shown}>"

    def to_dict(self) -> dict[str, Any]:
        """The content of calibration.json."""
        document: dict[str, Any] = json_ready(
            {
                "foretest": __version__,
                "schema": SCHEMA,
                "kind": KIND,
                "settings": self.settings,
                "metrics": {
                    metric: {label: learned.to_dict() for label, learned in by_estimator.items()}
                    for metric, by_estimator in self.metrics.items()
                },
                "tests": self.tests,
            }
        )
        return document

    def to_json(self, path: str | Location | None = None) -> str:
        """JSON text; with a path it is also written there, completely or not at all."""
        return json_text(self.to_dict(), path)

    @classmethod
    def read(cls, path: str | Location) -> Calibration:
        """Read a file; refuse what is not a whole calibration of this version."""
        path = location(path)
        text = read_text(path, "calibration file", f"a calibration is JSON: {_REMEDY}")
        try:
            return cls.from_dict(json.loads(text), str(path))
        except json.JSONDecodeError as error:
            raise BadInput(f"{path}: not whole JSON (line {error.lineno}), cut short or damaged: {_REMEDY}") from None
        except BadInput:
            raise
        except (ValueError, RecursionError):  # a number of thousands of digits, thousands of brackets
            raise BadInput(f"{path}: no JSON of a calibration: {_REMEDY}") from None

    @classmethod
    def from_dict(cls, document: Any, name: str = "the calibration") -> Calibration:
        """Build one from the content of calibration.json."""
        if not isinstance(document, Mapping) or document.get("kind") != KIND:
            raise BadInput(f"{name}: not a calibration: {_REMEDY}")
        if document.get("schema") != SCHEMA:
            raise BadInput(
                f"{name}: written in version {document.get('schema')} of the format, and this Foretest"
                f" ({__version__}) reads version {SCHEMA}: {_REMEDY}"
            )
        try:
            metrics = {
                metric: {label: _learned(entry) for label, entry in by_estimator.items()}
                for metric, by_estimator in document["metrics"].items()
            }
            tests = [_table("a test", test) for test in document["tests"]]
            return cls(_table("settings", document["settings"]), metrics, tests, name)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
            raise BadInput(f"{name}: damaged ({what}): {_REMEDY}") from None

    def refuse_other_settings(self, settings: Settings, bounds: Mapping[str, float]) -> None:
        """Refuse a test whose settings are not those of the calibration, and name them; `bounds` are the bounds on the
        weights of its estimators."""
        differences = [*self._other_settings(settings), *self._other_bounds(bounds)]
        if differences:
            raise BadInput(
                f"{self.name}: made with other settings: {'; '.join(dict.fromkeys(differences))}. Run foretest history"
                " with these settings, or leave the calibration out."
            )

    def _other_settings(self, settings: Settings) -> Iterator[str]:
        here = settings_of(settings)
        for key in sorted(set(self.settings) | set(here)):
            was = self.settings.get(key)
            if key != "analysis.weight_bound" and here.get(key) not in (was if isinstance(was, list) else [was]):
                yield f"{key} was {_in_words(was)} and is {_in_words(here.get(key))} here"

    def _other_bounds(self, bounds: Mapping[str, float]) -> Iterator[str]:
        for label, bound in bounds.items():
            fits = [by_estimator[label] for by_estimator in self.metrics.values() if label in by_estimator]
            for was in {learned.weight_bound for learned in fits} - {bound}:
                yield f"analysis.weight_bound was {_in_words(was)} and is {_in_words(bound)} here"


_REMEDY = "write it again with foretest history MANIFEST -o OUT, which makes OUT/calibration.json."


def settings_of(settings: Settings) -> dict[str, Any]:
    """The settings under which a calibration is valid, by name: how weights are bounded and computed, and what the
    policies are. Columns, intervals and resamples are not among them: the worth of an unsupported part does not depend
    on them."""
    analysis = {key: getattr(settings.analysis, key) for key in ANALYSIS}
    return validity(analysis, {role: getattr(settings, role).settings() for role in ("control", "treatment")})


def validity(analysis: Mapping[str, Any], policies: Mapping[str, Any]) -> dict[str, Any]:
    """The same from the keys of [analysis] and the tables of the policies, by role; several loggers may be a list of
    tables with a name each, as result.json has them."""
    values = {f"analysis.{key}": analysis[key] for key in ANALYSIS}
    for role, table in policies.items():
        if isinstance(table, list):
            table = {"policy": "loggers", "loggers": {one["name"]: one for one in table}}
        values |= _policy_numbers(role, table)
    ready: dict[str, Any] = json_ready(values)
    return ready


class CommonSettings(NamedTuple):
    """The settings of several tests, a list of values where they differ."""

    values: dict[str, Any]
    doubt: str | None  # why the tests cannot share a calibration


def common_settings(by_test: Sequence[Mapping[str, Any]]) -> CommonSettings:
    """The settings that decide whether tests can share a calibration, from those of each (`settings_of`)."""
    common: dict[str, Any] = {}
    doubt = None
    for key in dict.fromkeys(key for values in by_test for key in values):
        different = list(dict.fromkeys(values.get(key) for values in by_test))
        common[key] = different[0] if len(different) == 1 else different
        if len(different) > 1 and key.startswith("analysis."):
            doubt = f"the tests differ in {key}: {', '.join(map(_in_words, different))}"
    return CommonSettings(common, doubt)


def _policy_numbers(where: str, table: Any) -> dict[str, Any]:
    """The names of a policy and of its components, and their numbers; not the names of columns, which may differ from
    log to log."""
    if isinstance(table, Mapping):
        pairs: Iterable[tuple[str, Any]] = ((f"{where}.{key}", value) for key, value in table.items())
    elif isinstance(table, list | tuple):
        pairs = ((f"{where}[{k}]", value) for k, value in enumerate(table))
    else:
        is_number = isinstance(table, int | float) and not isinstance(table, bool)
        return {where: table} if is_number or where.endswith(".policy") else {}
    return {name: value for key, item in pairs for name, value in _policy_numbers(key, item).items()}


def _table(name: str, value: Any) -> dict[str, Any]:
    """A table of a file; a list of pairs is none."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is no table")
    return dict(value)


def _learned(entry: Mapping[str, Any]) -> Learned:
    tests, used, reason = entry["tests"], entry["used"], entry["reason"]
    if isinstance(tests, bool) or not isinstance(tests, int) or not 0 <= tests <= MOST_TESTS:
        raise ValueError("tests is no count")
    if not isinstance(used, bool) or not (isinstance(reason, str) or reason is None) or used != (reason is None):
        raise ValueError("used and reason do not fit")
    numbers = {name: _number(name, entry[name], missing=not used) for name in ("gamma", "variance", "tau2")}
    if min(numbers["variance"], numbers["tau2"]) < 0.0:
        raise ValueError("a variance is below 0")
    dates = entry["dates"]
    return Learned(
        Fit(**numbers, tests=tests), _number("weight_bound", entry["weight_bound"]), reason, dates["first"],
        dates["last"],
    )  # fmt: skip


def _number(name: str, value: Any, *, missing: bool = False) -> float:
    if value is None and missing:
        return math.nan
    if not is_finite_number(value):
        raise ValueError(f"{name} is no number")
    return float(value)


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return " or ".join(map(_in_words, value))
    return "nothing" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
