"""The commands that `compare_trees.py` runs, and their inputs: lists of steps that follow each other."""

from __future__ import annotations

import shutil
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from fuzz_commands import write_table

from tests.convert.dsjson_text import cb_events, ccb_event, write_lines
from tests.convert.test_open_bandit import write_csv
from tests.feature_cases import FEATURES, HOLES, MORE, REFUSED, covering_cases, feature_log, settings_of, toml_of
from tests.long_log import long_log, short_log, three_tables

OLD_FILES = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "version-0.1.0"
WORLDS = ("paper", "mild", "dense", "rewards", "sharp", "no-overlap", "reranker", "browsing")
LOCAL = [name for name, feature in FEATURES.items() if feature.road is None]
UNFITTED = [name for name in LOCAL if name != "fitted control"]  # what may be saved
CLOSED = {*REFUSED, *HOLES}
ANY = [*LOCAL, *MORE]
PAIRS = 180  # drawn among all, beside the sets that cover those of the pairwise test
COPY = "copy"  # a step that is no command: a file takes the place of another
LONG = """
[log]
layout = "long"
display = "view"
item = "sku"
slot = "place"
rewards = ["click"]
unit = "user"
{more}
[control]
policy = "plackett-luce"
scores = "control_scores"

[treatment]
policy = "plackett-luce"
scores = "treatment_scores"

[analysis]
n_resamples = 60
"""


class Steps(NamedTuple):
    """Commands that follow each other, without the word foretest; OUT in a word is a folder for these steps alone."""

    name: str
    commands: list[list[str]]
    threads: int = 1


def write_inputs(folder: Path) -> list[Steps]:
    """Write all inputs, and give the steps that read them, with paths relative to the folder that `in` is in."""
    folder.mkdir(parents=True)
    logs = {False: feature_log(rows=400), True: feature_log(rows=400, loggers=True)}
    for several, table in logs.items():
        name = "loggers" if several else "log"
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=100)
        half = pa.compute.less_equal(table["day"], "2026-03-03")
        for i, rows in enumerate((table.filter(half), table.filter(pa.compute.invert(half)))):
            (folder / f"{name}-days").mkdir(exist_ok=True)
            pq.write_table(rows, folder / f"{name}-days" / f"{i}.parquet")
    return [
        *_settings_steps(folder), *_saved_steps(folder), *_form_steps(folder, logs[False]), *_option_steps(),
        *_online_steps(folder), *_history_steps(folder), *_world_steps(), *_conversion_steps(folder),
        *_old_file_steps(folder), *_fault_steps(folder), *_spark_steps(folder),
    ]  # fmt: skip


def _named(names: Any) -> str:
    return "-".join(name.replace(" ", "_") for name in names) or "plain"


def _settings(folder: Path, names: Any, **changes: Any) -> str:
    place = folder / "settings" / f"{_named(names)}.toml"
    place.parent.mkdir(exist_ok=True)
    place.write_text(toml_of(settings_of(names, **changes)), encoding="utf-8")
    return f"in/settings/{place.name}"


def _log(names: Any) -> str:
    return "loggers" if {"loggers", "undated loggers"} & set(names) else "log"


def _settings_steps(folder: Path) -> list[Steps]:
    """Runs of every feature alone, of pairs and of larger sets; checks and plans of some."""
    pairs = sorted(Random(0).sample(list(combinations(ANY, 2)), PAIRS))
    sets = covering_cases(LOCAL, CLOSED)
    steps = []
    for names in [(), *((name,) for name in ANY), *pairs, *sets]:
        words = [f"in/{_log(names)}.parquet", "-c", _settings(folder, names)]
        steps.append(Steps(f"run {_named(names)}", [["run", *words, "--json"]]))
        if len(names) <= 1 or len(names) > 2:
            steps.append(Steps(f"check {_named(names)}", [["check", *words, "--json"]]))
        if len(names) <= 1:
            steps.append(Steps(f"plan {_named(names)}", [["plan", *words, "--json"]]))
    for name in ("thinned", "losses", "loggers", "segments", "window"):
        words = [f"in/{_log([name])}.parquet", "-c", _settings(folder, [name])]
        steps.append(Steps(f"explore {name}", [["plan", *words, "--explore", "--uplift", "0.05", "--json"]]))
    return steps


