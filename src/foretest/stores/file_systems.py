"""PyArrow's file systems for addresses, with timeouts, so that a store that does not answer is no hang."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import lru_cache
from typing import Any

from foretest.stores.addresses import GOOGLE, S3

CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 20.0
ATTEMPTS = 3
# what a new file system depends on; another value needs another one
_NAMES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE",
          "AWS_ACCESS_KEY_ID", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE")  # fmt: skip


def file_system(scheme: str, authority: str) -> Any:
    """The file system of an address's bucket."""
    return _file_system(scheme, authority, tuple(os.environ.get(name) for name in _NAMES))


def endpoint() -> str | None:
    """The address of a server of S3's kind that is not Amazon's, as the tools of AWS are told it."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def s3_region() -> str | None:
    """The region as the tools of AWS are told it, of another server than Amazon's any; None where it is not known."""
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return named or (None if endpoint() is None else "us-east-1")


@lru_cache(maxsize=32)
def _file_system(scheme: str, authority: str, environment: tuple[str | None, ...]) -> Any:
    from pyarrow import fs

    if scheme == S3:
        return _s3(authority)
    if scheme == GOOGLE:
        return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=ATTEMPTS * REQUEST_SECONDS))
    system, _ = fs.FileSystem.from_uri(f"{scheme}://{authority}/")
    return system


def _s3(bucket: str) -> Any:
    from pyarrow import fs

    return fs.S3FileSystem(
        region=s3_region() or fs.resolve_s3_region(bucket), endpoint_override=endpoint(),
        connect_timeout=CONNECT_SECONDS, request_timeout=REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )  # fmt: skip
