"""What is for one control, and refused or left out where a column says which of several policies showed a row."""

from __future__ import annotations

from foretest.errors import BadInput
from foretest.policies.base import Policy
from foretest.policies.logging_mixture import loggers_of

#: the sentence of each
_FOR_ONE = {
    "own candidates": (
        "candidates of their own are for one [control], not for several [[control]] tables: name one list of all"
        " items in [log] candidates, with scores in its order."
    ),
    "predictions": "its predicted rewards are compared with those of one control, and several produced the log.",
    "exploration": (
        "what exploration would buy is left out: it is predicted for one control that explores, and several"
        " policies logged these rows. Plan with the baseline's rows alone, and its table as [control]."
    ),
}


def why_not_of_loggers(control: Policy, what: str) -> str | None:
    """Why several loggers cannot have something; None where one control produced the log."""
    return _FOR_ONE[what] if loggers_of(control).named else None


def refuse_loggers(control: Policy, what: str) -> None:
    """Refuse several loggers where something is for one control."""
    reason = why_not_of_loggers(control, what)
    if reason is not None:
        raise BadInput(reason)
