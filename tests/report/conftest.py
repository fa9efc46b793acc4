"""Pages made by the real commands, once a session, and a real browser without a network to open them in."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretest import cli
from tests.support import few_resamples_of_tests

IMAGE, SCRIPT = "<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>"
HOSTILE = "seg'\"&"  # the name of a column

SETTINGS = f"""
[log]
rewards  = ["click", '{IMAGE}', '{SCRIPT}']
unit     = "user"
ranking  = "ranking"
id       = "display_id"

[control]
policy = "plackett-luce"
scores = "control_scores"

[treatment]
policy = "plackett-luce"
scores = "treatment_scores"

[analysis]
estimators = ["is", "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive"]
strata = {json.dumps(HOSTILE)}
n_resamples = 200
"""

ONLINE = f"""
[log]
rewards = ["click", '{IMAGE}']
unit    = "user"
"""


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pages: run, one whose audit failed, online, history, demo and paper; names in them are hostile."""
    folder = tmp_path_factory.mktemp("pages")
    before = os.getcwd()
    os.chdir(folder)
    try:
        foretest("simulate", "log", "--world", "mild", "--rows", "6000", "-o", "shop")
        table = pq.read_table("shop/log.parquet")
        names = [IMAGE if name == "revenue" else name for name in table.column_names]
        rare = pa.array([k % 400 == 0 for k in range(len(table))])
        segment = pa.array([("phone", "<b>desk</b>", "a & b")[k % 3] for k in range(len(table))])
        table = table.rename_columns(names).append_column(SCRIPT, rare).append_column(HOSTILE, segment)
        Path("run-data").mkdir()
        pq.write_table(table, "run-data/log.parquet")
        Path("run.toml").write_text(SETTINGS, encoding="utf-8")
        foretest("run", str(folder / "run-data/log.parquet"), "-c", "run.toml", "-o", "run")
        warmer = SETTINGS.replace('scores = "control_scores"', 'scores = "control_scores"\ntemperature = 1.4')
        warmer = warmer.replace('scores = "treatment_scores"', 'scores = "treatment_scores"\ntemperature = 1.0')
        Path("failed.toml").write_text(warmer, encoding="utf-8")
        foretest("run", "run-data/log.parquet", "-c", "failed.toml", "-o", "failed")

        foretest("simulate", "history", "--tests", "5", "--rows", "2500", "-o", "tests")
        for arm in ("control", "treatment"):
            log = pq.read_table(f"tests/test-001/{arm}.parquet")
            doubled = pa.array([2.0 * click for click in log["click"].to_pylist()])
            pq.write_table(log.append_column(IMAGE, doubled), f"{arm}.parquet")
        Path("online.toml").write_text(ONLINE, encoding="utf-8")
        foretest("online", "control.parquet", "treatment.parquet", "-c", "online.toml", "-o", "online")

        manifest = Path("tests/manifest.toml").read_text(encoding="utf-8")
        for plain, name in (("test-002", SCRIPT), ("test-003", IMAGE)):
            manifest = manifest.replace(f'name = "{plain}"', f"name = '{name}'")
        absent = f'\n[[test]]\nname = "absent"\ncontrol = "{folder}/nowhere.parquet"\ntreatment = "tests/x.parquet"\n'
        Path("tests/hostile.toml").write_text(manifest.replace("truth", "# truth") + absent, encoding="utf-8")
        foretest("demo", "--rows", "3000", "-o", "demo")
        with few_resamples_of_tests():
            foretest("history", "tests/hostile.toml", "-o", "history")
            foretest("paper", "--tests", "2", "--rows", "1000", "-o", "paper")
    finally:
        os.chdir(before)
    return folder


def foretest(*words: str) -> str:
    """The command line in this process; what it printed."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        patch.setattr(sys, "argv", ["foretest", *words])
        patch.setattr(os, "cpu_count", lambda: 1)  # a history is simulated here, not in processes that start anew
        patch.setattr("foretest.report.pictures.png", lambda spec: b"")  # test_pictures.py draws some
        with pytest.raises(SystemExit) as stop:
            cli.main()
    assert not stop.value.code, out.getvalue()
    return out.getvalue()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium, headless, its network a proxy that is not there."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        absent = "the pages are tested in Chromium: install chromium and chromium-driver (apt-get install, as root)"
        if os.environ.get("CI") or os.geteuid() == 0:
            pytest.fail(absent)
        pytest.skip(absent)
    from selenium.webdriver import Chrome
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = chromium
    arguments = ["--headless=new", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,900",
                 "--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=<-loopback>",
                 f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]  # fmt: skip
    for argument in arguments + ["--no-sandbox"] * (os.geteuid() == 0):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")
