"""The settings file of a simulated log: the test of its treatment against the control that produced it."""

from __future__ import annotations

from foretest.simulate.world import World

_LOG = """\
# A simulated log: the test of its treatment against the control that produced it.

[log]
rewards  = ["click"]           # the log also has "revenue"
unit     = "user"
ranking  = "ranking"
id       = "display_id"
date     = "day"
features = ["group", "recency", "activity"]
slot_rewards = {click = "slot_click"}
"""

_ANALYSIS = """\
[analysis]
estimators = ["cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive", "slot-ncis-adaptive"]
cap = 100.0
"""

_POSITION_BASED = """\
[analysis]
examination = {examination}  # how likely users look at each slot
"""


def settings_text(world: World) -> str:
    """The settings of a world's log, as TOML."""
    analysis = _ANALYSIS
    if world.examination is not None:
        curve = ", ".join(str(round(theta, 6)) for theta in world.examination)
        analysis = _POSITION_BASED.format(examination=f"[{curve}]")
    return "\n".join([_LOG, *(_policy(world, role) for role in ("control", "treatment")), analysis])


def _policy(world: World, role: str) -> str:
    """The table of one policy."""
    name = "top-k" if world.temperature == 0.0 else "plackett-luce"
    temperature = f"temperature = {world.temperature}\n" if world.temperature not in (0.0, 1.0) else ""
    return f'[{role}]\npolicy = "{name}"\nscores = "{role}_scores"\n{temperature}'
