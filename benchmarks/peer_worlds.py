"""Foretest on another project's simulator: the synthetic bandits and slates of Open Bandit Pipeline 0.5.7, beside its
estimators.

    python benchmarks/peer_worlds.py --peer PYTHON [--repetitions 50] [--worlds 10-far-10000,…] [--results FILE]

PYTHON is an interpreter that can import obp (its source on PYTHONPATH). It makes the data and its own estimates
(`peer_data.py`), and Foretest sees a log: scores, what was shown, rewards; of slates the rewards of each slot; and the
predictions of the peer's reward model where its own estimators have them.

Single actions: five context dimensions, logistic rewards q; the logging policy is softmax(β q) with β = 1, for *far*
β = −5; the evaluation policy is softmax(4 q) for *near*, for *mid* and *far* the best action with probability .7 or .9,
else any. Slates of 3 of 8 items: three context dimensions, logging by the peer's linear scores, evaluation scores 2 q
for *near*, 8 q for *far*.

Prints two Markdown tables and writes them into docs/measured/other-worlds.md. What was found of each repetition is a
line of FILE: a run that was stopped goes on from there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
from pages import DOCS, into_page
from peer_data import STRUCTURES

MAKER = Path(__file__).resolve().with_name("peer_data.py")
ROUNDS = (2000, 10_000)
ACTIONS = [f"{a}-{kind}-{n}" for a, kind, n in product((10, 100, 1000), ("near", "mid", "far"), ROUNDS)]
SLATES = [f"{s}-{kind}-{n}" for s, kind, n in product(STRUCTURES, ("near", "far"), ROUNDS)]
AT_ONCE = 10  # logs on disk
SEED = 1000  # of the first repetition: none of those on which rules were tried
RANKING, MODEL = "point-ncis-adaptive", "point-dr-adaptive"
SLOT, CASCADE, EXPOSURE = "slot-ncis-adaptive", "cascade-ncis-adaptive", "exposure-ncis-adaptive"
LEVELS = {SLOT: "slots ", CASCADE: "prefixes ", EXPOSURE: "exposure "}


@dataclass(frozen=True)
class Outcome:
    """One repetition."""

    world: str
    seed: int
    truth: float
    uplift: float  # the true one
    value: float  # by the headline
    limits: tuple[float, float]  # of its range
    noise: tuple[float, float]
    verdict: str
    word: str
    headline: str
    bound: float
    values: dict[str, float]  # by each of our estimators
    peers: dict[str, float]

    @property
    def is_wrong(self) -> bool:
        """Does the word, leaning or not, point to the wrong side of 0?"""
        return ("positive" in self.word and self.uplift < 0) or ("negative" in self.word and self.uplift > 0)

    def holds(self, limits: Iterable[float]) -> bool:
        """Is the true uplift within the limits?"""
        lower, upper = limits
        return lower <= self.uplift <= upper


def answer(world: str, seed: int, place: Path) -> Outcome:
    """What Foretest's default headline says of one log."""
    import pyarrow as pa

    import foretest as ft

    d = np.load(place)
    n, slots = d["ranking"].shape

    def lists(matrix: np.ndarray) -> pa.Array:
        starts = np.arange(0, matrix.size + 1, matrix.shape[1], dtype=np.int32)
        return pa.ListArray.from_arrays(pa.array(starts), pa.array(matrix.ravel()))

    columns = {name: lists(d[name]) for name in ("ranking", "control", "treatment", "predicted") if name in d.files}
    columns |= {"reward": pa.array(d["reward"].sum(axis=1)), "by_slot": lists(d["reward"]), "id": pa.array(range(n))}
    by_slot = {"reward": "by_slot"} if slots > 1 else None
    predictions = "predicted" if "predicted" in columns else None
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["reward"], ranking="ranking", id="id", slot_rewards=by_slot),
        control=ft.PlackettLuce("control"), treatment=ft.PlackettLuce("treatment"), predictions=predictions,
        estimators=[RANKING, *(LEVELS if by_slot else []), *([MODEL] if predictions else [])], n_resamples=300,
    )  # fmt: skip
    metric = test.run(pa.table(columns), threads=1).metrics["reward"]
    assert metric.headline is not None
    e = metric.estimates[metric.headline]
    assert e.range is not None
    return Outcome(
        world=world, seed=seed, truth=float(d["truth"]), uplift=float(d["truth"] - d["baseline"]),
        value=_or_nan(e.treatment), limits=(_or_nan(e.range.ci_lower), _or_nan(e.range.ci_upper)),
        noise=(_or_nan(e.effect_size_ci_lower), _or_nan(e.effect_size_ci_upper)), verdict=e.verdict, word=e.word,
        headline=metric.headline, bound=20.0 if e.bound_choice is None else e.bound_choice["bound"],
        values={label: _or_nan(other.treatment) for label, other in metric.estimates.items()},
        peers={name.removeprefix("peer "): float(d[name]) for name in d.files if name.startswith("peer ")},
    )  # fmt: skip


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


