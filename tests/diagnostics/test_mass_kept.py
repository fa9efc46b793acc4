"""How much of the treatment an estimator keeps: against enumeration, and what follows where it is little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.diagnostics.mass_kept import mass_kept
from foretest.weights.weightings import Adaptive, Capped, Pointwise, Uncapped

ROWS, ITEMS = 6000, 4
NEVER = -60.0  # a score whose item the control never shows in so many displays


def bandit(share: float, supported: float = 1.0, seed: int = 0) -> pa.Table:
    """One slot, three items that the control shows evenly and one that it never shows; the treatment puts `share` on
    that one, and the rest evenly on the others. Clicks at 20 % on shown items; `supported` times that on the first
    item, which the treatment leaves out where it is not 1."""
    rng = np.random.default_rng(seed)
    shown = rng.integers(0, 3, ROWS)
    rest = np.array([0.0 if supported != 1.0 else 1.0, 1.0, 1.0])
    treatment = np.append((1.0 - share) * rest / rest.sum(), share)
    rate = np.where(shown == 0, 0.2 * supported, 0.2)
    with np.errstate(divide="ignore"):
        scores = np.maximum(np.log(treatment), NEVER)
    return pa.table({
        "click": (rng.random(ROWS) < rate).astype(float),
        "ranking": shown[:, None].tolist(),
        "control": [[0.0, 0.0, 0.0, NEVER]] * ROWS,
        "treatment": [scores.tolist()] * ROWS,
    })  # fmt: skip


def build(**analysis: Any) -> ft.OfflineTest:
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking"), control=ft.PlackettLuce("control"),
        treatment=ft.PlackettLuce("treatment"), n_resamples=50, **analysis,
    )  # fmt: skip


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
def test_the_mass_is_that_of_the_supported_items(share: float) -> None:
    """q = Σ_a min(π_t, c·π_p): here 1 − share at any cap above the largest supported weight."""
    aggregates = build(estimators=["ncis"]).aggregate(bandit(share)).aggregates
    error = 3.0 * np.sqrt(share * (1.0 - share) / (4096 * 16)) + 1e-9
    for weighting in (Capped(100.0), Pointwise(100.0), Adaptive(20.0), Uncapped()):
        slack = 0.02 if isinstance(weighting, Adaptive) else error  # its cap is found on the same 32 draws
        assert mass_kept(aggregates, weighting) == pytest.approx(1.0 - share, abs=slack)


@pytest.mark.parametrize("share", [0.6, 0.9])
@pytest.mark.parametrize("supported", [1.0, 2.0])
def test_a_treatment_that_the_log_hardly_supports_gets_no_verdict(share: float, supported: float) -> None:
    """The part that is supported earns as much as the control, or less; the rest may earn anything."""
    result = build(estimators=["cis", "ncis", "point-ncis", "point-ncis-adaptive"]).run(bandit(share, supported))
    for label in ("ncis", "point-ncis", "point-ncis-adaptive"):
        estimate = result.metrics["click"].estimates[label]
        assert estimate.verdict == "insufficient"
        assert any(f"supports only {100 * (1 - share):.1f} %" in r or "supports only" in r for r in estimate.reasons)
        assert estimate.robustness is None
        assert result.health["mass_kept"][label] == pytest.approx(1.0 - share, abs=0.02)
    assert "kept by point-ncis-adaptive" in str(result)


def test_a_treatment_that_is_supported_keeps_its_verdict() -> None:
    result = build(estimators=["point-ncis-adaptive"]).run(bandit(0.0, supported=0.5))
    assert result.metrics["click"].verdict == "positive"
    assert result.health["mass_kept"]["point-ncis-adaptive"] == pytest.approx(1.0, abs=0.01)


def logged(share: float, **analysis: Any) -> tuple[pa.Table, ft.OfflineTest]:
    """The bandit with the probabilities of what was shown in place of scores."""
    table = bandit(share, 0.5)
    shown = table["ranking"].combine_chunks().flatten().to_numpy()
    treatment = np.array([0.0, 0.5, 0.5])[shown] * (1.0 - share)
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t"),
        n_resamples=50, **analysis,
    )  # fmt: skip
    return pa.table({"click": table["click"], "p": [1 / 3] * ROWS, "t": treatment}), test


@pytest.mark.parametrize("share", [0.0, 0.6, 0.9])
def test_of_logged_policies_it_is_the_mean_weight(share: float) -> None:
    """Weights are 0 or 1.5·(1 − share), so that no cap of 2 cuts any: their mean is 1 − share, as is that of those that
    a cap of 0.01 does not cut, 0.01·2/3."""
    table, test = logged(share, estimators=["is", "nis", "cis", "ncis", ft.NCIS(cap=0.01, name="tiny")], cap=2.0)
    result = test.run(table)
    error = 3.0 * np.sqrt(0.5 / ROWS) * (1.0 - share)  # of w/(1 − share), 1.5 with a probability of 2/3, else 0
    for label in ("is", "nis", "cis", "ncis"):
        assert result.health["mass_kept"][label] == pytest.approx(1.0 - share, abs=error + 1e-12)
        estimate = result.metrics["click"].estimates[label]
        assert (estimate.verdict == "insufficient") == (share > 0.5)
        assert any("the log supports only" in reason for reason in estimate.reasons) == (share > 0.5)
    assert result.health["mass_kept"]["tiny"] == pytest.approx(0.01 * 2 / 3, rel=0.05)
    assert result.metrics["click"].estimates["tiny"].verdict == "insufficient"


def test_a_weight_that_no_row_has_supports_nothing() -> None:
    """The control's zero was floored at 1e-9: the treatment could in principle be seen, and 60 % of it never was."""
    table = bandit(0.6)
    floored = [[0.0, 0.0, 0.0, np.log(3e-9)]] * ROWS
    result = build(estimators=["is", "ncis"]).run(table.set_column(2, "control", [floored]))
    for label in ("is", "ncis"):
        assert result.health["mass_kept"][label] == pytest.approx(0.4, abs=0.02)
        assert result.metrics["click"].estimates[label].verdict == "insufficient"
