"""The lines of a board's tables: numbers as text, as values to sort by, and as bars on one scale."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median

from foretest.formatting import shortened
from foretest.records import dataclass
from foretest.report.bars import Bar, Span, bars
from foretest.report.board.files import relative_link
from foretest.report.board.pairs import Pair
from foretest.report.board.rows import BY_FILE, ONLINE, OUTCOMES, Check, Entry, Row
from foretest.report.digits import NONE, num, pct
from foretest.report.rows import UpliftCells, absolute, relative, uplift_cells
from foretest.results.range_text import range_of
from foretest.results.result import Estimate
from foretest.results.uplift_range import NOISE, WORDS
from foretest.settings.metric_roles import toward_good
from foretest.stores import Location

_LONGEST = 160  # characters of a name in a cell
_NAMED = 3  # further metrics that a line names
_BEYOND = 6.0  # a range wider than that many times the usual does not set the scale of the bars


@dataclass(frozen=True)
class UpliftLine:
    """An uplift with its range and its word."""

    cells: UpliftCells
    lower: float | None  # to sort by
    range_note: str
    word: str
    tone: str  # the word whose colour says good or bad
    word_note: str

    @property
    def rank(self) -> int:
        """The word's place from positive to insufficient, to sort by."""
        return WORDS.index(self.word)


@dataclass(frozen=True)
class ResultLine:
    """A row of the table of results."""

    name: str
    link: str | None
    kind: str
    treatment: str
    wins: bool
    date: str
    date_value: int | None
    date_note: str
    metric: str
    metric_note: str
    leads: bool
    others: list[str]  # the further metrics of the same treatment
    uplift: UpliftLine | None
    agreement: str  # of a history
    agreement_note: str
    guardrail: str | None
    audit: Check | None
    audit_rank: int | None


@dataclass(frozen=True)
class PairLine:
    """A row of the table of pairs."""

    name: str
    offline_link: str | None
    online_link: str | None
    metric: str
    treatment: str
    leads: bool
    predicted: UpliftLine
    measured: UpliftLine
    range_held: str  # yes, no, or unknown
    call: str


def result_lines(rows: Sequence[Row], page: Location) -> list[ResultLine]:
    """The lines of all rows; bars share one scale."""
    drawn = _bars([None if row.estimate is None else relative(row.estimate) for row in rows])
    further: dict[tuple[Entry, str | None], list[Row]] = defaultdict(list)  # metrics beside the first goal
    treatments: dict[Entry, set[str | None]] = defaultdict(set)
    for row in rows:
        treatments[row.entry].add(row.treatment)
        if not row.leads:
            further[row.entry, row.treatment].append(row)
    return [
        _result_line(
            row,
            bar,
            further[row.entry, row.treatment] if row.leads else [],
            is_one_of_several=len(treatments[row.entry]) > 1,
            page=page,
        )
        for row, bar in zip(rows, drawn, strict=True)
    ]


def _result_line(
    row: Row, bar: Bar | None, further: list[Row], *, is_one_of_several: bool, page: Location
) -> ResultLine:
    entry, agreed = row.entry, row.agreed
    return ResultLine(
        name=shortened(entry.name, _LONGEST),
        link=_link(row, page),
        kind=entry.kind,
        treatment=shortened(row.treatment or "", _LONGEST),
        wins=row.wins and is_one_of_several,
        date=NONE if entry.day is None else entry.day.isoformat(),
        date_value=None if entry.day is None else entry.day.toordinal(),
        date_note="of the file" if entry.dated_by == BY_FILE and entry.day is not None else "",
        metric=shortened(row.metric or NONE, _LONGEST),
        metric_note="lower is better" if row.direction == "decrease" else "",
        leads=row.leads,
        others=_other_words(further),
        uplift=None if row.estimate is None else _uplift_line(row, row.estimate, bar),
        agreement="" if agreed is None else f"offline was right in {agreed.right} of {agreed.tests} tests",
        agreement_note=""
        if agreed is None or agreed.range_held is None
        else f"{agreed.estimator}, range held {pct(agreed.range_held)}",
        guardrail=row.guardrail,
        audit=row.audit,
        audit_rank=None if row.audit is None else OUTCOMES.index(row.audit.outcome),
    )


