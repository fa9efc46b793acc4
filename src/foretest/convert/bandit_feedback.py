"""A feedback dict of Open Bandit Pipeline, as its datasets give it, with the distribution of an evaluation policy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.batch import Floats
from foretest.errors import BadInput, check_integer
from foretest.formatting import plural
from foretest.offline.test import OfflineTest
from foretest.policies import Logged, Probabilities
from foretest.policies.probabilities import SUM_ERROR
from foretest.settings.log_columns import LogColumns

MOST_FEATURES = 50  # columns of the context
_PSCORE_ERROR = 1e-6  # relative, of a pscore against the distribution it was read from
_NEEDED = ("n_rounds", "action", "reward", "pscore")
_OWN_ARGUMENTS = ("log", "control", "treatment")

Integers = npt.NDArray[np.int64]


class BanditLog(NamedTuple):
    """A log with one row per round, and the test of the evaluation policy on it: `log.test.run(log.table)`.

    >>> import foretest as ft
    >>> feedback = {"n_rounds": 2, "action": [0, 1], "reward": [1.0, 0.0], "pscore": [0.5, 0.5]}
    >>> ft.from_bandit_feedback(feedback, [[0.8, 0.2], [0.8, 0.2]]).table.num_rows
    2
    """

    table: pa.Table  # one row per round
    test: OfflineTest  # of the evaluation policy


def from_bandit_feedback(
    feedback: Mapping[str, Any], action_dist: Any, *, unit: Any = None, **analysis: Any
) -> BanditLog:
    """The log and the test behind a feedback dict.

    Parameters
    ----------
    feedback: a dict with n_rounds, action, reward and pscore; with pi_b, the logging policy's whole distribution, where
        it is known, all of its weights can be checked, and pscore may be missing. Where the arrays have several
        positions, position says which is the round's own, from 0. The columns of context, up to 50, become the features
        x0, x1, …. Of several loggers (stratum_idx), pi_b_avg or pscore_avg is the control: their mixture.
    action_dist: the evaluation policy, an array of rounds × actions, or rounds × actions × positions.
    unit: who is independent of whom, such as the user: an integer or a text for each round.
    analysis: [analysis] settings of the test, as `OfflineTest` takes them.

    Returns
    -------
    A `BanditLog`: the log as a table, and the test to run on it.

    Raises
    ------
    BadInput: a key is missing, arrays do not have one entry per round, or two of them contradict each other.

    >>> import foretest as ft
    >>> feedback = {"n_rounds": 2, "action": [0, 1], "reward": [1.0, 0.0], "pscore": [0.5, 0.5]}
    >>> log = ft.from_bandit_feedback(feedback, [[0.8, 0.2], [0.8, 0.2]], estimators=["is"])
    >>> round(log.test.run(log.table).metrics["reward"].estimates["is"].treatment, 9)
    0.8
    """
    _refuse_other_arguments(feedback, action_dist, analysis)
    rounds = _rounds(feedback)
    position = _position(feedback.get("position"), rounds)
    treatment = _distribution("action_dist", action_dist, rounds, position)
    known = _known_distributions(feedback, treatment.shape[1], rounds, position)
    reward, action = _numbers(feedback, "reward", rounds), _action(feedback, treatment.shape[1], rounds)
    control = _control(feedback, known, action)
    features = _features(feedback.get("context"), rounds)
    columns = {
        "round": np.arange(rounds), "reward": reward, "pscore": control.shown,
        "action": _lists(action.astype(np.int32)[:, None]), "treatment": _lists(treatment), **features,
    }  # fmt: skip
    policy: Any = Logged(prob="pscore")
    if control.whole is not None:
        columns["control"] = _lists(control.whole)
        policy = Probabilities("control")
    if unit is not None:
        columns["unit"] = _unit(unit, rounds)
    log = LogColumns(
        rewards=("reward",), id="round", ranking="action", unit=None if unit is None else "unit",
        features=tuple(features),
    )  # fmt: skip
    test = OfflineTest(log=log, control=policy, treatment=Probabilities("treatment"), **analysis)
    return BanditLog(pa.table(columns), test)


# -- arguments --------------------------------------------------------------------------------------------------------


def _refuse_other_arguments(feedback: Any, action_dist: Any, analysis: Mapping[str, Any]) -> None:
    """Refuse what is no feedback dict or no array, and policies or columns in place of settings."""
    if isinstance(feedback, tuple):
        raise BadInput(
            f"the feedback is a tuple of {len(feedback)}: expected one dict. With is_timeseries_split=True there are"
            " two, for training and for testing: give the second."
        )
    if not isinstance(feedback, Mapping):
        raise BadInput(
            f"the feedback is of type {type(feedback).__name__}: expected a dict with {', '.join(_NEEDED)}, then"
            " action_dist."
        )
    if isinstance(action_dist, Mapping):
        raise BadInput("action_dist is a dict: expected an array of rounds × actions, or rounds × actions × positions.")
    for name in _OWN_ARGUMENTS:
        if name in analysis:
            raise BadInput(f"{name}=… is made from the feedback: give settings of the analysis alone, such as cap.")


def _rounds(feedback: Mapping[str, Any]) -> int:
    """The number of rounds; every key that is needed is there."""
    known = "pscore" if feedback.get("pi_b") is None else "pi_b"
    missing = next((name for name in (*_NEEDED[:3], known) if feedback.get(name) is None), None)
    if missing is not None:
        raise BadInput(f"the feedback has no '{missing}': expected a dict with {', '.join(_NEEDED)}.")
    check_integer("n_rounds", feedback["n_rounds"], least=1)
    return int(feedback["n_rounds"])


# -- columns ----------------------------------------------------------------------------------------------------------


def _numbers(feedback: Mapping[str, Any], name: str, rounds: int) -> Floats:
    """A column of numbers, one per round."""
    values = _array(f"the feedback's '{name}'", feedback[name])
    if values.shape != (rounds,):
        raise BadInput(
            f"the feedback's '{name}' has the shape {values.shape}: expected one number for each of {rounds} rounds."
        )
    return values.astype(np.float64)


def _array(name: str, values: Any) -> npt.NDArray[Any]:
    """An array of numbers; text is refused, also where it looks like numbers."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths
        raise BadInput(f"{name} has rows of different lengths: expected an array of numbers.") from None
    if array.dtype.kind not in "biuf":
        what = "text" if array.dtype.kind in "US" else f"of type {array.dtype}"
        raise BadInput(f"{name} is {what}: expected numbers.")
    return array


