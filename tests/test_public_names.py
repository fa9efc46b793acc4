"""What is public: one list of names, keywords that editors can complete, and imports that the documentation shows."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
from pathlib import Path

import pytest

import foretest as ft
from tests.support import SmallLog, build_test

ROOT = Path(__file__).resolve().parents[1]
STUB = Path(ft.__file__).with_suffix(".pyi")
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def listed() -> list[str]:
    """The names of the stub."""
    imports = [node for node in ast.parse(STUB.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    return [alias.name for node in imports for alias in node.names]


def test_the_stub_is_the_only_list() -> None:
    assert sorted(dir(ft)) == sorted(ft.__all__) == sorted(listed())
    assert len(set(listed())) == len(listed())
    for name in listed():
        assert getattr(ft, name) is not None


@pytest.mark.parametrize(
    "name", ["run_history", "plan_log", "Calibration", "Estimate", "Metric", "Aggregates", "ratio"]
)
def test_what_extenders_and_histories_need_is_public(name: str) -> None:
    assert name in dir(ft)


def test_every_name_is_exported_for_type_checkers() -> None:
    """A stub exports what it imports `as` the same name."""
    for node in ast.walk(ast.parse(STUB.read_text(encoding="utf-8"))):
        if isinstance(node, ast.alias):
            assert node.asname == node.name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        ft.no_such_name  # noqa: B018


def test_the_documentation_imports_what_is_there() -> None:
    """Nothing is imported from deeper than a package of `foretest`, but charts, kernels and the paper's own modules."""
    shown = [
        (path.name, module, name.strip().split(" ")[0])
        for path in DOCS
        for module, names in re.findall(r"^(?:>>> )?from (foretest[\w.]*) import ([\w, ]+)$", path.read_text(), re.M)
        for name in names.split(",")
    ]
    assert len(shown) > 10
    for page, module, name in shown:
        assert hasattr(importlib.import_module(module), name), (page, module, name)
        assert module.count(".") <= 1 or module.startswith(("foretest.report.charts.", "foretest.paper.")), page


def test_the_keywords_of_a_test_are_those_of_the_analysis() -> None:
    keywords = inspect.signature(ft.OfflineTest).parameters
    fields = {field.name: field for field in dataclasses.fields(ft.Analysis)}
    given = [name for name in keywords if name not in ("log", "control", "treatment", "metrics", "unknown")]
    assert given == list(fields)
    for name, field in fields.items():
        assert keywords[name].default == field.default, name
        assert keywords[name].kind is inspect.Parameter.KEYWORD_ONLY


def test_an_unknown_keyword_is_refused_with_the_nearest() -> None:
    with pytest.raises(ft.BadInput, match=r"unknown key 'weight_bounds'. Did you mean 'weight_bound'"):
        build_test(["cis"], weight_bounds=3.0)


def test_what_a_fold_gives_has_names_and_unpacks() -> None:
    folded = build_test(["cis"]).aggregate(SmallLog(rows=50, units=20).table())
    aggregates, notes, r_max = folded
    assert (folded.aggregates, folded.notes, folded.r_max) == (aggregates, notes, r_max)
    assert isinstance(aggregates, ft.Aggregates)
