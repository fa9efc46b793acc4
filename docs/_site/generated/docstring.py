"""A docstring in its parts: prose, parameters, what is returned, what is raised, examples."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any, NamedTuple

from foretest.settings.key_help import parameter_texts

_SECTION = re.compile(r"^(Parameters|Returns|Raises)\n-+\n((?:.+\n?)*)", re.MULTILINE)
_COMMENT = re.compile(r"^    (\w+): [^#]*?(?:  # (.*))?$")
_BELOW = re.compile(r'^    """(.*)"""$')  # a field's own docstring


class Parts(NamedTuple):
    """What a docstring says."""

    prose: str
    parameters: dict[str, str]
    returns: str
    raises: dict[str, str]
    examples: list[str]  # blocks of Markdown


def parts_of(documented: object) -> Parts:
    """The parts of an object's own docstring."""
    text = inspect.cleandoc(getattr(documented, "__doc__", None) or "")
    sections = {match[1]: match[2] for match in _SECTION.finditer(text)}
    paragraphs = re.split(r"\n\n+", _SECTION.sub("", text).strip())
    prose, examples = _prose_and_examples(paragraphs)
    return Parts(
        "\n\n".join(prose),
        parameter_texts(documented) if "Parameters" in sections else {},
        " ".join(sections.get("Returns", "").split()),
        _entries(sections.get("Raises", "")),
        examples,
    )


def _prose_and_examples(paragraphs: list[str]) -> tuple[list[str], list[str]]:
    """An example takes the sentence above it with it, if that ends with a colon."""
    prose: list[str] = []
    examples: list[str] = []
    for paragraph in paragraphs:
        if paragraph.startswith(">>> "):
            lead = [prose.pop()] if prose and prose[-1].endswith(":") else []
            examples.append("\n\n".join([*lead, f"```python\n{paragraph}\n\n```"]))
        elif paragraph:
            prose.append(paragraph)
    return prose, examples


def _entries(section: str) -> dict[str, str]:
    joined = re.sub(r"\n +", " ", section)
    return {name: text for name, _, text in (line.partition(": ") for line in joined.splitlines()) if text}


def field_texts(cls: type[Any]) -> dict[str, str]:
    """The text of each field of a dataclass or a NamedTuple: its help, its comment, or the docstring below it."""
    comments: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("foretest"):
            lines = inspect.getsource(base).splitlines()
            for line, following in zip(lines, [*lines[1:], ""], strict=True):
                if match := _COMMENT.match(line):
                    below = _BELOW.match(following)
                    comments[match[1]] = match[2] or (below[1] if below else comments.get(match[1], ""))
    helps = (
        {f.name: f.metadata.get("help", "") for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else {}
    )
    return {name: helps.get(name) or text for name, text in comments.items()}
