"""Damaged input in small, and every finding of `make fuzz` so far: each gets one sentence."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
import fuzz
import fuzz_bases
import fuzz_commands
import fuzz_readers
import fuzz_runs

import foretest as ft
from foretest.aggregation.ledger import Account, Ledger
from foretest.aggregation.quantities import WEIGHTS
from foretest.calibration.file import Calibration
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.history.manifest import read_manifest
from foretest.settings.file import read_settings
from foretest.settings.winsorising import winsorising
from foretest.sources import AGGREGATES, open_source
from foretest.storage.saved.files import SavedFile
from foretest.storage.saved.json_values import digest

DEEP = "[" * 100_000 + "]" * 100_000
LONG = "9" * 5000  # digits: Python refuses to read such a number
HUGE = "1" + "0" * 400  # no float


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bases")
    fuzz_bases.write_bases(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shares", "inputs"), [(fuzz_readers.SHARES, 1500), (fuzz_runs.SHARES, 60)], ids=["readers", "runs"]
)
def test_no_input_ends_in_trouble(shares: dict[str, float], inputs: int, bases: Path, tmp_path: Path) -> None:
    study = fuzz.Study(0, bases, tmp_path / "input")
    study.run(shares, inputs=inputs, seconds=None)
    assert study.inputs.total() == inputs
    assert 0.3 * inputs < study.refused.total() < inputs  # some are damaged, some are still good
    assert study.troubles == {}, study.report(0.0)


@pytest.mark.parametrize(
    ("kind", "seed", "number"),
    [
        ("run columns", 19, 586), ("run text", 19, 755), ("run columns", 17, 13783), ("run settings", 19, 9340),
        ("run columns", 19, 10522), ("run text", 19, 11603), ("run text", 20, 9103), ("convert open-bandit", 31, 84),
        ("run long tables", 31, 204), ("run long tables", 31, 696), ("run long", 31, 771), ("init", 31, 917),
        ("run long tables", 31, 1396), ("run long", 31, 1712), ("run long tables", 31, 2932),
        ("run long tables", 32, 757), ("init", 32, 1783), ("run long", 22, 362), ("convert open-bandit", 22, 595),
        ("run long", 22, 2595), ("run long", 22, 3873), ("init", 33, 40), ("run long", 23, 2),
        ("run long tables", 24, 8385), ("run long tables", 25, 5578), ("run history", 25, 8594),
        ("run long", 26, 9488), ("run parquet", 60, 473), ("run long", 60, 17938),
        ("run history", 64, 1399), ("calibration", 63, 403618),
    ],
    ids=[
        "scores of 1e307 in a plan", "scores of 1e39", "a treatment without a finite uplift", "a bound above 2^64",
        "r_max of 1e308 and a small control", "scores of 1e40", "a score of NaN before a curve is fitted",
        "a folder after a failure", "a plan without a column", "an item column twice", "a day that is a map",
        "a column twice at first sight", "a reward twice", "a slot of 2^62", "a duration to be written",
        "a table of rewards without them", "a name with a null character",
        "a day that is null everywhere", "a name that is no text",
        "a duration of items", "a duration of items to be written", "a display that is null at first sight",
        "a feature without a value", "a date that Python does not have",
        "predictions of 5e-324", "a path with a line break in a manifest",
        "scores of 1e308 before a curve is fitted", "a text of a segment that is not UTF-8",
        "a batch of a segment without a unit of a smaller hash", "a path of 5,000 letters in a manifest",
        "settings of a calibration that are a list of pairs",
    ],
)  # fmt: skip
def test_inputs_that_were_trouble(kind: str, seed: int, number: int, bases: Path, tmp_path: Path) -> None:
    assert fuzz.one_input(kind, seed, number, bases, tmp_path / "input").trouble is None


def test_an_input_is_the_same_again(bases: Path, tmp_path: Path) -> None:
    contents = []
    for _ in range(2):
        fuzz.one_input("settings", 3, 7, bases, tmp_path / "input")
        contents.append((tmp_path / "input" / "settings.toml").read_bytes())
    assert contents[0] == contents[1]


def test_a_trouble_is_seen(bases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(fuzz_readers, "read_settings", broken)
    study = fuzz.Study(0, bases, tmp_path / "input")
    study.add("settings", 0)
    [(signature, (count, first, _))] = study.troubles.items()
    assert (signature.split(" at ")[0], count, first) == ("ZeroDivisionError", 1, "settings:0")


# -- findings ---------------------------------------------------------------------------------------------------------


def refused(read: Any, *arguments: Any) -> str:
    with pytest.raises(ft.BadInput) as caught:
        read(*arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (f"cap = {DEEP}", "not valid TOML: lists or tables are nested too deeply."),
        (f"cap = {LONG}", "not valid TOML: Exceeds the limit"),
        (f"cap = {HUGE}", f"[analysis] cap = {HUGE}: expected a number above 0."),
        ("buckets = 1000000000000", "[analysis] buckets = 1000000000000: expected a whole number of at most 16777216."),
        (
            "n_resamples = 1000000",
            "[analysis] n_resamples = 1000000 with buckets = 1024: a resample has a count for each",
        ),
        ("draws = 10000000", "[analysis] draws = 10000000: expected a whole number of at most 1000000."),
        ("seed = 18446744073709551616", "[analysis] seed = 18446744073709551616: expected a whole number of at most"),
    ],
    ids=["deep", "long", "huge", "buckets", "resamples", "draws", "seed"],
)
def test_settings(line: str, sentence: str, tmp_path: Path) -> None:
    place = tmp_path / "settings.toml"
    place.write_text(fuzz_bases.SETTINGS["plain"].partition("[analysis]")[0] + f"[analysis]\n{line}\n")
    assert refused(read_settings, place).startswith(f"{place}: {sentence}")


def test_a_huge_limit_of_a_reward() -> None:
    assert refused(winsorising, int(HUGE)).startswith(f"winsorise = {HUGE}: expected ")


@pytest.mark.parametrize("key", ["temperature", "share"])
def test_a_huge_number_of_a_policy(key: str) -> None:
    huge = int(HUGE)
    sentence = (
        refused(ft.PlackettLuce, "s", huge)
        if key == "temperature"
        else refused(ft.Mixture, [(huge, ft.PlackettLuce("s"))])
    )
    assert sentence == f"{key} = {huge}: expected a number above 0."


@pytest.mark.parametrize(
    "uplift", [HUGE, "NaN", "true", '"0.1"', DEEP, LONG], ids=["huge", "NaN", "bool", "text", "deep", "long"]
)
def test_the_truth_of_a_manifest(uplift: str, tmp_path: Path) -> None:
    (tmp_path / "truth.json").write_text('{"test 1": {"rel_uplift": %s}}' % uplift)  # noqa: UP031
    (tmp_path / "manifest.toml").write_text(fuzz_bases.MANIFEST)
    assert refused(read_manifest, tmp_path / "manifest.toml").endswith(
        'truth = "truth.json": expected JSON such as {"<test>": {"rel_uplift": 0.02}}.'
    )


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (HUGE, "damaged (gamma is no number): write it again"),
        (LONG, "no JSON of a calibration: write it again"),
        (DEEP, "no JSON of a calibration: write it again"),
        (f'1.2, "tests": {HUGE}', "damaged (tests is no count): write it again"),
    ],
    ids=["huge", "long", "deep", "tests"],
)
def test_a_calibration(value: str, sentence: str, tmp_path: Path) -> None:
    place = tmp_path / "calibration.json"
    text = json.dumps(fuzz_bases.calibration()).replace('"tests": 40, ', "" if "tests" in value else '"tests": 40, ')
    place.write_text(text.replace('"gamma": 1.2', f'"gamma": {value}'))
    assert refused(Calibration.read, place).startswith(f"{place}: {sentence}")


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("settings", "log"), None, "its header has a wrong settings"),
        (("settings", "log", "rewards"), 3, "rewards"),
        (("settings", "analysis", "no_such_key"), 3, "no_such_key"),
        (("treatments",), [], "its header has a wrong treatments"),
        (("policies", "treatment"), {}, "its header has a wrong policies"),
        (("estimators",), [3], "its header has a wrong estimators"),
        (("cap_choice",), {"a": 1}, "a"),
        (("kept",), {"x": 3}, "its header has a wrong kept"),
        (("r_max",), None, "its header has a wrong r_max"),
        (("settings", "control", "shares"), {"day": "x"}, "its header has wrong shares of loggers"),
    ],
    ids=lambda value: "/".join(value) if isinstance(value, tuple) else None,
)
def test_the_header_of_saved_sums(path: tuple[str, ...], value: Any, sentence: str, bases: Path) -> None:
    place = bases / "plain.sums.parquet"
    schema = pq.read_schema(place)
    document = json.loads(schema.metadata[AGGREGATES])
    table = document
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = value
    text = json.dumps(document).encode()
    changed = schema.with_metadata({AGGREGATES: text, b"foretest.checksum": digest(text).encode()})

    def read() -> None:
        file = SavedFile.of_schema(place, changed)
        file.plan(file.settings())

    said = refused(read)
    assert sentence in said
    assert said.startswith(f"{place}: damaged aggregates (") or "rewards" in sentence


def test_an_arrow_file_whose_offsets_point_outside(tmp_path: Path) -> None:
    """Reading on would crash the process."""
    place = tmp_path / "log.arrow"
    with pa.ipc.new_file(place, fuzz_bases.small_log().schema) as writer:
        writer.write_table(fuzz_bases.small_log())
    content = place.read_bytes()
    offsets = np.arange(0, 2 * 51, 2, dtype=np.int32).tobytes()  # of a list column of two items a row
    at = content.index(offsets)
    place.write_bytes(content[: at + 80] + np.int32(1 << 30).tobytes() + content[at + 84 :])
    test = ft.OfflineTest.from_settings(_settings(tmp_path))
    assert refused(test.run, str(place)).startswith(f"{place}: a damaged Arrow file (")


@pytest.mark.parametrize("reward", [1e308, 1e101])
def test_a_reward_whose_square_is_no_number(reward: float, tmp_path: Path) -> None:
    table = fuzz_bases.small_log()
    values = table["revenue"].to_pylist()
    values[3] = reward
    table = table.set_column(table.column_names.index("click"), "click", pa.array(values))
    test = ft.OfflineTest.from_settings(_settings(tmp_path))
    assert f"row 3 (the first row is 0): the reward is {reward:g}, beyond 1e+100" in refused(test.run, table)


def test_weights_beyond_a_float_give_no_warning(tmp_path: Path) -> None:
    """`is` overflows where scores are a thousand apart: it has no value, and the others have theirs."""
    table = fuzz_bases.small_log()
    far = [[2000.0 * (place == shown[0]) for place in range(4)] for shown in table["ranking"].to_pylist()]
    low = [[-2000.0 * (place == shown[0]) for place in range(4)] for shown in table["ranking"].to_pylist()]
    for name, scores in (("treatment_scores", far), ("control_scores", low)):
        table = table.set_column(table.column_names.index(name), name, pa.array(scores))
    result = ft.OfflineTest.from_settings(_settings(tmp_path)).run(table)
    document = json.loads(result.to_json(), parse_constant=lambda word: pytest.fail(word))
    assert document["metrics"]["click"]["estimates"]["is"]["std_error"] is None


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view(), pa.list_view(pa.float64())], ids=str)
def test_packing_columns_of_views(kind: pa.DataType, tmp_path: Path) -> None:
    table = fuzz_bases.small_log()
    values = table["v"].to_pylist()
    more = (
        [[v] for v in values]
        if pa.types.is_list_view(kind)
        else [str(v) if kind == "string_view" else b"x" for v in values]
    )
    table = table.append_column("more", pa.array(more, kind))
    ft.OfflineTest.from_settings(_settings(tmp_path)).pack(table, tmp_path / "packed")
    packed = [pq.read_table(tmp_path / "packed" / name) for name in ("rewarded.parquet", "rest.parquet")]
    assert sum(map(len, packed)) == len(table)


def test_an_empty_text_among_the_strata(tmp_path: Path) -> None:
    table = fuzz_bases.small_log()
    countries = ["" if row < 20 else None if row < 30 else "fr" for row in range(len(table))]
    table = table.set_column(table.column_names.index("country"), "country", pa.array(countries))
    settings = _settings(tmp_path)
    settings = dataclasses.replace(
        settings, analysis=settings.analysis.replace(estimators=("piece-ncis",), strata="country")
    )
    [estimate] = ft.OfflineTest.from_settings(settings).run(table).metrics["click"].estimates.values()
    assert [(stratum["label"], round(stratum["share"] * len(table))) for stratum in estimate.strata or []] == [
        ("", 20), ("fr", len(table) - 30), ("null", 10)
    ]  # fmt: skip


def test_the_path_of_weights_beyond_single_precision(tmp_path: Path) -> None:
    """Scores of 1e300 have logarithms of weights that single precision lacks: 0 or infinite, without a warning."""
    table = fuzz_bases.small_log()
    scores = [[1e300 * (place == shown[1]) for place in range(4)] for shown in table["ranking"].to_pylist()]
    at = table.column_names.index("treatment_scores")
    table = table.set_column(at, "treatment_scores", pa.array(scores))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ft.OfflineTest.from_settings(_settings(tmp_path)).run(table, threads=1).to_json()


@pytest.mark.parametrize("kind", [pa.string_view(), pa.list_(pa.string_view())], ids=str)
def test_a_fault_in_a_log_with_views(kind: pa.DataType, tmp_path: Path) -> None:
    """To find all rows of a fault, rows are taken out of a batch."""
    table = fuzz_bases.small_log()
    settings = _settings(tmp_path)
    if kind == pa.string_view():
        table = table.set_column(table.column_names.index("user"), "user", table["user"].cast(kind))
    else:
        for name in ("shown", "items"):
            texts = pa.array([[str(item) for item in items] for items in table[name].to_pylist()], kind)
            table = table.set_column(table.column_names.index(name), name, texts)
        settings = dataclasses.replace(
            settings, log=dataclasses.replace(settings.log, ranking="shown", candidates="items")
        )
    clicks = [None if row in (3, 7) else click for row, click in enumerate(table["click"].to_pylist())]
    table = table.set_column(table.column_names.index("click"), "click", pa.array(clicks))
    sentence = refused(ft.OfflineTest.from_settings(settings).run, table)
    assert "row 3 (the first row is 0)" in sentence
    assert "2 rows have this fault" in sentence


def test_thurstone_with_scores_hundreds_of_sigma_apart() -> None:
    """A grid over the whole line took 30 ms for each ranking; those of a check are thousands."""
    rankings = np.array([(first, second) for first in range(4) for second in range(4) if first != second], np.int32)
    shown = Ragged.of(list(np.tile(rankings, (25, 1))))
    scores = Ragged.of([np.array([0.5, 700.0, 0.1, -0.9])] * len(shown))
    displays = Displays({"s": scores}, shown, scores.lengths, np.arange(len(shown), dtype=np.uint64))
    log_p = ft.Thurstone("s", 1.2).log_prob(displays, shown)
    assert np.exp(log_p[:12]).sum() == pytest.approx(1.0, abs=1e-12)


def test_slot_marginals_of_scores_beyond_any_step() -> None:
    """The race of noisy scores jumps from 1e308 to 0, where it would never arrive by steps."""
    shown = Ragged.of([np.arange(3, dtype=np.int32)])
    scores = Ragged.of([np.array([0.0, 1e308, 0.0])])
    displays = Displays({"s": scores}, shown, scores.lengths, np.zeros(1, np.uint64))
    marginals = ft.Thurstone("s").slot_marginals(displays).flat().reshape(3, 3)
    assert marginals == pytest.approx(np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.5, 0.0, 0.5]]), abs=1e-12)


def test_sums_whose_units_are_beyond_any_integer_of_the_machine() -> None:
    """Weights of scores of 1e300 in one batch, plain weights in the next."""
    account, tiny = Account(), Account(exponent=-(10**299))
    account.put(WEIGHTS, account.scaled(np.array([-1e300])).sum())
    account.put(WEIGHTS, account.scaled(np.array([0.0])).sum())
    tiny.put(WEIGHTS, 1.0)
    total = Ledger.total([Ledger(1, {(None, None): part}) for part in (account, tiny)]).plain
    assert total.total(WEIGHTS) * np.exp(total.log_unit) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("key", ["settings", "control", "treatment", "truth"])
@pytest.mark.parametrize("path", ["a\\u0000b", "a\\u0000b/log.parquet", "a\\u0000b/*.parquet"])
def test_a_null_character_in_a_path_of_a_manifest(path: str, key: str, bases: Path, tmp_path: Path) -> None:
    for name in ("log.parquet", "treatment.parquet", "settings.toml", "truth.json"):
        shutil.copy(bases / name, tmp_path / name)
    lines = [f'{key} = "{path}"' if line.startswith(f"{key} =") else line for line in fuzz_bases.MANIFEST.splitlines()]
    place = tmp_path / "manifest.toml"
    place.write_text("\n".join(lines))
    outcome = fuzz_commands.run_command(["history", str(place), "-o", str(tmp_path / "out")], tmp_path)
    assert outcome == (True, None)
    sentence = refused(ft.run_history, place)
    assert sentence.endswith(": no file can have this path: it has a null character or a lone surrogate.")


@pytest.mark.parametrize("read", [read_settings, Calibration.read, open_source], ids=["settings", "calibration", "log"])
@pytest.mark.parametrize("path", ["a\0b", "a\0b/*", "\ud800"], ids=["null", "folder", "surrogate"])
def test_a_path_that_no_file_can_have(path: str, read: Any) -> None:
    assert refused(read, path).startswith(f"{path!r}: no file can have this path")


def test_a_path_that_is_too_long() -> None:
    path = "x" * 5_000
    assert refused(open_source, path) == f"{path}: cannot be read (File name too long)."


@pytest.mark.parametrize("command", ["pack", "convert"])
def test_a_column_of_a_type_that_parquet_does_not_have(command: str, tmp_path: Path) -> None:
    table = pa.table({
        "click": [1.0, 0.0], "p": [0.5, 0.5], "display": [1, 2], "item": [7, 8], "slot": [1, 1], "s": [0.1, 0.2],
        "gap": pa.array([None, None], pa.month_day_nano_interval()),
    })  # fmt: skip
    fuzz_commands.write_table(table, "arrow", tmp_path / "log.arrow")
    long = 'layout = "long"\ndisplay = "display"\nitem = "item"\nslot = "slot"\nfeatures = ["gap"]'
    policy = ('policy = "plackett-luce"\nscores = "s"', 'policy = "logged"\nprob = "p"')[command == "pack"]
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[log]\nrewards = ["click"]\n{long if command == "convert" else ""}\n'
                        f"[control]\n{policy}\n[treatment]\n{policy}\n")  # fmt: skip
    words = ["convert", "long"] if command == "convert" else ["pack"]
    words += [str(tmp_path / "log.arrow"), "-c", str(settings), "-o", str(tmp_path / "out")]
    assert fuzz_commands.run_command(words, tmp_path) == (True, None)


def test_the_home_of_nobody() -> None:
    assert refused(open_source, "~no-such-user/log.parquet").startswith("~no-such-user/log.parquet: no such file")


def _settings(folder: Path) -> ft.Settings:
    place = folder / "settings.toml"
    place.write_text(fuzz_bases.SETTINGS["plain"])
    return read_settings(place)


# -- what reading the code has shown: no damage that is random makes it ----------------------------------------------

PLAIN = fuzz_bases.SETTINGS["plain"]


def ended(settings: str, table: pa.Table, folder: Path, command: str = "run") -> fuzz_commands.Outcome:
    """How a command on a log in Arrow's own format ended, which takes all types."""
    (folder / "settings.toml").write_text(settings)
    fuzz_commands.write_table(table, "arrow", folder / "log.arrow")
    words = [command, str(folder / "log.arrow"), "-c", str(folder / "settings.toml"), "--json", "--threads", "1"]
    return fuzz_commands.run_command(words, folder)


