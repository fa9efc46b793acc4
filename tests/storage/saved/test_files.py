"""Saved aggregates: the same bits, merged as the whole, analysed anew, refused by name."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest._version import __version__
from foretest.aggregation import fold_start
from foretest.aggregation.aggregates import Aggregates
from foretest.kernels import hashing
from foretest.settings.file import settings_from_tables
from foretest.sources import AGGREGATES
from foretest.storage.saved import files as module
from foretest.storage.saved import write_aggregates
from foretest.storage.saved.differences import FREE
from foretest.storage.saved.files import SavedFile, merge_files
from foretest.storage.saved.recipe import LAYOUT
from tests.storage.saved.support import assert_same_bits, assert_same_result, folded, read_back, write_days
from tests.support import SCORES, SmallLog, build_test

LOG = SmallLog()


@pytest.fixture(autouse=True, scope="module")
def _one_openmp_thread() -> Iterator[None]:
    """On cores that others use, the threads of scikit-learn wait for each other many times as long as they work."""
    import sklearn.ensemble  # noqa: F401  # its library must be loaded to be limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="openmp"):
        yield


ESTIMATORS = ["cis", "ncis", "dr", "piece-ncis", "point-ncis", "point-ncis-adaptive"]


def saved(test: ft.OfflineTest, log: Any, path: Path) -> str:
    test.save_aggregates(log, path)
    return str(path)


def document_of(path: str | Path) -> dict[str, Any]:
    return json.loads(pq.read_schema(path).metadata[AGGREGATES])


def with_document(path: str, changed: Callable[[dict[str, Any]], None], out: Path) -> str:
    """The same file with other metadata."""
    document = document_of(path)
    changed(document)
    with pq.ParquetFile(path) as file, pq.ParquetWriter(
        out, file.schema_arrow.with_metadata(module._metadata(document)), use_dictionary=False
    ) as writer:  # fmt: skip
        for group in range(file.num_row_groups):
            writer.write_table(file.read_row_group(group))
    return str(out)


# -- to the last bit ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["user", None])
def test_a_file_gives_the_same_bits_back(tmp_path: Path, unit: str | None) -> None:
    test = build_test(ESTIMATORS, metrics=("click", "revenue"), unit=unit, buckets=64)
    before = folded(test, LOG.table())
    write_aggregates(tmp_path / "a.parquet", before, ["a note"], {"click": 1.0})
    assert_same_bits(SavedFile.open(tmp_path / "a.parquet").read(before.plan), before)
    assert_same_bits(read_back(tmp_path / "a.parquet"), before)  # under the settings that it records
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_rows_in_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_ROWS", 16)
    before = folded(build_test(ESTIMATORS), LOG.table())
    write_aggregates(tmp_path / "a.parquet", before)
    assert document_of(tmp_path / "a.parquet")["kept"]["/fields/sample"]["ends"] == [16, 32, 64, 128, 256, 400]
    assert_same_bits(read_back(tmp_path / "a.parquet"), before)


def test_an_empty_log(tmp_path: Path) -> None:
    test = build_test(["cis", "point-ncis"])
    path = saved(test, LOG.table().slice(0, 0), tmp_path / "a.parquet")
    assert test.run(path).metrics["click"].verdict == "insufficient"
    assert_same_result(test.run([path]), test.run(LOG.table().slice(0, 0)))


def test_what_a_file_says_of_itself(tmp_path: Path) -> None:
    _, [first, *_] = write_days(tmp_path)
    test = build_test(["cis", "piece-ncis"], r_max=1.0, confidence_level=0.8)
    document = document_of(saved(test, first, tmp_path / "a.parquet"))
    assert (document["layout"], document["foretest"], document["hash"]) == (LAYOUT, __version__, hashing.NAME)
    again = settings_from_tables(document["settings"])
    assert (again.log, again.analysis) == (test.settings.log, test.settings.analysis)
    assert again.control.settings() == test.settings.control.settings()
    assert document["r_max"] == {"click": 1.0}
    assert [e["label"] for e in document["estimators"]] == ["cis", "piece-ncis"]
    assert [(file["path"], len(file["content"])) for file in document["inputs"]] == [(first, 32)]
    assert document["rows"] == 100


def test_the_fingerprint_tells_what_must_match(tmp_path: Path) -> None:
    def fingerprint(**changes: Any) -> str:
        write_aggregates(tmp_path / "a.parquet", folded(build_test(["cis"], **changes), LOG.table()))
        return str(document_of(tmp_path / "a.parquet")["fingerprint"])

    same = fingerprint()
    assert fingerprint(confidence_level=0.5, interval="delta", n_resamples=7, headline="cis", gamma=2.0) == same
    assert len({same, fingerprint(cap=3.0), fingerprint(buckets=7), fingerprint(unit=None), fingerprint(seed=1)}) == 5


# -- merged -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_merged_days_are_the_whole(tmp_path: Path) -> None:
    test = build_test(ESTIMATORS, metrics=("click", "revenue"), strata="value-model")
    log, days = write_days(tmp_path)
    paths = [saved(test, day, tmp_path / f"a{i}.parquet") for i, day in enumerate(days)]
    whole = test.run(log.table())
    assert_same_result(test.run(paths), whole, 1e-12)
    assert_same_result(test.run(paths[::-1]), whole, 1e-12)
    assert_same_result(test.run(str(tmp_path / "a*.parquet")), whole, 1e-12)


def test_a_merge_reads_only_the_heads_of_kept_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_start, "MOST_REWARDED", 40)
    monkeypatch.setattr(fold_start, "SAMPLED_DISPLAYS", 60)
    monkeypatch.setattr(module, "_FIRST_ROWS", 8)
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    test = build_test(ESTIMATORS)
    log, days = write_days(tmp_path, rows=1000, days=10)
    paths = [saved(test, day, tmp_path / f"a{i}.parquet") for i, day in enumerate(days)]
    read: list[int] = []
    plain = pq.ParquetFile.read_row_groups

    def counted(self: Any, groups: list[int], *args: Any, **options: Any) -> pa.Table:
        read.append(len(groups))
        return plain(self, groups, *args, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", counted)
    merged, whole = folded(test, paths), folded(test, log.table())
    assert len(read) == 10
    assert sum(read) < sum(pq.ParquetFile(path).num_row_groups for path in paths) / 2
    assert len(whole.rewarded.columns()["unit"]) == 40
    for kept in ("rewarded", "sample"):
        mine, theirs = getattr(merged, kept), getattr(whole, kept)
        assert mine.seen == theirs.seen
        assert mine.columns().keys() == theirs.columns().keys()
        for name, column in theirs.columns().items():
            # codes of strata are in the order of labels met, which another cut changes
            if name[0] != "stratum":
                np.testing.assert_array_equal(mine.columns()[name], column, err_msg=str(name))
    assert_same_result(test.analyse(merged, [], {}), test.analyse(whole, [], {}), 1e-12)


def test_days_that_are_merged_can_be_merged_again(tmp_path: Path) -> None:
    test = build_test(ESTIMATORS)
    log, days = write_days(tmp_path)
    paths = [saved(test, day, tmp_path / f"a{i}.parquet") for i, day in enumerate(days)]
    half = saved(test, paths[:2], tmp_path / "half.parquet")
    assert_same_result(test.run([half, *paths[2:]]), test.run(log.table()), 1e-12)
    with pytest.raises(ft.BadInput, match=r"half.parquet and .*a1.parquet were both made from .*day1.parquet"):
        test.run([half, paths[1]])


def test_without_unit_and_id_values_add_up(tmp_path: Path) -> None:
    """Buckets follow from positions, which begin anew in each file: the value is the whole's, its limits are others."""
    columns = ft.LogColumns(rewards=["click"], ranking="ranking")
    test = ft.OfflineTest(log=columns, **SCORES, estimators=["ncis"], cap=2.0, interval="delta")
    log, days = write_days(tmp_path)
    merged = test.run([saved(test, day, tmp_path / f"a{i}.parquet") for i, day in enumerate(days)])
    whole = test.run(log.table())
    assert merged.log == whole.log
    assert merged.metrics["click"].estimates["ncis"].effect_size == pytest.approx(
        whole.metrics["click"].estimates["ncis"].effect_size, rel=1e-12
    )


