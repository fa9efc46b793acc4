"""Names from files and folders as text that is safe to show: no control characters, no lone surrogates."""

from __future__ import annotations

import os
import unicodedata

#: a letter of these kinds is shown by its number: controls, marks that turn the direction of text, lone surrogates,
#: breaks of lines and paragraphs
_NUMBERED = ("Cc", "Cf", "Cs", "Zl", "Zp")


def visible(text: str) -> str:
    r"""A text as it can be shown anywhere: what has no shape of its own, or would turn the text around it, is written
    by its number.

    >>> visible("a\u202eb\x1b[1m\ud800"), visible("café ✓")
    ('a\\u202eb\\x1b[1m\\ud800', 'café ✓')
    """
    return "".join(map(_visible_letter, text))


def visible_path(path: str) -> str:
    r"""A path from the file system as text: bytes that are not UTF-8 are written by their number.

    >>> visible_path("tests/caf\udce9")
    'tests/caf\\xe9'
    """
    return visible(os.fsencode(path).decode("utf-8", "backslashreplace"))


def _visible_letter(letter: str) -> str:
    if unicodedata.category(letter) not in _NUMBERED:
        return letter
    return letter.encode("ascii", "backslashreplace").decode() if ord(letter) > 127 else f"\\x{ord(letter):02x}"
