"""Saved aggregates: Parquet files that record what they were made with, merged without reading more than is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.flat import SCHEMA, array_row, batch_of, flatten, from_batches, restore, tree_row
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.folded import Folded
from foretest.displays.merging import merged
from foretest.errors import BadInput
from foretest.files import whole_file
from foretest.records import dataclass
from foretest.settings.settings import Settings
from foretest.sources import AGGREGATES, Source
from foretest.sources.base import short
from foretest.sources.parquet import open_parquet
from foretest.storage.saved.checks import refuse_other_recipe, refuse_other_settings
from foretest.storage.saved.header import check_header
from foretest.storage.saved.inputs import InputFile, refuse_repeated
from foretest.storage.saved.json_values import digest
from foretest.storage.saved.logger_days import Days, days_of_all
from foretest.storage.saved.old_layouts import in_layout_of_today
from foretest.storage.saved.recipe import Recipe, refuse_other_layout
from foretest.stores import Location, RemotePath, listed_location, location
from foretest.stores.faults import is_store_fault, store_fault

_FIRST_ROWS = 1024  # of kept rows, in the first block; each later block doubles what is there
_FOLD_AGAIN = "Fold the log again with foretest aggregate."
_CHECKSUM = b"foretest.checksum"
_AT_ONCE = 8  # files held in memory while they are added up


def write_aggregates(
    path: str | Location,
    aggregates: Aggregates,
    notes: Sequence[str] = (),
    r_max: Mapping[str, float] | None = None,
    *,
    inputs: Sequence[InputFile] = (),
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write aggregates with what they were made with: afterwards the file is complete, or as it was before.

    The first row group has the tree of arrays and all that is always read. The kept rows (those of the smallest unit
    hashes, in order) follow in blocks, with the last hash of each in the metadata, so that a merge reads only the
    first blocks, whose rows may be among the kept rows of all files. `more` are further entries for the metadata.
    """
    flat = flatten(aggregates)
    kept_rows = {name: rows for name, rows in _kept_rows(flat.tree) if rows.columns}
    later = {array for rows in kept_rows.values() for array in rows.columns.values()}
    always = [tree_row(flat.tree), *(array_row(name, a) for name, a in flat.arrays.items() if name not in later)]
    groups, places = [always], {}
    for name, rows in kept_rows.items():
        columns = {column: flat.arrays[array] for column, array in rows.columns.items()}
        hashes = columns[json.dumps(rows.order[0])]
        ends = _block_ends(len(hashes))
        last = [int(hashes[end - 1]) for end in ends]
        places[name] = {"group": len(groups), "ends": ends, "hashes": last, "limit": rows.limit}
        for begin, end in zip([0, *ends], ends, strict=False):
            groups.append([array_row(rows.columns[column], array[begin:end]) for column, array in columns.items()])
    recipe = Recipe.of(aggregates.plan, notes, r_max, inputs)
    document = {**recipe.to_json(), "rows": aggregates.rows, "kept": places, **(more or {})}
    schema = SCHEMA.with_metadata(_metadata(document))
    with whole_file(location(path)) as beside, pq.ParquetWriter(
        beside, schema, compression="zstd", use_dictionary=False, write_statistics=False, write_page_checksum=True
    ) as writer:  # fmt: skip
        for group in groups:
            writer.write_table(pa.Table.from_batches([batch_of(group)]), row_group_size=len(group))


def refuse_to_replace(path: Location, *, packed: bool = False) -> None:
    """Refuse, before any work is done, to overwrite a file that does not hold aggregates: it may be the log, or, where
    it is not to be `packed`, a part of a packed one."""
    if not path.exists():
        return
    try:
        with open_parquet(path) as file:
            metadata = file.schema_arrow.metadata or {}
            ours = AGGREGATES in metadata and ("packed" in json.loads(metadata[AGGREGATES])) == packed
    except (pa.ArrowException, OSError, ValueError, TypeError, RecursionError):
        ours = False
    if not ours:
        raise BadInput(f"{path}: the file exists already, and holds no aggregates. Give the output another name.")


