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
    FailOn,
    OnlineOptions,
    SettingsFile,
    Threads,
    refuse_threads,
    verdicts,
)
from foretest.cli.output import deliver, refuse_place
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
    fail_on: FailOn = "",
    threads: Threads = None,
    analysis: Annotated[
        OnlineOptions | None,  # type: ignore[valid-type]
        Parameter(name="*", group="Instead of what the settings file says in its table analysis"),
    ] = None,
) -> int:
    """An online A/B test from its two logs: a table on stdout, OUT/result.json, OUT/report.html.

    Example: foretest online control.parquet "treatment/*.parquet" -c test.toml -o out
    """
    from foretest.online.test import OnlineTest

    wanted = verdicts(fail_on, (*VERDICTS, GUARDRAIL))
    refuse_threads(threads)
    refuse_place(out)
    test = OnlineTest.from_toml(config)
    given = {name: value for name, value in vars(analysis or OnlineOptions()).items() if value is not None}
    try:
        test = test.replace(**given)
    except BadInput as error:
        raise BadInput(f"on the command line: {error}") from None
    with progress_bar() as progress:
        result = test.run(str(control), str(treatment), threads=threads, progress=progress)
    return deliver(result, out, json, wanted)
