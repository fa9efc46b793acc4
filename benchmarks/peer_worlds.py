"""Foretest on another project's simulator: the synthetic bandits of Open Bandit Pipeline 0.5.7, beside its estimators.

    python benchmarks/peer_worlds.py --peer PYTHON [--repetitions 50] [--worlds 10-far-10000,…]

PYTHON is an interpreter that can import obp (its source on PYTHONPATH). It makes the data and its own estimates, and
Foretest sees a log: scores, actions, rewards. Five context dimensions, logistic rewards q; the logging policy is
softmax(β q) with β = 1, for *far* β = −5; the evaluation policy is softmax(4 q) for *near*, for *mid* and *far* the
best action with probability .7 and .9, else any. Prints a Markdown table and writes it into docs/other-worlds.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve()
PAGE = HERE.parents[1] / "docs" / "other-worlds.md"
BEGIN, END = "<!-- peer worlds: begin -->", "<!-- peer worlds: end -->"
WORLDS = [f"{a}-{kind}-{n}" for a, kind, n in product((10, 100, 1000), ("near", "mid", "far"), (2000, 10_000))]
AT_ONCE = 10  # logs on disk
SEED = 1000  # of the first repetition: none of those on which the rule was tried


# -- in the peer's Python ---------------------------------------------------------------------------------------------


def make(world: str, seed: int, place: Path) -> None:
    """One log of a world with its truth and the peer's estimates."""
    warnings.filterwarnings("ignore")
    from obp.dataset import SyntheticBanditDataset, logistic_reward_function

    actions, kind, rounds = world.split("-")
    count, n = int(actions), int(rounds)
    dataset = SyntheticBanditDataset(
        n_actions=count, dim_context=5, reward_function=logistic_reward_function,
        beta=-5 if kind == "far" else 1, random_state=seed,
    )  # fmt: skip
    feedback = dataset.obtain_batch_bandit_feedback(n)
    q, control = feedback["expected_reward"], feedback["pi_b"][:, :, 0]
    if kind == "near":
        e = np.exp(4 * (q - q.max(axis=1, keepdims=True)))
        treatment = e / e.sum(axis=1, keepdims=True)
    else:
        best = 0.7 if kind == "mid" else 0.9
        treatment = np.full(q.shape, (1 - best) / count)
        treatment[np.arange(n), q.argmax(axis=1)] += best
    np.savez(
        place, control=control, treatment=treatment, action=feedback["action"], reward=feedback["reward"].astype(float),
        truth=(treatment * q).sum(axis=1).mean(), baseline=(control * q).sum(axis=1).mean(),
        **{f"peer {name}": value for name, value in estimates(feedback, treatment, count).items()},
    )  # fmt: skip


def estimates(feedback: dict[str, Any], treatment: np.ndarray, actions: int) -> dict[str, float]:
    """What the peer's estimators say; its reward model is a logistic regression, cross-fitted."""
    from obp import ope
    from sklearn.linear_model import LogisticRegression

    action_dist = treatment[:, :, None]
    asked = {
        "reward": feedback["reward"], "action": feedback["action"], "pscore": feedback["pscore"],
        "action_dist": action_dist,
    }  # fmt: skip
    found = {
        "IPW": ope.InverseProbabilityWeighting().estimate_policy_value(**asked),
        "SNIPW": ope.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**asked),
    }
    if actions > 100:
        return found  # its model has a feature for each action: minutes for one log
    model = ope.RegressionModel(
        n_actions=actions, action_context=np.eye(actions), base_model=LogisticRegression(max_iter=200, random_state=0)
    )
    predicted = model.fit_predict(
        context=feedback["context"], action=feedback["action"], reward=feedback["reward"], n_folds=2, random_state=0
    )
    asked["estimated_rewards_by_reg_model"] = predicted
    found["DM"] = ope.DirectMethod().estimate_policy_value(
        action_dist=action_dist, estimated_rewards_by_reg_model=predicted
    )
    found["DR"] = ope.DoublyRobust().estimate_policy_value(**asked)
    found["SNDR"] = ope.SelfNormalizedDoublyRobust().estimate_policy_value(**asked)
    return found


# -- here -------------------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """One repetition."""

    truth: float
    uplift: float  # the true one
    value: float
    limits: tuple[float, float]  # of the range
    noise: tuple[float, float]
    verdict: str
    word: str
    bound: float
    peers: dict[str, float]