def _saved_steps(folder: Path) -> list[Steps]:
    """Sums that are saved by day and merged, or go on where they stopped; packed logs."""
    steps = []
    for names in [(), *((name,) for name in LOCAL), *covering_cases(UNFITTED, CLOSED, size=4, seed=1)]:
        days, c = f"in/{_log(names)}-days", ["-c", _settings(folder, names)]
        saves = [["aggregate", f"{days}/{i}.parquet", *c, "-o", f"OUT/{i}.parquet"] for i in range(2)]
        merged = ["run", "OUT/0.parquet", "OUT/1.parquet", "--json"]
        steps.append(Steps(f"merged {_named(names)}", [*saves, merged, [*merged, "--interval", "delta"]]))
    broken = folder / "broken"
    broken.mkdir()
    shutil.copy(folder / "log-days" / "0.parquet", broken / "0.parquet")
    (broken / "1.parquet").write_bytes(b"PAR1 no Parquet")
    for names in ((), ("thinned", "segments")):
        save = ["aggregate", "OUT/log", "-c", _settings(folder, names), "-o", "OUT/sums.parquet"]
        steps.append(Steps(f"resumed {_named(names)}", [
            [COPY, "in/broken/0.parquet", "OUT/log/0.parquet"], [COPY, "in/broken/1.parquet", "OUT/log/1.parquet"],
            save, [COPY, "in/log-days/1.parquet", "OUT/log/1.parquet"], save, ["run", "OUT/sums.parquet", "--json"],
        ]))  # fmt: skip
    for names in ((), ("thinned",), ("losses",), ("own candidates",), ("loggers",), ("treatments", "segments")):
        words = ["-c", _settings(folder, names)]
        linear = ["--estimators", "cis", "point-ncis-adaptive"]
        steps.append(Steps(f"packed {_named(names)}", [
            ["pack", f"in/{_log(names)}.parquet", *words, "-o", "OUT/packed"],
            ["run", "OUT/packed", *words, "--json"], ["run", "OUT/packed", *words, *linear, "--json"],
        ]))  # fmt: skip
    return steps


def _form_steps(folder: Path, table: pa.Table) -> list[Steps]:
    """The same log as files of other kinds, from a query, as one row per item, and by more threads."""
    few = table.select([name for name in table.column_names if name not in ("ts", "clicked_at")])
    words = ["-c", _settings(folder, ("treatments",)), "--json"]
    steps = []
    for form in ("arrow", "csv", "jsonl"):
        write_table(few, form, folder / f"form.{form}")
        steps.append(Steps(f"run {form}", [["run", f"in/form.{form}", *words]]))
    steps += [
        Steps("run folder", [["run", "in/log-days", *words]]),
        Steps("run glob", [["run", "in/log-days/*.parquet", *words]]),
        Steps("run query", [["run", "--sql", "SELECT * FROM 'in/log.parquet' WHERE stratum = 1", *words]]),
    ]
    for names in ((), ("thinned", "treatments"), ("losses", "segments"), ("loggers",), ("fitted curve",)):
        more = [f"in/{_log(names)}.parquet", "-c", _settings(folder, names), "--json"]
        steps.append(Steps(f"threads {_named(names)}", [["run", *more]], threads=2))
    rows = long_log(short_log())
    pq.write_table(rows, folder / "long.parquet")
    (folder / "long.toml").write_text(LONG.format(more=""), encoding="utf-8")
    names = []
    for name, part in three_tables(rows).items():
        pq.write_table(part, folder / f"{name}.parquet")
        names.append(f'{name} = "{name}.parquet"')
    tables = "tables = {" + ", ".join(names) + "}"
    (folder / "tables.toml").write_text(LONG.format(more=tables), encoding="utf-8")
    long = [
        ["run", "in/long.parquet", "-c", "in/long.toml", "--json"],
        ["convert", "long", "in/long.parquet", "-c", "in/long.toml", "-o", "OUT/short"],
        ["run", "OUT/short/log.parquet", "-c", "OUT/short/settings.toml", "--json"],
        ["run", "-c", "in/tables.toml", "--json"],
    ]
    return [*steps, Steps("long layout", long)]


