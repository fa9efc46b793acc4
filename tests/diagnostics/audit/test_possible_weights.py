"""Weights that no right log can have: the means against plain NumPy, their size on right logs, and natural mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation.audit_context import Feature
from foretest.aggregation.ledger import Account
from foretest.aggregation.weight_bins import CAPS, WeightBins
from foretest.cli.exit_codes import exit_code
from foretest.diagnostics.audit.possible_weights import (
    NAME,
    CappedMean,
    capped_means,
    group_means,
    impossible_rankings,
    mean_below_one,
    possible_weights,
)  # fmt: skip
from foretest.results.audit import Audit, Finding

ROWS, M, K = 20_000, 6, 2


def log_prob(scores: np.ndarray, ranking: np.ndarray) -> np.ndarray:
    """log-probability of rankings under Plackett-Luce, slot by slot."""
    left, total, rows = scores.copy(), np.zeros(len(scores)), np.arange(len(scores))
    for k in range(ranking.shape[1]):
        total += left[rows, ranking[:, k]] - np.log(np.exp(left).sum(axis=1))
        left[rows, ranking[:, k]] = -np.inf
    return total


def world(rows: int = ROWS, seed: int = 0, far: float = 0.8) -> dict[str, Any]:
    """A right log of two Plackett-Luce policies: rankings, both log-probabilities, clicks."""
    rng = np.random.default_rng(seed)
    p = rng.normal(size=(rows, M))
    t = p + far * rng.normal(size=(rows, M))
    shown = np.argsort(-(p + rng.gumbel(size=(rows, M))), axis=1)[:, :K]
    worth = np.take_along_axis(p, shown, axis=1).mean(axis=1)
    return {
        "p": p, "t": t, "shown": shown, "log_p": log_prob(p, shown), "log_t": log_prob(t, shown),
        "click": (rng.random(rows) < 0.05 + 0.05 / (1.0 + np.exp(-worth))).astype(float),
        "user": rng.integers(0, rows // 3, rows), "rng": rng,
    }  # fmt: skip


def audit_of(log_p: np.ndarray, log_t: np.ndarray, click: np.ndarray, user: np.ndarray | None = None) -> Audit:
    columns = {"click": click, "p": np.minimum(log_p, 0.0), "t": np.minimum(log_t, 0.0)}
    columns["user"] = np.arange(len(click)) if user is None else user
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user"), control=ft.Logged(log_prob="p"),
        treatment=ft.Logged(log_prob="t"), estimators=["ncis"], n_resamples=10,
    )  # fmt: skip
    audit = test.run(pa.table(columns)).audit
    assert audit is not None
    return audit


def finding_of(audit: Audit) -> Finding:
    return next(finding for finding in audit.findings if finding.name == NAME)


def test_the_means_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(1)
    log_w, bucket = rng.normal(-0.5, 1.0, 4000), rng.integers(0, 64, 4000)
    bins = WeightBins(Account(), 64)
    bins.add(log_w, bucket, np.ones(len(log_w)))
    means = capped_means(bins, 1, 4000.0, 1)
    assert [m.cap for m in means][:2] == pytest.approx([10**0.25, 10**0.5])
    for m in means:
        w = np.minimum(np.exp(log_w), m.cap)
        terms = np.bincount(bucket, w - w.mean(), minlength=64)
        error = np.sqrt(64 / 63 * np.square(terms).sum()) / 4000
        assert m.mean == pytest.approx(w.mean(), rel=1e-9)
        assert m.z == pytest.approx((w.mean() - 1.0) / error, rel=1e-9)
    # caps go as far as 4 000 units bear
    able = CAPS[
        (CAPS >= 1.5) & ((CAPS < 4.0) | (4000 * np.minimum(1.0, bins.capped_weights().sum(axis=0) / 4000) / CAPS > 100))
    ]
    assert len(means) == len(able)


def test_few_units_have_a_bound_that_holds() -> None:
    """Where units are few for the cap the p-value solves Maurer and Pontil's bound, so it is above the normal one."""
    log_w = np.log(np.full(60, 1.7))
    log_w[:30] = np.log(1.3)
    bins = WeightBins(Account(), 60)
    bins.add(log_w, np.arange(60), np.ones(60))
    first = capped_means(bins, 1, 60.0, 1)[0]
    level = np.log(2.0 / first.p_value)
    error = (first.mean - 1.0) / first.z
    assert np.sqrt(2.0 * level) * error + 7.0 * first.cap * level / (3.0 * 59.0) == pytest.approx(first.mean - 1.0)


