"""Where the numbers of a page come from: the command, the inputs and the versions in a result's provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foretest.records import dataclass
from foretest.report.blocks import Words
from foretest.report.digits import size

FINGERPRINT = (
    "BLAKE2b of each file's size, of its first and last 64 KiB and, for Parquet, of the whole footer with its"
    " statistics: enough to tell two logs apart, but not a hash of every byte."
)


@dataclass(frozen=True)
class InputFile:
    """A file that was read."""

    name: str
    role: str
    size: str = ""
    fingerprint: str = ""


@dataclass(frozen=True)
class Origin:
    """What the template `origin.html` shows."""

    command: str | None
    pairs: list[tuple[str, str]]  # names and values: seed, versions, fingerprints
    words: list[Words]
    inputs: list[InputFile]
    fingerprint: str = FINGERPRINT


def origin(provenance: Mapping[str, Any], pairs: Sequence[tuple[str, str]] = (), words: Sequence[Words] = ()) -> Origin:
    """The origin of a result, from its provenance; `pairs` and `words` come before."""
    inputs: list[InputFile] = []
    all_pairs = list(pairs)
    for role, read in provenance.get("inputs", {}).items():
        inputs += [InputFile(file["name"], role, size(file["bytes"]), file["fingerprint"]) for file in read["files"]]
        rest = read["count"] - len(read["files"])
        if rest:
            inputs.append(InputFile(f"and {rest:,} more files", role))
        if read["count"] > 1:
            all_pairs.append((f"{role}, all {read['count']:,} files", f"{size(read['bytes'])}, {read['fingerprint']}"))
    if "rows_fingerprint" in provenance:
        fingerprint = f"{provenance['rows_fingerprint']} (BLAKE2b of rows by bucket of units)"
        all_pairs.append(("fingerprint of the rows", fingerprint))
    versions = provenance.get("versions", {})
    if versions:
        all_pairs.append(("versions", ", ".join(f"{name} {version}" for name, version in versions.items())))
    command = f"{provenance['command']} -o out" if "command" in provenance else None
    return Origin(command, all_pairs, list(words), inputs)