def _option_steps() -> list[Steps]:
    """Settings on the command line, forms of the output, conditions."""
    words = ["in/log.parquet", "-c", "in/settings/plain.toml"]
    options = [
        ["--confidence-level", "0.5"], ["--cap", "auto"], ["--weight-bound", "auto"], ["--estimators", "dr", "nis"],
        *(["--interval", interval, "--r-max", "60", "--estimators", "cis", "point-ncis-adaptive"]
          for interval in ("bernstein", "betting")), ["--seed", "5"],
        ["--gamma", "1.5"], ["--buckets", "16"], ["--headline", "ncis"], ["--normaliser", "exact"], ["--folds", "5"],
        ["--capping", "zero", "--estimators", "cis", "point-ncis"], ["--ignore-audit"],
    ]  # fmt: skip
    steps = [Steps(f"option {' '.join(option)}", [["run", *words, *option, "--json"]]) for option in options]
    return [
        *steps,
        Steps("text", [["run", *words]]),
        Steps("Markdown", [["run", *words, "--markdown"]]),
        Steps("conditions", [["run", *words, "--fail-on", "neutral,insufficient", "--json"]]),
        Steps("no report", [["run", *words, "-o", "OUT", "--no-report"]]),
        Steps("board", [["run", *words, "-o", "OUT/shop/offline"], ["board", "OUT", "--json"]]),
        Steps("check text", [["check", *words]]),
        Steps("plan text", [["plan", *words]]),
        Steps("help", [["run", "--help"]]),
    ]


ONLINE = {
    "plain": "", "covariate": 'covariate = "before"', "sequential": "sequential = true", "split": "split = [0.6, 0.4]",
}  # fmt: skip


def _online_steps(folder: Path) -> list[Steps]:
    """Two arms of the same control and of another, by features."""
    for arm, seed in (("control", 0), ("treatment", 5)):
        table = feature_log(rows=600, seed=seed)
        user = table["user"].to_numpy() + 1000 * seed
        before = np.random.default_rng(seed).normal(size=2_000_00)[user]
        at = table.schema.get_field_index("user")
        table = table.set_column(at, "user", pa.array(user)).append_column("before", pa.array(before))
        pq.write_table(table, folder / f"{arm}.parquet")
    arms = ["in/control.parquet", "in/treatment.parquet"]
    steps = []
    names_of_online = [(name,) for name in LOCAL if name not in ("loggers", "fitted curve", "fitted control")]
    more = [("thinned", "losses"), ("losses", "ratio"), ("thinned", "window"), ("per unit", "days"), ("signed",),
            ("winsorised",), ("roles",), ("delta",), ("no unit",)]  # fmt: skip
    for names in [(), *names_of_online, *more]:
        words = [*arms, "-c", _settings(folder, names), "--json"]
        steps.append(Steps(f"online {_named(names)}", [["online", *words]]))
    for name, lines in ONLINE.items():
        for names in ((), ("thinned",), ("losses", "days")):
            place = folder / "settings" / f"online-{name}-{_named(names)}.toml"
            place.write_text(f"{toml_of(settings_of(names))}\n[online]\n{lines}\n", encoding="utf-8")
            words = [*arms, "-c", f"in/settings/{place.name}", "--json"]
            steps.append(Steps(f"online {name} {_named(names)}", [["online", *words]]))
    return steps


def _history_steps(folder: Path) -> list[Steps]:
    """Histories that are simulated, of logs with features, and from results."""
    simulate = ["simulate", "history", "--tests", "4", "--rows", "1500", "--world", "mild", "-o", "OUT/tests"]
    agreement = ["history", "OUT/tests/manifest.toml", "-o", "OUT/agreement", "--json"]
    calibrated = ["run", "in/log.parquet", "-c", "in/settings/plain.toml", "--calibration",
                  "OUT/agreement/calibration.json", "--weight-bound", "20", "--json"]  # fmt: skip
    steps = [Steps("history", [simulate, agreement, agreement, calibrated])]
    for names in ((), ("thinned",), ("losses",), ("ratio",), ("days", "window")):
        tests = [
            f'[[test]]\nname = "{i}"\ncontrol = "control.parquet"\n{online}\n'
            for i, online in enumerate([
                'treatment = "treatment.parquet"', "online = {uplift = 0.03, std_error = 0.01}",
                "online = {control = {n = 500, mean = 0.4, variance = 0.3}, treatment = {n = 480, mean = 0.42,"
                " variance = 0.3}}",
            ])
        ]  # fmt: skip
        place = folder / f"manifest-{_named(names)}.toml"
        settings = _settings(folder, names).removeprefix("in/")
        place.write_text(f'settings = "{settings}"\n' + "\n".join(tests), encoding="utf-8")
        steps.append(Steps(f"history {_named(names)}", [["history", f"in/{place.name}", "-o", "OUT", "--json"]]))
    return steps


def _world_steps() -> list[Steps]:
    steps = [Steps("demo", [["demo", "--rows", "4000", "-o", "OUT"]])]
    for world in WORLDS:
        log, settings = "OUT/log.parquet", "OUT/settings.toml"
        steps.append(Steps(f"world {world}", [
            ["simulate", "log", "--world", world, "--rows", "1500", "-o", "OUT"],
            ["run", log, "-c", settings, "--json"],
        ]))  # fmt: skip
    return steps


