"""Where results go: files, the terminal, JSON on stdout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretest.cli.options import AUDIT
from foretest.errors import BadInput

if TYPE_CHECKING:
    from foretest.result import Result


def refuse_place(out: Path | None) -> None:
    """Say before the work, not after it, that its output has no place."""
    if out is None:
        return
    place = next(p for p in (out, *out.absolute().parents) if p.exists())
    if not place.is_dir():
        raise BadInput(f"{place}: is a file, expected a folder for the output. Give -o another name.")
    if not os.access(place, os.W_OK | os.X_OK):
        raise BadInput(f"{place}: permission denied to write the output there. Give -o another folder.")


def deliver(result: Result, out: Path | None, as_json: bool, wanted: list[str]) -> int:
    """Write and show a result; the exit code that its verdicts ask for."""
    if out is not None:
        write(result, out)
    show(result, as_json)
    if out is not None and not as_json:
        print(f"\nWritten: {out / 'result.json'}")
    return 3 if any(metric.verdict in wanted for metric in result.metrics.values()) or audit_met(result, wanted) else 0


def audit_met(result: Result, wanted: list[str]) -> bool:
    """Does the audit fail, and is that one of the conditions of --fail-on?"""
    return AUDIT in wanted and result.audit is not None and result.audit.outcome == "fail"


def write(result: Result, out: Path) -> None:
    result.to_json(out / "result.json")


def console() -> Any:
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with code 1, which is a bug's

    terminal = Terminal(highlight=False)
    return terminal if terminal.is_terminal else Terminal(highlight=False, width=80)


def show(result: Result, as_json: bool) -> None:
    from foretest.terminal import result_table

    if as_json:
        print_json(result.to_dict())
    else:
        console().print(result_table(result))


def print_json(document: dict[str, Any]) -> None:
    import json

    print(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
