"""The line that makes a service explore: the `Sampler` of `foretest.serving` for a control."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from foretest.policies import Policy
from foretest.policies.adapter import class_name
from foretest.policies.replay import not_served

# what a service has at hand itself
_COLUMNS = ("scores", "log_prob", "prob", "candidates", "replay_seed", "trained_until")
SEED = 1


class SamplerLine(NamedTuple):
    """The table and the line of Python, or why there is none."""

    policy: dict[str, Any] | None
    slots: int
    line: str | None
    reason: str | None

    def to_dict(self) -> dict[str, Any]:
        """The content of plan.json."""
        return self._asdict()


def sampler_line(policy: Policy, settings: dict[str, Any], slots: int) -> SamplerLine:
    """The sampler of a policy and its [control] table, for displays of at most so many slots."""
    part = not_served(policy)
    if part is not None:
        reason = (
            f"foretest.serving does not draw from {class_name(part)}: let the service draw, and log the probability of"
            " each ranking."
        )
        return SamplerLine(None, slots, None, reason)
    table = _without_columns(settings)
    return SamplerLine(table, slots, f"Sampler({json.dumps(table)}, slots={slots}, seed={SEED})", None)


def _without_columns(settings: dict[str, Any]) -> dict[str, Any]:
    """A policy's table without the names of columns, at any depth."""
    table = {key: value for key, value in settings.items() if key not in _COLUMNS}
    if "components" in table:
        table["components"] = [_without_columns(part) for part in table["components"]]
    return table