def _conversion_steps(folder: Path) -> list[Steps]:
    """Logs of other shapes, and first looks at logs."""
    write_csv(folder / "bandit.csv")
    write_lines(folder / "events.json", cb_events(300))
    write_lines(folder / "slots.json", [ccb_event(EventId=f"c{i}") for i in range(50)])
    converted = ["run", "OUT/out/log.parquet", "-c", "OUT/out/settings.toml", "--json"]
    kinds = {"open-bandit": ["bandit.csv"], "dsjson": ["events.json", "slots.json"]}
    steps = [
        Steps(f"convert {name}", [["convert", kind, f"in/{name}", "-o", "OUT/out"], converted])
        for kind, names in kinds.items()
        for name in names
    ]
    few = pq.read_table(folder / "log.parquet", columns=["click", "user", "id", "day", "age"])
    pacsv.write_csv(few, folder / "few.csv")
    for name in ("log.parquet", "loggers.parquet", "few.csv", "long.parquet"):
        steps.append(Steps(f"init {name}", [["init", f"in/{name}", "-o", "OUT/settings.toml"]]))
    return steps


def _old_file_steps(folder: Path) -> list[Steps]:
    """Files of earlier versions."""
    shutil.copytree(OLD_FILES, folder / "old")
    two = ["in/old/loggers-1.parquet", "in/old/loggers-2.parquet"]
    packed = ["run", "in/old/packed", "-c", "in/old/packed.toml", "--json"]
    return [
        Steps("old rich", [["run", "in/old/rich.parquet", "--json"]]),
        Steps("old rich at 0.8", [["run", "in/old/rich.parquet", "--interval", "betting", "--confidence-level", "0.8",
                                   "--json"]]),
        Steps("old loggers", [["run", *two, "--json"]]),
        Steps("old and new", [
            ["aggregate", "in/old/loggers-log-2.parquet", "-c", "in/old/loggers.toml", "-o", "OUT/2.parquet"],
            ["run", two[0], "OUT/2.parquet", "--json"],
        ]),
        Steps("old packed", [packed, [*packed, "--estimators", "is", "cis", "point-ncis"]]),
        Steps("old calibration", [["run", "in/old/calibrated-log.parquet", "-c", "in/old/calibrated.toml",
                                   "--calibration", "in/old/calibration.json", "--json"]]),
    ]  # fmt: skip


def _fault_steps(folder: Path) -> list[Steps]:
    """What is refused, and the sentences."""
    faults: dict[str, dict[str, Any]] = {
        "no column": {"log": {"keep": "nowhere"}}, "no segment": {"log": {"segments": ["nowhere"]}},
        "keep above 1": {"log": {"keep": "age"}},
        "a loss": {"log": {"rewards": ["balance"], "slot_rewards": {"balance": "slot_balance"}}},
        "unknown key": {"analysis": {"windw": "2d"}}, "window alone": {"analysis": {"window": "2d"}},
        "no metric": {"metrics": {"net": {"sum": {"clik": 1.0}}}}, "no baseline": {"log": {"logger": "policy"}},
        "bounds": {"log": {"keep": "keep"}, "analysis": {"interval": "betting", "r_max": 60.0}},
    }  # fmt: skip
    steps = []
    for name, changes in faults.items():
        place = folder / "settings" / f"fault-{name.replace(' ', '_')}.toml"
        place.write_text(toml_of(settings_of((), **changes)), encoding="utf-8")
        steps.append(Steps(f"fault {name}", [["run", "in/log.parquet", "-c", f"in/settings/{place.name}", "--json"]]))
    return [*steps, Steps("no log", [["run", "in/nowhere.parquet", "-c", "in/settings/plain.toml"]])]


def _spark_steps(folder: Path) -> list[Steps]:
    steps = []
    for names in ((), ("thinned", "segments"), ("losses", "treatments"), ("loggers",)):
        words = [f"in/{_log(names)}.parquet", "-c", _settings(folder, names), "--engine", "spark"]
        steps.append(Steps(f"spark {_named(names)}", [["run", *words, "--json"]], threads=2))
    sums = ["aggregate", "in/log.parquet", "-c", "in/settings/plain.toml", "--engine", "spark", "-o", "OUT/s.parquet"]
    return [*steps, Steps("spark saved", [sums, ["run", "OUT/s.parquet", "--json"]], threads=2)]
