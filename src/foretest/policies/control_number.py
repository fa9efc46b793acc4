"""The number of a treatment that is the control's, and the one that is missing where the control has its own."""

from __future__ import annotations

import copy

from foretest.errors import BadInput
from foretest.policies.base import CONTROL, FIT, Policy, given_number, is_open
from foretest.policies.fitted_parameter import parameter_of
from foretest.policies.logging_mixture import components_of, loggers_of
from foretest.policies.mixture import Mixture
from foretest.policies.own_candidates import OwnCandidates, without_list

DEFAULT_NUMBER = 1.0  # of temperature and sigma


def main_policy(policy: Policy) -> Policy:
    """The policy whose scores stand for all: of several loggers the baseline, of a mixture the largest component."""
    policy = without_list(loggers_of(without_list(policy)).baseline_policy)
    if isinstance(policy, Mixture):
        with_scores = [(share, part) for share, part in policy.components if part.score_columns]
        return main_policy(max(with_scores, key=lambda pair: pair[0])[1]) if with_scores else policy
    return policy


def with_control_number(treatment: Policy, control: Policy, role: str) -> Policy:
    """The treatment with the control's number where it was given as "control"; the word stays until that is fitted."""
    inner = without_list(treatment)
    other = inner
    if isinstance(inner, Mixture):
        whose = f"a component of {role}"
        parts = tuple((share, with_control_number(part, control, whose)) for share, part in inner.components)
        if any(part is not before for (_, part), (_, before) in zip(parts, inner.components, strict=True)):
            other = copy.copy(inner)
            other.components = parts
    elif is_control_number(inner):
        other = _in_step(inner, main_policy(control), role)
    if other is inner:
        return treatment
    return OwnCandidates(other, treatment.candidates) if isinstance(treatment, OwnCandidates) else other


def is_control_number(policy: Policy) -> bool:
    """Was the policy's number given as "control"?"""
    return isinstance(given_number(policy), str) and given_number(policy) == CONTROL


def _in_step(policy: Policy, control: Policy, role: str) -> Policy:
    """A policy with the number of a control of its kind; as it is beside that of saved sums, once it is settled."""
    parameter = parameter_of(policy)
    assert parameter is not None
    if type(control) is not type(policy):
        if not is_open(getattr(policy, parameter.name)):
            return policy
        raise BadInput(
            f'{role} has {parameter.name} = "{CONTROL}", and the control is {control.key}, not {policy.key}: give a'
            " number."
        )
    number = getattr(control, parameter.name)
    other = copy.copy(policy)
    setattr(other, parameter.name, CONTROL if is_open(number) else number)
    return other


def refuse_control_number(control: Policy) -> None:
    """Refuse a control whose number is to be the control's."""
    policies = [without_list(control)]
    while policies:
        policy = policies.pop()
        policies += [without_list(part) for part in components_of(policy)]
        if is_control_number(policy):
            parameter = parameter_of(policy)
            assert parameter is not None
            raise BadInput(
                f'the control has {parameter.name} = "{CONTROL}", which is for a treatment: give the number, or'
                f' "{FIT}" if nobody knows it.'
            )


def refuse_missing_number(treatment: Policy, control: Policy, role: str) -> None:
    """Refuse a treatment that would draw at the default where a control of its kind has another number.

    Of a mixture, and of several loggers, the policy counts that stands for all.
    """
    mine, theirs = main_policy(treatment), main_policy(control)
    parameter, number = parameter_of(mine), given_number(theirs)
    if parameter is None or type(mine) is not type(theirs) or given_number(mine) is not None:
        return
    if number is None or isinstance(number, str) or number == DEFAULT_NUMBER:
        return
    raise BadInput(
        f"the control has {parameter.name} = {number:g}, and {role} has none, which would be {DEFAULT_NUMBER:g}: give"
        f' it {parameter.name} = "{CONTROL}" if it would be served with the control\'s, or its own, as in'
        f" {parameter.name} = {DEFAULT_NUMBER}."
    )
