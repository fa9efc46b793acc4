"""What logs in tables of Delta Lake and Iceberg share: data files that are read in batches, with the needed columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import pyarrow as pa

from foretest.errors import BadInput
from foretest.sources.base import BATCH_ROWS, Chunk, Part, short
from foretest.sources.lake_tables import LakeTable
from foretest.stores import Location, RemotePath
from foretest.stores.faults import is_store_fault, store_fault


@dataclass(frozen=True)
class DataFile:
    """A data file of a table at one version."""

    path: Location
    rows: int  # as many as it has, also deleted ones: where the rows of the next file begin
    read: Callable[[list[str], int], Iterator[pa.RecordBatch]]  # columns, and rows of a batch


class LakeLog(ABC):
    """A table at one version, which stays the same in all passes. Its files are in the order of their names."""

    repeatable = True

    def __init__(self, table: LakeTable) -> None:
        self.table = table

    @property
    @abstractmethod
    def version(self) -> int:
        """The version that is read: of Delta Lake its number, of Iceberg the snapshot."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema: ...

    @abstractmethod
    def _data_files(self) -> list[DataFile]: ...

    @cached_property
    def data_files(self) -> list[DataFile]:
        return sorted(self._data_files(), key=lambda file: str(file.path))

    @property
    def paths(self) -> list[Location]:
        return [file.path for file in self.data_files]

    @property
    def rows(self) -> int | None:
        return sum(file.rows for file in self.data_files)

    def facts(self) -> dict[str, str | int]:
        """The kind of the table and the version that was read, for a result's provenance."""
        return {"kind": self.table.kind, "version": self.version}

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return [(self.table.name, self.schema)]

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        starts = accumulate((file.rows for file in self.data_files), initial=0)
        return [self._part(file, start, list(columns), batch_rows)
                for file, start in zip(self.data_files, starts, strict=False)]  # fmt: skip

    def _part(self, file: DataFile, start: int, columns: list[str], batch_rows: int) -> Part:
        # without one of its columns, a batch would not know how many rows it has
        asked = columns or self.schema.names[:1]

        def chunks() -> Iterator[Chunk]:
            at = 0
            with self.faults_explained(file.path):
                for whole in file.read(asked, batch_rows):
                    for begin in range(0, whole.num_rows, batch_rows):
                        batch = whole.select(columns).slice(begin, batch_rows)
                        yield Chunk(batch, str(file.path), at, start + at)
                        at += batch.num_rows

        return chunks

    @contextmanager
    def faults_explained(self, path: Location) -> Iterator[None]:
        """Errors in reading a data file as one sentence."""
        try:
            yield
        except FileNotFoundError:
            raise BadInput(
                f"{path}: no such file, which version {self.version} of the {self.table.kind} table {self.table.folder}"
                " needs. Was the table moved, or cleaned of old versions? Give a newer version, or leave #version= out."
            ) from None
        except (pa.ArrowException, OSError) as error:
            if isinstance(path, RemotePath) and is_store_fault(error):
                raise store_fault(path, error) from None
            raise BadInput(f"{path}: cannot be read ({short(error)}).") from None


def no_version(table: LakeTable, known: str) -> BadInput:
    """The sentence for a version that a table does not have; `known` says which it has."""
    return BadInput(f"{table.folder}: the {table.kind} table has no version {table.version}. {known}")
