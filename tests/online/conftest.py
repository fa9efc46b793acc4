"""Two arms that every test of an online test may use."""

from __future__ import annotations

from typing import Any

import pytest

from tests.online.support import arm


@pytest.fixture(scope="module")
def two() -> tuple[dict[str, Any], dict[str, Any]]:
    return arm(300, 0.2, 1, first=500), arm(340, 0.25, 2, first=10_000)
