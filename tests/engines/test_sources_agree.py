"""One body of tests over all ways to run: the same log gives the same answer, bootstrap limits included."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import foretest as ft
from foretest.history.run import run_history
from foretest.inference import company
from tests.engines.input_forms import INPUT_FORMS, input_forms, write_csv, write_json_lines
from tests.support import SCORES, SmallLog, build_test

ROWS = 300
SMALL = SmallLog(rows=ROWS, units=90)
ORDER = np.argsort(SMALL.stratum, kind="stable")  # so that a folder for each stratum keeps the order
DAYS = [datetime.date(2024, 3, 1) + datetime.timedelta(days=int(d)) for d in SMALL.unit % 7]
LOG = SMALL.table(
    order=ORDER,
    day=pa.array(DAYS, pa.date32()),
    country=pa.array([f"land {u % 5}" for u in SMALL.unit]),
    user_name=pa.array([f"user {u}" for u in SMALL.unit]),
    items=pa.array([[f"item {i}" for i in range(SMALL.m)]] * ROWS),
    shown=pa.array([[f"item {i}" for i in shown] for shown in SMALL.rankings[SMALL.shown]]),
    seen=pa.array((SMALL.revenue > 0).tolist()),
)
ALL = [
    "is", "nis", "dr", "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive", "slot-ncis-adaptive",
    "cascade-ncis-adaptive",
]  # fmt: skip
ABSOLUTE = ("treatment", "std_error", "effect_size", "effect_size_ci_lower", "effect_size_ci_upper")
RELATIVE = ("rel_effect_size", "rel_effect_size_ci_lower", "rel_effect_size_ci_upper", "effective_positives")

TESTS = {
    "all estimators": lambda: build_test(ALL, metrics=("click", "revenue"), n_resamples=200),
    # two passes: one for V(x), of features of three types
    "a value model": lambda: ft.OfflineTest(
        log=ft.LogColumns(
            rewards=["click"], unit="user", ranking="ranking", id="id", date="day", features=["country", "v", "day"]
        ),
        **SCORES, estimators=["dr", "piece-ncis"], cap=2.0, n_resamples=100,
    ),
    # a pass for the reward model, of items' numbers and text
    "a reward model": lambda: ft.OfflineTest(
        log=ft.LogColumns(
            rewards=["click"], unit="user", ranking="ranking", id="id", features=["country"],
            slot_rewards={"click": "slot_click"}, item_features=["items", "predicted_click"],
        ),
        **SCORES, estimators=["dr", "point-dr-adaptive", "cascade-dr"], n_resamples=100,
    ),
    # buckets come from the place of a row in the whole log
    "neither unit nor id": lambda: ft.OfflineTest(
        log=ft.LogColumns(rewards=["revenue"], ranking="ranking"),
        **SCORES, estimators=["cis", "ncis", "point-ncis"], cap=2.0, n_resamples=100,
    ),
    "text ids": lambda: ft.OfflineTest(
        log=ft.LogColumns(rewards=["seen"], unit="user_name", ranking="shown", candidates="items", id="id"),
        **SCORES, estimators=["ncis", "point-ncis-adaptive"], n_resamples=100, interval="delta",
    ),
}  # fmt: skip


# one quick test for each form of input; the others go through each form too, in the whole suite
_PARAMS = [name if name == "text ids" else pytest.param(name, marks=pytest.mark.slow) for name in TESTS]


@pytest.fixture(scope="module", autouse=True)
def _tested_company() -> Iterator[None]:
    """The test of slots and their company is made, although the log is small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(company, "FEWEST_UNITS", 20)
        yield


