"""What several tests of histories need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import few_resamples_of_tests


@pytest.fixture(scope="module")
def few_resamples() -> Iterator[None]:
    with few_resamples_of_tests():
        yield
