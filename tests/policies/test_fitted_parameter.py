"""The word "fit" in place of a policy's number: where it may stand, and what it says elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import foretest as ft
from foretest.errors import BadInput
from foretest.policies import EpsilonGreedy, Mallows, Mixture, OwnCandidates, PlackettLuce, Policy, Thurstone
from foretest.policies.fitted_parameter import is_to_fit, number_of, parameter_of, with_number
from foretest.settings.file import read_settings
from tests.policies.test_likelihood_fit import displays_of

TO_FIT = [PlackettLuce("s", "fit"), Thurstone("s", "fit"), EpsilonGreedy("s", "fit")]


@pytest.mark.parametrize("policy", TO_FIT)
def test_a_number_takes_the_place_of_fit(policy: Policy) -> None:
    parameter = parameter_of(policy)
    assert parameter is not None
    assert is_to_fit(policy)
    assert policy.settings()[parameter.name] == "fit"
    known = with_number(policy, 0.25)
    assert not is_to_fit(known)
    assert number_of(known) == known.settings()[parameter.name] == 0.25
    assert is_to_fit(policy)  # a copy was changed
    wrapped = with_number(OwnCandidates(policy, "c"), 0.25)
    assert isinstance(wrapped, OwnCandidates)
    assert number_of(wrapped) == 0.25
    tau = parameter.to_scale(0.25)
    step = (parameter.from_scale(tau + 1e-6) - parameter.from_scale(tau - 1e-6)) / 2e-6
    assert parameter.step(0.25) == pytest.approx(step, rel=1e-6)


@pytest.mark.parametrize("policy", TO_FIT)
def test_nothing_is_priced_before_the_fit(policy: Policy) -> None:
    displays = displays_of(np.zeros((2, 3)), np.zeros((2, 1)))
    with pytest.raises(BadInput, match=r'= "fit" is for the control of an offline test'):
        policy.log_prob(displays, displays.ranking)
    with pytest.raises(BadInput, match="whose log shows the number"):
        policy.sample(displays, np.full((2, 4), 0.5))


def test_what_is_no_such_number_is_not_fitted() -> None:
    with pytest.raises(BadInput, match="dispersion = 'fit'"):
        Mallows("s", "fit")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="temperature = 'guess': expected a number above 0"):
        PlackettLuce("s", "guess")
    with pytest.raises(BadInput, match='a component of a mixture has temperature = "fit", and no row says which'):
        Mixture([(0.5, PlackettLuce("s", "fit")), (0.5, PlackettLuce("t"))])


def settings(control: object, treatment: object, **analysis: object) -> ft.OfflineTest:
    log = ft.LogColumns(rewards=["click"], ranking="ranking")
    return ft.OfflineTest(log=log, control=control, treatment=treatment, **analysis)  # type: ignore[arg-type]


def test_roles_without_a_log_of_their_own() -> None:
    with pytest.raises(BadInput, match='the treatment has sigma = "fit", and a treatment has no log of its own'):
        settings(PlackettLuce("s"), Thurstone("t", "fit"))
    with pytest.raises(BadInput, match="the treatment 'b' has temperature"):
        settings(PlackettLuce("s"), {"a": PlackettLuce("t"), "b": PlackettLuce("t", "fit")})
    with pytest.raises(BadInput, match="the logged probabilities 'p': these are of one temperature already"):
        settings(PlackettLuce("s", "fit", prob="p"), PlackettLuce("t"))


def test_a_settings_file(tmp_path: Path) -> None:
    text = """
    [log]
    rewards = ["click"]
    ranking = "ranking"
    [control]
    policy = "epsilon-greedy"
    scores = "s"
    epsilon = "fit"
    [treatment]
    policy = "plackett-luce"
    scores = "t"
    """
    file = tmp_path / "test.toml"
    file.write_text(text)
    assert is_to_fit(read_settings(file).control)
    file.write_text(text.replace('scores = "t"', 'scores = "t"\n    temperature = "fit"'))
    with pytest.raises(BadInput, match=r"test.toml: the treatment has temperature"):
        read_settings(file)
