"""The page of a board: pairs of offline and online, all results, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, Any

from foretest.report.board.lines import PairLine, ResultLine, pair_lines, result_lines
from foretest.report.board.pairs import count_pairs
from foretest.report.board.rows import OUTCOMES, RESULT_KINDS, Row
from foretest.report.board.sentences import GUIDE, board_remarks, board_sentence
from foretest.report.history_words import CALLS
from foretest.report.page import bounded, fill
from foretest.results.uplift_range import WORDS

if TYPE_CHECKING:
    from foretest.report.board.board import Board
    from foretest.stores import Location

PROBLEMS_SHOWN = 200
MOST = 6400  # rows of a table at part 1; at part 2 and beyond only those of first goals are shown


def board_page(board: Board, page: Location) -> str:
    """The whole page, with links relative to where it is written."""
    return bounded(lambda part: _page(board, page, part))


def _page(board: Board, page: Location, part: int) -> str:
    rows = sorted(board.rows, key=_newest_first)
    counts = count_pairs(board.pairs)
    sentence = board_sentence(rows, counts)
    shown_rows = [row for row in rows if part == 1 or row.leads][: MOST // part]
    shown_pairs = [pair for pair in board.pairs if part == 1 or pair.leads][: MOST // part]
    lines, pairs = result_lines(shown_rows, page), pair_lines(shown_pairs, page)
    context: dict[str, Any] = {
        "sentence": sentence,
        "remarks": board_remarks(rows, counts, board.problems),
        "guide": GUIDE,
        "pairs": pairs,
        "pairs_left_out": len(board.pairs) - len(pairs),
        "lines": lines,
        "lines_left_out": len(rows) - len(lines),
        "pair_metrics": metric_numbers(pairs),
        "metrics": metric_numbers(lines),
        "kinds": [kind for kind in RESULT_KINDS if any(line.kind == kind for line in lines)],
        "words": WORDS,
        "outcomes": OUTCOMES,
        "calls": CALLS,
        "problems": board.problems[:PROBLEMS_SHOWN],
        "problems_left_out": max(0, len(board.problems) - PROBLEMS_SHOWN),
    }
    places = [*[("pairs", "Predicted and measured")] * bool(pairs), *[("results", "Results")] * bool(lines),
              *[("problems", "Not read")] * bool(board.problems)]  # fmt: skip
    return fill("board.html", "board", f"{sentence} – Foretest", places, context, [], part=part)


def _newest_first(row: Row) -> int:
    """The order of results: by date, the newest first; rows of one result stay as they are."""
    return -(row.entry.day or date.min).toordinal()


def metric_numbers(lines: Iterable[ResultLine | PairLine]) -> dict[str, int]:
    """A number for every metric of a table, by which the page filters."""
    return {name: number for number, name in enumerate(dict.fromkeys(line.metric for line in lines))}
