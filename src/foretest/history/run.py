"""Offline against online over a history of A/B tests: each from its two logs, then how well they agreed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from foretest._version import __version__
from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import choose_estimators
from foretest.calibration.file import Calibration
from foretest.calibration.fit import CALIBRATED
from foretest.calibration.learn import calibrate, unsupported_record
from foretest.displays.batch import Floats
from foretest.errors import BadInput
from foretest.estimators import HEADLINES
from foretest.files import html_text, json_ready, json_text, write_whole
from foretest.history.agreement import DECISIONS, Pairs, figures
from foretest.history.manifest import Entry, Manifest, read_manifest
from foretest.history.recommendation import recommend
from foretest.inference.buckets import bucket_sums
from foretest.inference.uplift import relative_uplift
from foretest.offline.result_facts import settings_dict
from foretest.offline.test import OfflineTest
from foretest.online.arms import Arms
from foretest.online.test import KEY, OnlineTest, control_counts, replicates, treatment_counts
from foretest.provenance import files_read, public, versions
from foretest.results.audit import FAIL
from foretest.settings.file import read_settings
from foretest.settings.settings import Settings
from foretest.sources import LogFiles, open_source
from foretest.sources.inputs import files_of

SCHEMA = 1
_CACHE = "history-5"  # what is kept of a test; another layout has another name

Progress = Callable[[str, int | None, int], None]


@dataclass(frozen=True)
class Agreement:
    """The outcome of a history: every test offline and online, and for each metric the table of agreement."""

    tests: list[dict[str, Any]]  # name, audit, and by metric online, offline and their noise
    failures: list[dict[str, str]]  # tests that could not be read, and why
    tables: dict[str, dict[str, dict[str, float | None]]]  # metric, estimator, figure
    reused: int = 0  # tests whose result was there already
    confidence_level: float | None = None  # of the intervals, where all tests have one
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)  # by the name of the settings file
    provenance: dict[str, Any] = field(default_factory=dict)  # versions, fingerprints, the command
    calibration: Calibration | None = None  # what the tests say of unsupported parts
    calibration_details: dict[str, dict[str, Any]] = field(default_factory=dict)  # by metric and estimator

    def to_dict(self) -> dict[str, Any]:
        """The content of agreement.json; the top level is the first metric's."""
        first = next(iter(self.tables), None)
        document: dict[str, Any] = json_ready(
            {
                "foretest": __version__,
                "schema": SCHEMA,
                "confidence_level": self.confidence_level,
                "tests": [_entry_of(test, first) for test in self.tests],
                "table": self.tables[first] if first is not None else {},
                "calibration": self.calibration_details.get(first or "", {}),
                "recommendation": self.recommendation(first),
                "metrics": {
                    name: {
                        "tests": [_entry_of(test, name) for test in self.tests],
                        "table": table,
                        "calibration": self.calibration_details.get(name, {}),
                        "recommendation": self.recommendation(name),
                    }
                    for name, table in self.tables.items()
                },
                "failures": [{name: public(text) for name, text in failure.items()} for failure in self.failures],
                "settings": self.settings,
                "provenance": self.provenance,
            }
        )
        return document

    def recommendation(self, metric: str | None) -> dict[str, Any] | None:
        """Which estimator, and which bound on its weights, came closest to online."""
        parts = [test["metrics"][metric] for test in self.tests if metric in test["metrics"]]
        headline = next((key for key in HEADLINES if key in self.tables.get(metric or "", {})), None)
        fits = self.calibration_details.get(metric or "", {}).values()
        return recommend(parts, headline, [fit["estimator"] for fit in fits if not fit["used"]])

    @property
    def failed_audits(self) -> list[str]:
        """The tests whose log the propensity audit fails."""
        return [test["name"] for test in self.tests if (test.get("audit") or {}).get("outcome") == FAIL]

    def to_json(self, path: str | Path | None = None) -> str:
        """JSON text; with a path it is also written there, whole or not at all."""
        return json_text(self.to_dict(), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """One self-contained page; with a path it is also written there, whole or not at all."""
        from foretest.report.history_page import history_page

        return html_text(history_page(self), path)

    def _repr_html_(self) -> str:
        from foretest.report.notebook import agreement_html

        return agreement_html(self)

    def figures(self) -> dict[str, dict[str, Any]]:
        """Vega-Lite specifications by name: `correlation`, for each estimator `decisions-…`, and for each that is
        calibrated `calibration-…` and `gamma-…`; those of metrics other than the first end in the metric's name."""
        from foretest.report.figures import agreement_figures

        return agreement_figures(self.to_dict())

    def __str__(self) -> str:
        from foretest.terminal.result import render_agreement

        return render_agreement(self)

    __repr__ = __str__


def run_history(
    manifest: str | Path,
    *,
    analysis: Mapping[str, Any] | None = None,
    cache: str | Path | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Agreement:
    """Every test of a manifest: offline from the control's log alone, online from both; then the agreement.

    `analysis` has other values for keys of the settings' [analysis], for all tests: estimators as objects, for one.
    With a `cache` folder, results of tests whose logs and settings are the same, byte for byte, are reused. A test that
    fails is reported by name and the rest go on; if none works, the first failure is raised.
    """
    listed = read_manifest(manifest)
    tests, failures, reused = [], [], 0
    for entry in listed.tests:
        if progress is not None:
            progress("tests", len(listed.tests), 0)
        try:
            outcome, known = _outcome(entry, analysis or {}, None if cache is None else Path(cache), threads)
            tests.append(outcome)
            reused += known
        except BadInput as error:
            failures.append({"name": entry.name, "error": str(error)})
        if progress is not None:
            progress("tests", len(listed.tests), 1)
    if not tests:
        first = failures[0]
        raise BadInput(f"{manifest}: no test could be read. The first: test '{first['name']}': {first['error']}")
    levels = {read_settings(entry.settings).analysis.confidence_level for entry in listed.tests}
    level = levels.pop() if len(levels) == 1 else None
    worked = [entry for entry in listed.tests if entry.name in {test["name"] for test in tests}]
    tests, calibration, details = calibrate(tests, [_settings_with(entry, analysis or {}) for entry in worked])
    return Agreement(
        tests, failures, agreement_tables(tests, listed), reused, level, _settings_of(worked),
        _provenance(worked, manifest), calibration, details,
    )  # fmt: skip


def _settings_with(entry: Entry, analysis: Mapping[str, Any]) -> Settings:
    """A test's settings, without segments: agreement is about whole tests."""
    settings = read_settings(entry.settings)
    if len(settings.treatments) > 1:
        raise BadInput(
            f"{entry.settings} names several treatments, and a test of a history has one: give each test settings of"
            " its own, with one [treatment]."
        )
    if settings.log.logger is not None:
        raise BadInput(
            f"{entry.settings} names several [[control]] tables, and a test of a history compares the treatment with"
            " one control, online and offline: give it settings with one [control]."
        )
    return replace(settings, analysis=settings.analysis.replace(**analysis), log=replace(settings.log, segments=()))


def _settings_of(entries: list[Entry]) -> dict[str, dict[str, Any]]:
    """The settings of each file that the tests name, with defaults filled in."""
    found = {}
    for path in dict.fromkeys(entry.settings for entry in entries):
        settings = read_settings(path)
        name = path.name if path.name not in found else f"{path.parent.name}/{path.name}"
        found[name] = settings_dict(settings, choose_estimators(settings)[0]) | {
            "online": {"split": list(settings.online.split)}
        }
    return found


def _provenance(entries: list[Entry], manifest: str | Path) -> dict[str, Any]:
    logs = [path for entry in entries for log in (entry.control, entry.treatment) for path in files_of(str(log))]
    inputs = {"manifest": files_read([Path(manifest)])} | ({"logs": files_read(logs)} if logs else {})
    return {"versions": versions(), "inputs": inputs}


def agreement_tables(tests: list[dict[str, Any]], manifest: Manifest) -> dict[str, dict[str, dict[str, float | None]]]:
    """The figures of each metric and estimator, over the tests that have both; the truth is the first metric's."""
    tables: dict[str, dict[str, dict[str, float | None]]] = {}
    metrics = list(dict.fromkeys(metric for test in tests for metric in test["metrics"]))
    for metric in metrics:
        having = [test for test in tests if metric in test["metrics"]]
        labels = list(dict.fromkeys(label for test in having for label in test["metrics"][metric]["offline"]))
        truth = manifest.truth if metric == metrics[0] else {}
        tables[metric] = {}
        for label in labels:
            pairs, count = _pairs(having, metric, label, truth)
            tables[metric][label] = {"tests": count, **figures(pairs)}
    return tables


def _pairs(tests: list[dict[str, Any]], metric: str, label: str, truth: dict[str, float]) -> tuple[Pairs, int]:
    rows = []
    for test in tests:
        part = test["metrics"][metric]
        offline, online, noise = part["offline"].get(label), part["online"], part["noise"].get(label)
        if offline is None or offline["rel_effect_size"] is None or online["rel_effect_size"] is None:
            continue
        cis = part["offline"].get("cis", {})
        rows.append((
            offline["rel_effect_size"], online["rel_effect_size"],
            noise["offline_error"], noise["online_error"], noise["covariance"],
            offline["rel_effect_size_ci_lower"], offline["rel_effect_size_ci_upper"],
            DECISIONS[offline["verdict"]], DECISIONS[online["verdict"]],
            _width(cis), truth.get(test["name"]),
        ))  # fmt: skip
    columns = np.array([[np.nan if v is None else v for v in row] for row in rows], dtype=np.float64).reshape(-1, 11).T
    x, y, x_error, y_error, covariance, lower, upper, offline_d, online_d, cis_width, known = columns
    decided = offline_d.astype(np.int64), online_d.astype(np.int64)
    return Pairs(x, y, x_error, y_error, covariance, lower, upper, *decided, cis_width, known), len(rows)


def _width(estimate: dict[str, Any]) -> float | None:
    lower, upper = estimate.get("rel_effect_size_ci_lower"), estimate.get("rel_effect_size_ci_upper")
    return None if lower is None or upper is None else upper - lower


def _entry_of(test: dict[str, Any], metric: str | None) -> dict[str, Any]:
    nothing: dict[str, Any] = {"online": None, "offline": {}, "noise": {}, "unsupported": {}, "bounds": None}
    part = test["metrics"].get(metric, nothing)
    return {"name": test["name"], "date": test.get("date"), "audit": test.get("audit"), **part}


def _outcome(
    entry: Entry, analysis: Mapping[str, Any], cache: Path | None, threads: int | None
) -> tuple[dict[str, Any], bool]:
    """A test's results, from the cache where its content is known; was it?"""
    settings = _settings_with(entry, analysis)
    place = None if cache is None else cache / f"{_content_key(entry, settings.analysis.value_log, analysis)}.json"
    if place is not None and place.exists():
        try:
            known = json.loads(place.read_text(encoding="utf-8"))
            return _dated(entry, {name: known[name] for name in ("metrics", "audit", "days")}), True
        except (ValueError, KeyError):
            pass  # cut short by a full disk or a kill: found again below
    found = json_ready(_both(OfflineTest.from_settings(settings), OnlineTest.from_settings(settings), entry, threads))
    if place is not None:
        write_whole(place, json.dumps({"name": entry.name, **found}, allow_nan=False))
    return _dated(entry, found), False


def _dated(entry: Entry, found: dict[str, Any]) -> dict[str, Any]:
    """A test with the day it began, as the manifest says or the logs show, and the last day of its logs."""
    first, last = (found["days"][0], found["days"][-1]) if found["days"] else (None, None)
    dates = {"date": entry.date or first, "last_date": last}
    return {"name": entry.name, **dates, "metrics": found["metrics"], "audit": found["audit"]}


def _both(offline: OfflineTest, online: OnlineTest, entry: Entry, threads: int | None) -> dict[str, Any]:
    """Offline from the control's log, online from both, the noise they share, the audit of that log, and the days."""
    aggregates, notes, r_max = offline.aggregate(str(entry.control), threads=threads)
    before = offline.analyse(aggregates, notes, r_max)
    arms = online.arms(str(entry.control), str(entry.treatment), threads=threads)
    after = online.analyse(arms)
    analysis = offline.settings.analysis
    counts = control_counts(analysis), treatment_counts(analysis)
    found = {}
    for m, name in enumerate(offline.settings.log.rewards):
        if int(aggregates.positives[m]) == 0 or int(arms.treatment.positives[m]) == 0:
            raise BadInput(f"no row of {'the control' if int(aggregates.positives[m]) == 0 else 'the treatment'} has"
                           f" a reward in '{name}': there is no uplift to compare.")  # fmt: skip
        found[name] = {
            "online": asdict(after.metrics[name].estimates[KEY]),
            "offline": {label: asdict(estimate) for label, estimate in before.metrics[name].estimates.items()},
            "noise": _noise(aggregates, arms, m, counts),
            "unsupported": _unsupported(aggregates, arms, m, counts),
            "bounds": _along_bounds(before.metrics[name].cap_path),
        }
    days = sorted({day for arm in arms for day in arm.rows_by_day if _is_day(day)})
    audited = None if before.audit is None else before.audit.outcomes()
    return {"metrics": found, "audit": audited, "days": [days[0], days[-1]] if days else []}


def _along_bounds(path: dict[str, Any] | None) -> dict[str, Any] | None:
    """Offline uplifts along the bound on the adaptive weights, where the result has them."""
    found = (path or {}).get("point-ncis-adaptive")
    if path is None or found is None:
        return None
    return {"weight_bound": path["weight_bound"], **{name: found[name] for name in ("bounds", "rel_effect_size")}}


def _is_day(label: str) -> bool:
    try:
        return bool(date.fromisoformat(label))
    except ValueError:
        return False


def _unsupported(aggregates: Aggregates, arms: Arms, metric: int, counts: tuple[Floats, Floats]) -> dict[str, Any]:
    """What the calibration needs of each estimator that has one."""
    _, after = replicates(arms, metric, *counts)
    return {
        estimator.label: unsupported_record(aggregates, estimator, metric, counts[0], after)
        for estimator in aggregates.plan.estimators
        if estimator.label in CALIBRATED and aggregates.plan.weighs(estimator, metric)
    }


def _noise(aggregates: Aggregates, arms: Arms, metric: int, counts: tuple[Floats, Floats]) -> dict[str, Any]:
    """Standard errors of both relative uplifts and their covariance: the control's log is resampled once for both."""
    _, after = replicates(arms, metric, *counts)
    noise = {}
    for estimator in aggregates.plan.estimators:
        resampled = bucket_sums(aggregates, estimator, metric).resampled(counts[0])
        before = np.where(resampled.r > 0, relative_uplift(estimator.value, resampled), np.nan)
        both = np.isfinite(before) & np.isfinite(after)
        spread = np.cov(before[both], after[both]) if both.sum() > 1 else np.full((2, 2), np.nan)
        noise[estimator.label] = {
            "offline_error": float(np.sqrt(spread[0, 0])),
            "online_error": float(np.sqrt(spread[1, 1])),
            "covariance": float(spread[0, 1]),
        }
    return noise


def _content_key(entry: Entry, value_log: str | None, analysis: Mapping[str, Any]) -> str:
    """A hash of all that a test's results follow from: version, settings, and the bytes of its logs."""
    digest = hashlib.blake2b(f"{_CACHE} {__version__}".encode(), digest_size=20)
    digest.update(entry.settings.read_bytes())
    if analysis:
        digest.update(repr(sorted(analysis.items())).encode())
    for log in (entry.control, entry.treatment, *([] if value_log is None else [value_log])):
        source = open_source(str(log))
        assert isinstance(source, LogFiles)
        digest.update(f"{len(source.paths)} files".encode())
        for path, found in zip(source.paths, source.partitions, strict=True):
            digest.update(repr({key: value.as_py() for key, value in found.items()}).encode())
            with open(path, "rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()
