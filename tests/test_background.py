"""Work in a thread that the caller waits for."""

from __future__ import annotations

import threading

import pytest

from foretest.background import busy, in_background
from foretest.errors import BadInput


def test_what_the_work_gives() -> None:
    assert in_background(lambda: threading.current_thread() is threading.main_thread()) is False
    assert in_background(busy)


def test_its_error_is_the_callers() -> None:
    def fail() -> None:
        raise BadInput("told")

    with pytest.raises(BadInput, match=r"^told$"):
        in_background(fail)
