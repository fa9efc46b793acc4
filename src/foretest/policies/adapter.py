"""A user's own policy without the base class: an object with `log_prob` and `sample` as a `Policy`."""

from __future__ import annotations

from typing import Any

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.policies.base import LoggedColumn, Policy, class_path


def as_policy(policy: Any) -> Policy:
    """The policy itself if it is a `Policy`; any other object with every attribute of one, by safe defaults."""
    return policy if isinstance(policy, Policy) else AdaptedPolicy(policy)


class AdaptedPolicy(Policy):
    """An object with `log_prob` and `sample`: what it declares is used, what it lacks has the default of `Policy`.

    It has the object's own `repr`, equality and further attributes, such as `slot_marginals`.
    """

    def __init__(self, own: Any) -> None:
        self._own = own
        self.full_support = bool(getattr(own, "full_support", Policy.full_support))
        self.deterministic = bool(getattr(own, "deterministic", Policy.deterministic))
        self.can_draw = bool(getattr(own, "can_draw", Policy.can_draw))
        logged = getattr(own, "_logged", None)
        self._logged = LoggedColumn(*logged) if isinstance(logged, tuple) else None

    @property
    def declares_columns(self) -> bool:
        """Does the object have `columns`?"""
        return getattr(self._own, "columns", None) is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The declared columns; where none are declared, the object's text attributes."""
        if self.declares_columns:
            return tuple(self._own.columns)
        return tuple(value for value in self._attributes().values() if isinstance(value, str))

    @property
    def score_columns(self) -> tuple[str, ...]:
        return tuple(getattr(self._own, "score_columns", ()))

    @property
    def ranking_columns(self) -> tuple[str, ...]:
        return tuple(getattr(self._own, "ranking_columns", ()))

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        answer: Floats = self._own.log_prob(displays, rankings)
        return answer

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        drawn: Ragged = self._own.sample(displays, uniforms)
        return drawn

    @property
    def key(self) -> str:
        return class_path(self._own)

    def settings(self) -> dict[str, Any]:
        """The path of the object's class, and its attributes."""
        until = {} if self._trained_until is None else {"trained_until": self._trained_until}
        return {"policy": self.key, **self._attributes(), **until}

    def _attributes(self) -> dict[str, Any]:
        own = self._own
        slots = [name for cls in type(own).__mro__ for name in getattr(cls, "__slots__", ())]
        return {name: getattr(own, name) for name in [*getattr(own, "__dict__", {}), *slots] if hasattr(own, name)}

    @property
    def own_class(self) -> type:
        return type(self._own)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # none of its private ones; nor is `_own` there while a copy is being unpickled
            raise AttributeError(name)
        return getattr(self._own, name)

    def __repr__(self) -> str:
        return repr(self._own)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AdaptedPolicy) and bool(self._own == other._own)

    def __hash__(self) -> int:
        return hash(self._own)


def class_name(policy: Policy) -> str:
    """The name of a policy's class, as its author wrote it."""
    from foretest.policies.own_candidates import without_list

    policy = without_list(policy)
    return (policy.own_class if isinstance(policy, AdaptedPolicy) else type(policy)).__name__


def whose_columns(policy: Policy) -> str:
    """Whose columns a policy's are, for a message; of a class that declares none, how they are known.

    >>> from foretest.policies import PlackettLuce
    >>> whose_columns(PlackettLuce("scores"))
    'of PlackettLuce'
    """
    from foretest.policies.own_candidates import without_list

    policy = without_list(policy)
    by_attributes = isinstance(policy, AdaptedPolicy) and not policy.declares_columns
    return f"of {class_name(policy)}" + (", whose text attributes name its columns" if by_attributes else "")
