"""The settings as a file that can be read again; formulas and references of what was used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import foretest as ft
from foretest.offline.result_facts import settings_dict
from foretest.report.method import Step, methods, references, settings_text
from foretest.report.page import environment
from foretest.settings.file import read_settings
from tests.support import SmallLog, build_test

SETTINGS = """
[log]
rewards = ["a \\"quoted\\" name", "<b>"]
unit = "user"
ranking = "shown"

[control]
policy = "mixture"
[[control.components]]
policy = "plackett-luce"
scores = "old"
share = 0.75
[[control.components]]
policy = "epsilon-greedy"
scores = "older"
epsilon = 0.1
share = 0.25

[treatment]
policy = "thurstone"
scores = "new"
sigma = 0.5

[analysis]
estimators = ["cis", "point-ncis-adaptive"]
confidence_level = 0.95
r_max = {"<b>" = 3.0}
"""


def test_the_settings_on_a_page_are_the_settings(tmp_path: Path) -> None:
    """What a page shows, saved as a file, is read as what was run."""
    (tmp_path / "first.toml").write_text(SETTINGS, encoding="utf-8")
    first = read_settings(tmp_path / "first.toml")
    from foretest.aggregation.choose_estimators import choose_estimators

    shown = settings_text(settings_dict(first, choose_estimators(first)[0]))
    (tmp_path / "second.toml").write_text(shown, encoding="utf-8")
    second = read_settings(tmp_path / "second.toml")
    assert second.log == first.log
    assert second.analysis == first.analysis
    assert settings_dict(second, choose_estimators(second)[0]) == settings_dict(first, choose_estimators(first)[0])


def test_every_estimator_has_its_formula_and_its_reference() -> None:
    result = build_test(["is", "nis", "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive"]).run(
        SmallLog().table()
    )
    steps = methods(result)
    formulas = [step.formula for step in steps if step.formula]
    assert formulas == result.settings["analysis"]["estimators"]
    template = environment().get_template("formulas.html").module
    drawn = {key: str(template.formula(key)) for key in [*formulas, "dr", "online", "chi-square"]}  # type: ignore[attr-defined]
    assert len(set(drawn.values())) == len(drawn)
    for text in drawn.values():
        assert text.count("<math") == text.count("</math>") >= 1
        assert text.count("<mrow") == text.count("</mrow>")
    addresses = [link.address for link in references(result)]
    assert addresses[0] == "https://doi.org/10.1145/3159652.3159687"
    assert len(set(addresses)) == len(addresses)


def test_a_named_estimator_is_known_by_its_key_and_one_of_your_own_as_such() -> None:
    result = build_test([ft.NCIS(cap=30, name="thirty")]).run(SmallLog().table())
    assert methods(result)[0].formula == "ncis"
    assert methods(replace(result, provenance={}))[0] == Step("thirty", "", "Your own estimator.")
