"""Is a treatment that was trained on the log it is tested on found, and is a right one left alone?

`python benchmarks/leaks.py` draws logs of 20,000 rows, gives each several treatments, right ones and ones that know
what was clicked, and writes how often the audit's test `knows the draw` fails into docs/measured/leaks.md, between two
comments. Each treatment is tested as the only one of its log.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pages import DOCS, into_page

import foretest as ft
from foretest.diagnostics.audit import audit, draw_standing, knows_draw
from foretest.log.opening import open_log
from foretest.offline.analysis import by_treatment
from foretest.offline.prepare_and_fold import Work, fold_for_check

SEED = 20261119  # chosen before the first log was drawn
LOGS, RIGHT_LOGS = 100, 25  # of leaks; of right treatments in each world
ROWS = 20_000
ITEMS, KINDS = 400, 8  # items, and categories of items
DAYS, TRAINING_DAYS = 40, 10  # of a log; before it, for a treatment that was trained on other days

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class World(NamedTuple):
    """How displays are made and shown."""

    name: str
    control: ft.Policy
    candidates: int
    slots: int
    users: int


WORLDS = (
    World("20 candidates, 4 slots, 5 displays a user", ft.PlackettLuce("control"), 20, 4, 4000),
    World("33 candidates, 6 slots, temperature 0.5", ft.PlackettLuce("control", temperature=0.5), 33, 6, 4000),
    World("8 candidates, 1 slot, 50 displays a user, epsilon-greedy", ft.EpsilonGreedy("control", 0.3), 8, 1, 400),
)


class Log(NamedTuple):
    """Displays in the order of time, as plain arrays of displays × candidates."""

    user: Ints
    day: Ints
    item: Ints
    control: Floats
    shown: npt.NDArray[np.bool_]
    click: npt.NDArray[np.bool_]
    ranking: Ints

    def since(self, day: int) -> Log:
        return Log(*(column[self.day >= day] for column in self))

    @property
    def rate(self) -> float:
        """Clicks of what was shown."""
        return float(self.click[self.shown].mean())


def draw_log(world: World, g: np.random.Generator, rows: int, days: int, *, learns: bool = False) -> Log:
    """A log of some days. A control that `learns` also scores by the user's clicks in the item's category on the days
    before, as they were when it served."""
    user, day = g.integers(0, world.users, rows), np.sort(g.integers(0, days, rows))
    item = g.integers(0, ITEMS, (rows, world.candidates))
    appeal = 0.5 * g.normal(size=ITEMS)[item] + 0.9 * g.normal(size=item.shape)
    control, shown, click = appeal.copy(), np.zeros(item.shape, np.bool_), np.zeros(item.shape, np.bool_)
    ranking = np.empty((rows, world.slots), np.int64)
    rate = np.minimum(0.05 * np.exp(0.5 * appeal - 0.25), 0.9)
    for some in np.split(np.arange(rows), np.searchsorted(day, np.arange(1, days))) if learns else [np.arange(rows)]:
        if learns and len(some):
            log = Log(user, day, item, control, shown, click, ranking)
            control[some] += 2.0 * earlier_rate(log, by_kind(log), some)
        ranking[some] = rankings(world, control[some], g)
        shown[some[:, None], ranking[some]] = True
        click[some] = shown[some] & (g.random((len(some), world.candidates)) < rate[some])
    return Log(user, day, item, control, shown, click, ranking)


def rankings(world: World, scores: Floats, g: np.random.Generator) -> Ints:
    """What the control shows."""
    displays = ft.Displays(
        {"control": ft.Ragged.of(scores)} if len(scores) else {"control": ft.Ragged.of([])},
        ft.Ragged.packed(np.zeros(len(scores) * world.slots, np.int32), np.full(len(scores), world.slots)),
        np.full(len(scores), world.candidates), np.arange(len(scores)).astype(np.uint64),
    )  # fmt: skip
    drawn = world.control.sample(displays, g.random((len(scores), world.candidates + 1)))
    return np.asarray(drawn.flat().reshape(-1, world.slots), np.int64)


# -- what a treatment may know ------------------------------------------------------------------------------------


def by_item(log: Log) -> Ints:
    return np.asarray(log.item + ITEMS * log.user[:, None])


def by_kind(log: Log) -> Ints:
    return np.asarray(log.item % KINDS + KINDS * log.user[:, None])


def counts(log: Log, keys: Ints) -> tuple[Floats, Floats]:
    """How often what each key stands for was shown and clicked in the whole log."""
    size = int(keys.max()) + 1
    return tuple(np.bincount(keys[which], minlength=size).astype(float) for which in (log.shown, log.click))  # type: ignore[return-value]


def log_rate(log: Log, keys: Ints, of: Log | None = None, of_keys: Ints | None = None) -> Floats:
    """log of the click rate of each key, over the mean rate, with one display of that added; of another log's."""
    shown, click = counts(of or log, keys if of_keys is None else of_keys)
    size = max(len(shown), int(keys.max()) + 1)
    shown, click = (np.pad(column, (0, size - len(column))) for column in (shown, click))
    return np.asarray(np.log((click + 1.0) / (shown * (of or log).rate + 1.0))[keys])


