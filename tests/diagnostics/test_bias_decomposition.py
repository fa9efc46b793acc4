"""Which strata carry the bias of NCIS: against enumeration, Table 1, a jackknife, and logs without weight somewhere."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.diagnostics.bias_decomposition import bias_contributions
from tests.schemas import validate
from tests.support import SmallLog, build_test

NAMES = ("bias_contribution", "bias_contribution_std_error")


def enumerated(seed: int = 0) -> dict[str, np.ndarray]:
    """Five contexts of three actions; the control's probabilities are hundredths, so that 100 rows hold a context."""
    g = np.random.default_rng(seed)
    p = np.array([[0.9, 0.09, 0.01], [0.5, 0.3, 0.2], [0.97, 0.02, 0.01], [0.6, 0.39, 0.01], [0.2, 0.3, 0.5]])
    t = g.dirichlet([1.0, 1.0, 1.0], size=5)
    reward = g.gamma(2.0, size=(5, 1)) * g.uniform(0.5, 1.5, size=(5, 3))
    rows = np.array([400, 300, 100, 100, 100])  # a context's rows, of 1 000
    return {"p": p, "t": t, "reward": reward, "rows": rows, "stratum": np.array([0, 0, 1, 2, 2])}


def log_of(case: dict[str, np.ndarray]) -> pa.Table:
    """The population in exact proportions, so that an estimator's value is its limit."""
    columns: dict[str, list[Any]] = {name: [] for name in ("reward", "p", "t", "stratum", "context")}
    for x in range(5):
        for a in range(3):
            count = round(case["rows"][x] * case["p"][x, a])
            for name, value in (("reward", case["reward"][x, a]), ("p", case["p"][x, a]), ("t", case["t"][x, a]),
                                ("stratum", int(case["stratum"][x])), ("context", x)):  # fmt: skip
                columns[name] += [value] * count
    return pa.table(columns)


def run(case: dict[str, np.ndarray], strata: str, cap: float) -> dict[str, Any]:
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["reward"]), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t"),
        estimators=["ncis", "piece-ncis"], strata=strata, cap=cap,
    )  # fmt: skip
    return test.run(log_of(case)).to_dict()["metrics"]["reward"]["estimates"]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_bias_of_ncis_is_between_and_within_by_enumeration(seed: int) -> None:
    """The paper's formula on a population whose rankings are all listed; the log's contributions are its first part."""
    case, cap = enumerated(seed), 2.0
    z = np.minimum(1.0, cap * case["p"] / case["t"])
    share, t, reward = case["rows"] / 1000, case["t"], case["reward"]
    truth, mass = float(share @ (t * reward).sum(1)), float(share @ (t * z).sum(1))
    ncis = float(share @ (t * reward * z).sum(1)) / mass
    mu, q = (t * reward).sum(1), (t * z).sum(1)
    between = share @ ((mu - truth) * (q - mass))
    within = share @ ((t * reward * z).sum(1) - mu * q)
    assert truth - ncis == pytest.approx(-(between + within) / mass, rel=1e-12)

    # strata that are contexts: value v = E[Rz|x]/E[z|x] in place of E[R|x], the only one a log shows
    value = (t * reward * z).sum(1) / q
    piece = float(share @ value)
    expected = share * (value - piece) * (q - mass) / mass
    estimates = run(case, "context", cap)
    assert estimates["ncis"]["treatment"] == pytest.approx(ncis, rel=1e-12)
    rows = estimates["piece-ncis"]["strata"]
    assert [row["bias_contribution"] for row in rows] == pytest.approx(expected, rel=1e-10)
    assert sum(row["bias_contribution"] for row in rows) == pytest.approx(ncis - piece, rel=1e-10)
    assert abs(ncis - piece) > 1e-3


def test_coarser_strata_carry_what_they_can_see() -> None:
    case, cap = enumerated(), 2.0
    estimates = run(case, "stratum", cap)
    rows = estimates["piece-ncis"]["strata"]
    between = estimates["ncis"]["treatment"] - estimates["piece-ncis"]["treatment"]
    assert sum(row["bias_contribution"] for row in rows) == pytest.approx(between, rel=1e-12)
    share, mass, value = (np.array([row[name] for row in rows]) for name in ("share", "mean_weight", "value"))
    covariance = share @ (value * mass) - (share @ value) * (share @ mass)
    assert between == pytest.approx(covariance / (share @ mass), rel=1e-10)


