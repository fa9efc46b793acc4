"""Files that an earlier version wrote are read as before: every number of the results it gave is found again.

In each folder of `tests/fixtures/` a README says what each file is, and a script beside it made them.
"""

from __future__ import annotations

import copy
import gzip
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import foretest as ft
from foretest import cli

FIXTURES = Path(__file__).parent / "fixtures"
OLD = FIXTURES / "version-0.1.0"
#: Between two versions a folder is named by the month of its layouts: its files say 0.2.0, which was not released yet.
LATER = FIXTURES / "layout-2026-11"
WRITTEN_BY = {OLD: "0.1.0", LATER: "0.2.0"}
of_every_folder = pytest.mark.parametrize("folder", WRITTEN_BY, ids=lambda folder: folder.name)

PROSE = ("reasons", "notes", "meaning", "remedy", "command")
"""Words may be put better; what is under these keys is not compared."""


def result_of(name: str, folder: Path = OLD) -> dict[str, Any]:
    """A document that the earlier version gave."""
    return json.loads(gzip.decompress((folder / f"{name}.json.gz").read_bytes()))


def document(result: ft.Result | ft.Agreement) -> dict[str, Any]:
    return json.loads(result.to_json())


def old(*names: str, folder: Path = OLD) -> list[str]:
    return [str(folder / name) for name in names]


def differences(before: Any, now: Any, where: str = "") -> list[str]:
    """Numbers to 1e-12 of themselves, words, keys and lengths as before. Keys may be added, prose may change."""
    if isinstance(before, dict) and isinstance(now, dict):
        lost = [f"{where}/{key}: lost" for key in before if key not in now]
        kept = [key for key in before if key in now and key not in PROSE]
        return lost + [said for key in kept for said in differences(before[key], now[key], f"{where}/{key}")]
    if where.endswith(
        "/findings"
    ):  # of the audit, which has gained tests since, and whose capped moment chooses its caps
        before, now = ({f["name"]: f for f in findings if f["name"] != "capped moment"} for findings in (before, now))
        return differences(before, now, f"{where} by name")
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = enumerate(zip(before, now, strict=True))
        return [said for i, (a, b) in pairs for said in differences(a, b, f"{where}/{i}")]
    if isinstance(before, str) and isinstance(now, str) and " " in before:
        return []
    if is_number(before) and is_number(now):
        same = now == pytest.approx(before, rel=1e-12, abs=1e-15)
    else:
        same = type(before) is type(now) and before == now
    return [] if same else [f"{where}: {now!r} was {before!r}"]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_then(test: ft.OfflineTest) -> ft.OfflineTest:
    """The test with the default of then for what unsupported recommendations may earn: one for all levels."""
    return test.replace(gamma=(1.15, 1.3))


LIMITS = ("effect_size_ci_lower", "effect_size_ci_upper", "rel_effect_size_ci_lower", "rel_effect_size_ci_upper")


