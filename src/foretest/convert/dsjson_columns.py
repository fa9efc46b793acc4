"""Decisions of a decision service as the columns of a display log, and the settings that go with them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from foretest.convert.dsjson_features import feature_array, plain_text, scalars
from foretest.convert.dsjson_labels import Outcome
from foretest.convert.dsjson_lines import Decision
from foretest.convert.dsjson_survey import Survey
from foretest.formatting import some_of

_NUMBERS = pa.list_(pa.float64())


def columns_for(seen: Survey, add: float) -> Columns:
    """The columns for the kind of decisions that the files have."""
    return SlotColumns(seen, add) if seen.by_slot[True].lines else ActionColumns(seen, add)


class Columns(ABC):
    """What all decisions have; `add` is added to every reward."""

    own: ClassVar[Sequence[tuple[str, pa.DataType]]]  # columns
    settings: ClassVar[Mapping[str, Mapping[str, Any]]]  # the roles of these columns, and the two policies
    advice: ClassVar[str]  # what the policies are, for the settings file's comment

    def __init__(self, seen: Survey, add: float) -> None:
        self.seen, self.add = seen, add
        common = [("event_id", pa.string()), ("time", pa.timestamp("us", "UTC")), ("keep", pa.float64())]
        fields = [pa.field(name, kind) for name, kind in (*common, *self.own)]
        self.features = seen.features.fields([field.name for field in fields])
        self.schema = pa.schema([*fields, *self.features.values()])

    @abstractmethod
    def of_decisions(self, events: Sequence[Decision]) -> dict[str, list[Any]]:
        """The values of the kind's own columns."""

    def reward(self, shown: Outcome) -> float:
        """Minus the cost."""
        return self.add - shown.cost

    def batch(self, events: Sequence[Decision]) -> pa.RecordBatch:
        """Some decisions as rows."""
        values: dict[str, list[Any]] = {
            "event_id": [None if event.event_id is None else plain_text(event.event_id) for event in events],
            "time": [event.time for event in events],
            "keep": [event.keep for event in events],
            **self.of_decisions(events),
        }
        contexts = [dict(scalars(event.context)) for event in events]
        arrays = {name: pa.array(column, self.schema.field(name).type) for name, column in values.items()}
        for feature, field in self.features.items():
            arrays[field.name] = feature_array([context.get(feature) for context in contexts], field.type)
        return pa.RecordBatch.from_arrays([arrays[name] for name in self.schema.names], schema=self.schema)

    def tables(self) -> dict[str, Any]:
        """The tables of the settings file."""
        log: dict[str, Any] = {"rewards": ["reward"]}
        if not self.seen.without_id.lines:
            log["id"] = "event_id"
        if not self.seen.without_time.lines:
            log["date"] = "time"
        if self.seen.thinned.lines:
            log["keep"] = "keep"
        if self.features:
            log["features"] = [field.name for field in self.features.values()]
        return {**self.settings, "log": {**log, **self.settings["log"]}}

    def comment(self) -> str:
        """What a reader of the settings file must know."""
        names = some_of([path.name for path in self.seen.files], 3)
        added = "" if self.add == 0.0 else f", plus {self.add:g} so that none is negative (--add)"
        lines = [
            f"{names}: decision-service JSON, by foretest convert dsjson.",
            f"The reward is minus the cost, '_original_label_cost' where a line has it, else '_label_cost'{added}.",
        ]
        if self.add:
            lines.append("The uplift is in percent of this sum; differences are those of the rewards themselves.")
        if self.seen.thinned.lines:
            lines.append("keep is the probability with which an event was kept, 1 - pdrop.")
        if self.seen.features.others:
            lines.append(f"Of the context's features the first {len(self.features)} are columns.")
        return "\n".join([*lines, self.advice])


class ActionColumns(Columns):
    """Decisions for one action (CB): the probabilities of all actions are known."""

    own: ClassVar = (
        ("action", pa.int32()), ("reward", pa.float64()), ("label_cost", pa.float64()),
        ("original_label_cost", pa.float64()), ("probabilities", _NUMBERS),
    )  # fmt: skip
    settings: ClassVar = {
        "log": {"ranking": "action"},
        "control": {"policy": "probabilities", "probs": "probabilities"},
        "treatment": {"policy": "top-k", "scores": "probabilities"},
    }
    advice: ClassVar = (
        "The control is the policy that was logged. The treatment always shows its likeliest action. Replace it by\n"
        'your own: policy = "probabilities", and in probs a list column with a probability for each action.'
    )

    def of_decisions(self, events: Sequence[Decision]) -> dict[str, list[Any]]:
        shown = [event.outcomes[0] for event in events]
        return {
            "action": [one.actions[0] for one in shown],
            "reward": [self.reward(one) for one in shown],
            "label_cost": [one.label_cost for one in shown],
            "original_label_cost": [one.original_cost for one in shown],
            "probabilities": [one.by_action() for one in shown],
        }


class SlotColumns(Columns):
    """Decisions by slot (CCB): a slot's probabilities are known given the slots above, along what was shown."""

    own: ClassVar = (
        ("ranking", pa.list_(pa.int32())), ("reward", pa.float64()), ("slot_rewards", _NUMBERS),
        ("label_costs", _NUMBERS), ("original_label_costs", _NUMBERS), ("prob", pa.float64()),
        ("slot_probs", _NUMBERS), ("greedy_prob", pa.float64()),
    )  # fmt: skip
    settings: ClassVar = {
        "log": {"ranking": "ranking", "slot_rewards": {"reward": "slot_rewards"}},
        "control": {"policy": "logged", "prob": "prob"},
        "treatment": {"policy": "logged", "prob": "greedy_prob"},
    }
    advice: ClassVar = (
        "The control is the policy that was logged: prob is the product of the slots' probabilities, each given the\n"
        "slots above. The treatment always shows the likeliest action of each slot. Replace it by your own: prob is\n"
        "the probability with which it would show the row's ranking."
    )

    def of_decisions(self, events: Sequence[Decision]) -> dict[str, list[Any]]:
        rewards = [[self.reward(one) for one in event.outcomes] for event in events]
        return {
            "ranking": [[one.actions[0] for one in event.outcomes] for event in events],
            "reward": [math.fsum(row) for row in rewards],
            "slot_rewards": rewards,
            "label_costs": [[one.label_cost for one in event.outcomes] for event in events],
            "original_label_costs": [[one.original_cost for one in event.outcomes] for event in events],
            "prob": [math.prod(one.probs[0] for one in event.outcomes) for event in events],
            "slot_probs": [[one.probs[0] for one in event.outcomes] for event in events],
            "greedy_prob": [float(all(one.is_likeliest for one in event.outcomes)) for event in events],
        }
