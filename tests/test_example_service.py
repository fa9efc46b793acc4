"""The example service over real HTTP: its answer against the known truth, and its log after it was killed."""

from __future__ import annotations

import importlib.util
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from itertools import permutations
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import foretest as ft
from tests import test_docs

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "service"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def drive() -> Iterator[ModuleType]:
    """The script of the example, as a module."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        spec = importlib.util.spec_from_file_location("drive", EXAMPLE / "drive.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(EXAMPLE))
        sys.modules.pop("shop", None)


def checked(drive: ModuleType, log: Path) -> Any:
    return ft.OfflineTest.from_toml(EXAMPLE / "settings.toml").check(drive.joined(log))


def replayed(result: Any) -> str:
    return str(next(finding.meaning for finding in result.audit.findings if finding.name == "replayed"))


def test_the_answer_agrees_with_the_truth(drive: ModuleType, tmp_path: Path) -> None:
    """What users do follows from the number of their request, so that every run gives the same answer."""
    with drive.service(tmp_path) as (_, port):
        drive.send_users(port, 2500)
    result = ft.OfflineTest.from_toml(EXAMPLE / "settings.toml").run(drive.joined(tmp_path))
    assert result.log["rows"] == 2500  # the service was stopped by SIGTERM, and lost nothing
    assert result.audit.named("fail") == result.audit.named("warn") == []
    assert replayed(result).startswith("100 % of the rows (2,500)")
    metric, truth = result.metrics["clicks"], drive.shop.true_uplift()
    assert truth > 0.1
    assert metric.verdict == "positive"
    estimate = metric.estimates[metric.headline]
    assert estimate.rel_effect_size_ci_lower < truth < estimate.rel_effect_size_ci_upper
    within = 4.0 * metric.control.std_error
    assert metric.control.value == pytest.approx(drive.shop.true_clicks(drive.shop._old), abs=within)


def test_a_folder_with_a_log_is_refused(
    drive: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second run has the same ids: its displays would be in the log twice."""
    (tmp_path / "displays").mkdir()
    monkeypatch.setattr(sys, "argv", ["drive.py", "--log", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        drive.main()
    assert stopped.value.code == 2
    assert "has a log already" in capsys.readouterr().err


def test_the_truth_is_that_of_many_draws(drive: ModuleType) -> None:
    """The enumeration beside a simulation of both policies, to four standard errors."""
    shop, g = drive.shop, np.random.default_rng(0)
    for scores in (shop._old, shop._new):
        group = g.integers(shop.GROUPS, size=100_000)
        noisy = scores[group] / shop.TEMPERATURE + g.gumbel(size=(len(group), shop.CANDIDATES))
        ranking = np.argsort(-noisy, axis=1)[:, : shop.SLOTS]
        earned = (np.array(shop.LOOKED_AT) * shop.CLICKED[group[:, None], ranking]).sum(axis=1)
        assert shop.true_clicks(scores) == pytest.approx(earned.mean(), abs=4.0 * earned.std() / np.sqrt(len(group)))
    assert len(list(permutations(range(shop.CANDIDATES), shop.SLOTS))) == 120


def test_a_service_that_is_killed_leaves_a_log_that_can_be_read(drive: ModuleType, tmp_path: Path) -> None:
    with (
        drive.service(tmp_path, "--file-seconds", "0.2") as (process, port),
        ThreadPoolExecutor(1) as pool,
    ):
        users = pool.submit(drive.send_users, port, 10_000)
        while len(list(tmp_path.glob("*/*.parquet"))) < 6:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with pytest.raises((OSError, HTTPException)):
            users.result()
    result = checked(drive, tmp_path)
    assert result.log["rows"] > 50
    assert result.audit.named("fail") == []
    assert replayed(result).startswith("100 % of the rows")


def test_the_readme_names_what_is_there() -> None:
    test_docs.test_every_relative_link_resolves(EXAMPLE / "README.md")
    commands = [line for block in test_docs.blocks_of(EXAMPLE / "README.md") for line in block.text.splitlines()]
    for name in {word for line in commands for word in line.split() if word.endswith((".py", ".txt", ".toml"))}:
        assert (EXAMPLE / Path(name).name).exists(), name
