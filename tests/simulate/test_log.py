"""Simulated logs: the same digits however they are cut, columns that fit together, files that are whole."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from foretest.simulate import WORLDS, simulate_log, write_log
from foretest.simulate.displays import CHUNK
from foretest.simulate.log import SCHEMA

PAPER = WORLDS["paper"]
MANY = replace(PAPER, name="many", min_candidates=6, displays_per_user=3.0, sticky=True)


def table(rows: int, seed: int = 0, batch_rows: int = 65_536) -> pa.Table:
    return pa.Table.from_batches(simulate_log(MANY, rows, seed, batch_rows=batch_rows)).combine_chunks()


@pytest.mark.parametrize("batch_rows", [1000, CHUNK, 9001, 10**6])
def test_batches_change_no_digit(batch_rows: int) -> None:
    rows = 2 * CHUNK + 100
    batches = list(simulate_log(MANY, rows, 4, batch_rows=batch_rows))
    assert all(batch.num_rows == batch_rows for batch in batches[:-1])
    assert pa.Table.from_batches(batches).combine_chunks().equals(table(rows, 4))


def test_a_longer_log_starts_with_the_shorter_one() -> None:
    assert table(2 * CHUNK).slice(0, 500).combine_chunks().equals(table(500))


def test_seeds_differ() -> None:
    one, other = table(500, 0), table(500, 1)
    assert not one["click"].equals(other["click"])
    assert not one["ranking"].equals(other["ranking"])


def test_columns_fit_together() -> None:
    log = table(2 * CHUNK)
    assert log.schema.equals(SCHEMA)
    assert all(column.null_count == 0 for column in log.columns)
    assert log["display_id"].to_pylist() == list(range(2 * CHUNK))
    assert pc.list_value_length(log["ranking"]).unique().to_pylist() == [4]
    lengths = pc.list_value_length(log["control_scores"])
    assert lengths.equals(pc.list_value_length(log["treatment_scores"]))
    assert set(lengths.to_pylist()) == set(range(6, 21))
    assert np.isfinite(pc.list_flatten(log["treatment_scores"]).to_numpy()).all()
    assert pc.equal(pc.greater(log["revenue"], 0), log["click"]).to_numpy().all()
    assert len(log["day"].unique()) == 7
    for metric in ("click", "revenue"):
        slots = pc.list_flatten(log[f"slot_{metric}"]).to_numpy().astype(np.float64).reshape(-1, 4)
        np.testing.assert_array_equal(slots.sum(axis=1), log[metric].to_numpy().astype(np.float64))
        assert (np.count_nonzero(slots, axis=1) == log["click"].to_numpy()).all()
    users = log["user"].to_numpy()
    assert not set(users[:CHUNK]) & set(users[CHUNK:])


def test_sticky_users_see_one_ranking() -> None:
    log = table(CHUNK)
    seen: dict[int, tuple[list[int], list[float]]] = {}
    for row in log.select(["user", "ranking", "control_scores"]).to_pylist():
        shown = (row["ranking"], row["control_scores"])
        assert seen.setdefault(row["user"], shown) == shown
    assert len(seen) == pytest.approx(CHUNK / 3, rel=0.1)


def test_rankings_are_drawn_from_the_logged_scores() -> None:
    log = pa.Table.from_batches(simulate_log(PAPER, 4 * CHUNK))
    scores = pc.list_flatten(log["control_scores"]).to_numpy().astype(np.float64).reshape(-1, 20)
    first = pc.list_flatten(log["ranking"]).to_numpy().reshape(-1, 4)[:, 0]
    probability = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    entropy = -(probability * np.log(probability)).sum(axis=1)
    surprise = -np.log(probability[np.arange(len(first)), first])
    gap = surprise - entropy
    assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(len(gap))
    # The treatment's scores would not pass for the logging policy's.
    wrong = pc.list_flatten(log["treatment_scores"]).to_numpy().astype(np.float64).reshape(-1, 20)
    assert np.abs(wrong - scores).max() > 1


@pytest.mark.slow
def test_written_folder(tmp_path: Path) -> None:
    done: list[int] = []
    folder = tmp_path / "new" / "log"
    write_log(folder, PAPER, 70_000, 3, done.append)
    assert sorted(path.name for path in folder.iterdir()) == ["log.parquet", "settings.toml", "truth.json"]
    assert done == [65_536, 70_000]

    log = pq.read_table(folder / "log.parquet")
    assert log.equals(pa.Table.from_batches(simulate_log(PAPER, 70_000, 3)))
    metadata = pq.read_metadata(folder / "log.parquet")
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [65_536, 4_464]
    assert metadata.row_group(0).column(0).compression == "ZSTD"

    settings = tomllib.loads((folder / "settings.toml").read_text(encoding="utf-8"))
    roles = settings["log"]
    named = [roles[role] for role in ("unit", "ranking", "id", "date")] + roles["rewards"] + roles["features"]
    named += [settings[arm]["scores"] for arm in ("control", "treatment")] + list(roles["slot_rewards"].values())
    assert set(named) <= set(log.column_names)
    assert roles["rewards"] == ["click"]

    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    assert (truth["world"], truth["seed"], truth["rows"]) == ("paper", 3, 70_000)
    assert set(truth["log"]) == {"control", "treatment", "effect_size", "rel_uplift", "std_error"}
    assert truth["log"] == truth["metrics"]["click"]
    for metric in ("click", "revenue"):
        values = log[metric].to_numpy().astype(np.float64)
        error = values.std() / np.sqrt(len(values))
        assert truth["metrics"][metric]["control"] == pytest.approx(values.mean(), abs=4 * error)


@pytest.mark.slow
def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    (tmp_path / "truth.json").write_text("old")

    def fail(rows: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_log(tmp_path, PAPER, 100, progress=fail, replace=True)
    assert [path.name for path in tmp_path.iterdir()] == ["truth.json"]
    assert (tmp_path / "truth.json").read_text() == "old"


@pytest.mark.parametrize(("rows", "seed", "batch_rows"), [(0, 0, 1), (1, -1, 1), (1, 0, 0)])
def test_impossible_sizes_are_refused_before_anything_is_drawn(rows: int, seed: int, batch_rows: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        simulate_log(PAPER, rows, seed, batch_rows=batch_rows)
