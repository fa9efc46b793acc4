"""How often are right logs questioned, and how often natural mistakes in treatment and rewards?

`python benchmarks/questions.py` draws logs of a control and a new model of many kinds, checks them as `foretest check`
does, and writes two tables into docs/explanation/audit.md, between two comments.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pages import DOCS, into_page

import foretest as ft
from foretest.simulate import WORLDS, World, draw_change, simulate_log

SEED = 20261117  # chosen before the first log was drawn
RIGHT, WRONG = 50, 20  # logs of a row of the tables
ROWS = 4_000
WRONG_ROWS = (20_000, 2_000)

Floats = npt.NDArray[np.float64]
Generator = np.random.Generator


class Log(NamedTuple):
    """A control and a new model on the same displays, as plain arrays; `users` have several displays."""

    control: Floats
    treatment: Floats
    shown: npt.NDArray[np.int64]
    click: Floats
    slot_click: Floats
    user: npt.NDArray[np.int64]


def draw_log(g: Generator, rows: int) -> Log:
    """Items of an appeal that both models know in part: each errs in its own way, on a scale of its own."""
    items, slots = int(g.integers(6, 25)), int(g.integers(1, 5))
    appeal = g.normal(size=(rows, items))

    def scores(knows: float, sharpness: float) -> Floats:
        return np.asarray(sharpness * (knows * appeal + np.sqrt(1.0 - knows**2) * g.normal(size=appeal.shape)))

    control = scores(g.uniform(0.3, 0.8), g.uniform(0.7, 2.0))
    treatment = scores(g.uniform(0.3, 0.9), control.std() * np.exp(0.5 * g.normal()))
    return shown_by(g, control, treatment, appeal, slots)


def shown_by(g: Generator, control: Floats, treatment: Floats, appeal: Floats, slots: int) -> Log:
    """What the control shows, and which slot is clicked."""
    rows = len(control)
    shown = np.argsort(-(control + g.gumbel(size=control.shape)), axis=1)[:, :slots]
    rate = 0.04 * np.exp(0.5 * np.take_along_axis(appeal, shown, axis=1)) / np.arange(1, slots + 1)
    slot_click = (g.random(rate.shape) < np.minimum(rate, 0.9)).astype(float)
    slot_click[np.cumsum(slot_click, axis=1) > 1.0] = 0.0
    return Log(control, treatment, shown, slot_click.sum(axis=1), slot_click, g.integers(0, rows // 2, rows))


def questions(log: Log, *, control: Any = None, treatment: Any = None, unit: str | None = "user") -> list[str]:
    """The kinds of questions that a check asks."""
    table = pa.table(
        {
            "control": pa.array(list(log.control)), "treatment": pa.array(list(log.treatment)),
            "ranking": pa.array(list(log.shown)), "click": log.click, "slot_click": pa.array(list(log.slot_click)),
            "user": log.user,
        }
    )  # fmt: skip
    columns = ft.LogColumns(rewards=["click"], unit=unit, ranking="ranking", slot_rewards={"click": "slot_click"})
    test = ft.OfflineTest(
        log=columns,
        control=control or ft.PlackettLuce("control"),
        treatment=treatment or ft.PlackettLuce("treatment"),
    )
    return list(test.check(table, threads=1).health["questions"])


# -- right logs -----------------------------------------------------------------------------------------------------


def world_log(world: World, g: Generator, rows: int) -> tuple[pa.Table, ft.LogColumns]:
    change = draw_change(world.changes, {group.name: group.touch_probability for group in world.groups}, g)
    world = replace(world, change=change, displays_per_user=float(g.choice([1.0, 3.0])))
    columns = ft.LogColumns(
        rewards=["click", "revenue"], unit="user", ranking="ranking", id="display_id", date="day",
        features=["group"], slot_rewards={"click": "slot_click"},
    )  # fmt: skip
    return pa.Table.from_batches(simulate_log(world, rows, int(g.integers(2**31)))), columns


def world_questions(table: pa.Table, columns: ft.LogColumns) -> list[str]:
    control, treatment = ft.PlackettLuce("control_scores"), ft.PlackettLuce("treatment_scores")
    test = ft.OfflineTest(log=columns, control=control, treatment=treatment)
    return list(test.check(table, threads=1).health["questions"])


def a_world(name: str) -> Callable[[Generator], list[str]]:
    return lambda g: world_questions(*world_log(WORLDS[name], g, ROWS))


def new_model(g: Generator) -> list[str]:
    return questions(draw_log(g, ROWS))


def greedier(g: Generator) -> list[str]:
    """The new model served at a temperature of its own, down to nearly always its best items."""
    temperature = float(np.exp(g.uniform(np.log(0.05), np.log(3.0))))
    return questions(draw_log(g, ROWS), treatment=ft.PlackettLuce("treatment", temperature))


def only_sorts(g: Generator) -> list[str]:
    """The new model as epsilon-greedy or Mallows, which read the order of scores alone; ranks serve as well."""
    log = draw_log(g, ROWS)
    if g.random() < 0.5:
        log = log._replace(treatment=np.argsort(np.argsort(log.treatment, axis=1), axis=1).astype(float))
    policy = ft.EpsilonGreedy("treatment", 0.2) if g.random() < 0.5 else ft.Mallows("treatment", 0.5)
    return questions(log, treatment=policy)


def in_every_shade(g: Generator) -> list[str]:
    """A new model that is far from the control in some displays and close to it in others, by its users' history."""
    log = draw_log(g, ROWS)
    far = g.beta(*g.uniform(0.5, 2.0, 2), (ROWS, 1))
    return questions(log._replace(treatment=(1.0 - far) * log.control + far * log.treatment))


