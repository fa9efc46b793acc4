"""What a board shows of a history: for each metric, how often offline decided as online did."""

from __future__ import annotations

from collections import Counter

from foretest.estimators import HEADLINES
from foretest.formatting import visible
from foretest.history.agreement import DECISIONS
from foretest.report.board.fields import Fields
from foretest.report.board.files import ResultFile
from foretest.report.board.rows import HISTORY, OUTCOMES, Agreed, Check, Entry, Row, latest, outcome_of
from foretest.report.words import VERDICTS


def history_rows(file: ResultFile, document: Fields) -> list[Row]:
    """A row per metric of an agreement.json."""
    tests = document.items("tests")
    day = latest(test.text("date") for test in tests)
    entry = Entry.of(file, HISTORY, day, document)
    audit = _worst_audit(tests)
    metrics = list(document.required("metrics").members())
    if not metrics:
        return [Row(entry, audit=audit)]
    return [
        Row(entry, visible(name), leads=not number, agreed=_agreed(metric), audit=audit)
        for number, (name, metric) in enumerate(metrics)
    ]


def _worst_audit(tests: list[Fields]) -> Check | None:
    """The worst outcome of the tests' audits, and how many tests have it."""
    audits = [audit for test in tests if (audit := test.member("audit")) is not None]
    counts = Counter(outcome_of(audit) for audit in audits)
    worst = next((outcome for outcome in OUTCOMES if counts[outcome]), None)
    return None if worst is None else Check(worst, f"{counts[worst]} of {len(audits)} tests")


def _agreed(metric: Fields) -> Agreed | None:
    """The decisions of the estimator that leads, against those of the online tests."""
    table = metric.required("table")
    label = next((key for key in HEADLINES if key in table.content), next(iter(table.content), None))
    if label is None:
        return None
    decisions = [
        (DECISIONS[offline.word("verdict", VERDICTS)], DECISIONS[online.word("verdict", VERDICTS)])
        for test in metric.items("tests")
        if (online := test.member("online")) is not None
        and (offline := test.required("offline").member(label)) is not None
    ]
    right = sum(offline == online for offline, online in decisions)
    return Agreed(right, len(decisions), visible(label), table.required(label).number("range_held"))
