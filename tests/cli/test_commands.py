"""The command line: what each command prints, writes and returns."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest
from foretest import cli
from foretest.cli.exit_codes import metric_conditions
from foretest.cli.options import VERDICTS
from foretest.offline.test import OfflineTest
from foretest.results.result import Control, Estimate, Metric
from foretest.settings.analysis import Analysis

FORETEST = str(Path(sys.executable).with_name("foretest"))

SETTINGS = """\
[log]
rewards = ["click"]
unit = "user"

[control]
policy = "logged"
prob = "control"

[treatment]
policy = "logged"
prob = "treatment"

[analysis]
estimators = ["ncis"]
n_resamples = 100
"""


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Ran]


@pytest.fixture
def foretest_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command in this process, in a folder with settings and three logs of known verdicts."""
    monkeypatch.chdir(tmp_path)
    Path("test.toml").write_text(SETTINGS, encoding="utf-8")
    for name, click_weight in (("up", 1.5), ("same", 1.0), ("down", 0.5)):
        pq.write_table(log(click_weight), f"{name}.parquet")

    def run(*args: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["foretest", *args])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        code = stop.value.code
        assert isinstance(code, int)
        return Ran(code, captured.out, captured.err)

    return run


def log(click_weight: float, rows: int = 2000) -> pa.Table:
    """Weights of mean 1 whose rewarded rows have the mean `click_weight`: a relative uplift of that less 1."""
    g = np.random.default_rng(5)
    click = np.arange(rows) % 4 == 0
    weight = np.where(click, click_weight, (4.0 - click_weight) / 3.0)
    # noise of mean 0 within pairs, so that the interval has a width
    weight += np.where((np.arange(rows) // 8) % 2 == 0, 0.1, -0.1) * (click_weight == 1.0)
    return pa.table(
        {
            "click": click,
            "sale": click & (g.random(rows) < 0.5),
            "user": np.arange(rows),
            "control": np.full(rows, 0.25),
            "treatment": 0.25 * weight,
        }
    )


COMMANDS: dict[str, list[str]] = {
    "": ["run", "check", "demo", "simulate", "--version"],
    "run": [
        "--config", "-c", "--out", "-o", "--json", "--fail-on", "--threads", "--cap", "--estimators", "--seed",
        "--quiet", "@FILE",
    ],
    "check": ["--config", "-c", "--json", "--threads", "--cap", "--quiet"],
    "plan": ["--config", "-c", "--json", "--threads", "--cap", "--quiet"],
    "aggregate": ["--config", "-c", "--out", "-o", "--threads", "--cap", "--quiet"],
    "pack": ["--config", "-c", "--out", "-o", "--cap", "--quiet"],
    "online": ["--config", "-c", "--out", "-o", "--json", "--fail-on", "--threads", "--quiet", "--sequential"],
    "history": ["--out", "-o", "--json", "--figures", "--threads", "--quiet"],
    "board": ["--out", "-o", "--json", "--quiet"],
    "demo": ["--out", "-o", "--rows", "--seed", "--quiet"],
    "paper": ["--out", "-o", "--world", "--tests", "--rows", "--seed", "--quiet"],
    "simulate": ["log"],
    "simulate log": ["--out", "-o", "--world", "--rows", "--seed", "--quiet"],
    "simulate history": ["--out", "-o", "--world", "--tests", "--rows", "--seed", "--aa", "--quiet"],
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_the_options(command: str, foretest_command: Command) -> None:
    ran = foretest_command(*command.split(), "--help")
    assert ran.code == 0
    assert ran.err == ""
    for option in COMMANDS[command]:
        assert option in ran.out
    assert all(len(line) <= 80 for line in ran.out.splitlines())


@pytest.mark.parametrize(
    ("words", "curve"), [(["1", ".6", ".4", ".3", ".2", ".1"], [1.0, 0.6, 0.4, 0.3, 0.2, 0.1]), (["fit"], "fit")]
)
def test_an_examination_curve_is_numbers_or_a_word(words: list[str], curve: Any, foretest_command: Command) -> None:
    foretest_command("simulate", "log", "--world", "reranker", "--rows", "200", "-o", "shop")
    ran = foretest_command("run", "shop/log.parquet", "-c", "shop/settings.toml", "--json", "--examination", *words)
    assert json.loads(ran.out)["settings"]["analysis"]["examination"] == curve


def test_an_examination_curve_of_numbers_and_words_is_refused(foretest_command: Command) -> None:
    ran = foretest_command("run", "up.parquet", "-c", "test.toml", "--examination", "1", "fit")
    assert ran.code == 2
    assert "--examination 1 fit: expected one number per slot, as in 1.0 0.6 0.4, or one word" in ran.err


def test_every_analysis_key_is_an_option(foretest_command: Command) -> None:
    for command in ("run", "check"):
        ran = foretest_command(command, "--help")
        for field in fields(Analysis):
            assert f"--{field.name.replace('_', '-')} " in ran.out


def test_version(foretest_command: Command) -> None:
    assert foretest_command("--version") == Ran(0, f"{foretest.__version__}\n", "")


def test_no_command_shows_the_help(foretest_command: Command) -> None:
    ran = foretest_command()
    assert ran.code == 0
    assert "foretest demo" in ran.out


# -- run --------------------------------------------------------------------------------------------------------------


def test_run_shows_a_table(foretest_command: Command) -> None:
    ran = foretest_command("run", "up.parquet", "-c", "test.toml")
    assert ran.code == 0
    assert ran.err == ""  # no progress where nobody would see it
    assert "2,000 displays, 2,000 units (user), 500 with click" in ran.out
    assert "positive" in ran.out
    assert "+50.0 %" in ran.out
    assert all(len(line) <= 100 for line in ran.out.splitlines())
    assert {path.name for path in Path().iterdir()} == {"test.toml", "up.parquet", "same.parquet", "down.parquet"}


def test_run_writes_its_own_file_and_no_other(foretest_command: Command) -> None:
    out = Path("out")
    out.mkdir()
    (out / "result.json").write_text("old", encoding="utf-8")
    (out / "mine.txt").write_text("mine", encoding="utf-8")
    ran = foretest_command("run", "up.parquet", "-c", "test.toml", "-o", "out")
    assert ran.code == 0
    assert ran.out.endswith("\nWritten: out/result.json, out/report.html\n")
    assert {path.name for path in out.iterdir()} == {"result.json", "report.html", "mine.txt"}
    assert (out / "mine.txt").read_text(encoding="utf-8") == "mine"
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert result["metrics"]["click"]["verdict"] == "positive"
    assert result["metrics"]["click"]["estimates"]["ncis"]["rel_effect_size"] == pytest.approx(0.5, rel=1e-12)
    assert stat.S_IMODE((out / "result.json").stat().st_mode) == 0o644


def test_run_makes_the_folder(foretest_command: Command) -> None:
    assert foretest_command("run", "up.parquet", "-c", "test.toml", "-o", "a/b").code == 0
    assert [str(path) for path in Path("a").rglob("*.json")] == ["a/b/result.json"]


def test_result_is_replaced_whole_or_not_at_all(foretest_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is written beside and renamed: when the rename fails, the old one is untouched and no other is left."""
    out = Path("out")
    out.mkdir()
    (out / "result.json").write_text("old", encoding="utf-8")

    def full(source: str, target: str) -> None:
        assert json.loads(Path(source).read_text(encoding="utf-8"))["schema"] == 1
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(os, "replace", full)
    ran = foretest_command("run", "up.parquet", "-c", "test.toml", "-o", "out")
    assert ran.code == 2
    assert ran.err == "foretest: out/result.json: No space left on device.\n"
    assert {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()} == {"result.json": "old"}


def test_json_is_alone_on_stdout(foretest_command: Command) -> None:
    ran = foretest_command("run", "up.parquet", "-c", "test.toml", "--json", "-o", "out")
    assert ran.code == 0
    assert ran.err == ""
    assert json.loads(ran.out) == json.loads(Path("out/result.json").read_text(encoding="utf-8"))
    assert set(json.loads(ran.out)) >= {"foretest", "schema", "log", "settings", "metrics", "health"}


def test_json_is_ours_even_with_fail_on(foretest_command: Command) -> None:
    ran = foretest_command("run", "down.parquet", "-c", "test.toml", "--json", "--fail-on", "negative")
    assert ran.code == 3
    assert json.loads(ran.out)["metrics"]["click"]["verdict"] == "negative"


@pytest.mark.parametrize(
    ("name", "verdict"), [("up", "positive"), ("same", "neutral"), ("down", "negative"), ("few", "insufficient")]
)
def test_fail_on(name: str, verdict: str, foretest_command: Command) -> None:
    pq.write_table(log(1.5, rows=40), "few.parquet")
    for word in VERDICTS:
        ran = foretest_command("run", f"{name}.parquet", "-c", "test.toml", "--fail-on", word)
        assert verdict in ran.out
        assert ran.code == (3 if word == verdict else 0)
    ran = foretest_command("run", f"{name}.parquet", "-c", "test.toml", "--fail-on", "negative, neutral,insufficient")
    assert ran.code == (0 if verdict == "positive" else 3)
    assert foretest_command("run", f"{name}.parquet", "-c", "test.toml").code == 0


def test_fail_on_leans_negative(foretest_command: Command) -> None:
    """Met by the word, `negative` or one that leans to it; of a goal that should decrease, by the other side."""
    goal = SETTINGS + '[metrics.click]\nrole = "goal"\ndirection = "decrease"\n'
    Path("less.toml").write_text(goal, encoding="utf-8")
    for name, plain, less in (("up", 0, 3), ("same", 0, 0), ("down", 3, 0)):
        for settings, code in (("test.toml", plain), ("less.toml", less)):
            ran = foretest_command("run", f"{name}.parquet", "-c", settings, "--json", "--fail-on", "leans-negative")
            assert ran.code == code
            metric = json.loads(ran.out)["metrics"]["click"]
            assert metric["estimates"][metric["headline"]]["word"].removeprefix("leans ") == metric["verdict"]
    ran = foretest_command("online", "up.parquet", "up.parquet", "-c", "test.toml", "--fail-on", "leans-negative")
    assert ran.code == 2  # online, words are verdicts


@pytest.mark.parametrize(
    ("verdict", "word", "role", "met"),
    [
        ("neutral", "leans negative", None, True),  # the range lies below 0, noise does not
        ("negative", "leans negative", None, True),
        ("negative", "negative", None, True),
        ("negative", "neutral", None, True),  # whatever fails on negative fails here too
        ("neutral", "leans positive", None, False),
        ("positive", "leans positive", {"role": "goal", "direction": "decrease"}, True),
        ("negative", "leans negative", {"role": "goal", "direction": "decrease"}, False),
        ("negative", "negative", {"role": "secondary", "direction": "increase"}, False),
        ("insufficient", "insufficient", None, False),
    ],
)
def test_what_meets_leans_negative(verdict: str, word: str, role: dict[str, Any] | None, met: bool) -> None:
    estimate = Estimate(*[None] * 8, verdict, [], None, word=word)  # type: ignore[arg-type]
    metric = Metric(Control(0.1, None, None, None), {"cis": estimate}, "cis", verdict, role=role)
    assert ("leans-negative" in metric_conditions(metric)) == met


def test_markdown_instead_of_the_table(foretest_command: Command) -> None:
    ran = foretest_command("run", "up.parquet", "-c", "test.toml", "--markdown", "-o", "out")
    assert ran.code == 0
    assert "| uplift | range | word |" in ran.out
    assert "Written" not in ran.out
    assert Path("out/result.json").exists()
    table = pq.read_table("down.parquet")
    users = pa.array(range(10**6, 10**6 + table.num_rows))
    place = table.column_names.index("user")
    pq.write_table(table.set_column(place, "user", users), "treatment.parquet")
    ran = foretest_command("online", "up.parquet", "treatment.parquet", "-c", "test.toml", "--markdown")
    assert "| estimator | treatment | uplift | 90 % interval | p | verdict |" in ran.out
    assert "range" not in ran.out
    ran = foretest_command("run", "up.parquet", "-c", "test.toml", "--markdown", "--json")
    assert ran == Ran(2, "", "foretest: --json and --markdown are both given: choose one of them.\n")


def test_fail_on_is_met_by_any_metric(foretest_command: Command) -> None:
    """Of two metrics one is negative: by half of the clicks the treatment loses, by the other half it wins."""
    table = log(1.0)
    click = np.asarray(table["click"])
    sale = click & (np.arange(len(click)) % 8 == 0)
    weight = np.where(sale, 0.5, np.where(click, 2.5, (4.0 - 1.5) / 3.0))
    table = table.set_column(1, "sale", pa.array(sale)).set_column(4, "treatment", pa.array(0.25 * weight))
    pq.write_table(table, "two.parquet")
    Path("two.toml").write_text(SETTINGS.replace('["click"]', '["click", "sale"]'), encoding="utf-8")
    ran = foretest_command("run", "two.parquet", "-c", "two.toml", "--json", "--fail-on", "negative")
    verdicts = {name: metric["verdict"] for name, metric in json.loads(ran.out)["metrics"].items()}
    assert verdicts == {"click": "positive", "sale": "negative"}
    assert ran.code == 3


@pytest.mark.parametrize(("name", "code"), [("up", 0), ("same", 3), ("down", 3)])
def test_fail_on_no_winner(name: str, code: int, foretest_command: Command) -> None:
    """Met where no treatment passes; of one treatment, where it does not."""
    ran = foretest_command("run", f"{name}.parquet", "-c", "test.toml", "--json", "--fail-on", "no-winner")
    assert ran.code == code
    assert json.loads(ran.out)["winner"] == (None if code else "treatment")
    guarded = SETTINGS + '[metrics.click]\nrole = "goal"\n[metrics.sale]\nrole = "guardrail"\nmargin = 0.01\n'
    Path("guarded.toml").write_text(guarded.replace('["click"]', '["click", "sale"]'), encoding="utf-8")
    table = pq.read_table(f"{name}.parquet")
    worse = pa.array(~np.asarray(table["click"]).astype(bool))
    pq.write_table(table.drop_columns(["sale"]).append_column("sale", worse), "guarded.parquet")
    ran = foretest_command("run", "guarded.parquet", "-c", "guarded.toml", "--fail-on", "no-winner")
    assert ran.code == 3  # sales are where no clicks are: the treatment that gains clicks loses sales
    assert "does not pass, because" in ran.out.splitlines()[0]


def test_fail_on_writes_its_result_first(foretest_command: Command) -> None:
    assert foretest_command("run", "down.parquet", "-c", "test.toml", "-o", "out", "--fail-on", "negative").code == 3
    assert Path("out/result.json").exists()


def test_overrides(foretest_command: Command) -> None:
    ran = foretest_command(
        "run", "same.parquet", "-c", "test.toml", "--json", "--cap", "0.5", "--estimators", "ncis", "cis",
        "--seed", "7", "--confidence-level", "0.5", "--headline", "cis", "--interval", "delta", "--r-max", "3",
    )  # fmt: skip
    assert ran.code == 0
    result = json.loads(ran.out)
    settings = result["settings"]["analysis"]
    assert settings["estimators"] == ["ncis", "cis"]
    assert (settings["cap"], settings["seed"], settings["confidence_level"]) == (0.5, 7, 0.5)
    assert (settings["interval"], settings["r_max"], settings["n_resamples"]) == ("delta", 3.0, 100)
    assert result["metrics"]["click"]["headline"] == "cis"
    # every weight is above 0.5, so that min(w, cap) is 0.5 in every row
    assert result["metrics"]["click"]["estimates"]["cis"]["rel_effect_size"] == pytest.approx(-0.5, rel=1e-12)
    assert result["health"]["capped_share"] == 1.0


def test_a_query_from_a_file(foretest_command: Command) -> None:
    """With a byte order mark, a comment and a semicolon, as editors and people write them."""
    query = "-- the first displays\nSELECT * FROM 'up.parquet'\nWHERE user < 1200;\n"
    Path("first.sql").write_text(query, encoding="utf-8-sig")
    ran = foretest_command("run", "--sql", "@first.sql", "-c", "test.toml", "--json")
    assert (ran.code, ran.err) == (0, "")
    result = json.loads(ran.out)
    assert (result["log"]["rows"], result["log"]["positives"]["click"]) == (1200, 300)
    assert result["provenance"]["command"] == "foretest run --sql @first.sql -c test.toml"


def test_several_logs_are_one(foretest_command: Command) -> None:
    pq.write_table(log(1.5).slice(0, 1200), "part-1.parquet")
    pq.write_table(log(1.5).slice(1200), "part-2.parquet")
    whole = json.loads(foretest_command("run", "up.parquet", "-c", "test.toml", "--json").out)
    parts = json.loads(
        foretest_command("run", "part-1.parquet", "part-2.parquet", "-c", "test.toml", "--json", "--threads", "2").out
    )
    pattern = json.loads(foretest_command("run", "part-?.parquet", "-c", "test.toml", "--json").out)
    estimate = whole["metrics"]["click"]["estimates"]["ncis"]
    for other in (parts, pattern):
        assert other["log"] == whole["log"]
        for key in ("treatment", "effect_size_ci_lower", "effect_size_ci_upper", "std_error"):
            assert other["metrics"]["click"]["estimates"]["ncis"][key] == pytest.approx(estimate[key], rel=1e-9)


# -- check ------------------------------------------------------------------------------------------------------------


def test_check(foretest_command: Command) -> None:
    ran = foretest_command("check", "up.parquet", "-c", "test.toml")
    assert ran.code == 0
    assert ran.err == ""
    assert "effective sample size" in ran.out
    assert ran.out.endswith("\nEvery row is readable, and the columns fit the settings.\n")
    assert "verdict" not in ran.out


def test_check_json(foretest_command: Command) -> None:
    ran = foretest_command("check", "up.parquet", "-c", "test.toml", "--json", "--cap", "2")
    document = json.loads(ran.out)
    assert ran.code == 0
    assert {"log", "settings", "health"} <= set(document)
    assert "metrics" not in document
    assert document["log"] == {"rows": 2000, "units": 2000, "positives": {"click": 500}}
    assert document["settings"]["analysis"]["cap"] == 2.0
    assert document["health"]["treatment_mass_kept"] == pytest.approx(1.0, rel=1e-12)


# -- simulated logs ---------------------------------------------------------------------------------------------------


def test_simulate_log(foretest_command: Command) -> None:
    ran = foretest_command("simulate", "log", "-o", "world", "--rows", "3000", "--world", "mild", "--seed", "3")
    assert ran.code == 0
    assert ran.err == ""
    assert ran.out.startswith("world: log.parquet (3,000 displays), settings.toml, truth.json (click ")
    assert ran.out.endswith("Next: foretest run world/log.parquet -c world/settings.toml\n")
    assert {path.name for path in Path("world").iterdir()} == {"log.parquet", "settings.toml", "truth.json"}
    checked = foretest_command("check", "world/log.parquet", "-c", "world/settings.toml", "--json")
    assert json.loads(checked.out)["log"]["rows"] == 3000


def test_demo(foretest_command: Command) -> None:
    ran = foretest_command("demo", "--rows", "5000", "-o", "shop")
    assert ran.code == 0
    assert ran.err == ""
    for words in ("5,000 displays", "the truth", "simulated", "true uplift", "Try next:", "foretest run shop/log"):
        assert words in ran.out
    assert {path.name for path in Path("shop").iterdir()} == {
        "log.parquet", "settings.toml", "truth.json", "result.json", "report.html",
    }  # fmt: skip
    assert ran.out.rstrip().endswith(" shop/report.html")
    # what it proposes to try does work
    proposed = [line.split() for line in ran.out.splitlines() if line.startswith("  foretest check")]
    assert foretest_command(*proposed[0][1:]).code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "names"),
    [
        (("demo",), ("log.parquet", "settings.toml", "truth.json")),
        (("simulate", "log", "--rows", "200", "--world", "browsing"), ("log.parquet", "settings.toml", "truth.json")),
        (("simulate", "history", "--rows", "300", "--tests", "1"),
         ("settings.toml", "manifest.toml", "truth.json", "test-001/treatment.parquet")),
        (("convert", "long", "long.parquet", "-c", "long.toml"), ("log.parquet", "settings.toml")),
    ],
    ids=["demo", "log", "history", "convert"],
)  # fmt: skip
def test_files_of_other_people_stay(
    foretest_command: Command, command: tuple[str, ...], names: tuple[str, ...]
) -> None:
    """Nothing is written beside a file of theirs; an unedited folder is overwritten; --replace replaces."""
    rows = {"display": [1, 1, 2, 2], "item": [1, 2, 1, 2], "slot": [1, None, 1, None], "click": [1, 0, 0, 0]}
    pq.write_table(pa.table({**rows, "s": [1.0] * 4}), "long.parquet")
    policy = 'policy = "plackett-luce"\nscores = "s"\n'
    Path("long.toml").write_text(
        '[log]\nlayout = "long"\ndisplay = "display"\nitem = "item"\nslot = "slot"\nrewards = ["click"]\n'
        f"[control]\n{policy}[treatment]\n{policy}", encoding="utf-8",
    )  # fmt: skip

    def content() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}

    for name in names:
        Path("out", name).parent.mkdir(parents=True, exist_ok=True)
        Path("out", name).write_text("mine", encoding="utf-8")
        before, ran = content(), foretest_command(*command, "-o", "out")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"foretest: out/{name}: already there, and not made by Foretest: it is not replaced.")
        assert content() == before
        Path("out", name).unlink()
    if command == ("demo",):  # which simulates a log as the next command does, and runs it
        return
    Path("out/notes.txt").write_text("mine", encoding="utf-8")
    assert foretest_command(*command, "-o", "out").code == 0
    assert foretest_command(*command, "-o", "out").code == 0
    Path("out", names[0]).write_bytes(Path("out", names[0]).read_bytes() + b"\n")
    before, ran = content(), foretest_command(*command, "-o", "out")
    assert (ran.code, content()) == (2, before)
    assert f"out/{names[0]}: already there, and " in ran.err
    assert foretest_command(*command, "-o", "out", "--replace").code == 0
    assert Path("out/notes.txt").read_text(encoding="utf-8") == "mine"


# -- mistakes ---------------------------------------------------------------------------------------------------------

RUN = ("run", "up.parquet", "-c", "test.toml")
COMMAND_NAMES = (
    "Available commands: board, convert, simulate, demo, history, init, run, check, ... See foretest --help."
)
MISTAKES: dict[tuple[str, ...], str] = {
    ("rnu", "up.parquet"): f'Unknown command "rnu". Did you mean "run"? {COMMAND_NAMES}',
    (
        "simulate",
        "lgo",
    ): 'Unknown command "lgo". Did you mean "log"? Available commands: log, history. See foretest simulate --help.',
    (*RUN, "--capp", "3"): "Unknown option: --capp. Did you mean --cap? See foretest run --help.",
    ("check", "up.parquet", "-c", "test.toml", "-o", "out"): "Unknown option: -o. See foretest check --help.",
    ("demo", "now"): "unexpected argument 'now'. See foretest demo --help.",
    ("run",): "run needs LOG or --sql: Files (Parquet, Arrow, CSV, JSON lines), folders or globs: one row per display."
    " Put them before the options. See foretest run --help.",
    ("run", "-c", "test.toml"): "run needs LOG or --sql: Files (Parquet, Arrow, CSV, JSON lines), folders or globs: one"
    " row per display. Put them before the options. See foretest run --help.",
    ("check", "up.parquet", "-c", "test.toml", "--sql", "FROM 'up.parquet'"): "LOG and --sql are both given: a query"
    " names its files itself, as in FROM 'log.parquet'.",
    (
        "run",
        "up.parquet",
    ): "run needs --config or -c: The settings file (TOML). foretest init LOG proposes one. See foretest run --help.",
    ("run", "up.parquet", "-c"): "-c needs a value. See foretest run --help.",
    (*RUN, "--cap", "much"): 'Invalid value for --cap: unable to convert "much" into a number or "auto".'
    " See foretest run --help.",
    (*RUN, "--fail-on", "negativ"): "--fail-on negativ: unknown condition. Did you mean 'negative'? Known: negative,"
    " neutral, insufficient, leans-negative, audit, unverified, guardrail, no-winner.",
    (*RUN, "--fail-on", "positive"): "--fail-on positive: unknown condition. Known: negative, neutral, insufficient,"
    " leans-negative, audit, unverified, guardrail, no-winner.",
    (*RUN, "--threads", "0"): "--threads 0: expected at least 1.",
    (*RUN, "--estimators", "nciss"): "on the command line: unknown estimator 'nciss'. Did you mean 'ncis'? Known: is,"
    " nis, dr, cis, ncis, piece-ncis, point-ncis, point-ncis-adaptive, iips, niips, rips, slot-ncis-adaptive,"
    " cascade-ncis-adaptive, point-dr-adaptive, cascade-dr, pbm, exposure-ncis-adaptive.",
    (*RUN, "--draws", "0"): "on the command line: draws = 0: expected a whole number of at least 2.",
    (*RUN, "-o", "up.parquet"): "up.parquet: is a file, expected a folder for the output. Give -o another name.",
    ("demo", "-o", "test.toml"): "test.toml: is a file, expected a folder for the output. Give -o another name.",
    ("demo", "--rows", "0"): "--rows 0: expected at least 1.",
    ("simulate", "log", "-o", "world", "--rows", "9", "--seed", "-1"): "--seed -1: expected at least 0.",
    ("simulate", "log", "-o", "world", "--world", "shrp"): "unknown world 'shrp'. Did you mean 'sharp'? Known: paper,"
    " mild, dense, rewards, sharp, no-overlap, reranker, browsing.",
    ("simulate", "log", "-o", "world", "--temperature", "-1"): "--temperature = -1.0: expected a number of at least 0.",
    ("paper", "-o", "study", "--world", "reranker"): "--world reranker: its clicks are no part of the paper's study."
    " Take one of paper, mild, dense, rewards, sharp, no-overlap.",
    ("simulate", "log"): "simulate log needs --out or -o: Folder for log.parquet, settings.toml and truth.json. See"
    " foretest simulate log --help.",
}


@pytest.mark.parametrize("args", MISTAKES)
def test_mistakes(args: tuple[str, ...], foretest_command: Command) -> None:
    before = sorted(Path().rglob("*"))
    assert foretest_command(*args) == Ran(2, "", f"foretest: {MISTAKES[args]}\n")
    assert sorted(Path().rglob("*")) == before


def test_output_below_a_file(foretest_command: Command) -> None:
    ran = foretest_command(*RUN, "-o", "test.toml/out")
    assert ran.code == 2
    assert ran.err.endswith("test.toml: is a file, expected a folder for the output. Give -o another name.\n")


def test_unwritable_folder_is_told_before_the_work(foretest_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("locked").mkdir(mode=0o555)
    if os.access("locked", os.W_OK):  # root may write anywhere
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked")
    monkeypatch.setattr(OfflineTest, "run", None)  # must not be reached
    ran = foretest_command(*RUN, "-o", "locked/out")
    assert ran.code == 2
    assert ran.err.endswith("locked: permission denied to write the output there. Give -o another folder.\n")
    assert list(Path("locked").iterdir()) == []


def test_full_disk(foretest_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    Path("out").mkdir()
    Path("out/result.json").write_text("old", encoding="utf-8")
    write = Path.write_bytes

    def full_at_the_page(self: Path, content: bytes) -> int:
        return full() if b"<html" in content else write(self, content)

    monkeypatch.setattr(Path, "write_bytes", full_at_the_page)
    ran = foretest_command(*RUN, "-o", "out")
    assert ran == Ran(2, "", "foretest: out/report.html: No space left on device.\n")
    assert [path.name for path in Path("out").iterdir()] == ["result.json"]  # both or neither
    assert Path("out/result.json").read_text(encoding="utf-8") == "old"
    monkeypatch.setattr("foretest.files._temporary_file", full)
    ran = foretest_command(*RUN, "-o", "out")
    assert ran == Ran(2, "", "foretest: out/result.json: No space left on device.\n")


def test_a_message_is_one_line(foretest_command: Command) -> None:
    Path("odd.toml").write_text(SETTINGS.replace('"click"', '"a\\nb"'), encoding="utf-8")
    ran = foretest_command("run", "up.parquet", "-c", "odd.toml")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("foretest: up.parquet: no column 'a b'. Expected ")


def test_stopped_by_the_user(foretest_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(OfflineTest, "run", interrupted)
    assert foretest_command(*RUN) == Ran(130, "", "foretest: stopped\n")


def test_a_bug_is_not_swallowed(foretest_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(OfflineTest, "run", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        foretest_command(*RUN)


# -- a real process ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_bug_has_exit_code_1_and_a_traceback(foretest_command: Command, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from foretest import cli\n"
        "from foretest.offline.test import OfflineTest\n"
        "def broken(*_, **__): raise RuntimeError('a bug')\n"
        "OfflineTest.run = broken\n"
        "sys.argv = ['foretest', 'run', 'up.parquet', '-c', 'test.toml']\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("RuntimeError: a bug\n")


@pytest.mark.slow
@pytest.mark.parametrize("log", [["down.parquet"], ["--sql", "FROM 'down.parquet'"]])
def test_piped(log: list[str], foretest_command: Command, tmp_path: Path) -> None:
    """Silent to the very end: what is left to the end of the process must not speak up on stderr either."""
    done = subprocess.run(
        [FORETEST, "run", *log, "-c", "test.toml", "--json", "--fail-on", "negative"], cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr == ""
    assert json.loads(done.stdout)["metrics"]["click"]["verdict"] == "negative"


@pytest.mark.slow
def test_reader_of_the_pipe_goes_away(foretest_command: Command, tmp_path: Path) -> None:
    with subprocess.Popen(
        [FORETEST, *RUN], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait() == 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_stdout_on_a_full_disk(foretest_command: Command, tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [FORETEST, *RUN], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "foretest: output: No space left on device.\n"


LONG = {
    "run": ["run", "up.parquet", "-c", "test.toml"],
    "check": ["check", "up.parquet", "-c", "test.toml"],
    "aggregate": ["aggregate", "up.parquet", "-c", "test.toml", "-o", "a.parquet"],
    "online": ["online", "up.parquet", "down.parquet", "-c", "test.toml"],
    "simulate log": ["simulate", "log", "--rows", "100", "-o", "shop"],
}


@pytest.mark.parametrize("command", LONG)
def test_a_line_a_minute_unless_quiet(command: str, foretest_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every batch takes a minute, a line follows each; --quiet leaves stderr empty."""
    if command == "online":
        for name in ("up", "down"):
            users = pa.array([f"{name} {row}" for row in range(2000)])
            pq.write_table(log(1.0).set_column(2, "user", users), f"{name}.parquet")
    monkeypatch.setattr("foretest.progress.SECONDS", 0.0)
    ran = foretest_command(*LONG[command])
    assert ran.code == 0
    rows = 100 if command == "simulate log" else 2000
    # what follows the last batch may take a while too: ", and at work on them"
    assert f": {rows:,} of {rows:,} rows" in ran.err.splitlines()[-1]
    ran = foretest_command(*LONG[command], "--quiet")
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.slow
def test_progress_on_a_terminal_only(foretest_command: Command, tmp_path: Path) -> None:
    """With a terminal as stderr there is a bar, and stdout is the same as without."""
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    done = subprocess.run(
        [FORETEST, *RUN, "--json"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=follower, check=False,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(follower)
    seen = os.read(leader, 100_000).decode()
    os.close(leader)
    assert done.returncode == 0
    assert "2,000 rows" in seen
    assert json.loads(done.stdout) == json.loads(foretest_command(*RUN, "--json").out)


# -- saved aggregates -------------------------------------------------------------------------------------------------


def test_aggregates_are_run_without_their_settings(foretest_command: Command) -> None:
    for name in ("up", "down"):
        ran = foretest_command("aggregate", f"{name}.parquet", "-c", "test.toml", "-o", f"made/{name}.parquet")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out == f"Written: made/{name}.parquet (2,000 displays). Next: foretest run made/{name}.parquet\n"
    both = foretest_command("run", "made", "--json")
    assert both.code == 0
    whole = json.loads(foretest_command("run", "up.parquet", "down.parquet", "-c", "test.toml", "--json").out)
    merged = json.loads(both.out)
    assert merged["log"] == whole["log"]
    assert merged["settings"] == whole["settings"]
    mine, theirs = (document["metrics"]["click"]["estimates"]["ncis"] for document in (merged, whole))
    for key in ("treatment", "std_error", "effect_size", "effect_size_ci_lower", "rel_effect_size_ci_upper"):
        assert mine[key] == pytest.approx(theirs[key], rel=1e-9)
    narrow = foretest_command("run", "made/up.parquet", "made/down.parquet", "-c", "test.toml", "--interval", "delta")
    assert narrow.code == 0
    assert foretest_command("run", "made/up.parquet", "--fail-on", "neutral").code == 0
    assert foretest_command("run", "made/up.parquet", "made/down.parquet", "-o", "out").code == 0
    assert Path("out/result.json").exists()


def test_aggregates_refuse_in_one_line(foretest_command: Command) -> None:
    foretest_command("aggregate", "up.parquet", "-c", "test.toml", "-o", "a.parquet")
    before = sorted(Path().rglob("*"))
    for args, sentence in {
        ("run", "a.parquet", "--cap", "50"): "a.parquet was made with cap = 100, the settings say 50. Once a log is"
        " folded, only confidence_level, interval, n_resamples, headline, gamma, gamma_slots, decide_on and"
        " ignore_audit can change:"
        " fold it again with foretest aggregate, or leave cap as it was.",
        ("run", "a.parquet", "up.parquet", "-c", "test.toml"): "a.parquet holds aggregates and up.parquet is a log:"
        " they cannot be mixed. Fold the log first, with foretest aggregate, then give its aggregates.",
        ("run", "a.parquet", "a.parquet"): "a.parquet: this file is named twice, so its rows would count twice. Leave"
        " one out.",
        ("check", "a.parquet", "-c", "test.toml"): "a.parquet: holds saved aggregates, expected a log. Aggregates are"
        " for foretest run.",
        ("aggregate", "up.parquet", "-o", "b.parquet"): "aggregate needs --config or -c: The settings file (TOML)."
        " foretest init LOG proposes one. See foretest aggregate --help.",
        ("aggregate", "up.parquet", "-c", "test.toml", "-o", "."): ".: is a folder, expected the name of a file for the"
        " output, as in -o ./name.parquet.",
        ("pack", "up.parquet", "-c", "test.toml", "-o", "up.parquet/x"): f"{Path('up.parquet').absolute()}: is a file,"
        " expected a folder for the output. Give -o another name.",
    }.items():  # fmt: skip
        assert foretest_command(*args) == Ran(2, "", f"foretest: {sentence}\n"), args
    assert sorted(Path().rglob("*")) == before
