"""A question to the user."""

from __future__ import annotations

from typing import NamedTuple


class Question(NamedTuple):
    """What looks like a mistake and may yet be right."""

    kind: str  # by which programs know it
    text: str  # what was seen, the likely mistake, and the remedy