def saved_files(source: Source) -> list[SavedFile]:
    """The files of a source, where all of them hold aggregates; none where it is a log. A mix is refused."""
    files = source.schemas()
    saved = [is_saved(schema) for _, schema in files]
    if not any(saved):
        return []
    if not all(saved):
        first, other = files[saved.index(True)][0], files[saved.index(False)][0]
        raise BadInput(
            f"{first} holds aggregates and {other} is a log: they cannot be mixed. Fold the log first, with foretest"
            " aggregate, then give its aggregates."
        )
    opened = [SavedFile.of_schema(listed_location(name), schema) for name, schema in files]
    for file in opened:
        if "packed" in file.document:
            raise BadInput(f"{file.name}: a part of a packed log. Give its folder, {file.path.parent}.")
    return opened


def merge_saved(files: Sequence[SavedFile], settings: Settings) -> Folded:
    """The aggregates of several files added up, for a test with these settings.

    Files made with other settings, other estimators or another value model, or from the same log, are refused by name.
    """
    first, *others = files
    for file in others:
        refuse_other_recipe(file.recipe, file.name, first.recipe, first.name)
    refuse_repeated([(file.name, file.recipe.inputs) for file in files])
    days = days_of_all([(file.name, file.recipe.days) for file in files])
    refuse_other_settings(first.recipe, first.name, settings)
    recipes = [file.recipe for file in files]
    notes = list(dict.fromkeys(note for recipe in recipes for note in recipe.notes))
    r_max = {
        name: max(recipe.r_max[name] for recipe in recipes)
        for name in first.recipe.r_max
        if all(name in recipe.r_max for recipe in recipes)
    }
    return Folded(merge_files(files, first.plan(settings, days)), notes, r_max)


def merge_files(files: Sequence[SavedFile], plan: FoldPlan) -> Aggregates:
    """The aggregates of all files added up."""
    heads = _heads(files)
    running: list[Aggregates] = []
    with ThreadPoolExecutor(2) as pool:
        for begin in range(0, len(files), _AT_ONCE):
            some = pool.map(lambda file: file.read(plan, heads), files[begin : begin + _AT_ONCE])
            running = [merged([*running, *some])]
    return running[0]


@dataclass(frozen=True)
class SavedFile:
    """A file of aggregates of which only the metadata, with what it was made with, has been read."""

    path: Location
    recipe: Recipe
    document: Mapping[str, Any]
    remedy: str  # what to do if it is damaged

    @classmethod
    def open(cls, path: Location, remedy: str = _FOLD_AGAIN) -> SavedFile:
        with _damage(path, remedy), open_parquet(path) as file:
            return cls.of_schema(path, file.schema_arrow, remedy)

    @classmethod
    def of_schema(cls, path: Location, schema: pa.Schema, remedy: str = _FOLD_AGAIN) -> SavedFile:
        """From the schema of a file that was opened before."""
        if not is_saved(schema):
            raise BadInput(f"{path}: a Parquet file without aggregates. Make them with foretest aggregate.")
        with _damage(path, remedy):
            if digest(schema.metadata[AGGREGATES]).encode() != schema.metadata[_CHECKSUM]:
                raise ValueError("its metadata was changed")
            document = json.loads(schema.metadata[AGGREGATES])
            refuse_other_layout(str(path), document)
            check_header(document)
            return cls(path, Recipe.from_json(document), document, remedy)

    @property
    def name(self) -> str:
        return str(self.path)

    def plan(self, settings: Settings, days: Days | None = None) -> FoldPlan:
        """The plan that the sums were folded under, for a test with these settings."""
        with _damage(self.path, self.remedy):
            return self.recipe.plan(self.name, settings, days)

    def settings(self) -> Settings:
        """The settings that the sums were made with."""
        with _damage(self.path, self.remedy):
            return self.recipe.recorded(self.name)

    def read(self, plan: FoldPlan, heads: Mapping[str, int] | None = None) -> Aggregates:
        """The aggregates; of the kept rows only the blocks that begin below the hashes in `heads`."""
        heads = heads or {}
        with _damage(self.path, self.remedy), open_parquet(self.path, page_checksum_verification=True) as file:
            groups = [0]
            for name, place in self.document["kept"].items():
                blocks = len(place["ends"])
                if name in heads:
                    blocks = min(blocks, sum(last < heads[name] for last in place["hashes"]) + 1)
                groups += range(place["group"], place["group"] + blocks)
            flat = from_batches(file.read_row_groups(groups, use_threads=False).to_batches())
            for name, rows in _kept_rows(flat.tree):
                if name in heads:
                    rows.fields["highest"] = min(rows.fields["highest"], heads[name])
            return restore(in_layout_of_today(flat, plan), plan)