# -- figures ----------------------------------------------------------------------------------------------------------


def rmse(errors: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def row(world: str, outcomes: list[Outcome]) -> str:
    """A row of a table; errors and coverage are of the logs that were given a verdict."""
    begin, kind, rounds = world.split("-")
    given = [o for o in outcomes if o.verdict != "insufficient"]
    cells = [f"{begin}, {kind}, {int(rounds):,}", f"{len(given)} of {len(outcomes)}"]
    peers = {name: rmse([o.peers[name] / o.truth - 1 for o in given or outcomes]) for name in outcomes[0].peers}
    best = min(peers, key=lambda name: peers[name])
    if not given:
        return f"| {' | '.join([*cells, '–', f'{best} {peers[best]:.1%}', *['–'] * 5])} |"
    ours = rmse([o.value / o.truth - 1 for o in given])
    leads = ", ".join(f"{name} ({count})" for name, count in Counter(map(_lead, given)).most_common(3))
    cells += [
        f"{ours:.1%}",
        f"{best} {peers[best]:.1%}",
        f"{ours / peers[best]:.2f}",
        f"{np.mean([o.holds(o.noise) for o in given]):.0%}",
        f"{np.mean([o.holds(o.limits) for o in given]):.0%}",
        f"{sum(o.is_wrong for o in given)}",
        leads,
    ]
    return f"| {' | '.join(cells)} |"


def _lead(outcome: Outcome) -> str:
    """The bound, and of slates which estimator leads; whether one with a reward model does."""
    level = "" if outcome.world in ACTIONS else LEVELS.get(outcome.headline, "rankings ")
    return f"{level}{outcome.bound:g}{' with a model' if outcome.headline == MODEL else ''}"


def table(first: str, last: str, outcomes: list[Outcome]) -> str:
    """The rows of all worlds that were tried."""
    lines = [
        f"| {first} | verdict given | RMSE of the value | best of the peer's | ratio | noise interval held | range held"
        f" | wrong sign | {last} |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for world in dict.fromkeys(o.world for o in outcomes):
        lines.append(row(world, [o for o in outcomes if o.world == world]))
    return "\n".join(lines)


def report(outcomes: list[Outcome]) -> str:
    """Both tables."""
    actions = [o for o in outcomes if o.world in ACTIONS]
    slates = [o for o in outcomes if o.world in SLATES]
    seeds = sorted({o.seed for o in outcomes})
    parts = [f"{len(seeds)} repetitions of each world, seeds {seeds[0]} to {seeds[-1]}."]
    if actions:
        parts += ["Single actions:", table("actions, treatment, rounds", "bound", actions)]
    if slates:
        parts += ["Slates of 3 of 8 items:", table("rewards, treatment, rounds", "what leads, and its bound", slates)]
    return "\n\n".join(parts)


def study(peer: str, worlds: list[str], seeds: range, results: Path) -> list[Outcome]:
    """All repetitions that are asked for, those that the results have already from there."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    known = {(o.world, o.seed): o for o in (Outcome(**json.loads(line)) for line in lines)}
    with tempfile.TemporaryDirectory() as folder, results.open("a", encoding="utf-8") as file:
        for world in worlds:
            left = [seed for seed in seeds if (world, seed) not in known]
            for at in range(0, len(left), AT_ONCE):
                some = left[at : at + AT_ONCE]
                command = [peer, str(MAKER), folder, world, *map(str, some)]
                subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
                for seed in some:
                    place = Path(folder) / f"{seed}.npz"
                    known[world, seed] = answer(world, seed, place)
                    place.unlink()
                    print(json.dumps(asdict(known[world, seed])), file=file, flush=True)
            print(row(world, [known[world, seed] for seed in seeds]), flush=True)
    return [known[world, seed] for world in worlds for seed in seeds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=sys.executable)
    parser.add_argument("--repetitions", type=int, default=50)
    parser.add_argument("--seed", type=int, default=SEED, help="of the first repetition; others leave the page alone")
    parser.add_argument("--worlds", default=",".join([*ACTIONS, *SLATES]))
    parser.add_argument("--results", type=Path, help="a line for each repetition, where a run goes on")
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.repetitions)
    with tempfile.TemporaryDirectory() as folder:
        outcomes = study(asked.peer, asked.worlds.split(","), seeds, asked.results or Path(folder) / "outcomes.jsonl")
    text = report(outcomes)
    print(f"\n{text}")
    if asked.seed == SEED:
        into_page(DOCS / "measured/other-worlds.md", "peer worlds", text)


if __name__ == "__main__":
    main()