def without_predicted_noise(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Take out what noise that is predicted since has widened, of every estimate, once it is seen to be no narrower."""
    parts = [(before, now)]
    for key in ("treatments", "segments"):
        parts += zip(before.get(key, []), now.get(key, []), strict=True)
    for part, now_part in parts:
        for name, metric in part["metrics"].items():
            for label, estimate in metric["estimates"].items():
                present = now_part["metrics"][name]["estimates"][label]
                if present["predicted_std_error"] is None:
                    continue
                for limit in LIMITS:
                    old_limit, new_limit = estimate.pop(limit), present.pop(limit)
                    assert (new_limit <= old_limit) == limit.endswith("lower") or new_limit == pytest.approx(old_limit)
                for field in ("range", "sensitivity"):
                    estimate.pop(field, None), present.pop(field)


def assert_as_before(
    now: dict[str, Any],
    name: str,
    *,
    same_files: bool = True,
    but: tuple[str, ...] = (),
    folded_now: bool = False,
    folder: Path = OLD,
) -> None:
    """The result is the earlier one, but for versions, for the fields named in `but`, where other files were read for
    their fingerprints, and for predicted noise where rows are folded by this version."""
    before = result_of(name, folder)
    if folded_now:
        without_predicted_noise(before, now)
    assert before["foretest"] == WRITTEN_BY[folder]
    del before["foretest"], before["provenance"]["versions"]
    if not same_files:
        del before["provenance"]["inputs"]
    assert [line.split(":")[0] for line in differences(before, now)] == list(but)


# -- saved aggregates -----------------------------------------------------------------------------------------------

# slots disagreed for the second treatment at the level of an interval (p = .02), which once took the lead from slots
OWN_HEADLINES = (
    *(f"/{where}metrics/{field}" for where in ("", "treatments/0/")
      for field in ("click/headline", "revenue/headline", "revenue/verdict", "revenue/outcome")),
    "/treatments/1/metrics/click/headline", "/treatments/1/metrics/revenue/headline",
)  # fmt: skip


def test_aggregates_of_a_rich_test() -> None:
    """Two treatments, two rewards, slots, segments, strata and all estimators, under the settings the file knows."""
    saved = old("rich.parquet")
    now = document(as_then(ft.OfflineTest.from_aggregates(saved)).run(saved))
    assert_as_before(now, "rich", but=OWN_HEADLINES)
    for metric in now["metrics"].values():  # what the file does not have is not tested
        assert metric["slot_model"]["company"]["status"] == "not made"
        assert "folded by this version" in metric["slot_model"]["company"]["sentence"]


def test_aggregates_under_their_settings_file() -> None:
    """The file and the settings that it was made with still agree."""
    now = document(as_then(ft.OfflineTest.from_toml(OLD / "rich.toml")).run(old("rich.parquet")))
    assert_as_before(now, "rich", but=OWN_HEADLINES)


def test_aggregates_analysed_anew() -> None:
    """The rewarded rows that were kept give the betting interval, at another level."""
    test = ft.OfflineTest.from_aggregates(old("rich.parquet")).replace(
        interval="betting", confidence_level=0.8, gamma=1.5, estimators=["cis", "point-ncis-adaptive"]
    )
    assert_as_before(document(test.run(old("rich.parquet"))), "rich-betting")


def test_aggregates_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", *old("rich.parquet"), "--gamma", "1.15", "--gamma", "1.3", "-o", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["foretest", *command])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 0
    assert "bolder" in capsys.readouterr().out  # the name of a treatment
    now = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert_as_before(now, "rich", but=OWN_HEADLINES)


def test_days_of_several_loggers_add_up() -> None:
    """Each file has the loggers' shares of its own day."""
    saved = old("loggers-1.parquet", "loggers-2.parquet")
    assert_as_before(document(as_then(ft.OfflineTest.from_aggregates(saved)).run(saved)), "loggers")


def test_a_day_that_is_folded_now_adds_up_with_an_old_one(tmp_path: Path) -> None:
    test = ft.OfflineTest.from_toml(OLD / "loggers.toml")
    today = str(tmp_path / "today.parquet")
    test.save_aggregates(str(OLD / "loggers-log-2.parquet"), today)
    now = document(as_then(test).run([*old("loggers-1.parquet"), today]))
    wider = tuple(f"/metrics/click/estimates/point-ncis/{field}" for field in ("verdict", "robustness"))
    assert_as_before(now, "loggers", same_files=False, but=wider, folded_now=True)


def test_old_days_merged_now_are_the_same_days(tmp_path: Path) -> None:
    """Read, added up, written in the present form, and read again."""
    saved, both = old("loggers-1.parquet", "loggers-2.parquet"), str(tmp_path / "both.parquet")
    ft.OfflineTest.from_aggregates(saved).save_aggregates(saved, both)
    now = document(as_then(ft.OfflineTest.from_aggregates(both)).run(both))
    assert_as_before(now, "loggers", same_files=False)


@of_every_folder
def test_an_old_day_is_not_counted_twice(folder: Path, tmp_path: Path) -> None:
    """The file remembers which log it was made from."""
    again = str(tmp_path / "again.parquet")
    shutil.copy(folder / "loggers-2.parquet", again)
    test = ft.OfflineTest.from_toml(folder / "loggers.toml")
    with pytest.raises(ft.BadInput, match=r"loggers-2\.parquet.*again\.parquet.*loggers-log-2\.parquet"):
        test.run([*old("loggers-2.parquet", folder=folder), again])


@of_every_folder
def test_other_settings_than_the_old_ones_are_refused(folder: Path) -> None:
    test = ft.OfflineTest.from_toml(folder / "loggers.toml").replace(cap=2.0)
    with pytest.raises(ft.BadInput, match=r"loggers-2\.parquet .*\bcap\b"):
        test.run(old("loggers-2.parquet", folder=folder))


# -- a packed log ---------------------------------------------------------------------------------------------------


def test_a_packed_log_read_whole() -> None:
    assert_as_before(
        document(as_then(ft.OfflineTest.from_toml(OLD / "packed.toml")).run(old("packed"))), "packed", folded_now=True
    )


def test_the_rewarded_rows_of_a_packed_log() -> None:
    """Nothing but the rewarded rows and the sums beside them is read: a run that reads all rows says so in a note."""
    test = ft.OfflineTest.from_toml(OLD / "packed.toml").replace(
        estimators=["is", "cis", "point-ncis", "point-ncis-adaptive"]
    )
    result = as_then(test).run(old("packed"))
    assert_as_before(document(result), "packed-rewarded", folded_now=True)
    assert result.notes == []


# -- a calibration --------------------------------------------------------------------------------------------------


def test_a_calibration_of_an_earlier_history() -> None:
    test = ft.OfflineTest.from_toml(OLD / "calibrated.toml")
    result = as_then(test).run(str(OLD / "calibrated-log.parquet"), calibration=OLD / "calibration.json")
    assert {"point-ncis-calibrated", "slot-ncis-calibrated"} < result.metrics["click"].estimates.keys()
    # a bound of 2 keeps less than half of this treatment: since then such a plain estimate has no verdict
    assert result.health["mass_kept"]["point-ncis-adaptive"] < 0.5
    plain = "/metrics/click/estimates/point-ncis-adaptive"
    fields = ("verdict", "sensitivity/breakdown_gamma", "robustness")
    # since then there is a number for slots too
    slots = (
        f"/metrics/click/estimates/slot-ncis-{kind}/predicted_effective_positives"
        for kind in ("adaptive", "calibrated")
    )
    assert_as_before(document(result), "calibrated", but=(*(f"{plain}/{field}" for field in fields), *slots))


@of_every_folder
def test_a_calibration_keeps_to_its_settings(folder: Path) -> None:
    test = ft.OfflineTest.from_toml(folder / "calibrated.toml").replace(weight_bound=3.0)
    with pytest.raises(ft.BadInput, match="weight_bound"):
        test.run(str(folder / "calibrated-log.parquet"), calibration=folder / "calibration.json")


# -- the later folder, whose numbers are all as they were -----------------------------------------------------------

SAVED = {
    "rich": ["rich.parquet"],
    "loggers": ["loggers-1.parquet", "loggers-2.parquet"],
    "thinned": ["thinned-1.parquet", "thinned-2.parquet"],
    "thinned-parts": ["thinned-parts-1.parquet", "thinned-parts-2.parquet"],
}


def later(name: str) -> ft.OfflineTest:
    return ft.OfflineTest.from_toml(LATER / f"{name}.toml")


@pytest.mark.parametrize("name", SAVED)
def test_later_aggregates(name: str) -> None:
    """Under the settings that the files know, and under their settings file."""
    saved = old(*SAVED[name], folder=LATER)
    for test in (ft.OfflineTest.from_aggregates(saved), later(name)):
        assert_as_before(document(test.run(saved)), name, folder=LATER)


@pytest.mark.parametrize("name", SAVED)
def test_later_aggregates_written_anew(name: str, tmp_path: Path) -> None:
    """Read, added up, written in the present form, and read again."""
    saved, again = old(*SAVED[name], folder=LATER), str(tmp_path / "again.parquet")
    ft.OfflineTest.from_aggregates(saved).save_aggregates(saved, again)
    now = document(ft.OfflineTest.from_aggregates(again).run(again))
    assert_as_before(now, name, same_files=False, folder=LATER)


def test_later_aggregates_analysed_anew() -> None:
    saved = old("rich.parquet", folder=LATER)
    test = ft.OfflineTest.from_aggregates(saved).replace(
        interval="delta", confidence_level=0.8, gamma=1.5, estimators=["cis", "point-ncis-adaptive"]
    )
    assert_as_before(document(test.run(saved)), "rich-delta", folder=LATER)


def test_a_day_that_is_folded_now_adds_up_with_a_later_one(tmp_path: Path) -> None:
    today = str(tmp_path / "today.parquet")
    later("loggers").save_aggregates(str(LATER / "loggers-log-2.parquet"), today)
    now = document(later("loggers").run([*old("loggers-1.parquet", folder=LATER), today]))
    assert_as_before(now, "loggers", same_files=False, folder=LATER)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("packed", {}),
        ("packed-rewarded", {"estimators": ["is", "cis", "point-ncis", "point-ncis-adaptive"]}),
        ("packed-betting", {"estimators": ["cis", "point-ncis-adaptive"], "interval": "betting"}),
    ],
)
def test_a_later_packed_log(name: str, changes: dict[str, Any]) -> None:
    now = later("packed").replace(**changes).run(str(LATER / "packed"))
    assert_as_before(document(now), name, folder=LATER)


