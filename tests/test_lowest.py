"""Foretest at the lower bounds of its dependencies, on every Python that is here: `make lowest` prepares what runs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.lowest import PINS, foretest, lowest, pythons, run

ENVIRONMENTS = "FORETEST_LOWEST"  # the folder, where it is not beside this environment

#: a service writes its log, with arrays and without pandas
SERVICE = """
import importlib.util
import numpy as np
from foretest.serving import LogWriter
assert importlib.util.find_spec("pandas") is None
with LogWriter("served", "parquet") as log:
    for row in range(50):
        log.write({"user": row, "click": row % 3 == 0, "ranking": [1, 0], "scores": np.array([0.5, 1.0])})
import pyarrow.parquet as pq
from pathlib import Path
[file] = Path("served").rglob("*.parquet")
print(pq.read_table(file)["scores"].to_pylist()[-1])
"""


def environments() -> dict[str, Path]:
    folder = Path(os.environ.get(ENVIRONMENTS, Path(sys.prefix) / "lowest"))
    ready = {version: folder / version for version in pythons()}
    lacking = [version for version, path in ready.items() if not _is_of(path / PINS, version)]
    if lacking:
        absent = f"{folder} lacks the oldest packages for Python {' and '.join(lacking)}: run make lowest"
        if os.environ.get("CI") or os.geteuid() == 0:
            pytest.fail(absent)
        pytest.skip(absent)
    return ready


def _is_of(pins: Path, version: str) -> bool:
    return pins.is_file() and pins.read_text(encoding="utf-8") == "\n".join(lowest(version))


@pytest.mark.slow
def test_it_runs_with_the_oldest_versions(tmp_path: Path) -> None:
    """The demo, a run with its page as JSON, and a service's log, with equal numbers everywhere; on the first Python
    also a first look, figures and a query."""
    estimates = []
    for version, environment in environments().items():
        desk = tmp_path / version
        desk.mkdir()

        def command(*words: str, at: Path = environment, folder: Path = desk) -> str:
            return foretest(at, *words, folder=folder)

        assert command("--version").strip()
        assert "the truth" in command("demo", "--rows", "2000", "-o", "shop")
        words = ["run", "shop/log.parquet", "-c", "shop/settings.toml", "--cap", "50", "-o", "out", "--json"]
        result = json.loads(command(*words, *([] if estimates else ["--figures"])))
        assert {"report.html", "result.json"} <= {path.name for path in (desk / "out").iterdir()}
        bounds = dict(pin.split("==") for pin in lowest(version))
        used = result["provenance"]["versions"]
        assert {name: used[name].removesuffix(".0") for name in ("numpy", "scipy", "numba")} == {
            name: bounds[name] for name in ("numpy", "scipy", "numba")
        }
        assert used["pyarrow"].startswith(bounds["pyarrow"])
        if not estimates:
            query = "SELECT * FROM 'shop/log.parquet'"
            assert "Written: first.toml" in command("init", "--sql", query, "-o", "first.toml")
            assert any((desk / "out" / "figures").iterdir())
        estimates.append(result["metrics"]["click"]["estimates"]["ncis"]["rel_effect_size"])
        assert run(environment, SERVICE, folder=desk) == "[0.5, 1.0]\n"
    assert estimates == pytest.approx([estimates[0]] * len(estimates), rel=1e-9)


def test_each_bound_is_known_for_each_python() -> None:
    """One bound for each dependency, and on a newer Python none that is older."""
    by_python = [dict(pin.split("==") for pin in lowest(version)) for version in ("3.11", "3.12", "3.13")]
    assert by_python[0] == by_python[1]
    assert by_python[0].keys() == by_python[2].keys()
    assert by_python[2]["numpy"] == "2.1"
