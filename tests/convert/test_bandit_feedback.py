"""Feedback dicts of Open Bandit Pipeline: values by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.convert.bandit_feedback import MOST_FEATURES, from_bandit_feedback

ROWS, ITEMS = 400, 6
EACH = np.arange(ROWS)


def feedback(positions: int = 1) -> tuple[dict[str, Any], np.ndarray]:
    """Feedback as the datasets give it, and a distribution of an evaluation policy."""
    g = np.random.default_rng(1)
    pi_b = g.dirichlet(np.ones(ITEMS), (ROWS, positions)).transpose(0, 2, 1)
    position = g.integers(0, positions, ROWS) if positions > 1 else None
    own = pi_b[EACH, :, 0 if position is None else position]
    action = np.array([g.choice(ITEMS, p=p) for p in own])
    return {
        "n_rounds": ROWS, "n_actions": ITEMS, "action": action, "reward": g.binomial(1, 0.3, ROWS),
        "position": position, "pscore": own[EACH, action], "pi_b": pi_b, "context": g.normal(size=(ROWS, 2)),
    }, g.dirichlet(np.ones(ITEMS), (ROWS, positions)).transpose(0, 2, 1)  # fmt: skip


def treatments(log: Any) -> dict[str, float]:
    return {key: one.treatment for key, one in log.test.run(log.table).metrics["reward"].estimates.items()}


@pytest.mark.parametrize("positions", [1, 3])
@pytest.mark.parametrize("known", [True, False])
def test_feedback(positions: int, known: bool) -> None:
    data, action_dist = feedback(positions)
    at = data["position"] if data["position"] is not None else np.zeros(ROWS, int)
    w = action_dist[EACH, data["action"], at] / data["pscore"]
    data = data if known else {**data, "pi_b": None}
    values = treatments(from_bandit_feedback(data, action_dist, n_resamples=50))
    assert values["is"] == pytest.approx((w * data["reward"]).mean(), rel=1e-9)
    assert values["nis"] == pytest.approx((w * data["reward"]).sum() / w.sum(), rel=1e-9)
    assert ("point-ncis-adaptive" in values) == known


def test_units_and_features_are_in_the_settings() -> None:
    data, action_dist = feedback()
    user = [f"user {i // 2}" for i in range(ROWS)]
    log = from_bandit_feedback(data, action_dist, unit=user, n_resamples=50)
    assert log.table["unit"].to_pylist() == user
    np.testing.assert_array_equal(log.table["x1"], data["context"][:, 1])
    result = log.test.run(log.table)
    assert result.log["units"] == ROWS // 2
    assert (result.settings["log"]["unit"], result.settings["log"]["features"]) == ("unit", ("x0", "x1"))
    assert {"dr", "piece-ncis"} <= set(result.metrics["reward"].estimates)  # both fit V(x) on the context
    plain = treatments(from_bandit_feedback({**data, "context": None}, action_dist, n_resamples=50))
    assert "piece-ncis" not in plain
    for key, value in plain.items():
        assert result.metrics["reward"].estimates[key].treatment == pytest.approx(value, rel=1e-12)


def test_whole_columns_of_a_wide_context() -> None:
    data, action_dist = feedback()
    data["context"] = np.random.default_rng(0).normal(size=(ROWS, MOST_FEATURES + 1))
    with pytest.warns(UserWarning, match="the context has 51 columns: the first 50 are the features of the log"):
        log = from_bandit_feedback(data, action_dist)
    assert log.test.settings.log.features == tuple(f"x{i}" for i in range(MOST_FEATURES))


def test_a_pscore_that_is_missing_comes_from_pi_b() -> None:
    data, action_dist = feedback(3)
    without = from_bandit_feedback({**data, "pscore": None}, action_dist)
    np.testing.assert_array_equal(without.table["pscore"], data["pscore"])


@pytest.mark.parametrize("known", [True, False])
def test_several_loggers_are_weighted_by_their_mixture(known: bool) -> None:
    """Balanced weights: w = π_e / Σ_k ρ_k π_k, whichever of the loggers took the action."""
    g = np.random.default_rng(2)
    loggers, share = g.dirichlet(np.ones(ITEMS), (2, ROWS)), np.array([0.25, 0.75])
    stratum = np.repeat([0, 1], [100, 300])
    pi_b, mixture = loggers[stratum, EACH], np.tensordot(share, loggers, 1)
    action = np.array([g.choice(ITEMS, p=p) for p in pi_b])
    reward, action_dist = g.binomial(1, 0.4, ROWS), g.dirichlet(np.ones(ITEMS), ROWS)
    data = {
        "n_rounds": ROWS, "action": action, "reward": reward, "stratum_idx": stratum,
        "pi_b": pi_b[:, :, None], "pscore": pi_b[EACH, action], "pi_b_avg": mixture[:, :, None] if known else None,
        "pscore_avg": mixture[EACH, action],
    }  # fmt: skip
    w = action_dist[EACH, action] / mixture[EACH, action]
    values = treatments(from_bandit_feedback(data, action_dist, estimators=["is", "nis"], n_resamples=50))
    assert values["is"] == pytest.approx(np.mean(w * reward), rel=1e-9)
    assert values["nis"] == pytest.approx(np.sum(w * reward) / w.sum(), rel=1e-9)
    with pytest.raises(ft.BadInput) as error:
        from_bandit_feedback({**data, "pi_b_avg": None, "pscore_avg": None}, action_dist)
    assert str(error.value) == (
        "the feedback has a 'stratum_idx', so several policies produced it: give pi_b_avg or pscore_avg, the"
        " probabilities of their mixture, or describe each policy (docs/how-to/loggers.md)."
    )


FIRST_HALF = np.where(EACH == 0, 0.5, 0.0)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"pscore": None, "pi_b": None}, "the feedback has no 'pscore'"),
        ({"n_rounds": "many"}, "n_rounds = 'many': expected a whole number of at least 1."),
        ({"action": [0, 1]}, "the feedback's 'action' has the shape (2,): expected one number for each of 400 rounds."),
        (
            {"action": FIRST_HALF},
            "the feedback's 'action', round 0: 0.5, but expected the number of one of the 6 actions in action_dist,"
            " from 0 to 5.",
        ),
        ({"action": EACH * 0 + 6}, "the feedback's 'action', round 0: 6, but expected the number of one of the 6"),
        ({"reward": ["1"] * ROWS}, "the feedback's 'reward' is text: expected numbers."),
        ({"reward": [None] * ROWS}, "the feedback's 'reward' is of type object: expected numbers."),
        ({"position": np.zeros(3)}, "the feedback's 'position' has the shape (3,): expected one number for each"),
        ({"position": np.zeros((ROWS, 1))}, "the feedback's 'position' has the shape (400, 1): expected one number"),
        ({"position": EACH * 0 + 100}, "position', round 0: 100, but expected a whole number from 0 to 0: action_dist"),
        ({"context": np.zeros(ROWS)}, "the feedback's 'context' has the shape (400,): expected rounds × dimensions"),
        ({"context": [["a"]] * ROWS}, "the feedback's 'context' is text: expected numbers."),
    ],
)
def test_bad_feedback(changed: dict[str, Any], what: str) -> None:
    data, action_dist = feedback()
    with pytest.raises(ft.BadInput) as error:
        from_bandit_feedback({**data, **changed}, action_dist)
    assert what in str(error.value)


@pytest.mark.parametrize(
    ("position", "what"),
    [
        (EACH % 3 + 1, "round 2: 3, but expected a whole number from 0 to 2: action_dist has 3 positions."),
        (EACH * 0 + 100, "round 0: 100, but expected a whole number from 0 to 2"),
        (EACH * 0 - 1, "round 0: -1, but expected a whole number from 0."),
        (FIRST_HALF, "round 0: 0.5, but expected a whole number from 0."),
        (FIRST_HALF * np.nan, "round 0: nan, but expected a whole number from 0."),
        (None, "action_dist has 3 positions: give the feedback a 'position' for each round, from 0."),
    ],
)
def test_a_position_that_is_none_is_refused(position: Any, what: str) -> None:
    data, action_dist = feedback(3)
    with pytest.raises(ft.BadInput) as error:
        from_bandit_feedback({**data, "position": position}, action_dist)
    assert what in str(error.value)


def test_a_pscore_that_contradicts_pi_b_is_refused() -> None:
    data, action_dist = feedback()
    right, wrong = data["pscore"] * (1 + 5e-7), data["pscore"].copy()
    from_bandit_feedback({**data, "pscore": right}, action_dist)
    wrong[[7, 9]] *= 1 + 3e-6
    for changed in (wrong, np.where(EACH < 7, data["pscore"], np.nan)):
        with pytest.raises(ft.BadInput, match=r"^round 7: pscore is .*, but pi_b gives the action that was taken 0\."):
            from_bandit_feedback({**data, "pscore": changed}, action_dist)


@pytest.mark.parametrize(
    ("dist", "what"),
    [
        (lambda p: p[:5], "action_dist has the shape (5, 6, 1): expected rounds × actions"),
        (lambda p: p * 0.5, "action_dist, round 0: the probabilities sum to 0.5, not 1."),
        (
            lambda p: p[:, :5] / p[:, :5].sum(axis=1, keepdims=True),
            "action_dist has 5 actions and pi_b has 6: expected the same number.",
        ),
        (lambda p: p.astype(str), "action_dist is text: expected numbers."),
        (lambda p: [[1.0], [0.5, 0.5]], "action_dist has rows of different lengths: expected an array of numbers."),
        (lambda p: {}, "action_dist is a dict: expected an array of rounds × actions"),
    ],
)
def test_bad_distributions(dist: Any, what: str) -> None:
    data, action_dist = feedback()
    with pytest.raises(ft.BadInput) as error:
        from_bandit_feedback(data, dist(action_dist))
    assert what in str(error.value)


def test_other_arguments() -> None:
    data, action_dist = feedback()
    give: Any = from_bandit_feedback
    for arguments, changed, what in (
        (((data, data), action_dist), {}, "the feedback is a tuple of 2: expected one dict."),
        ((action_dist, data), {}, "the feedback is of type ndarray: expected a dict with n_rounds, action, reward"),
        ((data, action_dist), {"unit": [1, 2]}, "unit has the shape (2,): expected an integer or a text for"),
        ((data, action_dist), {"unit": EACH[:, None]}, "unit has the shape (400, 1): expected an integer or a text"),
        ((data, action_dist), {"control": None}, "control=… is made from the feedback: give settings of the analysis"),
        ((data, action_dist), {"lambda_": 10}, "has an unknown key 'lambda_'. Did you mean 'cap'?"),
    ):
        with pytest.raises(ft.BadInput) as error:
            give(*arguments, **changed)
        assert what in str(error.value)


@pytest.mark.parametrize(
    ("elsewhere", "hint"),
    [
        ("ipw", " Did you mean 'is'?"),
        ("IPS", " Did you mean 'is'?"),
        ("snipw", " Did you mean 'nis'?"),
        ("snips", " Did you mean 'nis'?"),
        ("sndr", " Did you mean 'point-dr-adaptive'?"),
        ("dm", " There is no direct method: 'dr' corrects a model by the rewards in the log."),
    ],
)
def test_estimators_by_their_names_elsewhere(elsewhere: str, hint: str) -> None:
    data, action_dist = feedback()
    with pytest.raises(ft.BadInput) as error:
        from_bandit_feedback(data, action_dist, estimators=[elsewhere])
    assert str(error.value).startswith(f"unknown estimator '{elsewhere}'.{hint} Known: is, nis")


@pytest.mark.parametrize(
    ("elsewhere", "hint"),
    [
        ("lambda_", "Did you mean 'cap'?"),
        ("alpha", "Did you mean 'confidence_level'? It is 1 − alpha."),
        ("random_state", "Did you mean 'seed'?"),
        ("n_bootstrap_samples", "Did you mean 'n_resamples'?"),
    ],
)
def test_settings_by_their_names_elsewhere(elsewhere: str, hint: str) -> None:
    data, action_dist = feedback()
    with pytest.raises(ft.BadInput) as error:
        from_bandit_feedback(data, action_dist, **{elsewhere: 1})
    assert f"unknown key '{elsewhere}'. {hint} Known: " in str(error.value)


def test_dr_without_a_model_asks_for_predictions_too() -> None:
    data, action_dist = feedback()
    log = from_bandit_feedback({**data, "context": None}, action_dist, estimators=["dr"])
    with pytest.raises(ft.BadInput, match=r'predicted rewards of items, as in \[analysis\] predictions = "predicted'):
        log.test.run(log.table)


def test_an_action_outside_the_lists_is_called_one() -> None:
    data, action_dist = feedback()
    log = from_bandit_feedback(data, action_dist)
    for column in ([ITEMS] * ROWS, [[ITEMS]] * ROWS):
        table = log.table.set_column(log.table.column_names.index("action"), "action", [column])
        with pytest.raises(
            ft.BadInput, match="the action 6 is outside the row's lists of 6 eligible actions; 400 rows"
        ):
            log.test.run(table)
