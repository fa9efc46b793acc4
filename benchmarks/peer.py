"""The same estimates by Open Bandit Pipeline 0.5.7 or by Foretest, from arrays in memory: time, value, peak memory.

Run by benchmarks/scale.py in each one's own Python: `python peer.py make | obp | foretest FOLDER`.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS, ACTIONS, SLATES, SLOTS = 1_000_000, 10, 32_000, 3


def make(folder: Path) -> dict[str, Any]:
    """The arrays, as files: each side loads those it needs."""
    g = np.random.default_rng(0)
    control = g.dirichlet(np.ones(ACTIONS), ROUNDS)
    treatment = g.dirichlet(np.ones(ACTIONS), ROUNDS)
    action = np.minimum((control.cumsum(axis=1) < g.random((ROUNDS, 1))).sum(axis=1), ACTIONS - 1)
    at = np.arange(ROUNDS)
    arrays = {
        "reward": (g.random(ROUNDS) < 0.05).astype(float), "action": action, "treatment": treatment,
        "p": control[at, action], "t": treatment[at, action],
        "slate_reward": (g.random((SLATES, SLOTS)) < 0.1).astype(float),
        "slate_p": g.uniform(0.01, 0.2, SLATES), "slate_t": g.uniform(0.01, 0.2, SLATES),
    }  # fmt: skip
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return {}


def obp(folder: Path) -> dict[str, Any]:
    warnings.filterwarnings("ignore")
    from obp.ope import InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting, SlateStandardIPS

    d = {name: np.load(folder / f"{name}.npy") for name in ("reward", "action", "p", "treatment")}
    found: dict[str, Any] = {}
    asked = {"reward": d["reward"], "action": d["action"], "pscore": d["p"], "action_dist": d["treatment"][:, :, None]}
    for key, kind in (("ipw", InverseProbabilityWeighting), ("snipw", SelfNormalizedInverseProbabilityWeighting)):
        start = time.perf_counter()
        value = kind().estimate_policy_value(**asked)
        kind().estimate_interval(**asked, n_bootstrap_samples=1000, random_state=0)
        found[key] = {"seconds": time.perf_counter() - start, "value": float(value)}
    s = {name: np.load(folder / f"slate_{name}.npy") for name in ("reward", "p", "t")}
    asked = {
        "slate_id": np.repeat(np.arange(SLATES), SLOTS), "position": np.tile(np.arange(SLOTS), SLATES),
        "reward": s["reward"].ravel(), "pscore": np.repeat(s["p"], SLOTS),
        "evaluation_policy_pscore": np.repeat(s["t"], SLOTS),
    }  # fmt: skip
    start = time.perf_counter()
    value = SlateStandardIPS(len_list=SLOTS).estimate_policy_value(**asked)
    SlateStandardIPS(len_list=SLOTS).estimate_interval(**asked, n_bootstrap_samples=100, random_state=0)
    found["slate"] = {"seconds": time.perf_counter() - start, "value": float(value)}
    return found


def foretest(folder: Path) -> dict[str, Any]:
    import pyarrow as pa

    import foretest as ft

    def test(key: str, resamples: int) -> ft.OfflineTest:
        return ft.OfflineTest(
            log=ft.LogColumns(rewards=["reward"]), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t"),
            estimators=[key], n_resamples=resamples,
        )  # fmt: skip

    found: dict[str, Any] = {}
    log = pa.table({name: np.load(folder / f"{name}.npy") for name in ("reward", "p", "t")})
    test("is", 10).run(log.slice(0, 1000))  # compiled kernels are loaded
    for key, label in (("ipw", "is"), ("snipw", "nis")):
        start = time.perf_counter()
        value = test(label, 1000).run(log).metrics["reward"].estimates[label].treatment
        found[key] = {"seconds": time.perf_counter() - start, "value": float(value or 0.0)}
    s = {name: np.load(folder / f"slate_{name}.npy") for name in ("reward", "p", "t")}
    log = pa.table({"reward": s["reward"].sum(axis=1), "p": s["p"], "t": s["t"]})
    start = time.perf_counter()
    value = test("is", 100).run(log).metrics["reward"].estimates["is"].treatment
    found["slate"] = {"seconds": time.perf_counter() - start, "value": float(value or 0.0)}
    return found


if __name__ == "__main__":
    answer = {"make": make, "obp": obp, "foretest": foretest}[sys.argv[1]](Path(sys.argv[2]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    print(json.dumps({**answer, "peak": peak}))