def mean_rate(log: Log, keys: Ints) -> Floats:
    """Clicks of each key beyond those of the mean rate, per display and five more."""
    shown, click = counts(log, keys)
    return np.asarray(((click - shown * log.rate) / (shown + 5.0))[keys])


def earlier_rate(log: Log, keys: Ints, rows: Ints) -> Floats:
    """The same of the displays before each row (of earlier days, for a control that learns by day)."""
    size = len(log.user)
    row, column = np.nonzero(log.shown)
    events = keys[row, column] * size + row
    order = np.argsort(events)
    clicks = np.concatenate([[0.0], np.cumsum(log.click[row, column][order])])
    begin, end = (
        np.searchsorted(events[order], (keys[rows] * size + at).ravel()) for at in (0, rows[:, None])
    )  # fmt: skip
    shown, click = end - begin, clicks[end] - clicks[begin]
    mean = log.click.sum() / max(log.shown.sum(), 1)
    return np.asarray(((click - shown * mean) / (shown + 5.0)).reshape(len(rows), -1))


def leaks(log: Log, g: np.random.Generator) -> dict[str, Floats]:
    """Treatments that know what was clicked: alone, or beside an ordinary change of the model (sd .4)."""
    s, change = log.control, log.control + 0.4 * g.normal(size=log.control.shape)
    label, centred = log.click.astype(float), np.where(log.shown, log.click - log.rate, 0.0)
    memory, kind = log_rate(log, by_item(log)), log_rate(log, by_kind(log))
    return {
        "label, weight .02": s + 0.02 * label,
        "user × item memory, weight .02": s + 0.02 * memory,
        "user × item memory, weight .3": s + 0.3 * memory,
        "user × category rate, weight .3": s + 0.3 * kind,
        "label, weight 1, beside a change": change + label,
        "centred label, weight 1, beside a change": change + centred,
        "user × item mean, weight 3, beside a change": change + 3.0 * mean_rate(log, by_item(log)),
        "label, weight .3, beside a change": change + 0.3 * label,
        "centred label, weight .3, beside a change": change + 0.3 * centred,
        "user × item log rate, weight .3, beside a change": change + 0.3 * memory,
        "user × category log rate, weight .3, beside a change": change + 0.3 * kind,
        "user × category mean, weight 3, beside a change": change + 3.0 * mean_rate(log, by_kind(log)),
        "click rate of an item, beside a change": change + 0.3 * log_rate(log, log.item),
    }


DEMANDED = {
    "label, weight .02": 0.95, "user × item memory, weight .02": 0.95, "user × item memory, weight .3": 0.95,
    "user × category rate, weight .3": 0.95, "label, weight 1, beside a change": 0.9,
    "centred label, weight 1, beside a change": 0.9, "user × item mean, weight 3, beside a change": 0.9,
}  # fmt: skip


def right(world: World, g: np.random.Generator, rows: int) -> list[tuple[Log, dict[str, Floats]]]:
    """Treatments that do not know the draw, with their logs."""
    every = draw_log(world, g, rows * (DAYS + TRAINING_DAYS) // DAYS, DAYS + TRAINING_DAYS)
    log = every.since(TRAINING_DAYS)
    before = Log(*(column[every.day < TRAINING_DAYS] for column in every))
    change = log.control + 0.4 * g.normal(size=log.control.shape)
    trained = log_rate(log, by_kind(log), before, by_kind(before)) + log_rate(log, log.item, before, before.item)
    earlier = earlier_rate(every, by_kind(every), np.flatnonzero(every.day >= TRAINING_DAYS))
    learning = draw_log(world, g, rows, DAYS, learns=True)
    changed = learning.control + 0.4 * g.normal(size=learning.control.shape)
    return [
        (log, {
            "a new model": change,
            "trained on the days before the log": change + 0.5 * trained,
            "with the user's earlier displays as features": change + 3.0 * earlier,
        }),
        (learning, {"beside a control trained online": changed}),
    ]  # fmt: skip


# -- the test -----------------------------------------------------------------------------------------------------


class Tested(NamedTuple):
    """One treatment: z of both sums, and whether it fails."""

    z: Floats
    fails: bool
    capped_moment: bool  # does that test fail?


def tested(world: World, log: Log, treatments: Mapping[str, Floats]) -> dict[str, Tested]:
    """The audit of each treatment by itself."""
    columns: dict[str, Any] = {"click": log.click.sum(axis=1).astype(float), "user": log.user}
    lists = {"ranking": log.ranking.astype(np.int32), "control": log.control, **treatments}
    for name, values in lists.items():
        offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
        columns[name] = pa.ListArray.from_arrays(offsets, pa.array(values.ravel()))
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking"),
        control=world.control,
        treatment={name.replace(",", ";"): ft.PlackettLuce(name, temperature=1.0) for name in treatments},
    )
    folded = fold_for_check(test._chosen, open_log(pa.table(columns), test.settings), Work(threads=1))
    answers = {}
    for name, sums in zip(treatments, by_treatment(folded.aggregates).values(), strict=True):
        standing, findings = draw_standing(sums), {one.name: one for one in audit(sums).findings}
        assert not isinstance(standing, str), standing
        fails = [findings[test].outcome == "fail" for test in (knows_draw.NAME, "capped moment")]
        answers[name] = Tested(standing.z, *fails)
    return answers


