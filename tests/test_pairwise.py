"""Every pair of features at least once: it runs, and what must not matter does not.

A feature is *neutral* where it may not change the digits of the answer: segments, days, a second treatment, sums that
are saved in two halves and merged, a packed log, Spark. Nor may the order of rows, batches and threads. Rows of a
thinned log count as their copies do, segments and days are logs of their own, and each treatment is as if alone.
Pairs that cannot be had are declared, each with the sentence that says so; a pair that is neither there nor runs is a
hole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.feature_cases import (
    FEATURES,
    HOLES,
    LINEAR,
    MORE,
    REFUSED,
    Pair,
    covering_cases,
    feature_log,
    pairs_of,
    roads_of,
    settings_of,
    toml_of,
)

NEUTRAL = ("treatments", "segments", "days", "saved", "packed", "spark")
#: what a neutral feature adds to a metric, or says in another way
ADDED = re.compile(
    "/days|/heterogeneity|/p_value$|/p_adjusted$|simultaneous_ci_(lower|upper)$|/verdict_adjusted$|/role$"
)
#: where a date is named and no time, sums by day are not in files, which they would make larger
BY_DAY = re.compile("/days|/heterogeneity")
#: what a setting that says nothing new leaves out all the same, or draws in another way
BESIDES = {
    "thinned": "/lower_bound$",  # it needs every display of a unit, which a log with `keep` does not promise
    "loggers": "/cap_path",  # of several loggers from draws
}

#: what a result says of itself: how its words are made is tested elsewhere
OF_ITSELF = ("settings", "provenance", "notes")
#: numbers in which a row that stands for m displays is m copies of it; limits are where no noise is predicted
AS_COPIES = re.compile(
    "/(treatment|effect_size|rel_effect_size|std_error|rel_std_error|unsupported|covariance|slice_gamma|bias_contribution"
    "|effect_size_(lower|upper)|value|share|theta/[0-9]+|std_error/[0-9]+|displays/[0-9]+|share/[0-9]+|difference|z)$"
    "|/control/ci_(lower|upper)|/(capped_share|treatment_mass_kept|max_weight|units|share_cut|limit)$"
)
OF_SAMPLES = re.compile("/(audit|weights)/")
LIMITS = re.compile("estimates/([^/]+)/(rel_)?(effect_size|simultaneous)_ci_(lower|upper)$")
#: what a segment and a day say as a log of only their rows does
OF_SEGMENTS = ("treatment", "std_error", "effect_size", "rel_effect_size", "rel_std_error", "effective_positives")
OF_DAYS = ("effect_size", "rel_effect_size", "effect_size_ci_lower", "rel_effect_size_ci_upper")

CLOSED = {*REFUSED, *HOLES}
CASES = covering_cases(list(FEATURES), CLOSED)
MARKED = [
    pytest.param(case, id=" + ".join(case), marks=[pytest.mark.spark] if "spark" in case else []) for case in CASES
]


@cache
def log_of(loggers: bool) -> pa.Table:
    return feature_log(loggers=loggers)


def table_of(names: Iterable[str]) -> pa.Table:
    return log_of(bool({"loggers", "undated loggers"} & set(names)))


def offline(tables: Mapping[str, Any], folder: Path) -> ft.OfflineTest:
    """The test of a settings file."""
    (folder / "settings.toml").write_text(toml_of(tables), encoding="utf-8")
    return ft.OfflineTest.from_toml(folder / "settings.toml")


def source_of(table: pa.Table, folder: Path, name: str, roads: Iterable[str], test: ft.OfflineTest) -> Any:
    """The log as the run reads it: packed, in Spark, or as it is."""
    if "packed" not in roads and "spark" not in roads:
        return table
    pq.write_table(table, folder / f"{name}.parquet")
    path = str(folder / f"{name}.parquet")
    if "packed" in roads:
        test.pack(path, folder / name)
        path = str(folder / name)
    if "spark" not in roads:
        return path
    from foretest.engines.spark import read
    from tests.engines.spark_session import spark

    spark()
    return read([path], None).repartition(3, "user")


def answer(
    names: Iterable[str],
    folder: Path,
    change: Callable[[dict[str, Any]], None] | None = None,
    rows: Any = None,
    **work: int,
) -> dict[str, Any]:
    """The result of a test with these features, as a document; of saved sums `rows` say that they come in another
    order."""
    folder.mkdir(exist_ok=True)
    tables, roads, table = settings_of(names), roads_of(names), table_of(names)
    if change is not None:
        change(tables)
    test = offline(tables, folder)
    if "saved" not in roads:
        table = table if rows is None else table.take(rows)
        return test.run(source_of(table, folder, "log", roads, test), **work).to_dict()
    half = len(table) // 2
    halves = table.slice(0, half), table.slice(half)
    if {"loggers", "undated loggers"} & set(names):  # sums of several logs add up day by day
        first = pa.compute.less_equal(table["day"], "2026-03-03")
        halves = table.filter(first), table.filter(pa.compute.invert(first))
    for i, part in enumerate(halves):
        test.save_aggregates(source_of(part, folder, f"half{i}", roads, test), folder / f"{i}.parquet", **work)
    numbers = (0, 1) if rows is None else (1, 0)
    files = [str(folder / f"{i}.parquet") for i in numbers]
    result, recorded = (one.run(files).to_dict() for one in (test, ft.OfflineTest.from_aggregates(files)))
    assert not differences(said(result), said(recorded))
    return result


def values_of(document: Any, where: str = "") -> dict[str, Any]:
    """Every number and word of a document by its path."""
    if isinstance(document, Mapping | list):
        entries = document.items() if isinstance(document, Mapping) else enumerate(document)
        return {path: v for key, entry in entries for path, v in values_of(entry, f"{where}/{key}").items()}
    return {where: document}


def differences(one: Any, other: Any, but: re.Pattern[str] | None = None) -> list[str]:
    """What differs in two documents: numbers by more than 1e-9 of themselves, all else at all."""
    mine, theirs = values_of(one), values_of(other)
    paths = [path for path in {**mine, **theirs} if but is None or not but.search(path)]
    return [
        f"{path}: {mine.get(path)!r}, {theirs.get(path)!r}"
        for path in paths
        if not _same(mine.get(path), theirs.get(path))
    ]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == pytest.approx(b, rel=1e-9, abs=1e-10)
    return type(a) is type(b) and a == b


def said(document: dict[str, Any]) -> dict[str, Any]:
    """All that a result says but its words: metrics, further treatments, segments, health, audit, what was fitted."""
    return {name: part for name, part in document.items() if name not in OF_ITSELF}


# -- the cases themselves -------------------------------------------------------------------------------------------


def test_every_pair_is_in_a_case_or_declared() -> None:
    in_cases = set().union(*(pairs_of(case) for case in CASES))
    assert in_cases == pairs_of(list(FEATURES)) - CLOSED
    assert not set(REFUSED) & set(HOLES)
    assert covering_cases(list(FEATURES), CLOSED) == CASES


def pair_parameters(pairs: Iterable[Pair]) -> list[Any]:
    return [
        pytest.param(pair, id=" + ".join(sorted(pair)), marks=[pytest.mark.spark] if "spark" in pair else [])
        for pair in pairs
    ]


@pytest.mark.parametrize("pair", pair_parameters(REFUSED))
def test_what_cannot_be_had_is_refused_with_a_sentence(pair: Pair, tmp_path: Path) -> None:
    with pytest.raises(ft.BadInput, match=REFUSED[pair]):
        answer(sorted(pair), tmp_path)


@pytest.mark.parametrize("pair", pair_parameters(HOLES))
def test_holes_are_as_declared(pair: Pair, tmp_path: Path) -> None:
    """One that is mended is to be taken out of the table."""
    kind, words = HOLES[pair]
    with pytest.raises(kind, match=words):
        answer(sorted(pair), tmp_path)


# -- what must not matter -------------------------------------------------------------------------------------------


def neutral_in(case: Iterable[str]) -> list[str]:
    return [name for name in case if name in NEUTRAL]


@pytest.mark.parametrize("case", MARKED)
def test_a_case(case: tuple[str, ...], tmp_path: Path) -> None:
    whole = answer(case, tmp_path / "case")
    assert {"click", "revenue"} <= whole["metrics"].keys()
    roads = [name for name in case if FEATURES[name].road and name in neutral_in(case)]
    direct = whole
    if roads:  # how the log is read changes nothing at all
        direct = answer([name for name in case if name not in roads], tmp_path / "direct")
        assert not differences(said(whole), said(direct), left_out_of_files(case))
    bare_names = [name for name in case if name not in neutral_in(case)]
    bare = answer(bare_names, tmp_path / "bare")
    assert not differences(bare["metrics"], direct["metrics"], ADDED)
    order = np.random.default_rng(1).permutation(table_of(case).num_rows)
    work = {} if "spark" in case else {"threads": 2, "batch_rows": 77}
    in_order = answer(case, tmp_path / "order", rows=order, **work)
    assert not differences(said(whole), said(in_order))


def left_out_of_files(case: Iterable[str]) -> re.Pattern[str] | None:
    return None if any("time" in FEATURES[name].log for name in case) else BY_DAY


def linear(tables: dict[str, Any]) -> None:
    tables["analysis"]["estimators"] = list(LINEAR)


@pytest.mark.parametrize(
    "name", [name for name, feature in FEATURES.items() if not feature.road and {name, "packed"} not in CLOSED]
)
def test_a_packed_log_serves_its_estimators(name: str, tmp_path: Path) -> None:
    """Those that need no other rows than rewarded ones, for which the others are not read."""
    packed, direct = (answer([name, *road], tmp_path / f"at{len(road)}", linear) for road in (["packed"], []))
    assert not differences(said(packed), said(direct), left_out_of_files([name]))


# -- every setting on every road, thinned, in parts and beside another treatment --------------------------------------

PLAINLY = [name for name, feature in FEATURES.items() if not feature.road]
#: those of the others that change what is added up
SUMMED = (
    "times",
    "signed",
    "winsorised",
    "bound of the log",
    "all estimators",
    "reward model",
    "zero",
    "drawn normaliser",
)
#: what cannot be saved or packed, by its sentence
UNSAVED = {
    ("winsorised", "saved"): "a quantile of one log", ("winsorised", "packed"): "a quantile of one log",
    ("undated loggers", "saved"): "shares of its own log", ("reward model", "saved"): "another reward model",
}  # fmt: skip
#: of which each half has its own
OF_A_LOG = [("cap of the log", "saved"), ("value model", "saved")]
#: of sums that are as without them
AFTERWARDS = ("roles", "delta", "band", "largest reward", "date", "no slots")
ROADS = [(name, road) for name in MORE for road in ("saved", "packed")
         if name not in AFTERWARDS and (name, road) not in OF_A_LOG]  # fmt: skip
IN_SPARK = [(name, "spark") for name in ("cap of the log", "winsorised", "value model", "times", "trained")]


@pytest.mark.parametrize(
    ("name", "road"), [*ROADS, *(pytest.param(*pair, marks=pytest.mark.spark) for pair in IN_SPARK)]
)
def test_every_road_says_the_same(name: str, road: str, tmp_path: Path) -> None:
    if (name, road) in UNSAVED:
        with pytest.raises(ft.BadInput, match=UNSAVED[name, road]):
            answer([name, road], tmp_path / "road")
        return
    but = BY_DAY.pattern
    if road == "packed" and MORE[name].analysis.get("estimators"):
        but += "|/mass_kept/slot"  # which is not counted where rewarded rows alone are read
    work = {} if road == "spark" else {"threads": 2, "batch_rows": 77}
    there, direct = answer([name, road], tmp_path / "there", **work), answer([name], tmp_path / "direct")
    assert not differences(said(there), said(direct), re.compile(but))


@pytest.mark.parametrize(
    "name", [name for name in (*PLAINLY, *SUMMED) if name != "thinned" and {name, "thinned"} not in CLOSED]
)
def test_a_row_of_a_thinned_log_counts_as_its_copies_do(name: str, tmp_path: Path) -> None:
    m = np.rint(1.0 / table_of([name])["keep"].to_numpy()).astype(int)
    copied = np.repeat(np.arange(len(m)), m)
    documents = answer([name, "thinned"], tmp_path / "thinned"), answer([name], tmp_path / "full", rows=copied)
    assert not differences_of_copies(*documents)
    mine, theirs = (document["log"] for document in documents)
    assert mine["rows"] < mine["displays"] == pytest.approx(theirs["rows"], rel=1e-12)


def differences_of_copies(*documents: dict[str, Any]) -> list[str]:
    """What differs in the answers to a thinned log and to its displays, of all that may not."""
    thinned, full = (values_of(said(document)) for document in documents)
    noisy = {path.rpartition("/")[0] for path, v in thinned.items() if path.endswith("/predicted_std_error") and v}
    alike = [path for path in {**thinned, **full} if AS_COPIES.search(path) and not OF_SAMPLES.search(path)]
    alike += [path for path in full if LIMITS.search(path) and path.rpartition("/")[0] not in noisy]
    assert len(alike) > 50
    return differences(*({path: values.get(path) for path in alike} for values in (thinned, full)))


#: their shares, fitted numbers, quantiles and displays per unit are of the whole log
OF_THE_WHOLE = ("loggers", "fitted control", "fitted curve", "per unit")


@pytest.mark.parametrize(
    "name", [*(name for name in PLAINLY if name not in OF_THE_WHOLE), "signed", "zero", "bound of the log"]
)
def test_segments_and_days_are_logs_of_their_own(name: str, tmp_path: Path) -> None:
    table, whole, day = table_of([name]), answer([name, "segments", "days"], tmp_path / "whole"), "2026-03-04"
    [segment] = [part for part in whole["segments"] if part["value"] == "1"]
    rows_of = {"segment": table["stratum"].to_numpy() == 1, "day": table["day"].to_numpy() == day}
    alone = {
        place: answer([name], tmp_path / place, rows=np.flatnonzero(rows))["metrics"] for place, rows in rows_of.items()
    }
    assert segment["rows"] == np.count_nonzero(rows_of["segment"])
    for metric, found in segment["metrics"].items():
        assert not differences(found["control"], alone["segment"][metric]["control"])
        for label, estimate in found["estimates"].items():
            assert not differences(*chosen(OF_SEGMENTS, estimate, alone["segment"][metric]["estimates"][label])), label
    assert whole["metrics"]["click"]["days"]
    for metric, found in whole["metrics"].items():
        for estimate in (one for one in found.get("days", ()) if one["day"] == day):
            direct = alone["day"][metric]["estimates"][estimate["estimator"]]
            assert not differences(*chosen(OF_DAYS, estimate, direct)), metric


def chosen(names: Iterable[str], *tables: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{name: table[name] for name in names} for table in tables]


@pytest.mark.parametrize(
    "name", [*(name for name in PLAINLY if name != "treatments"), "all estimators", "reward model"]
)
def test_a_treatment_is_as_if_it_were_alone(name: str, tmp_path: Path) -> None:
    """Its metrics, its health and its audit; but for a path over caps, which is of the first."""

    def second(tables: dict[str, Any]) -> None:
        tables["treatment"] = tables["treatment"][1]

    both, alone = (answer([name, "treatments"], tmp_path / str(change), change) for change in (None, second))
    second_of_both = both["treatments"][1]
    parts = second_of_both.keys() - {"name", "rank"}
    assert not differences(*chosen(parts, second_of_both, alone), re.compile(f"{ADDED.pattern}|/cap_path"))


# -- settings that say nothing new ----------------------------------------------------------------------------------


def keep_all(tables: dict[str, Any]) -> None:
    tables["log"]["keep"] = "kept_all"


def one_logger(tables: dict[str, Any]) -> None:
    tables["control"] = [{"name": "new", **tables["control"]}]
    tables["log"]["logger"], tables["analysis"]["baseline"] = "policy", "new"


def long_window(tables: dict[str, Any]) -> None:
    tables["log"] |= {"time": "ts", "reward_time": "clicked_at", "read_at": "2026-09-09"}
    tables["analysis"]["window"] = "10d"


def twice(tables: dict[str, Any]) -> None:
    tables["treatment"] = [{"name": name, **tables["treatment"]} for name in ("one", "the same")]


IDLE: dict[str, Callable[[dict[str, Any]], None]] = {
    "thinned": keep_all, "loggers": one_logger, "window": long_window, "treatments": twice,
}  # fmt: skip
IDLE_PAIRS = [
    (idle, name)
    for idle in IDLE
    for name in FEATURES
    if name != idle and name not in NEUTRAL and frozenset((idle, name)) not in CLOSED
]


@pytest.mark.parametrize(("idle", "name"), IDLE_PAIRS)
def test_a_setting_that_says_nothing_new_changes_nothing(
    idle: str, name: str, tmp_path: Path, bare_answer: Callable[[str], dict[str, Any]]
) -> None:
    but = re.compile("|".join([ADDED.pattern, *([BESIDES[idle]] if idle in BESIDES else [])]))
    with_idle = answer([name], tmp_path, IDLE[idle])
    assert not differences(bare_answer(name)["metrics"], with_idle["metrics"], but)
    if idle == "treatments":
        one, same = (treatment["metrics"] for treatment in with_idle["treatments"])
        assert not differences(one, same)


@pytest.fixture(scope="module")
def bare_answer(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """The answer with one feature alone."""
    return cache(lambda name: answer([name], tmp_path_factory.mktemp("alone")))
