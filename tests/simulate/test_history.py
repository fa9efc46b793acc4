"""Simulated histories: digits, arms, truth and files."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from foretest.settings.file import read_settings
from foretest.simulate import (
    WORLDS,
    Changes,
    chunk_generator,
    click_probability,
    draw_change,
    draw_displays,
    draw_test,
    history,
    simulate_log,
    write_history,
)

PAPER = WORLDS["paper"]
TINY = replace(PAPER, candidates=4, min_candidates=4, slots=2, cold_share=0.3)
ARMS = ("control", "treatment")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tests of 300 displays an arm."""
    folder = tmp_path_factory.mktemp("history") / "new"
    write_history(folder, TINY, tests=2, rows=300, seed=5)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def truth_of(folder: Path) -> dict[str, dict[str, Any]]:
    truth: dict[str, dict[str, Any]] = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    del truth["foretest"]  # the mark of the file
    return truth


def scores_of(log: pa.Table, arm: str) -> NDArray[np.float64]:
    values = pc.list_flatten(log[f"{arm}_scores"]).to_numpy().astype(np.float64)
    return values.reshape(log.num_rows, -1)


@pytest.mark.slow
def test_neither_more_tests_nor_more_processes_change_a_digit(written: Path, tmp_path: Path) -> None:
    done: list[int] = []
    write_history(tmp_path, TINY, 3, 300, 5, done.append, processes=2)
    assert done == [1, 2, 3]
    before, after = files(written), files(tmp_path)
    for name in before:
        if name.endswith(".parquet") or name == "settings.toml":
            assert after[name] == before[name]
    assert {name: entry for name, entry in truth_of(tmp_path).items() if name != "test-003"} == truth_of(written)
    assert len(after) == 3 * 2 + 3


def test_more_rows_begin_with_the_same(written: Path, tmp_path: Path) -> None:
    write_history(tmp_path, TINY, 1, 400, 5)
    for arm in ARMS:
        longer = pq.read_table(tmp_path / "test-001" / f"{arm}.parquet")
        assert longer.slice(0, 300).equals(pq.read_table(written / "test-001" / f"{arm}.parquet"))


def test_tests_and_seeds_differ(written: Path) -> None:
    clicks = {path: pq.read_table(path)["ranking"].to_pylist() for path in written.rglob("*.parquet")}
    assert len({str(rankings) for rankings in clicks.values()}) == 4
    assert len({draw_test(PAPER, number, seed) for number in (1, 2, 3) for seed in (0, 1)}) == 6


def test_arms_share_no_user_and_no_display(written: Path) -> None:
    for test in ("test-001", "test-002"):
        control, treatment = (pq.read_table(written / test / f"{arm}.parquet") for arm in ARMS)
        for column in ("user", "display_id"):
            assert not set(control[column].to_pylist()) & set(treatment[column].to_pylist())
        assert control.schema.names == treatment.schema.names
        assert "revenue" not in control.schema.names


@pytest.mark.parametrize("arm", ARMS)
def test_each_arm_shows_what_its_own_policy_draws(arm: str) -> None:
    world = replace(TINY, change=replace(TINY.change, strength=1.0))
    log = pa.Table.from_batches(simulate_log(world, 40_000, 1, arm=arm))  # type: ignore[arg-type]
    first = pc.list_flatten(log["ranking"]).to_numpy().reshape(-1, 2)[:, 0]
    # The items in order of the control's scores, so that their places differ in probability.
    places = scores_of(log, "control").argsort(axis=1)
    gaps = {}
    for policy in ARMS:
        odds = np.exp(scores_of(log, policy))
        softmax = np.take_along_axis(odds / odds.sum(axis=1, keepdims=True), places, axis=1)
        variance = (softmax * (1 - softmax)).sum(axis=0)
        gaps[policy] = ((first[:, None] == places) - softmax).sum(axis=0) / np.sqrt(variance)
    assert np.abs(gaps.pop(arm)).max() < 4
    assert np.abs(gaps.popitem()[1]).max() > 10


def test_an_unknown_arm_is_refused() -> None:
    with pytest.raises(ValueError, match="arm 'both': expected one of control, treatment"):
        simulate_log(PAPER, 10, arm="both")  # type: ignore[arg-type]


def enumerated(change: Any, seed: int, chunks: int) -> tuple[float, float]:
    """Relative uplift over all rankings of fresh displays, and its standard error."""
    pairs = []
    for chunk in range(chunks):
        displays = draw_displays(TINY, change, chunk_generator(seed, 77, chunk))
        values = []
        for scores in (displays.control_scores, displays.treatment_scores):
            odds = np.exp(scores.astype(np.float64))
            total, value = odds.sum(axis=1), np.zeros(len(displays))
            for ranking in permutations(range(TINY.candidates), 2):
                first, second = odds[:, ranking[0]], odds[:, ranking[1]]
                shown = np.tile(np.array(ranking, dtype=np.int16), (len(displays), 1))
                value += first / total * second / (total - first) * click_probability(TINY, displays, shown)
            values.append(value)
        pairs.append(np.stack(values))
    control, treatment = np.concatenate(pairs, axis=1)
    uplift = treatment.mean() / control.mean() - 1
    terms = (treatment - (1 + uplift) * control) / control.mean()
    return float(uplift), float(terms.std() / np.sqrt(len(terms)))


