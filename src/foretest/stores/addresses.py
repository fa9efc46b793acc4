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
# how an address begins, also as Path, a shell or haste leave it: s3:/bucket, s3:bucket
_BEGIN = (
    r"((?:[a-z][a-z0-9+.-]{0,30}://|[a-z][a-z0-9+.-]{1,30}:[/\\]|\b(?:s3[an]?|gs|gcs|abfss?|az|azure|https?):)[/\\]*)"
)
# a secret may have a / in it: a user and a password end at the last @
_USER = re.compile(rf"{_BEGIN}(\S*)@", re.IGNORECASE)
# a query string; a ? alone is a pattern for one character
_OPTIONS = re.compile(rf"{_BEGIN}([^\s'\"?]*\?)[\w.%-]+=[^\s'\"]*", re.IGNORECASE)
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
    refuse_credentials(text)
    return parse_listed(text)


def parse_listed(text: str) -> Address:
    """The parts of an address that a store or a table listed: an @ in the name of a file begins no credential there."""
    match = _ADDRESS.match(text)
    assert match is not None
    scheme, rest = match[1].lower(), text[match.end() :]
    authority, _, key = rest.partition("/")
    refuse_credentials(f"{scheme}://{authority}")
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


def refuse_credentials(text: str) -> None:
    """Refuse a place, an address or not quite one, in which a credential could be."""
    for match in _USER.finditer("".join(text.split())):
        if not _is_container(match):
            raise BadInput(
                f"{_scheme(match)}://…: the address has a user or a password before an @, and a credential must not be"
                f" in it. {_FROM_WHERE} A file whose name has an @ is read by its folder, or by a ? in place of the @."
            )
    for match in _OPTIONS.finditer(text):
        raise BadInput(
            f"{_scheme(match)}://…: the address has options after a ?, where a credential could be, and they are not"
            f" read. {_FROM_WHERE} For another server than Amazon's set AWS_ENDPOINT_URL."
        )


def _scheme(match: re.Match[str]) -> str:
    return match[1].partition(":")[0].lower()


def _is_container(match: re.Match[str]) -> bool:
    """Is what stands before the @ the container of abfss://container@account, and no user?"""
    return match[1].lower() == f"{AZURE}://" and re.fullmatch(r"[^@:/]+", match[2]) is not None


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
    text = _USER.sub(lambda match: match[0] if _is_container(match) else f"{match[1]}…@", text)
    text = _OPTIONS.sub(r"\1\2…", text)
    for name in _SECRETS:
        secret = os.environ.get(name, "")
        if len(secret) >= 8:  # a shorter one would be part of ordinary words
            text = text.replace(secret, "…")
    return text
