"""The JSON Schema of settings files: as it is made from the code, and right for every file in the documentation."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from foretest.settings.json_schema import FILE, schema_text

ROOT = Path(__file__).parent.parent.parent
SCHEMA = json.loads(FILE.read_text(encoding="utf-8"))
LOG, POLICY = {"rewards": ["click"], "ranking": "ranking"}, {"policy": "plackett-luce", "scores": "s"}


def documented() -> list[Any]:
    """Whole settings files in the documentation and among the fixtures."""
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for k, block in enumerate(re.findall(r"```toml[^\n]*\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)):
            try:
                tables = tomllib.loads(block)
            except tomllib.TOMLDecodeError:
                continue  # a fragment
            if "log" in tables and "rewards" in tables["log"] and "control" in tables:
                found.append(pytest.param(tables, id=f"{page.name} {k}"))
    for path in sorted((ROOT / "tests" / "fixtures").rglob("*.toml")):
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        if "log" in tables:
            found.append(pytest.param(tables, id=path.name))
    return found


def test_the_shipped_file_is_what_the_code_makes() -> None:
    """If this fails, run python -m foretest.settings.json_schema."""
    assert FILE.read_text(encoding="utf-8") == schema_text()
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("tables", documented())
def test_settings_of_the_documentation_are_valid(tables: dict[str, Any]) -> None:
    jsonschema.validate(tables, SCHEMA)


def test_there_are_such_files() -> None:
    assert len(documented()) > 10


def whole(**changed: Any) -> dict[str, Any]:
    return {"log": LOG, "control": POLICY, "treatment": POLICY, **changed}


FINE: dict[str, dict[str, Any]] = {
    "several": whole(treatment=[{**POLICY, "name": "a"}, {**POLICY, "name": "b"}]),
    "own policy": whole(treatment={"policy": "mine:Policy", "anything": 3}),
    "a mixture": whole(
        control={"policy": "mixture", "components": [{**POLICY, "share": 0.5}, {**POLICY, "share": 0.5}]}
    ),
    "a fit": whole(control={**POLICY, "temperature": "fit"}),
    "metrics": whole(metrics={"v": {"sum": {"click": 1, "x": -2.0}}, "x": {"signed": True}, "y": {"winsorise": 0.99}}),
    "numbers": whole(analysis={"gamma": 1.5, "examination": [1.0, 0.5], "r_max": {"click": 1}}),
    "online": {"log": LOG, "online": {"split": [0.5, 0.5], "covariate": "before"}},
}
WRONG: dict[str, dict[str, Any]] = {
    "an unknown table": whole(analyses={}),
    "an unknown key": whole(analysis={"capp": 3}),
    "an unknown policy": whole(control={"policy": "plackett", "scores": "s"}),
    "a policy without its scores": whole(control={"policy": "plackett-luce"}),
    "a key of another policy": whole(control={**POLICY, "dispersion": 0.5}),
    "no rewards": whole(log={"rewards": []}),
    "a number as text": whole(analysis={"draws": "many"}),
    "an unknown role": whole(metrics={"click": {"role": "target"}}),
    "no log": {"control": POLICY},
}


@pytest.mark.parametrize("name", FINE)
def test_fine(name: str) -> None:
    jsonschema.validate(FINE[name], SCHEMA)


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(WRONG[name], SCHEMA)
