"""A feedback dict of Open Bandit Pipeline, as its datasets give it, with the distribution of an evaluation policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from foretest.errors import BadInput
from foretest.offline.test import OfflineTest
from foretest.policies import Logged, Probabilities
from foretest.policies.probabilities import SUM_ERROR
from foretest.settings.log_columns import LogColumns

_NEEDED = ("n_rounds", "action", "reward", "pscore")


class BanditLog(NamedTuple):
    """A log with one row per round, and the test of the evaluation policy on it: `log.test.run(log.table)`.

    >>> import foretest as ft
    >>> feedback = {"n_rounds": 2, "action": [0, 1], "reward": [1.0, 0.0], "pscore": [0.5, 0.5]}
    >>> ft.from_bandit_feedback(feedback, [[0.8, 0.2], [0.8, 0.2]]).table.num_rows
    2
    """

    table: pa.Table  # one row per round
    test: OfflineTest  # of the evaluation policy


def from_bandit_feedback(feedback: Mapping[str, Any], action_dist: Any, **analysis: Any) -> BanditLog:
    """The log and the test behind a feedback dict.

    Parameters
    ----------
    feedback: a dict with n_rounds, action, reward and pscore; with pi_b, the logging policy's whole distribution, where
        it is known, all of its weights can be checked; of several positions the row's own is used.
    action_dist: the evaluation policy, an array of rounds × actions, or rounds × actions × positions.
    analysis: [analysis] settings of the test, as `OfflineTest` takes them.

    Returns
    -------
    A `BanditLog`: the log as a table, and the test to run on it.

    Raises
    ------
    BadInput: a key is missing, or arrays do not have one entry per round.

    >>> import foretest as ft
    >>> feedback = {"n_rounds": 2, "action": [0, 1], "reward": [1.0, 0.0], "pscore": [0.5, 0.5]}
    >>> log = ft.from_bandit_feedback(feedback, [[0.8, 0.2], [0.8, 0.2]], estimators=["is"])
    >>> round(log.test.run(log.table).metrics["reward"].estimates["is"].treatment, 9)
    0.8
    """
    missing = next((name for name in _NEEDED if feedback.get(name) is None), None)
    if missing is not None:
        raise BadInput(f"the feedback has no '{missing}': expected a dict with {', '.join(_NEEDED)}.")
    rounds = int(feedback["n_rounds"])
    action, reward, pscore = (_column(feedback, name, rounds) for name in ("action", "reward", "pscore"))
    position = feedback.get("position")
    at = np.zeros(rounds, np.int64) if position is None else np.asarray(position, np.int64)
    treatment = _distribution("action_dist", action_dist, rounds, at)
    columns = {
        "round": np.arange(rounds), "reward": reward.astype(np.float64), "pscore": pscore.astype(np.float64),
        "action": _lists(action.astype(np.int32)[:, None]), "treatment": _lists(treatment),
    }  # fmt: skip
    control: Any = Logged(prob="pscore")
    if feedback.get("pi_b") is not None:
        columns["control"] = _lists(_distribution("pi_b", feedback["pi_b"], rounds, at))
        control = Probabilities("control")
    log = LogColumns(rewards=("reward",), id="round", ranking="action")
    test = OfflineTest(log=log, control=control, treatment=Probabilities("treatment"), **analysis)
    return BanditLog(pa.table(columns), test)


def _column(feedback: Mapping[str, Any], name: str, rounds: int) -> Any:
    values = np.asarray(feedback[name])
    if values.shape != (rounds,):
        raise BadInput(
            f"the feedback's '{name}' has the shape {values.shape}: expected one number for each of {rounds} rounds."
        )
    return values


def _distribution(name: str, values: Any, rounds: int, position: Any) -> Any:
    """Probabilities of the actions, those of the row's own position."""
    array = np.asarray(values, np.float64)
    if array.ndim == 3 and len(array) == rounds:
        array = array[np.arange(rounds), :, np.minimum(position, array.shape[2] - 1)]
    if array.ndim != 2 or len(array) != rounds:
        raise BadInput(
            f"{name} has the shape {np.shape(values)}: expected rounds × actions, or rounds × actions × positions, with"
            f" {rounds} rounds."
        )
    wrong = np.flatnonzero(np.abs(array.sum(axis=1) - 1.0) > SUM_ERROR)
    if len(wrong):
        raise BadInput(f"{name}, round {wrong[0]}: the probabilities sum to {array[wrong[0]].sum():.7g}, not 1.")
    return array


def _lists(matrix: Any) -> pa.Array:
    starts = np.arange(0, matrix.size + 1, max(matrix.shape[1], 1), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(starts), pa.array(matrix.ravel()))
