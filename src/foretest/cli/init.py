"""foretest init."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import Logs, SqlText, log_source, plain
from foretest.cli.output import check_output_file
from foretest.errors import BadInput
from foretest.stores import location


@app.command
def init(
    log: Logs = None,
    /,
    *,
    sql: SqlText = None,
    reward: Annotated[
        list[str] | None,
        Parameter(help="The reward columns, where their names do not say so.", negative=(), consume_multiple=True),
    ] = None,
    out: Annotated[str, Parameter(name=("--out", "-o"), help="The settings file to write.")] = "settings.toml",
) -> int:
    """Look at a log for the first time: propose what its columns are, and write settings to start from.

    Where the log does not tell all, what is missing is listed, and marked in the file.
    Example: foretest init logs/*.parquet -o test.toml
    """
    from foretest.convert.starting_settings import MISSING, first_look_text, starting_settings

    place = location(out)
    if place.exists():
        raise BadInput(f"{place}: exists already, and is not replaced. Give -o another name.")
    check_output_file(place)
    source = log_source("init", log, sql, None)
    look, text = starting_settings(source, reward or ())
    print(first_look_text(look))
    from foretest.files import write_whole

    write_whole(place, text)
    if look.missing:
        print(
            f"\nWritten: {place}, a skeleton: write what is marked {MISSING} in it. See docs/reference/log-format.md."
        )
        return 0
    named = " ".join(map(plain, log or ())) or "LOG"
    print(f"\nWritten: {place}. Read it, then: foretest check {named} -c {place}")
    return 0
