"""Does the propensity audit stay silent on right logs, and speak up on wrong ones?

Logs are drawn from simulated worlds, weights as heavy as those of the paper included, and audited as `foretest check`
does. Right logs should fail at most 2 % of the time. Broken ones, each in a way that happens, should fail.

    python benchmarks/audit_power.py [--right N] [--broken N]

prints Markdown tables and writes them into docs/audit.md, between two comments.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import foretest as ft
from foretest.diagnostics.audit import FAIL, WARN, Audit
from foretest.files import write_whole
from foretest.simulate import WORLDS, World, simulate_log

SEED = 20261116  # chosen before the first log was drawn
RIGHT, BROKEN = 36, 40  # logs of a row of the tables
LONG, SHORT = 20_000, 2_000

BEGIN, END = "<!-- audit: begin -->", "<!-- audit: end -->"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "audit.md"

Floats = npt.NDArray[np.float64]
Generator = np.random.Generator


class Log(NamedTuple):
    """A log, with the control that its settings name."""

    table: pa.Table
    control: Any
    candidates: str | None = None


def audit_of(log: Log) -> Audit:
    test = ft.OfflineTest(
        log=ft.LogColumns(
            rewards=["click"], unit="user", ranking="ranking", id="display_id", candidates=log.candidates,
            features=["group", "recency", "activity"],
        ),
        control=log.control,
        treatment=ft.PlackettLuce("treatment_scores"),
    )  # fmt: skip
    found = test.check(log.table, threads=1).audit
    assert found is not None
    return found


# -- right logs -------------------------------------------------------------------------------------------------------


def small(name: str, **changes: Any) -> World:
    return replace(WORLDS[name], candidates=12, min_candidates=8, slots=3, **changes)


def simulated(world: World, rows: int, seed: int) -> pa.Table:
    return pa.Table.from_batches(list(simulate_log(world, rows, seed)))


def plain(world: World) -> Callable[[int, int], Log]:
    return lambda rows, seed: Log(simulated(world, rows, seed), ft.PlackettLuce("control_scores"))


def with_ids(rows: int, seed: int) -> Log:
    """Items with ids, 60 in all, the popular ones eligible more often; a probability logged in single precision."""
    table, rng = simulated(small("paper"), rows, seed), np.random.default_rng([SEED, seed])
    shown, lengths = shown_of(table), lengths_of(table)
    popular = rng.standard_exponential((rows, 60)) * np.arange(1, 61)  # a race: the 12 first are eligible
    ids = np.argsort(popular, axis=1)[:, :12]
    columns = {
        "items": pa.array([row[:n].tolist() for row, n in zip(ids, lengths, strict=True)], pa.list_(pa.int32())),
        "ranking": pa.array(np.take_along_axis(ids, shown, axis=1).tolist(), pa.list_(pa.int32())),
        "log_p": log_prob(table, shown).astype(np.float32),
    }
    for name, column in columns.items():
        table = put(table, name, column)
    return Log(table, ft.PlackettLuce("control_scores", log_prob="log_p"), "items")


def epsilon_greedy(rows: int, seed: int) -> Log:
    """The best item left, or one time in five any item left, slot by slot."""
    table, rng = simulated(small("paper"), rows, seed), np.random.default_rng([SEED, seed])
    scores, lengths = scores_of(table), lengths_of(table)
    shown = np.empty((rows, 3), np.int32)
    for slot in range(3):
        left = np.where(np.isneginf(scores), np.inf, rng.random(scores.shape))
        any_left = rng.random(rows) < 0.2
        shown[:, slot] = np.where(any_left, left.argmin(axis=1), scores.argmax(axis=1))
        scores[np.arange(rows), shown[:, slot]] = -np.inf
    assert (shown < lengths[:, None]).all()
    return Log(put(table, "ranking", lists(shown)), ft.EpsilonGreedy("control_scores", 0.2))


RIGHT_LOGS: dict[str, Callable[[int, int], Log]] = {
    "paper": plain(small("paper")),
    "sharp: a nearly deterministic control": plain(small("sharp")),
    "no-overlap: heavier weights": plain(small("no-overlap")),
    "dense: light weights": plain(small("dense")),
    "paper, 4 displays a user": plain(small("paper", displays_per_user=4.0)),
    "no-overlap, 4 displays a user, all alike": plain(small("no-overlap", displays_per_user=4.0, sticky=True)),
    "paper, with item ids and a logged probability": with_ids,
    "paper, an epsilon-greedy control": epsilon_greedy,
}


# -- broken logs ------------------------------------------------------------------------------------------------------

PAPER = small("paper")


def temperature(stated: float) -> Callable[[int, int], Log]:
    return lambda rows, seed: Log(simulated(PAPER, rows, seed), ft.PlackettLuce("control_scores", stated))


def shuffled_scores(rows: int, seed: int) -> Log:
    """Each display has the scores of another one with as many candidates."""
    world = replace(PAPER, min_candidates=12)
    table = simulated(world, rows, seed)
    order = np.random.default_rng([SEED, seed]).permutation(rows)
    return Log(put(table, "control_scores", table["control_scores"].take(order)), ft.PlackettLuce("control_scores"))


def shuffled_probabilities(rows: int, seed: int) -> Log:
    table = simulated(PAPER, rows, seed)
    log_p = np.random.default_rng([SEED, seed]).permutation(log_prob(table, shown_of(table)))
    return Log(put(table, "log_p", log_p), ft.PlackettLuce("control_scores", log_prob="log_p"))


def other_version(rows: int, seed: int) -> Log:
    """Scores of a model that correlates .98 with the one that served."""
    table, rng = simulated(PAPER, rows, seed), np.random.default_rng([SEED, seed])
    scores = scores_of(table) + 0.3 * rng.standard_normal((rows, 12))
    return Log(put(table, "control_scores", lists(scores, lengths_of(table))), ft.PlackettLuce("control_scores"))


def other_slots(rows: int, seed: int) -> Log:
    """The probability that was logged is that of the first two slots, and three were shown."""
    table = simulated(PAPER, rows, seed)
    log_p = log_prob(table, shown_of(table)[:, :2])
    return Log(put(table, "log_p", log_p), ft.PlackettLuce("control_scores", log_prob="log_p"))


def duplicated(rows: int, seed: int) -> Log:
    """One row in fifty is there twice."""
    table, rng = simulated(PAPER, rows, seed), np.random.default_rng([SEED, seed])
    copies = np.sort(np.concatenate([np.arange(rows), rng.choice(rows, rows // 50, replace=False)]))
    return Log(table.take(copies), ft.PlackettLuce("control_scores"))


def swapped(rows: int, seed: int) -> Log:
    """A rule: in one display of ten the first two items change places where the second has a lower score."""
    table, rng = simulated(PAPER, rows, seed), np.random.default_rng([SEED, seed])
    shown, scores = shown_of(table), scores_of(table)
    first, second = (scores[np.arange(rows), shown[:, slot]] for slot in (0, 1))
    change = (rng.random(rows) < 0.1) & (second < first)
    shown[change, :2] = shown[change, 1::-1]
    return Log(put(table, "ranking", lists(shown)), ft.PlackettLuce("control_scores"))


def one_group(rows: int, seed: int) -> Log:
    """The shoppers, 12 % of displays, were served at random."""
    table, rng = simulated(PAPER, rows, seed), np.random.default_rng([SEED, seed])
    shown = shown_of(table)
    keys = np.where(np.isneginf(scores_of(table)), np.inf, rng.random((rows, 12)))
    there = np.array(table["group"].to_pylist()) == "shoppers"
    shown[there] = np.argsort(keys[there], axis=1)[:, :3]
    return Log(put(table, "ranking", lists(shown)), ft.PlackettLuce("control_scores"))


class Fault(NamedTuple):
    name: str
    log: Callable[[int, int], Log]
    rows: int


FAULTS = [
    Fault("temperature stated 3 % too high", temperature(1.03), LONG),
    Fault("temperature stated 3 % too low", temperature(0.97), LONG),
    Fault("temperature stated 10 % too high", temperature(1.1), SHORT),
    Fault("temperature stated 10 % too low", temperature(0.9), SHORT),
    Fault("scores shuffled among displays", shuffled_scores, LONG),
    Fault("logged probabilities shuffled", shuffled_probabilities, LONG),
    Fault("scores of another model version", other_version, LONG),
    Fault("logged probabilities of another K", other_slots, LONG),
    Fault("one row in 50 duplicated", duplicated, LONG),
    Fault("a rule swaps two items in 10 % of displays", swapped, LONG),
    Fault("12 % of displays served at random", one_group, LONG),
]


# -- columns ----------------------------------------------------------------------------------------------------------


def put(table: pa.Table, name: str, column: Any) -> pa.Table:
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, pa.array(column) if isinstance(column, np.ndarray) else column)


def lists(values: npt.NDArray[Any], lengths: npt.NDArray[np.int64] | None = None) -> pa.Array:
    lengths = np.full(len(values), values.shape[1]) if lengths is None else lengths
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    flat = values[np.arange(values.shape[1]) < lengths[:, None]]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))


def shown_of(table: pa.Table) -> npt.NDArray[np.int64]:
    shown = table["ranking"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return shown.reshape(table.num_rows, -1).astype(np.int64)


def lengths_of(table: pa.Table) -> npt.NDArray[np.int64]:
    return np.asarray(pa.compute.list_value_length(table["control_scores"]).to_numpy(), np.int64)


def scores_of(table: pa.Table) -> Floats:
    """The control's scores, −inf beyond a row's candidates."""
    lengths = lengths_of(table)
    out = np.full((table.num_rows, int(lengths.max())), -np.inf)
    flat = table["control_scores"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    out[np.arange(out.shape[1]) < lengths[:, None]] = flat
    return out


def log_prob(table: pa.Table, shown: npt.NDArray[np.int64]) -> Floats:
    """Plackett-Luce's log-probability of what was shown, in plain NumPy."""
    scores, rows, total = scores_of(table), np.arange(table.num_rows), np.zeros(table.num_rows)
    for item in shown.T:
        most = scores.max(axis=1)
        total += scores[rows, item] - most - np.log(np.exp(scores - most[:, None]).sum(axis=1))
        scores[rows, item] = -np.inf
    return total


