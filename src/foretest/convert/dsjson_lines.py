"""One line of decision-service JSON: a decision with its outcomes, or why it is none that can be weighed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

from foretest.convert.dsjson_labels import CLOSE, LineFault, Outcome, number, outcome, value_text
from foretest.errors import is_finite_number


class Decision(NamedTuple):
    """What a line says. Of one action there is one outcome (CB), of slots one for each, the best first (CCB)."""

    by_slot: bool
    event_id: str | None
    time: datetime | None
    keep: float  # the probability with which the event was kept
    outcomes: list[Outcome]
    context: dict[str, Any]  # shared features


def decision(line: bytes) -> Decision:
    """The decision of a line; a LineFault where it is none."""
    event = _object(line)
    context = event.get("c", {})
    if not isinstance(context, dict):
        raise LineFault("context", "has a 'c' that is not a JSON object")
    by_slot = _is_by_slot(event)
    keep = 1.0 - _drop(event)
    outcomes = _slots(event, context) if by_slot else [_action(event, context, keep)]
    shared = {name: value for name, value in context.items() if not name.startswith("_")}  # without those of actions
    return Decision(by_slot, _event_id(event), _time(event), keep, outcomes, shared)


def looks_like_dsjson(line: bytes) -> bool:
    """Has the line the fields of a decision service: a label beside its context, or a reward that came alone?"""
    try:
        event = _object(line)
    except LineFault:
        return False
    labelled = any(name in event for name in ("_label_cost", "_outcomes", "_label_ca")) and "c" in event
    return labelled or ("RewardValue" in event and "EnqueuedTimeUtc" in event)


def _object(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise LineFault("utf-8", "is not text in UTF-8") from None
    except RecursionError:
        raise LineFault("depth", "is nested too deeply") from None
    except ValueError as error:
        raise LineFault("json", f"is not JSON ({getattr(error, 'msg', error)})") from None
    if not isinstance(event, dict):
        raise LineFault("object", "is not a JSON object")
    return event


def _is_by_slot(event: dict[str, Any]) -> bool:
    """Has the line one outcome per slot? Lines that say nothing about a policy's choice are faults."""
    if event.get("_skipLearn") is True or event.get("_deferred") is True:
        raise LineFault("not activated", "is an event that was not activated")
    if "_outcomes" in event:
        if "_label_cost" in event:  # one cost for all slots
            raise LineFault("slates", "is a decision of slates, whose slots have actions of their own")
        return True
    if "_label_ca" in event:
        raise LineFault("continuous", "has a continuous action ('_label_ca')")
    if not any(name in event for name in ("_label_cost", "_label_probability", "a", "p")):
        if "RewardValue" in event or "EnqueuedTimeUtc" in event:
            raise LineFault("dangling", "is a reward without its decision")
        raise LineFault("no decision", "has no decision, neither '_label_cost' nor '_outcomes'")
    return False


def _drop(event: dict[str, Any]) -> float:
    """The probability with which the event would have been dropped, 0 where the line does not say."""
    name = "pdrop" if event.get("pdrop") is not None else "p_drop"
    drop = event.get(name)
    if drop is None:
        return 0.0
    if not is_finite_number(drop) or not 0.0 <= drop < 1.0:
        raise LineFault("pdrop", f"has the '{name}' {value_text(drop)}: expected a number of at least 0 and below 1")
    return float(drop)


def _action(event: dict[str, Any], context: dict[str, Any], keep: float) -> Outcome:
    """The outcome of a decision for one action, whose fields say the same thing several times."""
    logged = number(event, "_label_probability")
    if not 0.0 < logged <= 1.0 + CLOSE:
        raise LineFault(
            "label probability",
            f"has the '_label_probability' {logged:g}: the probability of what was shown is above 0 and at most 1",
        )
    actions = event.get("a")
    if isinstance(actions, list) and _is_order(actions):
        actions = [action - 1 for action in actions]
    else:
        raise LineFault("a", "has an 'a' that is not an order of all actions, counted from 1")
    _refuse_count(len(actions), context, "_multi", "actions in 'a'")
    for name, first in (("_label_Action", 1), ("_labelIndex", 0)):
        if event.get(name) is not None and event[name] != actions[0] + first:
            raise LineFault(name, f"has the '{name}' {value_text(event[name])}, and 'a' begins with {actions[0] + 1}")
    shown = outcome(event, actions, "p", "")
    p = shown.probs[0]
    # some writers multiply it by the probability with which the event was kept
    if min(abs(logged - p), abs(logged - p * keep)) > CLOSE * p:
        raise LineFault(
            "two probabilities",
            f"has the '_label_probability' {logged:g}, and 'p' gives that action {p:g}; if events were dropped,"
            " 'pdrop' is missing",
        )
    return shown


def _is_order(actions: list[Any]) -> bool:
    plain = all(type(action) is int for action in actions)
    return plain and bool(actions) and sorted(actions) == list(range(1, len(actions) + 1))


def _slots(event: dict[str, Any], context: dict[str, Any]) -> list[Outcome]:
    """The outcomes of all slots; each action is shown once."""
    slots = event["_outcomes"]
    if not isinstance(slots, list) or not slots or not all(isinstance(slot, dict) for slot in slots):
        raise LineFault("_outcomes", "has '_outcomes' that are not a list of objects")
    _refuse_count(len(slots), context, "_slots", "outcomes in '_outcomes'")
    most = len(context["_multi"]) if isinstance(context.get("_multi"), list) else None
    outcomes = [_slot(slot, f" in slot {k}", most) for k, slot in enumerate(slots, 1)]
    if len({shown.actions[0] for shown in outcomes}) < len(outcomes):
        raise LineFault("twice", "shows an action in two slots")
    return outcomes


def _slot(slot: dict[str, Any], where: str, most: int | None) -> Outcome:
    actions = slot.get("_a")
    plain = isinstance(actions, list) and bool(actions) and all(type(a) is int and a >= 0 for a in actions)
    if not isinstance(actions, list) or not plain or len(set(actions)) < len(actions):
        raise LineFault("_a", f"has an '_a' that is not a list of different actions, counted from 0,{where}")
    if most is not None and max(actions) >= most:
        raise LineFault("_a too high", f"has the action {max(actions)}{where}, and {most} in 'c', counted from 0")
    return outcome(slot, actions, "_p", where)


def _refuse_count(count: int, context: dict[str, Any], name: str, what: str) -> None:
    """Refuse a context that lists another number of actions or slots."""
    listed = context.get(name)
    if isinstance(listed, list) and len(listed) != count:
        raise LineFault(f"number of {name}", f"has {count} {what} and {len(listed)} in the context's '{name}'")


def _event_id(event: dict[str, Any]) -> str | None:
    text = event.get("EventId")
    if text is None or text == "":
        return None
    if isinstance(text, bool) or not isinstance(text, str | int):
        raise LineFault("EventId", f"has the 'EventId' {value_text(text)}: expected text")
    return str(text)


def _time(event: dict[str, Any]) -> datetime | None:
    """The time of the decision in UTC, which a time without zone is in too."""
    text = event.get("Timestamp")
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise LineFault("Timestamp", f"has the 'Timestamp' {value_text(text)}, which is not a time") from None
