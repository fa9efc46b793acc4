"""Rewards that come late: which columns say when, and what settings may not ask for without them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from foretest.displays.durations import duration_of, instant_of, instant_text
from foretest.errors import BadInput, nearest
from foretest.settings.long_layout import LONG

if TYPE_CHECKING:
    from foretest.settings.log_columns import LogColumns
    from foretest.settings.settings import Settings


def check_times(log: LogColumns) -> None:
    """Refuse times that are no names of columns, or that do not go together; `read_at` becomes text in UTC."""
    if log.time is not None and not isinstance(log.time, str):
        raise BadInput(f"[log] time = {log.time!r}: expected the name of a column.")
    for name in ("reward_time", "reward_age"):
        if getattr(log, name) is not None:
            _check_columns(log, name, getattr(log, name))
    if log.reward_time is not None and log.reward_age is not None:
        raise BadInput(
            "[log] reward_time and [log] reward_age are both given: name the column with the time of the reward, or"
            " the one with the seconds from display to reward."
        )
    for name in ("reward_time", "reward_age", "read_at"):
        if log.time is None and getattr(log, name) is not None:
            raise BadInput(f"[log] {name} is given without time: name the column with the time of the display, too.")
    others = {"rewards": log.rewards, "unit": (log.unit,), "id": (log.id,)}
    taken = (name for name, columns in others.items() if log.time is not None and log.time in columns)
    role = next(taken, None)
    if role is not None:
        raise BadInput(f"[log] time and [log] {role} both name the column '{log.time}': time is that of the display.")
    if log.read_at is not None:
        object.__setattr__(log, "read_at", instant_text(instant_of("[log] read_at", log.read_at)))


def _check_columns(log: LogColumns, name: str, value: Any) -> None:
    """One column for all rewards, or a table with one for each."""
    columns = list(value.values()) if isinstance(value, Mapping) else [value]
    if not columns or not all(isinstance(column, str) for column in columns):
        raise BadInput(
            f"[log] {name} = {value!r}: expected the name of a column, or one for each reward, as in"
            f' {{{log.rewards[0]} = "{log.rewards[0]}_{name}"}}.'
        )
    if not isinstance(value, Mapping):
        return
    for metric in value:
        if metric not in log.rewards:
            raise BadInput(
                f"[log] {name} names '{metric}', which is no reward.{nearest(str(metric), log.rewards)} The rewards"
                f" are: {', '.join(log.rewards)}."
            )
    missing = [metric for metric in log.rewards if metric not in value]
    if missing:
        raise BadInput(f"[log] {name} has no column for the reward '{missing[0]}': name one for each reward.")


def check_window(settings: Settings) -> None:
    """Refuse a window without the columns that it is measured by."""
    log, window = settings.log, settings.analysis.window
    if window is not None and not reward_columns(log):
        raise BadInput(
            f'window = "{window}" needs to know when displays were shown and when rewards came: name the columns in'
            " [log] time and in [log] reward_time (or reward_age, in seconds)."
        )


def reward_columns(log: LogColumns) -> dict[str, str]:
    """By reward, the column that says when it came; empty where none does."""
    given = log.reward_age if log.reward_time is None else log.reward_time
    if given is None:
        return {}
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(log.rewards, given)


def time_columns(log: LogColumns) -> tuple[str, ...]:
    """All columns that say when something happened."""
    return tuple(dict.fromkeys([*([] if log.time is None else [log.time]), *reward_columns(log).values()]))


def window_of(settings: Settings) -> int | None:
    """How long after a display its rewards count, in microseconds; None where there is no window."""
    window = settings.analysis.window
    return None if window is None else duration_of("window", window)


def read_at_of(log: LogColumns) -> int | None:
    """When the log was read, in microseconds; None where that is not known (yet)."""
    return None if log.read_at is None else instant_of("[log] read_at", log.read_at)


def needs_read_at(settings: Settings) -> bool:
    """Is it still to be found when the log was read, which ages run to?"""
    return settings.log.read_at is None and bool(reward_columns(settings.log))


def with_read_at(settings: Settings, microseconds: int | None) -> Settings:
    """The settings with the time at which the log was read; without rows there is none."""
    if microseconds is None:
        return settings
    log = dataclasses.replace(settings.log, read_at=instant_text(microseconds))
    return dataclasses.replace(settings, log=log)


def read_at_notes(settings: Settings) -> list[str]:
    """Refuse to save sums under a window of a log that nobody knows when it was read; without a window, a note."""
    if not needs_read_at(settings):
        return []
    if settings.analysis.window is not None:
        raise BadInput(
            f'window = "{settings.analysis.window}" in saved aggregates needs [log] read_at, when the log was read: the'
            " latest time of a file that has one day would leave out all of it."
        )
    return ["the ages of rewards were left out: in saved aggregates they need [log] read_at, when the log was read."]


def untimed(settings: Settings) -> Settings:
    """The settings of a log whose times do not matter, as packing wants them."""
    if settings.log.layout == LONG and reward_columns(settings.log):
        raise BadInput(
            'a log with layout = "long" and the times of its rewards cannot be packed: a packed log has one time for'
            " all rewards of a display. Run it as it is."
        )
    log = dataclasses.replace(settings.log, time=None, reward_time=None, reward_age=None, read_at=None)
    return dataclasses.replace(settings, log=log, analysis=settings.analysis.replace(window=None))
