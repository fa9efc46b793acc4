"""What a key of the settings file means, in a line: the help text of a dataclass field, of a policy's parameter."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

_SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?:\n\n|\Z)", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"^(\w[\w, ]*): (.*(?:\n[ ]+.*)*)", re.MULTILINE)


def explained(default: Any, text: str) -> Any:
    """A dataclass field with a default and a help text."""
    return dataclasses.field(default=default, metadata={"help": text})


def parameter_texts(documented: object) -> dict[str, str]:
    """What the docstring of a class or a function says of each parameter, by name.

    >>> def draw(rows, seed):
    ...     '''Draw rows.
    ...
    ...     Parameters
    ...     ----------
    ...     rows: how many;
    ...         at least 1.
    ...     seed: of the draws.
    ...     '''
    >>> parameter_texts(draw)
    {'rows': 'how many; at least 1.', 'seed': 'of the draws.'}
    """
    section = _SECTION.search(inspect.getdoc(documented) or "")
    texts: dict[str, str] = {}
    for names, text in _ENTRY.findall("" if section is None else section[1]):
        texts |= dict.fromkeys(re.split(r", ", names), " ".join(text.split()))
    return texts
