"""foretest online."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import (
    GUARDRAIL,
    VERDICTS,
    AsJson,
    AsMarkdown,
    FailOn,
    NoReport,
    OnlineOptions,
    OnlineOverrides,
    Quiet,
    SettingsFile,
    Threads,
    fail_conditions,
    plain,
    prepare_threads,
)
from foretest.cli.output import check_output_folder, check_report, deliver, output_form, output_place
from foretest.errors import BadInput
from foretest.progress import progress_bar
from foretest.settings.online import SEQUENTIAL_UNITS


@app.command
def online(
    control: Annotated[str, Parameter(help="The control's log: a file, folder or quoted glob.")],
    treatment: Annotated[str, Parameter(help="The treatment's log: a file, folder or quoted glob.")],
    /,
    *,
    config: SettingsFile,
    out: Annotated[str | None, Parameter(name=("--out", "-o"), help="Folder for result.json and report.html.")] = None,
    json: AsJson = False,
    markdown: AsMarkdown = False,
    no_report: NoReport = False,
    fail_on: FailOn = "",
    sequential: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Also give always-valid intervals, which hold however often the test is looked at, and the chance of a"
            " false alarm if the fixed ones are looked at every day.",
        ),
    ] = False,
    sequential_units: Annotated[
        int | None,
        Parameter(
            help="Like --sequential, with intervals that are tightest at this number of units, of both arms; choose it"
            f" before the test. Default: {SEQUENTIAL_UNITS}.",
        ),
    ] = None,
    threads: Threads = None,
    quiet: Quiet = False,
    analysis: OnlineOverrides = None,
) -> int:
    """Analyse an online A/B test from the logs of its two arms.

    Prints a table, and writes result.json and report.html with -o.

    Example: foretest online control.parquet "treatment/*.parquet" -c test.toml -o out
    """
    from foretest.online.test import OnlineTest

    conditions = fail_conditions(fail_on, (*VERDICTS, GUARDRAIL))
    form = output_form(json, markdown)
    prepare_threads(threads)
    place = output_place(out)
    check_output_folder(place)
    check_report(no_report, place)
    test = OnlineTest.from_toml(config)
    given = {name: value for name, value in vars(analysis or OnlineOptions()).items() if value is not None}
    given |= {"sequential": True} if sequential or sequential_units is not None else {}
    given |= {} if sequential_units is None else {"sequential_units": sequential_units}
    try:
        test = test.replace(**given)
    except BadInput as error:
        raise BadInput(f"on the command line: {error}") from None
    with progress_bar(quiet=quiet) as progress:
        result = test.run(plain(control), plain(treatment), threads=threads, progress=progress)
    return deliver(result, place, form, conditions, page=not no_report)
