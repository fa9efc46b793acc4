"""Offline against online over a history of A/B tests: each from its two logs, then how well they agreed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from foretest.aggregation.choose_estimators import choose_estimators
from foretest.calibration.file import settings_of
from foretest.errors import BadInput
from foretest.formatting import some_of
from foretest.history.agreement_result import Agreement
from foretest.history.cache import cached_file, read_cached, write_cached
from foretest.history.learn import calibrate
from foretest.history.manifest import Entry, Manifest, read_manifest
from foretest.history.measure import measure
from foretest.history.measure_results import by_name, measure_log_and_results, measure_results, results_by_name
from foretest.history.offline_result import OfflineResult, read_offline_result
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

    Results that the manifest gives instead of logs are taken as they are. A test that fails is reported by name and
    the rest go on; if none works, the first failure is raised.

    Parameters
    ----------
    manifest: the path of a manifest (TOML).
    analysis: other values for keys of the settings' [analysis], for all tests: estimators as objects, for example.
    cache: a folder; results of tests whose logs and settings are the same, byte for byte, are taken from it.
    threads: threads that read logs; default: all cores.
    progress: called with what is done so far.

    Returns
    -------
    An `Agreement`.

    Raises
    ------
    BadInput: the manifest cannot be read, or no test can be run.

    >>> import foretest as ft
    >>> ft.run_history("no-such-file.toml")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    foretest.errors.BadInput: no-such-file.toml...
    """
    listed, analysis = read_manifest(manifest), analysis or {}
    offline = _checked(listed, manifest)
    outcomes: list[_Outcome] = []
    failures: list[dict[str, str]] = []
    for entry in listed.tests:
        _report(progress, len(listed.tests), 0)
        try:
            if entry.name in offline:
                outcomes.append(_from_results(entry, offline[entry.name]))
            else:
                outcomes.append(_run_test(entry, analysis, None if cache is None else location(cache), threads))
        except BadInput as error:
            failures.append({"name": entry.name, "error": str(error)})
        _report(progress, len(listed.tests), 1)
    if not outcomes:
        first = failures[0]
        raise BadInput(f"{manifest}: no test could be read. The first: test '{first['name']}': {first['error']}")
    levels = {outcome.entry.name: outcome.confidence_level for outcome in outcomes}
    calibrated = calibrate([outcome.test for outcome in outcomes], [outcome.validity for outcome in outcomes])
    return Agreement(
        tests=[test.to_dict() for test in calibrated.tests],
        failures=failures,
        tables=agreement_tables(calibrated.tests, listed.truth, levels),
        reused=sum(outcome.reused for outcome in outcomes),
        confidence_level=_common_level(list(levels.values())),
        settings=_settings_by_file(outcomes),
        provenance=_provenance([outcome.entry for outcome in outcomes], manifest, listed.results),
        calibration=calibrated.calibration,
        calibration_details=calibrated.details,
        notes=_notes(calibrated.tests),
    )


def _checked(listed: Manifest, manifest: str | Location) -> dict[str, OfflineResult]:
    """The offline results that tests name, by test; what is wrong with results is refused before a log is read."""
    offline = {}
    for entry in listed.tests:
        try:
            if entry.offline is not None:
                offline[entry.name] = result = read_offline_result(entry.offline)
                metrics = list(result.metrics)
                by_name(entry.online or {}, metrics, metrics, str(entry.offline))
            elif entry.online is not None:
                settings = _settings_or_none(entry)
                if settings is not None:
                    results_by_name(entry.online, settings)
        except BadInput as error:
            raise BadInput(f"{manifest}: test '{entry.name}': {error}") from None
    return offline


def _report(progress: Progress | None, tests: int, done: int) -> None:
    if progress is not None:
        progress("tests", tests, done)


def _settings_or_none(entry: Entry) -> Settings | None:
    """A test's settings; None where they cannot be read, so that the test fails by its name."""
    try:
        return settings_of_test(entry, {})
    except BadInput:
        return None


