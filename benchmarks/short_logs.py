"""Does a short log get a confident answer that is wrong? Logs of 1,000 to 60,000 displays, four worlds, default headline.

Each log is the control's log of one simulated test, whose true uplift is known; estimators, bound and factors are the
defaults of those that may lead. What was found of each log is a line of RESULTS: a run that was stopped goes on from
there, and the results of another version of Foretest (run with its sources) can be put beside these.

    python benchmarks/short_logs.py [--worlds paper …] [--sizes 1000 …] [--seeds 30] [--results FILE] [--before FILE]

prints a table and, for the documented logs, writes it into docs/measured/short-logs.md, between two comments.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pages import DOCS, into_page

import foretest as ft
from foretest.simulate import WORLDS, simulate_log, true_values
from foretest.simulate.displays import CHUNK

FIRST_SEED = 9100  # chosen before the first log was drawn; none of these had been used for a choice of rules
SEEDS = 30
SIZES = (1_000, 2_000, 3_000, 5_000, 10_000, 20_000, 60_000)
NAMES = ("paper", "mild", "sharp", "rewards")
SHORT = 10_000  # displays: figures are pooled below, and from here on
LEADING = ["point-ncis-adaptive", "slot-ncis-adaptive", "cascade-ncis-adaptive", "exposure-ncis-adaptive"]
COLUMNS = ["display_id", "user", "ranking", "control_scores", "treatment_scores", "click", "slot_click"]


class Log(NamedTuple):
    """What the headline said of one log; limits are of the absolute uplift, infinite where there are none."""

    world: str
    displays: int
    seed: int
    control: float  # true values
    uplift: float
    headline: str
    word: str
    lower: float
    upper: float
    levels: dict[str, list[Any]]  # of each estimator: word, limits, effective positives observed and predicted

    @property
    def is_answered(self) -> bool:
        return self.word != "insufficient"

    @property
    def is_held(self) -> bool:
        """Is the true uplift within the range?"""
        return self.lower <= self.uplift <= self.upper

    @property
    def is_wrong(self) -> bool:
        """Does the word, leaning or not, point to the wrong side of 0?"""
        return self.word.removeprefix("leans ") == ("negative" if self.uplift > 0.0 else "positive")


def run(world: str, displays: int, seed: int, truth: ft.simulate.Truth) -> Log:
    """Simulate a log and ask the default headline."""
    log = pa.Table.from_batches(simulate_log(WORLDS[world], displays, seed)).select(COLUMNS)
    try:
        metric = ask(log, world, LEADING)
    except ft.BadInput:  # too few clicks to fit how likely users look at each slot: left out where nobody lists it
        metric = ask(log, world, LEADING[:-1])
    levels = {
        label: [
            e.word,
            e.range.ci_lower,
            e.range.ci_upper,
            e.effective_positives,
            e.predicted_effective_positives,
            e.effect_size,
            e.effect_size_ci_lower,
            e.effect_size_ci_upper,
        ]
        for label, e in metric.estimates.items()
    }
    word, lower, upper, *_ = levels[metric.headline]
    limits = (-np.inf if lower is None else lower, np.inf if upper is None else upper)
    return Log(world, displays, seed, truth.control, truth.effect_size, metric.headline, word, *limits, levels)


def ask(log: pa.Table, world: str, estimators: list[str]) -> Any:
    """What a run says of clicks."""
    test = ft.OfflineTest(
        log=ft.LogColumns(
            rewards=["click"], unit="user", ranking="ranking", id="display_id", slot_rewards={"click": "slot_click"}
        ),
        control=ft.PlackettLuce(scores="control_scores", temperature=WORLDS[world].temperature),
        treatment=ft.PlackettLuce(scores="treatment_scores", temperature=WORLDS[world].temperature),
        estimators=estimators,
    )
    return test.run(log, threads=1).metrics["click"]


def study(worlds: Sequence[str], sizes: Sequence[int], seeds: int, results: Path) -> list[Log]:
    """All logs that are asked for, those that the results have already from there."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    logs = {log[:3]: log for log in (Log(**json.loads(line)) for line in lines)}
    with results.open("a", encoding="utf-8") as file:
        for world in worlds:
            truth = true_values(WORLDS[world], WORLDS[world].change, 0, displays=64 * CHUNK)["click"]
            for displays in sizes:
                for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                    if (world, displays, seed) not in logs:
                        logs[world, displays, seed] = log = run(world, displays, seed, truth)
                        print(json.dumps(log._asdict()), file=file, flush=True)
    chosen = range(FIRST_SEED, FIRST_SEED + seeds)
    return [log for (w, d, s), log in logs.items() if w in worlds and d in sizes and s in chosen]


def figures(logs: Sequence[Log]) -> list[str]:
    """Answered, wrong, held, and the median width in points of the control's value."""
    answered = [log for log in logs if log.is_answered]
    if not answered:
        return [f"0 of {len(logs)}", "–", "–", "–"]
    wrong, held = sum(log.is_wrong for log in answered), sum(log.is_held for log in answered)
    width = 100.0 * np.median([(log.upper - log.lower) / log.control for log in answered])
    return [f"{len(answered)} of {len(logs)}", str(wrong), f"{held} ({held / len(answered):.0%})", f"{width:.1f}"]


def report(logs: list[Log], before: list[Log]) -> str:
    """The table by world and size, and pooled below and from SHORT displays on; beside it what was said before."""
    sizes = sorted({log.displays for log in logs})
    parts = [
        (f"{world}, {size:,}", [world], [size]) for world in dict.fromkeys(log.world for log in logs) for size in sizes
    ]
    every = list(dict.fromkeys(log.world for log in logs))
    parts += [
        (f"**all, below {SHORT:,}**", every, [size for size in sizes if size < SHORT]),
        (f"**all, from {SHORT:,} on**", every, [size for size in sizes if size >= SHORT]),
    ]
    head = ["answered", "wrong sign", "range holds the truth", "width, points"]
    columns = [*head, *(f"before: {name}" for name in head if before)]
    lines = [f"| world, displays | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns)]
    for name, worlds, some in parts:
        cells = [
            f for x in (logs, before) if x for f in figures([g for g in x if g.world in worlds and g.displays in some])
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    made = f"foretest {ft.__version__}, Python {platform.python_version()}, NumPy {np.__version__}."
    return "\n".join([*lines, "", made])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", default=list(NAMES), choices=list(WORLDS))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--results", type=Path, default=Path("build/short-logs.jsonl"))
    parser.add_argument("--before", type=Path, help="the results of an earlier version")
    o = parser.parse_args()
    o.results.parent.mkdir(parents=True, exist_ok=True)
    logs = study(o.worlds, o.sizes, o.seeds, o.results)
    before = study(o.worlds, o.sizes, o.seeds, o.before) if o.before else []
    text = report(logs, before)
    print(text)
    page = DOCS / "measured/short-logs.md"
    if (tuple(o.worlds), tuple(o.sizes), o.seeds) == (NAMES, SIZES, SEEDS) and before and page.exists():
        into_page(page, "short logs", text)


if __name__ == "__main__":
    main()
