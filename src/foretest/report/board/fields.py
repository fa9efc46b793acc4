"""Members of a JSON document read by type: what is not of its type is damage, named by its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from foretest.errors import is_finite_number
from foretest.formatting import shortened, visible
from foretest.records import dataclass


class Damaged(ValueError):
    """A document that is not as Foretest writes it; the message is a sentence."""


@dataclass(frozen=True)
class Fields:
    """An object of a document, and its place in it. A member that is absent or null is None."""

    content: dict[str, Any]
    place: str = ""

    def text(self, name: str) -> str | None:
        """A text."""
        value = self.content.get(name)
        return None if value is None else self._checked(name, value, str, "a text")

    def word(self, name: str, known: tuple[str, ...]) -> str:
        """A word, which must be there and be one of those that are known."""
        value = self.text(name)
        if value not in known:
            raise Damaged(f"{self._at(name)} should be one of {', '.join(known)}.")
        return value

    def number(self, name: str) -> float | None:
        """A number."""
        value = self.content.get(name)
        if value is not None and not is_finite_number(value):
            raise Damaged(f"{self._at(name)} should be a number.")
        return None if value is None else float(value)

    def flag(self, name: str) -> bool:
        """True or false; false where it is absent."""
        return bool(self._checked(name, self.content.get(name, False), bool, "true or false"))

    def member(self, name: str) -> Fields | None:
        """An object."""
        value = self.content.get(name)
        return None if value is None else Fields(self._checked(name, value, dict, "an object"), self._at(name))

    def required(self, name: str) -> Fields:
        """An object that must be there."""
        value = self.member(name)
        if value is None:
            raise Damaged(f"{self._at(name)} is missing.")
        return value

    def members(self) -> Iterator[tuple[str, Fields]]:
        """All members, which must be objects, by name."""
        return ((name, self.required(name)) for name in self.content)

    def items(self, name: str) -> list[Fields]:
        """A list of objects; empty where it is absent."""
        values = self.content.get(name)
        if values is None:
            return []
        self._checked(name, values, list, "a list")
        place = self._at(name)
        for value in values:
            self._checked(name, value, dict, "a list of objects")
        return [Fields(value, f"{place}[{number}]") for number, value in enumerate(values)]

    def _checked(self, name: str, value: Any, kind: type, meaning: str) -> Any:
        if not isinstance(value, kind):
            raise Damaged(f"{self._at(name)} should be {meaning}.")
        return value

    def _at(self, name: str) -> str:
        return f"{self.place}.{shortened(visible(name), 80)}".removeprefix(".")


def read_document(content: bytes) -> Fields | None:
    """The document in a file; None if it is JSON, but nothing that Foretest wrote."""
    if not content.strip():
        raise Damaged("the file is empty.")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:  # also bytes that are no text, and numbers of endless digits
        where = f" after line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise Damaged(f"damaged or cut short: it is not JSON{where}.") from None
    if not isinstance(document, dict) or not isinstance(document.get("foretest"), str) or "schema" not in document:
        return None
    return Fields(document)


def refuse_other_schema(document: Fields, known: int) -> None:
    """Refuse a document of a schema that this version does not know."""
    if document.content["schema"] != known:
        raise Damaged(
            f"Foretest {shortened(visible(document.text('foretest') or ''), 40)} wrote it, under schema"
            f" {shortened(visible(str(document.content['schema'])), 40)}; this version reads schema {known}."
        )
