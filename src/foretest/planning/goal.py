"""The uplift that an exploration is to make visible, and in how many days."""

from __future__ import annotations

from typing import NamedTuple

from foretest.errors import BadInput, check_integer, check_number
from foretest.planning.days import day_column
from foretest.settings.log_columns import LogColumns


class Goal(NamedTuple):
    """An uplift relative to the control's value, and the days of the log that is to show it."""

    uplift: float
    days: int | None  # None: as many as the log has


def goal_of(uplift: float | None, days: int | None) -> Goal | None:
    """The goal, checked; None where no exploration is asked for."""
    if uplift is None:
        if days is not None:
            raise BadInput(
                f"days = {days!r} is given without uplift: say which uplift a log of so many days is to show, as in"
                " uplift = 0.02 for 2 %."
            )
        return None
    check_number("uplift", uplift, above=0.0)
    if uplift >= 1.0:
        raise BadInput(
            f"uplift = {uplift!r} would be {uplift:+.0%}: an uplift is a share, as in 0.02 for 2 %."
            f"{f' For {uplift:g} % write {uplift / 100:g}.' if uplift <= 100 else ''}"
        )
    if days is not None:
        check_integer("days", days, 1)
    return Goal(float(uplift), days)


def check_days(goal: Goal, log: LogColumns) -> None:
    """Refuse a number of days where nothing says how many the log has."""
    if goal.days is not None and day_column(log) is None:
        raise BadInput(
            f"days = {goal.days}: nothing says how many days the log has. Name its column of days in the settings, as"
            ' [log] date = "day" (or time); or leave days out, for as much log as this.'
        )
