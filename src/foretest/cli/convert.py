"""foretest convert."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import MaybeSettingsFile, SqlText, log_source
from foretest.cli.output import check_output_folder
from foretest.errors import BadInput, choose
from foretest.stores import location

FORMATS = ("long", "open-bandit")


@app.command
def convert(
    format: Annotated[str, Parameter(help=f"What the log is: {' or '.join(FORMATS)}.")],
    source: Annotated[list[str] | None, Parameter(help="The files, or of open-bandit the file or folder.")] = None,
    /,
    *,
    config: MaybeSettingsFile = None,
    sql: SqlText = None,
    out: Annotated[str, Parameter(name=("--out", "-o"), help="Folder for log.parquet and settings.toml.")],
) -> int:
    """Write a log of another shape as one row per display, with a settings file that runs as it is.

    long: one row per display and item; -c names the columns ([log] layout = "long").
    open-bandit: a CSV file of the Open Bandit Dataset.
    Example: foretest convert long impressions.parquet -c long.toml -o displays
    """
    choose("format", format, FORMATS)
    place = location(out)
    check_output_folder(place)
    if format == "long":
        from foretest.convert.long_log import convert_long

        if config is None:
            raise BadInput("convert long needs --config or -c: The settings file (TOML). See foretest convert --help.")
        rows = convert_long(log_source("convert", source, sql, config), location(config), place)
    else:
        from foretest.convert.open_bandit import convert_open_bandit

        if config is not None or sql is not None or not source or len(source) != 1:
            raise BadInput("convert open-bandit takes one file or folder, and no -c or --sql.")
        rows = convert_open_bandit(location(source[0]), place)
    log, settings = place / "log.parquet", place / "settings.toml"
    print(f"Written: {place} ({rows:,} displays). Next: foretest run {log} -c {settings}")
    return 0
