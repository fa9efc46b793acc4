"""Every command with its arguments and options, from the application itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args

from cyclopts import App

from foretest.cli import app
from generated.markdown import cell, code, table

_OVERRIDES = "Settings of the analysis"


def text() -> str:
    """All commands, in the order of their names."""
    return "\n\n".join(_section(words, command) for words, command in sorted(_commands(app, ())))


def _commands(parent: App, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], App]]:
    for name in parent:
        if name.startswith("-"):
            continue
        command = parent[name]
        if command.default_command is None:
            yield from _commands(command, (*words, name))
        else:
            yield (*words, name), command


def _section(words: tuple[str, ...], command: App) -> str:
    shown = [argument for argument in command.assemble_argument_collection() if argument.show]
    own = [argument for argument in shown if not _is_override(argument)]
    overrides = [argument for argument in shown if _is_override(argument)]
    help_text, _, example = inspect.cleandoc(command.help).partition("Example: ")
    parts = [
        f"## foretest {' '.join(words)}",
        f"```text\n{_usage(words, own, bool(overrides))}\n```",
        _prose(help_text),
    ]
    if example:
        parts.append("For example `" + re.sub(r", then (?=foretest)", "`, then `", " ".join(example.split())) + "`.")
    parts.append(table(["argument or option", "default", "meaning"], map(_row, own)))
    if overrides:
        names = [argument.names[0] for argument in overrides]
        parts.append(
            f"For this run only, instead of the [settings](settings.md#analysis): {', '.join(map(code, names))}."
        )
    return "\n\n".join(parts)


def _is_override(argument: Any) -> bool:
    return any(group.name.startswith(_OVERRIDES) for group in argument.parameter.group)


def _usage(words: tuple[str, ...], arguments: list[Any], overrides: bool) -> str:
    pieces = [f"foretest {' '.join(words)}"]
    for argument in sorted(arguments, key=lambda one: (not _is_position(one), not one.required)):
        name = argument.names[-1] if argument.required and not _is_position(argument) else argument.names[0]
        name = f"{name}..." if _is_position(argument) and "list" in str(argument.hint) else name
        piece = name if _is_position(argument) or _is_flag(argument) else f"{name} {_kind(argument)}"
        pieces.append(piece if argument.required else f"[{piece}]")
    return _wrapped([*pieces, *(["[SETTINGS OF THE ANALYSIS]"] if overrides else [])])


def _wrapped(pieces: list[str], width: int = 96) -> str:
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + 1 + len(piece) > width:
            lines.append(" " * len(pieces[0]))
        lines[-1] += f" {piece}"
    return "\n".join(lines)


def _row(argument: Any) -> list[str]:
    names = ", ".join(code(name) for name in argument.names)
    default = argument.field_info.default
    plain = default in (None, False, "") or default is inspect.Parameter.empty
    shown = "needed" if argument.required else "" if plain else code(str(default))
    return [names, shown, cell(argument.parameter.help or "")]


def _is_position(argument: Any) -> bool:
    return not argument.names[0].startswith("-")


def _is_flag(argument: Any) -> bool:
    return argument.hint is bool


def _kind(argument: Any) -> str:
    """What an option is followed by."""
    kinds = {kind for kind in get_args(argument.hint) or (argument.hint,) if kind is not type(None)}
    return "N" if kinds <= {int, float} else argument.names[0].removeprefix("--").replace("-", "_").upper()


def _prose(text: str) -> str:
    """Help text as paragraphs; what Markdown would take for HTML is escaped."""
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n")).replace("<", "&lt;")
