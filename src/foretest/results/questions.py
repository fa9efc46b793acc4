"""A question to the user."""

from __future__ import annotations

from typing import NamedTuple

from foretest.log.unit_columns import NO_UNIT


class Question(NamedTuple):
    """What looks like a mistake and may yet be right."""

    kind: str  # by which programs know it
    text: str  # what was seen, the likely mistake, and the remedy


def is_question(note: str) -> bool:
    """Does a note of a result ask the user something?

    >>> is_question("are the scores in the order of the candidates?"), is_question("dr was left out.")
    (True, False)
    """
    return "? " in note or note.endswith("?") or NO_UNIT in note