class _Outcome(NamedTuple):
    """A test that could be read."""

    entry: Entry
    test: PastTest
    confidence_level: float
    validity: dict[str, Any]  # the settings that a calibration depends on
    reused: bool  # the cache had its measurement
    settings: dict[str, Any] | None = None  # as the result file has them, where there is one


def _from_results(entry: Entry, offline: OfflineResult) -> _Outcome:
    """A test of which both sides are results."""
    assert entry.online is not None
    measurement = measure_results(offline, entry.online, entry.shared_units)
    past = PastTest.of(entry, Measurement.from_dict(measurement.to_dict()))
    return _Outcome(entry, past, offline.confidence_level, offline.validity, False, offline.settings)


def _run_test(entry: Entry, analysis: Mapping[str, Any], cache: Location | None, threads: int | None) -> _Outcome:
    """Measure a test, or read its measurement from the cache."""
    settings = settings_of_test(entry, analysis)
    level, validity = settings.analysis.confidence_level, settings_of(settings)
    place = None if cache is None else cached_file(cache, entry, settings)
    known = None if place is None else read_cached(place)
    if known is not None:
        return _Outcome(entry, PastTest.of(entry, known), level, validity, True)
    measurement = _measured(entry, settings, threads)
    if place is not None:
        write_cached(place, measurement)
    as_cached = Measurement.from_dict(measurement.to_dict())
    return _Outcome(entry, PastTest.of(entry, as_cached), level, validity, False)


def _measured(entry: Entry, settings: Settings, threads: int | None) -> Measurement:
    assert entry.control is not None
    if entry.online is not None:
        return measure_log_and_results(str(entry.control), entry.online, entry.shared_units, settings, threads)
    assert entry.treatment is not None
    return measure(entry.control, entry.treatment, settings, threads)


def settings_of_test(entry: Entry, analysis: Mapping[str, Any]) -> Settings:
    """A test's settings, without segments: agreement is about whole tests."""
    assert entry.settings is not None
    settings = read_settings(entry.settings)
    if len(settings.treatments) > 1:
        raise BadInput(
            f"{entry.settings} names several treatments, and a test of a history has one: give each test settings of"
            " its own, with one [treatment]."
        )
    return replace(settings, analysis=settings.analysis.replace(**analysis), log=replace(settings.log, segments=()))


def _common_level(levels: Sequence[float]) -> float | None:
    """The confidence level of all tests; None where they differ."""
    return levels[0] if len(set(levels)) == 1 else None


def _settings_by_file(outcomes: Sequence[_Outcome]) -> dict[str, dict[str, Any]]:
    """The settings of each file that the tests name, with defaults filled in, for agreement.json; of a test without a
    log those that its result file has."""
    by_file: dict[str, dict[str, Any]] = {}
    documents: dict[Location, dict[str, Any]] = {}
    for outcome in outcomes:
        entry = outcome.entry
        if outcome.settings is not None and entry.offline is not None:
            documents[entry.offline] = outcome.settings
        elif entry.settings is not None and entry.settings not in documents:
            settings = read_settings(entry.settings)
            documents[entry.settings] = settings_dict(settings, choose_estimators(settings)[0]) | {
                "online": online_dict(settings.online)
            }
    for path, document in documents.items():
        by_file[path.name if path.name not in by_file else f"{path.parent.name}/{path.name}"] = document
    return by_file


def _provenance(entries: Sequence[Entry], manifest: str | Location, results: Location | None) -> dict[str, Any]:
    logs = [
        path
        for entry in entries
        for log in (entry.control, entry.treatment)
        if log is not None
        for path in files_of(str(log))
    ]
    files = {
        "manifest": [location(manifest)],
        "logs": logs,
        "results": [*([] if results is None else [results]), *(e.offline for e in entries if e.offline is not None)],
    }
    return {"versions": versions(), "inputs": {role: files_read(paths) for role, paths in files.items() if paths}}


def _notes(tests: Sequence[PastTest]) -> list[str]:
    """The notes of all tests, each once, with the names of the tests that it is about."""
    names: dict[str, list[str]] = {}
    for test in tests:
        for note in test.notes:
            names.setdefault(note, []).append(test.name)
    return [f"{some_of(of_note, 3)}: {note}" for note, of_note in names.items()]
