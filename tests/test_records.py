"""Records: dataclasses in all but the time that it takes to define them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

import foretest as ft
from foretest.records import dataclass


def classes(decorate: Callable[..., Any]) -> dict[str, Any]:
    """The same classes by one decorator or the other."""

    @decorate(frozen=True)
    class Point:
        """A point."""

        x: float
        y: float = 2.0
        seen: list[int] = field(default_factory=list, compare=False, repr=False)

    @decorate(frozen=True, kw_only=True)
    class Further(Point):
        """A point with a field more."""

        z: float = 3.0

        def __post_init__(self) -> None:
            object.__setattr__(self, "y", self.y + 1.0)

    @decorate
    class Open:
        """One that may change."""

        x: float
        y: float = 2.0

    @decorate(frozen=True)
    class Near:
        """One with an == and a repr of its own."""

        x: float

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Near) and abs(self.x - other.x) < 0.5

        def __repr__(self) -> str:
            return "near"

    @decorate(frozen=True)
    class Nothing:
        """One without fields."""

    return {c.__name__: c for c in (Point, Further, Open, Near, Nothing)}


OURS, PYTHONS = classes(dataclass), classes(dataclasses.dataclass)
ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "Point": [{"x": 1.0}, {"x": 1.0, "y": 2.0, "seen": [1]}, {"x": float("nan")}, {"x": (1, 2), "y": "text"}],
    "Further": [{"x": 1.0}, {"x": 1.0, "z": 4.0}],
    "Open": [{"x": 1.0}, {"x": 1.0, "y": 3.0}],
    "Near": [{"x": 1.0}, {"x": 1.25}, {"x": 9.0}],
    "Nothing": [{}],
}


@pytest.mark.parametrize("name", OURS)
def test_answers_are_those_of_python(name: str) -> None:
    ours, pythons = ([made[name](**some) for some in ARGUMENTS[name]] for made in (OURS, PYTHONS))
    assert [[a == b for b in ours] for a in ours] == [[a == b for b in pythons] for a in pythons]
    assert [repr(a).rpartition(".")[2] for a in ours] == [repr(a).rpartition(".")[2] for a in pythons]
    assert repr([*map(dataclasses.asdict, ours)]) == repr([*map(dataclasses.asdict, pythons)])
    if name == "Open":
        for one in (*ours, *pythons):
            with pytest.raises(TypeError, match="unhashable"):
                hash(one)
    else:
        assert [hash(a) for a in ours] == [hash(a) for a in pythons]
    assert ours[0] != pythons[0]
    assert OURS[name].__match_args__ == PYTHONS[name].__match_args__


def test_a_frozen_instance_stays_as_it_is() -> None:
    for made in (OURS, PYTHONS):
        for one in (made["Point"](1.0), made["Further"](1.0)):
            for name in ("x", "seen", "other"):
                with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot assign to field '{name}'"):
                    setattr(one, name, 5.0)
            with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
                del one.x
        assert made["Further"](1.0).y == 3.0
        changed = dataclasses.replace(made["Point"](1.0), y=7.0)
        assert (changed.x, changed.y, changed.seen) == (1.0, 7.0, [])
        opened = made["Open"](1.0)
        opened.y = 5.0
        assert opened == made["Open"](1.0, 5.0)


@pytest.mark.parametrize("base", [OURS["Point"], PYTHONS["Point"]])
def test_others_build_on_either(base: Any) -> None:
    """A user's own class may be made by Python's decorator, or be a plain one with attributes of its own."""
    further: Any = dataclasses.make_dataclass("Mine", [("z", float, 3.0)], bases=(base,), frozen=True)
    assert (further(1.0) == further(1.0), further(1.0) == further(2.0)) == (True, False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        further(1.0).z = 4.0
    with pytest.raises(TypeError, match="non-frozen"):
        dataclasses.make_dataclass("Mine", [("z", float, 3.0)], bases=(base,))

    class Plain(base):  # type: ignore[misc]  # the base is a parameter
        def __init__(self) -> None:
            super().__init__(1.0)
            self.more = 2.0

    assert Plain().more == 2.0
    assert repr(Plain()).endswith("Plain(x=1.0, y=2.0)")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Plain().x = 4.0


@pytest.mark.parametrize("one", [ft.LogColumns(rewards=("click",)), ft.NCIS(cap=3.0)])
def test_instances_travel(one: Any) -> None:
    """Spark's executors and other processes get the same objects."""
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == copy.copy(one) == one
    assert hash(copy.deepcopy(one)) == hash(one)
