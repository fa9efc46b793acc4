"""A log in one line: its displays, its units, its rewarded rows; and who served it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foretest.formatting import displays_text, percent, units_text

if TYPE_CHECKING:
    from foretest.results.result import Result


def log_text(log: dict[str, Any], unit: str | None) -> str:
    """How many displays, units and rewarded rows a log has; `unit` is the column of units.

    >>> log_text({"rows": 2000, "units": 7, "positives": {"click": 500}}, "user")
    '2,000 displays, 7 units (user), 500 with click'
    """
    units = f", {units_text(log)} ({unit})" if unit else ""
    positives = ", ".join(f"{count:,} with {name}" for name, count in log["positives"].items())
    return f"{displays_text(log)}{units}, {positives}"


def loggers_text(result: Result) -> str | None:
    """The policies that served the log, with their shares, and the one that is the control; None if there is one."""
    loggers = result.log.get("loggers")
    if not loggers:
        return None
    shares = ", ".join(f"{name} {percent(logger['share'])}" for name, logger in loggers.items())
    return f"Shown by {shares}; uplifts are relative to {result.settings['analysis']['baseline']}"
