"""Which files are Foretest's to replace: those with the mark that it leaves, and only as they were made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretest.errors import BadInput
from foretest.storage.ownership import marked_json, marked_schema, marked_toml, own_files, refuse_others

TABLE = pa.table({"click": [1, 0, 1], "user": ["a", "b", "c"]})


def write(folder: Path, *, replace: bool = False) -> list[Path]:
    """A log, its settings and a truth, as commands write them."""
    paths = [folder / name for name in ("log.parquet", "settings.toml", "truth.json")]
    with own_files(paths, replace=replace) as (log, settings, truth):
        with pq.ParquetWriter(log, marked_schema(TABLE.schema)) as writer:
            writer.write_table(TABLE)
        settings.write_text(marked_toml("cap = 3\n"))
        truth.write_text(json.dumps(marked_json({"click": 0.1})))
    return paths


def refused(paths: list[Path]) -> str:
    with pytest.raises(BadInput) as error:
        refuse_others(paths)
    return str(error.value)


def test_what_was_made_is_made_again(tmp_path: Path) -> None:
    first = [path.read_bytes() for path in write(tmp_path / "new")]
    again = write(tmp_path / "new")
    assert [path.read_bytes() for path in again] == first
    assert pq.read_table(again[0]).equals(TABLE)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["log.parquet", "settings.toml", "truth.json"]


def rewritten(path: Path) -> None:
    """As pandas and PyArrow do it, with the metadata of the file that was read."""
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "click", pa.array([0, 1, 1])), path)


EDITS: list[tuple[int, Callable[[Path], object]]] = [
    (0, rewritten),
    (0, lambda path: pq.write_table(pq.read_table(path), path)),
    (0, lambda path: path.write_bytes(path.read_bytes()[:-1])),
    (1, lambda path: path.write_text(path.read_text().replace("cap = 3", "cap = 4"))),
    (1, lambda path: path.write_text(path.read_text() + "seed = 1\n")),
    (1, lambda path: path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))),
    (2, lambda path: path.write_text(path.read_text().replace("0.1", "0.2"))),
]


@pytest.mark.parametrize("edit", EDITS)
def test_what_was_edited_is_the_persons(tmp_path: Path, edit: tuple[int, Callable[[Path], object]]) -> None:
    paths = write(tmp_path)
    number, change = edit
    change(paths[number])
    before = [path.read_bytes() for path in paths]
    message = refused(paths)
    assert message.startswith(f"{paths[number]}: already there, and ")
    assert message.endswith(
        ": it is not replaced. Give -o another name, or --replace (in Python replace=True) if it may be lost."
    )
    with pytest.raises(BadInput):
        write(tmp_path)
    assert [path.read_bytes() for path in paths] == before
    write(tmp_path, replace=True)
    refuse_others(paths)


def test_every_bit_counts(tmp_path: Path) -> None:
    for path in write(tmp_path):
        whole = path.read_bytes()
        for place in range(0, 8 * len(whole), 8 * len(whole) // 60):
            flipped = bytearray(whole)
            flipped[place // 8] ^= 1 << (place % 8)
            path.write_bytes(flipped)
            assert "already there" in refused([path]), place
        path.write_bytes(whole)


def test_what_is_no_file_of_ours(tmp_path: Path) -> None:
    """A file of somebody else, an empty one, a link that leads nowhere, a folder: also where all may be replaced."""
    (tmp_path / "other.parquet").write_bytes(b"PAR1 and no footer PAR1")
    (tmp_path / "empty.toml").touch()
    (tmp_path / "link.toml").symlink_to(tmp_path / "unmounted" / "settings.toml")
    for name in ("other.parquet", "empty.toml", "link.toml"):
        assert "already there, and not made by Foretest" in refused([tmp_path / name])
    (tmp_path / "settings.toml").mkdir()
    with pytest.raises(BadInput, match="is a folder, and a file is to be written there"):
        refuse_others([tmp_path / "settings.toml"], replace=True)


def test_a_file_that_comes_while_we_work(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"

    def work() -> None:
        with own_files([path]) as [place]:
            place.write_text(marked_toml("cap = 3\n"))
            path.write_text("cap = 5  # mine\n")

    with pytest.raises(BadInput, match="already there, and not made by Foretest"):
        work()
    assert path.read_text() == "cap = 5  # mine\n"
    assert [one.name for one in tmp_path.iterdir()] == ["settings.toml"]
