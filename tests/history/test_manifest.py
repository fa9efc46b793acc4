"""Manifests: what they say, and what is wrong with those that say something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foretest.errors import BadInput
from foretest.history.manifest import Entry, read_manifest

GOOD = """
settings = "settings.toml"
truth = "truth.json"

[[test]]
name = "one"
control = "one/control.parquet"
treatment = "one/treatment.parquet"

[[test]]
name = "two"
control = "two/control.parquet"
treatment = "two/treatment.parquet"
settings = "two/own.toml"
"""


def write(
    folder: Path, text: str, truth: str = '{"one": {"rel_uplift": 0.02, "other": 1}, "two": {"rel_uplift": 0}}'
) -> Path:
    (folder / "truth.json").write_text(truth)
    (folder / "manifest.toml").write_text(text)
    return folder / "manifest.toml"


def test_a_manifest(tmp_path: Path) -> None:
    manifest = read_manifest(write(tmp_path, GOOD))
    assert manifest.tests == [
        Entry("one", tmp_path / "one/control.parquet", tmp_path / "one/treatment.parquet", tmp_path / "settings.toml"),
        Entry("two", tmp_path / "two/control.parquet", tmp_path / "two/treatment.parquet", tmp_path / "two/own.toml"),
    ]
    assert manifest.truth == {"one": 0.02, "two": 0.0}
    # read only when named
    assert read_manifest(write(tmp_path, GOOD.replace('truth = "truth.json"', ""))).truth == {}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("truth = ", "thruth = ", "the manifest has an unknown key 'thruth'. Did you mean 'truth'?"),
        ('name = "two"', 'name = "one"', "two tests are named 'one'"),
        ('name = "two"\n', "", "test 2: name is missing"),
        ('"two/control.parquet"', "3", "test 'two': control = 3: expected text"),
        ('"two/control.parquet"', '"two/treatment.parquet"', "test 'two': the log two/treatment.parquet is listed"),
        ("settings = \"two/own.toml\"", "setings = 1", "test 'two' has an unknown key 'setings'. Did you mean"),
        ('settings = "settings.toml"\n', "", "test 'one': no settings file"),
        ('truth = "truth.json"', 'truth = "nowhere.json"', "truth = \"nowhere.json\": No such file"),
        ("[[test]]", "[[tests]]", "the manifest has an unknown key 'tests'. Did you mean 'test'?"),
    ],
)  # fmt: skip
def test_mistakes(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(BadInput) as error:
        read_manifest(path)
    assert str(error.value).startswith(f"{path}: {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("truth", ["[1]", "{", json.dumps({"one": 3}), json.dumps({"one": {"uplift": 3}})])
def test_a_truth_of_another_shape(tmp_path: Path, truth: str) -> None:
    with pytest.raises(BadInput, match="expected JSON such as"):
        read_manifest(write(tmp_path, GOOD, truth))


def test_no_tests(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no \[\[test\]\] table"):
        read_manifest(write(tmp_path, 'settings = "s.toml"'))
    with pytest.raises(BadInput, match="no such manifest"):
        read_manifest(tmp_path / "nowhere.toml")
