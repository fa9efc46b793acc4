"""What a history's cache is keyed by, and what it takes for a measurement: the file as it was written, and no other."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretest.history import cache, own_code
from foretest.history.cache import cached_file, read_cached, write_cached
from foretest.history.manifest import Entry
from foretest.history.records import BoundPath, Measurement, Noise, PastMetric, UnsupportedPart
from foretest.history.run import settings_of_test
from foretest.results.result import Estimate
from foretest.results.uplift_range import Range

NAN = float("nan")
ESTIMATE = Estimate(
    0.25, 0.01, 0.02, -0.01, 0.05, 0.1, -0.05, 0.25, "neutral", ["few rewards"], 400.0,
    rel_std_error=0.05, unsupported=0.1, range=Range("band", -0.02, 0.06, -0.1, 0.3, 0.5, 2.0), word="neutral",
    unsupported_noise={"std_error": 0.01, "covariance": 0.0, "enough": True}, p_value=0.2,
    sensitivity={"lower": 0.1, "upper": None},
)  # fmt: skip
PART = UnsupportedPart(0.1, 0.25, 0.01, 0.0, 0.02, NAN, 20.0, 0.95, True, [])
MEASUREMENT = Measurement(
    {"click": PastMetric(
        ESTIMATE, {"ncis": ESTIMATE}, {"ncis": Noise(0.1, 0.05, NAN, None)}, {"ncis": PART},
        BoundPath(20.0, [2.0, 20.0], [0.1, None]),
    )},
    {"outcome": "warn", "ignored": False, "tests": {"moments": "warn", "rows": "pass"}},
    ["2026-03-01", "2026-03-09"],
    ["a note"],
)  # fmt: skip

SETTINGS = """
[log]
rewards = ["click"]
slot_rewards = {click = "slot_click"}
ranking = "ranking"
[control]
policy = "plackett-luce"
scores = "scores"
[treatment]
policy = "plackett-luce"
scores = "scores"
"""
OWN = SETTINGS.replace('[treatment]\npolicy = "plackett-luce"', '[treatment]\npolicy = "mine:Mine"')
MINE = """
from helpers import halved

class Mine:
    def __init__(self, scores, weight=1.0):
        self.scores, self.weight = scores, weight
    def log_prob(self, displays, rankings):
        from package.inner import late
        return halved(late)
    def sample(self, displays, uniforms):
        return None
