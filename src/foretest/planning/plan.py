"""foretest plan: what a log could show, before its result is looked at."""

from __future__ import annotations

import dataclasses
import tempfile
from typing import Any, NamedTuple

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import headline_of, obstacle
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.folded import Folded
from foretest.aggregation.thinning import size_of
from foretest.background import in_background
from foretest.engines.scan import scan
from foretest.errors import BadInput
from foretest.estimators import AdaptiveExposureNCIS, AdaptivePointNCIS, AdaptiveSlotNCIS, Estimator
from foretest.files import html_text, json_text
from foretest.formatting import some_of
from foretest.log.opening import open_log
from foretest.offline.examination import NoCurve
from foretest.offline.prepare_and_fold import offline_reader
from foretest.offline.test import OfflineTest
from foretest.planning.baseline_rows import ControlArm, baseline_rows
from foretest.planning.days import DayCount, day_column
from foretest.planning.document import plan_document
from foretest.planning.goal import Goal, check_days, goal_of
from foretest.planning.levels import EXPOSURE, RANKING, SLOT
from foretest.planning.log_to_plan import LogToPlan
from foretest.planning.rewarded_sample import rewarded_sample
from foretest.policies.logging_mixture import loggers_of
from foretest.progress import Progress, stage
from foretest.records import dataclass
from foretest.settings.fitted_control import refuse_fitted_control
from foretest.settings.settings import Settings
from foretest.sources import Source, spool
from foretest.sources.spark_frames import SparkFrame
from foretest.storage.saved.files import saved_files
from foretest.stores import Location


@dataclass(frozen=True)
class PlanResult:
    """What a log could show: the content of plan.json. `plan_log` returns it; printing it shows the table.

    >>> import foretest as ft
    >>> plan = ft.PlanResult({"schema": 1, "headline": "point-ncis-adaptive"})
    >>> plan.to_dict()["headline"]
    'point-ncis-adaptive'
    """

    document: dict[str, Any]  # the fields of plan.json

    def to_dict(self) -> dict[str, Any]:
        """The fields of plan.json."""
        return self.document

    def to_json(self, path: str | Location | None = None) -> str:
        """JSON text; with a path it is also written there, completely or not at all."""
        return json_text(self.document, path)

    def to_html(self, path: str | Location | None = None) -> str:
        """One self-contained page of the exploration that was searched; with a path it is also written there, whole or
        not at all."""
        from foretest.report.plan_page import plan_page

        if self.document.get("explore") is None:
            raise BadInput(
                "this plan has no page: it shows the cheapest exploration for an uplift, which was not asked for or not"
                " found. Give plan_log an uplift, as in uplift = 0.02."
            )
        return html_text(plan_page(self.document), path)

    def __str__(self) -> str:
        from foretest.terminal.plan import render_plan

        return render_plan(self.document)

    __repr__ = __str__


