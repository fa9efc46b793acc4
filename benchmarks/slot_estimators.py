"""Estimators by slot: what they cost, and how they agree with online A/B tests: `python benchmarks/slot_estimators.py`.

Cost: CPU of a run with and without them, beyond that of the same command on 1 000 rows, on a log of 20 candidates and 4
slots of which 0.5 % of the rows are rewarded. Agreement: histories of the world `paper`, each test with both arms, in
memory; `slot-ncis-adaptive` beside `point-ncis-adaptive`, on the same rows. Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from speed import SETTINGS, K, command, write_log

import foretest as ft
from foretest.history.agreement import DECISIONS, Pairs, ci_size, correlation, coverage, fnr, precision, rmse
from foretest.simulate import WORLDS, draw_test, simulate_log, true_values

SLOTS = ["iips", "rips", "slot-ncis-adaptive"]
SHOWN = ["cis", "point-ncis-adaptive", "slot-ncis-adaptive"]
LOG = ft.LogColumns(
    rewards=["click"], unit="user", ranking="ranking", id="display_id", slot_rewards={"click": "slot_click"}
)


def with_slots(plain: Path, path: Path) -> None:
    """The same log with the clicked slot, any of them."""
    g = np.random.default_rng(1)
    with pq.ParquetFile(plain) as file:
        writer = None
        for number in range(file.num_row_groups):
            table = file.read_row_group(number)
            click = table["click"].to_numpy(zero_copy_only=False)
            on = (np.arange(K) == g.integers(0, K, len(click))[:, None]) & click[:, None]
            ends = pa.array(np.arange(0, on.size + 1, K, dtype=np.int32))
            table = table.append_column("slot_click", pa.ListArray.from_arrays(ends, pa.array(on.ravel())))
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
        assert writer is not None
        writer.close()


def cost(rows: int, repeats: int) -> str:
    """CPU seconds beyond start-up, the least of some runs, without and with estimators by slot."""
    foretest = str(Path(sys.executable).with_name("foretest"))
    known = SETTINGS.replace("unit =", 'slot_rewards = {click = "slot_click"}\nunit =')
    settings = {"without": known, "with": known.replace('adaptive"]', f'adaptive", {", ".join(map(repr, SLOTS))}]')}
    with tempfile.TemporaryDirectory(prefix="foretest-slots-") as name:
        folder = Path(name)
        for size in (1000, rows):
            write_log(folder / "plain.parquet", size)
            with_slots(folder / "plain.parquet", folder / f"{size}.parquet")
        beyond = {}
        for which, text in settings.items():
            (folder / f"{which}.toml").write_text(text, encoding="utf-8")
        for which in settings:
            taken = {
                size: min(
                    command(foretest, "run", str(folder / f"{size}.parquet"), "-c", str(folder / f"{which}.toml"),
                            "--json", "--threads", "1")[0]
                    for _ in range(repeats)
                )
                for size in (1000, rows)
            }  # fmt: skip
            beyond[which] = taken[rows] - taken[1000]
    more = beyond["with"] / beyond["without"] - 1.0
    return (
        f"{rows:,} rows: {beyond['without']:.2f} s of CPU beyond start-up without estimators by slot,"
        f" {beyond['with']:.2f} s with all three: {more:+.0%}."
    )


def history(seed: int, tests: int, rows: int) -> dict[str, dict[str, float]]:
    """Of one history: correlation with online, decisions, interval size; distance from the truth and its coverage."""
    world = WORLDS["paper"]
    offline = ft.OfflineTest(
        log=LOG, control=ft.PlackettLuce(scores="control_scores"), treatment=ft.PlackettLuce(scores="treatment_scores"),
        estimators=SHOWN, interval="delta",
    )  # fmt: skip
    online = ft.OnlineTest(log=ft.LogColumns(rewards=["click"], unit="user"), interval="delta")
    found: dict[str, list[tuple[float, ...]]] = {key: [] for key in SHOWN}
    for number in range(1, tests + 1):
        test = draw_test(world, number, seed)
        arms = [
            pa.Table.from_batches(simulate_log(replace(world, change=test.change), rows, test.seed, arm=arm))
            for arm in ("control", "treatment")
        ]
        estimates = offline.run(arms[0]).metrics["click"].estimates
        real = online.run(*arms).metrics["click"].estimates["online"]
        truth = true_values(world, test.change, test.seed, displays=8192, draws=1)["click"].rel_uplift
        width = estimates["cis"].rel_effect_size_ci_upper - estimates["cis"].rel_effect_size_ci_lower
        for key, e in estimates.items():
            found[key].append(
                (
                    e.rel_effect_size,
                    real.rel_effect_size,
                    e.rel_effect_size_ci_lower,
                    e.rel_effect_size_ci_upper,
                    DECISIONS[e.verdict],
                    DECISIONS[real.verdict],
                    width,
                    truth,
                )
            )
    table = {}
    for key, rows_of in found.items():
        x, y, lower, upper, off, on, width, truth = np.array(rows_of, dtype=float).T
        nothing = np.zeros(len(x))
        pairs = Pairs(x, y, nothing, nothing, nothing, lower, upper, off.astype(int), on.astype(int), width, truth)
        table[key] = {f.__name__: f(pairs) for f in (correlation, precision, fnr, ci_size, rmse, coverage)}
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the log whose cost is measured; 0: skip it")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2, 3, 4], help="histories")
    parser.add_argument("--tests", type=int, default=39)
    parser.add_argument("--displays", type=int, default=150_000, help="of each arm of a history's test")
    args = parser.parse_args()
    if args.rows:
        print(cost(args.rows, args.repeats), flush=True)
    histories = []
    for seed in args.seeds:
        histories.append(history(seed, args.tests, args.displays))
        print(f"seed {seed}: {histories[-1]}", file=sys.stderr, flush=True)
    if not histories:
        return
    print(f"\n{len(histories)} histories of {args.tests} tests, {args.displays:,} displays an arm: mean (and range).\n")
    names = list(histories[0][SHOWN[0]])
    print("| estimator | " + " | ".join(names) + " |\n| --- |" + " --- |" * len(names))
    for key in SHOWN:
        cells = []
        for name in names:
            values = [h[key][name] for h in histories]
            cells.append(f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})")
        print(f"| `{key}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
