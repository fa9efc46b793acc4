"""The rows of several loggers by day, whose shares a log was folded with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from foretest.errors import BadInput
from foretest.log.logger_columns import shares_of
from foretest.policies.logging_mixture import ALL, LoggingMixture
from foretest.settings.settings import Settings
from foretest.storage.saved.json_values import Tables

Days = dict[str, list[float]]  # the number of rows of each logger, by day


def days_of_all(files: Sequence[tuple[str, Days]]) -> Days:
    """The days of several files (name, days). A day must be in one file only: its shares are those of all its rows."""
    days: Days = {}
    file_of_day: dict[str, str] = {}
    for name, days_of_file in files:
        for day, rows in days_of_file.items():
            if day in file_of_day:
                both = f"{file_of_day[day]} and {name}"
                if day == ALL:
                    raise BadInput(
                        f"{both} were each folded with the loggers' shares of its own log, so their sums do not add up."
                        " Fold the logs together, in one foretest aggregate; or name their days in [log] date, so that"
                        " each day has its own shares, and fold them again."
                    )
                raise BadInput(
                    f"{both} both have rows of the day {day}, each with the loggers' shares of its own rows, so their"
                    " sums do not add up. Fold all rows of a day together, in one foretest aggregate."
                )
            days[day], file_of_day[day] = rows, name
    return days


def with_shares(settings: Settings, days: Days) -> Settings:
    """Settings of several loggers with the shares that were counted before the fold; of one control, as they are."""
    control = settings.control
    if not isinstance(control, LoggingMixture):
        return settings
    rows = {(day, code): n for day, counts in days.items() for code, n in enumerate(counts)}
    return dataclasses.replace(settings, control=control.with_shares(shares_of(rows, len(control.names))))


def without_shares(tables: Tables) -> Tables:
    """Settings without the loggers' shares, which may differ from file to file: every day has its own."""
    return {**tables, "control": {key: value for key, value in tables["control"].items() if key != "shares"}}