def of_few_levels(g: Generator) -> list[str]:
    """Both models give one of a few levels, as stars: many items are tied."""
    g_log, levels = draw_log(g, ROWS), int(g.integers(2, 6))
    control, treatment = (
        np.floor(np.clip(levels * (0.5 + x / (3.0 * x.std())), 0, levels)) for x in (g_log.control, g_log.treatment)
    )
    log = shown_by(g, control, treatment, g_log.control, g_log.shown.shape[1])
    return questions(log)


def with_new_items(g: Generator) -> list[str]:
    """A new model that lifts items without a history, which the control has at the end of its lists."""
    log = draw_log(g, ROWS)
    is_new = g.random(log.control.shape) < g.uniform(0.05, 0.3)
    lifted = log.control + 0.5 * g.normal(size=is_new.shape) + log.control.std() * g.uniform(0.5, 3.0) * is_new
    return questions(log._replace(treatment=lifted))


def of_any_length(g: Generator) -> list[str]:
    """Lists of two items and more, half of the logs with five at most."""
    most = int(g.integers(3, 6)) if g.random() < 0.5 else 24
    log = draw_log(g, ROWS)
    control, treatment = log.control[:, :most], log.treatment[:, :most]
    lengths = g.integers(2, control.shape[1] + 1, ROWS)
    eligible = np.arange(control.shape[1]) < lengths[:, None]
    drawn = shown_by(g, np.where(eligible, control, -np.inf), treatment, control, 2)
    ragged: Any = [[row[:n] for row, n in zip(x, lengths, strict=True)] for x in (control, treatment)]
    return questions(drawn._replace(control=ragged[0], treatment=ragged[1]))


def mixed(g: Generator) -> list[str]:
    parts = [(0.8, ft.PlackettLuce("treatment")), (0.2, ft.PlackettLuce("control"))]
    return questions(draw_log(g, ROWS), treatment=ft.Mixture(parts))


def both_probabilities(g: Generator) -> list[str]:
    """Both models give probabilities, which are served at a low temperature: the control's, too, sum to 1."""
    g_log = draw_log(g, ROWS)
    control, treatment = softmax(g_log.control), softmax(g_log.treatment)
    log = shown_by(g, control / 0.1, treatment, g_log.control, g_log.shown.shape[1])._replace(control=control)
    return questions(log, control=ft.PlackettLuce("control", 0.1), treatment=ft.PlackettLuce("treatment", 0.1))


def rates_at_their_temperature(g: Generator) -> list[str]:
    """The new model gives click rates, and its settings the temperature at which they are served."""
    log = draw_log(g, ROWS)
    rates = 1.0 / (1.0 + np.exp(3.0 - 0.5 * log.treatment))
    scale = float(np.median(rates.std(axis=1)) / np.median(log.control.std(axis=1)))
    return questions(log._replace(treatment=rates), treatment=ft.PlackettLuce("treatment", scale))


def softmax(scores: Floats) -> Floats:
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