def test_table_1_has_a_between_part_alone() -> None:
    """Shares .1/.9, values 12/1, kept .7/1: the two groups carry all of 1.79381 − 2.1."""
    parts = bias_contributions(np.array([1.0, 9.0]), np.array([0.7, 9.0]), np.array([8.4, 9.0]))
    assert parts == pytest.approx([0.1 * (12 - 2.1) * (0.7 - 0.97) / 0.97, 0.9 * (1 - 2.1) * (1 - 0.97) / 0.97])
    assert parts.sum() == pytest.approx(1.74 / 0.97 - 2.1, rel=1e-12)


def test_any_unit_of_the_weights_gives_the_same() -> None:
    n, h, hr = np.array([3.0, 5.0, 4.0]), np.array([1.0, 0.2, 4.0]), np.array([0.3, 0.1, 0.2])
    assert bias_contributions(n, 1e200 * h, 1e200 * hr) == pytest.approx(bias_contributions(n, h, hr), rel=1e-12)


def test_its_standard_error_is_the_jackknifes() -> None:
    """Units left out one by one from plain NumPy sums; a bucket a unit, so that buckets are units."""
    log = SmallLog(rows=600, units=60, seed=3)
    log.unit = np.arange(600) % 60  # users of equal size, so that all sixty are there
    table = build_test(["piece-ncis"], buckets=4096).run(log.table()).to_dict()
    rows = table["metrics"]["click"]["estimates"]["piece-ncis"]["strata"]
    w = log.capped(2.0)

    def contributions(keep: np.ndarray) -> np.ndarray:
        n, h, hr = (
            np.array([(v * (log.stratum == g) * keep).sum() for g in range(3)]) for v in (1.0, w, w * log.click)
        )
        share, value, mass = n / n.sum(), hr / h, h / n
        return share * (value - share @ value) * (mass / (share @ mass) - 1.0)

    assert [row["bias_contribution"] for row in rows] == pytest.approx(contributions(np.ones(600)), rel=1e-10)
    left_out = np.array([contributions(log.unit != unit) for unit in range(60)])
    jackknife = np.sqrt(59 / 60 * np.square(left_out - left_out.mean(axis=0)).sum(axis=0))
    assert [row["bias_contribution_std_error"] for row in rows] == pytest.approx(jackknife, rel=0.06)


def test_a_stratum_without_weight_has_no_contribution() -> None:
    n, h, hr = np.array([50.0, 30.0, 20.0]), np.array([40.0, 60.0, 0.0]), np.array([4.0, 12.0, 0.0])
    parts = bias_contributions(n, h, hr)
    piece = (50 * 0.1 + 30 * 0.2) / 80  # PieceNCIS of the strata that have a value
    assert parts[2] == 0.0
    assert parts.sum() == pytest.approx(16 / 100 - piece, rel=1e-12)

    log = pa.table({
        "click": [1.0, 0.0] * 20 + [1.0] * 10, "p": [0.5] * 50, "t": [0.6, 0.4] * 20 + [0.0] * 10,
        "group": ["some"] * 40 + ["none"] * 10,
    })  # fmt: skip
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t"),
        estimators=["piece-ncis"], strata="group",
    )  # fmt: skip
    document = test.run(log).to_dict()
    none, some = document["metrics"]["click"]["estimates"]["piece-ncis"]["strata"]
    assert [none[name] for name in NAMES] == [None, None]
    assert some["bias_contribution"] == pytest.approx(0.0, abs=1e-15)
    validate(document, json.loads((files("foretest") / "schema" / "result-1.json").read_text()))


def test_an_empty_log_has_no_strata() -> None:
    document = build_test(["piece-ncis"]).run(SmallLog(rows=4).table().slice(0, 0)).to_dict()
    assert document["metrics"]["click"]["estimates"]["piece-ncis"]["strata"] == []
