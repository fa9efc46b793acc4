"""Offline against online over a history of A/B tests: each from its two logs, then how well they agreed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from foretest.aggregation.choose_estimators import choose_estimators
from foretest.errors import BadInput
from foretest.history.agreement_result import Agreement
from foretest.history.cache import cached_file, read_cached, write_cached
from foretest.history.learn import calibrate
from foretest.history.manifest import Entry, read_manifest
from foretest.history.measure import measure
from foretest.history.records import Measurement, PastTest
from foretest.history.tables import agreement_tables
from foretest.offline.result_facts import settings_dict
from foretest.progress import Progress
from foretest.provenance import files_read, versions
from foretest.settings.file import read_settings
from foretest.settings.online import online_dict
from foretest.settings.settings import Settings
from foretest.sources.inputs import files_of
from foretest.stores import Location, location


def run_history(
    manifest: str | Location,
    *,
    analysis: Mapping[str, Any] | None = None,
    cache: str | Location | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Agreement:
    """Run every test of a manifest, offline from the control's log alone and online from both; then the agreement.

    `analysis` has other values for keys of the settings' [analysis], for all tests: estimators as objects, for example.
    With a `cache` folder, results of tests whose logs and settings are the same, byte for byte, are reused. A test that
    fails is reported by name and the rest go on; if none works, the first failure is raised.
    """
    listed, analysis = read_manifest(manifest), analysis or {}
    outcomes: list[_Outcome] = []
    failures: list[dict[str, str]] = []
    for entry in listed.tests:
        _report(progress, len(listed.tests), 0)
        try:
            outcomes.append(_run_test(entry, analysis, None if cache is None else location(cache), threads))
        except BadInput as error:
            failures.append({"name": entry.name, "error": str(error)})
        _report(progress, len(listed.tests), 1)
    if not outcomes:
        first = failures[0]
        raise BadInput(f"{manifest}: no test could be read. The first: test '{first['name']}': {first['error']}")
    entries = [outcome.entry for outcome in outcomes]
    levels = {outcome.entry.name: outcome.settings.analysis.confidence_level for outcome in outcomes}
    calibrated = calibrate([outcome.test for outcome in outcomes], [outcome.settings for outcome in outcomes])
    return Agreement(
        tests=[test.to_dict() for test in calibrated.tests],
        failures=failures,
        tables=agreement_tables(calibrated.tests, listed.truth, levels),
        reused=sum(outcome.reused for outcome in outcomes),
        confidence_level=_common_level(listed.tests),
        settings=_settings_by_file(entries),
        provenance=_provenance(entries, manifest),
        calibration=calibrated.calibration,
        calibration_details=calibrated.details,
    )


def _report(progress: Progress | None, tests: int, done: int) -> None:
    if progress is not None:
        progress("tests", tests, done)


class _Outcome(NamedTuple):
    """A test that could be read."""

    entry: Entry
    settings: Settings
    test: PastTest
    reused: bool  # the cache had its measurement


def _run_test(entry: Entry, analysis: Mapping[str, Any], cache: Location | None, threads: int | None) -> _Outcome:
    """Measure a test, or read its measurement from the cache."""
    settings = settings_of_test(entry, analysis)
    place = None if cache is None else cached_file(cache, entry, settings.analysis.value_log, analysis)
    known = None if place is None else read_cached(place)
    if known is not None:
        return _Outcome(entry, settings, PastTest.of(entry, known), True)
    measurement = measure(entry, settings, threads)
    if place is not None:
        write_cached(place, entry.name, measurement)
    as_cached = Measurement.from_dict(measurement.to_dict())
    return _Outcome(entry, settings, PastTest.of(entry, as_cached), False)


def settings_of_test(entry: Entry, analysis: Mapping[str, Any]) -> Settings:
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


def _common_level(entries: Sequence[Entry]) -> float | None:
    """The confidence level of all tests; None where they differ."""
    levels = {read_settings(entry.settings).analysis.confidence_level for entry in entries}
    return levels.pop() if len(levels) == 1 else None


def _settings_by_file(entries: Sequence[Entry]) -> dict[str, dict[str, Any]]:
    """The settings of each file that the tests name, with defaults filled in, for agreement.json."""
    by_file: dict[str, dict[str, Any]] = {}
    for path in dict.fromkeys(entry.settings for entry in entries):
        settings = read_settings(path)
        name = path.name if path.name not in by_file else f"{path.parent.name}/{path.name}"
        by_file[name] = settings_dict(settings, choose_estimators(settings)[0]) | {
            "online": online_dict(settings.online)
        }
    return by_file


def _provenance(entries: Sequence[Entry], manifest: str | Location) -> dict[str, Any]:
    logs = [path for entry in entries for log in (entry.control, entry.treatment) for path in files_of(str(log))]
    inputs = {"manifest": files_read([location(manifest)])} | ({"logs": files_read(logs)} if logs else {})
    return {"versions": versions(), "inputs": inputs}
