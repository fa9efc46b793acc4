"""The kinds of files that a log may be in, by the endings of their names or by their first bytes."""

from __future__ import annotations

from foretest.stores import Location

PARQUET, ARROW, CSV, JSON = "Parquet", "Arrow", "CSV", "JSON lines"
ENDINGS = {
    PARQUET: (".parquet", ".pq"),
    ARROW: (".arrow", ".arrows", ".feather", ".ipc"),
    CSV: (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    JSON: (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
}
# results and settings end in .json too: in a folder such a file is no log, named by itself it is
_NAMED_ENDINGS = {JSON: (".json", ".json.gz")}
_BEGINNINGS = {b"PAR1": PARQUET, b"ARRO": ARROW}
EXPECTED = "Parquet (.parquet), Arrow (.arrow, .feather), CSV (.csv) or JSON lines (.jsonl)"


def kind_of(path: Location) -> str | None:
    """The kind of a file by the ending of its name, else by its first bytes; None if neither is known."""
    for kind, endings in ENDINGS.items():
        if path.name.lower().endswith(endings + _NAMED_ENDINGS.get(kind, ())):
            return kind
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            return _BEGINNINGS.get(file.read(4))
    except OSError:
        return None


def has_known_ending(name: str) -> bool:
    """Is it the name of a file of a log, in a folder?"""
    return name.lower().endswith(tuple(ending for endings in ENDINGS.values() for ending in endings))


def is_data(name: str) -> bool:
    """Is it the name of a file of data? Writers leave others, such as _SUCCESS, in the same folder."""
    return not name.startswith(("_", "."))


def is_walked(name: str) -> bool:
    """Is it the name of a folder that may have data? Others have unfinished and hidden files; but the name of a
    partition may begin so too."""
    return not name.startswith(("_", ".")) or "=" in name
