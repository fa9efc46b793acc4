"""What a line of decision-service JSON may not be, sentence by sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foretest.convert.dsjson_labels import LineFault
from foretest.convert.dsjson_lines import decision
from tests.convert.dsjson_text import DANGLING, cb_event, ccb_event

FAULTS: list[tuple[Any, str]] = [
    ([1], "is not a JSON object"),
    (DANGLING, "is a reward without its decision"),
    ({"c": {}}, "has no decision, neither '_label_cost' nor '_outcomes'"),
    ({"_label_ca": {"cost": 1.0}, "c": {}}, "has a continuous action ('_label_ca')"),
    (ccb_event(_label_cost=-1.0), "is a decision of slates, whose slots have actions of their own"),
    (cb_event(_skipLearn=True), "is an event that was not activated"),
    (ccb_event(_deferred=True), "is an event that was not activated"),
    (cb_event(c=[]), "has a 'c' that is not a JSON object"),
    (cb_event(pdrop=1), "has the 'pdrop' 1: expected a number of at least 0 and below 1"),
    (cb_event(p_drop=-0.1), "has the 'p_drop' -0.1: expected a number of at least 0 and below 1"),
    (cb_event(_label_probability=None), "has no '_label_probability'"),
    (cb_event(_label_probability=0.0), "has the '_label_probability' 0: the probability of what was shown is above 0"
                                       " and at most 1"),
    (cb_event(_label_probability=1.5), "has the '_label_probability' 1.5: the probability of what was shown is above 0"
                                       " and at most 1"),
    (cb_event(a=None), "has an 'a' that is not an order of all actions, counted from 1"),
    (cb_event(a=[1, 0, 2]), "has an 'a' that is not an order of all actions, counted from 1"),
    (cb_event(a=[2, 1, 1]), "has an 'a' that is not an order of all actions, counted from 1"),
    (cb_event(a=[2, 1, "3"]), "has an 'a' that is not an order of all actions, counted from 1"),
    (cb_event(a=[2, 1]), "has 2 actions in 'a' and 3 in the context's '_multi'"),
    (cb_event(_label_Action=1), "has the '_label_Action' 1, and 'a' begins with 2"),
    (cb_event(_labelIndex=2), "has the '_labelIndex' 2, and 'a' begins with 2"),
    (cb_event(_label_cost=None), "has no '_label_cost'"),
    (cb_event(_label_cost="low"), "has the '_label_cost' \"low\": expected a number"),
    (cb_event(_label_cost=float("nan")), "has the '_label_cost' NaN: expected a number"),
    (cb_event(_original_label_cost=True), "has the '_original_label_cost' true: expected a number"),
    (cb_event(p=None), "has no list 'p'"),
    (cb_event(p=[0.8, 0.2]), "has 3 actions and 2 probabilities in 'p'"),
    (cb_event(p=[0.8, 0.3, -0.1]), "has the probability -0.1 in 'p'"),
    (cb_event(p=[0.8, None, 0.2]), "has the probability null in 'p'"),
    (cb_event(p=[0.8, 0.2, 0.2]), "has probabilities in 'p' that sum to 1.2, not 1"),
    (cb_event(p=[0.0, 0.5, 0.5]), "shows an action that has probability 0 in 'p'"),
    (cb_event(_label_probability=0.4), "has the '_label_probability' 0.4, and 'p' gives that action 0.8; if events were"
                                       " dropped, 'pdrop' is missing"),
    (cb_event(EventId=["e"]), "has the 'EventId' [\"e\"]: expected text"),
    (cb_event(Timestamp="yesterday"), "has the 'Timestamp' \"yesterday\", which is not a time"),
    (cb_event(Timestamp=17), "has the 'Timestamp' 17, which is not a time"),
    (ccb_event(_outcomes=[]), "has '_outcomes' that are not a list of objects"),
    (ccb_event(c={"_slots": [{}]}), "has 2 outcomes in '_outcomes' and 1 in the context's '_slots'"),
    (ccb_event({}, {"_label_cost": None}), "has no '_label_cost' in slot 2"),
    (ccb_event({"_a": [2, 2, 1]}), "has an '_a' that is not a list of different actions, counted from 0, in slot 1"),
    (ccb_event({"_a": 2}), "has an '_a' that is not a list of different actions, counted from 0, in slot 1"),
    (ccb_event({"_a": [3, 0, 1]}), "has the action 3 in slot 1, and 3 in 'c', counted from 0"),
    (ccb_event({}, {"_a": [2, 1]}), "shows an action in two slots"),
    (ccb_event({}, {"_p": [0.6, 0.3]}), "has probabilities in '_p' in slot 2 that sum to 0.9, not 1"),
    (ccb_event({"_p": [0.0, 1.0, 0.0]}), "shows an action that has probability 0 in '_p' in slot 1"),
]  # fmt: skip


@pytest.mark.parametrize(("event", "what"), FAULTS)
def test_faults(event: Any, what: str) -> None:
    with pytest.raises(LineFault) as error:
        decision(json.dumps(event).encode())
    assert error.value.what == what


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"\xff\xfe", "is not text in UTF-8"),
        (b'{"a": ', "is not JSON (Expecting value)"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"a": ' + b"1" * 5000 + b"}", "is not JSON (Exceeds the limit"),
    ],
)
def test_lines_that_are_no_json(line: bytes, what: str) -> None:
    with pytest.raises(LineFault) as error:
        decision(line)
    assert error.value.what.startswith(what)


def test_the_likeliest_action() -> None:
    """Ties go to the lower number, as in policies that sort."""
    for actions, probs, likeliest in (
        ([2, 0, 1], [0.5, 0.3, 0.2], True),
        ([0, 1, 2], [0.2, 0.3, 0.5], False),
        ([2, 0, 1], [0.4, 0.4, 0.2], False),
        ([0, 2, 1], [0.4, 0.4, 0.2], True),
    ):
        event = ccb_event({"_a": actions, "_p": probs}, {"_a": [1 if actions[0] == 0 else 0], "_p": [1.0]})
        assert decision(json.dumps(event).encode()).outcomes[0].is_likeliest == likeliest
