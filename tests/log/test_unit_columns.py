"""A column named like a unit, where the settings name none."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import foretest as ft
from foretest.log.unit_columns import is_named_like_a_unit, unit_column_notes
from foretest.sources import open_source


@pytest.mark.parametrize(
    "name", ["user", "user_id", "userId", "USERID", "uid", "session", "session_id", "visitor-id", "member_id",
             "customer", "cookie_id", "device_id", "account_key", "client_id", "user_hash"]
)  # fmt: skip
def test_names_of_units(name: str) -> None:
    assert is_named_like_a_unit(name)


@pytest.mark.parametrize(
    "name", ["device", "user_agent", "user_country", "item_id", "id", "display_id", "sessions", "age"]
)
def test_names_of_other_things(name: str) -> None:
    assert not is_named_like_a_unit(name)


def notes_of(columns: dict[str, Any], **roles: Any) -> list[str]:
    return unit_column_notes(ft.LogColumns(rewards=["click"], **roles), open_source(pa.table(columns)))


def test_it_is_named_with_the_remedy() -> None:
    assert notes_of({"click": [1, 0], "session_id": ["a", "b"]}) == [
        "the log has a column 'session_id', but [log] unit is not set, so every row counts as independent. If one"
        ' session has several rows, intervals are too narrow: name it, unit = "session_id".'
    ]


def test_a_unit_that_is_named_and_a_column_of_another_role_ask_nothing() -> None:
    table = {"click": [1, 0], "session_id": ["a", "b"], "user_id": [1, 2]}
    assert notes_of(table, unit="session_id") == []
    assert notes_of({"click": [1, 0], "session_id": ["a", "b"]}, id="session_id") == []
    assert notes_of({"click": [1, 0], "user": [0.5, 1.5]}) == []  # a number is nobody