def refused_settings(settings: str, folder: Path, expected: str) -> None:
    (folder / "settings.toml").write_text(settings)
    with pytest.raises(ft.BadInput, match=expected):
        ft.OfflineTest.from_toml(folder / "settings.toml")


@pytest.mark.parametrize("key", ["cap", "seed", "r_max", "gamma", "headline"])
def test_whole_numbers_without_end_in_settings(key: str, tmp_path: Path) -> None:
    refused_settings(f"{PLAIN}{key} = 0x{'f' * 5000}\n", tmp_path, "not valid TOML: a whole number of 20,000 bits")


def test_tables_in_tables_without_end(tmp_path: Path) -> None:
    refused_settings(f"{PLAIN}[analysis.cap{'.a' * 3000}]\n", tmp_path, "nested too deeply")


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_is_of_another_year_in_utc(time: str, tmp_path: Path) -> None:
    settings = PLAIN.replace("[log]\n", f'[log]\ntime = "day"\nread_at = "{time}"\n')
    refused_settings(settings, tmp_path, "read_at = .*: expected a time")


def test_sums_of_sums_without_end(tmp_path: Path) -> None:
    chain = "".join(f"[metrics.m{i}]\nsum = {{m{i - 1} = 1.0}}\n" for i in range(1499, 0, -1))
    refused_settings(f"{PLAIN}{chain}[metrics.m0]\nsum = {{click = 1.0}}\n", tmp_path, "more than 200 deep")