def plan_log(
    test: OfflineTest, log: Any, *, uplift: float | None = None, days: int | None = None, threads: int | None = None,
    progress: Progress | None = None,
) -> PlanResult:  # fmt: skip
    """What a log could show, before its result is looked at, and what more exploration would bring.

    The answer is by whole rankings and, where the log says which slot earned the reward, by slot and by exposure. The
    log is read twice, or three times where it has days; a pass more fits the examination curve, and one more reads the
    baseline's rows where several policies logged.

    Parameters
    ----------
    test: the test that is planned, with its log's columns and both policies.
    log: what `test.run` takes: a path, a glob, a dataframe, saved aggregates.
    uplift: a share such as 0.02 for 2 %: also find the cheapest exploration that makes such an uplift visible.
    days: in how many days it is to be visible; default: in as much log as this.
    threads: how many read the log; default: all cores.
    progress: is called with what is being done, and how far it is.

    Returns
    -------
    A `PlanResult`: the smallest uplift that the log could show, its two parts, and a table of explorations.

    >>> import pyarrow as pa
    >>> import foretest as ft
    >>> from foretest.simulate import WORLDS, simulate_log
    >>> log = pa.Table.from_batches(simulate_log(WORLDS["mild"], rows=500))
    >>> test = ft.OfflineTest(
    ...     log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="display_id"),
    ...     control=ft.PlackettLuce("control_scores"),
    ...     treatment=ft.PlackettLuce("treatment_scores"),
    ... )
    >>> plan = ft.plan_log(test, log).to_dict()
    >>> sorted(plan["metrics"]["click"]["smallest_uplift"])
    ['identification', 'sampling', 'total']
    """
    goal = goal_of(uplift, days)
    planned = _planned(test)
    with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
        opened = _open(log, test, planned, folder)
        no_sample = _why_no_sample(opened, test)
        if goal is not None and not no_sample:
            check_days(goal, test.settings.log)
        test, folded, left_out = _fold(test, opened, planned, threads, progress)
        days_of_log = _days(opened, test.settings, goal, threads)
        arm = _control_arm(opened, folded.aggregates, threads)
        sample = None
        if not no_sample:
            done = stage(progress, "exploration", opened.source)
            sample = rewarded_sample(opened.source, folded.aggregates.plan, threads=threads, progress=done)
    result = test.analyse(*folded)
    labels = {e.label for e in folded.aggregates.plan.estimators}
    log_to_plan = LogToPlan(
        aggregates=folded.aggregates,
        sample=sample,
        estimators={level: e for level, e in planned.estimators.items() if e.label in labels},
        days=days_of_log,
        split=test.settings.online.split,
        control_arm=arm,
    )
    about = [*_of_thinned(folded.aggregates), *_of_loggers(log_to_plan)]
    notes = dict.fromkeys([*result.notes, *planned.notes, *left_out, *no_sample, *about])
    return PlanResult(plan_document(test.settings, result, log_to_plan, list(notes), goal))


class _Planned(NamedTuple):
    """The estimators that are planned for, by level, and a note where the one of rankings would not lead a run."""

    estimators: dict[str, Estimator]
    notes: list[str]


_LEVELS: dict[str, type[Estimator]] = {SLOT: AdaptiveSlotNCIS, EXPOSURE: AdaptiveExposureNCIS}


def _planned(test: OfflineTest) -> _Planned:
    """The first estimator of whole rankings, by the order in which headlines are chosen, and those of slots that can
    run."""
    settings = test.settings
    refuse_fitted_control(settings, "a plan compares exploration with that of one number")
    plan = test._chosen.plan
    asked = plan.settings.analysis.headline
    of_rankings = [e for e in plan.estimators if not plan.weighting(e).by_slot] or [_of_rankings(settings)]
    label, leader = headline_of(asked, of_rankings), headline_of(asked, plan.estimators)
    [estimator] = [e for e in of_rankings if e.label == label]
    by_level = {RANKING: estimator}
    for level, kind in _LEVELS.items():
        listed = [e for e in plan.estimators if type(e) is kind]
        one = listed[0] if listed else kind()
        if obstacle(one, _by_delta(settings)) is None:
            by_level[level] = one
    if leader == label:
        return _Planned(by_level, [])
    note = f"planned for {label}: {leader} goes by slot, and has its own numbers under levels."
    if leader not in [e.label for e in by_level.values()]:
        note = f"planned for {label}: {leader} has no plan of its own."
    return _Planned(by_level, [note])


def _of_rankings(settings: Settings) -> Estimator:
    """An estimator of whole rankings where none is listed."""
    estimator = AdaptivePointNCIS()
    reason = obstacle(estimator, settings)
    if reason is not None:
        raise BadInput(f"foretest plan starts from whole rankings, and {estimator.label} cannot run: {reason}")
    return estimator


def _by_delta(settings: Settings) -> Settings:
    """The settings with the interval that a plan uses."""
    return dataclasses.replace(settings, analysis=settings.analysis.replace(interval="delta"))


class _Folded(NamedTuple):
    """The test that was folded, its sums, and notes on levels that were left out."""

    test: OfflineTest
    folded: Folded
    notes: list[str]


