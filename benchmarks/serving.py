"""What a draw of `foretest.serving` costs: `python benchmarks/serving.py [--draws 100]`.

For 100 and 1,000 candidates and 10 slots, every policy's draw, and the same with its row to log, beside the least that
a keyed draw needs: as many keyed uniform numbers as candidates, and a NumPy top-K of them. All are timed in turns of a
few milliseconds, in one run, and the quickest turn of each counts: others may use the machine meanwhile. Written into
docs/how-to/serving.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from pages import DOCS, into_page

from foretest.serving import EpsilonGreedy, Mallows, Mixture, PlackettLuce, Sampler, SwapNeighbours, TopK
from foretest.serving.generator import display_state, seed_state, uniforms

SLOTS, GOAL, TURNS = 10, 3.0, 200
POLICIES = {
    "plackett-luce": PlackettLuce(0.5),
    "epsilon-greedy, ε = 0.1": EpsilonGreedy(0.1),
    "mallows, φ = 0.5": Mallows(0.5),
    "swap-neighbours": SwapNeighbours(0.2),
    "top-k": TopK(),
    "mixture, 10 % of it plackett-luce": Mixture([(0.9, TopK()), (0.1, PlackettLuce(0.5))]),
}


def least(items: int) -> Callable[[int], object]:
    """Keyed uniform numbers and their top-K."""
    of_seed = seed_state(7)

    def draw(key: int) -> object:
        u = uniforms(display_state(of_seed, key), items)
        top = np.argpartition(u, items - SLOTS)[items - SLOTS :]
        return top[np.argsort(-u[top])]

    return draw


def drawing(sampler: Sampler, scores: np.ndarray, *, row: bool) -> Callable[[int], object]:
    """A draw by its key, with or without the row to log."""
    if row:
        return lambda key: sampler.draw(scores, key=key).row
    return lambda key: sampler.draw(scores, key=key)


def microseconds(programs: dict[str, Callable[[int], object]], draws: int) -> dict[str, float]:
    """The time of one call of each, in its quickest turn."""
    quickest = dict.fromkeys(programs, np.inf)
    for _ in range(TURNS):
        for name, program in programs.items():
            began = time.perf_counter()
            for key in range(draws):  # the same in every turn, or the quickest would be the one that explores least
                program(key)
            quickest[name] = min(quickest[name], (time.perf_counter() - began) / draws)
    return {name: 1e6 * seconds for name, seconds in quickest.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100, help="of each turn")
    draws = parser.parse_args().draws
    lines = ["| policy | candidates | draw, µs | times the least | goal | with its row, µs |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for items in (100, 1000):
        scores = np.random.default_rng(0).normal(size=items)
        programs = {"least": least(items)}
        for name, policy in POLICIES.items():
            sampler = Sampler(policy, SLOTS, seed=7)
            programs[name] = drawing(sampler, scores, row=False)
            programs[f"{name}, row"] = drawing(sampler, scores, row=True)
        took = microseconds(programs, draws)
        lines.append(f"| *keyed uniforms and top-K* | {items:,} | {took['least']:.0f} | 1 | | |")
        lines += [
            f"| {name} | {items:,} | {took[name]:.0f} | {took[name] / took['least']:.1f} | ≤ {GOAL:g} |"
            f" {took[f'{name}, row']:.0f} |"
            for name in POLICIES
        ]
    print("\n".join(lines))
    if draws == parser.get_default("draws"):
        into_page(DOCS / "how-to/serving.md", "draws", "\n".join(lines))


if __name__ == "__main__":
    main()
