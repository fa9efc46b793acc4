"""The audit of a control that was fitted, and what it says of one that should have been."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import kolmogorov

import foretest as ft
from foretest.aggregation.audit_context import features_that_vary
from foretest.aggregation.control_fit import FittedNumber, information_ratio, is_fitted_on, units_to_audit
from foretest.aggregation.likelier_number import LIKELIER
from foretest.diagnostics.audit.likelihood import calibration, kolmogorov_smirnov, with_likelier_number
from foretest.diagnostics.audit.moments import balance, moment_at
from foretest.results.audit import Finding
from tests.support import SmallLog


def build(temperature: float | str) -> ft.OfflineTest:
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking"),
        control=ft.PlackettLuce("control_scores", temperature),
        treatment=ft.PlackettLuce("treatment_scores", 1.0),
        estimators=["ncis"], interval="delta",
    )  # fmt: skip


def finding(result: ft.Result, name: str = "log-likelihood") -> Finding:
    assert result.audit is not None
    [one] = [f for f in result.audit.findings if f.name == name]
    return one


@pytest.fixture(scope="module")
def log() -> SmallLog:
    return SmallLog(rows=2000, units=1000)


@pytest.mark.parametrize(("given", "text"), [(1.6, "1.6"), (0.6, "0.6")])
def test_a_failing_audit_says_which_number_the_log_looks_drawn_at(log: SmallLog, given: float, text: str) -> None:
    result = build(given).run(log.table())
    failed = finding(result)
    assert failed.outcome == "fail"
    remedy = failed.remedy or ""
    assert remedy.startswith("The log looks as if drawn at temperature ")
    assert f', not {text}: set temperature = "fit", or ask who changed it.' in remedy
    assert float(remedy.removeprefix("The log looks as if drawn at temperature ").split(",")[0]) == pytest.approx(
        1.0, abs=0.1
    )
    assert 'set temperature = "fit"' in " ".join(str(result).split())
    mended = build("fit").run(log.table())
    assert finding(mended).outcome == "pass"


@pytest.mark.parametrize(("given", "fitted", "said"), [
    (1.0, 0.997, False), (1.0, 1.04, False), (0.123, 0.1234, False), (1.0, 0.99, True), (1.0, 1.1, True),
])  # fmt: skip
def test_no_number_is_named_that_reads_like_the_one_given(given: float, fitted: float, said: bool) -> None:
    failed = Finding("log-likelihood", "fail", 0.0, 9.0, "unlikely", "Look.")
    remedy = with_likelier_number(failed, "temperature", given, fitted).remedy or ""
    assert remedy.startswith("The log looks as if drawn at temperature") == said
    assert remedy.endswith("Look.")


def test_no_number_is_looked_for_where_nothing_fails(log: SmallLog) -> None:
    assert LIKELIER not in build(1.0).aggregate(log.table()).aggregates.sample.columns()
    assert LIKELIER not in build("fit").aggregate(log.table()).aggregates.sample.columns()


def test_no_number_is_named_where_none_would_do(log: SmallLog) -> None:
    """Scores with the wrong sign: no temperature makes what was shown likely."""
    table = log.table()
    at = table.schema.get_field_index("control_scores")
    turned = table.set_column(at, "control_scores", pa.array((-log.control).tolist()))
    failed = finding(build(1.0).run(turned))
    assert failed.outcome == "fail"
    assert "looks as if drawn" not in (failed.remedy or "")


def test_the_audit_sees_no_unit_that_the_fit_saw(log: SmallLog) -> None:
    aggregates = build("fit").aggregate(log.table()).aggregates
    units = aggregates.sample.columns()["unit"]
    assert len(units)
    assert not is_fitted_on(units).any()
    assert aggregates.plan.control_fits[0].rows + len(units) == log.rows


def test_hashes_of_units_to_audit() -> None:
    unit = np.random.default_rng(0).integers(0, 2**63, 4000).astype(np.uint64)
    of_fit = is_fitted_on(unit)
    assert of_fit.mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(4000))
    assert (units_to_audit(unit)[of_fit] == np.uint64(2**64 - 1)).all()
    assert (units_to_audit(unit)[~of_fit] == unit[~of_fit]).all()


def test_the_ratio_of_what_fit_and_audit_know() -> None:
    def fit(logger: int, rows: int, information: float) -> FittedNumber:
        return FittedNumber("a", logger, "temperature", 1.0, 0.1, rows, information, np.zeros(2))

    assert information_ratio((), np.array([5.0])) == 0.0
    assert information_ratio((fit(0, 100, 250.0),), np.array([50.0])) == pytest.approx(0.5)
    both = (fit(0, 100, 250.0), fit(2, 40, 10.0))
    assert information_ratio(both, np.array([50.0, 1000.0, 60.0])) == pytest.approx(1.5)


def test_each_test_is_divided_by_it() -> None:
    g = np.random.default_rng(1)
    log_p, expected = g.normal(size=300), g.normal(0.05, 0.1, size=300)
    starts = np.arange(300)
    plain, divided = (calibration(log_p, expected, starts, ratio).statistic for ratio in (0.0, 3.0))
    assert divided == pytest.approx(plain / 2.0)  # type: ignore[operator]
    u = g.random(400) ** 1.2
    distance, p = kolmogorov_smirnov(u, 3.0)
    assert distance == kolmogorov_smirnov(u)[0]
    assert p == pytest.approx(kolmogorov((20.0 + 0.12 + 0.11 / 20.0) * distance / 2.0))
    log_w, drawn = g.normal(size=500) * 0.3, g.normal(size=(500, 8)) * 0.3
    z = [moment_at(log_w, drawn, 5.0, "max", ratio).z for ratio in (0.0, 3.0)]
    assert z[1] == pytest.approx(z[0] / 2.0)


def test_the_balance_is_divided_too() -> None:
    g = np.random.default_rng(2)
    log_w, drawn = g.normal(size=3000) * 0.3, g.normal(size=(3000, 8)) * 0.3
    features = features_that_vary({("number", "x"): g.normal(size=3000)})
    found = [balance(features, log_w, drawn, drawn, 2.0, ratio).statistic for ratio in (0.0, 3.0)]
    assert found[1] == pytest.approx(found[0] / 2.0)  # type: ignore[operator]


@pytest.mark.slow
def test_a_right_log_fails_as_often_as_it_should() -> None:
    """p < .1 in about a tenth of logs; without the division √2·|z| would give a quarter."""
    names = ("log-likelihood", "rank among draws", "capped moment")
    p_values: dict[str, list[float]] = {name: [] for name in names}
    for seed in range(60):
        result = build("fit").run(SmallLog(rows=800, units=800, spread=0.5, seed=seed).table())
        for name in names:
            p = finding(result, name).p_value
            p_values[name] += [] if p is None else [p]
    share = {name: np.mean(np.array(p) < 0.1) for name, p in p_values.items()}
    error = np.sqrt(0.1 * 0.9 / 60)
    assert share["log-likelihood"] == pytest.approx(0.1, abs=3 * error)
    for name in names[1:]:
        assert share[name] < 0.1 + 3 * error
