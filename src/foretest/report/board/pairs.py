"""Predictions compared with online results: those in NAME/offline and NAME/online, metric by metric."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from statistics import NormalDist
from typing import Any

import numpy as np

from foretest.files import nan_if_none
from foretest.history.agreement import DECISIONS
from foretest.history.range_and_word import WITH_LEANS, widened_range
from foretest.records import dataclass
from foretest.report.board.files import shown_folder
from foretest.report.board.rows import OFFLINE, ONLINE, Row
from foretest.report.history_words import CALLS
from foretest.results.range_text import range_of
from foretest.results.result import Estimate


@dataclass(frozen=True)
class Pair:
    """One metric of a test that was run offline and online."""

    name: str  # the folder that both are in
    offline: Row
    online: Row
    predicted: Estimate
    measured: Estimate
    range_held: bool | None  # None where a number is missing
    call: str  # how offline decided compared with online, as a key of CALLS
    leads: bool  # the metric by which the test is counted: the first goal, if both have it

    def to_dict(self) -> dict[str, Any]:
        """The pair as --json prints it."""
        return {
            "name": self.name,
            "metric": self.offline.metric,
            "first_goal": self.leads,
            "treatment": self.offline.treatment,
            "offline_rel_effect_size": self.predicted.rel_effect_size,
            "offline_word": self.predicted.word,
            "online_rel_effect_size": self.measured.rel_effect_size,
            "online_verdict": self.measured.verdict,
            "range_held": self.range_held,
            "decision": CALLS[self.call],
        }


@dataclass(frozen=True)
class PairCounts:
    """How many tests were run offline and online, and how they agreed, each by its first goal."""

    tests: int
    with_range: int  # tests whose range can be compared
    range_held: int
    right: int
    too_low: int
    too_high: int


def pairs_of(rows: Iterable[Row]) -> Iterator[Pair]:
    """All pairs. Of several treatments the winner is taken for the one that was run; without a winner there is no
    pair."""
    by_test: dict[tuple[str, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        folder, kind = row.entry.file.folder, row.entry.kind
        if folder and folder[-1] == kind and kind in (OFFLINE, ONLINE):
            by_test[folder[:-1]][kind].append(row)
    for folder, kinds in by_test.items():
        online = {row.metric: row for row in kinds[ONLINE] if row.estimate is not None}
        offline = [row for row in _one_treatment(kinds[OFFLINE]) if row.estimate is not None]
        shared = [row for row in offline if row.metric in online]
        for number, row in enumerate(shared):  # the first goal is in front
            yield _pair(shown_folder(folder), row, online[row.metric], leads=not number)


def _one_treatment(rows: list[Row]) -> list[Row]:
    """The rows of the only treatment, or of the winner."""
    several = len({row.treatment for row in rows}) > 1
    return [row for row in rows if row.wins] if several else rows


def _pair(name: str, offline: Row, online: Row, *, leads: bool) -> Pair:
    assert offline.estimate is not None
    assert online.estimate is not None
    apart = WITH_LEANS[offline.estimate.word] - DECISIONS[online.estimate.verdict]
    call = "right-call" if apart == 0 else "too-low" if apart < 0 else "too-high"
    is_within = holds(offline.estimate, online.estimate, offline.entry.confidence_level)
    return Pair(name, offline, online, offline.estimate, online.estimate, is_within, call, leads)


def holds(offline: Estimate, online: Estimate, confidence_level: float | None) -> bool | None:
    """Does the range contain the online uplift, with the online noise allowed for, as a history says it? None where a
    number is missing."""
    limits = range_of(offline)
    numbers = offline.rel_effect_size, limits.rel_ci_lower, limits.rel_ci_upper, _noise(online, confidence_level)
    x, lower, upper, noise = (np.array(nan_if_none(number)) for number in numbers)
    y = nan_if_none(online.rel_effect_size)
    low, high = (float(end) for end in widened_range(x, lower, upper, noise))
    return None if np.isnan(low + high + y) else low <= y <= high


def _noise(online: Estimate, confidence_level: float | None) -> float | None:
    """z·se of the online uplift; half its interval in a file of an earlier version."""
    if online.rel_std_error is not None and confidence_level is not None and 0.0 < confidence_level < 1.0:
        return NormalDist().inv_cdf(0.5 + 0.5 * confidence_level) * online.rel_std_error
    lower, upper = online.rel_effect_size_ci_lower, online.rel_effect_size_ci_upper
    return None if lower is None or upper is None else 0.5 * (upper - lower)


def count_pairs(pairs: Iterable[Pair]) -> PairCounts:
    """The tests of all pairs, counted by their first goal."""
    leading = [pair for pair in pairs if pair.leads]
    calls = [pair.call for pair in leading]
    return PairCounts(
        len(leading), sum(pair.range_held is not None for pair in leading),
        sum(pair.range_held is True for pair in leading),
        calls.count("right-call"), calls.count("too-low"), calls.count("too-high"),
    )  # fmt: skip