"""


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    """A test with two logs, which nobody reads here but for their bytes."""
    for arm in ("control", "treatment"):
        pq.write_table(pa.table({"click": [1, 0], "arm": [arm, arm]}), tmp_path / f"{arm}.parquet")
    return Entry("a", tmp_path / "control.parquet", tmp_path / "treatment.parquet", tmp_path / "settings.toml")


def key(entry: Entry, text: str, **analysis: Any) -> str | None:
    """The name that a measurement under these settings has."""
    assert entry.settings is not None
    Path(str(entry.settings)).write_text(text)
    path = cached_file(Path("cache"), entry, settings_of_test(entry, analysis))
    return None if path is None else path.name


def test_a_measurement_comes_back(tmp_path: Path) -> None:
    write_cached(tmp_path / "a.json", MEASUREMENT)
    again = read_cached(tmp_path / "a.json")
    assert again is not None
    assert again.to_dict() == MEASUREMENT.to_dict()
    assert read_cached(tmp_path / "b.json") is None
    assert read_cached(tmp_path) is None


def test_no_flipped_bit_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_cached(path, MEASUREMENT)
    whole = path.read_bytes()
    for place in np.random.default_rng(0).choice(8 * len(whole), 150, replace=False):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << (place % 8)
        path.write_bytes(flipped)
        assert read_cached(path) is None, place
    path.write_bytes(whole[:-1])
    assert read_cached(path) is None


def test_a_measurement_of_another_test_is_not_taken(tmp_path: Path) -> None:
    write_cached(tmp_path / "a.json", MEASUREMENT)
    os.rename(tmp_path / "a.json", tmp_path / "b.json")
    assert read_cached(tmp_path / "b.json") is None


ODD: list[Any] = [None, "x", -1, 1.5, True, [], {"a": [1]}, 10**400]


def changed_everywhere(value: Any) -> list[Any]:
    """The document with each part replaced by each odd value, and with each key left out or added."""
    answers: list[Any] = [odd for odd in ODD if odd != value]
    if isinstance(value, dict):
        answers += [{**value, "further": 1}, *({k: v for k, v in value.items() if k != name} for name in value)]
        answers += [{**value, name: other} for name, inner in value.items() for other in changed_everywhere(inner)]
    elif isinstance(value, list):
        answers += [
            [*value[:i], other, *value[i + 1 :]] for i, v in enumerate(value) for other in changed_everywhere(v)
        ]
    return answers


def test_an_edit_with_a_right_digest_is_a_miss_or_a_measurement(tmp_path: Path) -> None:
    """Whatever was edited, nothing but numbers, words and lists of the right kinds comes through the door."""
    path, count = tmp_path / "a.json", 0
    for document in changed_everywhere(MEASUREMENT.to_dict())[::5]:
        text = json.dumps(document)
        path.write_text(f'{{"digest": "{cache._digest(path, text)}", "measurement": {text}}}\n')
        taken = read_cached(path)
        count += 1
        if taken is None:
            continue
        for metric in taken.metrics.values():
            for estimate in (metric.online, *metric.offline.values()):
                assert estimate.std_error is None or isinstance(estimate.std_error, float)
                assert estimate.verdict in ("positive", "neutral", "negative", "insufficient")
                assert all(isinstance(reason, str) for reason in estimate.reasons)
                assert estimate.range is None or isinstance(estimate.range.ci_lower, float | None)
            assert all(isinstance(noise.variance, float) for noise in metric.noise.values())
            assert all(isinstance(part.variance_at(1.1), float) for part in metric.unsupported.values())
    assert count > 200


def test_the_key_has_resolved_settings(entry: Entry, tmp_path: Path) -> None:
    """A curve by its numbers, wherever they come from; defaults by their values; not comments."""
    result = {"metrics": {"click": {"examination": {"theta": [1.0, 0.5]}}}}
    (tmp_path / "old.json").write_text(json.dumps(result))
    from_file = SETTINGS + '[analysis]\nexamination = "old.json"\n'
    first = key(entry, from_file)
    assert first == key(entry, from_file + "# a comment\n")
    result["metrics"]["click"]["examination"]["theta"] = [1.0, 0.4]
    (tmp_path / "old.json").write_text(json.dumps(result))
    assert key(entry, from_file) != first
    plain = key(entry, SETTINGS)
    assert len({plain, first, key(entry, from_file)}) == 3
    assert key(entry, SETTINGS + "[online]\nsplit = [0.4, 0.6]\n") != plain
    assert key(entry, SETTINGS, cap=7.0) == key(entry, SETTINGS + "[analysis]\ncap = 7.0\n") != plain
    pq.write_table(pa.table({"click": [1]}), tmp_path / "control.parquet")
    assert key(entry, SETTINGS) != plain


def test_the_key_has_the_source_of_own_policies(entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file, what that imports from beside it, also late, and the values of an instance; no other file."""
    (tmp_path / "package").mkdir()
    files = {"mine.py": MINE, "helpers.py": "def halved(x): return x\n", "package/__init__.py": "",
             "package/inner.py": "from . import further\nlate = 1\n", "package/further.py": "x = 1\n",
             "stranger.py": "x = 1\n"}  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert key(entry, OWN) is None  # written since this process began: another code may be in memory
    monkeypatch.setattr(own_code, "_BEGUN", float("inf"))
    first = key(entry, OWN)
    assert first is not None
    assert first == key(entry, OWN)
    assert key(entry, OWN + "weight = 2.0\n") not in (first, None)
    for name, text in files.items():
        (tmp_path / name).write_text(text + "y = 2\n")
        assert (key(entry, OWN) == first) == (name == "stranger.py"), name
        (tmp_path / name).write_text(text)
    assert key(entry, OWN) == first


def test_what_cannot_be_told_is_not_kept(entry: Entry) -> None:
    """A class without a file, or with an attribute that cannot be pickled."""

    class Local:
        def log_prob(self) -> None: ...
        def sample(self) -> None: ...

    assert entry.settings is not None
    Path(str(entry.settings)).write_text(SETTINGS)
    settings = settings_of_test(entry, {})
    own: Any = Local()
    assert cached_file(Path("cache"), entry, replace(settings, treatment=own, treatments={})) is None
    made: dict[str, Any] = {}
    exec("class Nowhere:\n def log_prob(self): ...\n def sample(self): ...", {"__name__": "nowhere"}, made)
    assert own_code.digest_of_code([made["Nowhere"]]) is None
