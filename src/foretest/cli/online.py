"""foretest online."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import (
    GUARDRAIL,
    VERDICTS,
    AsJson,
    AsMarkdown,
    FailOn,
    OnlineOptions,
    OnlineOverrides,
    Quiet,
    SettingsFile,
    Threads,
    check_threads,
    fail_conditions,
)
from foretest.cli.output import check_output_folder, deliver, output_form
from foretest.errors import BadInput
from foretest.progress import progress_bar


@app.command
def online(
    control: Annotated[Path, Parameter(help="The control's log: a file, folder or quoted glob.")],
    treatment: Annotated[Path, Parameter(help="The treatment's log: a file, folder or quoted glob.")],
    /,
    *,
    config: SettingsFile,
    out: Annotated[Path | None, Parameter(name=("--out", "-o"), help="Folder for result.json and report.html.")] = None,
    json: AsJson = False,
    markdown: AsMarkdown = False,
    fail_on: FailOn = "",
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
    check_threads(threads)
    check_output_folder(out)
    test = OnlineTest.from_toml(config)
    given = {name: value for name, value in vars(analysis or OnlineOptions()).items() if value is not None}
    try:
        test = test.replace(**given)
    except BadInput as error:
        raise BadInput(f"on the command line: {error}") from None
    with progress_bar(quiet=quiet) as progress:
        result = test.run(str(control), str(treatment), threads=threads, progress=progress)
    return deliver(result, out, form, conditions)
