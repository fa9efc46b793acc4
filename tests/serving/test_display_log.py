"""The JSON Schema of a display's row: rows of the sampler, of the writer and of the page; what it refuses."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import foretest
from foretest.serving import LogWriter, Sampler
from tests.schemas import validate
from tests.serving.support import TABLES
from tests.test_docs import blocks_of

SCHEMA = json.loads((Path(foretest.__file__).parent / "schema" / "display-log-1.json").read_text(encoding="utf-8"))
DOCS = Path(__file__).resolve().parents[2] / "docs"
ROW: dict[str, Any] = {"id": 1, "ranking": ["b", "a"], "candidates": ["a", "b"], "scores": [0, 1.5], "log_prob": -1.0}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_rows_of_the_sampler_and_the_writer(table: dict[str, Any], tmp_path: Path) -> None:
    """Also with a single candidate, whose probability is 1."""
    g = np.random.default_rng(0)
    sampler = Sampler(table, slots=3, seed=1)
    for ids in ("text", "integers", "positions"):
        with LogWriter(tmp_path / ids, "jsonl") as log:
            for number in range(20):
                scores = g.normal(size=int(g.integers(1, 7)))
                items = {"text": list("abcdef"), "integers": list(range(40, 46)), "positions": None}[ids]
                draw = sampler.draw(scores, items and items[: len(scores)], key=f"r-{number}", slot_probabilities=True)
                validate(draw.row, SCHEMA)
                log.write({**draw.row, "user": 7, "time": datetime.now(UTC), "click": 1, "new_scores": [0.5]})
        [file] = (tmp_path / ids).iterdir()
        lines = file.read_text(encoding="utf-8").splitlines()
        assert len(lines) == 20
        for line in lines:
            validate(json.loads(line), SCHEMA)


def test_the_row_of_the_page() -> None:
    """It is a row of the sampler, with a user and a time."""
    row, reward = (
        json.loads(block.text) for block in blocks_of(DOCS / "how-to" / "what-to-log.md") if block.language == "json"
    )
    validate(row, SCHEMA)
    sampler = Sampler({"policy": "plackett-luce", "temperature": 0.5}, slots=2, seed=7)
    drawn = sampler.draw(row["scores"], row["candidates"], key=row["id"]).row
    assert {name: row[name] for name in drawn} == drawn
    assert reward["id"] == row["id"]
    assert reward["item"] in row["ranking"]


def test_every_column_is_on_the_page() -> None:
    text = (DOCS / "how-to" / "what-to-log.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in text for name in SCHEMA["properties"])


WRONG: dict[str, dict[str, Any]] = {
    "a probability": {"log_prob": 0.45},
    "an item twice": {"ranking": ["a", "a"]},
    "nothing shown": {"ranking": []},
    "a score that is missing": {"scores": [0.5, None]},
    "text as a score": {"scores": ["0.5", "1.5"]},
    "a fraction as an id": {"id": 1.5},
    "no id": {"id": None},
    "a table": {"context": {"country": "fr"}},
    "keep nothing": {"keep": 0},
    "ids without candidates": {"candidates": ...},
    "no scores": {"scores": ...},
}


@pytest.mark.parametrize("name", WRONG)
def test_what_the_schema_refuses(name: str) -> None:
    validate(ROW, SCHEMA)
    row = {key: value for key, value in {**ROW, **WRONG[name]}.items() if value is not ...}
    with pytest.raises(jsonschema.ValidationError):
        validate(row, SCHEMA)
