"""A log with [log] copies, which a patch adds: each of its rows counts as its copies do, whatever else the test has.

`tests/test_patch_multiplicity.py` runs this with the patched sources.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from tests import test_pairwise
from tests.feature_cases import feature_log, settings_of
from tests.offline.test_keep import copied
from tests.online.test_keep import two_arms
from tests.test_pairwise import answer, differences, differences_of_copies, offline, said

CASES = [[name for name in case if name != "spark"] for case in test_pairwise.CASES if "thinned" in case]


@cache
def log_of(loggers: bool) -> pa.Table:
    """The features' log: a row that was kept with probability 1/m stands for n = m displays by another column."""
    log = feature_log(loggers=loggers)
    m = np.round(1.0 / log["keep"].to_numpy())
    for name, column in {"n": m.astype(int), "once": np.ones(len(m), int), "squared": 1.0 / m**2}.items():
        log = log.append_column(name, pa.array(column))
    return log


@pytest.fixture(autouse=True)
def _with_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_pairwise, "log_of", log_of)


def by_columns(**columns: str) -> Any:
    """Settings whose log is thinned by these columns and no others."""

    def change(tables: dict[str, Any]) -> None:
        del tables["log"]["keep"]
        tables["log"] |= columns

    return change


def metrics_of(log: pa.Table, folder: Path, **columns: str) -> dict[str, Any]:
    folder.mkdir()
    tables = settings_of(["segments"], log=columns)
    return offline(tables, folder).run(log).to_dict()


@pytest.mark.parametrize("case", CASES, ids=" + ".join)
def test_copies_count_as_keep_does(case: list[str], tmp_path: Path) -> None:
    keep = answer(case, tmp_path / "keep")
    copies = answer(case, tmp_path / "copies", by_columns(copies="n"))
    assert not differences(said(keep), said(copies))


@pytest.mark.parametrize("names", [["thinned"], ["thinned", "loggers"], ["thinned", "saved"]], ids=" + ".join)
def test_both_columns_are_a_product(names: list[str], tmp_path: Path) -> None:
    """A row that was kept with probability 1/m and stands for m displays counts m² times; one column alone is all."""
    keep, both, squared, ones = (
        said(answer(names, tmp_path / "-".join(columns.values()), by_columns(**columns)))
        for columns in (
            {"keep": "keep"}, {"keep": "keep", "copies": "n"}, {"keep": "squared"}, {"keep": "keep", "copies": "once"},
        )
    )  # fmt: skip
    assert not differences(both, squared)
    assert not differences(keep, ones)
    assert differences(keep, both)


def test_a_row_counts_as_its_copies_do(tmp_path: Path) -> None:
    log = log_of(False)
    m = log["n"].to_numpy()
    grouped = metrics_of(log, tmp_path / "grouped", copies="n")
    full = metrics_of(copied(log, m), tmp_path / "full")
    assert not differences_of_copies(grouped, full)
    assert grouped["log"]["displays"] == m.sum() == full["log"]["rows"]


def test_online_rows_count_as_their_copies_do() -> None:
    g, arms = np.random.default_rng(1), two_arms()
    counts = [g.integers(1, 5, len(arm)) for arm in arms]
    columns = {"rewards": ["click"], "unit": "user"}
    grouped = ft.OnlineTest(log=ft.LogColumns(**columns, copies="n")).run(
        *(arm.append_column("n", pa.array(m)) for arm, m in zip(arms, counts, strict=True))
    )
    repeated = (copied(arm, m) for arm, m in zip(arms, counts, strict=True))
    full = ft.OnlineTest(log=ft.LogColumns(**columns)).run(*repeated)
    mine, theirs = (result.to_dict()["metrics"]["click"] for result in (grouped, full))
    for key in ("effect_size", "std_error", "effect_size_ci_lower", "effect_size_ci_upper"):
        (estimate,), (other,) = (list(metric["estimates"].values()) for metric in (mine, theirs))
        assert estimate[key] == pytest.approx(other[key], rel=1e-9), key


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ([0] * 500, r"column 'bad', row 0 .*the number of equal displays is 0\b.*whole number from 1 on"),
        (["1"] * 500, r"column 'bad' is string.*a number column \(how many equal displays a row stands for\)"),
    ],
)
def test_bad_columns_are_refused_with_a_sentence(column: list[Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ft.BadInput, match=sentence):
        metrics_of(log_of(False).append_column("bad", pa.array(column)), tmp_path / "bad", copies="bad")


def test_what_cannot_be_had_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ft.BadInput, match=r"\[log\] copies and \[log\] unit both name the column 'user': copies is"):
        ft.LogColumns(rewards=["click"], unit="user", copies="user")
    with pytest.raises(ft.BadInput, match=r"\[log\] copies and \[log\] keep both name the column 'n'"):
        ft.LogColumns(rewards=["click"], keep="n", copies="n")
    with pytest.raises(ft.BadInput, match=r'\[log\] copies = "n" says that rows stand for several displays'):
        offline(settings_of([], log={"copies": "n"}, analysis={"interval": "betting", "r_max": 9.0,
                "estimators": ["cis"]}), tmp_path).run(log_of(False))  # fmt: skip
    with pytest.raises(ft.BadInput, match=r'per = "unit": of a log that has equal displays once \(\[log\] copies\)'):
        offline(settings_of(["per unit"], log={"copies": "n"}), tmp_path)
