"""log π of the rankings that were shown, as logged or as the policy answers; answers that cannot be are refused."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput, RowFault
from foretest.policies.adapter import class_name
from foretest.policies.as_shown import served
from foretest.policies.base import LoggedColumn, Policy, logged_column

_ROUNDING = 1e-6  # of a log-probability, computed or logged as float32


def shown_log_prob(policy: Policy, displays: Displays, *, is_control: bool) -> Floats:
    """log π of the ranking that was shown: from the logged column where the policy has one, else computed.

    A control that always shows the same is taken as it served: `AsShown`.
    """
    policy = served(policy) if is_control else policy
    logged = logged_column(policy)
    if logged is None:
        answer = np.asarray(policy.log_prob(displays, displays.ranking), dtype=np.float64)
        _refuse_answer(policy, displays, answer)
        column = _first_column(policy)
    else:
        answer = _logged_log_prob(logged, displays)
        column = logged.name
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
    """log π of one ranking per display: if these are the shown rankings, from the logged column where there is one."""
    if rankings is displays.ranking:
        return shown_log_prob(policy, displays, is_control=False)
    return np.asarray(policy.log_prob(displays, rankings), dtype=np.float64)


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


def _first_column(policy: Policy) -> str:
    """The column that a fault of a policy's answers is reported for; the name of its class if it reads none."""
    return (*policy.columns, class_name(policy))[0]


def _refuse_answer(policy: Policy, displays: Displays, answer: Floats) -> None:
    """Refuse what `log_prob` gave if it is not one log-probability per display."""
    name = class_name(policy)
    if np.shape(answer) != (len(displays),):
        raise BadInput(
            f"{name}.log_prob gives an array of shape {np.shape(answer)} for {len(displays)} displays: expected one"
            " number per display."
        )
    if not np.isnan(answer).any() and answer.max(initial=-np.inf) <= _ROUNDING:
        return
    for scores in policy.score_columns:
        refuse_not_finite(scores, displays[scores])
    column = _first_column(policy)
    bad = np.flatnonzero(np.isnan(answer))
    if len(bad):
        raise RowFault("log-prob-nan", column, bad, f"{name} gives NaN as log-probability of the shown ranking",
                       "Check its columns, and its log_prob.")  # fmt: skip
    bad = np.flatnonzero(answer > _ROUNDING)
    raise RowFault("log-prob-positive", column, bad,
                   f"{name} gives the log-probability {answer[bad[0]]:g}, above 0, to the shown ranking",
                   "Check its log_prob: it returns natural logarithms of probabilities.")  # fmt: skip


def _logged_log_prob(logged: LoggedColumn, displays: Displays) -> Floats:
    """What was logged, as log-probabilities; values that are no probabilities are refused."""
    answer = np.asarray(displays[logged.name], dtype=np.float64)
    _refuse_impossible(logged, answer)
    if not logged.is_log:
        with np.errstate(divide="ignore"):
            answer = np.log(answer)
    return np.minimum(answer, 0.0)


def _refuse_impossible(logged: LoggedColumn, answer: Floats) -> None:
    column = logged.name

    def refuse(kind: str, wrong: npt.NDArray[np.bool_], what: str, remedy: str) -> None:
        rows = np.flatnonzero(wrong)
        if len(rows):
            raise RowFault(kind, column, rows, what.format(answer[rows[0]]), remedy)

    refuse("prob-nan", np.isnan(answer), "the logged probability is NaN",
           "Every row needs a number: fix it, or leave the row out.")  # fmt: skip
    if logged.is_log:
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
