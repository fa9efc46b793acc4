"""A user's own policy without the base class has every attribute of a policy."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.policies.adapter import as_policy, class_name, whose_columns
from foretest.policies.base import logged_column
from foretest.policies.logging_mixture import LoggingMixture


class Bare:
    """Two answers, and two attributes of which one is text."""

    __slots__ = ("column", "number")

    def __init__(self, column: str, number: float = 2.0) -> None:
        self.column, self.number = column, number

    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> np.ndarray:
        return np.full(len(displays), -self.number)

    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> ft.Ragged:
        return displays.ranking

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bare) and self.column == other.column

    def __hash__(self) -> int:
        return hash(self.column)

    def __repr__(self) -> str:
        return f"Bare!{self.column}"


class Rich(Bare):
    columns = ("x", "y")
    score_columns = ("x",)
    full_support = True
    deterministic = True
    can_draw = False

    def slot_marginals(self, displays: ft.Displays) -> str:
        return "marginals"


DISPLAYS = ft.Displays({}, ft.Ragged.of([[0], [1]]), np.array([2, 2]), np.zeros(2, np.uint64))


def test_a_policy_is_returned_unchanged() -> None:
    policy = ft.PlackettLuce("s")
    assert as_policy(policy) is policy
    assert as_policy(as_policy(Bare("a"))) == as_policy(Bare("a"))


def test_what_an_object_lacks_has_the_defaults_of_a_policy() -> None:
    policy = as_policy(Bare("a"))
    assert (policy.full_support, policy.deterministic, policy.can_draw) == (False, False, True)
    assert (policy.columns, policy.score_columns, logged_column(policy)) == (("a",), (), None)
    assert not hasattr(policy, "slot_marginals")
    assert policy.settings() == {"policy": f"{__name__}:Bare", "column": "a", "number": 2.0}
    assert policy.key == f"{__name__}:Bare"


def test_what_an_object_declares_is_used() -> None:
    policy: Any = as_policy(Rich("a"))
    assert (policy.full_support, policy.deterministic, policy.can_draw) == (True, True, False)
    assert (policy.columns, policy.score_columns) == (("x", "y"), ("x",))
    assert policy.slot_marginals(DISPLAYS) == "marginals"
    assert policy.log_prob(DISPLAYS, DISPLAYS.ranking).tolist() == [-2.0, -2.0]
    assert policy.sample(DISPLAYS, np.empty((2, 3))) is DISPLAYS.ranking


def test_it_is_shown_compared_and_copied_as_the_object() -> None:
    policy = as_policy(Bare("a"))
    assert repr(policy) == "Bare!a"
    assert policy == as_policy(Bare("a", 3.0))
    assert policy != as_policy(Bare("b"))
    assert policy != Bare("a")
    assert hash(policy) == hash(Bare("a"))
    copy = pickle.loads(pickle.dumps(policy))
    assert copy == policy
    assert copy.settings() == policy.settings()


def test_messages_name_the_users_class() -> None:
    assert class_name(as_policy(Rich("a"))) == "Rich"
    assert whose_columns(as_policy(Rich("a"))) == "of Rich"
    assert whose_columns(as_policy(Bare("a"))) == "of Bare, whose text attributes name its columns"


@pytest.mark.parametrize("wrap", [
    lambda own: ft.Mixture([(1.0, own), (3.0, ft.PlackettLuce("s"))]),
    lambda own: LoggingMixture({"own": own, "other": ft.PlackettLuce("s")}, "own"),
])  # fmt: skip
def test_parts_of_other_policies_may_be_objects(wrap: Any) -> None:
    policy = wrap(Bare("a"))
    assert policy.columns == ("a", "s")
    assert policy.score_columns == ("s",)
    assert policy.can_draw


def test_one_object_in_two_roles_and_several_treatments() -> None:
    own: Any = Bare("a")
    log = ft.LogColumns(rewards=["click"], ranking="ranking")
    settings = ft.OfflineTest(log=log, control=own, treatment={"one": own, "two": Rich("b")}).settings
    assert settings.treatments["one"] is settings.treatment
    assert settings.treatment == settings.control
    assert [policy.columns for policy in settings.treatments.values()] == [("a",), ("x", "y")]
    assert not settings.by_treatment()["two"].treatment.can_draw