def test_sums_that_are_met_on_many_ways(tmp_path: Path) -> None:
    pairs = "".join(f"[metrics.m{i}]\nsum = {{m{i - 1} = 1.0, m{i - 2} = 1.0}}\n" for i in range(2, 45))
    ends = "".join(f"[metrics.m{i}]\nsum = {{click = 1.0}}\n" for i in range(2))
    (tmp_path / "settings.toml").write_text(f"{PLAIN}{ends}{pairs}")
    parts = {part.name: part for part in read_settings(tmp_path / "settings.toml").definitions.parts}
    assert parts["m44"].terms[0].share == 1_134_903_170  # Fibonacci's 45th number; by recursion it took hours


def test_factors_beyond_a_reward(tmp_path: Path) -> None:
    for factors in ("{click = 1e300}", "{click = 5e-324}"):
        refused_settings(f"{PLAIN}[metrics.a]\nsum = {factors}\n", tmp_path, "sum: click counts .* times")
    product = f"{PLAIN}[metrics.a]\nsum = {{click = 1e99}}\n[metrics.b]\nsum = {{a = 1e99}}\n"
    refused_settings(product, tmp_path, r"\[metrics.b\] sum: click counts 1e\+198 times")


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-200])
@pytest.mark.parametrize("command", ["run", "plan"])
def test_rewards_whose_squares_are_nothing(scale: float, command: str, tmp_path: Path) -> None:
    """Their variance was 0: an uplift of noise was certain, and a plan ended in a traceback."""
    log = fuzz_bases.small_log()
    tiny = log.set_column(0, "click", pa.array(np.asarray(log["click"]) * scale))
    outcome = ended(PLAIN, tiny, tmp_path, command)
    assert outcome.trouble is None
    assert outcome.refused


