"""A long fold that resumes after it was killed: from time to time the sums so far are saved, with the number of files
that they cover."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold_plan import FoldPlan
from foretest.engines import dispatch, local
from foretest.errors import BadInput
from foretest.log.reader import Reader
from foretest.provenance import fingerprints
from foretest.records import dataclass
from foretest.sources import BATCH_ROWS, Chunk, LogFiles, Part, Source, open_source, pack_of
from foretest.storage.saved.files import SavedFile, write_aggregates
from foretest.storage.saved.inputs import source_paths
from foretest.storage.saved.json_values import digest
from foretest.storage.saved.recipe import Recipe
from foretest.stores import Location

FEWEST_ROWS = 1 << 20  # between two saves: a save costs half a second
_SUMS = ".sums"
_SAVED = re.compile(rf"[0-9a-f]{{32}}\{_SUMS}")
SECONDS = 20.0  # between two saves, about, once the pace is known


def fold_resumably(
    source: Source,
    reader: Reader,
    plan: FoldPlan,
    parts: Location | None,
    *,
    threads: int | None = None,
    batch_rows: int = BATCH_ROWS,
    progress: local.Progress | None = None,
) -> Aggregates:
    """Fold a log; with a folder for `parts`, several files a few at a time in order, resuming from the saved sums.

    Saved sums are used only if they are of the same files (by size, head, tail and time of change) in the same order,
    under the same settings and value model.
    """
    paths = source_paths(source)

    def fold(some: Source) -> Aggregates:
        return dispatch.aggregate(some, reader, plan, threads=threads, batch_rows=batch_rows, progress=progress)

    resumable = isinstance(source, LogFiles) and len(paths) > 1
    if parts is None or not resumable or any(pack_of(schema) for _, schema in source.schemas()):
        return fold(source)
    place = parts / f"{_key(paths, plan)}{_SUMS}"  # no .parquet: a folder of logs may be around it
    running, done = _saved_state(place, plan)
    if running is not None and progress is not None:
        progress(running.rows)
    rows = FEWEST_ROWS
    while running is None or done < len(paths):
        begun = time.monotonic()
        end = _next_stop(paths, done, rows)
        part = fold(_Later(open_source(paths[done:end]), 0 if running is None else running.rows))
        running = part if running is None else running + part
        done = end
        if done < len(paths):
            write_aggregates(place, running, more={"finished": done})
            rows = max(FEWEST_ROWS, int(part.rows * SECONDS / (time.monotonic() - begun)))
    return running


def _key(paths: Sequence[Location], plan: FoldPlan) -> str:
    """A hash of all that the sums depend on."""
    files = [f"{mark} {path.stat().st_mtime_ns}" for path, mark in zip(paths, fingerprints(paths), strict=True)]
    read_at = plan.settings.log.read_at or ""
    return digest("\n".join([f"{Recipe.of(plan).fingerprint}{read_at}", *files]).encode())


def _saved_state(place: Location, plan: FoldPlan) -> tuple[Aggregates | None, int]:
    """The sums so far and the number of files they cover; (None, 0) where no file is, or a damaged one."""
    if not place.exists():
        return None, 0
    try:
        file = SavedFile.open(place)
        return file.read(plan), int(file.document["finished"])
    except BadInput:
        return None, 0


def remove_parts(parts: Location) -> None:
    """Remove the saved sums of a fold that is finished; what else is in their folder stays."""
    with suppress(FileNotFoundError, NotADirectoryError):
        paths: list[Location] = list(parts.iterdir())
        for path in paths:
            if _SAVED.fullmatch(path.name) and path.is_file():
                path.unlink(missing_ok=True)
    if isinstance(parts, Path):
        with suppress(OSError):
            parts.rmdir()


def _next_stop(paths: Sequence[Location], done: int, rows: int) -> int:
    """The end of the next run of files with so many rows; a file whose rows are not known ends the run."""
    total = 0
    for end in range(done + 1, len(paths)):
        known = open_source([paths[end - 1]]).rows
        total += rows if known is None else known
        if total >= rows:
            return end
    return len(paths)


@dataclass(frozen=True)
class _Later:
    """A source whose first row is not the log's first."""

    source: Source
    position: int
    repeatable = True

    @property
    def rows(self) -> int | None:
        return self.source.rows

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return self.source.schemas()

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        return [self._moved(part) for part in self.source.parts(columns, batch_rows)]

    def _moved(self, part: Part) -> Part:
        def read() -> Iterator[Chunk]:
            for chunk in part():
                yield chunk._replace(position=chunk.position + self.position)

        return read
