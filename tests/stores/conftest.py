"""One store for all tests of this folder, with credentials in the environment as its users have them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stores.server import KEY, SECRET, Store, moto_store


@pytest.fixture(scope="session")
def _store() -> Iterator[Store]:
    with moto_store() as store:
        yield store


@pytest.fixture
def store(_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store, as the environment names it."""
    for name, value in environment(_store.url).items():
        monkeypatch.setenv(name, value)
    return _store


def environment(url: str) -> dict[str, str]:
    """The variables that AWS's own tools read."""
    return {
        "AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
