"""The policies that produced a log together: each row was shown by one of them, and the log itself gives the shares.

A ranking of a display might have come from any of them, so it is priced by their mixture (the balance heuristic of
Veach and Guibas 1995): π_mix(a|x) = Σ_k α_k(x) π_k(a|x), α_k(x) the share of logger k on that display's day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput, RowFault
from foretest.formatting import shortened
from foretest.policies.adapter import as_policy
from foretest.policies.base import Policy, logged_column, refuse_slots_alone
from foretest.policies.by_row import Ints, picked_by, sample_by_row
from foretest.policies.pricing import priced, shown_log_prob
from foretest.records import dataclass

# columns of a batch for each row's logger (its number) and day (its hash): names that no column of a log has
LOGGER, DAY = "foretest: logger", "foretest: day"
ALL = "all days"  # the one day of a log without dates


@dataclass(frozen=True)
class Shares:
    """Rows by day and logger: the days' hashes in ascending order, their names, and the counts; of a thinned log those
    of the displays that its rows stand for."""

    days: npt.NDArray[np.uint64]
    names: tuple[str, ...]
    rows: npt.NDArray[Any]  # days × loggers

    @cached_property
    def shares(self) -> Floats:
        """α_k of each day: days × loggers."""
        return np.asarray(self.rows / np.maximum(self.rows.sum(axis=1, keepdims=True), 1))

    def of(self, day: npt.NDArray[np.uint64]) -> Floats:
        """α_k of each display, by its day: displays × loggers."""
        place = np.minimum(np.searchsorted(self.days, day), max(len(self.days) - 1, 0))
        if len(day) and (not len(self.days) or (self.days[place] != day).any()):
            raise BadInput(
                "the log has a day that was not in it when the shares of its loggers were counted: run the test again."
            )
        return np.asarray(self.shares[place])

    def to_dict(self) -> dict[str, list[float]]:
        """The number of rows of each logger, by the name of the day."""
        return {
            name: row.tolist() for name, row in sorted(zip(self.names, self.rows, strict=True), key=lambda day: day[0])
        }


class Pooled(Policy):
    """log π_mix(a|x) = LSE over k of log α_k(x) + log π_k(a|x).

    Parameters
    ----------
    loggers: the policies that produced the log, by the name that its `logger` column gives them.
    baseline: the name of the one that the treatment is compared with.
    shares: the share of each logger by day; counted in a separate pass before the log is folded.
    """

    def __init__(self, loggers: Mapping[str, Policy], baseline: str, shares: Shares | None = None) -> None:
        self.loggers = {name: as_policy(policy) for name, policy in loggers.items()}
        self.baseline, self.shares = baseline, shares
        for name, policy in self.loggers.items():
            refuse_slots_alone(policy, f"the logger '{name}', one of several,")
        self._refuse_shared_probabilities()

    def _refuse_shared_probabilities(self) -> None:
        """Refuse one column of probabilities for two loggers: it holds those of each row's own logger only."""
        for (a, one), (b, other) in combinations(self.loggers.items(), 2):
            mine, theirs = logged_column(one), logged_column(other)
            if mine is not None and theirs is not None and mine.name == theirs.name:
                raise BadInput(
                    f"the loggers '{a}' and '{b}' both take their probabilities from the column '{mine.name}', so"
                    " neither can be priced on the rows of the other. Every row needs the probability of what was"
                    f" shown under each logger: a column for each, or the scores of '{b}'."
                )

    def with_shares(self, shares: Shares) -> Pooled:
        """These loggers with shares that are now known."""
        return Pooled(self.loggers, self.baseline, shares)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.loggers)

    @property
    def policies(self) -> tuple[Policy, ...]:
        return tuple(self.loggers.values())

    @property
    def components(self) -> tuple[tuple[str, Policy], ...]:
        return tuple(self.loggers.items())

    @property
    def least_share(self) -> float:
        """min α_p: a row's w_p is at most 1/α_p."""
        assert self.shares is not None
        of_baseline = self.shares.shares[:, self.names.index(self.baseline)]
        return float(of_baseline.min(initial=1.0))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for policy in self.policies for name in policy.columns))

    @property
    def score_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for p in self.policies for name in p.score_columns))

    @property
    def ranking_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for p in self.policies for name in p.ranking_columns))

    @property
    def can_draw(self) -> bool:  # type: ignore[override]
        return all(policy.can_draw for policy in self.policies)

    @property
    def full_support(self) -> bool:  # type: ignore[override]
        # the baseline has a share of every day, others may not
        return self.loggers[self.baseline].full_support

    def row_shares(self, displays: Displays) -> Floats:
        """α_k(x), displays × loggers."""
        assert self.shares is not None, "shares are counted before anything is priced"
        return self.shares.of(displays[DAY])

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        parts = np.stack([priced(policy, displays, rankings) for policy in self.policies], axis=1)
        if rankings is displays.ranking:
            self._refuse_impossible(displays, parts)
        with np.errstate(divide="ignore"):
            return np.asarray(np.logaddexp.reduce(parts + np.log(self.row_shares(displays)), axis=1))

    def _refuse_impossible(self, displays: Displays, parts: Floats) -> None:
        """Refuse rows to whose ranking their own logger, which showed it, gives probability 0."""
        logger = displays[LOGGER]
        rows = np.flatnonzero(parts[np.arange(len(parts)), logger] == -np.inf)
        if len(rows):
            name, policy = self.components[int(logger[rows[0]])]
            column = (*policy.columns, name)[0]
            raise RowFault(
                "control-zero", column, rows, f"the logger '{name}' gives probability 0 to the ranking that it showed",
                "A row's logger must be the policy that produced it: check the logger column, and that policy's columns"
                " and parameters.",
            )  # fmt: skip

    def log_baseline(self, displays: Displays) -> Floats:
        """log w_p = log π_p(a|x) − log π_mix(a|x) of the shown rankings: w_p weights their rewards for the baseline's
        value, and is 0 for a ranking that the baseline never shows."""
        log_p = shown_log_prob(self.loggers[self.baseline], displays, is_control=False)
        return np.asarray(log_p - shown_log_prob(self, displays, is_control=True))

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        picked, left = picked_by(uniforms, self.row_shares(displays))
        return sample_by_row(self.policies, picked, displays, left)

    def slot_marginals(self, displays: Displays) -> Ragged:
        """P(item in slot): the shares times the loggers' own marginals, which every logger must know."""
        shares = self.row_shares(displays)
        parts = [policy.slot_marginals(displays) for policy in self.policies]  # type: ignore[attr-defined]
        lengths = parts[0].lengths
        mixed = sum(np.repeat(shares[:, k], lengths) * part.flat() for k, part in enumerate(parts))
        return Ragged.packed(np.asarray(mixed), lengths)

    def settings(self) -> dict[str, Any]:
        table: dict[str, Any] = {
            "policy": "loggers",
            "loggers": {name: policy.settings() for name, policy in self.loggers.items()},
        }
        return table if self.shares is None else {**table, "shares": self.shares.to_dict()}

    def __repr__(self) -> str:
        # without the shares, which are one list per day of the log
        return f"Pooled(loggers={shortened(repr(self.loggers))}, baseline={self.baseline!r})"


