"""Where results go: files, the terminal, JSON on stdout."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from foretest.cli.exit_codes import exit_code
from foretest.errors import BadInput
from foretest.stores import Location, RemotePath, location

if TYPE_CHECKING:
    from foretest.history.agreement_result import Agreement
    from foretest.results.result import Result

PAGE = "report.html"
_BROKEN_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/[^/]")  # what Path makes of s3://…
TABLE, JSON, MARKDOWN = "table", "json", "markdown"  # forms of a printed result


def check_output_folder(out: Location | None) -> None:
    """Refuse a folder that cannot be written, before the work and not after it."""
    if out is None:
        return
    if isinstance(out, RemotePath):
        _check_remote_folder(out)
        return
    if _BROKEN_ADDRESS.match(str(out)) and not out.exists():
        raise BadInput(f"{out}: this command writes to a local folder, not to a store. Give -o another name.")
    place = next(p for p in (out, *out.absolute().parents) if p.exists())
    if not place.is_dir():
        raise BadInput(f"{place}: is a file, expected a folder for the output. Give -o another name.")
    if not os.access(place, os.W_OK | os.X_OK):
        raise BadInput(f"{place}: permission denied to write the output there. Give -o another folder.")


def _check_remote_folder(out: RemotePath) -> None:
    """Refuse a place whose bucket is not there, or that is a file; whether it may be written shows when it is."""
    out.refuse_missing_bucket()
    if out.is_file():
        raise BadInput(f"{out}: is a file, expected a folder for the output. Give -o another name.")


def output_place(out: str | None) -> Location | None:
    """The place that -o names, if it is given."""
    return None if out is None else location(out)


def check_output_file(out: Location) -> None:
    """Refuse a file that cannot be written, before the work and not after it."""
    if out.is_dir():
        raise BadInput(f"{out}: is a folder, expected the name of a file for the output, as in -o {out}/name.parquet.")
    check_output_folder(out.absolute().parent)


def check_figures_folder(figures: bool, out: Location | None) -> None:
    """Refuse figures without a folder to write them to."""
    if figures and out is None:
        raise BadInput("--figures needs a folder for the pictures: add -o OUT.")


def check_report(no_report: bool, out: Location | None) -> None:
    """Refuse to leave out a page that would not be written anyway."""
    if no_report and out is None:
        raise BadInput("--no-report leaves report.html out of the folder OUT: add -o OUT, or leave --no-report out.")


def output_form(as_json: bool, as_markdown: bool) -> str:
    """How a result is printed: as a table, as json or as markdown; both at once are refused."""
    if as_json and as_markdown:
        raise BadInput("--json and --markdown are both given: choose one of them.")
    return JSON if as_json else MARKDOWN if as_markdown else TABLE


def deliver(
    result: Result, out: Location | None, form: str, fail_on: list[str], *, figures: bool = False, page: bool = True
) -> int:
    """Write and show a result; the exit code follows from the conditions of --fail-on."""
    result = with_command(result)
    if out is not None:
        if page:
            write_result(result, out)
        else:
            result.to_json(out / "result.json")
            (out / PAGE).unlink(missing_ok=True)  # of an earlier result
        if figures:
            write_figures(result, out)
    show_result(result, form)
    if out is not None and form == TABLE:
        shown = f", {out / PAGE}" if page else ""
        print(f"\nWritten: {out / 'result.json'}{shown}{figures_place(out) if figures else ''}")
    return exit_code(result, fail_on)


def write_result(result: Result, out: Location, truth: dict[str, float] | None = None) -> None:
    """Write OUT/result.json and OUT/report.html, both or neither."""
    from foretest.files import write_all
    from foretest.report.result_page import result_page

    page = result_page(result, truth)
    write_all({out / "result.json": result.to_json().encode(), out / PAGE: page.encode()})


def with_command(result: Any) -> Any:
    """A result or an agreement with the command that made it in its provenance."""
    from foretest.provenance import command_line

    command = {"command": command_line(["foretest", *sys.argv[1:]])}
    return dataclasses.replace(result, provenance=command | result.provenance)


def write_figures(result: Result | Agreement, out: Location) -> None:
    """Write every figure to OUT/figures, as .vl.json, .svg and .png."""
    from foretest.report.pictures import write_pictures

    write_pictures(out / "figures", result.figures())


def figures_place(out: Location) -> str:
    """The folder of the figures, to follow other written files."""
    return f", {out / 'figures'}"


def console(width: int = 80) -> Any:
    """A console for stdout: as wide as the terminal, or so many columns in a file or pipe."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with code 1, which is a bug's

    # force_jupyter: text on stdout also for a command that is called in a notebook
    # emoji: the name of a metric is printed as it is, and their table is not imported
    plain: dict[str, Any] = {"highlight": False, "emoji": False, "force_jupyter": False}
    terminal = Terminal(**plain)
    return terminal if terminal.is_terminal else Terminal(**plain, width=width)


def show_result(result: Result, form: str = TABLE) -> None:
    """Print a result as tables, as JSON or as Markdown."""
    from foretest.terminal.parts import RESULT_WIDTH
    from foretest.terminal.result import result_table

    if form == JSON:
        print_json(result.to_dict())
    elif form == MARKDOWN:
        print(result.to_markdown(), end="")
    else:
        console(RESULT_WIDTH).print(result_table(result))


def print_json(document: dict[str, Any]) -> None:
    """Print a JSON document."""
    from foretest.files import json_text

    print(json_text(document), end="")
