"""Rows that a treatment was trained on: `[treatment] trained_until`, the last day that its model has seen."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from foretest.errors import BadInput
from foretest.policies.base import Policy, trained_until
from foretest.policies.own_candidates import OwnCandidates, without_list

if TYPE_CHECKING:
    from foretest.settings.log_columns import LogColumns
    from foretest.settings.settings import Settings


def trained_until_of(policy: Policy) -> str | None:
    """The last day that a policy's model has seen, where it is given."""
    return trained_until(without_list(policy))


def last_training_day(
    log: LogColumns, control: Policy, treatments: Mapping[str, Policy], before: str | None
) -> str | None:
    """The latest day of all treatments, up to which rows are left out, and no earlier than `before`; None where none is
    given. Refuse one of a control, of a component, or of a log that does not say when displays were shown."""
    parts = [part for policy in (control, *treatments.values()) for _, part in getattr(policy, "components", ())]
    if any(trained_until_of(policy) for policy in (control, *parts)):
        raise BadInput(
            "trained_until is a key of [treatment], beside policy: it is given in [control], or in a component of a"
            " mixture. It says up to which day rows are left out."
        )
    days = [day for day in (before, *map(trained_until_of, treatments.values())) if day is not None]
    if days and before is None and log.date is None and log.time is None:
        raise BadInput(
            f"[treatment] trained_until = {max(days)} leaves out the rows up to that day, and no column says of which"
            ' day a row is: name one in [log] date (or time), as in date = "day".'
        )
    return max(days, default=None)


def with_all_rows(settings: Settings) -> Settings:
    """The settings of a log that no row is left out of, whatever treatments were trained on."""
    if settings.trained_until is None:
        return settings
    treatments = {name: _untrained(policy) for name, policy in settings.treatments.items()}
    first = next(iter(treatments.values()))
    return dataclasses.replace(settings, treatment=first, treatments=treatments, trained_until=None)


def _untrained(policy: Policy) -> Policy:
    if isinstance(policy, OwnCandidates):
        return OwnCandidates(_untrained(policy.policy), policy.candidates)
    other = copy.copy(policy)
    other._trained_until = None
    return other