RIGHT_LOGS: dict[str, Callable[[Generator], list[str]]] = {
    **{f"world `{name}`, a new idea": a_world(name) for name in WORLDS if WORLDS[name].temperature > 0.0},
    "a new model of its own, on a scale of its own": new_model,
    "… at a temperature between 0.05 and 3": greedier,
    "… as epsilon-greedy or Mallows, from scores or ranks": only_sorts,
    "… on 80 % of displays (a mixture)": mixed,
    "… in lists of any length, from two items on": of_any_length,
    "a new model that is far from the control in some displays, in every shade": in_every_shade,
    "… that lifts new items": with_new_items,
    "both models give one of a few levels": of_few_levels,
    "both models give probabilities, at temperature 0.1": both_probabilities,
    "the new model gives click rates, at their own temperature": rates_at_their_temperature,
}


# -- mistakes -------------------------------------------------------------------------------------------------------


def with_treatment(change: Callable[[Generator, Floats], Floats]) -> Callable[[Generator, int], list[str]]:
    def asked(g: Generator, rows: int) -> list[str]:
        log = draw_log(g, rows)
        return questions(log._replace(treatment=change(g, log.treatment)))

    return asked


def in_a_part(
    share: float, change: Callable[[Generator, Floats], Floats], world: str | None = None
) -> Callable[[Generator, int], list[str]]:
    """A mistake in a share of the rows, of a world of a simulated recommender or of two models that know the appeal."""

    def asked(g: Generator, rows: int) -> list[str]:
        wrong = g.random(rows) < share
        if world is not None:
            table, columns = world_log(WORLDS[world], g, rows)
            scores = table["treatment_scores"].combine_chunks().flatten().to_numpy().reshape(rows, -1)
            scores = np.where(wrong[:, None], change(g, scores), scores)
            at = table.column_names.index("treatment_scores")
            return world_questions(table.set_column(at, "treatment_scores", pa.array(list(scores))), columns)
        log = draw_log(g, rows)
        return questions(log._replace(treatment=np.where(wrong[:, None], change(g, log.treatment), log.treatment)))

    return asked


def ranks(scores: Floats) -> Floats:
    return np.asarray(np.argsort(np.argsort(-scores, axis=1), axis=1) + 1.0)


def floored(g: Generator, rows: int) -> list[str]:
    """The control may not show the last item, and has e^-700 for it; the treatment shows it often."""
    log = draw_log(g, rows)
    control, treatment = log.control.copy(), log.treatment.copy()
    control[:, -1], treatment[:, -1] = -700.0, treatment.max(axis=1)
    return questions(shown_by(g, control, treatment, log.control, log.shown.shape[1]))


def totals(g: Generator, rows: int) -> list[str]:
    log = draw_log(g, rows)
    total = np.bincount(log.user, log.click, minlength=rows)[log.user]
    slots = np.zeros_like(log.slot_click)
    slots[:, 0] = total
    return questions(log._replace(click=total, slot_click=slots), unit="user")


def first_slot(g: Generator, rows: int) -> list[str]:
    log = draw_log(g, rows)
    while log.shown.shape[1] < 2:
        log = draw_log(g, rows)
    slots = np.zeros_like(log.slot_click)
    slots[:, 0] = log.click
    return questions(log._replace(slot_click=slots))


def clicked_only(g: Generator, rows: int) -> list[str]:
    log = draw_log(g, 30 * rows)
    rows_clicked = np.flatnonzero(log.click > 0)[:rows]
    return questions(Log(*(np.asarray(column)[rows_clicked] for column in log)))


def anonymous(g: Generator, rows: int) -> list[str]:
    """A quarter of the rows are of one id, which stands for all who are not logged in."""
    log = draw_log(g, rows)
    return questions(log._replace(user=np.where(g.random(rows) < 0.25, 0, log.user + 1)))


