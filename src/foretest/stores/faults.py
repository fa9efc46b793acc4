"""What went wrong in a store, as one sentence that begins with the address."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from foretest.errors import BadInput
from foretest.stores.addresses import without_credentials

if TYPE_CHECKING:
    from foretest.stores.remote import RemotePath

# words in the messages of PyArrow, delta-rs and the stores, by what they mean; compiled when something went wrong
_BUCKET = r"NO_SUCH_BUCKET|NoSuchBucket|bucket does not exist|ContainerNotFound|Bucket '…' not found"
_DENIED = (
    r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY_ID|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch"
    r"|UNRECOGNIZED_CLIENT|ExpiredToken|EXPIRED_TOKEN|\b40[13]\b|Forbidden|Unauthorized|PermissionDenied"
    r"|credential|AuthorizationFailure|AuthenticationFailed"
)
_BUSY = r"SLOW_?DOWN|\b503\b|\b429\b|THROTTL|SERVICE_UNAVAILABLE|reduce your request rate"
_NETWORK = (
    r"NETWORK_CONNECTION|curlCode|timed? ?out|connection|unexpected end|end of (file|stream)|dns error"
    r"|error sending request|Could not resolve|error decoding response body|generic S3 error"
)
_MISSING = r"NO_SUCH_KEY|NoSuchKey|RESOURCE_NOT_FOUND|Path does not exist|No such file|not found|\b404\b"
_STORE = r"AWS Error|google::cloud|GCS|Azure|curlCode|Generic S3 error|object.store|Detail: "


def _has(words: str, text: str) -> bool:
    return re.search(words, text, re.IGNORECASE) is not None


def is_store_fault(error: Exception) -> bool:
    """Is it an error of the store or the way to it, rather than of the content of a file?"""
    return isinstance(error, FileNotFoundError | PermissionError) or _has(_STORE, str(error))


def store_fault(path: RemotePath, error: Exception, what: str = "read") -> BadInput:
    """The sentence for an error of a store; `what` was to be done: read, or written."""
    text = _without_names(path, str(error))
    if _has(_BUCKET, text):
        return no_bucket(path)
    if _has(_BUSY, text):
        return BadInput(
            f"{path}: the store is too busy and asked to slow down, also after several attempts. Run again later, or"
            " with fewer --threads."
        )
    if isinstance(error, PermissionError) or _has(_DENIED, text):
        return BadInput(
            f"{path}: access denied by the store. Check the credentials that its own tools find (environment, profile"
            f" or role), and that they may {'read' if what == 'read' else 'write'} there."
        )
    if isinstance(error, FileNotFoundError) or _has(_MISSING, text):
        return BadInput(f"{path}: no such file or folder.")
    if _has(_NETWORK, text):
        return BadInput(
            f"{path}: the connection to the store failed, also after several attempts ({_reason(text)}). Check the"
            " network, and AWS_ENDPOINT_URL where it is set, and run again."
        )
    return BadInput(f"{path}: cannot be {what} ({_reason(text)}).")


def _without_names(path: RemotePath, text: str) -> str:
    """The message without names of the user's, which may have any words in them.

    >>> from foretest.stores import RemotePath
    >>> _without_names(RemotePath("s3://shop/503.csv"), "for key '503.csv' in bucket 'shop' of s3://shop/503.csv: no")
    "for key '…' in bucket '…' of …: no"
    """
    for name in (str(path), path.place, path.key):
        text = text.replace(name, "…") if name else text
    return re.sub(r"'[^']*'", "'…'", text)


def no_bucket(path: RemotePath) -> BadInput:
    """The sentence for a bucket that is not there."""
    return BadInput(f"{path}: there is no bucket '{path.authority}', or it cannot be seen from here.")


def _reason(text: str) -> str:
    """The last part of a store's message, which has the reason, without request numbers and credentials."""
    line = without_credentials(" ".join(text.split()))
    line = re.sub(r" \(Request ID: [^)]*\)", "", line)
    line = line.rpartition("AWS Error ")[2].partition(" Detail: ")[0]
    return (line if len(line) <= 160 else line[:159] + "…").rstrip(". ")