class OwnLogger(Policy):
    """The logger of each row, whose draws and probabilities the propensity audit compares with what was shown."""

    def __init__(self, pooled: Pooled) -> None:
        self._pooled = pooled

    @property
    def columns(self) -> tuple[str, ...]:
        return self._pooled.columns

    @property
    def score_columns(self) -> tuple[str, ...]:
        return self._pooled.score_columns

    @property
    def ranking_columns(self) -> tuple[str, ...]:
        return self._pooled.ranking_columns

    @property
    def has_logged(self) -> bool:
        """Has any logger a column with the logged probability?"""
        return any(logged_column(policy) is not None for policy in self._pooled.policies)

    def shown(self, displays: Displays) -> Floats:
        """log π_k of the shown rankings, from the logged column where the logger has one."""
        return self._by_row(
            displays, lambda policy, rows: shown_log_prob(policy, displays.take(rows), is_control=False)
        )

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        return self._by_row(displays, lambda policy, rows: policy.log_prob(displays.take(rows), rankings.take(rows)))

    def _by_row(self, displays: Displays, ask: Callable[[Policy, Ints], Floats]) -> Floats:
        logger, out = displays[LOGGER], np.empty(len(displays))
        for k, policy in enumerate(self._pooled.policies):
            rows = np.flatnonzero(logger == k)
            if len(rows):
                out[rows] = ask(policy, rows)
        return out

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        logger: Ints = displays[LOGGER]
        return sample_by_row(self._pooled.policies, logger, displays, uniforms)
