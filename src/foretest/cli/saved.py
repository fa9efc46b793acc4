"""foretest aggregate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.offline import configured_test
from foretest.cli.options import Logs, MaybeSettingsFile, Overrides, Threads, refuse_threads
from foretest.cli.output import refuse_file
from foretest.progress import progress_bar


@app.command
def aggregate(
    log: Logs,
    /,
    *,
    config: MaybeSettingsFile = None,
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
    test = configured_test("aggregate", log, config, analysis)
    with progress_bar() as progress:
        test.save_aggregates([str(path) for path in log], out, threads=threads, progress=progress)
    print(f"Written: {out} ({out.stat().st_size / 1e6:,.1f} MB). Next: foretest run {out}")
    return 0
