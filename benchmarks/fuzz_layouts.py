"""Whole commands on what a log may be beside one row per display with scores: long logs, other policies, exposure."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from fuzz_commands import Command, as_run, log_command, write_some_form, write_table
from fuzz_damage import damage_bytes, damage_parquet, damage_table, damage_toml
from fuzz_policy_bases import SETTINGS, WORDS, policy_log

DISPLAYS, ITEMS, SLOTS = 40, 5, 2
_LONG = '[log]\nlayout = "long"\ndisplay = "view"\nitem = "item"\nslot = "place"\nrewards = ["click"]\nunit = "user"\n'
_POLICIES = '[control]\npolicy = "plackett-luce"\nscores = "old"\n[treatment]\npolicy = "{}"\nscores = "new"\n'
_ANALYSIS = "[analysis]\nn_resamples = 20\nbuckets = 16\ndraws = 16\n"
LONG = {
    "soft": f"{_LONG}{_POLICIES.format('plackett-luce')}{_ANALYSIS}",
    "rich": _LONG + 'features = ["v"]\nsegments = ["device"]\nitem_features = ["price"]\ndate = "day"\n'
    f"{_POLICIES.format('top-k')}{_ANALYSIS}examination = [1.0, 0.7]\n",
    "zero": _LONG.replace("place", "place0") + f"first_slot = 0\n{_POLICIES.format('epsilon-greedy')}epsilon = 0.1\n"
    f'{_ANALYSIS}predictions = "price"\n',
    "slots": f'{_LONG}[control]\npolicy = "logged-slots"\nprobs = "slot_prob"\n[treatment]\npolicy = "top-k"\n'
    f'scores = "new"\n{_ANALYSIS}estimators = ["iips"]\n',
}  # fmt: skip
TABLES = ("impressions", "candidates", "rewards")


def long_log(seed: int = 0) -> pa.Table:
    """One row per display and item, in any order."""
    g = np.random.default_rng(seed)
    n = DISPLAYS * ITEMS
    view, item = np.repeat(np.arange(DISPLAYS), ITEMS), np.tile(np.arange(ITEMS), DISPLAYS)
    old = g.normal(size=(DISPLAYS, ITEMS))
    ranks = np.argsort(np.argsort(-(old + g.gumbel(size=old.shape)), axis=1), axis=1).ravel()
    shown = ranks < SLOTS
    table = pa.table(
        {
            "view": [f"d{i}" for i in view], "item": item + 100,
            "place": pa.array(ranks + 1, mask=~shown), "place0": pa.array(ranks, mask=~shown),
            "click": np.where(shown, g.random(n) < 0.5, 0).astype(np.int64), "user": [f"u{i % 25}" for i in view],
            "old": old.ravel(), "new": old.ravel() + 0.5 * g.normal(size=n), "price": g.random(n),
            "v": (view % 7) / 7.0, "device": np.where(view % 2 == 0, "phone", "desk"),
            "day": [f"2026-03-0{1 + i % 3}" for i in view], "slot_prob": np.where(shown, 0.4, 0.0),
        }
    )  # fmt: skip
    return table.take(pa.array(g.permutation(n)))


def three_tables(table: pa.Table) -> dict[str, pa.Table]:
    """What was shown, what could have been, and what was earned."""
    shown = table.filter(pc.is_valid(table["place"]))
    items = ["view", "item", "old", "new", "price"]
    return {
        "impressions": shown.select([name for name in shown.column_names if name not in ("click", *items[2:])]),
        "candidates": table.select(items),
        "rewards": shown.filter(pc.greater(shown["click"], 0)).select(["view", "item", "click"]),
    }


def _settings(folder: Path, text: str) -> Path:
    place = folder / "settings.toml"
    place.write_text(text)
    return place


def _long(random: Random, bases: Path, folder: Path) -> Command:
    """A long log with odd values, types, names or rows, or damaged bytes; or damaged settings for it."""
    table = long_log(random.randrange(8))
    kind = random.choices(["columns", "bytes", "settings"], [6, 2, 2])[0]
    place = write_some_form(damage_table(table, random) if kind == "columns" else table, random, folder, "log")
    if kind == "bytes":
        damage = damage_parquet if place.suffix == ".parquet" else damage_bytes
        place.write_bytes(damage(place.read_bytes(), random))
    settings = _settings(folder, random.choice(list(LONG.values())))
    if kind == "settings":
        settings.write_bytes(damage_toml(settings.read_text(), random, WORDS))
    if random.random() < 0.15:
        return _converted(["convert", "long", str(place), "-c", str(settings)], folder)
    return log_command(random, settings, place)


def _long_tables(random: Random, bases: Path, folder: Path) -> Command:
    """A long log in three tables, one or two of which are damaged, or the settings that name them."""
    tables = three_tables(long_log(random.randrange(8)))
    for name in random.sample(TABLES, random.choice([0, 1, 1, 2])):
        tables[name] = damage_table(tables[name], random)
    places = {name: write_some_form(table, random, folder, name) for name, table in tables.items()}
    left_out = random.choice(["", "", "", "candidates", "rewards"])
    lines = [f'{name} = "{_table(random, place)}"' for name, place in places.items() if name != left_out]
    text = random.choice(list(LONG.values())) + "\n".join(["[log.tables]", *lines]) + "\n"
    settings = _settings(folder, text)
    if random.random() < 0.2:
        settings.write_bytes(damage_toml(text, random, WORDS))
    if random.random() < 0.15:
        return _converted(["convert", "long", "-c", str(settings)], folder)
    return log_command(random, settings)


def _long_files(random: Random, bases: Path, folder: Path) -> Command:
    """A long log in a folder of two files, of which one is damaged."""
    table, rows = long_log(random.randrange(8)), random.randrange(DISPLAYS * ITEMS)
    halves = [table.slice(0, rows), table.slice(rows)]
    at = random.randrange(2)
    halves[at] = damage_table(halves[at], random)
    (folder / "logs").mkdir()
    form = random.choice(["parquet", "csv", "jsonl", "arrow"])
    for half, name in zip(halves, "ab", strict=True):
        try:
            write_table(half, form, folder / "logs" / f"{name}.{form}")
        except (pa.ArrowException, TypeError, ValueError, KeyError):
            (folder / "logs" / f"{name}.{form}").write_bytes(b"")
    settings = _settings(folder, random.choice(list(LONG.values())))
    if random.random() < 0.15:
        return _converted(["convert", "long", str(folder / "logs"), "-c", str(settings)], folder)
    return log_command(random, settings, folder / "logs")


def _table(random: Random, place: Path) -> str:
    """A table by its file, its name beside the settings, or a query."""
    query = f"SELECT * FROM '{place}'" if place.suffix != ".arrow" else str(place)
    return random.choice([str(place), place.name, query])


def _converted(words: list[str], folder: Path) -> Command:
    """Convert, and check what was written."""
    out = folder / "out"
    then = ["check", str(out / "log.parquet"), "-c", str(out / "settings.toml"), "--json"]
    return Command([*words, "-o", str(out)], then)


def _policies(random: Random, bases: Path, folder: Path) -> Command:
    """A log with odd columns, for policies of other kinds and estimators by exposure."""
    place = write_some_form(damage_table(policy_log(random.randrange(8)), random), random, folder, "log")
    return log_command(random, _settings(folder, random.choice(list(SETTINGS.values()))), place)


def _policy_settings(random: Random, bases: Path, folder: Path) -> Command:
    """Damaged settings of such policies with a good log."""
    place = folder / "log.parquet"
    write_table(policy_log(random.randrange(8)), "parquet", place)
    settings = _settings(folder, "")
    settings.write_bytes(damage_toml(random.choice(list(SETTINGS.values())), random, WORDS))
    return log_command(random, settings, place)


def _open_bandit(random: Random, bases: Path, folder: Path) -> Command:
    """A damaged file of the Open Bandit Dataset, converted; what was written is checked."""
    g = np.random.default_rng(random.randrange(8))
    n = 60
    table = pa.table(
        {
            "": np.arange(n), "timestamp": ["2019-11-24 00:00:17.004101+00:00"] * n, "item_id": g.integers(0, 4, n),
            "position": g.integers(1, 4, n), "click": (g.random(n) < 0.3).astype(np.int64),
            "propensity_score": g.uniform(0.1, 0.3, n), "user_feature_0": ["81ce", "03a5"] * (n // 2),
            **{f"user-item_affinity_{i}": g.integers(0, 3, n) / 2 for i in range(4)},
        }
    )  # fmt: skip
    place = folder / "men.csv"
    by_columns = random.random() < 0.6
    write_table(damage_table(table, random) if by_columns else table, "csv", place)
    if not by_columns:
        place.write_bytes(damage_bytes(place.read_bytes(), random))
    return _converted(["convert", "open-bandit", str(place)], folder)


def _init(random: Random, bases: Path, folder: Path) -> Command:
    """A first look at a damaged log of any kind; the settings that it writes are used for a check."""
    table = random.choice([long_log, policy_log])(random.randrange(8))
    if random.random() < 0.5:  # few columns, so that names and types are guessed and not only counted
        names = random.sample(table.column_names, random.randint(3, len(table.column_names)))
        table = table.select([name for name in table.column_names if name in names])
    place = write_some_form(damage_table(table, random), random, folder, "log")
    if random.random() < 0.15:
        place.write_bytes(damage_bytes(place.read_bytes(), random))
    out = str(folder / "started.toml")
    return Command(["init", str(place), "-o", out], ["check", str(place), "-c", out, "--json"])


RUNS = {
    "run long": as_run(_long), "run long tables": as_run(_long_tables), "run long files": as_run(_long_files),
    "run policies": as_run(_policies),
    "run policy settings": as_run(_policy_settings), "convert open-bandit": as_run(_open_bandit),
    "init": as_run(_init),
}  # fmt: skip
SHARES = {
    "run long": 0.1, "run long tables": 0.08, "run long files": 0.04, "run policies": 0.13, "run policy settings": 0.07,
    "convert open-bandit": 0.03, "init": 0.03,
}  # fmt: skip
