"""What a decision service logs of one slot: the actions, their probabilities, and the cost of the shown one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from foretest.errors import is_finite_number
from foretest.formatting import shortened
from foretest.policies.probabilities import SUM_ERROR

CLOSE = 1e-4  # of probabilities that are written with few digits


class LineFault(Exception):
    """Why a line is left out: `kind` tells faults apart, `what` goes on after "line 17"."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"the line {what}")
        self.kind, self.what = kind, what


class Outcome(NamedTuple):
    """The outcome of one slot. Actions count from 0, and the first of them was shown."""

    actions: list[int]
    probs: list[float]  # in the order of the actions; of a lower slot, given what the slots above show
    label_cost: float
    original_cost: float | None

    @property
    def cost(self) -> float:
        """What was observed: the original cost where the line has it, else that of the label."""
        return self.label_cost if self.original_cost is None else self.original_cost

    @property
    def is_likeliest(self) -> bool:
        """Is no other action likelier than the shown one, and of those that are as likely none earlier?"""
        first, top = self.actions[0], max(self.probs)
        return first == min(a for a, p in zip(self.actions, self.probs, strict=True) if p == top)

    def by_action(self) -> list[float]:
        """The probabilities in the order of the actions' numbers."""
        return [p for _, p in sorted(zip(self.actions, self.probs, strict=True))]


def outcome(table: Mapping[str, Any], actions: list[int], probs: str, where: str) -> Outcome:
    """The outcome that a table has for these actions; `where` names the slot, as in " in slot 2"."""
    cost = number(table, "_label_cost", where)
    original = number(table, "_original_label_cost", where) if table.get("_original_label_cost") is not None else None
    return Outcome(actions, _probabilities(table.get(probs), len(actions), probs, where), cost, original)


def number(table: Mapping[str, Any], name: str, where: str = "") -> float:
    """A finite number that the line must have."""
    value = table.get(name)
    if value is None:
        raise LineFault(f"no {name}", f"has no '{name}'{where}")
    if not is_finite_number(value):
        raise LineFault(f"{name} not a number", f"has the '{name}' {value_text(value)}{where}: expected a number")
    return float(value)


def value_text(value: Any) -> str:
    """A value as the line has it, if it is not too long."""
    return shortened(json.dumps(value, ensure_ascii=False), 40)


def _probabilities(values: Any, count: int, name: str, where: str) -> list[float]:
    """Probabilities that sum to 1 within 1e-6; sums of rounded ones are put right."""
    if not isinstance(values, list):
        raise LineFault(f"no {name}", f"has no list '{name}'{where}")
    if len(values) != count:
        raise LineFault(f"length of {name}", f"has {count} actions and {len(values)} probabilities in '{name}'{where}")
    wrong = next((v for v in values if not is_finite_number(v) or not 0.0 <= v <= 1.0 + CLOSE), None)
    if wrong is not None or None in values:
        raise LineFault(f"{name} no probability", f"has the probability {value_text(wrong)} in '{name}'{where}")
    total = float(sum(values))
    if abs(total - 1.0) > CLOSE:
        raise LineFault(f"sum of {name}", f"has probabilities in '{name}'{where} that sum to {total:.6g}, not 1")
    if values[0] == 0.0:
        raise LineFault(f"{name} is 0", f"shows an action that has probability 0 in '{name}'{where}")
    scale = 1.0 if abs(total - 1.0) <= SUM_ERROR else total
    return [float(value) / scale for value in values]
