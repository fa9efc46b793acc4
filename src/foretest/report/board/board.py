"""All results in a folder, read for a board: rows, pairs of offline and online, and what could not be read."""

from __future__ import annotations

from typing import Any

from foretest._version import __version__
from foretest.errors import BadInput
from foretest.files import html_text, json_ready, user_path
from foretest.formatting import plural
from foretest.progress import Progress
from foretest.records import dataclass
from foretest.report.board.fields import Damaged, read_document, refuse_other_schema
from foretest.report.board.files import RESULT_FILES, Problem, ResultFile, describe, find_results
from foretest.report.board.history_rows import history_rows
from foretest.report.board.pairs import Pair, pairs_of
from foretest.report.board.rows import Row, result_rows
from foretest.results.result import SCHEMA
from foretest.stores import Location, location

STAGE = "results"
BOARD_SCHEMA = 1  # of what to_dict gives


@dataclass(frozen=True)
class Board:
    """All results in a folder: `rows`, one per metric and treatment; `pairs` of offline and online; `problems`.

    >>> from pathlib import Path
    >>> import foretest as ft
    >>> ft.Board(Path("results"), rows=[], pairs=[], problems=[]).results
    0
    """

    folder: Location  # that was read
    rows: list[Row]  # one per metric and treatment
    pairs: list[Pair]  # of offline and online
    problems: list[Problem]  # files that could not be read

    @property
    def results(self) -> int:
        """How many files were read."""
        return len({row.entry.file for row in self.rows})

    def to_dict(self) -> dict[str, Any]:
        """The content that `foretest board --json` prints."""
        document: dict[str, Any] = json_ready(
            {
                "foretest": __version__,
                "schema": BOARD_SCHEMA,
                "rows": [row.to_dict() for row in self.rows],
                "pairs": [pair.to_dict() for pair in self.pairs],
                "problems": [vars(problem) for problem in self.problems],
            }
        )
        return document

    def to_html(self, path: str | Location | None = None) -> str:
        """One self-contained page, with links to reports that are relative to `path`, or else to the folder; with a
        path it is also written there, completely or not at all."""
        from foretest.report.board.page import board_page

        place = self.folder / "board.html" if path is None else location(path)
        return html_text(board_page(self, place), path)

    def __repr__(self) -> str:
        tests = plural(sum(pair.leads for pair in self.pairs), "pair")
        unread = f", {len(self.problems)} could not be read" if self.problems else ""
        return f"<Board {plural(self.results, 'result')}, {tests} of offline and online{unread}>"


def read_board(folder: str | Location, *, progress: Progress | None = None) -> Board:
    """All results in a folder and its subfolders, as `foretest run`, `online` and `history` write them with -o.

    Parameters
    ----------
    folder: the folder, here or in an object store.
    progress: called with what is done so far.

    Returns
    -------
    A `Board`. A file that is damaged is among its `problems`.

    Raises
    ------
    BadInput: there is no result in the folder.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import foretest as ft
    >>> import pyarrow as pa
    >>> test = ft.OnlineTest(log=ft.LogColumns(rewards=["click"]))
    >>> result = test.run(pa.table({"click": [1, 0, 0, 0] * 100}), pa.table({"click": [1, 0] * 200}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = result.to_json(Path(folder, "result.json"))
    ...     print(ft.read_board(folder))
    <Board 1 result, 0 pairs of offline and online>
    """
    place = user_path(folder)
    content = find_results(place)
    rows, problems = list[Row](), list(content.problems)
    recognised = 0
    for file in content.files:
        if progress is not None:
            progress(STAGE, len(content.files), 1)
        try:
            read = _read(file)
        except (Damaged, BadInput, OSError) as error:
            sentence = str(error) if isinstance(error, Damaged) else describe(error, file.path)
            problems.append(Problem(file.place, sentence))
            recognised += 1
            continue
        rows += read or ()
        recognised += read is not None
    if not recognised:
        unread = f" {len(problems)} of its folders could not be read." if problems else ""
        raise BadInput(
            f"{folder}: there is no result of Foretest in this folder, nor in its subfolders.{unread} Expected"
            f" {' or '.join(RESULT_FILES)}, as foretest run, online and history write them with -o."
        )
    return Board(place, rows, list(pairs_of(rows)), problems)


def _read(file: ResultFile) -> list[Row] | None:
    """The rows of a file; None where Foretest did not write it."""
    document = read_document(file.path.read_bytes())
    if document is None:
        return None
    refuse_other_schema(document, SCHEMA)
    return history_rows(file, document) if "tests" in document.content else result_rows(file, document)
