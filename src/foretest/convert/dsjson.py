"""Decision-service JSON (dsjson), the logs of Vowpal Wabbit and Azure Personalizer: one line per decision.

A decision for one action (CB) has the probability of every action: the control is known in full. A decision by slot
(CCB) has the probabilities of each slot given the slots above: that of the shown ranking is their product, and no
other ranking's is known.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from foretest.background import in_background
from foretest.convert.dsjson_columns import Columns, columns_for
from foretest.convert.dsjson_labels import LineFault
from foretest.convert.dsjson_lines import Decision, decision
from foretest.convert.dsjson_survey import LeftOut, Survey, lines_of, survey
from foretest.convert.written import LOG, SETTINGS, write_converted
from foretest.errors import BadInput, check_number, nearest_file
from foretest.files import user_path
from foretest.formatting import plural, some_of
from foretest.offline.test import OfflineTest
from foretest.progress import Progress
from foretest.sources.local_copies import TextPlace
from foretest.sources.paths import refuse_missing
from foretest.storage.ownership import refuse_others
from foretest.stores import Location, RemotePath, location

ENDINGS = tuple(f"{ending}{gz}" for ending in (".json", ".dsjson", ".jsonl", ".ndjson") for gz in ("", ".gz"))
_BATCH = 10_000  # rows, a row group of the written file


class DsjsonLog(NamedTuple):
    """A converted log: `log.test.run(log.path)` runs the settings that were written with it.

    >>> from pathlib import Path
    >>> import foretest as ft
    >>> log = ft.DsjsonLog(Path("log.parquet"), Path("settings.toml"), displays=2, lines=3, left_out=(), questions=())
    >>> log.displays
    2
    """

    path: Location  # log.parquet
    settings: Location  # settings.toml
    displays: int  # rows of the log
    lines: int  # of all files, but for empty ones
    left_out: tuple[LeftOut, ...]  # lines that are not in the log, by reason
    questions: tuple[str, ...]  # what may be wrong with those that are

    @property
    def test(self) -> OfflineTest:
        """The test of the written settings."""
        return OfflineTest.from_toml(self.settings)

    def remarks(self) -> list[str]:
        """What is left out and what to ask, as sentences."""
        return [*_left_out_text(self.left_out, self.lines), *(f"Question: {text}" for text in self.questions)]


def from_dsjson(
    source: Any,
    folder: str | Location,
    *,
    add: float = 0.0,
    replace: bool = False,
    progress: Progress | None = None,
) -> DsjsonLog:
    """Write log.parquet and settings.toml from files of decision-service JSON, which are read line by line, twice.

    Parameters
    ----------
    source: a file, also compressed (.gz), a folder, a glob, or a list of these.
    folder: where the two files are written.
    add: a number that is added to every reward; a reward is minus the cost, and may not be negative.
    replace: also files of these names that Foretest did not make, or that were edited since.
    progress: called with what is done so far.

    Returns
    -------
    A `DsjsonLog`: the two files, and what was left out.

    Raises
    ------
    BadInput: no line can be used, the files cannot be read, or one that is there would be lost.

    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import foretest as ft
    >>> line = {"_label_cost": -1.0, "_label_probability": 0.8, "_label_Action": 1, "_labelIndex": 0, "EventId": "a",
    ...         "a": [1, 2], "p": [0.8, 0.2], "c": {"_multi": [{"id": "tea"}, {"id": "milk"}]}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "log.json").write_text(json.dumps(line))
    ...     ft.from_dsjson(f"{folder}/log.json", f"{folder}/out").displays
    1
    """
    check_number("add", add, at_least=0.0)
    files = _files([source] if isinstance(source, str | Path) else list(source))
    place = location(folder)
    refuse_others([place / LOG, place / SETTINGS], replace=replace)
    return in_background(lambda: _convert(files, place, float(add), replace, progress))


def _convert(files: list[Path], folder: Location, add: float, replace: bool, progress: Progress | None) -> DsjsonLog:
    seen = survey(files, progress)
    _refuse(seen, add)
    columns = columns_for(seen, add)
    batches = _batches(seen, columns, progress)
    rows = write_converted(folder, batches, columns.schema, columns.tables(), columns.comment(), replace=replace)
    return DsjsonLog(folder / LOG, folder / SETTINGS, rows, seen.lines, seen.left_out, tuple(seen.questions()))


def _batches(seen: Survey, columns: Columns, progress: Progress | None) -> Iterator[pa.RecordBatch]:
    """The decisions of all files, in batches."""
    events: list[Decision] = []
    rows = 0
    for text in (text for path in seen.files for text in lines_of(TextPlace(path, path)) if text.strip()):
        try:
            events.append(decision(text))
        except LineFault:  # it was counted before
            continue
        rows += 1
        if len(events) == _BATCH:
            yield columns.batch(events)
            events = []
            if progress is not None:
                progress("write", seen.displays, _BATCH)
    if rows != seen.displays:
        named = some_of([str(path) for path in seen.files], 2)
        raise BadInput(f"{named}: changed while it was read: it had {seen.displays:,} decisions and then {rows:,}.")
    if events:
        yield columns.batch(events)


def _refuse(seen: Survey, add: float) -> None:
    """Refuse files without a decision, of two kinds of decisions, or with negative rewards."""
    named = some_of([str(path) for path in seen.files], 2)
    if not seen.displays:
        why = " ".join(_left_out_text(seen.left_out, seen.lines)) or "There is no line."
        raise BadInput(f"{named}: no line is a decision that can be weighed. {why}")
    single, slots = seen.by_slot[False], seen.by_slot[True]
    if single.lines and slots.lines:
        raise BadInput(
            f"{named}: {plural(single.lines, 'decision')} for one action ({seen.place(single.first)} is the first) and"
            f" {plural(slots.lines, 'decision')} by slot ({seen.place(slots.first)}): convert"
            " them apart, each from files of its own."
        )
    if seen.highest_cost > add:
        costly, enough = seen.costly, _short(seen.highest_cost)
        raise BadInput(
            f"{named}: a reward is minus the cost, and may not be negative. In {plural(costly.lines, 'line')} a cost is"
            f" above 0 ({seen.place(costly.first)} is the first), the highest {enough}. Give --add {enough} (from"
            f" Python add={enough}), which is added to every reward."
        )


def _left_out_text(left_out: Sequence[LeftOut], lines: int) -> list[str]:
    if not left_out:
        return []
    count = sum(reason.lines for reason in left_out)
    were = "was" if count == 1 else "were"
    return [f"{count:,} of {lines:,} lines {were} left out: {'; '.join(map(str, left_out))}."]


def _short(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _files(items: Sequence[str | Path]) -> list[Path]:
    """The files that paths, globs and folders stand for, none twice."""
    files = [path for item in items for path in _expand(_local(item))]
    if not files:
        raise BadInput("the list of files is empty: expected at least one path.")
    places: set[str] = set()
    for path in files:
        refuse_missing(path)
        place = os.path.realpath(path)
        if place in places:
            raise BadInput(f"{path}: this file is named twice, so its lines would count twice. Leave one out.")
        places.add(place)
    return files


def _local(item: str | Path) -> Path:
    path = user_path(item)
    if isinstance(path, RemotePath):
        raise BadInput(f"{path}: convert dsjson reads local files, each twice: copy it here first.")
    return path


def _expand(path: Path) -> list[Path]:
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if _is_data(file.relative_to(path)) and file.is_file()]
        if not files:
            raise BadInput(f"{path}: no file in the folder or below it ends in {', '.join(ENDINGS)}.")
        return files
    if path.exists() or not glob.has_magic(str(path)):
        if not os.path.lexists(path):
            raise BadInput(f"{path}: no such file or folder.{nearest_file(path)}")
        return [path]
    matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))
    if not matches:
        raise BadInput(f"{path}: no file matches this pattern.")
    return [file for match in matches for file in (_expand(match) if match.is_dir() else [match])]


def _is_data(path: Path) -> bool:
    hidden = any(part.startswith(("_", ".")) for part in path.parts)
    return not hidden and path.name.lower().endswith(ENDINGS)
