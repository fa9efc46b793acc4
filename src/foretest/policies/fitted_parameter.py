"""The one number of a policy that a log can show: "fit" in its place until it is fitted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from foretest.errors import BadInput
from foretest.policies.base import FIT, Policy, known, logged_column
from foretest.policies.epsilon_greedy import EpsilonGreedy
from foretest.policies.own_candidates import OwnCandidates, without_list
from foretest.policies.plackett_luce import PlackettLuce
from foretest.policies.thurstone import Thurstone
from foretest.special import expit, logit


class Parameter(NamedTuple):
    """A policy's number, and the scale without ends that it is fitted on: its logarithm, of a probability the logit."""

    name: str
    to_scale: Callable[[Any], Any]
    from_scale: Callable[[Any], Any]

    def step(self, value: float) -> float:
        """How far the number itself moves with a small step on its scale, relative to that step."""
        return value * (1.0 - value) if self.to_scale is logit else value


_PARAMETERS: dict[type[Policy], Parameter] = {
    PlackettLuce: Parameter("temperature", np.log, np.exp),
    Thurstone: Parameter("sigma", np.log, np.exp),
    EpsilonGreedy: Parameter("epsilon", logit, expit),
}


def parameter_of(policy: Policy) -> Parameter | None:
    """The number of a named policy that a log can show; None where there is none."""
    return _PARAMETERS.get(type(without_list(policy)))


def is_to_fit(policy: Policy) -> bool:
    """Is the policy's number to be fitted?"""
    parameter = parameter_of(policy)
    return parameter is not None and getattr(without_list(policy), parameter.name) == FIT


def number_of(policy: Policy) -> float:
    """The number of a policy that has one, and knows it."""
    parameter = parameter_of(policy)
    assert parameter is not None
    return known(parameter.name, getattr(without_list(policy), parameter.name))


def with_number(policy: Policy, value: float) -> Policy:
    """A copy of the policy with this number."""
    parameter = parameter_of(policy)
    assert parameter is not None
    if isinstance(policy, OwnCandidates):
        return OwnCandidates(with_number(policy.policy, value), policy.candidates)
    other = copy.copy(policy)
    setattr(other, parameter.name, float(value))
    return other


def refuse_fit(policy: Any, role: str, reason: str, remedy: str = "give a number") -> None:
    """Refuse a policy whose number is to be fitted, in a role that has no log to fit it on."""
    if isinstance(policy, Policy) and is_to_fit(policy):
        parameter = parameter_of(policy)
        assert parameter is not None
        raise BadInput(f'{role} has {parameter.name} = "{FIT}", and {reason}: {remedy}.')


def refuse_logged(policy: Policy, role: str) -> None:
    """Refuse to fit the number of a policy whose probabilities were logged: weights would go by two policies."""
    parameter, logged = parameter_of(policy), logged_column(policy)
    if is_to_fit(policy) and parameter is not None and logged is not None:
        raise BadInput(
            f"{role} has {parameter.name} = \"{FIT}\" and the logged probabilities '{logged.name}': these are of one"
            f" {parameter.name} already. Leave the column out to fit it, or give the number."
        )
