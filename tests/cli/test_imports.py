"""What commands import: nothing that they do not need, as importing takes longer than a small test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from foretest.simulate import WORLDS, write_log

HEAVY = {
    "duckdb", "jinja2", "numba", "numpy", "numpy.ma", "pandas", "polars", "pyarrow", "pyspark", "scipy",
    "scipy.optimize", "scipy.special", "scipy.stats", "sklearn", "vl_convert",
}  # fmt: skip
#: of those, what a command needs; scipy's special functions come without the package that has them
NEEDED: dict[str, set[str]] = {
    "--help": set(),
    "run --help": set(),
    "check": {"numpy", "pyarrow", "scipy"},
    "run": {"numpy", "pyarrow", "scipy"},
    "run -o": {"numpy", "pyarrow", "scipy", "jinja2"},
    "run -o --no-report": {"numpy", "pyarrow", "scipy"},
}
SETTINGS = """
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"
id = "display_id"
date = "day"
slot_rewards = {click = "slot_click"}
segments = ["group"]
[control]
policy = "plackett-luce"
scores = "control_scores"
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log whose kernels and page are on disk after one run in this process."""
    folder = tmp_path_factory.mktemp("shop")
    write_log(folder, WORLDS["paper"], 1000)
    (folder / "settings.toml").write_text(SETTINGS, encoding="utf-8")
    imported(folder, "run -o")
    return folder


def imported(folder: Path, command: str) -> set[str]:
    """The heavy modules that a command has imported when it ends."""
    name, *options = command.split()
    if name in ("run", "check") and options != ["--help"]:
        name_and_log = [name, "log.parquet", "-c", "settings.toml"]
        options = [word for option in options for word in ((option, "out") if option == "-o" else (option,))]
    else:
        name_and_log = [name]
    script = """
import json, sys
from foretest.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, *name_and_log, *options], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return HEAVY & set(json.loads(ended.stderr.splitlines()[-1]))


@pytest.mark.parametrize("command", NEEDED)
def test_what_a_command_imports(command: str, shop: Path) -> None:
    assert imported(shop, command) == NEEDED[command]


def test_without_a_report_an_earlier_one_goes(shop: Path) -> None:
    imported(shop, "run -o")
    assert (shop / "out" / "report.html").exists()
    imported(shop, "run -o --no-report")
    assert [path.name for path in (shop / "out").iterdir()] == ["result.json"]
