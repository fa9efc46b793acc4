"""What went wrong in a store, as one sentence that begins with the address."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from foretest.errors import BadInput
from foretest.stores.addresses import without_credentials

if TYPE_CHECKING:
    from foretest.stores.remote import RemotePath

# words in the messages of PyArrow, delta-rs and the stores, by what they mean
_BUCKET = re.compile(r"NO_SUCH_BUCKET|NoSuchBucket|bucket does not exist|ContainerNotFound|Bucket '.*' not found", re.I)
_DENIED = re.compile(
    r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY_ID|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch"
    r"|UNRECOGNIZED_CLIENT|ExpiredToken|EXPIRED_TOKEN|\b40[13]\b|Forbidden|Unauthorized|PermissionDenied"
    r"|credential|AuthorizationFailure|AuthenticationFailed", re.I
)  # fmt: skip
_BUSY = re.compile(r"SLOW_?DOWN|\b503\b|\b429\b|THROTTL|SERVICE_UNAVAILABLE|reduce your request rate", re.I)
_NETWORK = re.compile(
    r"NETWORK_CONNECTION|curlCode|timed? ?out|connection|unexpected end|end of (file|stream)|dns error"
    r"|error sending request|Could not resolve|error decoding response body|generic S3 error", re.I
)  # fmt: skip
_MISSING = re.compile(
    r"NO_SUCH_KEY|NoSuchKey|RESOURCE_NOT_FOUND|Path does not exist|No such file|not found|\b404\b", re.I
)
_STORE = re.compile(r"AWS Error|google::cloud|GCS|Azure|curlCode|Generic S3 error|object.store|Detail: ", re.I)


def is_store_fault(error: Exception) -> bool:
    """Is it an error of the store or the way to it, rather than of the content of a file?"""
    return isinstance(error, FileNotFoundError | PermissionError) or _STORE.search(str(error)) is not None


def store_fault(path: RemotePath, error: Exception, what: str = "read") -> BadInput:
    """The sentence for an error of a store; `what` was to be done: read, or written."""
    text = str(error)
    if _BUCKET.search(text):
        return no_bucket(path)
    if _BUSY.search(text):
        return BadInput(
            f"{path}: the store is too busy and asked to slow down, also after several attempts. Run again later, or"
            " with fewer --threads."
        )
    if isinstance(error, PermissionError) or _DENIED.search(text):
        return BadInput(
            f"{path}: access denied by the store. Check the credentials that its own tools find (environment, profile"
            f" or role), and that they may {'read' if what == 'read' else 'write'} there."
        )
    if isinstance(error, FileNotFoundError) or _MISSING.search(text):
        return BadInput(f"{path}: no such file or folder.")
    if _NETWORK.search(text):
        return BadInput(
            f"{path}: the connection to the store failed, also after several attempts ({_reason(text)}). Check the"
            " network, and AWS_ENDPOINT_URL where it is set, and run again."
        )
    return BadInput(f"{path}: cannot be {what} ({_reason(text)}).")


def no_bucket(path: RemotePath) -> BadInput:
    """The sentence for a bucket that is not there."""
    return BadInput(f"{path}: there is no bucket '{path.authority}', or it cannot be seen from here.")


def _reason(text: str) -> str:
    """The last part of a store's message, which has the reason, without request numbers and credentials."""
    line = without_credentials(" ".join(text.split()))
    line = re.sub(r" \(Request ID: [^)]*\)", "", line)
    line = line.rpartition("AWS Error ")[2].partition(" Detail: ")[0]
    return (line if len(line) <= 160 else line[:159] + "…").rstrip(". ")
