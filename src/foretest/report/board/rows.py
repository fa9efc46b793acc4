"""What a board shows of each result: one row per metric, and per treatment where there are several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple

from foretest.formatting import visible
from foretest.records import dataclass
from foretest.report.board.estimates import estimate_of
from foretest.report.board.fields import Fields
from foretest.report.board.files import ResultFile
from foretest.results.audit import FAIL, NOT_MADE, PASS, UNVERIFIED, WARN
from foretest.results.result import Estimate
from foretest.settings.metric_roles import DIRECTIONS, GOAL, INCREASE, ROLES

OFFLINE, ONLINE, HISTORY, CHECK = RESULT_KINDS = ("offline", "online", "history", "check")
BY_LOG, BY_FILE = "log", "file"  # where a date comes from
OUTCOMES = (FAIL, WARN, UNVERIFIED, PASS)  # of an audit, the worst first
STATES = ("pass", "fail", "unclear")  # of a guardrail


@dataclass(frozen=True)
class Entry:
    """A result file that was read."""

    file: ResultFile
    kind: str  # one of RESULT_KINDS
    day: date | None
    dated_by: str  # log: its last day; file: when the file was written
    version: str
    confidence_level: float | None = None

    @classmethod
    def of(cls, file: ResultFile, kind: str, last_day: date | None, document: Fields) -> Entry:
        """An entry dated by the last day of its log or, where that is not known, by the file."""
        dated_by = BY_FILE if last_day is None else BY_LOG
        return cls(file, kind, last_day or file.modified(), dated_by, visible(document.text("foretest") or ""))

    @property
    def name(self) -> str:
        """The path of its folder, relative to the board's."""
        return self.file.name


class Check(NamedTuple):
    """The audit of a row: of an offline result the propensity audit, of an online one whether the split is as designed,
    of a history the worst of its tests."""

    outcome: str
    note: str = ""


class Agreed(NamedTuple):
    """How often offline decided as online did in a history, by the estimator that leads."""

    right: int
    tests: int
    estimator: str
    range_held: float | None  # the share of tests whose range held the online result


@dataclass(frozen=True)
class Row:
    """One metric of one treatment of one result. Of a check there is no metric, of a history no estimate."""

    entry: Entry
    metric: str | None = None
    treatment: str | None = None  # its name, where it has one
    wins: bool = False  # is it the treatment to take?
    leads: bool = True  # is it the first goal of its result?
    role: str | None = None
    direction: str = INCREASE
    guardrail: str | None = None
    estimator: str | None = None
    estimate: Estimate | None = None
    audit: Check | None = None
    agreed: Agreed | None = None

    @property
    def by_verdict(self) -> bool:
        """Did an earlier version write it, without a range, so that its word follows from its verdict?"""
        return self.estimate is not None and self.estimate.range is None

    def to_dict(self) -> dict[str, Any]:
        """The row as --json prints it."""
        e, limits = self.estimate, None if self.estimate is None else self.estimate.range
        ends = ("ci_lower", "ci_upper", "rel_ci_lower", "rel_ci_upper")
        uplifts = ("effect_size", "rel_effect_size")
        intervals = [f"{name}_ci_{end}" for name in uplifts for end in ("lower", "upper")]
        return {
            "name": self.entry.name,
            "kind": self.entry.kind,
            "date": None if self.entry.day is None else self.entry.day.isoformat(),
            "dated_by": self.entry.dated_by,
            "foretest": self.entry.version,
            "metric": self.metric,
            "first_goal": self.leads,
            "treatment": self.treatment,
            "winner": self.wins,
            "role": self.role,
            "direction": self.direction,
            "guardrail": self.guardrail,
            "estimator": self.estimator,
            **{name: None if e is None else getattr(e, name) for name in (*uplifts, *intervals)},
            "range_kind": None if limits is None else limits.kind,
            **{f"range_{end}": None if limits is None else getattr(limits, end) for end in ends},
            "verdict": None if e is None else e.verdict,
            "word": None if e is None else e.word,
            "word_by_verdict": self.by_verdict,
            "audit": None if self.audit is None else self.audit.outcome,
            "agreement": None if self.agreed is None else self.agreed._asdict(),
            "report": self.entry.file.report is not None,
        }


