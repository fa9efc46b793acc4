"""foretest aggregate, foretest pack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.offline import configured_test
from foretest.cli.options import (
    Engine,
    Logs,
    MaybeSettingsFile,
    Overrides,
    SettingsFile,
    SqlText,
    Threads,
    log_or_sql,
    refuse_threads,
)
from foretest.cli.output import refuse_file, refuse_place
from foretest.progress import progress_bar


@app.command
def aggregate(
    log: Logs = None,
    /,
    *,
    config: MaybeSettingsFile = None,
    sql: SqlText = None,
    engine: Engine = "local",
    out: Annotated[Path, Parameter(name=("--out", "-o"), help="The file to write, as in day1.parquet.")],
    threads: Threads = None,
    analysis: Overrides = None,
) -> int:
    """The heavy half of run alone: a log folded into a small file, for foretest run.

    Files of several days add up: foretest run day1.parquet day2.parquet. Stopped half-way, the same command goes on.
    Example: foretest aggregate logs/2026-01-01/*.parquet -c test.toml -o day1.parquet
    """
    refuse_threads(threads)
    refuse_file(out)
    source = log_or_sql("aggregate", log, sql, engine)
    test = configured_test("aggregate", source, config, analysis)
    with progress_bar() as progress:
        aggregates = test.save_aggregates(source, out, threads=threads, progress=progress)
    print(f"Written: {out} ({aggregates.rows:,} displays). Next: foretest run {out}")
    return 0


@app.command
def pack(
    log: Logs = None,
    /,
    *,
    config: SettingsFile,
    sql: SqlText = None,
    out: Annotated[Path, Parameter(name=("--out", "-o"), help="The folder to write.")],
    analysis: Overrides = None,
) -> int:
    """Rewrite a log so that rows with a reward sit together: run then reads no others where it can.

    is, cis, point-ncis and point-ncis-adaptive need only those. All rows and columns are kept.
    Example: foretest pack logs/*.parquet -c test.toml -o packed
    """
    refuse_place(out.absolute().parent)
    source = log_or_sql("pack", log, sql)
    test = configured_test("pack", source, config, analysis)
    with progress_bar() as progress:
        test.pack(source, out, progress=progress)
    print(f"Written: {out}. Next: foretest run {out} -c {config} --estimators point-ncis-adaptive")
    return 0
