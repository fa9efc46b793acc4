"""Packing: a log rewritten in one pass, its rewarded rows in a separate file, with the sums of all rows."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import choose_estimators
from foretest.aggregation.fold import Fold
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import KeptRows
from foretest.displays.arrow_numbers import to_arrow
from foretest.displays.ragged import is_list, without_views
from foretest.engines import local
from foretest.errors import BadInput, RowFault
from foretest.files import folders_for, replace_all, upload_all
from foretest.log.reader import Reader
from foretest.records import dataclass
from foretest.remains import remove_remains, temporary_folder
from foretest.settings.settings import Settings
from foretest.sources import BATCH_ROWS, PACKED, ROW_NUMBER, Chunk, Part, Source, pack_of
from foretest.sources.parquet import refuse_unwritable
from foretest.storage.ownership import marked_schema, put_mark, refuse_others
from foretest.storage.packed.reading import BASE, REST, REWARDED, PackedLog
from foretest.storage.saved.files import refuse_to_replace, write_aggregates
from foretest.storage.saved.inputs import recorded_inputs, source_paths
from foretest.stores import Location, RemotePath

REST_ROWS = 1 << 17  # per row group
REWARDED_ROWS = 1 << 13  # per row group: few, so that all cores have some


def pack(
    source: Source,
    settings: Settings,
    out: Location,
    *,
    replace: bool = False,
    progress: local.Progress | None = None,
) -> PackedLog:
    """Rewrite a log as a folder: all of its columns, and the number of each row.

    The folder is written under another name and renamed. Of a packed log that is there the three files are replaced,
    and all others stay; any other folder that is not empty is refused. Memory is that of a batch and of the row groups
    being filled.
    """
    # the sums that depend on no estimator, so that a run may ask for any
    settings = dataclasses.replace(settings, analysis=settings.analysis.replace(estimators=None, headline=None))
    plan = dataclasses.replace(choose_estimators(settings)[0], estimators=())
    reader = Reader(settings)
    reader.check(source)
    _refuse_source(source, out)
    _refuse_taken(out, replace)
    schema = _common_schema(source)
    reader.check(_Files([(str(out), schema)]))
    name = uuid.uuid4().hex
    with _whole_folder(out, replace) as folder:
        aggregates = _write_halves(source, reader, plan, folder, schema, name, progress)
        counts = {"pack": name, "rewarded": aggregates.rewarded.seen}
        write_aggregates(
            folder / BASE,
            _without_rewarded(aggregates),
            r_max=reader.r_max(source),
            inputs=recorded_inputs(source),
            more={"packed": counts},
        )
    return PackedLog.open(out)


def _write_halves(
    source: Source,
    reader: Reader,
    plan: FoldPlan,
    folder: Path,
    schema: pa.Schema,
    name: str,
    progress: local.Progress | None,
) -> Aggregates:
    """Write the rewarded rows and the rest to their files, and fold all of them meanwhile."""
    fold = Fold(plan)
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
                has_reward = np.asarray(rows.rewards.any(axis=1))
                rewarded.add(batch, has_reward)
                rest.add(batch, ~has_reward)
                adding.result()
                if progress is not None:
                    progress(len(rows))
        except RowFault as fault:
            if not source.repeatable:
                raise
            raise local.explain(_chunks(source, schema), reader, plan, fault) from None
    return fold.finish()


def _without_rewarded(aggregates: Aggregates) -> Aggregates:
    """The aggregates without the sample of rewarded rows: all of these are in a file of the packed log."""
    rewarded = aggregates.rewarded
    return dataclasses.replace(
        aggregates,
        rewarded=KeptRows(rewarded.limit, rewarded.order, rewarded.seen),
        treatments={name: _without_rewarded(of_treatment) for name, of_treatment in aggregates.treatments.items()},
    )


def _refuse_source(source: Source, out: Location) -> None:
    """Refuse a log that cannot be packed: with a column twice, with our column, or inside the folder to be written."""
    for name, schema in source.schemas():
        for column in schema.names:
            if schema.names.count(column) > 1:
                raise BadInput(f"{name}: column '{column}' occurs twice. Rename one of them.")
        if ROW_NUMBER in schema.names and pack_of(schema) is None:
            raise BadInput(f"{name}: the column '{ROW_NUMBER}' has the name of one that packing adds. Rename it.")
    for path in source_paths(source):
        if type(path) is type(out) and path.resolve().is_relative_to(str(out.resolve())):
            raise BadInput(f"{out}: the log itself is in this folder. Give -o another folder.")


def _common_schema(source: Source) -> pa.Schema:
    """All columns of all files, each with a type wide enough for every file, and the number of the row."""
    fields: dict[str, pa.Field] = {}
    first_file: dict[str, str] = {}
    for name, schema in source.schemas():
        for column in schema:
            common, first = fields.get(column.name, column), first_file.setdefault(column.name, name)
            try:
                [unified] = pa.unify_schemas([pa.schema([f.with_nullable(True)]) for f in (common, column)],
                                             promote_options="permissive")  # fmt: skip
            except pa.ArrowException:
                raise BadInput(
                    f"{name}: column '{column.name}' is {column.type}, but {common.type} in {first}: it must be of one"
                    " type in all files. Convert one of them."
                ) from None
            fields[column.name] = unified.remove_metadata().with_type(without_views(unified.type))
    fields.pop(ROW_NUMBER, None)
    for column in fields.values():
        refuse_unwritable(first_file[column.name], pa.schema([column]))
    return pa.schema([*fields.values(), pa.field(ROW_NUMBER, pa.int64())])


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
                    f" {wanted.type}, the type in the other files. Convert one of them."
                ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(frozen=True)
class _Files:
    """A source that has schemas and no rows, so that they are checked as those of a log."""

    files: list[tuple[str, pa.Schema]]
    repeatable = True
    rows = None

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return self.files

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        return []


@dataclass
class _Half:
    """One of the two files of a packed log, written row group by row group."""

    path: Path
    schema: pa.Schema
    pack: str
    group: int  # rows of a row group
    unwritten: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0  # of what is not yet written

    @property
    def _unfinished(self) -> Path:
        """Its name until it is complete, which no log has: a kill may leave it in a folder of logs."""
        return self.path.with_suffix(".part")

    def __enter__(self) -> _Half:
        self.writer = pq.ParquetWriter(
            self._unfinished, marked_schema(self.schema.with_metadata({PACKED: self.pack.encode()})),
            compression="zstd", write_page_checksum=True,
            use_dictionary=_coded(self.schema), column_encoding={ROW_NUMBER: "DELTA_BINARY_PACKED"},
        )  # fmt: skip
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            self._write()
        finally:
            self.writer.close()
        put_mark(self._unfinished)
        self._unfinished.rename(self.path)

    def add(self, batch: pa.RecordBatch, which: npt.NDArray[np.bool_]) -> None:
        if which.any():
            self.unwritten.append(batch.filter(to_arrow(which)))
            self.rows += self.unwritten[-1].num_rows
        if self.rows >= self.group:
            self._write()

    def _write(self) -> None:
        if self.unwritten:
            self.writer.write_table(pa.Table.from_batches(self.unwritten), row_group_size=self.group)
            self.unwritten, self.rows = [], 0


def _coded(schema: pa.Schema) -> list[str]:
    """The columns that get a dictionary, as Parquet names them: for floats it would only take time."""
    paths = []
    for column in schema:
        path, kind = column.name, column.type
        while is_list(kind):
            path, kind = f"{path}.list.element", kind.value_type
        if not pa.types.is_floating(kind) and path != ROW_NUMBER:
            paths.append(path)
    return paths


def _refuse_taken(out: Location, replace: bool) -> None:
    """Refuse a folder that holds something and is no packed log, and files of a packed log that are not Foretest's."""
    if isinstance(out, Path) and out.is_dir():
        remove_remains(out)
    if out.exists() and not (out.is_dir() and (PackedLog.is_one(out) or not any(out.iterdir()))):
        raise BadInput(f"{out}: exists already, and is no packed log. Give -o another name.")
    refuse_others([out / name for name in (REST, REWARDED)], replace=replace)
    refuse_to_replace(out / BASE, packed=True)


@contextmanager
def _whole_folder(out: Location, replace: bool) -> Iterator[Path]:
    """A folder to write to whose files go to `out` in the end: `out` is then complete, or as it was before. What goes
    to a store is first a temporary folder; the file by which a packed log is known goes last."""
    names = (REST, REWARDED, BASE)
    if isinstance(out, RemotePath):
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
            _refuse_taken(out, replace)
            upload_all({out / name: Path(temporary) / name for name in names})
        return
    target = Path(os.path.realpath(out))
    with folders_for(target), temporary_folder(target.parent) as beside:
        new = beside / "new"
        new.mkdir()
        yield new
        _refuse_taken(out, replace)  # what came meanwhile
        if target.exists():
            replace_all({target / name: new / name for name in names})
        else:
            new.rename(target)
