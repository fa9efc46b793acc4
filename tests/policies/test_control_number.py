"""A treatment's number that is the control's, and the one that is missing beside a control with its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.errors import BadInput
from foretest.policies import EpsilonGreedy, Mallows, Mixture, OwnCandidates, PlackettLuce, Policy, Thurstone, TopK
from foretest.policies.fitted_parameter import number_of
from foretest.settings.file import read_settings
from foretest.settings.settings import Settings
from foretest.storage.saved.json_values import tables_of
from tests.policies.test_likelihood_fit import displays_of

REMEDY = " if it would be served with the control's, or its own, as in {name} = 1.0."


def settings(control: Any, treatment: Any, **analysis: Any) -> Settings:
    logger = "policy" if isinstance(control, dict) else None
    log = ft.LogColumns(rewards=["click"], ranking="ranking", logger=logger)
    return ft.OfflineTest(log=log, control=control, treatment=treatment, **analysis).settings


@pytest.mark.parametrize(
    ("control", "treatment", "sentence"),
    [
        (
            PlackettLuce("s", 0.45), PlackettLuce("t"),
            "the control has temperature = 0.45, and the treatment has none, which would be 1: give it temperature ="
            ' "control"',
        ),
        (
            Thurstone("s", 2), Thurstone("t"),
            'the control has sigma = 2, and the treatment has none, which would be 1: give it sigma = "control"',
        ),
        (
            PlackettLuce("s", 0.45), {"a": PlackettLuce("t", 1.0), "b": PlackettLuce("t")},
            "the control has temperature = 0.45, and the treatment 'b' has none",
        ),
        (
            Mixture([(0.9, PlackettLuce("s", 0.45)), (0.1, PlackettLuce("s"))]), PlackettLuce("t"),
            "the control has temperature = 0.45, and the treatment has none",
        ),
        (
            PlackettLuce("s", 0.45), Mixture([(0.9, PlackettLuce("t")), (0.1, TopK("t"))]),
            "the control has temperature = 0.45, and the treatment has none",
        ),
    ],
)  # fmt: skip
def test_a_number_that_only_the_control_has_is_refused(control: Any, treatment: Any, sentence: str) -> None:
    with pytest.raises(BadInput) as error:
        settings(control, treatment)
    name = "sigma" if isinstance(control, Thurstone) else "temperature"
    assert str(error.value).startswith(sentence)
    assert str(error.value).endswith(f'{name} = "control"' + REMEDY.format(name=name))


def test_of_several_loggers_it_is_the_baselines() -> None:
    loggers = {"new": PlackettLuce("s", 0.45), "old": PlackettLuce("s")}
    assert number_of(settings(loggers, PlackettLuce("t"), baseline="old").treatment) == 1.0
    with pytest.raises(BadInput, match=r"the control has temperature = 0\.45, and the treatment has none"):
        settings(loggers, PlackettLuce("t"), baseline="new")
    assert number_of(settings(loggers, PlackettLuce("t", "control"), baseline="new").treatment) == 0.45


def test_with_a_list_of_its_own() -> None:
    log = ft.LogColumns(rewards=["click"], ranking="ranking")

    def treatment(*number: Any) -> Policy:
        own = OwnCandidates(PlackettLuce("t", *number), "new_items")
        return ft.OfflineTest(
            log=log, control=OwnCandidates(PlackettLuce("s", 0.45), "items"), treatment=own
        ).settings.treatment

    with pytest.raises(BadInput, match="and the treatment has none"):
        treatment()
    assert number_of(treatment("control")) == 0.45
    assert treatment("control").settings()["candidates"] == "new_items"


@pytest.mark.parametrize(
    ("control", "treatment", "number"),
    [
        (PlackettLuce("s", 1.0), PlackettLuce("t"), 1.0),
        (PlackettLuce("s"), PlackettLuce("t", 0.5), 0.5),
        (PlackettLuce("s", 0.5), PlackettLuce("t", 1.0), 1.0),
        (PlackettLuce("s", "fit"), PlackettLuce("t"), 1.0),  # a question, once it is known
        (PlackettLuce("s", 0.5), Thurstone("t"), 1.0),
        (Thurstone("s", 0.5), PlackettLuce("t"), 1.0),
        (EpsilonGreedy("s", 0.5), PlackettLuce("t"), 1.0),
    ],
)
def test_what_is_not_refused(control: Policy, treatment: Policy, number: float) -> None:
    assert number_of(settings(control, treatment).treatment) == number


@pytest.mark.parametrize(
    ("control", "treatment"),
    [
        (PlackettLuce("s", 0.45), PlackettLuce("s", "control")),
        (PlackettLuce("s"), PlackettLuce("s", "control")),
        (Thurstone("s", 2.0), Thurstone("s", "control")),
        (EpsilonGreedy("s", 0.1), EpsilonGreedy("s", "control")),
    ],
)
def test_the_controls_number_is_as_if_it_were_written(control: Policy, treatment: Policy) -> None:
    """In what is saved, too: sums and fingerprints are those of the number."""
    number = number_of(control)
    written = type(treatment)("s", number)  # type: ignore[call-arg]
    both = [settings(control, policy) for policy in (treatment, written)]
    assert number_of(both[0].treatment) == number
    assert tables_of(both[0]) == tables_of(both[1])
    displays = displays_of(np.array([[0.1, 2.0, 1.0]]), np.array([[1, 2]]))
    with pytest.raises(BadInput, match='= "control" is for the treatment of an offline test: here a number is needed'):
        treatment.sample(displays, np.full((1, 4), 0.5))  # the policy itself is as it was


def test_a_component_of_a_mixture() -> None:
    parts = [(0.9, PlackettLuce("t", "control")), (0.1, TopK("t"))]
    mixture = settings(PlackettLuce("s", 0.45), Mixture(parts)).treatment
    assert isinstance(mixture, Mixture)
    assert mixture.settings()["components"][0]["temperature"] == 0.45
    assert mixture.components[1][1] is parts[1][1]


def test_where_it_may_not_stand() -> None:
    for control in (PlackettLuce("s", "control"), Mixture([(1.0, PlackettLuce("s", "control"))])):
        with pytest.raises(BadInput) as error:
            settings(control, PlackettLuce("t", 1.0))
        assert str(error.value) == (
            'the control has temperature = "control", which is for a treatment: give the number, or "fit" if nobody'
            " knows it."
        )
    for control in (TopK("s"), Thurstone("s", 0.5), ft.Logged(prob="p")):
        with pytest.raises(BadInput) as error:
            settings(control, PlackettLuce("t", "control"))
        assert str(error.value) == (
            f'the treatment has temperature = "control", and the control is {control.key}, not plackett-luce: give a'
            " number."
        )
    with pytest.raises(BadInput, match="dispersion = 'control'"):
        Mallows("s", "control")  # type: ignore[arg-type]


def test_a_settings_file(tmp_path: Path) -> None:
    text = """
    [log]
    rewards = ["click"]
    ranking = "ranking"
    [control]
    policy = "plackett-luce"
    scores = "s"
    temperature = 0.45
    [treatment]
    policy = "plackett-luce"
    scores = "t"
    """
    file = tmp_path / "test.toml"
    file.write_text(text)
    with pytest.raises(BadInput, match=r"test\.toml: the control has temperature = 0\.45, and the treatment has none"):
        read_settings(file)
    for number, value in (('"control"', 0.45), ("1.0", 1.0)):
        file.write_text(text + f"temperature = {number}\n")
        assert number_of(read_settings(file).treatment) == value