@pytest.mark.parametrize("far", [0.3, 0.8, 2.0])
def test_right_logs_are_not_questioned(far: float) -> None:
    """Light and heavy weights, repeated users: of 60 right logs none fails, and at most one is questioned."""
    outcomes = []
    for seed in range(20):
        w = world(4000, seed=1000 + seed, far=far)
        outcomes.append(finding_of(audit_of(w["log_p"], w["log_t"], w["click"], w["user"])).outcome)
    assert outcomes.count("fail") == 0
    assert outcomes.count("warn") <= 1


def swapped(w: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return w["log_t"], w["log_p"]


def off_by_one(w: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return w["log_p"], np.roll(w["log_t"], 1)


def first_slot(w: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return w["log_p"], log_prob(w["t"], w["shown"][:, :1])


def softmaxes(w: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """A product of softmaxes in place of the treatment's Plackett-Luce would be too small; in place of the control's
    it makes weights too large."""
    one = w["p"] - np.log(np.exp(w["p"]).sum(axis=1, keepdims=True))
    return np.take_along_axis(one, w["shown"], axis=1).sum(axis=1), w["log_t"]


def marginals(w: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The control's probability estimated by how often each ranking was shown, whatever the display."""
    codes = w["shown"] @ (M ** np.arange(K))
    return np.log(np.bincount(codes)[codes] / len(codes)), w["log_t"]


@pytest.mark.parametrize("mistake", [swapped, off_by_one, first_slot, softmaxes, marginals])
def test_natural_mistakes_with_logged_probabilities_fail(mistake: Any) -> None:
    w = world()
    right = audit_of(w["log_p"], w["log_t"], w["click"])
    assert right.outcome == "unverified"
    wrong = audit_of(*mistake(w), w["click"])
    assert wrong.outcome == "fail"
    finding = finding_of(wrong)
    assert "cannot give more than 1" in finding.meaning
    assert finding.remedy is not None
    assert "swapped" in finding.remedy


def test_logarithms_of_another_base_are_questioned() -> None:
    """log10 for both gives w^.43, whose mean is below 1; no weight is then large enough to excuse it."""
    w = world()
    finding = finding_of(audit_of(w["log_p"] / np.log(10.0), w["log_t"] / np.log(10.0), w["click"]))
    assert finding.outcome == "warn"
    assert "log10" in (finding.remedy or "")


def test_a_wrong_part_of_the_traffic_is_named() -> None:
    """One country of five, a fifth of the rows, has the columns of another display."""
    w = world()
    country = w["rng"].integers(0, 5, ROWS)
    wrong = np.where(country == 3, np.roll(w["log_t"], 1), w["log_t"])
    names = np.array(["de", "fr", "it", "nl", "pl"])[country]
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], features=["country"]), control=ft.Logged(log_prob="p"),
        treatment=ft.Logged(log_prob="t"), estimators=["ncis"], n_resamples=10,
    )  # fmt: skip
    audit = test.run(pa.table({"click": w["click"], "p": w["log_p"], "t": wrong, "country": names})).audit
    assert audit is not None
    finding = finding_of(audit)
    assert finding.outcome == "fail"
    assert "where country = 'nl'" in finding.meaning


def test_groups_are_halves_of_numbers_and_values_of_texts() -> None:
    rng = np.random.default_rng(3)
    log_w, unit = rng.normal(-0.5, 1.0, 3000), np.arange(3000, dtype=np.uint64)
    number = rng.normal(size=3000)
    means = group_means([Feature("age", number), Feature("country = 'de'", (number > 1.0).astype(float))], log_w, unit)
    names = {m.where for m in means}
    assert {name.split(" ")[0] for name in names} == {"age", "country"}
    low = next(m for m in means if m.where.startswith("age ≤") and m.cap == 2.0)
    w = np.minimum(np.exp(log_w[number <= np.median(number)]), 2.0)
    assert low.mean == pytest.approx(w.mean(), rel=1e-12)
    assert low.z == pytest.approx((w.mean() - 1.0) / (w.std() / np.sqrt(len(w))), rel=1e-9)


def test_the_worst_context_is_adjusted_for_their_number() -> None:
    fine = [CappedMean(2.0, 0.9, -5.0, 1.0)]
    groups = [CappedMean(2.0, 1.01, 3.0, p, f"g{i}") for i, p in enumerate((0.0004, 0.5, 0.6, 0.7))]
    assert possible_weights(fine, groups, None).p_value == pytest.approx(0.0016)
    assert possible_weights(fine, groups, None).outcome == "warn"
    assert possible_weights(fine, groups[1:], None).outcome == "pass"


def test_a_large_weight_excuses_a_small_mean() -> None:
    n, w = np.full(50, 20.0), np.full(50, 20.0) * 0.5 + np.random.default_rng(4).normal(size=50) * 0.01
    assert mean_below_one(w, n, 1000.0, 2.0) is None
    mean = mean_below_one(w, n, 1000.0, 0.9)
    assert mean is not None
    assert mean.p_value < 1e-6


def test_unverified_is_said_and_can_be_failed_on(capsys: pytest.CaptureFixture[str]) -> None:
    w = world(2000)
    audit = audit_of(w["log_p"], w["log_t"], w["click"])
    doubt = audit.doubt()
    assert doubt is not None
    assert "log-likelihood" in doubt
    assert "thinned or chosen by reward" in doubt
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(log_prob="p"), treatment=ft.Logged(log_prob="t"),
        estimators=["ncis"], n_resamples=10,
    )  # fmt: skip
    result = test.run(pa.table({"click": w["click"], "p": w["log_p"], "t": w["log_t"]}))
    assert doubt in result.notes
    assert result.metrics["click"].verdict != "insufficient"  # verdicts stand
    assert "not verified" in str(result)
    assert "not verified" in result.to_html()


def scored(w: dict[str, Any], log_t: np.ndarray) -> ft.Result:
    """A run whose control has scores, and whose treatment is a column of logged probabilities."""
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="shown"), control=ft.PlackettLuce("p"),
        treatment=ft.Logged(log_prob="t"), estimators=["ncis"], n_resamples=10,
    )  # fmt: skip
    columns = {"click": w["click"], "shown": w["shown"].tolist(), "p": w["p"].tolist(), "t": np.minimum(log_t, 0.0)}
    return test.run(pa.table(columns))


