"""Candidates of their own in settings files and in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import foretest as ft
from foretest.policies.own_candidates import OwnCandidates
from foretest.settings.file import read_settings

FILE = """\
[log]
rewards = ["click"]
ranking = "shown"
[control]
policy = "mixture"
candidates = "a"
[[control.components]]
share = 1
policy = "mallows"
scores = "s"
dispersion = 0.5
[[treatment]]
name = "one"
policy = "fixed"
ranking = "r"
candidates = "b"
[[treatment]]
name = "two"
policy = "top-k"
scores = "t"
candidates = "a"
"""

MINE = """\
import foretest as ft

class Mine(ft.PlackettLuce):
    pass

class Taking(ft.PlackettLuce):
    def __init__(self, scores, candidates):
        super().__init__(scores)
        self.taken = candidates
"""


def test_a_settings_file_names_a_list_for_each_policy(tmp_path: Path) -> None:
    (tmp_path / "test.toml").write_text(FILE)
    settings = read_settings(tmp_path / "test.toml")
    assert repr(settings.control).endswith(", candidates='a')")
    assert isinstance(settings.control, OwnCandidates)
    assert [policy.settings() for policy in settings.treatments.values()] == [
        {"policy": "fixed", "ranking": "r", "candidates": "b"},
        {"policy": "top-k", "scores": "t", "candidates": "a"},
    ]
    assert settings.candidates == "a"
    assert settings.control.settings()["candidates"] == "a"


def test_a_class_of_ones_own_may_have_a_list(tmp_path: Path) -> None:
    """The key is for Foretest, unless the class takes it itself."""
    (tmp_path / "mine.py").write_text(MINE)
    control = '[control]\npolicy = "mine:Mine"\nscores = "s"\ncandidates = "a"\n'
    log = '[log]\nrewards = ["click"]\nranking = "shown"\n'
    (tmp_path / "test.toml").write_text(log + control + control.replace("control", "treatment"))
    settings = read_settings(tmp_path / "test.toml")
    assert isinstance(settings.control, OwnCandidates)
    assert settings.control.settings() == {"policy": "mine:Mine", "scores": "s", "temperature": 1.0, "candidates": "a"}
    taking = control.replace("Mine", "Taking")
    (tmp_path / "test.toml").write_text(log + taking + taking.replace("control", "treatment"))
    taken = read_settings(tmp_path / "test.toml").control
    assert not isinstance(taken, OwnCandidates)
    assert taken.taken == "a"  # type: ignore[attr-defined]


def test_other_settings_are_as_they_were() -> None:
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="r", candidates="items"),
        control=ft.PlackettLuce("a"),
        treatment=ft.PlackettLuce("b"),
    )
    assert test.settings.candidates == "items"
    assert "candidates" not in test.settings.control.settings()


def test_normalisers_that_would_be_biased_are_refused() -> None:
    own = ft.OwnCandidates(ft.PlackettLuce("a"), "items")
    with pytest.raises(ft.BadInput, match='normaliser = "midzuno-sen" is biased where the treatment may show items'):
        ft.OfflineTest(
            log=ft.LogColumns(rewards=["click"], ranking="r"), control=own, treatment=own, normaliser="midzuno-sen"
        )
