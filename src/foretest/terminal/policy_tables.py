"""Policies as people read and write them: a way to explore in a few words, a policy as a table of a settings file."""

from __future__ import annotations

import json
from typing import Any

from foretest.formatting import round_percent


def way_to_explore(row: dict[str, Any]) -> str:
    """A row of exploration in a few words."""
    table = row["settings"] or {}
    if row["epsilon"] is not None:
        return "as it is" if row["epsilon"] == 0.0 else f"random rankings in {round_percent(row['epsilon'])}"
    if "swap" in table:
        return f"neighbours swapped, {table['swap']:g}"
    if "temperature" in table:
        return f"plackett-luce, temperature {table['temperature']:.3g}"
    return f"epsilon-greedy, epsilon {table['epsilon']:g}"


def toml_lines(name: str, table: dict[str, Any]) -> list[str]:
    """A policy as a table of a settings file.

    >>> toml_lines("control", {"policy": "top-k", "scores": "s"})
    ['[control]', 'policy = "top-k"', 'scores = "s"']
    """
    lines, nested = [f"[{name}]"], []
    for key, value in table.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            nested += [line for part in value for line in ["", f"[[{name}.{key}]]", *toml_lines("", part)[1:]]]
        else:
            lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    return lines + nested
