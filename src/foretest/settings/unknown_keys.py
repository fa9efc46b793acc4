"""A key that no table has: refused with the nearest that one has, or the table it belongs to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from foretest.errors import BadInput, nearest


def refuse_unknown(where: str, table: Mapping[str, Any], known: list[str]) -> None:
    """Refuse the first key that is not known, with the nearest that is, or the table it belongs to."""
    for key in table:
        if key not in known:
            elsewhere = _homes() if where.startswith(("[", "the settings file")) else _homes(policies=False)
            home = next((name for name, keys in elsewhere.items() if key in keys and name != where), None)
            hint = f" It belongs in {home}." if home else nearest(key, known)
            raise BadInput(f"{where} has an unknown key '{key}'.{hint} Known: {', '.join(known)}.")


def _homes(policies: bool = True) -> dict[str, set[str]]:
    """The keys of each table."""
    from foretest.settings.analysis import Analysis
    from foretest.settings.log_columns import LogColumns
    from foretest.settings.online import Online

    tables = {"[log]": LogColumns, "[analysis]": Analysis, "[online]": Online}
    homes = {name: {f.name for f in dataclasses.fields(cls)} for name, cls in tables.items()}
    if policies:
        homes["[control] or [treatment]"] = {"policy", "scores", "temperature", "prob", "log_prob", "components"}
    return homes
