"""`[control] replay_seed`: every policy of a service takes it, and what it cannot be asked for is refused."""

from __future__ import annotations

from typing import Any

import pytest

import foretest as ft
from foretest.errors import BadInput
from foretest.settings.file import settings_from_tables
from foretest.settings.replay import replays_of
from tests.serving.support import TABLES

TREATMENT = {"policy": "plackett-luce", "scores": "new"}
LOG = {"rewards": ["click"], "ranking": "ranking", "id": "display"}


def control_table(table: dict[str, Any]) -> dict[str, Any]:
    """A service's table with the columns of a log."""
    if table["policy"] == "mixture":
        return {**table, "components": [{**part, "scores": "s"} for part in table["components"]]}
    return {**table, "scores": "s"}


def settings(control: dict[str, Any], treatment: dict[str, Any] = TREATMENT, log: dict[str, Any] = LOG) -> ft.Settings:
    return settings_from_tables({"log": log, "control": control, "treatment": treatment})


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_policy_of_a_service_takes_it(table: dict[str, Any]) -> None:
    treatment = {**TREATMENT, "temperature": 1.0}
    control = settings({**control_table(table), "replay_seed": 7}, treatment).control
    assert [replay.seed for replay in replays_of(control)] == [7]
    assert control.settings()["replay_seed"] == 7
    assert "replay_seed=7" in repr(control)
    without = settings(control_table(table), treatment).control
    assert replays_of(without) == []
    assert "replay_seed" not in without.settings()


def test_with_candidates_of_its_own() -> None:
    own = {"candidates": "items"}
    log = {"rewards": ["click"], "ranking": "ranking", "id": "display"}
    control = settings({**TREATMENT, **own, "replay_seed": 3}, {**TREATMENT, **own}, log).control
    assert [replay.seed for replay in replays_of(control)] == [3]


MIXED = control_table(TABLES["exploring share"])


@pytest.mark.parametrize(
    ("control", "treatment", "log", "message"),
    [
        ({**TREATMENT, "replay_seed": 7}, TREATMENT, {"rewards": ["click"], "ranking": "r"}, r"\[log\] id is not"),
        (TREATMENT, {**TREATMENT, "replay_seed": 7}, LOG, "the treatment 'treatment' has replay_seed"),
        ({**TREATMENT, "replay_seed": -1}, TREATMENT, LOG, "replay_seed = -1: expected a whole number of at least 0"),
        ({**TREATMENT, "replay_seed": 1.5}, TREATMENT, LOG, "replay_seed = 1.5"),
        ({**TREATMENT, "replay_seed": 2**63}, TREATMENT, LOG, "expected a whole number of at most"),
        ({**TREATMENT, "replay_seed": 7, "temperature": "fit"}, TREATMENT, LOG, "a replay needs the number"),
        ({"policy": "thurstone", "scores": "s", "replay_seed": 7}, TREATMENT, LOG, "unknown key 'replay_seed'"),
        ({"policy": "logged", "prob": "p", "replay_seed": 7}, TREATMENT, LOG, "unknown key 'replay_seed'"),
        (
            {"policy": "mixture", "components": [{**TREATMENT, "share": 1, "replay_seed": 7}]},
            TREATMENT, LOG, "replay_seed in a component",
        ),
        (
            {"policy": "mixture", "components": [{"policy": "thurstone", "scores": "s", "share": 1}], "replay_seed": 7},
            TREATMENT, LOG, "Thurstone is none of the policies",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(control: Any, treatment: Any, log: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        settings(control, treatment, log)
