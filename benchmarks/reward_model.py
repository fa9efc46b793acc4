"""Does a reward model bring the answer closer to the truth? `point-dr-adaptive` and `cascade-dr` beside those without.

    python benchmarks/reward_model.py --peer PYTHON [--repetitions 20] [--logs 6]

Tables for docs/measured/other-worlds.md. On the simulator of Open Bandit Pipeline (PYTHON can import it, see
`peer_data.py`) Foretest has what the peer's own reward model has: contexts and actions, as features of items for its
gradient boosting, or the peer's predictions as a column. On Foretest's own worlds, but for the deterministic
one, the model has the context and both scores of each item.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pages import DOCS, into_page

import foretest as ft
from foretest.simulate import WORLDS, World, simulate_log, true_values

MAKER = Path(__file__).resolve().with_name("peer_data.py")
ACTIONS = ("10-mid-10000", "100-mid-2000", "100-mid-10000", "10-far-10000")
SLATES = ("cascade-far-2000", "cascade-far-10000", "interacting-far-2000", "independent-near-2000")
SEED = 3000  # of the first repetition: none of those on which rules were tried
AT_ONCE = 10  # logs on disk
ROWS = 50_000  # of a log of our own worlds
POINT, MODEL = "point-ncis-adaptive", "point-dr-adaptive"
RIPS, CASCADE, SLOT = "rips", "cascade-dr", "slot-ncis-adaptive"


class Answer(NamedTuple):
    """What Foretest says of one log."""

    headline: str
    value: float  # by the headline
    held: bool  # is the true uplift within its range?
    given: bool  # is there a verdict?
    values: dict[str, float]  # by each estimator
    leads: bool  # does the model take the place of the plain estimate?


def lists(matrix: np.ndarray) -> pa.Array:
    starts = np.arange(0, matrix.size + 1, matrix.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(starts), pa.array(matrix.ravel()))


def table_of(d: Any) -> pa.Table:
    """A log of the peer's as Foretest reads it, with the names of actions."""
    rows, items = d["control"].shape
    names = pa.array([f"action {i}" for i in range(items)]).take(pa.array(np.tile(np.arange(items), rows)))
    starts = pa.array(np.arange(0, rows * items + 1, items, dtype=np.int32))
    columns = {
        "ranking": lists(d["ranking"].astype(np.int32)), "reward": d["reward"].sum(axis=1),
        "slots": lists(d["reward"]), "id": np.arange(rows), "control": lists(d["control"]),
        "treatment": lists(d["treatment"]), "action": pa.ListArray.from_arrays(starts, names),
        **{f"x{j}": x for j, x in enumerate(d["context"].T)},
    }  # fmt: skip
    if "predicted" in d:
        columns["predicted"] = lists(d["predicted"])
    return pa.table(columns)