def _whole(name: str, values: Floats, below: int | None, expected: str) -> Integers:
    """Whole numbers from 0, below a limit if there is one."""
    with np.errstate(invalid="ignore"):
        good = (values == np.floor(values)) & (values >= 0) & (values < (np.inf if below is None else below))
    wrong = np.flatnonzero(~good)
    if len(wrong):
        raise BadInput(f"{name}, round {wrong[0]}: {values[wrong[0]]:g}, but expected {expected}.")
    return values.astype(np.int64)


def _action(feedback: Mapping[str, Any], actions: int, rounds: int) -> Integers:
    expected = f"the number of one of the {actions} actions in action_dist, from 0 to {actions - 1}"
    return _whole("the feedback's 'action'", _numbers(feedback, "action", rounds), actions, expected)


def _position(position: Any, rounds: int) -> Integers | None:
    """The position of each round, where it is given; how many there are is known of each distribution."""
    if position is None:
        return None
    values = _numbers({"position": position}, "position", rounds)
    return _whole("the feedback's 'position'", values, None, "a whole number from 0")


def _unit(unit: Any, rounds: int) -> pa.Array:
    try:
        values = pa.array(np.asarray(unit).tolist())
    except (ValueError, pa.ArrowException):
        raise BadInput("unit holds values of several types: expected an integer or a text for each round.") from None
    if len(values) != rounds or pa.types.is_nested(values.type):
        raise BadInput(
            f"unit has the shape {np.shape(unit)}: expected an integer or a text for each of {rounds} rounds."
        )
    return values


def _features(context: Any, rounds: int) -> dict[str, Floats]:
    """The columns of the context by name, and a warning where there are more than a log should have."""
    if context is None:
        return {}
    values = _array("the feedback's 'context'", context)
    if values.ndim != 2 or len(values) != rounds:
        raise BadInput(
            f"the feedback's 'context' has the shape {values.shape}: expected rounds × dimensions, with {rounds}"
            " rounds."
        )
    if values.shape[1] > MOST_FEATURES:
        warnings.warn(
            f"the context has {values.shape[1]} columns: the first {MOST_FEATURES} are the features of the log. To"
            " choose others, leave out the rest before you give it.",
            stacklevel=3,
        )
    # whole columns: each is read by itself
    return {f"x{i}": np.ascontiguousarray(values[:, i], np.float64) for i in range(values.shape[1])[:MOST_FEATURES]}


