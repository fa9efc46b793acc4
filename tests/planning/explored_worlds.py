"""Logs of simulated worlds whose control is any policy on its scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import foretest as ft
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.policies import POLICIES, Policy
from foretest.simulate.clicks import click_probability, clicked_slots, slot_shares
from foretest.simulate.displays import chunk_generator, draw_displays
from foretest.simulate.world import World

LEVELS = {
    "ranking": "point-ncis-adaptive", "slot": "slot-ncis-adaptive", "exposure": "exposure-ncis-adaptive",
}  # fmt: skip


def policy_of(table: dict[str, Any]) -> Policy:
    """The policy that a [control] table of a plan makes."""
    arguments = dict(table)
    cls = POLICIES[arguments.pop("policy")]
    if cls is ft.Mixture:
        parts = [dict(part) for part in arguments["components"]]
        return ft.Mixture([(part.pop("share"), policy_of(part)) for part in parts])
    return cls(**arguments)


@dataclass
class ExploredWorld:
    """Displays of a world, to be shown by any control."""

    world: World
    rows: int
    seed: int = 1

    def __post_init__(self) -> None:
        self.drawn = draw_displays(self.world, self.world.change, chunk_generator(self.seed, 0, 0), self.rows)
        self.g = np.random.default_rng(self.seed)
        deterministic = self.world.temperature == 0.0
        self.control, self.treatment = (
            ft.TopK(scores=name) if deterministic else ft.PlackettLuce(scores=name, temperature=1.0)
            for name in ("control_scores", "treatment_scores")
        )

    @property
    def theta(self) -> list[float]:
        """The true examination curve."""
        shares = slot_shares(self.world, self.world.slots)
        return [float(share / shares[0]) for share in shares]

    def rankings(self, policy: Any) -> np.ndarray:
        count, items = self.drawn.control_scores.shape
        lengths, slots = np.full(count, items), self.world.slots
        lists = {
            name: Ragged.packed(getattr(self.drawn, name).astype(np.float64).ravel(), lengths)
            for name in ("control_scores", "treatment_scores")
        }
        shown = Ragged.packed(np.tile(np.arange(slots, dtype=np.int32), count), np.full(count, slots))
        displays = Displays(lists, shown, lengths, np.arange(count, dtype=np.uint64))
        drawn = policy.sample(displays, self.g.random((count, items + 1)))
        return np.asarray(drawn.flat()).reshape(count, slots).astype(np.int16)

    def value(self, policy: Any) -> float:
        """The expected reward of rankings drawn from a policy."""
        return float(click_probability(self.world, self.drawn, self.rankings(policy)).mean())

    def table(self, policy: Any) -> pa.Table:
        """The log of a control."""
        rankings = self.rankings(policy)
        click = self.g.random(self.rows) < click_probability(self.world, self.drawn, rankings)
        slot = clicked_slots(self.world, self.drawn, rankings, self.g.random(self.rows))
        by_slot = (np.arange(self.world.slots) == slot[:, None]) & click[:, None]
        scores = pa.list_(pa.float64())
        return pa.table({
            "click": click,
            "id": np.arange(self.rows),
            "ranking": pa.array(list(rankings.astype(np.int32)), pa.list_(pa.int32())),
            "control_scores": pa.array(list(self.drawn.control_scores.astype(np.float64)), scores),
            "treatment_scores": pa.array(list(self.drawn.treatment_scores.astype(np.float64)), scores),
            "slot_click": pa.array(list(by_slot.astype(np.float64)), scores),
        })  # fmt: skip

    def test(self, control: Any, examination: Any, *estimators: str) -> ft.OfflineTest:
        """The test of the treatment against a control."""
        log = ft.LogColumns(rewards=["click"], id="id", ranking="ranking", slot_rewards={"click": "slot_click"})
        return ft.OfflineTest(
            log=log, control=control, treatment=self.treatment, examination=examination, interval="delta",
            estimators=list(estimators or LEVELS.values()), weight_bound=20.0,
        )  # fmt: skip