def test_a_calibration_of_a_later_history() -> None:
    now = later("calibrated").run(str(LATER / "calibrated-log.parquet"), calibration=LATER / "calibration.json")
    assert_as_before(document(now), "calibrated", folder=LATER)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """The results of the tests of a history with their manifest, as files of their own."""
    for file in (LATER / "history").iterdir():
        data = file.read_bytes()
        is_compressed = file.suffix == ".gz"
        (tmp_path / file.name.removesuffix(".gz")).write_bytes(gzip.decompress(data) if is_compressed else data)
    return tmp_path


def test_results_of_earlier_tests_in_a_history(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history reads `result.json` of each test in place of its logs: agreement and calibration are as they were."""
    command = ["foretest", "history", str(history / "manifest.toml"), "-o", str(history / "out")]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 0
    for name in ("agreement", "calibration"):
        before = result_of(f"history/{name}", LATER)
        now = json.loads((history / f"out/{name}.json").read_text(encoding="utf-8"))
        assert before.pop("foretest") == WRITTEN_BY[LATER]
        before.get("provenance", {}).pop("versions", None)
        assert differences(before, now) == []


def test_earlier_results_on_a_board(history: Path) -> None:
    """A result and an agreement of then have their rows."""
    for name in ("result", "agreement"):
        (history / "board" / name).mkdir(parents=True)
        source = "result-1" if name == "result" else name
        shutil.copy(history / f"{source}.json", history / "board" / name / f"{name}.json")
    board = ft.read_board(history / "board").to_dict()
    assert board["problems"] == []
    assert {row["kind"] for row in board["rows"]} == {"offline", "history"}


# -- the comparison itself ------------------------------------------------------------------------------------------


def set_number(result: dict[str, Any]) -> None:
    result["metrics"]["click"]["estimates"]["cis"]["treatment"] *= 1.0 + 1e-11


def set_word(result: dict[str, Any]) -> None:
    result["metrics"]["click"]["verdict"] = "undecided"


def set_nothing(result: dict[str, Any]) -> None:
    result["metrics"]["click"]["estimates"]["cis"]["std_error"] = None


def take_key(result: dict[str, Any]) -> None:
    del result["metrics"]["click"]["cap_path"]


def take_entry(result: dict[str, Any]) -> None:
    result["segments"].pop()


@pytest.mark.parametrize("change", [set_number, set_word, set_nothing, take_key, take_entry])
def test_what_changed_is_told(change: Callable[[dict[str, Any]], None]) -> None:
    before = result_of("rich")
    now = copy.deepcopy(before)
    change(now)
    assert len(differences(before, now)) == 1


def test_what_may_change_is_passed_over() -> None:
    before = result_of("rich")
    now = copy.deepcopy(before)
    now["added"] = 1
    now["notes"] = ["another note"]
    now["audit"]["findings"][0]["meaning"] = "in other words"
    assert differences(before, now) == []
