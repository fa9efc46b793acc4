"""Object stores: addresses such as s3://bucket/key, used like local paths through PyArrow's file systems."""

from __future__ import annotations

from foretest.stores.addresses import is_address, refuse_credentials, without_credentials
from foretest.stores.remote import Location, RemotePath, joined, listed_location, location

__all__ = [
    "Location", "RemotePath", "is_address", "joined", "listed_location", "location", "refuse_credentials",
    "without_credentials",
]  # fmt: skip
