"""Do 90 % intervals of sums and ratios hold as often as those of the metrics they are made of?

The finite world of `interval_coverage.py`, with a treatment that changes much everywhere. A click earns an amount whose
mean depends on the item in the first slot, and some displays are hidden: what every estimator tends to, for clicks,
revenue, clicks less hides, and revenue per click, is a sum over all contexts and rankings. Displays are independent, or
of users who come several times.

    python benchmarks/metrics_of_metrics.py [--logs N] [--rows N]

prints a Markdown table and writes it into docs/how-to/metrics.md, between two comments.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time

import numpy as np
import pyarrow as pa
from interval_coverage import (
    ADAPTIVE,
    LEVEL,
    ORDINARY,
    RANKINGS,
    World,
    estimator,
    limits,
    log_of_rows,
    log_of_users,
    make_world,
    user_effect,
)
from pages import DOCS, into_page

import foretest as ft
from foretest.files import nan_if_none

SEED = 20261117  # chosen before the first log was drawn
LOGS, ROWS = 2000, 5_000
AIM = 2.0  # percentage points between the coverage of a ratio and of its parts
LABELS = (ADAPTIVE, "cis 10", "ncis 10", "point-ncis 10")
KINDS = {"independent displays": None, "users who come several times": ORDINARY}
AMOUNT = 4.0 + 2.0 * RANKINGS[:, 0]  # mean revenue of a click, by ranking
HIDE = np.where(RANKINGS[:, 0] == 2, 0.06, 0.02)
METRICS = ("click", "revenue", "net", "rpc")
SHOWN = {"click": "click", "revenue": "revenue", "net": "clicks less hides", "rpc": "revenue per click"}


def log_of(kind: str, world: World, rows: int, rng: np.random.Generator) -> pa.Table:
    """A log with revenue and hides beside the clicks."""
    users = KINDS[kind]
    log = log_of_rows(world, rows, rng) if users is None else log_of_users(world, rows, rng, users)
    shown = np.array(log["ranking"].to_pylist())
    ranking = (RANKINGS[None] == shown[:, None]).all(axis=2).argmax(axis=1)
    click = np.asarray(log["click"]).astype(float)
    revenue = click * AMOUNT[ranking] * rng.gamma(2.0, 0.5, len(click))
    hide = rng.random(len(click)) < HIDE[ranking]
    return log.append_column("revenue", pa.array(revenue)).append_column("hide", pa.array(hide.astype(float)))


def offline_test(kind: str) -> ft.OfflineTest:
    unit = None if KINDS[kind] is None else "user"
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click", "revenue", "hide"], id="display", unit=unit, ranking="ranking"),
        control=ft.PlackettLuce("control"),
        treatment=ft.PlackettLuce("treatment"),
        metrics={"net": {"sum": {"click": 1.0, "hide": -1.0}}, "rpc": {"ratio": ["revenue", "click"]}},
        estimators=[estimator(label) for label in LABELS],
        interval="delta",
        confidence_level=LEVEL,
    )


def expected_uplifts(kind: str, world: World) -> dict[str, dict[str, float]]:
    """The absolute uplift that each estimator tends to, by metric."""
    effect = 1.0 if KINDS[kind] is None else user_effect(KINDS[kind])
    click = {k: effect * v for k, v in limits(world).items()}
    revenue = {k: effect * v for k, v in limits(world._replace(click=world.click * AMOUNT)).items()}
    hide = limits(world._replace(click=np.broadcast_to(HIDE, world.click.shape)))
    net = {k: click[k] - hide[k] for k in click}
    ratio = {k: revenue[k] / click[k] for k in click}
    values = {"click": click, "revenue": revenue, "net": net, "rpc": ratio}
    return {m: {label: v[label] - v["control"] for label in LABELS} for m, v in values.items()}


def holds(
    kind: str, world: World, rows: int, seed: np.random.SeedSequence, ends: dict[str, dict[str, float]]
) -> np.ndarray:
    """Metrics × estimators: does the interval of one log hold what the estimator tends to?"""
    result = offline_test(kind).run(log_of(kind, world, rows, np.random.default_rng(seed)), threads=1)
    found = np.empty((len(METRICS), len(LABELS)))
    for i, metric in enumerate(METRICS):
        for j, label in enumerate(LABELS):
            e = result.metrics[metric].estimates[label]
            lower, upper = nan_if_none(e.effect_size_ci_lower), nan_if_none(e.effect_size_ci_upper)
            found[i, j] = lower <= ends[metric][label] <= upper
    return found


def study(kind: str, logs: int, rows: int) -> np.ndarray:
    """The share of intervals that hold, metrics × estimators."""
    world = make_world(cold_by=2.0, changes=(1.0, 1.0, 1.0, 1.0))
    ends = expected_uplifts(kind, world)
    seeds = np.random.SeedSequence([SEED, list(KINDS).index(kind)]).spawn(logs)
    return np.mean([holds(kind, world, rows, seed, ends) for seed in seeds], axis=0)


def report(found: dict[str, np.ndarray], logs: int, rows: int, seconds: float) -> str:
    lines = [
        f"{logs:,} logs of {rows:,} displays each, seed {SEED}, delta intervals at {LEVEL:.0%}.",
        "",
        f"| displays | estimator | {' | '.join(SHOWN[m] for m in METRICS)} | ratio less the mean of its parts |",
        f"| --- | --- | {' | '.join(['---:'] * len(METRICS))} | ---: |",
    ]
    worst = 0.0
    for kind, shares in found.items():
        for j, label in enumerate(LABELS):
            apart = 100.0 * (shares[3, j] - shares[:2, j].mean())
            worst = max(worst, abs(apart))
            lines.append(
                f"| {kind} | `{label}` | {' | '.join(f'{s:.1%}' for s in shares[:, j])} | {apart:+.1f} points |"
            )
    error = 100.0 * np.sqrt(0.9 * 0.1 / logs)
    lines += [
        "",
        f"The largest difference is {worst:.1f} points; the aim is {AIM:g}. A share is good to {error:.1f} points (one"
        f" standard error). {seconds / 60:.0f} min on {platform.machine()}.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=LOGS)
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    begun, found = time.monotonic(), {}
    for kind in KINDS:
        found[kind] = study(kind, options.logs, options.rows)
        print(f"{kind}: {time.monotonic() - begun:,.0f} s", file=sys.stderr)
    text = report(found, options.logs, options.rows, time.monotonic() - begun)
    print(text)
    if options.logs == LOGS and options.rows == ROWS:
        into_page(DOCS / "how-to/metrics.md", "metrics", text)


if __name__ == "__main__":
    main()
