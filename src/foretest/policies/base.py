"""What a policy is: two answers about a display, `log_prob` and `sample`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput, RowFault


class Policy:
    """A distribution over top-K rankings of a display's eligible items.

    A subclass answers `log_prob(displays, rankings)` and `sample(displays, uniforms)` for many displays at once.
    Randomness is handed in, so that a draw depends on the display and the seed alone; objects must pickle.
    Every policy may also be given the column that holds the logged (log-)probability of the shown ranking, which
    is then used for it instead of recomputing.

    `full_support`: every ranking has a positive probability. `deterministic`: one ranking has all of it.
    Both default to False, which is always safe.
    """

    full_support: bool = False
    deterministic: bool = False
    #: can rankings be drawn, and rankings that were not shown be priced?
    can_draw: bool = True
    _logged: tuple[str, bool] | None = None  # column, is it a log?

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the log that this policy reads, in role order."""
        names = self.score_columns
        return (*names, self._logged[0]) if self._logged else names

    @property
    def score_columns(self) -> tuple[str, ...]:
        """Those of its columns that hold a list with one number an eligible item."""
        return ()

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        """log π(ranking | display) of one ranking a display."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        """One ranking of `displays.slots` items a display.

        `uniforms` has a row for each display, as wide as the longest list of eligible items plus one.
        """
        raise NotImplementedError(f"{type(self).__name__} has no sample")

    def settings(self) -> dict[str, Any]:
        """The settings-file table that makes this policy."""
        values = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        if self._logged:
            values["log_prob" if self._logged[1] else "prob"] = self._logged[0]
        return {"policy": self.key, **values}

    @property
    def key(self) -> str:
        """The settings file's name of this class."""
        from foretest.policies import POLICIES

        known = {cls: key for key, cls in reversed(POLICIES.items())}
        return known.get(type(self), f"{type(self).__module__}:{type(self).__qualname__}")

    def __repr__(self) -> str:
        values = {k: v for k, v in self.settings().items() if k != "policy"}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in values.items())})"

    def remember_logged(self, log_prob: str | None, prob: str | None) -> None:
        """Store which column, if any, holds what was logged for the shown ranking."""
        if log_prob is not None and prob is not None:
            raise BadInput("a policy takes log_prob or prob, not both.")
        if log_prob is not None:
            self._logged = (log_prob, True)
        elif prob is not None:
            self._logged = (prob, False)


class ScorePolicy(Policy):
    """A policy that ranks by one list column, `scores`, with one number an eligible item."""

    def __init__(self, scores: str, *, log_prob: str | None = None, prob: str | None = None) -> None:
        self.scores = scores
        self.remember_logged(log_prob, prob)

    @property
    def score_columns(self) -> tuple[str, ...]:
        return (self.scores,)


def shown_log_prob(policy: Policy, displays: Displays, *, is_control: bool) -> Floats:
    """log π of the ranking that was shown: as logged where a column says it, else computed."""
    logged = getattr(policy, "_logged", None)
    if logged is None:
        answer = np.asarray(policy.log_prob(displays, displays.ranking), dtype=np.float64)
        _refuse_not_numbers(policy, displays, answer)
        column = policy_columns(policy)[0] if policy_columns(policy) else type(policy).__name__
    else:
        column, is_log = logged
        answer = np.asarray(displays[column], dtype=np.float64)
        _refuse_impossible(column, is_log, answer)
        if not is_log:
            with np.errstate(divide="ignore"):
                answer = np.log(answer)
        answer = np.minimum(answer, 0.0)
    if is_control:
        impossible = np.flatnonzero(answer == -np.inf)
        if len(impossible):
            raise RowFault(
                "control-zero", column, impossible,
                "the control gives probability 0 to the ranking that was shown",
                "The control must be the policy that produced the log: check its columns and parameters.",
            )  # fmt: skip
    return answer


def priced(policy: Policy, displays: Displays, rankings: Ragged) -> Floats:
    """log π of one ranking a display: as logged where these are the rankings shown and a column says it."""
    if rankings is displays.ranking:
        return shown_log_prob(policy, displays, is_control=False)
    return np.asarray(policy.log_prob(displays, rankings), dtype=np.float64)


def marginal_places(displays: Displays) -> tuple[npt.NDArray[np.int64], Floats]:
    """Where each display's P(item in slot) begins, K lists of M numbers one after the other, and room for all."""
    lengths = displays.eligible * displays.slots
    ends = np.cumsum(lengths)
    return ends - lengths, np.empty(int(lengths.sum()))


