"""The sentences of a board: what its results say, how offline and online agreed, what to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from foretest.formatting import plural
from foretest.report.blocks import Remark
from foretest.report.board.files import Problem
from foretest.report.board.pairs import PairCounts
from foretest.report.board.rows import HISTORY, OFFLINE, ONLINE, RESULT_KINDS, Row
from foretest.results.audit import FAIL
from foretest.results.range_text import WORD_MEANING
from foretest.results.uplift_range import WORDS

_KINDS = {OFFLINE: "offline result", ONLINE: "online result", HISTORY: "history", "check": "check"}
_PLURALS = {HISTORY: "histories"}

GUIDE = [
    ("offline, online, history", "What foretest run, foretest online and foretest history wrote."),
    ("date", "The last day of the log, where the result knows it; else the day on which the file was written (UTC)."),
    ("metric", "Of each result first its goal: the first metric with that role, or the first of all. Choose another"
     " metric, or all, above the table."),
    ("range", "Offline: noise, and what the log cannot support; “noise only” where it allows for nothing else. Online:"
     " the interval. The pale bar is the range, the bar inside it noise alone."),
    ("word", f"{WORD_MEANING[0].upper()}{WORD_MEANING[1:]}. “By verdict”: an earlier version of Foretest wrote the"
     " result, without range and word; its interval is shown, and a verdict that rests on noise alone leans."),
    ("audit", "Offline: was the log drawn from the control? Online: are units split as designed? Of a history: the"
     " worst of its tests."),
    ("predicted and measured", "A result in NAME/offline and one in NAME/online are a pair. Of several treatments the"
     " winner is compared."),
    ("in range", "The online uplift lies in the offline range, with the online noise allowed for: each half of the"
     " range, h, is √(h² + z²·se²), as in a history."),
    ("offline was", "Right: the word decides as the online verdict does, where a word that leans counts as its side,"
     " and insufficient as neutral. False negative: it decides lower; false positive: higher. Of a history it goes by"
     " verdicts, as on its own page."),
]  # fmt: skip


def board_sentence(rows: Sequence[Row], counts: PairCounts) -> str:
    """The answer of the page: how offline and online agreed where there are pairs, else what there is.

    >>> board_sentence([], PairCounts(4, 4, 3, 2, 1, 1))
    'Of 4 tests with both results, the range contained the online uplift in 3, and offline was right in 2.'
    """
    if counts.tests:
        compared = "" if counts.with_range == counts.tests else f" of {counts.with_range} that can be compared"
        return (
            f"Of {plural(counts.tests, 'test')} with both results, the range contained the online uplift in"
            f" {counts.range_held}{compared}, and offline was right in {counts.right}."
        )
    return f"{kinds_text(rows)}." if rows else "No result could be read."


def kinds_text(rows: Iterable[Row]) -> str:
    """How many results there are of each kind."""
    files = {row.entry.file: row.entry.kind for row in rows}
    counts = Counter(files.values())
    return ", ".join(_count(counts[kind], kind) for kind in RESULT_KINDS if counts[kind])


def _count(count: int, kind: str) -> str:
    if count != 1 and kind in _PLURALS:
        return f"{count:,} {_PLURALS[kind]}"
    return plural(count, _KINDS[kind])


def board_remarks(rows: Sequence[Row], counts: PairCounts, problems: Sequence[Problem]) -> list[Remark]:
    """The lines below the sentence: words of offline results, failed audits, files that could not be read."""
    remarks = []
    if counts.tests:
        missed = f"{plural(counts.too_low, 'false negative')}, {plural(counts.too_high, 'false positive')}"
        remarks.append(Remark(f"{kinds_text(rows)}. Where offline was wrong: {missed}."))
    words = Counter(row.estimate.word for row in rows if row.leads and row.estimate and row.entry.kind == OFFLINE)
    if words:
        remarks.append(
            Remark(f"Offline, by first goal: {', '.join(f'{words[word]} {word}' for word in WORDS if words[word])}.")
        )
    failed = len({row.entry.file for row in rows if row.audit is not None and row.audit.outcome == FAIL})
    if failed:
        remarks.append(Remark(f"The audit failed for {plural(failed, 'result')}: do not trust what they say.", "alarm"))
    if problems:
        what = "1 file or folder" if len(problems) == 1 else f"{len(problems):,} files or folders"
        remarks.append(Remark(f"{what} could not be read, for the reasons given below.", "alarm"))
    return remarks
