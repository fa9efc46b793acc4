"""What settings must have where the log is to be replayed: `[control] replay_seed`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from foretest.errors import BadInput
from foretest.policies.base import Policy
from foretest.policies.logging_mixture import loggers_of
from foretest.policies.replay import refuse_replay, replay_seed_of
from foretest.settings.log_columns import LogColumns


class Replay(NamedTuple):
    """A control whose draws are to be replayed."""

    logger: int  # its number among those that produced the log
    policy: Policy
    seed: int


def replays_of(control: Policy) -> list[Replay]:
    """The controls whose draws are to be replayed."""
    seeds = [(k, policy, replay_seed_of(policy)) for k, policy in enumerate(loggers_of(control).policies)]
    return [Replay(number, policy, seed) for number, policy, seed in seeds if seed is not None]


def check_replay(log: LogColumns, control: Policy, treatments: Mapping[str, Policy]) -> None:
    """Refuse a replay without the displays' ids, of a treatment, or of a policy that no service draws from."""
    for name, policy in treatments.items():
        if replay_seed_of(policy) is not None:
            raise BadInput(
                f"the treatment '{name}' has replay_seed: it is for [control], the policy that drew the log. Leave it"
                " out."
            )
    for policy in loggers_of(control).policies:
        refuse_replay(policy, "[control]")
    if replays_of(control) and log.id is None:
        raise BadInput(
            "[control] replay_seed is given, and [log] id is not: draws follow from the seed and the display's id. Name"
            ' the column, as in id = "display_id".'
        )