def result_rows(file: ResultFile, document: Fields) -> list[Row]:
    """The rows of a result.json; `Damaged` if it is not as Foretest writes it."""
    metrics = document.required("metrics")
    online = "treatment" in document.required("log").content
    kind = ONLINE if online else OFFLINE if metrics.content else CHECK
    day = latest(iter([document.required("log").text("last_day")])) or _last_day(metrics)
    analysis = document.required("settings").member("analysis")
    level = None if analysis is None else analysis.number("confidence_level")
    entry = replace(Entry.of(file, kind, day, document), confidence_level=level)
    if kind == CHECK:
        return [Row(entry, audit=_audit(document))]
    return [row for part in _treatments(document) for row in _metric_rows(entry, part)]


class _Part(NamedTuple):
    """One treatment of a result."""

    name: str | None
    wins: bool
    metrics: Fields
    audit: Check | None


def _treatments(document: Fields) -> Iterator[_Part]:
    """The treatments by rank, or the only one."""
    winner, several = document.text("winner"), document.items("treatments")
    if not several:
        given = document.required("settings").content.get("treatment")
        name = given.get("name") if isinstance(given, dict) else None
        shown = visible(name) if isinstance(name, str) else None
        yield _Part(shown, winner is not None, document.required("metrics"), _audit(document))
    for treatment in sorted(several, key=lambda treatment: treatment.number("rank") or 0.0):
        name = treatment.text("name") or ""
        yield _Part(visible(name), name == winner, treatment.required("metrics"), _audit(treatment))


def _metric_rows(entry: Entry, part: _Part) -> Iterator[Row]:
    """The metrics of a treatment, the first goal in front."""
    metrics = list(part.metrics.members())
    roles = {name: metric.word("role", ROLES) if "role" in metric.content else None for name, metric in metrics}
    first = next((name for name, role in roles.items() if role in (None, GOAL)), next(iter(roles), ""))
    for name, metric in sorted(metrics, key=lambda pair: pair[0] != first):
        headline = metric.text("headline")
        estimates = metric.required("estimates")
        answer = None if headline is None else estimates.required(headline)
        yield Row(
            entry,
            metric=visible(name),
            treatment=part.name,
            wins=part.wins,
            leads=name == first,
            role=roles[name],
            direction=metric.word("direction", DIRECTIONS) if "direction" in metric.content else INCREASE,
            guardrail=metric.word("guardrail", STATES) if "guardrail" in metric.content else None,
            estimator=None if headline is None else visible(headline),
            estimate=None if answer is None else estimate_of(answer, online=entry.kind == ONLINE),
            audit=part.audit,
        )


def outcome_of(audit: Fields) -> str:
    """The outcome of an audit; an earlier version called it “not made” where it is unverified now."""
    outcome = audit.word("outcome", (*OUTCOMES, NOT_MADE))
    return UNVERIFIED if outcome == NOT_MADE else outcome


def _audit(document: Fields) -> Check | None:
    """The propensity audit of an offline result; of an online one whether units are split as designed."""
    audit, health = document.member("audit"), document.member("health")
    if audit is not None:
        return Check(outcome_of(audit), "ignored" if audit.flag("ignored") else "")
    split = None if health is None else health.member("sample_ratio")
    if split is None:
        return None
    unchecked = split.number("p_value") is None
    return Check(UNVERIFIED if unchecked else FAIL if split.flag("alert") else PASS, "split of units")


def _last_day(metrics: Fields) -> date | None:
    """The last day of the log, where a result has the uplift by day."""
    return latest(day.text("day") for _, metric in metrics.members() for day in metric.items("days"))


def latest(days: Iterator[str | None]) -> date | None:
    """The latest of the days that are dates; None where none is."""
    dates = []
    for day in days:
        try:
            dates.append(date.fromisoformat(day or ""))
        except ValueError:  # a name of somebody's own
            continue
    return max(dates, default=None)
