"""Files of the Open Bandit Dataset: values by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.convert.open_bandit import convert_open_bandit

ROWS, ITEMS = 400, 6


def write_csv(path: Path, **changed: Any) -> dict[str, np.ndarray]:
    """A file as the dataset has it, with an unnamed first column."""
    g = np.random.default_rng(0)
    columns: dict[str, Any] = {
        "": np.arange(ROWS), "timestamp": ["2019-11-24 00:00:17.004101+00:00"] * ROWS,
        "item_id": g.integers(0, ITEMS, ROWS), "position": g.integers(1, 4, ROWS),
        "click": (g.random(ROWS) < 0.2).astype(int),
        "propensity_score": g.uniform(0.1, 0.3, ROWS), "user_feature_0": g.choice(["81ce", "03a5"], ROWS),
        **{f"user-item_affinity_{i}": g.integers(0, 3, ROWS).astype(float) for i in range(ITEMS)}, **changed,
    }  # fmt: skip
    columns = {name: column for name, column in columns.items() if column is not None}
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return columns


def test_the_written_log_runs_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "men").mkdir()
    data = write_csv(tmp_path / "men" / "men.csv")
    (tmp_path / "men" / "item_context.csv").write_text("item_id\n0\n", encoding="utf-8")
    assert convert_open_bandit(tmp_path / "men", tmp_path / "out") == ROWS
    result = ft.OfflineTest.from_toml(tmp_path / "out/settings.toml").run(tmp_path / "out/log.parquet")
    metric = result.metrics["click"]
    assert metric.control.value == pytest.approx(data["click"].mean(), rel=1e-12)
    scores = np.stack([data[f"user-item_affinity_{i}"] for i in range(ITEMS)], axis=1)
    softmax = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    w = softmax[np.arange(ROWS), data["item_id"]] / data["propensity_score"]
    assert metric.estimates["is"].treatment == pytest.approx((w * data["click"]).mean(), rel=1e-6)  # float32 scores
    assert {segment.column for segment in result.segments} == {"position"}


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"click": None}, "there is no column 'click'"),
        ({f"user-item_affinity_{i}": None for i in range(ITEMS)}, "there is no column 'user-item_affinity_0'"),
        (
            {"user-item_affinity_": [1.0] * ROWS, **{f"user-item_affinity_{i}": None for i in range(ITEMS)}},
            "there is no column 'user-item_affinity_0'",
        ),
        ({"propensity_score": ["often"] * ROWS}, "column 'propensity_score', row 0 (the first row is 0): "),
    ],
)
def test_bad_files(changed: dict[str, Any], what: str, tmp_path: Path) -> None:
    path = tmp_path / "men.csv"
    write_csv(path, **changed)
    with pytest.raises(ft.BadInput) as error:
        convert_open_bandit(path, tmp_path / "out")
    assert str(error.value).startswith(f"{path}: ")
    assert what in str(error.value)
    assert not (tmp_path / "out").exists()


def test_names_that_are_no_text_or_there_twice(tmp_path: Path) -> None:
    path = tmp_path / "men.csv"
    write_csv(path)
    good = path.read_bytes()
    for old, new, what in (
        (b"timestamp", b"time\xff", "cannot be read as CSV (the name of a column is not text in UTF-8)."),
        (b"timestamp", b"click", "column 'click' is there 2 times. Rename all but one."),
    ):
        path.write_bytes(good.replace(old, new, 1))
        with pytest.raises(ft.BadInput) as error:
            convert_open_bandit(path, tmp_path / "out")
        assert str(error.value) == f"{path}: {what}"


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(ft.BadInput, match="no such file or folder"):
        convert_open_bandit(tmp_path / "none", tmp_path / "out")
    with pytest.raises(ft.BadInput, match="no CSV file in the folder: name the file of one campaign"):
        convert_open_bandit(tmp_path, tmp_path / "out")
