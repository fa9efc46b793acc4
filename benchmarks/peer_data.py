"""Logs of another project's simulator with its own estimates: run in the Python that has Open Bandit Pipeline 0.5.7.

    PYTHON benchmarks/peer_data.py FOLDER WORLD SEED …

writes FOLDER/SEED.npz. A WORLD is ACTIONS-KIND-ROUNDS, KIND near, mid or far, or STRUCTURE-KIND-ROUNDS for slates of 3 of
8 items: `independent`, `cascade` (a slot's reward depends on the slots above), `interacting` (on all others).
"""

from __future__ import annotations

import sys
import warnings
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

STRUCTURES = {"independent": "independent", "cascade": "cascade_additive", "interacting": "standard_additive"}
ITEMS, SLOTS = 8, 3
SCALES = {"near": 2.0, "far": 8.0}  # scores of a slate's evaluation policy, in q
_SLATES = np.array(list(permutations(range(ITEMS), SLOTS)))


def make(world: str, seed: int) -> dict[str, Any]:
    """One log of a world with its truth, the value of the logging policy, and the peer's estimates."""
    begin, kind, rounds = world.split("-")
    if begin in STRUCTURES:
        return make_slates(begin, kind, int(rounds), seed)
    return make_actions(int(begin), kind, int(rounds), seed)


# -- single actions ---------------------------------------------------------------------------------------------------


def make_actions(actions: int, kind: str, rounds: int, seed: int) -> dict[str, Any]:
    """Five context dimensions, logistic rewards q; logging softmax(q), or softmax(−5 q) for *far*."""
    from obp.dataset import SyntheticBanditDataset, logistic_reward_function

    dataset = SyntheticBanditDataset(
        n_actions=actions, dim_context=5, reward_function=logistic_reward_function,
        beta=-5 if kind == "far" else 1, random_state=seed,
    )  # fmt: skip
    feedback = dataset.obtain_batch_bandit_feedback(rounds)
    q, control = feedback["expected_reward"], feedback["pi_b"][:, :, 0]
    if kind == "near":
        e = np.exp(4 * (q - q.max(axis=1, keepdims=True)))
        treatment = e / e.sum(axis=1, keepdims=True)
    else:
        best = 0.7 if kind == "mid" else 0.9
        treatment = np.full(q.shape, (1 - best) / actions)
        treatment[np.arange(rounds), q.argmax(axis=1)] += best
    predicted = None if actions > 100 else predicted_rewards(feedback, actions)
    estimates = action_estimates(feedback, treatment, predicted)
    return {
        "control": np.log(control), "treatment": np.log(treatment), "ranking": feedback["action"][:, None],
        "reward": feedback["reward"].astype(float)[:, None], "truth": (treatment * q).sum(axis=1).mean(),
        "baseline": (control * q).sum(axis=1).mean(), "context": feedback["context"],
        **({} if predicted is None else {"predicted": predicted[:, :, 0]}),
        **{f"peer {name}": value for name, value in estimates.items()},
    }  # fmt: skip


def predicted_rewards(feedback: dict[str, Any], actions: int) -> np.ndarray:
    """The peer's reward model, a logistic regression, cross-fitted; it has a feature for each action, so that for 1,000
    it would take minutes."""
    from obp import ope
    from sklearn.linear_model import LogisticRegression

    model = ope.RegressionModel(
        n_actions=actions, action_context=np.eye(actions), base_model=LogisticRegression(max_iter=200, random_state=0)
    )
    return np.asarray(model.fit_predict(
        context=feedback["context"], action=feedback["action"], reward=feedback["reward"], n_folds=2, random_state=0
    ))  # fmt: skip


def action_estimates(feedback: dict[str, Any], treatment: np.ndarray, predicted: np.ndarray | None) -> dict[str, float]:
    """What the peer's estimators say; those with a reward model where there is one."""
    from obp import ope

    action_dist = treatment[:, :, None]
    asked = {
        "reward": feedback["reward"], "action": feedback["action"], "pscore": feedback["pscore"],
        "action_dist": action_dist,
    }  # fmt: skip
    values = {
        "IPW": ope.InverseProbabilityWeighting().estimate_policy_value(**asked),
        "SNIPW": ope.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**asked),
    }
    if predicted is None:
        return values
    asked["estimated_rewards_by_reg_model"] = predicted
    values["DM"] = ope.DirectMethod().estimate_policy_value(
        action_dist=action_dist, estimated_rewards_by_reg_model=predicted
    )
    values["DR"] = ope.DoublyRobust().estimate_policy_value(**asked)
    values["SNDR"] = ope.SelfNormalizedDoublyRobust().estimate_policy_value(**asked)
    return values


# -- slates -----------------------------------------------------------------------------------------------------------