def answer(place: Path) -> Outcome:
    """What Foretest's default headline says of one log."""
    import pyarrow as pa

    import foretest as ft

    d = np.load(place)
    n = len(d["reward"])

    def lists(matrix: np.ndarray) -> pa.Array:
        starts = np.arange(0, matrix.size + 1, matrix.shape[1], dtype=np.int32)
        return pa.ListArray.from_arrays(pa.array(starts), pa.array(matrix.ravel()))

    log = pa.table(
        {
            "ranking": d["action"], "reward": d["reward"], "id": np.arange(n),
            "control": lists(np.log(d["control"])), "treatment": lists(np.log(d["treatment"])),
        }
    )  # fmt: skip
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["reward"], ranking="ranking", id="id"), control=ft.PlackettLuce("control"),
        treatment=ft.PlackettLuce("treatment"), estimators=["point-ncis-adaptive"], n_resamples=300,
    )  # fmt: skip
    e = test.run(log).metrics["reward"].estimates["point-ncis-adaptive"]
    assert e.range is not None
    assert e.bound_choice is not None
    number = {name: float("nan") if value is None else value for name, value in vars(e).items() if name != "range"}
    return Outcome(
        truth=float(d["truth"]), uplift=float(d["truth"] - d["baseline"]), value=number["treatment"],
        limits=(e.range.ci_lower or 0.0, e.range.ci_upper or 0.0),
        noise=(number["effect_size_ci_lower"], number["effect_size_ci_upper"]),
        verdict=e.verdict, word=e.word, bound=e.bound_choice["bound"],
        peers={name.removeprefix("peer "): float(d[name]) for name in d.files if name.startswith("peer ")},
    )  # fmt: skip


def row(world: str, outcomes: list[Outcome]) -> str:
    """A row of the table; errors and coverage are of the logs that were given a verdict."""
    actions, kind, rounds = world.split("-")
    given = [o for o in outcomes if o.verdict != "insufficient"]
    begin = f"| {actions}, {kind}, {int(rounds):,} | {len(given)} of {len(outcomes)} |"
    peers = {name: rmse([o.peers[name] / o.truth - 1 for o in given or outcomes]) for name in outcomes[0].peers}
    best = min(peers, key=lambda name: peers[name])
    if not given:
        return f"{begin} – | {best} {peers[best]:.1%} | – | – | – | – | – |"
    ours = rmse([o.value / o.truth - 1 for o in given])
    wrong = sum(wrong_sign(o) for o in given)
    bounds = ", ".join(f"{bound:g} ({count})" for bound, count in Counter(o.bound for o in given).most_common(2))
    return (
        f"{begin} {ours:.1%} | {best} {peers[best]:.1%} | {ours / peers[best]:.2f} | {held(given, 'noise'):.0%} |"
        f" {held(given, 'limits'):.0%} | {wrong} | {bounds} |"
    )


def rmse(errors: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def held(outcomes: list[Outcome], which: str) -> float:
    return float(np.mean([getattr(o, which)[0] <= o.uplift <= getattr(o, which)[1] for o in outcomes]))


def wrong_sign(o: Outcome) -> bool:
    return ("positive" in o.word and o.uplift < 0) or ("negative" in o.word and o.uplift > 0)


def study(peer: str, worlds: list[str], repetitions: int) -> str:
    head = (
        "| actions, treatment, rounds | verdict given | RMSE of the value | best of the peer's | ratio | noise interval"
        " held | range held | wrong sign | bound |"
    )
    lines = [head, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    with tempfile.TemporaryDirectory() as folder:
        for world in worlds:
            outcomes = []
            for first in range(SEED, SEED + repetitions, AT_ONCE):
                seeds = [str(seed) for seed in range(first, min(first + AT_ONCE, SEED + repetitions))]
                subprocess.run([peer, str(HERE), "--folder", folder, "--make", world, *seeds], check=True)
                for seed in seeds:
                    place = Path(folder) / f"{seed}.npz"
                    outcomes.append(answer(place))
                    place.unlink()
            lines.append(row(world, outcomes))
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=sys.executable)
    parser.add_argument("--repetitions", type=int, default=50)
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--make", nargs="+", metavar="WORLD SEED")
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if asked.make:
        world, *seeds = asked.make
        for seed in seeds:
            make(world, int(seed), asked.folder / f"{seed}.npz")
        return
    table = study(asked.peer, asked.worlds.split(","), asked.repetitions)
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    done = f"{asked.repetitions} repetitions of each world, seeds from {SEED}."
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{done}\n\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