def policy_columns(policy: Any) -> tuple[str, ...]:
    """The columns a policy declares; of a class that declares none, its string attributes."""
    declared = getattr(policy, "columns", None)
    if declared is not None:
        return tuple(declared)
    return tuple(value for value in _attributes(policy).values() if isinstance(value, str))


def _attributes(policy: Any) -> dict[str, Any]:
    names = [
        *getattr(policy, "__dict__", {}),
        *(n for cls in type(policy).__mro__ for n in getattr(cls, "__slots__", ())),
    ]
    return {name: getattr(policy, name) for name in names if hasattr(policy, name)}


def policy_settings(policy: Any) -> dict[str, Any]:
    """The settings-file table of any policy, a user's own included."""
    if isinstance(policy, Policy):
        return policy.settings()
    kind = type(policy)
    return {"policy": f"{kind.__module__}:{kind.__qualname__}", **_attributes(policy)}


def positive(name: str, value: float, *, below: float = np.inf) -> float:
    """`value` as a float if it is in (0, below), else BadInput."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < value < below:
        limit = "a number above 0" if below == np.inf else f"a number between 0 and {below:g}"
        raise BadInput(f"{name} = {value!r}: expected {limit}.")
    return float(value)


def _refuse_not_numbers(policy: Policy, displays: Displays, answer: npt.NDArray[Any]) -> None:
    name = type(policy).__name__
    if np.shape(answer) != (len(displays),):
        raise BadInput(
            f"{name}.log_prob gives an array of shape {np.shape(answer)} for {len(displays)} displays: expected one"
            " number a display."
        )
    if not np.isnan(answer).any() and answer.max(initial=-np.inf) <= _ROUNDING:
        return
    for column in getattr(policy, "score_columns", ()):
        refuse_not_finite(column, displays[column])
    column = (policy_columns(policy) or (name,))[0]
    bad = np.flatnonzero(np.isnan(answer))
    if len(bad):
        raise RowFault("log-prob-nan", column, bad, f"{name} gives NaN as log-probability of the shown ranking",
                       "Check its columns, and its log_prob.")  # fmt: skip
    bad = np.flatnonzero(answer > _ROUNDING)
    raise RowFault("log-prob-positive", column, bad,
                   f"{name} gives the log-probability {answer[bad[0]]:g}, above 0, to the shown ranking",
                   "Check its log_prob: it returns natural logarithms of probabilities.")  # fmt: skip


_ROUNDING = 1e-6  # of a log-probability, computed or logged as float32


def refuse_not_finite(column: str, scores: Ragged) -> None:
    """Refuse rows with a score that is NaN or infinite."""
    if np.isfinite(scores.values).all():
        return
    row = np.repeat(np.arange(len(scores)), scores.lengths)[~np.isfinite(scores.flat())]
    if len(row):
        first = scores[row[0]]
        kind = "NaN" if np.isnan(first[~np.isfinite(first)][0]) else "infinite"
        raise RowFault("score-finite", column, np.unique(row), f"a score is {kind}",
                       "Scores must be finite: leave an item that may not be shown out of the lists.")  # fmt: skip


def _refuse_impossible(column: str, is_log: bool, answer: Floats) -> None:
    def refuse(kind: str, wrong: npt.NDArray[np.bool_], what: str, remedy: str) -> None:
        rows = np.flatnonzero(wrong)
        if len(rows):
            raise RowFault(kind, column, rows, what.format(answer[rows[0]]), remedy)

    refuse("prob-nan", np.isnan(answer), "the logged probability is NaN",
           "Every row needs a number: mend it, or leave the row out.")  # fmt: skip
    if is_log:
        refuse("log-prob-above-0", answer > _ROUNDING, "the log-probability {:g} is above 0",
               f'Logarithms of probabilities are at most 0; for probabilities write prob = "{column}".')  # fmt: skip
    else:
        refuse("prob-negative", answer < 0, "the probability {:g} is negative",
               f'Probabilities lie between 0 and 1; for their logarithms write log_prob = "{column}".')  # fmt: skip
        refuse(
            "prob-above-1",
            answer > 1.0 + _ROUNDING,
            "the probability {:g} is above 1",
            "Probabilities lie between 0 and 1.",
        )