def make_slates(structure: str, kind: str, rounds: int, seed: int) -> dict[str, Any]:
    """Three context dimensions, binary rewards by slot of base q; logging by the peer's linear scores."""
    from obp.dataset import SyntheticSlateBanditDataset, linear_behavior_policy_logit, logistic_reward_function

    dataset = SyntheticSlateBanditDataset(
        n_unique_action=ITEMS, len_list=SLOTS, dim_context=3, reward_type="binary",
        reward_structure=STRUCTURES[structure], base_reward_function=logistic_reward_function,
        behavior_policy_function=linear_behavior_policy_logit, random_state=seed,
    )  # fmt: skip
    # its own item-position probabilities enumerate all slates again for each slot of each round
    feedback = dataset.obtain_batch_bandit_feedback(rounds, return_pscore_item_position=False)
    known = {"context": feedback["context"], "action_context": dataset.action_context, "random_state": seed}
    control = linear_behavior_policy_logit(**known)
    treatment = SCALES[kind] * logistic_reward_function(**known)
    expected = dataset.reward_function(
        action=_SLATES.ravel(), action_interaction_weight_matrix=dataset.action_interaction_weight_matrix,
        base_reward_function=logistic_reward_function, reward_type="binary", reward_structure=STRUCTURES[structure],
        len_list=SLOTS, is_enumerated=True, **known,
    )  # fmt: skip
    worth = expected.sum(axis=1, dtype=float).reshape(rounds, len(_SLATES))
    shown = feedback["action"].reshape(rounds, SLOTS)
    p, t = (Slates(scores, shown) for scores in (control, treatment))
    assert np.allclose(p.prefix.ravel(), feedback["pscore_cascade"])
    return {
        "control": control, "treatment": treatment, "ranking": shown,
        "reward": feedback["reward"].reshape(rounds, SLOTS).astype(float), "context": feedback["context"],
        "truth": (t.every * worth).sum(axis=1).mean(), "baseline": (p.every * worth).sum(axis=1).mean(),
        **{f"peer {name}": value for name, value in slate_estimates(dataset, feedback, treatment, p, t).items()},
    }  # fmt: skip


class Slates:
    """Probabilities under a Plackett-Luce policy: of every slate, of prefixes and of items in the places shown."""

    def __init__(self, scores: np.ndarray, shown: np.ndarray) -> None:
        theta = np.exp(scores - scores.max(axis=1, keepdims=True))
        rows = np.arange(len(scores))
        self.every = _prefixes(theta[:, _SLATES])[..., -1]
        self.prefix = _prefixes(theta[rows[:, None], shown], theta.sum(axis=1))
        places = [
            [np.where(_SLATES[:, k] == item, self.every, 0.0).sum(axis=1) for item in range(ITEMS)]
            for k in range(SLOTS)
        ]  # fmt: skip
        self.place = np.stack([np.array(places[k])[shown[:, k], rows] for k in range(SLOTS)], axis=1)


def _prefixes(theta: np.ndarray, total: np.ndarray | None = None) -> np.ndarray:
    """π(a_1..a_k) for each k, along the last axis."""
    if total is None:  # over all slates: each item is first in as many as any other
        first = theta[..., 0]
        total = first.sum(axis=1) * ITEMS / len(_SLATES)
    left = total.reshape(-1, *([1] * (theta.ndim - 1))) - np.cumsum(theta, axis=-1) + theta
    return np.cumprod(theta / left, axis=-1)


def slate_estimates(
    dataset: Any, feedback: dict[str, Any], scores: np.ndarray, p: Slates, t: Slates
) -> dict[str, float]:
    """What the peer's estimators of slates say; Cascade-DR's model is that of its examples, a tree of depth 3."""
    from obp import ope
    from sklearn.tree import DecisionTreeRegressor

    asked = {name: feedback[name] for name in ("slate_id", "reward", "position")}
    joint, by_place, prefixes = (
        {f"{who}pscore{name}": values for who, values in (("", a.ravel()), ("evaluation_policy_", b.ravel()))}
        for name, a, b in (
            ("", p.prefix[:, -1:].repeat(SLOTS, 1), t.prefix[:, -1:].repeat(SLOTS, 1)),
            ("_item_position", p.place, t.place),
            ("_cascade", p.prefix, t.prefix),
        )
    )
    values = {
        "SIPS": ope.SlateStandardIPS(len_list=SLOTS).estimate_policy_value(**asked, **joint),
        "IIPS": ope.SlateIndependentIPS(len_list=SLOTS).estimate_policy_value(**asked, **by_place),
        "RIPS": ope.SlateRewardInteractionIPS(len_list=SLOTS).estimate_policy_value(**asked, **prefixes),
        "SNSIPS": ope.SelfNormalizedSlateStandardIPS(len_list=SLOTS).estimate_policy_value(**asked, **joint),
        "SNIIPS": ope.SelfNormalizedSlateIndependentIPS(len_list=SLOTS).estimate_policy_value(**asked, **by_place),
        "SNRIPS": ope.SelfNormalizedSlateRewardInteractionIPS(len_list=SLOTS).estimate_policy_value(**asked, **prefixes),
    }  # fmt: skip
    action_dist = dataset.calc_evaluation_policy_action_dist(
        action=feedback["action"], evaluation_policy_logit_=scores.copy()
    )
    model = ope.SlateRegressionModel(
        base_model=DecisionTreeRegressor(max_depth=3, random_state=0), len_list=SLOTS, n_unique_action=ITEMS
    )
    logged = {"action": feedback["action"], "reward": feedback["reward"], **prefixes}
    logged["evaluation_policy_action_dist"] = action_dist
    predicted = model.fit_predict(context=feedback["context"], **logged)
    values["Cascade-DR"] = ope.SlateCascadeDoublyRobust(len_list=SLOTS, n_unique_action=ITEMS).estimate_policy_value(
        slate_id=feedback["slate_id"], position=feedback["position"], q_hat=predicted, **logged
    )
    return {name: float(value) for name, value in values.items()}


def main() -> None:
    warnings.filterwarnings("ignore")
    folder, world, *seeds = sys.argv[1:]
    for seed in seeds:
        np.savez(Path(folder) / f"{seed}.npz", **make(world, int(seed)))


if __name__ == "__main__":
    main()
