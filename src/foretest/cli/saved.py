"""foretest aggregate, foretest pack."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.offline import configured_test
from foretest.cli.options import (
    Engine,
    Logs,
    MaybeSettingsFile,
    Overrides,
    Quiet,
    Replace,
    SettingsFile,
    SqlText,
    Threads,
    log_source,
    plain,
    prepare_threads,
)
from foretest.cli.output import check_output_file, check_output_folder
from foretest.progress import progress_bar
from foretest.stores import location


@app.command
def aggregate(
    log: Logs = None,
    /,
    *,
    config: MaybeSettingsFile = None,
    sql: SqlText = None,
    engine: Engine = "local",
    out: Annotated[str, Parameter(name=("--out", "-o"), help="The file to write, as in day1.parquet.")],
    threads: Threads = None,
    quiet: Quiet = False,
    analysis: Overrides = None,
) -> int:
    """Reduce a log to a small file of sums (aggregates) that foretest run reads instead of the log.

    Files of several days can be combined: foretest run day1.parquet day2.parquet.
    If the command is interrupted, run it again and it continues where it stopped.
    Example: foretest aggregate logs/2026-01-01/*.parquet -c test.toml -o day1.parquet
    """
    prepare_threads(threads)
    place = location(out)
    check_output_file(place)
    source = log_source("aggregate", log, sql, config, engine)
    test = configured_test("aggregate", source, config, analysis)
    with progress_bar(quiet=quiet) as progress:
        aggregates = test.save_aggregates(source, place, threads=threads, progress=progress)
    print(f"Written: {place} ({aggregates.rows:,} {aggregates.row_word}s). Next: foretest run {place}")
    return 0


@app.command
def pack(
    log: Logs = None,
    /,
    *,
    config: SettingsFile,
    sql: SqlText = None,
    out: Annotated[str, Parameter(name=("--out", "-o"), help="The folder to write.")],
    replace: Replace = False,
    quiet: Quiet = False,
    analysis: Overrides = None,
) -> int:
    """Rewrite a log with all rewarded rows together, so that foretest run can skip the others.

    The estimators is, cis, point-ncis and point-ncis-adaptive need only rewarded rows. No row or column is lost.
    Example: foretest pack logs/*.parquet -c test.toml -o packed
    """
    place = location(out)
    check_output_folder(place.absolute().parent)
    source = log_source("pack", log, sql, config)
    test = configured_test("pack", source, config, analysis)
    with progress_bar(quiet=quiet) as progress:
        test.pack(source, place, replace=replace, progress=progress)
    print(f"Written: {place}. Next: foretest run {place} -c {plain(config)} --estimators point-ncis-adaptive")
    return 0