def answer(d: Any, how: str) -> Answer:
    """Foretest without a model (`plain`), with features of actions (`features`) or its predictions (`column`)."""
    by_slot = d["ranking"].shape[1] > 1
    log: dict[str, Any] = {"slot_rewards": {"reward": "slots"}} if by_slot else {}
    if how == "features":
        log |= {"item_features": ["action"], "features": [f"x{j}" for j in range(d["context"].shape[1])]}
    estimators = [POINT, *([RIPS, SLOT] if by_slot else []), *([] if how == "plain" else [MODEL])]
    estimators += [CASCADE] if by_slot and how != "plain" else []
    metric = ft.OfflineTest(
        log=ft.LogColumns(rewards=["reward"], ranking="ranking", id="id", **log),
        control=ft.PlackettLuce("control"), treatment=ft.PlackettLuce("treatment"), estimators=estimators,
        predictions="predicted" if how == "column" else None, n_resamples=300,
    ).run(table_of(d), threads=1).metrics["reward"]  # fmt: skip
    assert metric.headline is not None
    e, truth = metric.estimates[metric.headline], float(d["truth"])
    assert e.range is not None
    ends, uplift = (_or_nan(e.range.ci_lower), _or_nan(e.range.ci_upper)), truth - float(d["baseline"])
    values = {label: _or_nan(other.treatment) / truth - 1.0 for label, other in metric.estimates.items()}
    return Answer(
        metric.headline, values[metric.headline], ends[0] <= uplift <= ends[1], e.verdict != "insufficient", values,
        metric.reward_model is not None and bool(metric.reward_model["leads"]),
    )  # fmt: skip


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def rmse(errors: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


class Repetition(NamedTuple):
    """One log of the peer's: the errors of its estimators, and our answers by `how`."""

    peers: dict[str, float]
    ours: dict[str, Answer]


def repetitions(peer: str, world: str, count: int) -> Iterator[Repetition]:
    with tempfile.TemporaryDirectory() as folder:
        for first in range(SEED, SEED + count, AT_ONCE):
            seeds = list(map(str, range(first, min(first + AT_ONCE, SEED + count))))
            subprocess.run([peer, str(MAKER), folder, world, *seeds], check=True)
            for place in (Path(folder) / f"{seed}.npz" for seed in seeds):
                d = dict(np.load(place))
                place.unlink()
                peers = {k.removeprefix("peer "): float(d[k] / d["truth"] - 1) for k in d if k.startswith("peer ")}
                ways = ["plain", "features"] if d["control"].shape[1] <= 250 else ["plain"]  # a code for each action
                ways += ["column"] if "predicted" in d else []
                yield Repetition(peers, {how: answer(d, how) for how in ways})


def of_actions(peer: str, count: int) -> Iterator[str]:
    """RMSE of the treatment's value by the headline, without a model and with one from either source."""
    yield (
        "| actions, treatment, rounds | without | with features: RMSE | leads | range held | with the peer's"
        " predictions: RMSE | leads | range held | best of the peer's |"
    )
    yield f"| --- |{' ---: |' * 8}"
    for world in ACTIONS:
        runs = list(repetitions(peer, world, count))
        actions, kind, rounds = world.split("-")
        cells = [f"{actions}, {kind}, {int(rounds):,}"]
        for how in ("plain", "features", "column"):
            some = [run.ours[how] for run in runs if how in run.ours]
            given = [a for a in some if a.given]
            if not given:
                cells += ["insufficient"] if how == "plain" else ["–"] * 3
                continue
            cells.append(f"{rmse([a.value for a in given]):.1%}")
            if how != "plain":
                cells += [f"{sum(a.leads for a in given)} of {len(given)}", f"{np.mean([a.held for a in given]):.0%}"]
        yield f"| {' | '.join([*cells, best_of_peers(runs)])} |"


def best_of_peers(runs: list[Repetition]) -> str:
    errors = {name: rmse([run.peers[name] for run in runs]) for name in runs[0].peers}
    best = min(errors, key=lambda name: errors[name])
    return f"{best} {errors[best]:.1%}"


def of_slates(peer: str, count: int) -> Iterator[str]:
    """RMSE of the treatment's value by each estimator, with features of items."""
    labels = [RIPS, CASCADE, SLOT, POINT, MODEL]
    ours = " | ".join(f"`{label}`" for label in labels)
    yield f"| rewards, treatment, rounds | {ours} | RIPS | Cascade-DR | best of the peer's |"
    yield f"| --- |{' ---: |' * (len(labels) + 3)}"
    for world in SLATES:
        runs = list(repetitions(peer, world, count))
        structure, kind, rounds = world.split("-")
        cells = [f"{structure}, {kind}, {int(rounds):,}"]
        cells += [f"{rmse([run.ours['features'].values[label] for run in runs]):.1%}" for label in labels]
        cells += [f"{rmse([run.peers[name] for run in runs]):.1%}" for name in ("RIPS", "Cascade-DR")]
        yield f"| {' | '.join([*cells, best_of_peers(runs)])} |"


def of_own_worlds(logs: int) -> Iterator[str]:
    """RMSE of the relative uplift, in percentage points, and how often the model would lead."""
    labels = [RIPS, CASCADE, SLOT, POINT, MODEL]
    yield f"| world | truth | {' | '.join(f'`{label}`' for label in labels)} | `{MODEL}` would lead |"
    yield f"| --- |{' ---: |' * (len(labels) + 2)}"
    for name, world in sorted(WORLDS.items()):
        if world.temperature == 0.0:  # both policies are deterministic: there are no weights
            continue
        truth = true_values(world, world.change, 0)["click"].rel_uplift
        errors: dict[str, list[float]] = {label: [] for label in labels}
        leads = 0
        for seed in range(SEED, SEED + logs):
            metric = own_answer(world, seed)
            for label in labels:
                errors[label].append(_or_nan(metric.estimates[label].rel_effect_size) - truth)
            leads += metric.reward_model is not None and bool(metric.reward_model["leads"])
        cells = [f"`{name}`", f"{100 * truth:+.1f}", *(f"{100 * rmse(errors[label]):.1f}" for label in labels)]
        yield f"| {' | '.join([*cells, f'{leads} of {logs}'])} |"


def own_answer(world: World, seed: int) -> ft.Metric:
    return ft.OfflineTest(
        log=ft.LogColumns(
            rewards=["click"], unit="user", ranking="ranking", id="display_id", slot_rewards={"click": "slot_click"},
            features=["recency", "activity", "group"], item_features=["control_scores", "treatment_scores"],
        ),
        control=ft.PlackettLuce("control_scores"), treatment=ft.PlackettLuce("treatment_scores"),
        estimators=[RIPS, CASCADE, SLOT, POINT, MODEL], n_resamples=100,
    ).run(pa.Table.from_batches(simulate_log(world, ROWS, seed)), threads=1).metrics["click"]  # fmt: skip


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=sys.executable)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--logs", type=int, default=6, help="of each of our own worlds")
    parser.add_argument("--parts", default="actions,slates,own")
    asked = parser.parse_args()
    parts = {
        "actions": lambda: of_actions(asked.peer, asked.repetitions),
        "slates": lambda: of_slates(asked.peer, asked.repetitions),
        "own": lambda: of_own_worlds(asked.logs),
    }
    for part in asked.parts.split(","):
        lines = []
        for line in parts[part]():
            lines.append(line)
            print(line, flush=True)
        into_page(DOCS / "measured/other-worlds.md", f"reward model, {part}", "\n".join(lines))


if __name__ == "__main__":
    main()