# -- policies ---------------------------------------------------------------------------------------------------------


class _Control(NamedTuple):
    """What is known of the policy that produced the log."""

    shown: Floats  # the probability of the action that was taken
    whole: Floats | None  # those of all actions, rounds × actions


def _known_distributions(
    feedback: Mapping[str, Any], actions: int, rounds: int, position: Integers | None
) -> dict[str, Floats]:
    """The whole distributions of the logging policy and of a mixture of several, where they are given."""
    known = {}
    for name in ("pi_b", "pi_b_avg"):
        if feedback.get(name) is not None:
            known[name] = _distribution(name, feedback[name], rounds, position)
            if (has := known[name].shape[1]) != actions:
                raise BadInput(f"action_dist has {actions} actions and {name} has {has}: expected the same number.")
    return known


def _control(feedback: Mapping[str, Any], known: Mapping[str, Floats], action: Integers) -> _Control:
    """The logging policy, or the mixture of several: every row is then weighted against what all of them would do."""
    alone = _policy(feedback, "pscore", known.get("pi_b"), action)
    if not any(feedback.get(name) is not None for name in ("stratum_idx", "pi_b_avg", "pscore_avg")):
        return alone
    if feedback.get("pi_b_avg") is None and feedback.get("pscore_avg") is None:
        raise BadInput(
            "the feedback has a 'stratum_idx', so several policies produced it: give pi_b_avg or pscore_avg, the"
            " probabilities of their mixture, or describe each policy (docs/how-to/loggers.md)."
        )
    return _policy(feedback, "pscore_avg", known.get("pi_b_avg"), action)


def _policy(feedback: Mapping[str, Any], score: str, whole: Floats | None, action: Integers) -> _Control:
    """A policy from its distribution, the probability of what was shown, or both, which must then agree."""
    logged = None if feedback.get(score) is None else _numbers(feedback, score, len(action))
    if whole is None:
        assert logged is not None
        return _Control(logged, None)
    shown = whole[np.arange(len(action)), action]
    if logged is not None:
        _refuse_difference(score, logged, score.replace("pscore", "pi_b"), shown)
    return _Control(shown, whole)


def _refuse_difference(score: str, logged: Floats, dist: str, shown: Floats) -> None:
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~(np.abs(logged - shown) <= _PSCORE_ERROR * np.abs(shown)))
    if len(wrong):
        at = wrong[0]
        raise BadInput(
            f"round {at}: {score} is {logged[at]:.7g}, but {dist} gives the action that was taken {shown[at]:.7g}"
            f" ({len(wrong):,} of {len(shown):,} rounds differ). Mend one of them, or leave one out."
        )


def _distribution(name: str, values: Any, rounds: int, position: Integers | None) -> Floats:
    """Probabilities of the actions, those of the row's own position."""
    array = _array(name, values)
    if array.ndim not in (2, 3) or len(array) != rounds or 0 in array.shape:
        raise BadInput(
            f"{name} has the shape {array.shape}: expected rounds × actions, or rounds × actions × positions, with"
            f" {rounds} rounds."
        )
    if array.ndim == 3:
        array = array[np.arange(rounds), :, _own_positions(name, array.shape[2], rounds, position)]
    array = array.astype(np.float64)
    wrong = np.flatnonzero(~(np.abs(array.sum(axis=1) - 1.0) <= SUM_ERROR))
    if len(wrong):
        raise BadInput(f"{name}, round {wrong[0]}: the probabilities sum to {array[wrong[0]].sum():.7g}, not 1.")
    return array


def _own_positions(name: str, positions: int, rounds: int, position: Integers | None) -> Integers:
    """The position of each round in an array that has an axis of positions."""
    if position is None:
        if positions > 1:
            raise BadInput(f"{name} has {positions} positions: give the feedback a 'position' for each round, from 0.")
        return np.zeros(rounds, np.int64)
    expected = f"a whole number from 0 to {positions - 1}: {name} has {plural(positions, 'position')}"
    return _whole("the feedback's 'position'", position.astype(np.float64), positions, expected)


def _lists(matrix: Any) -> pa.Array:
    starts = np.arange(0, matrix.size + 1, max(matrix.shape[1], 1), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(starts), pa.array(matrix.ravel()))
