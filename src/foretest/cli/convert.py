"""foretest convert."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import MaybeSettingsFile, Replace, SqlText, log_source
from foretest.cli.output import check_output_folder
from foretest.errors import BadInput, choose
from foretest.progress import progress_bar
from foretest.stores import Location, location

FORMATS = ("long", "open-bandit", "dsjson")


@app.command
def convert(
    format: Annotated[str, Parameter(help=f"What the log is: {', '.join(FORMATS)}.")],
    source: Annotated[
        list[str] | None, Parameter(help="Files, folders or globs; of open-bandit the file or folder.")
    ] = None,
    /,
    *,
    config: MaybeSettingsFile = None,
    sql: SqlText = None,
    add: Annotated[float | None, Parameter(help="Of dsjson: added to every reward (minus the cost).")] = None,
    out: Annotated[str, Parameter(name=("--out", "-o"), help="Folder for log.parquet and settings.toml.")],
    replace: Replace = False,
) -> int:
    """Write a log of another shape as one row per display, with a settings file that runs as it is.

    long: one row per display and item; -c names the columns ([log] layout = "long").
    open-bandit: a CSV file of the Open Bandit Dataset.
    dsjson: decision-service JSON lines, as Vowpal Wabbit and Azure Personalizer log them, also compressed (.gz).
    Example: foretest convert long impressions.parquet -c long.toml -o displays
    """
    choose("format", format, FORMATS)
    place = location(out)
    check_output_folder(place)
    from foretest.convert.written import LOG, SETTINGS
    from foretest.storage.ownership import refuse_others

    refuse_others([place / LOG, place / SETTINGS], replace=replace)
    if add is not None and format != "dsjson":
        raise BadInput(f"--add is of convert dsjson: convert {format} takes rewards as they are.")
    if format == "long":
        from foretest.convert.long_log import convert_long

        if config is None:
            raise BadInput(
                "convert long needs --config or -c: The settings file (TOML). foretest init LOG proposes one. See"
                " foretest convert --help."
            )
        rows = convert_long(log_source("convert", source, sql, config), location(config), place, replace=replace)
    elif format == "dsjson":
        if config is not None or sql is not None or not source:
            raise BadInput("convert dsjson takes files, folders or globs, and no -c or --sql.")
        rows = _convert_dsjson(source, place, add or 0.0, replace)
    else:
        from foretest.convert.open_bandit import convert_open_bandit

        if config is not None or sql is not None or not source or len(source) != 1:
            raise BadInput("convert open-bandit takes one file or folder, and no -c or --sql.")
        rows = convert_open_bandit(location(source[0]), place, replace=replace)
    print(f"Written: {place} ({rows:,} displays). Next: foretest run {place / LOG} -c {place / SETTINGS}")
    return 0


def _convert_dsjson(source: list[str], out: Location, add: float, replace: bool) -> int:
    """Convert, and say what is left out and what to ask."""
    from foretest.convert.dsjson import from_dsjson

    with progress_bar() as progress:
        log = from_dsjson(source, out, add=add, replace=replace, progress=progress)
    for remark in log.remarks():
        print(remark)
    return log.displays
