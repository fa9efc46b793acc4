"""Does the time of a run fall off a cliff between neighbours? `python benchmarks/cliffs.py`.

Whole runs of `OfflineTest.run` on one thread, by the processor's clock, kernels warm, over a grid of policies, numbers
of items M and of slots K, and temperatures. Neighbours are cells that differ by one item, by one slot, by one step of
temperature or by the kind of policy, on the same number of displays: none should take more than three times as long as
the other.

    python benchmarks/cliffs.py [--kinds "plackett-luce;own"] [--save times.json] [--before times.json]

prints a Markdown table and writes it into docs/measured/benchmarks.md. `--save` keeps the times, so that those of
another version (`PYTHONPATH=other/src`) can stand beside them; it writes no page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the commands do: threads that wait for work count as CPU time

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pages import DOCS, into_page

import foretest as ft
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged

SEED = 20261117
DISPLAYS = 1_000
REWARDED = 0.05  # exactly so many: where a tenth of the rows is rewarded, all rows are weighed, and cost
GOAL = 3.0
SHARPNESS = [1.0, 0.3, 0.1, 0.03, 0.01]  # temperature of Plackett-Luce; others have a parameter that does the same

Floats = npt.NDArray[np.float64]


class Own(ft.Policy):
    """Plackett-Luce as a user would write it, in NumPy: no kernel."""

    def __init__(self, scores: str, temperature: float, *, full_support: bool = True) -> None:
        self.scores, self.temperature, self.full_support = scores, temperature, full_support

    @property
    def score_columns(self) -> tuple[str, ...]:
        return (self.scores,)

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        x = displays[self.scores].padded(-np.inf) / self.temperature
        rows, total = np.arange(len(x)), np.zeros(len(x))
        for slot, item in enumerate(rankings.padded(-1).T):
            there = slot < rankings.lengths
            most = x.max(axis=1)
            total += np.where(there, x[rows, item] - most - np.log(np.exp(x - most[:, None]).sum(axis=1)), 0.0)
            x[rows[there], item[there]] = -np.inf
        return total

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        x = displays[self.scores].padded(-np.inf) / self.temperature
        order = np.argsort(np.log(-np.log(uniforms[:, : x.shape[1]])) - x, axis=1)
        return Ragged.packed(order[np.arange(x.shape[1]) < displays.slots[:, None]].astype(np.int32), displays.slots)


class Arms(NamedTuple):
    treatment: Any
    control: Any


def mixture(t: float) -> Arms:
    return Arms(
        ft.PlackettLuce("new", 1.0), ft.Mixture([(0.8, ft.PlackettLuce("old", t)), (0.2, ft.PlackettLuce("old"))])
    )


KINDS: dict[str, Callable[[float], Arms]] = {
    "plackett-luce": lambda t: Arms(ft.PlackettLuce("new", 1.0), ft.PlackettLuce("old", t)),
    "plackett-luce, both sharp": lambda t: Arms(ft.PlackettLuce("new", t), ft.PlackettLuce("old", t)),
    "mixture": mixture,
    "own": lambda t: Arms(Own("new", 1.0), Own("old", t)),
    "own, no promise of full support": lambda t: Arms(Own("new", 1.0), Own("old", t, full_support=False)),
    "own, both sharp": lambda t: Arms(Own("new", t), Own("old", t)),
    "mallows": lambda t: Arms(ft.PlackettLuce("new"), ft.Mallows("old", 0.95 * t)),
    "mallows, both sharp": lambda t: Arms(ft.Mallows("new", 0.95 * t), ft.Mallows("old", 0.95 * t)),
    "epsilon-greedy": lambda t: Arms(ft.PlackettLuce("new"), ft.EpsilonGreedy("old", t)),
    "thurstone": lambda t: Arms(ft.PlackettLuce("new"), ft.Thurstone("old", t)),
}
THURSTONE = "thurstone"  # its probabilities are integrals, whose price depends on sigma: a kind of its own

# M of each K: around the sizes at which the number of rankings passes 256, 1 000, 2 000, 4 000, 12 000
SHAPES = {
    1: [3, 12, 13], 2: [3, 12, 13, 16, 17, 32, 33, 64, 65], 3: [3, 4, 7, 8, 10, 11, 12, 13, 16, 17, 23, 24],
    4: [4, 5, 6, 7, 8, 9, 11, 12, 13], 5: [5, 6, 7, 8, 9, 12, 13], 6: [6, 7, 8, 9], 7: [7, 8, 9],
}  # fmt: skip
FEW_SHAPES = {1: [12], 2: [12, 13], 3: [4, 7, 8, 12], 4: [5, 6, 7, 8, 12, 13]}
TEMPERED = [(5, 3), (7, 4), (8, 4), (12, 4), (13, 4), (8, 5)]  # the shapes (M, K) at which temperatures are compared


class Cell(NamedTuple):
    kind: str
    items: int
    slots: int
    sharpness: float


def cells(kinds: list[str]) -> Iterator[Cell]:
    for kind in kinds:
        shapes = FEW_SHAPES if kind == THURSTONE else SHAPES
        sharp = [1.0, 0.5] if kind == THURSTONE else SHARPNESS
        ends = sharp[:1] if kind == THURSTONE else [sharp[0], sharp[-1]]
        tempered = TEMPERED[:3] if kind == THURSTONE else TEMPERED
        by_shape = [Cell(kind, m, k, t) for t in ends for k, sizes in shapes.items() for m in sizes]
        yield from dict.fromkeys(by_shape + [Cell(kind, m, k, t) for m, k in tempered for t in sharp])


def lists(rows: npt.NDArray[Any]) -> pa.Array:
    offsets = pa.array(np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1])
    return pa.ListArray.from_arrays(offsets, pa.array(rows.ravel()))


def log_of(cell: Cell, displays: int, rewarded: float) -> pa.Table:
    """A log that the control of the cell produced, with rewards in a share of its displays."""
    rng = np.random.default_rng([SEED, cell.items, cell.slots])
    old = rng.normal(size=(displays, cell.items))
    new = (0.9 * old + 0.44 * rng.normal(size=old.shape)).astype(np.float32)
    blank = Ragged.of(np.zeros((displays, cell.slots), np.int32))
    old = old.astype(np.float32)
    seen = Displays({"old": Ragged.of(old)}, blank, np.full(displays, cell.items), np.arange(displays, dtype=np.uint64))
    control = KINDS[cell.kind](cell.sharpness).control
    shown = control.sample(seen, rng.uniform(1e-12, 1.0 - 1e-12, size=(displays, cell.items + 1)))
    return pa.table({
        "id": np.arange(displays), "click": rng.permutation(displays) < rewarded * displays,
        "old": lists(old), "new": lists(new),
        "ranking": lists(shown.padded(-1)),
    })  # fmt: skip


def seconds(cell: Cell, displays: int, repeats: int, rewarded: float) -> float:
    """CPU seconds of a whole run, the least of some; one where it takes long."""
    arms, log = KINDS[cell.kind](cell.sharpness), log_of(cell, displays, rewarded)
    columns = ft.LogColumns(rewards=("click",), ranking="ranking", id="id")
    least = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        ft.OfflineTest(log=columns, control=arms.control, treatment=arms.treatment).run(log, threads=1)
        least = min(least, time.process_time() - begin)
        if least > 3.0:
            break
    return least


def measured(kinds: list[str], displays: int, repeats: int, rewarded: float) -> dict[Cell, float]:
    times: dict[Cell, float] = {}
    for kind in kinds:
        sharp = 1.0 if kind == THURSTONE else SHARPNESS[-1]
        for shape in ((3, 2, 1.0), (8, 4, 1.0), (13, 4, 1.0), (24, 3, sharp)):
            seconds(Cell(kind, *shape), 100, 1, rewarded)  # whatever is compiled is compiled now
        for cell in cells([kind]):
            times[cell] = seconds(cell, displays, repeats, rewarded)
            print(
                f"{cell.kind:26} M={cell.items:<3} K={cell.slots} {cell.sharpness:<5} {times[cell]:8.3f} s", flush=True
            )
    return times


# -- neighbours -------------------------------------------------------------------------------------------------------


class Worst(NamedTuple):
    ratio: float
    pairs: int
    dear: Cell | None
    cheap: Cell | None


def worst(times: dict[Cell, float], pairs: list[tuple[Cell, Cell]]) -> Worst:
    """The largest ratio of the times of two neighbours."""
    found = Worst(1.0, len(pairs), None, None)
    for one, other in pairs:
        dear, cheap = (one, other) if times[one] >= times[other] else (other, one)
        if times[dear] / times[cheap] >= found.ratio:
            found = Worst(times[dear] / times[cheap], len(pairs), dear, cheap)
    return found


def pairs_by_items(times: dict[Cell, float]) -> list[tuple[Cell, Cell]]:
    return [(c, n) for c in times if (n := c._replace(items=c.items + 1)) in times]


def pairs_by_slots(times: dict[Cell, float]) -> list[tuple[Cell, Cell]]:
    return [(c, n) for c in times if (n := c._replace(slots=c.slots + 1)) in times]


def pairs_by_sharpness(times: dict[Cell, float]) -> list[tuple[Cell, Cell]]:
    """Each cell with the next lower temperature that was measured for its kind."""
    steps = {kind: sorted({c.sharpness for c in times if c.kind == kind}) for kind in {c.kind for c in times}}
    lower = {(kind, b): a for kind, line in steps.items() for a, b in pairwise(line)}
    return [
        (c, n) for c in times if (c.kind, c.sharpness) in lower
        and (n := c._replace(sharpness=lower[c.kind, c.sharpness])) in times
    ]  # fmt: skip


def pairs_by_kind(times: dict[Cell, float]) -> list[tuple[Cell, Cell]]:
    return [(c, n) for c in times for k in KINDS if k > c.kind and (n := c._replace(kind=k)) in times]


NEIGHBOURS = {
    "M ± 1": pairs_by_items, "K ± 1": pairs_by_slots,
    "next temperature": pairs_by_sharpness, "another policy": pairs_by_kind,
}  # fmt: skip


def where(found: Worst, times: dict[Cell, float]) -> str:
    """The two cells of the worst ratio, with their times."""
    if found.dear is None or found.cheap is None:
        return ""

    def named(cell: Cell) -> str:
        return f"{cell.kind}, M = {cell.items}, K = {cell.slots}, {cell.sharpness:g}: {times[cell]:.2f} s"

    return f"{named(found.dear)}; {named(found.cheap)}"


def table(times: dict[Cell, float], before: dict[Cell, float]) -> str:
    """For each kind of neighbour the worst ratio, before and after, with and without Thurstone."""
    lines = [
        "| policies | neighbours | pairs | worst ratio before | worst ratio now | goal | where, now |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    groups: dict[str, Callable[[Cell], bool]] = {
        "all but thurstone": lambda c: c.kind != THURSTONE,
        THURSTONE: lambda c: c.kind == THURSTONE,
    }
    for group, belongs in groups.items():
        now, then = ({c: s for c, s in t.items() if belongs(c)} for t in (times, before))
        for name, pairs_of in NEIGHBOURS.items():
            found = worst(now, pairs_of(now))
            if not found.pairs:
                continue
            earlier = f"{worst(then, pairs_of(then)).ratio:.1f}" if then else ""
            ratios = f"{earlier} | **{found.ratio:.1f}** | ≤ {GOAL:g}"
            lines.append(f"| {group} | {name} | {found.pairs} | {ratios} | {where(found, now)} |")
    across = worst(times, [pair for pair in pairs_by_kind(times) if THURSTONE in (pair[0].kind, pair[1].kind)])
    if across.pairs:
        ratio = f"**{across.ratio:.1f}** | ≤ {GOAL:g} | {where(across, times)}"
        lines.append(f"| thurstone against the others | another policy | {across.pairs} |  | {ratio} |")
    return "\n".join([*lines, "", *dearest(times, before)])


EXAMPLES = [
    Cell(kind, m, 4, t) for kind in KINDS for t in (0.01, 1.0) for m in (7, 8, 12, 13)
]  # fmt: skip


def dearest(times: dict[Cell, float], before: dict[Cell, float]) -> list[str]:
    """Around the sizes where the cliffs were: seconds before and now."""
    lines = [
        "| policy | temperature | M = 7 | M = 8 | M = 12 | M = 13 |", "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for kind, sharpness in dict.fromkeys((c.kind, c.sharpness) for c in EXAMPLES):
        row = [Cell(kind, m, 4, sharpness) for m in (7, 8, 12, 13)]
        if all(c in times for c in row):
            shown = [f"{before[c]:.2f} → {times[c]:.2f}" if c in before else f"{times[c]:.2f}" for c in row]
            lines.append(f"| {kind} | {sharpness:g} | {' | '.join(shown)} |")
    return lines


# -- what of a policy of one's own is its own code --------------------------------------------------------------------


class Timed(Own):
    """The same policy, with the time that its own code takes."""

    inside = 0.0

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        begin = time.process_time()
        answer = super().log_prob(displays, rankings)
        Timed.inside += time.process_time() - begin
        return answer

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        begin = time.process_time()
        answer = super().sample(displays, uniforms)
        Timed.inside += time.process_time() - begin
        return answer


def own_code(repeats: int, rewarded: float) -> str:
    """Runs of a policy in NumPy, without the time of its own code, beside those of the kernel."""
    lines = [
        "| displays | M | K | run, s | of which the policy's own code | rest over a run of the kernel | goal |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    columns = ft.LogColumns(rewards=("click",), ranking="ranking", id="id")
    for displays in (DISPLAYS, 6 * DISPLAYS, 60 * DISPLAYS):
        for items, slots in ((8, 4), (13, 4), (65, 2)):
            kernel = seconds(Cell("plackett-luce", items, slots, 1.0), displays, repeats, rewarded)
            log = log_of(Cell("own", items, slots, 1.0), displays, rewarded)
            test = ft.OfflineTest(log=columns, control=Timed("old", 1.0), treatment=Timed("new", 1.0))
            runs = []
            for _ in range(repeats):
                Timed.inside, begin = 0.0, time.process_time()
                test.run(log, threads=1)
                runs.append((time.process_time() - begin, Timed.inside))
            whole, inside = min(runs)
            ratio = f"{inside / whole:.0%} | **{(whole - inside) / kernel:.1f}** | ≤ {GOAL:g}"
            lines.append(f"| {displays:,} | {items} | {slots} | {whole:.2f} | {ratio} |")
    return "\n".join(lines)


# -- times in a file --------------------------------------------------------------------------------------------------


def to_file(path: Path, times: dict[Cell, float]) -> None:
    path.write_text(json.dumps([[*cell, s] for cell, s in times.items()]), encoding="utf-8")


def from_file(path: Path) -> dict[Cell, float]:
    return {Cell(*cell): s for *cell, s in json.loads(path.read_text(encoding="utf-8"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--kinds", default=";".join(KINDS), help="kinds of policies, separated by semicolons (default: all)"
    )
    parser.add_argument("--displays", type=int, default=DISPLAYS)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--rewarded", type=float, default=REWARDED, help="the share of rewarded displays")
    parser.add_argument("--save", type=Path, help="write the times to this file, and no page")
    parser.add_argument("--before", type=Path, help="times of an earlier version, to stand beside these")
    options = parser.parse_args()
    begin = time.process_time()
    times = measured(options.kinds.split(";"), options.displays, options.repeats, options.rewarded)
    text = table(times, from_file(options.before) if options.before else {})
    text += (
        f"\n\nWhole runs on {options.displays:,} displays, {options.rewarded:.0%} of them rewarded, one thread;"
        f" {len(times)} cells; foretest {ft.__version__}, Python {platform.python_version()}, NumPy {np.__version__};"
        f" {time.process_time() - begin:,.0f} s of CPU time."
    )
    print(text)
    if options.save:
        to_file(options.save, times)
    else:
        into_page(DOCS / "measured/benchmarks.md", "cliffs", text)
        into_page(DOCS / "measured/benchmarks.md", "own code", own_code(options.repeats, options.rewarded))


if __name__ == "__main__":
    main()
