"""Where results go: files, the terminal, JSON on stdout."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretest.cli.options import AUDIT, GUARDRAIL
from foretest.errors import BadInput

if TYPE_CHECKING:
    from foretest.history.run import Agreement
    from foretest.results.result import Metric, Result


PAGE = "report.html"


def refuse_place(out: Path | None) -> None:
    """Say before the work, not after it, that its output has no place."""
    if out is None:
        return
    place = next(p for p in (out, *out.absolute().parents) if p.exists())
    if not place.is_dir():
        raise BadInput(f"{place}: is a file, expected a folder for the output. Give -o another name.")
    if not os.access(place, os.W_OK | os.X_OK):
        raise BadInput(f"{place}: permission denied to write the output there. Give -o another folder.")


def refuse_file(out: Path) -> None:
    """The same for a file."""
    if out.is_dir():
        raise BadInput(f"{out}: is a folder, expected the name of a file for the output, as in -o {out}/name.parquet.")
    refuse_place(out.absolute().parent)


def deliver(result: Result, out: Path | None, as_json: bool, wanted: list[str], figures: bool = False) -> int:
    """Write and show a result; the exit code that its verdicts ask for."""
    result = with_command(result)
    if out is not None:
        write(result, out)
        if figures:
            write_figures(result, out)
    show(result, as_json)
    if out is not None and not as_json:
        print(f"\nWritten: {out / 'result.json'}, {out / PAGE}{said_figures(out) if figures else ''}")
    every = [result.metrics, *(treatment.metrics for treatment in result.treatments)]
    asked = [metric for metrics in every for metric in metrics.values()]
    met = any(said in wanted for metric in asked for said in conditions(metric))
    return 3 if met or audit_met(result, wanted) else 0


def conditions(metric: Metric) -> set[str]:
    """What --fail-on may name of a metric. Without roles any metric's verdict counts, with roles a goal's alone, where
    negative means worse: of a metric that should decrease, that it rises. A guardrail counts where it fails."""
    if metric.role is None:
        return set(metric.verdicts)
    if metric.role["role"] != "goal":
        return {GUARDRAIL} if metric.role.get("guardrail") == "fail" else set()
    if metric.role["direction"] == "increase":
        return set(metric.verdicts)
    return {{"positive": "negative", "negative": "positive"}.get(verdict, verdict) for verdict in metric.verdicts}


def audit_met(result: Result, wanted: list[str]) -> bool:
    """Does the audit fail, and is that one of the conditions of --fail-on?"""
    return AUDIT in wanted and result.audit is not None and result.audit.outcome == "fail"


def write(result: Result, out: Path, truth: dict[str, float] | None = None) -> None:
    """OUT/result.json and OUT/report.html; the page is made before either is written."""
    from foretest.files import write_whole
    from foretest.report.result_page import result_page

    page = result_page(result, truth)
    result.to_json(out / "result.json")
    write_whole(out / PAGE, page)


def with_command(result: Any) -> Any:
    """The same result or agreement, with the command that made it."""
    from foretest.provenance import command_line

    said = {"command": command_line(["foretest", *sys.argv[1:]])}
    return dataclasses.replace(result, provenance=said | result.provenance)


def refuse_figures(figures: bool, out: Path | None) -> None:
    if figures and out is None:
        raise BadInput("--figures needs a folder for the pictures: add -o OUT.")


def write_figures(result: Result | Agreement, out: Path) -> None:
    """OUT/figures: every figure as .vl.json, .svg and .png."""
    from foretest.report.pictures import write_pictures

    write_pictures(out / "figures", result.figures())


def said_figures(out: Path) -> str:
    return f", {out / 'figures'}"


def console() -> Any:
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with code 1, which is a bug's

    terminal = Terminal(highlight=False)
    return terminal if terminal.is_terminal else Terminal(highlight=False, width=80)


def show(result: Result, as_json: bool) -> None:
    from foretest.terminal.result import result_table

    if as_json:
        print_json(result.to_dict())
    else:
        console().print(result_table(result))


def print_json(document: dict[str, Any]) -> None:
    from foretest.files import json_text

    print(json_text(document), end="")
