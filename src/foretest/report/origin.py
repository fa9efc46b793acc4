"""Where the numbers of a page come from, from a result's provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foretest.report.blocks import Words
from foretest.report.digits import size

FINGERPRINT = (
    "BLAKE2b of each file's size, its first and last 64 KiB and, of Parquet, the whole footer with its statistics:"
    " enough to tell two logs apart, not a hash of every byte."
)


def origin(
    provenance: Mapping[str, Any], pairs: Sequence[tuple[str, str]] = (), words: Sequence[Words] = ()
) -> dict[str, Any]:
    """What the template `origin.html` shows: the command, versions and fingerprints; `pairs` and `words` are more."""
    inputs = []
    facts = list(pairs)
    for role, read in provenance.get("inputs", {}).items():
        inputs += [
            {"name": file["name"], "role": role, "size": size(file["bytes"]), "mark": file["fingerprint"]}
            for file in read["files"]
        ]
        rest = read["count"] - len(read["files"])
        if rest:
            inputs.append({"name": f"and {rest:,} more files", "role": role, "size": "", "mark": ""})
        if read["count"] > 1:
            facts.append((f"{role}, all {read['count']:,} files", f"{size(read['bytes'])}, {read['fingerprint']}"))
    if "rows_fingerprint" in provenance:
        facts.append(
            ("fingerprint of the rows", f"{provenance['rows_fingerprint']} (BLAKE2b of rows by bucket of units)")
        )
    versions = provenance.get("versions", {})
    if versions:
        facts.append(("versions", ", ".join(f"{name} {version}" for name, version in versions.items())))
    return {
        "command": f"{provenance['command']} -o out" if "command" in provenance else None,
        "pairs": facts,
        "words": list(words),
        "inputs": inputs,
        "fingerprint": FINGERPRINT,
    }