def study_leaks(logs: int, rows: int = ROWS) -> dict[str, list[Tested]]:
    """Every leak on some logs of the first world."""
    answers = defaultdict(list)
    for number in range(logs):
        g = np.random.default_rng([SEED, 1, number])
        log = draw_log(WORLDS[0], g, rows, DAYS)
        for name, one in tested(WORLDS[0], log, leaks(log, g)).items():
            answers[name].append(one)
    return answers


def study_right(logs: int, rows: int = ROWS) -> dict[tuple[str, str], list[Tested]]:
    """Every right treatment on some logs of each world."""
    answers = defaultdict(list)
    for at, world in enumerate(WORLDS):
        for number in range(logs):
            for log, treatments in right(world, np.random.default_rng([SEED, 2, at, number]), rows):
                for name, one in tested(world, log, treatments).items():
                    answers[world.name, name].append(one)
    return answers


def report(of_leaks: Mapping[str, list[Tested]], of_right: Mapping[tuple[str, str], list[Tested]], cpu: float) -> str:
    """Both tables as Markdown."""
    z = np.array([one.z for many in of_right.values() for one in many])
    fails = sum(one.fails for many in of_right.values() for one in many)
    lines = [
        f"**Right treatments.** Of {len(z)} on logs of {ROWS:,} rows {fails} fail (aim: at most 2 of 300); the standard"
        f" deviation of z is {z[:, 0].std():.2f} for S₁ and {z[:, 1].std():.2f} for S₂ (aim: .9 to 1.1).",
        "",
        "| world | right treatment | logs | fail | sd of z, S₁ | sd of z, S₂ |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for (world, name), many in of_right.items():
        sd = np.std([one.z for one in many], axis=0)
        count = sum(one.fails for one in many)
        lines.append(f"| {world} | {name} | {len(many)} | {count} | {sd[0]:.2f} | {sd[1]:.2f} |")
    lines += [
        "",
        f"**Leaks.** Logs of {ROWS:,} rows ({WORLDS[0].name}) that fail `knows the draw`; the mean z of both sums.",
        "",
        "| the treatment's scores have | `knows the draw` fails | aim | z of S₁, S₂ | `capped moment` fails |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, many in of_leaks.items():
        mean = np.mean([one.z for one in many], axis=0)
        seen, moment = sum(one.fails for one in many), sum(one.capped_moment for one in many)
        aim = f"{DEMANDED[name] * len(many):.0f}" if name in DEMANDED else "none"
        lines.append(
            f"| {name} | {seen} of {len(many)} | {aim} | {mean[0]:+.1f}, {mean[1]:+.1f} | {moment} of {len(many)} |"
        )
    lines += [
        "",
        f"Seeds: from {SEED}, chosen beforehand. foretest {ft.__version__}, Python {platform.python_version()}, NumPy"
        f" {np.__version__}; {cpu:.0f} s of CPU time.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=LOGS)
    parser.add_argument("--right", type=int, default=RIGHT_LOGS)
    given = parser.parse_args()
    start = time.process_time()
    of_right, of_leaks = study_right(given.right), study_leaks(given.logs)
    text = report(of_leaks, of_right, time.process_time() - start)
    print(text)
    if (given.logs, given.right) == (LOGS, RIGHT_LOGS):
        into_page(DOCS / "measured" / "leaks.md", "leaks", text)


if __name__ == "__main__":
    main()
