"""Packing: a log rewritten in one pass, its rewarded rows apart, with the sums of all rows that need no estimator."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import choose_estimators
from foretest.aggregation.fold import Fold
from foretest.aggregation.kept_rows import KeptRows
from foretest.displays.ragged import is_list
from foretest.engines import local
from foretest.errors import BadInput, RowFault
from foretest.log.reader import Reader
from foretest.settings.settings import Settings
from foretest.sources import BATCH_ROWS, PACKED, ROW_NUMBER, Chunk, Part, Source, pack_of
from foretest.storage.packed.reading import BASE, REST, REWARDED, PackedLog
from foretest.storage.saved.files import write_aggregates
from foretest.storage.saved.recipe import recorded_inputs

REST_ROWS = 1 << 17  # of a row group
REWARDED_ROWS = 1 << 13  # few, so that all cores have some


def pack(source: Source, settings: Settings, out: Path, *, progress: local.Progress | None = None) -> PackedLog:
    """Rewrite a log as a folder: all of its columns, and where each row stood.

    The folder is written beside its place and renamed; one that is there already is replaced if it is a packed log
    (or empty), and refused otherwise. Memory is that of a batch and of the row groups being filled.
    """
    # sums that no estimator asks for: whichever is asked for later finds them
    settings = dataclasses.replace(settings, analysis=settings.analysis.replace(estimators=None, headline=None))
    plan = dataclasses.replace(choose_estimators(settings)[0], estimators=())
    reader = Reader(settings)
    reader.check(source)
    _refuse_source(source, out)
    schema = _common_schema(source)
    reader.check(_Files([(str(out), schema)]))
    name = uuid.uuid4().hex
    fold = Fold(plan)
    with _whole_folder(out) as folder:
        with ExitStack() as stack:
            rest, rewarded = (
                stack.enter_context(_Half(folder / file, schema, name, rows))
                for file, rows in ((REST, REST_ROWS), (REWARDED, REWARDED_ROWS))
            )
            pool = stack.enter_context(ThreadPoolExecutor(1))
            try:
                for chunk in _chunks(source, schema):
                    rows = reader.read(chunk)
                    adding = pool.submit(fold.add, rows)
                    batch = _conformed(chunk, schema)
                    some = np.asarray(rows.rewards.any(axis=1))
                    rewarded.add(batch, some)
                    rest.add(batch, ~some)
                    adding.result()
                    if progress is not None:
                        progress(len(rows))
            except RowFault as met:
                if not source.repeatable:
                    raise
                raise local.explain(_chunks(source, schema), reader, plan, met) from None
        aggregates = fold.finish()
        bare = _without_rewarded(aggregates)
        counts = {"pack": name, "rewarded": aggregates.rewarded.seen}
        write_aggregates(
            folder / BASE, bare, r_max=reader.r_max(source), inputs=recorded_inputs(source), more={"packed": counts}
        )
    return PackedLog.open(out)


def _without_rewarded(aggregates: Aggregates) -> Aggregates:
    """The rewarded rows are all there, beside it."""
    kept = aggregates.rewarded
    return dataclasses.replace(
        aggregates,
        rewarded=KeptRows(kept.limit, kept.order, kept.seen),
        treatments={name: _without_rewarded(held) for name, held in aggregates.treatments.items()},
    )


def _refuse_source(source: Source, out: Path) -> None:
    for name, schema in source.schemas():
        for column in schema.names:
            if schema.names.count(column) > 1:
                raise BadInput(f"{name}: column '{column}' is there twice. Rename one.")
        if ROW_NUMBER in schema.names and pack_of(schema) is None:
            raise BadInput(f"{name}: a packed log has a column '{ROW_NUMBER}' of its own. Rename the log's.")
    for path in getattr(source, "paths", ()):
        if Path(path).resolve().is_relative_to(out.resolve()):
            raise BadInput(f"{out}: the log itself lies there. Give -o another folder.")


def _common_schema(source: Source) -> pa.Schema:
    """One type for each column of all files, wide enough for each."""
    fields: dict[str, tuple[str, pa.Field]] = {}
    for name, schema in source.schemas():
        for found in schema:
            first, held = fields.get(found.name, (name, found))
            try:
                [one] = pa.unify_schemas([pa.schema([f.with_nullable(True)]) for f in (held, found)],
                                         promote_options="permissive")  # fmt: skip
            except pa.ArrowException:
                raise BadInput(
                    f"{name}: column '{found.name}' is {found.type}, but {held.type} in {first}: it must be of one type"
                    " in all files. Convert one of them."
                ) from None
            fields[found.name] = first, one.remove_metadata()
    fields.pop(ROW_NUMBER, None)
    return pa.schema([*(held for _, held in fields.values()), pa.field(ROW_NUMBER, pa.int64())])


def _chunks(source: Source, schema: pa.Schema) -> Iterator[Chunk]:
    columns = [name for name in schema.names if name != ROW_NUMBER]
    for part in source.parts(columns, BATCH_ROWS):
        yield from part()


def _conformed(chunk: Chunk, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the common types, null where its file lacks a column, and the number of each row."""
    batch = chunk.batch
    arrays = []
    for wanted in schema:
        if wanted.name == ROW_NUMBER:
            arrays.append(pa.array(chunk.positions(), pa.int64()))
        elif wanted.name not in batch.schema.names:
            arrays.append(pa.nulls(batch.num_rows, wanted.type))
        else:
            array = batch[wanted.name]
            try:
                arrays.append(array if array.type == wanted.type else array.cast(wanted.type))
            except pa.ArrowException:
                raise BadInput(
                    f"{chunk.source}: column '{wanted.name}' is {array.type} and has values that do not fit in"
                    f" {wanted.type}, which the other files ask for. Convert one of them."
                ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(frozen=True)
class _Files:
    """Schemas to be checked as those of a log are."""

    files: list[tuple[str, pa.Schema]]
    repeatable = True
    rows = None

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return self.files

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        return []


@dataclass
class _Half:
    """One of the two files, filled row group by row group."""

    path: Path
    schema: pa.Schema
    pack: str
    group: int
    held: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0

    @property
    def _unfinished(self) -> Path:
        """Its name until it is whole: a folder of logs may be around it, and a kill may leave it there."""
        return self.path.with_suffix(".part")

    def __enter__(self) -> _Half:
        self.writer = pq.ParquetWriter(
            self._unfinished, self.schema.with_metadata({PACKED: self.pack.encode()}),
            compression="zstd", write_page_checksum=True,
            use_dictionary=_coded(self.schema), column_encoding={ROW_NUMBER: "DELTA_BINARY_PACKED"},
        )  # fmt: skip
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            self._write()
        finally:
            self.writer.close()
        self._unfinished.rename(self.path)

    def add(self, batch: pa.RecordBatch, which: npt.NDArray[np.bool_]) -> None:
        if which.any():
            self.held.append(batch.filter(pa.array(which)))
            self.rows += self.held[-1].num_rows
        if self.rows >= self.group:
            self._write()

    def _write(self) -> None:
        if self.held:
            self.writer.write_table(pa.Table.from_batches(self.held), row_group_size=self.group)
            self.held, self.rows = [], 0


def _coded(schema: pa.Schema) -> list[str]:
    """Columns worth a dictionary, as Parquet names them: it does nothing for floats but cost time."""
    paths = []
    for column in schema:
        path, kind = column.name, column.type
        while is_list(kind):
            path, kind = f"{path}.list.element", kind.value_type
        if not pa.types.is_floating(kind) and path != ROW_NUMBER:
            paths.append(path)
    return paths


@contextmanager
def _whole_folder(out: Path) -> Iterator[Path]:
    """A folder beside `out` to write to, renamed to it in the end: it is there whole, or as it was."""
    if out.exists() and not (out.is_dir() and (PackedLog.is_one(out) or not any(out.iterdir()))):
        raise BadInput(f"{out}: is there already, and is no packed log. Give -o another name.")
    out.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        new, old = beside / "new", beside / "old"
        new.mkdir()
        yield new
        if out.exists():
            out.rename(old)
        new.rename(out)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