def bots(g: Generator, rows: int) -> list[str]:
    """Two fifths of the rows are of fewer than a hundredth of the users."""
    log = draw_log(g, rows)
    few = g.integers(0, max(1, rows // 400), rows)
    return questions(log._replace(user=np.where(g.random(rows) < 0.4, few, log.user)))


def no_unit(g: Generator, rows: int) -> list[str]:
    return questions(draw_log(g, rows), unit=None)


MISTAKES: dict[str, tuple[str, Callable[[Generator, int], list[str]]]] = {
    "treatment scores in another item order": (
        "order of items", with_treatment(lambda g, t: g.permuted(t, axis=1))),
    "… sorted": ("order of items", with_treatment(lambda g, t: -np.sort(-t, axis=1))),
    "… of another display": ("order of items", with_treatment(lambda g, t: np.roll(t, 1, axis=0))),
    **{
        f"{name} {where}": (kind, in_a_part(share, change, world))
        for where, world in (("in world `paper`", "paper"), ("of two models", None))
        for name, kind, share, change in (
            ("30 % of the treatment's scores in another item order,", "order of items in some displays", 0.3,
             lambda g, t: g.permuted(t, axis=1)),
            ("30 % filled with 0,", "equal scores in some displays", 0.3, lambda g, t: np.zeros_like(t)),
            ("20 % of the wrong sign,", "reversed scores in some displays", 0.2, lambda g, t: -t),
        )
    },
    "softmax outputs for scores": ("not scores", with_treatment(lambda g, t: softmax(t))),
    "click rates for scores": ("not scores", with_treatment(lambda g, t: 1.0 / (1.0 + np.exp(3.0 - 0.5 * t)))),
    "ranks for scores, 1 the best": ("not scores", with_treatment(lambda g, t: ranks(t))),
    "ranks for scores, M the best": ("not scores", with_treatment(lambda g, t: ranks(-t))),
    "scores in percent": ("another scale", with_treatment(lambda g, t: 100.0 * t)),
    "losses for scores": ("reversed scores", with_treatment(lambda g, t: -t)),
    "the control's scores for the treatment's": (
        "identical policies", lambda g, rows: questions((log := draw_log(g, rows))._replace(treatment=log.control))),
    "a control whose zeros are e⁻⁷⁰⁰": ("never shown", floored),
    "a user's total joined to every display": ("reward constant within units", totals),
    "rewards of displays written to slot 1": ("one slot earns all", first_slot),
    "rows without a click dropped": ("reward in every row", clicked_only),
    "a user column, and no unit": ("unit column", no_unit),
    "one id in a quarter of the rows": ("one unit has many rows", anonymous),
    "a hundredth of the users with two fifths of the rows": ("few units have most rows", bots),
}  # fmt: skip


def generator(*key: int) -> Generator:
    return np.random.default_rng([SEED, *key])


def right_table(count: int) -> list[str]:
    lines = ["| right log | logs | questioned | by |", "| --- | ---: | ---: | --- |"]
    total = 0
    for i, (name, draw) in enumerate(RIGHT_LOGS.items()):
        kinds: Counter[str] = Counter()
        logs = 0
        for seed in range(count):
            asked = draw(generator(0, i, seed))
            logs += bool(asked)
            kinds.update(set(asked))
        total += logs
        lines.append(f"| {name} | {count} | {logs} | {', '.join(f'{k} {n}' for k, n in kinds.items()) or 'none'} |")
    all_logs = count * len(RIGHT_LOGS)
    share = f"{total} are questioned ({total / all_logs:.1%})"
    head = f"**Right logs.** Of {all_logs:,} right logs of {ROWS:,} rows {share}."
    return [head, "", *lines]


def wrong_table(count: int) -> list[str]:
    sizes = " | ".join(f"{rows:,} rows" for rows in WRONG_ROWS)
    lines = [f"| mistake | question | {sizes} |", f"| --- | --- |{' ---: |' * len(WRONG_ROWS)}"]
    for i, (name, (kind, draw)) in enumerate(MISTAKES.items()):
        shares = []
        for rows in WRONG_ROWS:
            n = count if rows < 10_000 else max(1, count // 2)
            caught = sum(kind in draw(generator(1, i, rows, seed), rows) for seed in range(n))
            shares.append(f"{caught} of {n}")
        lines.append(f"| {name} | `{kind}` | {' | '.join(shares)} |")
    return ["**Mistakes.** Logs that are asked the question that names the mistake.", "", *lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--right", type=int, default=RIGHT, help="right logs of each kind")
    parser.add_argument("--wrong", type=int, default=WRONG, help="logs of each mistake")
    options = parser.parse_args()
    begin = time.process_time()
    lines = [*right_table(options.right), "", *wrong_table(options.wrong), ""]
    lines.append(
        f"Seeds: from {SEED}, chosen beforehand. foretest {ft.__version__}, Python {platform.python_version()}, NumPy"
        f" {np.__version__}; {time.process_time() - begin:.0f} s of CPU time."
    )
    text = "\n".join(lines)
    print(text)
    into_page(DOCS / "explanation/audit.md", "questions", text)


if __name__ == "__main__":
    main()