# -- analysed under other settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"confidence_level": 0.5},
        {"interval": "delta"},
        {"n_resamples": 37},
        {"headline": "cis"},
        {"interval": "bernstein", "estimators": ["cis", "point-ncis-adaptive"]},
        {"interval": "bernstein", "estimators": ["point-ncis-adaptive"]},
        {"estimators": ["ncis"]},
    ],
    ids=str,
)
def test_what_may_still_change(tmp_path: Path, changes: dict[str, Any]) -> None:
    test = build_test(ESTIMATORS, r_max=1.0)
    path = saved(test, LOG.table(), tmp_path / "a.parquet")
    other = test.replace(**changes)
    assert_same_result(other.run(path), other.run(LOG.table()), 1e-12)
    stored = ft.OfflineTest.from_aggregates(path).replace(**changes)
    assert_same_result(stored.run(path), other.run(LOG.table()), 1e-12)
    assert (
        json.loads(stored.run(path).to_json())["settings"] == json.loads(other.run(LOG.table()).to_json())["settings"]
    )


def test_estimators_that_were_not_asked_for_are_left_out_with_a_note(tmp_path: Path) -> None:
    everything = build_test(r_max=1.0)
    path = saved(everything, LOG.table(), tmp_path / "a.parquet")
    result = everything.replace(interval="bernstein").run(path)
    assert list(result.metrics["click"].estimates) == ["cis", "point-ncis-adaptive"]
    assert any(note.startswith("ncis was left out: interval") for note in result.notes)
    few = saved(build_test(["cis"]), LOG.table(), tmp_path / "b.parquet")
    result = build_test().run(few)
    assert list(result.metrics["click"].estimates) == ["cis"]
    assert "ncis was left out: the aggregates do not have it." in result.notes


