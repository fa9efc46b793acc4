"""One folder of 200 results for all tests of boards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.board.results import many_results


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 200 results."""
    folder = tmp_path_factory.mktemp("results")
    assert many_results(folder) == 200
    return folder