def test_truth_is_the_enumeration(written: Path) -> None:
    for number, (name, entry) in enumerate(truth_of(written).items(), start=1):
        change = draw_test(TINY, number, 5).change
        assert name == f"test-00{number}"
        assert entry["change"] == {**asdict(change), "touched": list(change.touched)}
        uplift, std_error = enumerated(change, seed=number, chunks=12)
        assert abs(entry["rel_uplift"] - uplift) < 4 * np.hypot(entry["std_error"], std_error)
        assert entry["rel_uplift"] == pytest.approx(entry["treatment"] / entry["control"] - 1)
        assert 0 < entry["std_error"] < 0.004


def test_nothing_changes_in_an_aa_history(tmp_path: Path) -> None:
    write_history(tmp_path, PAPER, 2, 200, aa=True)
    for name, entry in truth_of(tmp_path).items():
        assert entry["rel_uplift"] == 0
        assert entry["control"] == entry["treatment"] > 0
        for arm in ARMS:
            log = pq.read_table(tmp_path / name / f"{arm}.parquet")
            assert log["control_scores"].equals(log["treatment_scores"])


def test_manifest_and_settings_name_what_is_there(written: Path) -> None:
    manifest = tomllib.loads((written / "manifest.toml").read_text(encoding="utf-8"))
    assert (written / manifest["truth"]).is_file()
    assert [test["name"] for test in manifest["test"]] == list(truth_of(written)) == ["test-001", "test-002"]
    settings = read_settings(written / manifest["settings"])
    roles = settings.log
    for test in manifest["test"]:
        for arm in ARMS:
            names = set(pq.read_schema(written / test[arm]).names)
            assert roles.slot_rewards is not None
            slots = roles.slot_rewards.values()
            named = {*roles.rewards, roles.unit, roles.ranking, roles.id, roles.date, *roles.features, *slots}
            assert named | {"control_scores", "treatment_scores"} == names
    compression = pq.read_metadata(written / "test-001" / "control.parquet").row_group(0).column(0).compression
    assert compression == "ZSTD"


def test_a_failure_leaves_no_half_of_anything(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_history(tmp_path, TINY, 1, 300, 6)
    write = history.write_parquet
    calls: list[Path] = []

    def fails_at_the_third(path: Path, batches: Iterator[pa.RecordBatch], *rest: Any) -> None:
        calls.append(path)
        write(path, batches, *rest)
        if len(calls) == 3:
            raise OSError("No space left on device")

    monkeypatch.setattr(history, "write_parquet", fails_at_the_third)
    with pytest.raises(OSError, match="No space"):
        write_history(tmp_path, TINY, 2, 300, 5)
    left = files(tmp_path)
    # The manifest and the truth of the history that was there no longer hold.
    assert set(left) == {"settings.toml", "test-001/control.parquet", "test-001/treatment.parquet"}
    for name in left:
        assert left[name] == files(written)[name]
    assert not (tmp_path / "test-002").exists()


@pytest.mark.parametrize("wrong", [{"tests": 0}, {"rows": 0}, {"seed": -1}, {"processes": 0}])
def test_impossible_sizes_are_refused_before_anything_is_written(wrong: dict[str, int], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected >= 1"):
        write_history(tmp_path / "new", PAPER, **wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


def test_changes_follow_their_distribution() -> None:
    changes = Changes(neutral_share=0.25, cold_lift_mean=10.0)
    rng = np.random.default_rng(0)
    drawn = [draw_change(changes, {"a": 0.2, "b": 1.0, "c": 0.0}, rng) for _ in range(4000)]
    accuracy = np.array([change.accuracy for change in drawn])
    lift = np.array([change.cold_lift for change in drawn])
    moved = accuracy != 0
    assert moved.mean() == pytest.approx(0.75, abs=4 * np.sqrt(0.75 * 0.25 / 4000))
    assert (lift[~moved] == 0).all()
    quality = np.arctanh(accuracy[moved])
    assert quality.mean() == pytest.approx(changes.quality_mean, abs=4 * changes.quality_sd / np.sqrt(3000))
    assert quality.std() == pytest.approx(changes.quality_sd, rel=0.06)
    slope = np.polyfit(accuracy[moved], lift[moved], 1)[0]
    assert slope == pytest.approx(changes.cold_lift_slope, abs=0.2)
    assert {change.touched for change in drawn} == {("b",), ("a", "b")}
    assert np.median([change.strength for change in drawn]) == pytest.approx(changes.strength_median, rel=0.03)


@pytest.mark.parametrize("wrong", [{"neutral_share": 1.1}, {"quality_sd": -1.0}, {"strength_median": -0.1}])
def test_impossible_distributions_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Changes(**wrong)