@pytest.mark.parametrize("wrong", ["right", "constant", "another model", "another base"])
def test_a_logged_treatment_beside_a_control_with_scores_is_not_verified(wrong: str) -> None:
    """The control's scores say nothing about the treatment's column, which a constant would pass."""
    w = world(4000)
    column = {
        "right": w["log_t"], "constant": np.full(4000, np.log(0.001)), "another model": log_prob(-w["t"], w["shown"]),
        "another base": w["log_t"] / np.log(2.0),
    }[wrong]  # fmt: skip
    result = scored(w, column)
    assert result.audit is not None
    if result.audit.outcome == "fail":
        return
    doubt = result.audit.doubt()
    assert doubt is not None
    assert doubt.startswith("the treatment's probabilities are not verified: they are taken as")
    assert "another base of logarithms" in doubt
    assert doubt in result.notes
    assert exit_code(result, ["unverified"]) == 3
    assert result.audit.outcome == ("unverified" if wrong == "right" else result.audit.outcome)


def test_a_warning_does_not_verify_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    """What warns is no better known than what does not: the doubt stays, and --fail-on unverified is met by both."""
    w = world()
    columns = {"click": w["click"], "p": w["log_p"] / np.log(10.0), "t": w["log_t"] / np.log(10.0)}
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(log_prob="p"), treatment=ft.Logged(log_prob="t"),
        estimators=["ncis"], n_resamples=10,
    )  # fmt: skip
    result = test.run(pa.table(columns))
    assert result.audit is not None
    assert result.audit.outcome == "warn"
    assert result.audit.doubt() in result.notes
    assert exit_code(result, ["unverified"]) == 3
    assert exit_code(result, ["audit"]) == 0


@pytest.mark.parametrize(("ratio", "outcome"), [(1.0, "unverified"), (1.2, "fail"), (0.8, "warn")])
def test_equal_weights_that_are_not_1_are_impossible(ratio: float, outcome: str) -> None:
    """They have no spread to hold their distance from 1 against, but that of one unit more or less."""
    rng = np.random.default_rng(5)
    log_p = np.log(rng.uniform(0.1, 0.5, 2000))
    audit = audit_of(log_p, log_p + np.log(ratio), (rng.random(2000) < 0.2).astype(float))
    assert audit.outcome == outcome
    statistic = finding_of(audit).statistic
    assert statistic == pytest.approx((ratio - 1.0) * 2000 / ratio, abs=1e-6)


