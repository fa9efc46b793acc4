"""Pictures taken apart, and documents to draw."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import numpy as np

from foretest.history.agreement import DECISIONS
from foretest.report.pictures import svg
from foretest.report.theme import LIGHT, SCHEMA

HOSTILE = "a.b[c] </script> \"q\" 'p' ${x} {{y}} \\ <img src=x onerror=alert(1)>"


class Drawing:
    """A specification as drawn."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.text = svg({**spec, "config": LIGHT})
        self.root = ET.fromstring(self.text)

    def marks(self, name: str) -> int:
        """How many marks the layer of that name has."""
        return len(self.shapes(name))

    def shapes(self, name: str) -> list[ET.Element]:
        groups = [g for g in self.root.iter() if f"{name}_marks" in g.get("class", "").split()]
        return [shape for group in groups for shape in group]

    def words(self) -> list[str]:
        return ["".join(element.itertext()) for element in self.root.iter("{http://www.w3.org/2000/svg}text")]

    def width(self) -> float:
        return float(self.root.get("width", "nan"))


def walk(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every leaf of a specification, with the keys that lead to it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from walk(item, (*path, "[]"))
    else:
        yield path, value


def assert_sound(spec: dict[str, Any], *names: str) -> None:
    """What holds of every chart: a title, alt text with numbers, no address, and names only as data."""
    assert spec["$schema"] == SCHEMA
    assert spec["title"]["text"]
    assert re.search(r"\d", spec["description"])
    for path, leaf in walk(spec):
        assert "url" not in path
        if isinstance(leaf, str) and path not in (("$schema",), ("description",)) and "values" not in path:
            assert "http" not in leaf
            assert not any(name in leaf for name in names), (path, leaf)
        assert not any(name in key for key in path for name in names)


def simulated_tests(n: int = 9, seed: int = 0, label: str = "cis") -> list[dict[str, Any]]:
    """Tests as agreement.json has them."""
    g = np.random.default_rng(seed)
    words = {value: word for word, value in DECISIONS.items() if word != "insufficient"}
    tests = []
    for k in range(n):
        sides = []
        for _ in range(2):
            value, half = g.normal(scale=0.05), 0.03 + 0.02 * g.random()
            lower, upper = value - half, value + half
            sides.append({
                "rel_effect_size": value, "rel_effect_size_ci_lower": lower, "rel_effect_size_ci_upper": upper,
                "verdict": words[int(lower > 0) - int(upper < 0)], "word": words[int(lower > 0) - int(upper < 0)],
                "range": {"kind": "noise", "rel_ci_lower": lower, "rel_ci_upper": upper},
            })  # fmt: skip
        tests.append({"name": f"test {k}", "online": sides[0], "offline": {label: sides[1]}})
    return tests