@pytest.fixture(scope="module", params=_PARAMS)
def expected(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return request.param, TESTS[request.param]().run(LOG).to_dict()


def leaves(document: Any, path: str = "") -> dict[str, Any]:
    """All values of nested tables and lists, by their paths."""
    if not isinstance(document, dict | list):
        return {path: document}
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    return {place: leaf for key, value in inner for place, leaf in leaves(value, f"{path}.{key}").items()}


def assert_same(got: dict[str, Any], want: dict[str, Any]) -> None:
    """Numbers agree to 1e-9 of the control's value, all else is equal."""
    assert got["log"] == want["log"]
    assert got["settings"] == want["settings"]
    assert got["notes"] == want["notes"]
    health, other_health = leaves(want["health"]), leaves(got["health"])
    measured = {path for path, value in health.items() if isinstance(value, float)}
    assert {path: other_health[path] for path in measured} == pytest.approx(
        {path: health[path] for path in measured}, rel=1e-9
    )
    assert {**other_health, **dict.fromkeys(measured)} == {**health, **dict.fromkeys(measured)}
    for name, metric in want["metrics"].items():
        other = got["metrics"][name]
        unit = metric["control"]["value"]
        assert other["control"] == pytest.approx(metric["control"], rel=1e-9)
        assert (other["headline"], other["verdict"]) == (metric["headline"], metric["verdict"])
        assert list(other["estimates"]) == list(metric["estimates"])
        assert ("slot_model" in other) == ("slot_model" in metric)
        if "slot_model" in metric:
            for part in ("company", "pairs", "below"):
                tested, found = metric["slot_model"][part], other["slot_model"][part]
                assert (found["status"], found["rewards"]) == (tested["status"], tested["rewards"])
                for key in ("z", "p_value"):
                    wanted = tested.get(key)
                    assert found.get(key) == (None if wanted is None else pytest.approx(wanted, rel=1e-9)), (part, key)
        for label, estimate in metric["estimates"].items():
            found = other["estimates"][label]
            assert (found["verdict"], found["reasons"]) == (estimate["verdict"], estimate["reasons"])
            for key in ABSOLUTE:
                assert found[key] == pytest.approx(estimate[key], rel=0, abs=1e-9 * unit), (label, key)
            for key in RELATIVE:
                assert found[key] == pytest.approx(estimate[key], rel=1e-9, abs=1e-9), (label, key)


@input_forms
def test_same_answer(way: str, expected: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    kind, want = expected
    assert_same(INPUT_FORMS[way](LOG, tmp_path, TESTS[kind]()).to_dict(), want)


@pytest.mark.parametrize("key", ["is", "nis", "dr", "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive"])
def test_the_answer_is_that_of_plain_numpy(key: str) -> None:
    """What all ways agree on is right."""
    result = TESTS["all estimators"]().run(LOG)
    assert all(abs(metric.slot_model.company.z) < 4.0 for metric in result.metrics.values())
    for name, reward in (("click", SMALL.click), ("revenue", SMALL.revenue)):
        value, _ = SMALL.estimate(key, reward, cap=2.0, bound=3.0)
        assert result.metrics[name].estimates[key].treatment == pytest.approx(value, rel=1e-9)


def test_another_answer_is_noticed() -> None:
    """The comparison can fail: by a row that is gone, and by a bucket's share of the last digits."""
    want = TESTS["neither unit nor id"]().run(LOG).to_dict()
    for log in (LOG.slice(0, ROWS - 1), LOG.take(list(reversed(range(ROWS))))):
        with pytest.raises(AssertionError):
            assert_same(TESTS["neither unit nor id"]().run(log).to_dict(), want)


@input_forms
def test_same_faults(way: str, tmp_path: Path) -> None:
    """A row that is bad is found, and others with the same fault are counted, wherever the log is kept."""
    revenue = LOG["revenue"].to_pylist()
    for row in (3, 200, 299):
        revenue[row] = -2.5
    bad = LOG.set_column(LOG.column_names.index("revenue"), "revenue", pa.array(revenue))
    with pytest.raises(ft.BadInput) as error:
        INPUT_FORMS[way](bad, tmp_path, TESTS["neither unit nor id"]())
    assert str(error.value).endswith(
        ": column 'revenue', row 3 (the first row is 0): the reward is negative (-2.5); 3 rows have this fault."
        " Rewards must be 0 or more. If it may have losses, write [metrics.revenue] signed = true."
    )


# -- the other commands -----------------------------------------------------------------------------------------------


def test_online_takes_any_source(tmp_path: Path) -> None:
    """Two arms, one in CSV by day, the other in JSON lines: the days are those of the folders and of the column."""
    test = ft.OnlineTest(log=ft.LogColumns(rewards=["click", "revenue"], unit="user_name", date="day"), n_resamples=100)
    names = pa.array([f"other {name}" for name in LOG["user_name"].to_pylist()])
    treatment = LOG.set_column(LOG.column_names.index("user_name"), "user_name", names)
    for day in sorted(set(LOG["day"].to_pylist())):
        place = tmp_path / "control" / f"day={day}"
        place.mkdir(parents=True)
        write_csv(LOG.filter(pc.equal(LOG["day"], day)).drop_columns(["day"]), place / "log.csv")
    write_json_lines(treatment, tmp_path / "treatment.jsonl")
    want = test.run(LOG, treatment).to_dict()
    got = test.run(tmp_path / "control", tmp_path / "treatment.jsonl").to_dict()
    assert_same(got, want)
    assert want["health"]["sample_ratio"]["days_checked"] == 7
    with pytest.raises(ft.BadInput, match="this file is in the control's log and in the treatment's"):
        test.run(tmp_path / "treatment.jsonl", [tmp_path / "treatment.jsonl"])


@pytest.mark.slow
def test_history_takes_any_source(tmp_path: Path) -> None:
    """What is known is reused until a folder's name, which is data, is another."""
    settings = """
        [log]
        rewards = ["click"]
        unit = "user_name"
        ranking = "ranking"
        id = "id"
        [control]
        policy = "plackett-luce"
        scores = "control_scores"
        [treatment]
        policy = "plackett-luce"
        scores = "treatment_scores"
        [analysis]
        estimators = ["piece-ncis"]
        strata = "side"
        n_resamples = 50
    """
    (tmp_path / "settings.toml").write_text(settings, encoding="utf-8")
    names = pa.array([f"other {name}" for name in LOG["user_name"].to_pylist()])
    treatment = LOG.set_column(LOG.column_names.index("user_name"), "user_name", names)
    for side, begin in (("left", 0), ("right", ROWS // 2)):
        (tmp_path / "control" / f"side={side}").mkdir(parents=True)
        write_csv(LOG.slice(begin, ROWS // 2), tmp_path / "control" / f"side={side}" / "log.csv")
    write_json_lines(treatment, tmp_path / "treatment.jsonl")
    manifest = tmp_path / "manifest.toml"
    manifest.write_text(
        'settings = "settings.toml"\n[[test]]\nname = "one"\ncontrol = "control"\ntreatment = "treatment.jsonl"\n',
        encoding="utf-8",
    )
    first, again = (run_history(manifest, cache=tmp_path / "cache") for _ in range(2))
    assert (first.failures, first.reused, again.reused) == ([], 0, 1)
    log = LOG.append_column("side", pa.array(["left"] * (ROWS // 2) + ["right"] * (ROWS // 2)))
    want = ft.OfflineTest.from_toml(tmp_path / "settings.toml").run(log).metrics["click"].estimates["piece-ncis"]
    assert first.tests[0]["metrics"]["click"]["offline"]["piece-ncis"]["treatment"] == pytest.approx(
        want.treatment, rel=1e-9
    )
    (tmp_path / "control" / "side=right").rename(tmp_path / "control" / "side=up")
    assert run_history(manifest, cache=tmp_path / "cache").reused == 0