def _other_words(rows: Sequence[Row]) -> list[str]:
    """The further metrics of a treatment in words; a guardrail that does not pass is always named."""
    broken = [row for row in rows if row.guardrail in ("fail", "unclear")]
    rest = [row for row in rows if row not in broken and row.estimate is not None]
    lines = [f"guardrail {_short(row)}: {row.guardrail}" for row in broken[:_NAMED]]
    lines += [f"{len(broken) - _NAMED} more guardrails: fail or unclear"] if len(broken) > _NAMED else []
    if len(rest) <= _NAMED:
        return lines + [f"{_short(row)}: {row.estimate.word}" for row in rest if row.estimate is not None]
    words = Counter(row.estimate.word for row in rest if row.estimate is not None)
    return [*lines, f"{len(rest)} more metrics: {', '.join(f'{words[word]} {word}' for word in WORDS if words[word])}"]


def _short(row: Row) -> str:
    return shortened(row.metric or "", 40)


def _uplift_line(row: Row, estimate: Estimate, bar: Bar | None) -> UpliftLine:
    online = row.entry.kind == ONLINE
    limits = range_of(estimate)
    is_relative = estimate.rel_effect_size is not None
    cells = uplift_cells(relative(estimate), pct, bar) if is_relative else uplift_cells(absolute(estimate), num)
    notes = ["noise only"] * (limits.kind == NOISE and not online and limits.ci_lower is not None)
    return UpliftLine(
        cells=cells if is_relative or estimate.effect_size is None else _per_display(cells),
        lower=limits.rel_ci_lower,
        range_note=", ".join(notes),
        word=estimate.word,
        tone=toward_good(estimate.word, row.direction),
        word_note="by verdict" if row.by_verdict and not online else "",
    )


def _per_display(cells: UpliftCells) -> UpliftCells:
    """Absolute numbers say so; among relative ones they are not sorted."""
    return UpliftCells(f"{cells.text} per display", None, cells.range, cells.noise)


def _link(row: Row, page: Location) -> str | None:
    report = row.entry.file.report
    return None if report is None else relative_link(report, page)


def pair_lines(pairs: Sequence[Pair], page: Location) -> list[PairLine]:
    """The lines of all pairs; the bars of both sides share one scale."""
    spans = [relative(estimate) for pair in pairs for estimate in (pair.predicted, pair.measured)]
    drawn = _bars(spans)
    return [
        PairLine(
            name=shortened(pair.name, _LONGEST),
            offline_link=_link(pair.offline, page),
            online_link=_link(pair.online, page),
            metric=shortened(pair.offline.metric or NONE, _LONGEST),
            treatment=shortened(pair.offline.treatment or "", _LONGEST),
            leads=pair.leads,
            predicted=_uplift_line(pair.offline, pair.predicted, drawn[2 * number]),
            measured=_uplift_line(pair.online, pair.measured, drawn[2 * number + 1]),
            range_held={True: "yes", False: "no", None: "unknown"}[pair.range_held],
            call=pair.call,
        )
        for number, pair in enumerate(pairs)
    ]


def _bars(spans: Sequence[Span | None]) -> list[Bar | None]:
    """Bars on one scale, which ranges far wider than most do not set: arrows say that they go on beyond it."""
    reach = [_reach(span) for span in spans if span is not None and span.sound and span.lower is not None]
    most = _BEYOND * median(reach) if reach else 0.0
    fair = [
        Span(None, None, None) if span is None else span._replace(sound=span.sound and _reach(span) <= most)
        for span in spans
    ]
    return bars(fair)


def _reach(span: Span) -> float:
    """How far a span goes from 0."""
    return max(abs(end) for end in (span.lower, span.upper, 0.0) if end is not None)
