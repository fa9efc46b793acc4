"""foretest plan."""

from __future__ import annotations

from pathlib import Path
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
    SqlText,
    Threads,
    log_or_sql,
    refuse_threads,
)
from foretest.cli.output import console, print_json, refuse_place
from foretest.progress import progress_bar


@app.command
def plan(
    log: Logs = None,
    /,
    *,
    config: MaybeSettingsFile = None,
    sql: SqlText = None,
    engine: Engine = "local",
    out: Annotated[Path | None, Parameter(name=("--out", "-o"), help="Folder for plan.json.")] = None,
    json: AsJson = False,
    threads: Threads = None,
    analysis: Overrides = None,
) -> int:
    """The smallest uplift a log could show, and what would halve it: more log, exploration, an online test.

    Example: foretest plan logs/*.parquet -c test.toml
    """
    source = log_or_sql("plan", log, sql, engine)
    refuse_threads(threads)
    refuse_place(out)
    test = configured_test("plan", source, config, analysis)
    from foretest.planning.plan import plan_log
    from foretest.terminal.plan import plan_table

    with progress_bar() as progress:
        outlook = plan_log(test, source, threads=threads, progress=progress)
    if out is not None:
        outlook.to_json(out / "plan.json")
    if json:
        print_json(outlook.to_dict())
    else:
        console().print(plan_table(outlook.to_dict()))
        if out is not None:
            print(f"\nWritten: {out / 'plan.json'}")
    return 0
