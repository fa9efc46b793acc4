"""What a policy is: two answers about a display, `log_prob` and `sample`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.arrow_lists import Ragged
from foretest.displays import Displays, Floats
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

    def _remember_logged(self, log_prob: str | None, prob: str | None) -> None:
        """Store which column, if any, holds what was logged for the shown ranking."""
        if log_prob is not None and prob is not None:
            raise BadInput("a policy takes log_prob or prob, not both.")
        if log_prob is not None:
            self._logged = (log_prob, True)
        elif prob is not None:
            self._logged = (prob, False)


def shown_log_prob(policy: Policy, displays: Displays, *, is_control: bool) -> Floats:
    """log π of the ranking that was shown: as logged where a column says it, else computed."""
    logged = getattr(policy, "_logged", None)
    if logged is None:
        answer = policy.log_prob(displays, displays.ranking)
        _refuse_not_numbers(policy, displays, answer)
        column = policy_columns(policy)[0] if policy_columns(policy) else type(policy).__name__
    else:
        column, is_log = logged
        answer = np.asarray(displays[column], dtype=np.float64)
        _refuse_impossible(column, is_log, answer)
        if not is_log:
            with np.errstate(divide="ignore"):
                answer = np.log(answer)
    if is_control:
        impossible = np.flatnonzero(answer == -np.inf)
        if len(impossible):
            raise RowFault(
                "control-zero", column, impossible,
                "the control gives probability 0 to the ranking that was shown",
                "The control must be the policy that produced the log: check its columns and parameters.",
            )  # fmt: skip
    return answer


def policy_columns(policy: Any) -> tuple[str, ...]:
    """The columns a policy declares; of a class that declares none, its string attributes."""
    declared = getattr(policy, "columns", None)
    if declared is not None:
        return tuple(declared)
    return tuple(value for value in vars(policy).values() if isinstance(value, str))


def policy_settings(policy: Any) -> dict[str, Any]:
    """The settings-file table of any policy, a user's own included."""
    if isinstance(policy, Policy):
        return policy.settings()
    kind = type(policy)
    return {"policy": f"{kind.__module__}:{kind.__qualname__}", **vars(policy)}


def positive(name: str, value: float, *, below: float = np.inf) -> float:
    """`value` as a float if it is in (0, below), else BadInput."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < value < below:
        limit = "a number above 0" if below == np.inf else f"a number between 0 and {below:g}"
        raise BadInput(f"{name} = {value!r}: expected {limit}.")
    return float(value)


def _refuse_not_numbers(policy: Policy, displays: Displays, answer: npt.NDArray[Any]) -> None:
    if not np.isnan(answer).any():
        return
    for column in getattr(policy, "score_columns", ()):
        lists = displays[column]
        bad = [i for i in np.flatnonzero(np.isnan(answer)) if not np.isfinite(lists[i]).all()]
        if bad:
            raise RowFault(
                "score-finite", column, np.array(bad), "a score is NaN or infinite",
                "Scores must be finite numbers: give an item that may not be shown no place in the list.",
            )  # fmt: skip
    raise RowFault(
        "log-prob-nan", (policy_columns(policy) or (type(policy).__name__,))[0], np.flatnonzero(np.isnan(answer)),
        f"the policy {type(policy).__name__} gives no number as log-probability", "Check its log_prob.",
    )  # fmt: skip


def _refuse_impossible(column: str, is_log: bool, answer: Floats) -> None:
    def refuse(kind: str, wrong: npt.NDArray[np.bool_], what: str, remedy: str) -> None:
        if wrong.any():
            raise RowFault(kind, column, np.flatnonzero(wrong), what, remedy)

    refuse("prob-nan", np.isnan(answer), "the logged probability is NaN", "Every row needs a number.")
    if is_log:
        refuse("log-prob-above-0", answer > 0, "a log-probability is above 0",
               "Natural logarithms of probabilities are at most 0; if the column holds probabilities, use prob = …")  # fmt: skip
    else:
        refuse("prob-negative", answer < 0, "a probability is negative",
               "Probabilities lie between 0 and 1; if the column holds logarithms, use log_prob = …")  # fmt: skip
        refuse("prob-above-1", answer > 1, "a probability is above 1", "Probabilities lie between 0 and 1.")