def test_a_failed_audit_of_a_further_treatment_meets_fail_on() -> None:
    w = world(4000)
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(log_prob="p"),
        treatment={"right": ft.Logged(log_prob="t"), "off by one": ft.Logged(log_prob="u")},
        estimators=["ncis"], n_resamples=10,
    )  # fmt: skip
    result = test.run(pa.table({"click": w["click"], "p": w["log_p"], "t": w["log_t"], "u": np.roll(w["log_t"], 1)}))
    assert result.audit is not None
    assert result.audit.outcome == "unverified"
    assert exit_code(result, ["audit"]) == 3


DAYS = np.array(["2024-05-01", "2024-05-02", "2024-05-03", "2024-05-04"])


@pytest.mark.parametrize("kind", ["text", "date", "time", "number", "text with gaps"])
def test_a_wrong_day_is_named(kind: str) -> None:
    """On one day of four the join was off by a row."""
    w = world()
    code = w["rng"].integers(0, 4, ROWS)
    wrong = np.where(code == 2, np.roll(w["log_t"], 1), w["log_t"])
    days = {
        "text": pa.array(DAYS[code]),
        "date": pa.array(DAYS[code]).cast(pa.date32()),
        "time": pa.array(DAYS[code]).cast(pa.timestamp("us")),
        "number": pa.array(20240501 + code),
        "text with gaps": pa.array([None if c == 0 else DAYS[c] for c in code.tolist()]),
    }[kind]
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], date="day"), control=ft.Logged(log_prob="p"),
        treatment=ft.Logged(log_prob="t"), estimators=["ncis"], n_resamples=10,
    )  # fmt: skip
    audit = test.run(pa.table({"click": w["click"], "p": w["log_p"], "t": wrong, "day": days})).audit
    assert audit is not None
    finding = finding_of(audit)
    assert finding.outcome == "fail"
    assert f"where day = '{20240503 if kind == 'number' else DAYS[2]}'" in finding.meaning


def test_a_date_that_gives_no_day_is_left_alone() -> None:
    w = world(2000)
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], date="day"), control=ft.Logged(log_prob="p"),
        treatment=ft.Logged(log_prob="t"), estimators=["ncis"], n_resamples=10,
    )  # fmt: skip
    columns = {"click": w["click"], "p": w["log_p"], "t": w["log_t"], "day": w["rng"].random(2000)}
    audit = test.run(pa.table(columns)).audit
    assert audit is not None
    assert audit.outcome == "unverified"


def test_rankings_that_are_never_shown() -> None:
    """P(N·π(a) < δ) ≤ δ for a ~ π: the least likely of n shown rankings has the p-value n·N·π."""
    log_n = np.full(100, np.log(30.0))
    log_p = np.full(100, -np.log(30.0))
    assert impossible_rankings(log_p, log_n) is None
    log_p[7] = np.log(1e-8)
    finding = impossible_rankings(log_p, log_n)
    assert finding is not None
    assert finding.p_value == pytest.approx(100 * 30 * 1e-8)
    assert finding.outcome == "fail"
    log_p[7] = np.log(2e-6)
    finding = impossible_rankings(log_p, log_n)
    assert finding is not None
    assert finding.outcome == "warn"
    # where the number of rankings is not known only a floor is impossible
    unknown = np.full(100, np.nan)
    assert impossible_rankings(np.full(100, -120.0), unknown) is None
    assert impossible_rankings(np.full(100, -700.0), unknown) is not None


def test_the_p_value_of_the_least_likely_ranking_holds() -> None:
    """Over 20 000 draws from distributions with long tails, as few are below δ/N as the bound says."""
    rng = np.random.default_rng(5)
    scores = 6.0 * rng.normal(size=(20_000, 30))
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    shown = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    priced = log_p[np.arange(20_000), shown]
    for level in (0.1, 0.01):
        below = (priced + np.log(30.0) < np.log(level)).mean()
        assert below <= level + 3.0 * np.sqrt(level / 20_000)
    assert impossible_rankings(priced, np.full(20_000, np.log(30.0))) is None