# -- refused ----------------------------------------------------------------------------------------------------------


def refused(*what: Any, test: ft.OfflineTest | None = None) -> str:
    test = test or ft.OfflineTest.from_aggregates(list(what))
    with pytest.raises(ft.BadInput) as caught:
        test.run(list(what))
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"cap": 50.0}, "B was made with cap = 50, A with cap = 2"),
        ({"capping": "zero"}, 'B was made with capping = "zero", A with capping = "max"'),
        ({"buckets": 64}, "B was made with buckets = 64, A with buckets = 1024"),
        ({"seed": 3}, "B was made with seed = 3, A with seed = 0"),
        ({"weight_bound": 4.5}, "B was made with weight_bound = 4.5, A with weight_bound = 3"),
        ({"draws": 8}, "B was made with draws = 8, A with draws = 256"),
        ({"r_max": 2.0}, "B was made with r_max = 2, A without r_max"),
        ({"strata": "user"}, 'B was made with strata = "user", A with strata = "stratum"'),
        ({"unit": None}, 'B was made without [log] unit, A with [log] unit = "user"'),
        (
            {"metrics": ("click", "revenue")},
            'B was made with [log] rewards = ["click", "revenue"], A with [log] rewards = ["click"]',
        ),
    ],
    ids=str,
)
def test_other_settings_are_refused_by_name(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    a = saved(build_test(["cis"]), LOG.table(), tmp_path / "a.parquet")
    b = saved(build_test(["cis"], **changes), LOG.table(), tmp_path / "b.parquet")
    said = sentence.replace("B ", f"{b} ").replace("A ", f"{a} ")
    assert refused(a, b) == f"{said}: their sums do not add up. Fold one of the logs again with foretest aggregate."


def test_another_policy_is_refused_by_name(tmp_path: Path) -> None:
    def test(treatment: Any) -> ft.OfflineTest:
        columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking")
        return ft.OfflineTest(log=columns, control=SCORES["control"], treatment=treatment, estimators=["cis"])

    a = saved(test(ft.PlackettLuce("treatment_scores")), LOG.table(), tmp_path / "a.parquet")
    b = saved(test(ft.PlackettLuce("treatment_scores", temperature=0.5)), LOG.table(), tmp_path / "b.parquet")
    c = saved(test(ft.Mallows("treatment_scores", dispersion=0.5)), LOG.table(), tmp_path / "c.parquet")
    assert "b.parquet was made with [treatment] temperature = 0.5, " in refused(a, b)
    assert '[treatment] policy = "mallows"' in refused(a, c)


def test_other_estimators_are_refused_by_name(tmp_path: Path) -> None:
    a = saved(build_test(["cis"]), LOG.table(), tmp_path / "a.parquet")
    b = saved(build_test(["cis", "ncis"]), LOG.table(), tmp_path / "b.parquet")
    c = saved(build_test([ft.CIS(cap=7)]), LOG.table(), tmp_path / "c.parquet")
    assert f"{b} was made with the estimators cis, ncis, {a} with cis: their sums do not add up." in refused(a, b)
    assert refused(a, c) == f"{c} was made with cis (cap = 7), {a} with cis."
    assert f"{a} was made without ncis: it has cis." in refused(a, test=build_test(["ncis"]))


def test_the_settings_must_agree(tmp_path: Path) -> None:
    a = saved(build_test(["cis"]), LOG.table(), tmp_path / "a.parquet")
    said = refused(a, test=build_test(["cis"], cap=50.0))
    assert said == (
        f"{a} was made with cap = 2, the settings say 50. Once a log is folded, only confidence_level, interval,"
        " n_resamples, headline, gamma, gamma_slots, decide_on and ignore_audit can change: fold it again with foretest"
        " aggregate, or leave cap as it was."
    )
    assert set(FREE) == {
        "confidence_level", "interval", "n_resamples", "headline", "gamma", "gamma_slots", "decide_on", "ignore_audit",
    }  # fmt: skip
    assert 'made with [log] unit = "user", the settings name none' in refused(a, test=build_test(["cis"], unit=None))


def test_a_mix_of_logs_and_aggregates_is_refused(tmp_path: Path) -> None:
    _, [day, *_] = write_days(tmp_path)
    a = saved(build_test(["cis"]), LOG.table(), tmp_path / "a.parquet")
    said = refused(day, a, test=build_test(["cis"]))
    assert said.startswith(f"{a} holds aggregates and {day} is a log: they cannot be mixed.")


def test_aggregates_are_no_log(tmp_path: Path) -> None:
    test = build_test(["cis"])
    a = saved(test, LOG.table(), tmp_path / "a.parquet")
    for act in (lambda: test.check(a), lambda: test.pack(a, tmp_path / "packed")):
        with pytest.raises(ft.BadInput, match=r"a.parquet: holds saved aggregates, expected a log\."):
            act()
    with pytest.raises(ft.BadInput, match="no aggregates, but a log"):
        ft.OfflineTest.from_aggregates(write_days(tmp_path)[1][0])


def test_another_version_is_refused(tmp_path: Path) -> None:
    a = saved(build_test(["cis"]), LOG.table(), tmp_path / "a.parquet")
    old = with_document(a, lambda d: d.update(layout=LAYOUT + 1, foretest="9.9"), tmp_path / "old.parquet")
    other = with_document(a, lambda d: d.update(hash="md5/1"), tmp_path / "other.parquet")
    assert refused(old, test=build_test(["cis"])) == (
        f"{old}: aggregates of Foretest 9.9, in layout {LAYOUT + 1} with hash xxh64/1; Foretest {__version__} has"
        f" layout {LAYOUT} with hash xxh64/1. Fold the log again with foretest aggregate."
    )
    assert "with hash md5/1" in refused(a, other, test=build_test(["cis"]))
    assert_same_result(  # metadata written again is read as before
        build_test(["cis"]).run(with_document(a, lambda d: None, tmp_path / "same.parquet")), build_test(["cis"]).run(a)
    )


# -- value models -----------------------------------------------------------------------------------------------------


def features_test(**analysis: Any) -> ft.OfflineTest:
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", features=["v", "stratum"])
    return ft.OfflineTest(log=columns, **SCORES, estimators=["piece-ncis", "dr"], cap=2.0, **analysis)


def test_models_fitted_apart_are_refused(tmp_path: Path) -> None:
    test = features_test()
    _, days = write_days(tmp_path, days=2)
    a, b = (saved(test, day, tmp_path / f"a{i}.parquet") for i, day in enumerate(days))
    said = refused(a, b, test=test)
    assert said.startswith(
        f"{b} was made with another value model V(x) than {a}: a cross-fitted one belongs to its log."
    )
    assert "value_log" in said
    assert_same_result(test.run(a), test.run(days[0]), 1e-12)  # alone it is as good as its log


def test_one_log_to_fit_on_gives_one_model(tmp_path: Path) -> None:
    history = SmallLog(1000, seed=5)
    pq.write_table(history.table(), tmp_path / "history.parquet")
    test = features_test(value_log=str(tmp_path / "history.parquet"))
    log, days = write_days(tmp_path, days=3)
    paths = [saved(test, day, tmp_path / f"a{i}.parquet") for i, day in enumerate(days)]
    assert len({document_of(path)["value_model"] for path in paths}) == 1
    assert_same_result(test.run(paths), test.run(log.table()), 1e-12)
    # the log is not read again
    (tmp_path / "history.parquet").unlink()
    test.run(paths)
    # one that is cut otherwise, but has the same rows, is the same model; one with other rows is not
    pq.write_table(history.table(), tmp_path / "history.parquet", row_group_size=77)
    assert (
        document_of(saved(test, days[0], tmp_path / "b.parquet"))["value_model"] == document_of(paths[0])["value_model"]
    )
    pq.write_table(history.table().slice(1), tmp_path / "history.parquet")
    other = saved(test, days[2], tmp_path / "c.parquet")
    assert "another value model" in refused(*paths[:2], other, test=test)


# -- a user's own objects ---------------------------------------------------------------------------------------------

OWN_POLICY = """
import foretest as ft

class Mine(ft.PlackettLuce):
    def __init__(self, scores, heat=1.0):
        super().__init__(scores, temperature=heat)
        self.heat = heat
        del self.temperature

    @property
    def temperature(self):
        return self.heat

    @temperature.setter
    def temperature(self, value):
        pass

    @temperature.deleter
    def temperature(self):
        pass
"""


def test_a_policy_of_ones_own_is_never_imported_for_its_sums(tmp_path: Path) -> None:
    (tmp_path / "mine_saved.py").write_text(OWN_POLICY)
    toml = """
        [log]\nrewards = ["click"]\nunit = "user"\nranking = "ranking"
        [control]\npolicy = "plackett-luce"\nscores = "control_scores"
        [treatment]\npolicy = "mine_saved:Mine"\nscores = "treatment_scores"\nheat = 0.8
        [analysis]\nestimators = ["cis", "point-ncis-adaptive"]\nnormaliser = "two-sided"\ndraws = 8
    """
    (tmp_path / "test.toml").write_text("\n".join(line.strip() for line in toml.splitlines()))
    test = ft.OfflineTest.from_toml(tmp_path / "test.toml")
    a = saved(test, LOG.table(), tmp_path / "a.parquet")
    b = saved(test, SmallLog(seed=2).table(), tmp_path / "b.parquet")
    expected = test.run([a, b])
    assert_same_result(ft.OfflineTest.from_toml(tmp_path / "test.toml").run([a, b]), expected)
    (tmp_path / "mine_saved.py").unlink()
    del sys.modules["mine_saved"]
    result = ft.OfflineTest.from_aggregates([a, b]).run([a, b])
    assert_same_result(result, expected)
    assert result.settings["treatment"] == {"policy": "mine_saved:Mine", "scores": "treatment_scores", "heat": 0.8}
    assert "mine_saved" not in sys.modules


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tempered(ft.NIS):
    """Σ w^β r / Σ w^β."""

    key = "tempered"
    power: float = 0.5

    def weighting(self, analysis: Any) -> ft.Weighting:
        return Power(self.power)


@dataclasses.dataclass(frozen=True)
class Power(ft.Weighting):
    power: float

    def log_h(self, log_w: Any) -> Any:
        return self.power * log_w


def test_estimators_of_ones_own_come_from_the_test(tmp_path: Path) -> None:
    test = build_test([Tempered(), ft.CIS(cap=1.5, name="low"), "cis"])
    log, days = write_days(tmp_path)
    paths = [saved(test, day, tmp_path / f"a{i}.parquet") for i, day in enumerate(days)]
    assert_same_result(test.run(paths), test.run(log.table()), 1e-12)
    with pytest.raises(ft.BadInput) as caught:
        ft.OfflineTest.from_aggregates(paths)
    assert "made with estimators that are Python objects (tempered, low)" in str(caught.value)
    said = refused(*paths, test=build_test([Tempered(power=0.25), "cis"]))
    own = f"{__name__}:Tempered"
    assert f"was made with tempered ({own}, power = 0.5), the test has tempered ({own}, power = 0.25)." in said
    assert "was made with low (cap = 1.5), the test has none of that name." in refused(
        *paths, test=build_test([Tempered(), "cis"])
    )


# -- damaged ----------------------------------------------------------------------------------------------------------


def test_truncated_anywhere_a_file_is_refused(tmp_path: Path) -> None:
    test = build_test(["cis"])
    a = saved(test, LOG.table(), tmp_path / "a.parquet")
    content = Path(a).read_bytes()
    for size in np.linspace(0, len(content) - 1, 25).astype(int):
        short = tmp_path / "short.parquet"
        short.write_bytes(content[:size])
        assert refused(a, short, test=test).startswith(f"{short}: ")


def test_a_changed_byte_is_never_a_changed_number(tmp_path: Path) -> None:
    """Every page has a checksum; what is not in a page either reads as before or is refused."""
    test = build_test(["cis", "point-ncis-adaptive"])
    a = saved(test, LOG.table(), tmp_path / "a.parquet")
    expected = test.run(a)
    content = bytearray(Path(a).read_bytes())
    rng = np.random.default_rng(0)
    told = unharmed = 0
    for at in rng.integers(0, len(content), 60):
        changed = bytearray(content)
        changed[at] ^= 1 << int(rng.integers(8))
        damaged = tmp_path / "damaged.parquet"
        damaged.write_bytes(changed)
        try:
            assert_same_result(test.run(str(damaged)), expected, 0.0)
        except ft.BadInput as error:
            told += str(damaged) in str(error)
        else:
            unharmed += 1
    assert told + unharmed == 60
    assert told > 30


def test_a_changed_setting_is_told(tmp_path: Path) -> None:
    test = build_test(["cis"], cap=123.0)
    a = saved(test, LOG.table(), tmp_path / "a.parquet")
    metadata = pq.read_schema(a).metadata
    changed = metadata[AGGREGATES].replace(b'"cap": 123.0', b'"cap": 923.0')
    assert changed != metadata[AGGREGATES]
    pq.write_table(pq.read_table(a).replace_schema_metadata({**metadata, AGGREGATES: changed}), a)
    assert refused(a, test=test).startswith(f"{a}: damaged aggregates (its metadata was changed).")


def test_metadata_that_is_not_ours(tmp_path: Path) -> None:
    test = build_test(["cis"])
    a = saved(test, LOG.table(), tmp_path / "a.parquet")
    broken = with_document(a, lambda d: d.pop("settings"), tmp_path / "broken.parquet")
    assert refused(broken, test=test) == (
        f"{broken}: damaged aggregates (its header has no settings). Fold the log again with foretest aggregate."
    )
    empty = with_document(a, lambda d: d.clear(), tmp_path / "empty.parquet")
    assert "layout None" in refused(empty, test=test)
    _, [day, *_] = write_days(tmp_path)
    with pytest.raises(ft.BadInput, match="a Parquet file without aggregates"):
        SavedFile.open(day)
    with pytest.raises(ft.BadInput, match="no such file"):
        SavedFile.open(tmp_path / "nowhere.parquet")


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = build_test(["cis"])
    a = saved(test, LOG.table(), tmp_path / "a.parquet")
    before = Path(a).read_bytes()

    def full(self: Any, *args: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(OSError, match="No space left"):
        test.save_aggregates(SmallLog(seed=3).table(), a)
    assert Path(a).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_a_log_is_never_written_over(tmp_path: Path) -> None:
    test = build_test(["cis"])
    _, [day, *_] = write_days(tmp_path)
    before = Path(day).read_bytes()
    (tmp_path / "notes.txt").write_text("mine")
    for taken in (day, tmp_path / "notes.txt"):
        with pytest.raises(ft.BadInput, match=r": the file exists already, and holds no aggregates\."):
            test.save_aggregates(day, taken)
    assert Path(day).read_bytes() == before
    a = saved(test, day, tmp_path / "a.parquet")
    assert saved(test, day, tmp_path / "a.parquet") == a  # its own it replaces


def test_many_files_are_not_held_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = build_test(["cis"])
    path = Path(saved(test, LOG.table(), tmp_path / "a.parquet"))
    files = [SavedFile.open(path)] * 20
    held: list[int] = []
    plain = module.merged

    def counted(parts: Any) -> Aggregates:
        held.append(len(parts))
        return plain(parts)

    monkeypatch.setattr(module, "merged", counted)
    merged = merge_files(files, files[0].plan(test.settings))
    assert max(held) <= module._AT_ONCE + 1
    assert merged.rows == 20 * LOG.rows