def _fold(
    test: OfflineTest, opened: _OpenedLog, planned: _Planned, threads: int | None, progress: Progress | None
) -> _Folded:
    """Fold the log for all levels; where it shows no examination curve, without exposure."""
    estimators = [e for e in planned.estimators.values() if opened.folded is None or e.label in opened.folded]
    alone = test.replace(estimators=estimators, headline=None, interval="delta")
    try:
        return _Folded(alone, alone.aggregate(opened.log, threads=threads, progress=progress), [])
    except NoCurve as reason:
        rest = [e for level, e in planned.estimators.items() if level != EXPOSURE and e in estimators]
        alone = alone.replace(estimators=rest)
        folded = alone.aggregate(opened.log, threads=threads, progress=progress)
        return _Folded(alone, folded, [f"exposure was left out: {reason.what}"])


class _OpenedLog(NamedTuple):
    """A log that can be read more than once."""

    log: Any  # what `OfflineTest.aggregate` takes
    source: Source
    folded: list[str] | None  # of saved aggregates, which have no displays: the estimators that they have


def _open(log: Any, test: OfflineTest, planned: _Planned, folder: str) -> _OpenedLog:
    """Open a log; a stream, which passes once, is written to the folder first."""
    settings = test.settings
    source, date = open_log(log, settings), settings.log.date
    saved = saved_files(source)
    if saved:
        return _OpenedLog(log, source, [record["label"] for record in saved[0].recipe.estimators])
    if source.repeatable:
        return _OpenedLog(log, source, None)
    plan = FoldPlan(settings, (*test._chosen.plan.estimators, *planned.estimators.values()))
    reader = offline_reader(plan)
    reader.check(source)
    columns = [*reader.columns, *([date] if date else [])]
    spooled = in_background(lambda: spool(source, columns, folder))
    return _OpenedLog(spooled, spooled, None)


def _days(opened: _OpenedLog, settings: Settings, goal: Goal | None, threads: int | None) -> int | None:
    """How many days the log has, by its dates or, where days are asked for, its times; None where that is not known."""
    named = settings.log.date if goal is None else day_column(settings.log)
    if named is None or opened.folded is not None:
        return None
    [days] = scan(opened.source, [DayCount(settings)], threads=threads)
    return int(days)


def _control_arm(opened: _OpenedLog, aggregates: Aggregates, threads: int | None) -> ControlArm | None:
    """The log itself, or of several loggers the baseline's rows; None where these cannot be read here."""
    if aggregates.plan.settings.log.logger is None:
        return ControlArm({}, aggregates.n_units)
    if opened.folded is not None or isinstance(opened.source, SparkFrame):
        return None
    return baseline_rows(opened.source, aggregates.plan.settings, threads)


def _of_loggers(log: LogToPlan) -> list[str]:
    """What a plan from a log of several loggers is about, in notes; empty where there is one."""
    loggers = loggers_of(log.aggregates.plan.settings.control)
    if not loggers.named:
        return []
    notes = [
        f"the log is of several loggers ({some_of(loggers.names)}): more log is more of each of them, in the same"
        " shares."
    ]
    if log.control_arm is None:
        return [*notes, f"users of an online test are left out: they need the rows of the baseline {loggers.baseline}."]
    return [
        *notes,
        f"users of an online test are by the rows of the baseline {loggers.baseline} alone, each with as many displays"
        " as it showed them.",
    ]


def _of_thinned(aggregates: Aggregates) -> list[str]:
    """What a plan from a thinned log is about, in a note; empty where the log was not thinned."""
    note = "the log was thinned: what is said of more log, and of units online, is of logs that are thinned alike."
    return [note for _ in size_of(aggregates.ledger)]


def _why_no_sample(opened: _OpenedLog, test: OfflineTest) -> list[str]:
    """Why exploration cannot be predicted, in a note; empty where it can."""
    if opened.folded is not None:
        return ["saved aggregates have no displays: what exploration would buy needs the log."]
    reason = loggers_of(test.settings.control).lacks.get("exploration")
    if reason is not None:
        return [reason]
    if not test._chosen.plan.can_draw:
        return ["a policy is logged, and other rankings have no probability: what exploration would buy needs scores."]
    return []
