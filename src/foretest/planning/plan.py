"""foretest plan: what a log could show, before its result is looked at."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from foretest._version import __version__
from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import choose_estimators, headline_of
from foretest.aggregation.fold_plan import FoldPlan
from foretest.background import in_background
from foretest.engines import dispatch
from foretest.errors import BadInput
from foretest.estimators import Estimator
from foretest.files import json_ready, json_text
from foretest.offline.passes import offline_reader
from foretest.offline.test import OfflineTest
from foretest.online.comparison import POWER
from foretest.planning.days import count_days
from foretest.planning.exploration import ExplorationFold
from foretest.planning.smallest_uplift import LogToPlan, plan_metric
from foretest.progress import Progress, stage
from foretest.results.result import Result
from foretest.settings.settings import Settings
from foretest.sources import Source, open_source, spool
from foretest.storage.saved.files import saved_files

SCHEMA = 1


@dataclass(frozen=True)
class PlanResult:
    """The content of plan.json."""

    document: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self.document

    def to_json(self, path: str | Path | None = None) -> str:
        """JSON text; with a path it is also written there, whole or not at all."""
        return json_text(self.document, path)

    def __str__(self) -> str:
        from foretest.terminal.plan import render_plan

        return render_plan(self.document)

    __repr__ = __str__


def plan_log(
    test: OfflineTest, log: Any, *, threads: int | None = None, progress: Progress | None = None
) -> PlanResult:
    """What the log could show of the test's headline, among estimators of whole rankings. The log is read twice, or
    three times where it has days."""
    headline = _headline(test.settings)
    test = test.replace(estimators=[headline.estimator], headline=None, interval="delta")
    with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
        opened = _open(log, test.settings, folder)
        folded = test.aggregate(opened.log, threads=threads, progress=progress)
        days = _days(opened, test.settings.log.date)
        no_sample = _why_no_sample(opened, test.settings)
        sample = None if no_sample else _sample(opened.source, folded.aggregates, threads, progress)
    result = test.analyse(*folded)
    planned = LogToPlan(
        aggregates=folded.aggregates,
        sample=sample,
        estimator=headline.estimator,
        days=days,
        split=test.settings.online.split,
    )
    return PlanResult(_document(test.settings, result, planned, [*result.notes, *headline.notes, *no_sample]))


class _Headline(NamedTuple):
    """The estimator that is planned for, and a note where it is not the headline of a run."""

    estimator: Estimator
    notes: list[str]


def _headline(settings: Settings) -> _Headline:
    """The first estimator of whole rankings, by the order in which headlines are chosen."""
    if settings.log.logger is not None:
        raise BadInput("foretest plan is for a log of one control, and the settings name several ([[control]] tables).")
    plan = choose_estimators(settings)[0]
    asked = plan.settings.analysis.headline
    of_rankings = [e for e in plan.estimators if not plan.weighting(e).by_slot]
    if not of_rankings:
        raise BadInput(
            "foretest plan is about whole rankings, and every estimator listed goes by slot: add point-ncis-adaptive to"
            " estimators."
        )
    label, leader = headline_of(asked, of_rankings), headline_of(asked, plan.estimators)
    [estimator] = [e for e in of_rankings if e.label == label]
    if leader == label:
        return _Headline(estimator, [])
    note = f"planned for {label}: {leader} goes by slot, and can show smaller uplifts than these."
    return _Headline(estimator, [note])


class _OpenedLog(NamedTuple):
    """A log that can be read more than once."""

    log: Any  # what `OfflineTest.aggregate` takes
    source: Source
    saved: bool  # it is saved aggregates, without displays


def _open(log: Any, settings: Settings, folder: str) -> _OpenedLog:
    """Open a log; a stream, which passes once, is written to the folder first."""
    source, date = open_source(log), settings.log.date
    saved = bool(saved_files(source))
    if saved or source.repeatable:
        return _OpenedLog(log, source, saved)
    columns = [*offline_reader(choose_estimators(settings)[0]).columns, *([date] if date else [])]
    spooled = in_background(lambda: spool(source, columns, folder))
    return _OpenedLog(str(Path(folder) / "stream.parquet"), spooled, saved)


def _days(opened: _OpenedLog, date: str | None) -> int | None:
    """How many days the log has; None where that is not known."""
    return None if date is None or opened.saved else count_days(opened.source, date)


def _why_no_sample(opened: _OpenedLog, settings: Settings) -> list[str]:
    """Why exploration cannot be predicted, in a note; empty where it can."""
    if opened.saved:
        return ["saved aggregates have no displays: what exploration would buy needs the log."]
    if not choose_estimators(settings)[0].can_draw:
        return ["a policy is logged, and other rankings have no probability: what exploration would buy needs scores."]
    return []


def _sample(source: Source, aggregates: Aggregates, threads: int | None, progress: Progress | None) -> Aggregates:
    """Rewarded displays with draws of both policies."""
    bare = FoldPlan(aggregates.plan.settings)
    done = stage(progress, "exploration", source)
    return dispatch.aggregate(source, offline_reader(bare), bare, threads=threads, progress=done, kind=ExplorationFold)


def _document(settings: Settings, result: Result, log: LogToPlan, notes: list[str]) -> dict[str, Any]:
    """The content of plan.json."""
    document: dict[str, Any] = json_ready(
        {
            "foretest": __version__,
            "schema": SCHEMA,
            "headline": log.estimator.label,
            "confidence_level": settings.analysis.confidence_level,
            "power": POWER,
            "gamma": list(settings.analysis.gamma_at(by_slot=log.weighting.by_slot)),
            "split": list(log.split),
            "unit": settings.log.unit,
            "log": {
                "rows": log.aggregates.rows,
                "units": log.aggregates.n_units,
                **({} if log.aggregates.units_exact else {"units_approximate": True}),
                "days": log.days,
            },
            "metrics": {
                name: plan_metric(result.metrics[name], m, log).to_dict() for m, name in enumerate(settings.log.rewards)
            },
            "notes": notes,
        }
    )
    return document