def test_large_rewards_of_both_signs(tmp_path: Path) -> None:
    """Their sum is 0, which was taken for a sign that none is large."""
    log = fuzz_bases.small_log()
    large = log.set_column(log.column_names.index("v"), "v", pa.array([1e200, -1e200] * (len(log) // 2)))
    outcome = ended(PLAIN.replace('"click"', '"v"') + "[metrics.v]\nsigned = true\n", large, tmp_path)
    assert (outcome.refused, outcome.trouble) == (True, None)


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_times_beyond_the_year_9999(unit: str, tmp_path: Path) -> None:
    log, per_second = fuzz_bases.small_log(), {"s": 1, "ms": 10**3, "us": 10**6}[unit]
    times = pa.array([253_402_300_800 * per_second] * len(log), pa.timestamp(unit))
    settings = PLAIN.replace("[log]\n", '[log]\ntime = "at"\nreward_age = "v"\n')
    outcome = ended(settings, log.append_column("at", times), tmp_path)
    assert (outcome.refused, outcome.trouble) == (True, None)


@pytest.mark.parametrize("column", ["items", "shown"])
@pytest.mark.parametrize("is_used", [True, False])
def test_a_null_in_the_dictionary_of_a_list(column: str, is_used: bool, tmp_path: Path) -> None:
    """Its code was a place in memory: the process ended."""
    log = fuzz_bases.small_log()
    lists = log[column].combine_chunks()
    codes = np.asarray(lists.values) - 9
    if is_used:
        codes[3] = 0
    values = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array([None, 10, 11, 12, 13]))
    damaged = pa.ListArray.from_arrays(lists.offsets, values)
    table = log.set_column(log.column_names.index(column), column, damaged)
    outcome = ended(fuzz_bases.SETTINGS["mixture"], table, tmp_path)
    assert (outcome.refused, outcome.trouble) == (is_used, None)


def test_strata_and_segments_of_a_dictionary_with_values_that_no_row_has(tmp_path: Path) -> None:
    log = fuzz_bases.small_log()
    codes = pa.array([i % 2 for i in range(len(log))], pa.int16())
    labels = pa.array([*("fr", "de"), *(f"{i}" for i in range(2000)), None], pa.string_view())
    countries = pa.DictionaryArray.from_arrays(codes, labels)
    table = log.set_column(log.column_names.index("country"), "country", countries)
    outcome = ended(fuzz_bases.SETTINGS["rich"], table, tmp_path)
    assert (outcome.refused, outcome.trouble) == (False, None)


@pytest.mark.parametrize("number", ["5e-324", "1e-31", "1e31", "1.7e308"])
def test_noise_on_a_scale_whose_inverse_is_no_number(number: str, tmp_path: Path) -> None:
    settings = PLAIN.replace('scores = "control_scores"', f'scores = "control_scores"\ntemperature = {number}')
    refused_settings(settings, tmp_path, r"temperature = .*: expected a number from 1e-30 to 1e\+30")


def test_a_bound_and_a_level_at_the_ends_of_what_is_a_number(tmp_path: Path) -> None:
    log = fuzz_bases.small_log()
    assert ended(f"{PLAIN}r_max = 1e308\n", log, tmp_path).trouble is None
    rich = fuzz_bases.SETTINGS["rich"].replace("cap = 3.0\n", "cap = 3.0\nconfidence_level = 0.9999999999999999\n")
    assert ended(rich, log, tmp_path).trouble is None


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("log.csv", b"click,user\r1,a\r0,b\r", "lines end in a carriage return alone"),
        ("log.csv", b'"' + b"x" * 200_000 + b'",user\n1,a\n', "the header is no line of names"),
        ("log.csv.gz", b"\x1f\x8b\x08\x00junkjunk", "cannot be read as CSV"),
        ("log.jsonl", b'{"click": ' + LONG.encode() + b"\n", "line 1 has a number of thousands of digits"),
        ("log.jsonl", DEEP.encode() + b"\n", "line 1 is nested too deeply"),
    ],
    ids=["carriage returns", "a name of 200,000 letters", "no gzip", "a long number", "deep lists"],
)
@pytest.mark.parametrize("command", ["run", "init"])
def test_texts_that_are_no_log(name: str, content: bytes, sentence: str, command: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ft.BadInput, match=sentence):
        open_source(str(tmp_path / name)).schemas()
    (tmp_path / "settings.toml").write_text(PLAIN)
    more = ["-c", str(tmp_path / "settings.toml")] if command == "run" else ["-o", str(tmp_path / "new.toml")]
    outcome = fuzz_commands.run_command([command, str(tmp_path / name), *more], tmp_path)
    assert (outcome.refused, outcome.trouble) == (True, None)
