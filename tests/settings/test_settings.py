"""The settings dataclasses: defaults, and the values they take and refuse."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.errors import BadInput, RowFault, check_number, choose, nearest
from foretest.settings.analysis import Analysis
from foretest.settings.log_columns import LogColumns
from foretest.settings.online import Online
from foretest.settings.settings import Settings
from foretest.settings.unknown_keys import refuse_unknown

DEFAULTS = {
    "estimators": None,
    "cap": 100.0,
    "capping": "max",
    "weight_bound": "auto",
    "headline": None,
    "normaliser": "auto",
    "draws": 256,
    "confidence_level": 0.90,
    "interval": "bootstrap",
    "n_resamples": 1000,
    "buckets": 1024,
    "strata": "value-model",
    "strata_base": 2.0,
    "value": None,
    "value_log": None,
    "predictions": None,
    "folds": 2,
    "seed": 0,
    "gamma": None,
    "gamma_slots": (1.3, 2.0),
    "examination": None,
    "decide_on": "interval",
    "r_max": None,
    "ignore_audit": False,
    "baseline": None,
    "window": None,
}


def test_defaults() -> None:
    assert dataclasses.asdict(Analysis()) == DEFAULTS
    assert Online().split == (0.5, 0.5)
    columns = LogColumns(rewards=["click"])
    assert dataclasses.asdict(columns) == {
        "rewards": ("click",), "unit": None, "ranking": None, "candidates": None, "id": None, "date": None,
        "features": (), "slot_rewards": None, "segments": (), "logger": None, "item_features": (),
        "layout": "display", "display": None, "item": None, "slot": None, "first_slot": 1, "tables": None,
        "keep": None, "time": None, "reward_time": None, "reward_age": None, "read_at": None,
    }  # fmt: skip


def test_every_analysis_key_has_a_help_text() -> None:
    assert all(field.metadata["help"] for field in dataclasses.fields(Analysis))


def test_settings_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Analysis().cap = 3.0  # type: ignore[misc]
    analysis = Analysis()
    assert analysis.replace(cap=3.0).cap == 3.0
    assert analysis.cap == 100.0


@pytest.mark.parametrize(
    "values",
    [
        {"cap": 1e-3},
        {"cap": 5},
        {"cap": np.float32(2.5)},
        {"weight_bound": 1},
        {"confidence_level": 0.999},
        {"n_resamples": np.int64(10)},
        {"draws": 2},
        {"seed": 2**63},
        {"r_max": 3},
        {"r_max": {"click": 1, "revenue": 50.0}},
        {"estimators": ["ncis", ft.NCIS(cap=3, name="ncis-3")]},
        {"estimators": ("is",)},
        {"value_log": Path("other.parquet")},
    ],
)
def test_good_values(values: dict[str, Any]) -> None:
    analysis = Analysis(**values)
    for name, value in values.items():
        kept = getattr(analysis, name)
        assert kept == (tuple(value) if name == "estimators" else str(value) if name == "value_log" else value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"cap": None}, "cap = None: expected a number above 0."),
        ({"strata_base": 1.0}, "strata_base = 1.0: expected a number above 1."),
        ({"strata": 3}, 'strata = 3: expected "value-model" or the name of a column.'),
        ({"folds": 1}, "folds = 1: expected a whole number of at least 2."),
        ({"buckets": True}, "buckets = True: expected a whole number of at least 2."),
        ({"seed": -1}, "seed = -1: expected a whole number of at least 0."),
        ({"seed": 1.0}, "seed = 1.0: expected a whole number of at least 0."),
        ({"headline": 3}, "headline = 3: expected text."),
        ({"capping": None}, "unknown capping None. Known: max, zero."),
        ({"r_max": -1}, "r_max = -1: expected a number above 0."),
        ({"r_max": "1"}, "r_max = '1': expected a number above 0."),
        (
            {"value": "v", "value_log": "log.parquet"},
            "value and value_log are both given: V(x) comes from a column or from a separate log.",
        ),
    ],
)
def test_bad_values(values: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as error:
        Analysis(**values)
    assert str(error.value) == message
    with pytest.raises(BadInput) as error:
        Analysis().replace(**values)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "split", [[0.5, 0.6], [1.0, 0.0], [0.5], 0.5, ["a", "b"], [True, False], [1.5, -0.5], [0.2, 0.3, 0.5]]
)
def test_bad_split(split: Any) -> None:
    with pytest.raises(BadInput, match=r"\[online\] split = .*: expected two shares that sum to 1, as in \[0.5, 0.5\]"):
        Online(split=split)


def test_good_split() -> None:
    assert Online(split=[0.9, 0.1]).split == (0.9, 0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rewards": []}, "[log] rewards is empty: name at least one reward column."),
        ({"rewards": [1]}, '[log] rewards = [1]: expected a list of column names, as in ["click"].'),
        ({"rewards": ["a"], "unit": 1}, "[log] unit = 1: expected the name of a column."),
        (
            {"rewards": ["a"], "features": "country"},
            "[log] features = 'country': expected a list of column names, as in [\"click\"].",
        ),
    ],
)
def test_bad_columns(values: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as error:
        LogColumns(**values)
    assert str(error.value) == message


def test_a_policy_without_base_class_is_one() -> None:
    class Own:
        def log_prob(self, displays: Any, rankings: Any) -> Any: ...

        def sample(self, displays: Any, uniforms: Any) -> Any: ...

    settings = Settings(log=LogColumns(rewards=["click"]), control=Own(), treatment=Own())  # type: ignore[arg-type]
    assert settings.analysis == Analysis()


def test_a_policy_that_cannot_sample_is_none() -> None:
    class Half:
        def log_prob(self, displays: Any, rankings: Any) -> Any: ...

    with pytest.raises(BadInput, match=r"^control = .*Half object.* has no sample: expected a policy, as in "):
        Settings(log=LogColumns(rewards=["click"]), control=Half(), treatment=Half())  # type: ignore[arg-type]


# -- words of errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "hint"),
    [
        ("clik", ["click", "user"], " Did you mean 'click'?"),
        ("CLICK", ["user", "click"], " Did you mean 'click'?"),
        ("user_id", ["UserId", "click"], " Did you mean 'UserId'?"),
        ("zzz", ["click", "user"], ""),
        ("x", [], ""),
    ],
)
def test_nearest(name: str, options: list[str], hint: str) -> None:
    assert nearest(name, options) == hint


def test_choose() -> None:
    assert choose("fruit", "fig", ["fig", "apple"]) == "fig"
    with pytest.raises(BadInput) as error:
        choose("fruit", ["fig"], ["fig", "apple"])
    assert str(error.value) == "unknown fruit ['fig']. Known: fig, apple."


def test_row_fault() -> None:
    fault = RowFault("kind", "click", np.array([3, 4]), "the value is null", "Fill it.")
    assert str(fault) == "column 'click': the value is null. Fill it."
    where = "log.parquet: column 'click', row 3 (the first row is 0): the value is null"
    assert fault.sentence("log.parquet", 3, 1) == f"{where}; no other row has this fault. Fill it."
    assert fault.sentence("log.parquet", 3, 12_345) == f"{where}; 12,345 rows have this fault. Fill it."


def test_refuse_unknown() -> None:
    refuse_unknown("[log]", {"unit": 1}, ["unit"])
    with pytest.raises(
        BadInput, match=r"^\[log\] has an unknown key 'split'\. It belongs in \[online\]\. Known: unit\.$"
    ):
        refuse_unknown("[log]", {"split": 1}, ["unit"])


@pytest.mark.parametrize(
    ("value", "good"), [(0.5, True), (0, False), (1, False), (float("nan"), False), ("x", False), (1j, False)]
)
def test_check_number(value: Any, good: bool) -> None:
    if good:
        check_number("x", value, above=0.0, below=1.0)
    else:
        with pytest.raises(BadInput, match="above 0 and below 1"):
            check_number("x", value, above=0.0, below=1.0)