# -- counting ---------------------------------------------------------------------------------------------------------


class Count(NamedTuple):
    """Over some logs: how many fail, how many warn, and which findings failed."""

    logs: int
    fails: int
    warns: int
    by_test: dict[str, int]


def counted(make: Callable[[int, int], Log], rows: int, logs: int, first_seed: int) -> Count:
    found = [audit_of(make(rows, first_seed + number)) for number in range(logs)]
    failed = [name for audit in found for name in audit.named(FAIL)]
    return Count(
        logs, sum(a.outcome == FAIL for a in found), sum(a.outcome == WARN for a in found),
        {name: failed.count(name) for name in dict.fromkeys(failed)},
    )  # fmt: skip


def right_logs(logs: int, sizes: tuple[int, ...] = (LONG, SHORT)) -> dict[tuple[str, int], Count]:
    """`logs` of every world at every size."""
    return {
        (name, rows): counted(make, rows, logs, SEED + 10_000 * place + rows)
        for rows in sizes
        for place, (name, make) in enumerate(RIGHT_LOGS.items())
    }


def broken_logs(logs: int) -> dict[Fault, Count]:
    return {
        fault: counted(fault.log, fault.rows, logs, SEED + 500_000 + 10_000 * place)
        for place, fault in enumerate(FAULTS)
    }