def _metadata(document: Mapping[str, Any]) -> dict[bytes, bytes]:
    text = json.dumps(document, allow_nan=False).encode()
    return {AGGREGATES: text, _CHECKSUM: digest(text).encode()}  # pages have checksums, metadata has none


def is_saved(schema: pa.Schema) -> bool:
    """Is it the schema of a file of aggregates?"""
    return AGGREGATES in (schema.metadata or {})


@dataclass(frozen=True)
class _KeptNode:
    """The node of some `KeptRows` in a tree."""

    fields: dict[str, Any]

    @property
    def limit(self) -> int:
        return int(self.fields["limit"])

    @property
    def order(self) -> list[str]:
        return list(self.fields["order"]["tuple"])

    @property
    def columns(self) -> dict[str, str]:
        """The names of the arrays of the kept rows, by column as JSON."""
        parts = self.fields["parts"]["list"]
        return {json.dumps(column): node["array"] for column, node in parts[0]["map"]} if parts else {}


def _kept_rows(tree: Any, name: str = "") -> Iterator[tuple[str, _KeptNode]]:
    """The nodes of all `KeptRows` of a tree, each with the path to it."""
    if isinstance(tree, dict):
        if tree.get("class") == "KeptRows":
            yield name, _KeptNode(tree["fields"])
            return
        for key, node in tree.items():
            yield from _kept_rows(node, f"{name}/{key}")
    elif isinstance(tree, list):
        for i, node in enumerate(tree):
            yield from _kept_rows(node, f"{name}/{i}")


def _block_ends(rows: int) -> list[int]:
    """Where each block of kept rows ends."""
    ends, end = [], _FIRST_ROWS
    while end < rows:
        ends.append(end)
        end *= 2
    return [*ends, rows]


def _heads(files: Sequence[SavedFile]) -> dict[str, int]:
    """For each set of kept rows a hash above which no row is kept once all files are added up, by the blocks' ends."""
    heads: dict[str, int] = {}
    for name in dict.fromkeys(name for file in files for name in file.document["kept"]):
        places = [file.document["kept"][name] for file in files if name in file.document["kept"]]
        below = 0
        for last, rows in sorted(
            (last, end - begin)
            for place in places
            for begin, end, last in zip([0, *place["ends"]], place["ends"], place["hashes"], strict=False)
        ):
            below += rows
            if below >= places[0]["limit"]:
                heads[name] = last
                break
    return heads


@contextmanager
def _damage(path: Location, remedy: str) -> Iterator[None]:
    """Any error in reading a file that should hold aggregates, as one sentence."""
    try:
        yield
    except BadInput:
        raise
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file or folder.") from None
    except (pa.ArrowException, OSError) as error:
        if isinstance(path, RemotePath) and is_store_fault(error):
            raise store_fault(path, error) from None
        raise BadInput(f"{path}: damaged aggregates ({short(error)}). {remedy}") from None
    except RecursionError:
        raise BadInput(f"{path}: damaged aggregates (brackets are nested too deeply). {remedy}") from None
    except KeyError as error:
        raise BadInput(f"{path}: damaged aggregates ({error} is missing). {remedy}") from None
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise BadInput(f"{path}: damaged aggregates ({short(error)}). {remedy}") from None
