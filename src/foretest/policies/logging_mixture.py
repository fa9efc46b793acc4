"""Who produced a log: one policy, or several, each of which showed some of the rows.

A ranking of a display might have come from any of several, so it is priced by their mixture (the balance heuristic of
Veach and Guibas 1995): π_mix(a|x) = Σ_k α_k(x) π_k(a|x), α_k(x) the share of logger k on that display's day, which the
log itself gives. The treatment is compared with one of them, the baseline, for whose value rewards have the weight
w_p = π_p/π_mix. One policy is the case of a mixture of one: its w_p is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
from foretest.policies.mixture import Mixture
from foretest.policies.pricing import priced, shown_log_prob
from foretest.records import dataclass

# columns of a batch for each row's logger (its number) and day (its hash): names that no column of a log has
LOGGER, DAY = "foretest: logger", "foretest: day"
ALL = "all days"  # the one day of a log without dates
ONE_CONTROL = "control"  # the name of the one that produced the whole log

#: what is for one control, with the sentence where several policies produced the log
FOR_ONE = {
    "own candidates": (
        "candidates of their own are for one [control], not for several [[control]] tables: name one list of all"
        " items in [log] candidates, with scores in its order."
    ),
    "predictions": "its predicted rewards are compared with those of one control, and several produced the log.",
    "exploration": (
        "what exploration would buy is left out: it is predicted for one control that explores, and several"
        " policies logged these rows. Plan with the baseline's rows alone, and its table as [control]."
    ),
}


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


class LoggingMixture(Policy):
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

    def with_shares(self, shares: Shares) -> LoggingMixture:
        """These loggers with shares that are now known."""
        return LoggingMixture(self.loggers, self.baseline, shares)

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
    def lacks(self) -> Mapping[str, str]:
        """What cannot be had with them, with a sentence that says why."""
        return FOR_ONE

    def with_policies(self, policies: Iterable[Policy]) -> Policy:
        """These loggers by the same names with other policies, such as their own with fitted numbers."""
        return LoggingMixture(dict(zip(self.loggers, policies, strict=True)), self.baseline, self.shares)

    @property
    def named(self) -> dict[str, Policy]:
        """Those that a column of the log tells apart: all of them."""
        return self.loggers

    @property
    def baseline_policy(self) -> Policy:
        return self.loggers[self.baseline]

    @property
    def baseline_range(self) -> tuple[float, float]:
        """Between which numbers w_p is: 0 and 1/min α_p; where the baseline showed all rows it is 1."""
        assert self.shares is not None
        least_share = float(self.shares.shares[:, self.names.index(self.baseline)].min(initial=1.0))
        return float(least_share == 1.0), 1.0 / least_share

    def of_rows(self, displays: Displays) -> Ints:
        """The number of each row's logger."""
        return np.asarray(displays[LOGGER])

    def by_logger(self, displays: Displays) -> Iterator[tuple[Policy, Ints]]:
        """Every logger that showed some of the displays, with their places."""
        logger = displays[LOGGER]
        places = (np.flatnonzero(logger == k) for k in range(len(self.loggers)))
        return ((policy, rows) for policy, rows in zip(self.policies, places, strict=True) if len(rows))

    def tables(self) -> Any:
        """What a settings file says of them."""
        return [{"name": name, **policy.settings()} for name, policy in self.loggers.items()]

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
        return self.baseline_policy.full_support

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

    def log_baseline(self, displays: Displays, at: Ints) -> Floats:
        """log w_p = log π_p(a|x) − log π_mix(a|x) of what some rows show; −∞ where the baseline never shows it."""
        if not len(at):
            return np.zeros(0)
        some = displays.take(at)
        log_p = shown_log_prob(self.baseline_policy, some, is_control=False)
        return np.asarray(log_p - shown_log_prob(self, some, is_control=True))

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
        return f"LoggingMixture(loggers={shortened(repr(self.loggers))}, baseline={self.baseline!r})"


class SoleLogger:
    """The one policy that produced a whole log: what a `LoggingMixture` answers of several."""

    baseline = ONE_CONTROL
    baseline_range = 1.0, 1.0
    lacks: Mapping[str, str] = {}

    def __init__(self, control: Policy) -> None:
        self.baseline_policy = control
        self.loggers = {ONE_CONTROL: control}
        self.named: dict[str, Policy] = {}  # no column of the log tells who showed a row

    def with_policies(self, policies: Iterable[Policy]) -> Policy:
        """The control with another policy, such as its own with a fitted number."""
        [policy] = policies
        return policy

    @property
    def names(self) -> tuple[str, ...]:
        return (ONE_CONTROL,)

    @property
    def policies(self) -> tuple[Policy, ...]:
        return (self.baseline_policy,)

    def of_rows(self, displays: Displays) -> Ints:
        """The number of each row's logger."""
        return np.zeros(len(displays), np.int64)

    def by_logger(self, displays: Displays) -> Iterator[tuple[Policy, Ints]]:
        """The control, with the places of all displays."""
        return iter([(self.baseline_policy, np.arange(len(displays)))])

    def log_baseline(self, displays: Displays, at: Ints) -> Floats:
        """log w_p of some rows."""
        return np.zeros(len(at))

    def tables(self) -> Any:
        """What a settings file says of it."""
        return self.baseline_policy.settings()


Loggers = LoggingMixture | SoleLogger


def loggers_of(control: Policy) -> Loggers:
    """Who produced the log of a control."""
    return control if isinstance(control, LoggingMixture) else SoleLogger(control)


def components_of(policy: Policy) -> tuple[Policy, ...]:
    """The policies that a mixture, or a control of several loggers, is made of; none of any other."""
    return tuple(part for _, part in policy.components) if isinstance(policy, Mixture | LoggingMixture) else ()


class OwnLogger(Policy):
    """The logger of each row, whose draws and probabilities the propensity audit compares with what was shown."""

    def __init__(self, mixture: LoggingMixture) -> None:
        self._mixture = mixture

    @property
    def columns(self) -> tuple[str, ...]:
        return self._mixture.columns

    @property
    def score_columns(self) -> tuple[str, ...]:
        return self._mixture.score_columns

    @property
    def ranking_columns(self) -> tuple[str, ...]:
        return self._mixture.ranking_columns

    @property
    def has_logged(self) -> bool:
        """Has any logger a column with the logged probability?"""
        return any(logged_column(policy) is not None for policy in self._mixture.policies)

    def shown(self, displays: Displays) -> Floats:
        """log π_k of the shown rankings, from the logged column where the logger has one."""
        return self._by_row(
            displays, lambda policy, rows: shown_log_prob(policy, displays.take(rows), is_control=False)
        )

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        return self._by_row(displays, lambda policy, rows: policy.log_prob(displays.take(rows), rankings.take(rows)))

    def _by_row(self, displays: Displays, ask: Callable[[Policy, Ints], Floats]) -> Floats:
        out = np.empty(len(displays))
        for policy, rows in self._mixture.by_logger(displays):
            out[rows] = ask(policy, rows)
        return out

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        logger: Ints = displays[LOGGER]
        return sample_by_row(self._mixture.policies, logger, displays, uniforms)
