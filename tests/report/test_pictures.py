"""Pictures on disk: three forms of each, all or none."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from foretest.report import pictures
from foretest.report.charts.decisions import decisions_chart
from foretest.report.pictures import VEGA_LITE, write_pictures
from foretest.report.theme import LIGHT, SCHEMA
from tests.report.support import simulated_tests


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    return decisions_chart(simulated_tests(4), "cis", 0.9)


def test_three_forms_of_every_figure(tmp_path: Path, spec: dict[str, Any]) -> None:
    written = write_pictures(tmp_path / "figures", {"a": spec, "b": spec})
    names = {f"{name}.{kind}" for name in "ab" for kind in ("vl.json", "svg", "png")}
    assert {path.name for path in written} == {path.name for path in (tmp_path / "figures").iterdir()} == names
    saved = json.loads((tmp_path / "figures" / "a.vl.json").read_text())
    assert saved == {**spec, "config": json.loads(json.dumps(LIGHT))}
    svg = (tmp_path / "figures" / "a.svg").read_text()
    assert f'aria-label="{spec["description"]}"' in svg
    png = (tmp_path / "figures" / "a.png").read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, _ = struct.unpack(">II", png[16:24])
    assert width > 900  # twice the chart's pixels
    assert oct((tmp_path / "figures" / "a.png").stat().st_mode & 0o777) == "0o644"


def test_other_files_are_left_alone_and_ours_replaced(tmp_path: Path, spec: dict[str, Any]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "a.svg").write_text("old")
    write_pictures(tmp_path, {"a": spec})
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (tmp_path / "a.svg").read_text().startswith("<svg")


def test_a_figure_that_cannot_be_drawn_leaves_everything_as_it_was(tmp_path: Path, spec: dict[str, Any]) -> None:
    (tmp_path / "a.svg").write_text("old")
    with pytest.raises(ValueError, match="Vega"):
        write_pictures(tmp_path, {"a": spec, "b": {**spec, "layer": [{"mark": "no such mark"}]}})
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.svg", "old")]


def test_a_disk_that_fails_leaves_everything_as_it_was(
    tmp_path: Path, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.svg").write_text("old")
    real, calls = os.replace, []

    def replace(new: Any, path: Any) -> None:
        calls.append(path)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        real(new, path)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="No space"):
        write_pictures(tmp_path, {"a": spec})
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.svg", "old")]


def test_the_newest_vega_lite_that_is_bundled() -> None:
    import vl_convert

    versions = [tuple(int(part) for part in version.split(".")) for version in vl_convert.get_vegalite_versions()]
    assert tuple(int(part) for part in VEGA_LITE.split(".")) in versions
    assert SCHEMA.endswith(f"/v{VEGA_LITE.split('.')[0]}.json")


def test_importing_does_not_load_the_renderer() -> None:
    import subprocess
    import sys

    code = "import sys, foretest.report.figures, foretest.report.pictures; assert 'vl_convert' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(pictures.__file__).parents[2])


def test_a_name_with_a_letter_that_xml_cannot_have_is_drawn() -> None:
    """It ended the process."""
    bar = {"description": "a\x1bb", "data": {"values": [{"x": "a\x1bb"}]}, "mark": "bar"}
    bar["encoding"] = {"x": {"field": "x", "type": "nominal"}}
    assert "a\ufffdb" in pictures.svg(bar)
    assert pictures.png(bar).startswith(b"\x89PNG")
