"""The counts of `make shape`, on lines whose kind is known."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
import shape

CLASSES = """\
class Weighting: ...
class SlotWeighting(Weighting): ...
class SlotAdaptive(SlotWeighting): ...
"""


def counted(code: str, path: str = "aggregation/sums.py") -> list[str]:
    """The rules that count some code, once for each line."""
    modules = [shape.Module(path, ast.parse(code), 1), shape.Module("weights/classes.py", ast.parse(CLASSES), 3)]
    return [name for name, lines in shape.counts(modules).items() for _ in lines]


@pytest.mark.parametrize(
    "code",
    [
        'sums.add(f"hr:{table}", amounts)',
        'columns[f"second:{i}:{m}"] = second',
        'name = f"{label}: squares"',
        'name = "r:" + str(m)',
        'name = ":".join(pieces)',
        'kind, _, table = name.partition(":")',
        'chosen = [name for name in columns if name.startswith("r:")]',
        'def slope_name(kind, slot):\n    return f"slope_{kind}:{slot}"',
        'columns = {f"r:{m}": f"q:{m}"}  # a line counts once',
    ],
)
def test_names_that_are_built(code: str) -> None:
    assert counted(code) == ["names of sums"]
    assert counted(code, "storage/saved/files.py") == []


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("n = self.rows if self.thinned is None else self.thinned.rows", "thinning"),
        ("is_curved = estimator.stratified and aggregates.is_unevenly_thinned", "thinning"),
        ('multiple = batch["multiple"] if "multiple" in batch.names else None', "thinning"),
        ("while not (state.thinned or done):\n    pass", "thinning"),
        ("multiples = [m for m in parts if m.multiple is not None]", "thinning"),
        ("if metric in plan.differences:\n    pass", "losses"),
        ("for place, one in plan.differences.items():\n    pass", "losses"),
        ("if isinstance(control, Mixture | LoggingMixture):\n    pass", "several loggers"),
        ("assert isinstance(control, LoggingMixture)", "several loggers"),
        ("if plan.loggers > 1:\n    pass", "several loggers"),
        ("if loggers_of(control).named:\n    pass", "several loggers"),
        ("if multiplicities_of(settings.log):\n    pass", "thinning"),
        ("for role, column in multiplicities_of(log).items():\n    pass", "thinning"),
    ],
)
def test_conditions(code: str, rule: str) -> None:
    assert counted(code) == [f"conditions on {rule}"]


@pytest.mark.parametrize(
    "code",
    [
        "is_slot = isinstance(weighting, SlotAdaptive | Capped)",
        "is_slot = type(weighting) is SlotWeighting",
        "class Exposure(SlotWeighting): ...\nis_slot = isinstance(weighting, Exposure)",
    ],
)
def test_levels_by_class(code: str) -> None:
    assert counted(code) == ["levels by class"]
    assert counted(code, "levels/slot.py") == []


def test_totals_by_hand() -> None:
    code = "class Counts:\n    def __add__(self, other): ...\n    @classmethod\n    def total(cls, parts): ...\n"
    assert counted(code) == ["totals by hand"] * 2


@pytest.mark.parametrize(
    "code",
    [
        '"""If it is thinned, or hr:{table}, or LoggingMixture."""',
        'raise BadInput(f"{name}: {reason}")',
        'text = f"{name}: no such column"',
        'name = "log_w"',
        "rare = keep < 1.0",
        "mine = logger == k",
        "amounts = rows.multiple * amounts",
        "is_weighting = isinstance(item, Weighting)",
        "class Plan:\n    @property\n    def total(self): ...",
    ],
)
def test_what_does_not_count(code: str) -> None:
    assert counted(code) == []
