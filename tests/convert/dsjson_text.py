"""Decision-service JSON written by hand, and what an estimate is by plain arithmetic over its lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np


def cb_event(**changed: Any) -> dict[str, Any]:
    """A decision for one of three actions: the second was shown, with probability 0.8, and cost -1. None leaves out."""
    event = {
        "_label_cost": -1.0, "_label_probability": 0.8, "_label_Action": 2, "_labelIndex": 1,
        "o": [{"v": 1.0, "EventId": "e1", "ActionTaken": False}], "Timestamp": "2021-02-04T16:31:29.2430000Z",
        "Version": "1", "EventId": "e1", "a": [2, 1, 3],
        "c": {"User": {"tier": "pro"}, "hour": 7, "_multi": [{"i": {"x": 1}}, {"i": {"x": 2}}, {"i": {"x": 3}}]},
        "p": [0.8, 0.15, 0.05], "VWState": {"m": "m/1"},
    }  # fmt: skip
    return {name: value for name, value in {**event, **changed}.items() if value is not None}


def ccb_event(*slots: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A decision for two slots and three actions: 2 above 0, with probabilities 0.5 and then 0.6."""
    own: list[dict[str, Any]] = [
        {"_label_cost": -1.0, "_id": "s1", "_a": [2, 0, 1], "_p": [0.5, 0.3, 0.2]},
        {"_label_cost": 0.0, "_id": "s2", "_a": [0, 1], "_p": [0.6, 0.4]},
    ]
    for slot, other in zip(own, slots, strict=False):
        slot.update(other)
    event = {
        "Timestamp": "2021-06-09T12:08:00Z", "Version": "1", "EventId": "c1",
        "c": {"User": {"id": "u"}, "_multi": [{}, {}, {}], "_slots": [{}, {}]}, "_outcomes": own,
        "VWState": {"m": "N/A"},
    }  # fmt: skip
    return {name: value for name, value in {**event, **changed}.items() if value is not None}


DANGLING = {"RewardValue": 1.0, "EnqueuedTimeUtc": "2021-02-04T16:40:00Z", "EventId": "e9"}


def write_lines(path: Path, events: list[Any]) -> list[Any]:
    """Write JSON lines; text is written as it is."""
    path.write_text("".join(f"{e if isinstance(e, str) else json.dumps(e)}\n" for e in events), encoding="utf-8")
    return events


def cb_events(rows: int, seed: int = 0) -> list[dict[str, Any]]:
    """Decisions of a policy that explores: 2 to 5 actions, the shown one first in 'a'; costs of -1 and 0."""
    g = np.random.default_rng(seed)
    events = []
    for i in range(rows):
        p = g.dirichlet(np.ones(g.integers(2, 6))).round(6)
        p[-1] = round(1.0 - p[:-1].sum(), 6)
        shown = int(g.choice(len(p), p=p / p.sum()))
        order = [shown, *(a for a in range(len(p)) if a != shown)]
        events.append(cb_event(
            EventId=f"e{i}", a=[a + 1 for a in order], p=[float(p[a]) for a in order], _label_Action=shown + 1,
            _labelIndex=shown, _label_probability=float(p[shown]), _label_cost=float(-(g.random() < 0.2 + 0.1 * shown)),
            c={"User": {"tier": str(g.choice(["pro", "free"]))}, "hour": int(g.integers(24)), "_multi": [{}] * len(p)},
        ))  # fmt: skip
    return events


def ccb_events(rows: int, seed: int = 0) -> list[dict[str, Any]]:
    """Decisions for 1 to 3 slots of 4 actions, without replacement."""
    g = np.random.default_rng(seed)
    events = []
    for i in range(rows):
        remaining, slots = list(range(4)), []
        for _ in range(g.integers(1, 4)):
            p = g.dirichlet(np.ones(len(remaining)))
            at = int(g.choice(len(p), p=p))
            order = [at, *(k for k in range(len(p)) if k != at)]
            slots.append({
                "_label_cost": float(-(g.random() < 0.3)), "_a": [remaining[k] for k in order],
                "_p": [float(p[k]) for k in order],
            })  # fmt: skip
            remaining.pop(at)
        events.append({**ccb_event(EventId=f"c{i}", c={"_multi": [{}] * 4}), "_outcomes": slots})
    return events
