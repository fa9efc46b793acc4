"""Dataclasses that are quick to define.

Python's own decorator writes the source of six methods for a frozen class and compiles each of them: for the two
hundred classes that a run imports that takes a sixth of a small run. Here only `__init__` is written so. The others are
the same function for all classes, which goes through the fields; what they answer is the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

_PARAMS = "__dataclass_params__"

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, kw_only=False):
        """`dataclasses.dataclass` with its usual answers of ==, hash and repr.

        An attribute of a frozen instance is set once, by `__init__`.

        >>> @dataclass(frozen=True)
        ... class Interval:
        ...     lower: float
        ...     upper: float = 1.0
        >>> Interval(0.5), Interval(0.5) == Interval(0.5, 1.0), hash(Interval(0.5)) == hash((0.5, 1.0))
        (Interval(lower=0.5, upper=1.0), True, True)
        >>> Interval(0.5).upper = 2.0
        Traceback (most recent call last):
        dataclasses.FrozenInstanceError: cannot assign to field 'upper'
        """
        return _defined(cls, frozen, kw_only) if cls is not None else lambda it: _defined(it, frozen, kw_only)


def _defined(cls: type, frozen: bool, kw_only: bool) -> type:
    own, is_based = vars(cls), any(map(dataclasses.is_dataclass, cls.__bases__))
    # a base that is frozen takes no class that Python's own decorator has not made frozen too
    dataclasses.dataclass(repr=False, eq=False, frozen=frozen and is_based, kw_only=kw_only)(cls)
    described = own[_PARAMS]
    described.repr = described.eq = True
    described.frozen = frozen
    methods: dict[str, Any] = {"__repr__": _repr, "__eq__": _equal, "__hash__": _hash if frozen else None}
    if frozen and not is_based:
        methods |= {"__setattr__": _set_once, "__delattr__": _keep}
    fields = dataclasses.fields(cls)
    compared = _values([field.name for field in fields if field.compare])
    for name, value in {**methods, "__compared__": compared, "__shown__": [f.name for f in fields if f.repr]}.items():
        if own.get(name) is None:  # a class that defines == has None in place of a hash
            setattr(cls, name, value)
    return cls


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives some attributes of an instance as a tuple."""
    if len(names) > 1:
        return staticmethod(attrgetter(*names))
    return staticmethod(lambda instance: tuple(getattr(instance, name) for name in names))


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.__compared__(self) == self.__compared__(other)


def _hash(self: Any) -> int:
    return hash(self.__compared__(self))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__shown__)
    return f"{self.__class__.__qualname__}({shown})"


def _set_once(self: Any, name: str, value: Any) -> None:
    is_field = name in self.__dataclass_fields__
    if name in self.__dict__ if is_field else _PARAMS in vars(type(self)):  # a plain subclass may have more
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    self.__dict__[name] = value


def _keep(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