def _tests(count: Count) -> str:
    return ", ".join(f"{name} {hits / count.logs:.0%}" for name, hits in count.by_test.items()) or "none"


def tables(right: dict[tuple[str, int], Count], broken: dict[Fault, Count]) -> str:
    logs, fails = sum(c.logs for c in right.values()), sum(c.fails for c in right.values())
    warns = sum(c.warns for c in right.values())
    lines = [
        f"**Right logs.** Of {logs:,} logs with right propensities {fails} fail ({fails / logs:.1%}; aim: at most 2 %)"
        f" and {warns} warn ({warns / logs:.1%}).",
        "",
        "| world | rows | logs | fail | warn | tests that failed |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
        *(
            f"| {name} | {rows:,} | {c.logs} | {c.fails} | {c.warns} | {_tests(c)} |"
            for (name, rows), c in right.items()
        ),
        "",
        "**Broken logs.** Share of logs that fail (aim: at least 95 %), and by which tests.",
        "",
        "| fault | rows | logs | fail | tests that failed |",
        "| --- | ---: | ---: | ---: | --- |",
        *(
            f"| {f.name} | {f.rows:,} | {c.logs} | **{c.fails / c.logs:.1%}** | {_tests(c)} |"
            for f, c in broken.items()
        ),
    ]
    return "\n".join(lines)


def into_page(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE}: the comments {BEGIN} and {END} are not there.")
    write_whole(PAGE, f"{before}{BEGIN}\n{text}\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--right", type=int, default=RIGHT, help=f"right logs of each world and size (default {RIGHT})")
    parser.add_argument("--broken", type=int, default=BROKEN, help=f"logs of each fault (default {BROKEN})")
    options = parser.parse_args()
    begin = time.process_time()
    text = tables(right_logs(options.right), broken_logs(options.broken))
    text += (
        f"\n\nSeeds: from {SEED}, chosen beforehand. 8 to 12 candidates, 3 slots, cap 100. foretest {ft.__version__},"
        f" Python {platform.python_version()}, NumPy {np.__version__};"
        f" {time.process_time() - begin:,.0f} s of CPU time."
    )
    print(text)
    into_page(text)


if __name__ == "__main__":
    main()
