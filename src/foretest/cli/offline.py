"""foretest run, foretest check."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import (
    AUDIT,
    GUARDRAIL,
    VERDICTS,
    AsJson,
    CalibrationFile,
    Engine,
    FailOnAll,
    FailOnAudit,
    Figures,
    Logs,
    MaybeSettingsFile,
    Overrides,
    SettingsFile,
    SqlText,
    Threads,
    log_or_sql,
    refuse_threads,
    verdicts,
)
from foretest.cli.output import audit_met, deliver, print_json, refuse_figures, refuse_place, show
from foretest.errors import BadInput
from foretest.progress import progress_bar
from foretest.settings.analysis import Analysis


@app.command
def run(
    log: Logs = None,
    /,
    *,
    config: MaybeSettingsFile = None,
    sql: SqlText = None,
    engine: Engine = "local",
    out: Annotated[Path | None, Parameter(name=("--out", "-o"), help="Folder for result.json and report.html.")] = None,
    json: AsJson = False,
    figures: Figures = False,
    fail_on: FailOnAll = "",
    calibration: CalibrationFile = None,
    threads: Threads = None,
    analysis: Overrides = None,
) -> int:
    """The offline A/B test: a table on stdout, OUT/result.json, OUT/report.html.

    Takes saved aggregates too, which know their settings.
    Example: foretest run logs/*.parquet -c test.toml -o out --fail-on negative
    """
    wanted = verdicts(fail_on, (*VERDICTS, AUDIT, GUARDRAIL))
    source = log_or_sql("run", log, sql, engine)
    refuse_threads(threads)
    refuse_place(out)
    refuse_figures(figures, out)
    test = configured_test("run", source, config, analysis)
    with progress_bar() as progress:
        result = test.run(source, threads=threads, progress=progress, calibration=calibration)
    return deliver(result, out, json, wanted, figures)


@app.command
def check(
    log: Logs = None,
    /,
    *,
    config: SettingsFile,
    sql: SqlText = None,
    engine: Engine = "local",
    json: AsJson = False,
    fail_on: FailOnAudit = "",
    threads: Threads = None,
    analysis: Overrides = None,
) -> int:
    """Schema, health and propensity audit only: can this log carry the question?

    Every row is read and checked. Example: foretest check logs/*.parquet -c test.toml --fail-on audit
    """
    wanted = verdicts(fail_on, (AUDIT,))
    source = log_or_sql("check", log, sql, engine)
    refuse_threads(threads)
    test = configured_test("check", source, config, analysis)
    with progress_bar() as progress:
        result = test.check(source, threads=threads, progress=progress)
    if json:
        document = result.to_dict()
        print_json({key: value for key, value in document.items() if key not in ("metrics", "provenance")})
    else:
        show(result, False)
        print("\nEvery row is readable, and the columns fit the settings.")
    return 3 if audit_met(result, wanted) else 0


def configured_test(command: str, log: Any, config: Path | None, overrides: Any) -> Any:
    """The test of a settings file, or the one that saved aggregates were made for, with the options given beside it."""
    from foretest.aggregation.choose_estimators import choose_estimators
    from foretest.offline.test import OfflineTest
    from foretest.sources import open_source
    from foretest.storage.saved.files import saved_files

    if config is not None:
        test = OfflineTest.from_toml(config)
    elif saved_files(open_source(log)):
        test = OfflineTest.from_aggregates(log)
    else:
        raise BadInput(f"{command} needs --config or -c: The settings file (TOML). See foretest {command} --help.")
    given = {
        f.name: getattr(overrides, f.name) for f in fields(Analysis) if getattr(overrides, f.name, None) is not None
    }
    try:
        test = test.replace(**given)
    except BadInput as error:
        raise BadInput(f"on the command line: {error}") from None
    try:
        choose_estimators(test.settings)
    except BadInput as error:
        raise BadInput(f"{config}: {error}" if config is not None else str(error)) from None
    return test
