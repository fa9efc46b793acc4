"""foretest run, foretest check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.exit_codes import exit_code
from foretest.cli.options import (
    AUDIT,
    GUARDRAIL,
    LEANS_NEGATIVE,
    NO_SETTINGS,
    NO_WINNER,
    UNVERIFIED,
    VERDICTS,
    AsJson,
    AsMarkdown,
    CalibrationFile,
    Engine,
    FailOnAll,
    FailOnAudit,
    Figures,
    Logs,
    MaybeSettingsFile,
    NoReport,
    Overrides,
    Quiet,
    SqlText,
    Threads,
    Vectors,
    analysis_overrides,
    fail_conditions,
    log_source,
    plain,
    prepare_threads,
)
from foretest.cli.output import (
    check_figures_folder,
    check_output_folder,
    check_report,
    deliver,
    output_form,
    output_place,
    print_json,
    show_result,
)
from foretest.cli.vectors import check_vectors_file
from foretest.errors import BadInput
from foretest.progress import progress_bar

if TYPE_CHECKING:
    from foretest.results.audit import Audit


@app.command
def run(
    log: Logs = None,
    /,
    *,
    config: MaybeSettingsFile = None,
    sql: SqlText = None,
    engine: Engine = "local",
    out: Annotated[str | None, Parameter(name=("--out", "-o"), help="Folder for result.json and report.html.")] = None,
    json: AsJson = False,
    markdown: AsMarkdown = False,
    figures: Figures = False,
    no_report: NoReport = False,
    fail_on: FailOnAll = "",
    calibration: CalibrationFile = None,
    threads: Threads = None,
    quiet: Quiet = False,
    analysis: Overrides = None,
) -> int:
    """Run an offline A/B test: prints a table, and writes result.json and report.html with -o.

    LOG may also be files that foretest aggregate wrote; they contain their settings.
    Example: foretest run logs/*.parquet -c test.toml -o out --fail-on negative
    """
    conditions = fail_conditions(fail_on, (*VERDICTS, LEANS_NEGATIVE, AUDIT, UNVERIFIED, GUARDRAIL, NO_WINNER))
    form = output_form(json, markdown)
    source = log_source("run", log, sql, config, engine)
    prepare_threads(threads)
    place = output_place(out)
    check_output_folder(place)
    check_figures_folder(figures, place)
    check_report(no_report, place)
    test = configured_test("run", source, config, analysis)
    with progress_bar(quiet=quiet) as progress:
        result = test.run(source, threads=threads, progress=progress, calibration=calibration)
    return deliver(result, place, form, conditions, figures=figures, page=not no_report)


@app.command
def check(
    log: Logs = None,
    /,
    *,
    config: MaybeSettingsFile = None,
    sql: SqlText = None,
    engine: Engine = "local",
    json: AsJson = False,
    vectors: Vectors = None,
    fail_on: FailOnAudit = "",
    threads: Threads = None,
    quiet: Quiet = False,
    analysis: Overrides = None,
) -> int:
    """Check a log without estimating anything: its columns, its health, and the propensity audit.

    Reads every row.
    Example: foretest check logs/*.parquet -c test.toml --fail-on audit
    """
    if vectors is not None:
        options: dict[str, Any] = {
            "LOG": log,
            "--config": config,
            "--sql": sql,
            "--engine": engine != "local",
            "--fail-on": fail_on,
        }
        options |= {"--threads": threads} | {f"--{key.replace('_', '-')}": True for key in analysis_overrides(analysis)}
        return check_vectors_file(vectors, options, as_json=json)
    if config is None:
        raise BadInput(NO_SETTINGS.format("check"))
    conditions = fail_conditions(fail_on, (AUDIT, UNVERIFIED))
    source = log_source("check", log, sql, config, engine)
    prepare_threads(threads)
    test = configured_test("check", source, config, analysis)
    with progress_bar(quiet=quiet) as progress:
        result = test.check(source, threads=threads, progress=progress)
    if json:
        document = result.to_dict()
        print_json({key: value for key, value in document.items() if key not in ("metrics", "provenance")})
    else:
        show_result(result)
        print(f"\n{_last_words(result.audit)}")
    return exit_code(result, conditions)


def _last_words(audit: Audit | None) -> str:
    """What `check` ends with: no all-clear after an audit that failed."""
    if audit is None or audit.outcome != "fail":
        return "Every row is readable, and the columns fit the settings."
    so = "ignore_audit = true lets verdicts stand" if audit.ignored else "do not use results until it passes"
    return f"Every row is readable, but the propensity audit FAILED: {so}."


def configured_test(command: str, log: Any, config: str | None, overrides: Any) -> Any:
    """The test of the settings file, or the one that saved aggregates belong to, with the options of the command."""
    from foretest.offline.test import OfflineTest
    from foretest.sources import open_source
    from foretest.storage.saved.files import saved_files

    if config is not None:
        test = OfflineTest.from_toml(config)
    elif saved_files(open_source(log)):
        test = OfflineTest.from_aggregates(log)
    else:
        raise BadInput(NO_SETTINGS.format(command))
    try:
        test = test.replace(**analysis_overrides(overrides))
    except BadInput as error:
        raise BadInput(f"on the command line: {error}") from None
    try:
        _ = test._chosen
    except BadInput as error:
        raise BadInput(f"{plain(config)}: {error}" if config is not None else str(error)) from None
    return test
