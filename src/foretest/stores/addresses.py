"""Addresses of object stores: their parts, and the refusal of those that are unknown or that hold a credential.

Credentials are those that the store's own tools would find (environment, profile, role). They are never part of an
address, since addresses are written to results, reports and messages.
"""

from __future__ import annotations

import os
import posixpath
import re
from typing import NamedTuple

from foretest.errors import BadInput

S3, GOOGLE, AZURE = "s3", "gs", "abfss"
SCHEMES = (S3, GOOGLE, AZURE)
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_OPTIONS = re.compile(r"\?[\w.%-]+=")  # a query string; a ? alone is a pattern for one character
_CREDENTIALS = re.compile(r"(?<=://)[^/\s'\"]*:[^/\s'\"]*@")
_QUERY = re.compile(r"(://[^\s'\"?]*\?)[\w.%-]+=[^\s'\"]*")
_OTHER_NAMES = {"s3a": S3, "s3n": S3, "gcs": GOOGLE, "abfs": AZURE, "az": AZURE, "azure": AZURE}
_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AZURE_STORAGE_KEY",
            "AZURE_CLIENT_SECRET", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_KEY")  # fmt: skip


class Address(NamedTuple):
    """A place in a store."""

    scheme: str
    authority: str  # the bucket; of abfss container@account
    key: str  # without a / at either end; empty for the whole bucket


def is_address(text: object) -> bool:
    """Is it an address with a scheme, and not a local path?

    >>> is_address("s3://shop/log.parquet"), is_address("logs/a.parquet")
    (True, False)
    """
    return isinstance(text, str) and _ADDRESS.match(text) is not None


def parse_address(text: str) -> Address:
    """The parts of an address. One with a credential is refused, and not repeated in the message.

    >>> parse_address("s3://shop/logs/day=1/")
    Address(scheme='s3', authority='shop', key='logs/day=1')
    """
    found = _ADDRESS.match(text)
    assert found is not None
    scheme, rest = found[1].lower(), text[found.end() :]
    authority, _, key = rest.partition("/")
    _refuse_credentials(scheme, authority, text)
    if scheme not in SCHEMES:
        raise BadInput(_unknown_scheme(scheme, text))
    if not authority or (scheme == AZURE and not re.fullmatch(r"[^@]+@[^@]+", authority)):
        expected = "abfss://container@account.dfs.core.windows.net/key" if scheme == AZURE else f"{scheme}://bucket/key"
        raise BadInput(f"{text}: no address of a file. Expected {expected}.")
    if "\0" in text:
        raise BadInput(f"{text!r}: no file can have this path: it has a null character.")
    return Address(scheme, authority, normal_key(key))


def normal_key(key: str) -> str:
    """A key without . and .., which stores take for names; other keys as they are."""
    parts = key.split("/")
    return (posixpath.normpath(f"/{key}").strip("/") if "." in parts or ".." in parts else key).strip("/")


def _refuse_credentials(scheme: str, authority: str, text: str) -> None:
    user, at, _ = authority.rpartition("@")
    if at and (scheme != AZURE or ":" in user):
        raise BadInput(
            f"{scheme}://…: the address has a user or a password before an @, and a credential must not be in it."
            f" {_FROM_WHERE}"
        )
    if _OPTIONS.search(text):
        raise BadInput(
            f"{scheme}://…: the address has options after a ?, where a credential could be, and they are not read."
            f" {_FROM_WHERE} For another server than Amazon's set AWS_ENDPOINT_URL."
        )


_FROM_WHERE = (
    "Leave it out: credentials are those that the store's own tools find, in the environment, a profile or a role."
)


def _unknown_scheme(scheme: str, text: str) -> str:
    known = ", ".join(f"{name}://" for name in SCHEMES)
    if scheme in _OTHER_NAMES:
        return f"{text}: {scheme}:// is not read here. Write {_OTHER_NAMES[scheme]}://. Known: {known}."
    if scheme == "file":
        return f"{text}: a local file is named by its path alone, without file://."
    return f"{text}: {scheme}:// is not read. Known: {known}, and local paths."


def without_credentials(text: str) -> str:
    """The text without what may be a credential: user and password, and options, of every address in it; and without
    the secrets of the environment.

    >>> without_credentials("no 's3://key:secret@shop/a.parquet?token=x' here")
    "no 's3://…@shop/a.parquet?…' here"
    """
    text = _QUERY.sub(r"\1…", _CREDENTIALS.sub("…@", text))
    for name in _SECRETS:
        secret = os.environ.get(name, "")
        if len(secret) >= 8:  # a shorter one would be part of ordinary words
            text = text.replace(secret, "…")
    return text
