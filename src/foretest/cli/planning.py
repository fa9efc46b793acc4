"""foretest plan."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.offline import configured_test
from foretest.cli.options import (
    AsJson,
    Engine,
    Logs,
    MaybeSettingsFile,
    Overrides,
    Quiet,
    SqlText,
    Threads,
    check_threads,
    log_source,
)
from foretest.cli.output import check_output_folder, console, output_place, print_json
from foretest.progress import progress_bar


@app.command
def plan(
    log: Logs = None,
    /,
    *,
    config: MaybeSettingsFile = None,
    sql: SqlText = None,
    engine: Engine = "local",
    out: Annotated[str | None, Parameter(name=("--out", "-o"), help="Folder for plan.json.")] = None,
    json: AsJson = False,
    threads: Threads = None,
    quiet: Quiet = False,
    analysis: Overrides = None,
) -> int:
    """Estimate the smallest uplift that a log could show, and what would halve it.

    Considers more log, exploration by the control, and an online test.

    Example: foretest plan logs/*.parquet -c test.toml
    """
    source = log_source("plan", log, sql, config, engine)
    check_threads(threads)
    place = output_place(out)
    check_output_folder(place)
    test = configured_test("plan", source, config, analysis)
    from foretest.planning.plan import plan_log
    from foretest.terminal.plan import plan_table

    with progress_bar(quiet=quiet) as progress:
        plan_result = plan_log(test, source, threads=threads, progress=progress)
    if place is not None:
        plan_result.to_json(place / "plan.json")
    if json:
        print_json(plan_result.to_dict())
    else:
        console().print(plan_table(plan_result.to_dict()))
        if place is not None:
            print(f"\nWritten: {place / 'plan.json'}")
    return 0
