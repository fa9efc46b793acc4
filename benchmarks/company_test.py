"""The test of slots and their company: how often right logs fail it, and how many rewards show what.

Right logs: each slot is clicked by its own item and place alone. Otherwise clicks depend on what else is shown, in one
of four ways. Displays of 20 candidates and 4 slots; an item's appeal u is normal, the control's score is 1.5 times a
normal number whose correlation with u is the accuracy, and the attraction of an item in slot k is k^-0.7·exp(u/2). Then
worlds of `foretest simulate`, whose controls have an accuracy of .4.

    python benchmarks/company_test.py [--logs 300] [--repeats 20]

prints three tables and writes them into docs/explanation/slots.md, between two comments.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pages import DOCS, into_page

import foretest as ft
from foretest.formatting import minus_signs
from foretest.inference.company import company_test
from foretest.results.audit import FAILS_BELOW, WARNS_BELOW
from foretest.simulate import WORLDS, simulate_log

ITEMS, SLOTS = 20, 4
POSITION = np.arange(1, SLOTS + 1) ** -0.7
# normal quantiles: two-sided at .01 and .001, and of 90 % power
_WARNS, _CRITICAL, _POWER = 2.5758, 3.2905, 1.2816

Clicks = Callable[[np.random.Generator, np.ndarray], np.ndarray]
CONTROLS = {
    "`plackett-luce`": ft.PlackettLuce(scores="control_scores"),
    "`plackett-luce`, a quarter of the temperature": ft.PlackettLuce(scores="control_scores", temperature=0.25),
    "`mallows`, φ = 0.7": ft.Mallows(scores="control_scores", dispersion=0.7),
    "`epsilon-greedy`, ε = 0.3": ft.EpsilonGreedy(scores="control_scores", epsilon=0.3),
}


def alone(g: np.random.Generator, attraction: np.ndarray) -> np.ndarray:
    """Each slot by its own item and place."""
    return g.random(attraction.shape) < np.minimum(0.1 * attraction, 1.0)


def sharing(g: np.random.Generator, attraction: np.ndarray) -> np.ndarray:
    """Slots compete: half of the displays have a click, on slot k in proportion to its attraction."""
    shares = attraction / attraction.sum(axis=1, keepdims=True)
    return g.random(attraction.shape) < 0.5 * shares


def saturating(g: np.random.Generator, attraction: np.ndarray) -> np.ndarray:
    """At most one click: one with probability 1 − exp(−Σ 0.3·attraction), on slot k in proportion to its attraction."""
    total = attraction.sum(axis=1)
    slot = (g.random(len(total))[:, None] * total[:, None] > np.cumsum(attraction, axis=1)).sum(axis=1)
    is_clicked = g.random(len(total)) < -np.expm1(-0.3 * total)
    return (np.arange(SLOTS) == slot[:, None]) & is_clicked[:, None]


def cascade(g: np.random.Generator, attraction: np.ndarray) -> np.ndarray:
    """People read from the top and stop at the first click, which an item earns with 0.3·exp(u/2)."""
    clicked = g.random(attraction.shape) < np.minimum(0.3 * attraction / POSITION, 1.0)
    return clicked & (np.cumsum(clicked, axis=1) == 1)


def leaving(g: np.random.Generator, attraction: np.ndarray) -> np.ndarray:
    """Attractive items hold people: after each slot they read on with probability a/(a + 1), a = exp(u/2)."""
    a = attraction / POSITION
    reads_on = np.cumprod(g.random(a.shape) < a / (a + 1.0), axis=1)
    reads = np.column_stack([np.ones(len(a)), reads_on[:, :-1]])
    return (g.random(a.shape) < np.minimum(0.2 * a, 1.0)) & (reads > 0.0)


WAYS: dict[str, Clicks] = {
    "slots share one click": sharing,
    "at most one click, on 0.6 of the displays": saturating,
    "a cascade that ends with a click, on 0.7 of the displays": cascade,
    "attractive items make people read on": leaving,
}


def simulated(control: Any, clicks: Clicks, rows: int, seed: int, accuracy: float) -> pa.Table:
    """A log of a control, with clicks that come about in some way."""
    g = np.random.default_rng([seed, rows])
    appeal, noise = g.normal(size=(2, rows, ITEMS))
    scores = 1.5 * (accuracy * appeal + np.sqrt(1.0 - accuracy**2) * noise)
    lists = ft.Ragged.packed(scores.ravel(), np.full(rows, ITEMS))
    blank = ft.Ragged.packed(np.zeros(rows * SLOTS, np.int32), np.full(rows, SLOTS))
    displays = ft.Displays(
        {"control_scores": lists}, blank, np.full(rows, ITEMS), np.arange(rows).astype(np.uint64)
    )  # fmt: skip
    ranking = control.sample(displays, g.random((rows, ITEMS + 1))).flat().reshape(rows, SLOTS)
    attraction = POSITION * np.exp(0.5 * np.take_along_axis(appeal, ranking, axis=1))
    clicked = clicks(g, attraction).astype(float)

    def as_lists(array: np.ndarray) -> pa.Array:
        return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])

    return pa.table({
        "display_id": np.arange(rows), "click": clicked.sum(axis=1), "slot_click": as_lists(clicked),
        "ranking": as_lists(ranking), "control_scores": as_lists(scores),
    })  # fmt: skip


def company_z(control: Any, log: pa.Table) -> tuple[float, int]:
    """z and the number of rewarded rows; no treatment plays a part, so the control is its own."""
    columns = ft.LogColumns(rewards=["click"], ranking="ranking", id="display_id", slot_rewards={"click": "slot_click"})
    aggregates = ft.OfflineTest(log=columns, control=control, treatment=control, estimators=["rips"]).aggregate(log)[0]
    test = company_test(aggregates, aggregates.plan.estimators, 0)
    assert test is not None
    return (np.nan if test.z is None else test.z), test.rewards


def signed(z: float, digits: int = 1) -> str:
    """A number with its sign."""
    return minus_signs(f"{z:+.{digits}f}")


def size_table(logs: int) -> str:
    """How often right logs warn and fail, by control."""
    from scipy.special import ndtr

    lines = [
        f"| control | rewards a log | z: mean, standard deviation | p < {WARNS_BELOW:g} | p < {FAILS_BELOW:g} |",
        "| --- |" + " --- |" * 4,
    ]
    for name, control in CONTROLS.items():
        found = np.array([company_z(control, simulated(control, alone, 1500, seed, 0.6)) for seed in range(logs)])
        z, p = found[:, 0], 2.0 * ndtr(-np.abs(found[:, 0]))
        shares = " | ".join(f"{np.mean(p < level):.1%}" for level in (WARNS_BELOW, FAILS_BELOW))
        lines.append(
            f"| {name} | {found[:, 1].mean():,.0f} | {signed(np.nanmean(z), 2)}, {np.nanstd(z):.2f} | {shares} |"
        )
    return "\n".join(lines)


def power_table(repeats: int) -> str:
    """Rewards for 90 % power at p < .001, from the mean z of some logs, by way and by accuracy of the control."""
    control = CONTROLS["`plackett-luce`"]
    accuracies = (0.4, 0.8, 1.0)
    lines = [
        "| clicks | " + " | ".join(f"accuracy {accuracy:g}" for accuracy in accuracies) + " |",
        "| --- |" + " --- |" * len(accuracies),
    ]
    for name, clicks in WAYS.items():
        cells = []
        for accuracy in accuracies:
            found = np.array(
                [company_z(control, simulated(control, clicks, 20_000, s, accuracy)) for s in range(repeats)]
            )
            mean, error = found[:, 0].mean(), found[:, 0].std(ddof=1) / np.sqrt(repeats)
            needed = found[:, 1].mean() * ((_CRITICAL + _POWER) / mean) ** 2
            digits = 1 - int(np.floor(np.log10(needed)))
            text = f"{round(needed, digits):,.0f}" if abs(mean) > 4.0 * error else "more than a million"
            cells.append(f"{text} (z {signed(mean)} at {found[:, 1].mean():,.0f})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def worlds_table(repeats: int, displays: int = 60_000) -> str:
    """z and outcomes in simulated worlds."""
    worlds = {
        "`paper`: 1.4 % of displays have a click, slots hardly compete": WORLDS["paper"],
        "`rewards`: saturating clicks": WORLDS["rewards"],
        "`paper`, two categories whose items halve each other's clicks": replace(
            WORLDS["paper"], categories=2, cannibalisation=1.0
        ),
    }
    lines = [f"| world, {displays:,} displays | clicks | mean z | warns or fails | fails |", "| --- |" + " --- |" * 4]
    control = CONTROLS["`plackett-luce`"]
    for name, world in worlds.items():
        logs = (pa.Table.from_batches(simulate_log(world, displays, 100 + seed)) for seed in range(repeats))
        found = np.array([company_z(control, log) for log in logs])
        z = np.abs(found[:, 0])
        shares = f"{np.mean(z > _WARNS):.0%} | {np.mean(z > _CRITICAL):.0%}"
        lines.append(f"| {name} | {found[:, 1].mean():,.0f} | {signed(found[:, 0].mean())} | {shares} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=300, help="right logs of each control")
    parser.add_argument("--repeats", type=int, default=20, help="logs of each way that clicks come about")
    args = parser.parse_args()
    text = (
        f"Of {args.logs} right logs of each control:\n\n{size_table(args.logs)}\n\n"
        "Rewards that 90 % power at p < .001 takes, where clicks depend on what else is shown (in brackets the mean z"
        f" of\n{args.repeats} logs of so many rewards):\n\n{power_table(args.repeats)}\n\n"
        f"In simulated worlds, over {args.repeats} logs:\n\n{worlds_table(args.repeats)}"
    )
    print(text)
    if (args.logs, args.repeats) == (parser.get_default("logs"), parser.get_default("repeats")):
        into_page(DOCS / "explanation/slots.md", "company", text)


if __name__ == "__main__":
    main()
