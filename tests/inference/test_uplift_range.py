"""The range of an uplift against row terms in plain NumPy, and the word that sums it up."""

from __future__ import annotations

import json
from importlib.resources import files
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.inference.uplift_range import with_adjusted, word_on
from foretest.results.range_text import range_meaning
from foretest.results.result import Adjusted, Estimate
from tests.schemas import validate
from tests.support import SmallLog, build_test

LOG = SmallLog(rows=2000, units=900, seed=5)
KEYS = ["cis", "ncis", "point-ncis", "point-ncis-adaptive", "slot-ncis-adaptive"]
CAP, BOUND = 2.0, 3.0
SCHEMA = json.loads(files("foretest").joinpath("schema/result-1.json").read_text(encoding="utf-8"))


def estimates(**analysis: Any) -> dict[str, Estimate]:
    return build_test(KEYS, **analysis).run(LOG.table()).metrics["click"].estimates


def unsupported(key: str) -> float:
    """T = mean((w̃ − w̄) r) of a point estimator."""
    h = LOG.weights(key, CAP, BOUND)
    if key == "point-ncis":
        return float(((h - LOG.capped(CAP)) * LOG.click).mean())
    if key == "point-ncis-adaptive":
        capped = np.minimum(np.exp(LOG.log_w), h * capped_share())
        return float(((h - capped) * LOG.click).mean())
    raise AssertionError(key)


def capped_share() -> np.ndarray:
    """q at the adaptive cap, by bisection."""
    t, p = np.exp(LOG.log_t), np.exp(LOG.log_p)
    low, high = np.full(LOG.rows, -60.0), np.full(LOG.rows, np.log(BOUND) + 1e-12)
    for _ in range(200):
        c = np.exp((low + high) / 2)
        fits = c <= BOUND * np.minimum(t, c[:, None] * p).sum(axis=1)
        low, high = np.where(fits, np.log(c), low), np.where(fits, high, np.log(c))
    return np.asarray(np.minimum(t, np.exp(low)[:, None] * p).sum(axis=1))


@pytest.mark.parametrize("key", ["point-ncis", "point-ncis-adaptive"])
@pytest.mark.parametrize("gamma", [(1.15, 1.3), (1.5, 2.5)])
def test_both_ends_move_by_what_the_log_cannot_support(key: str, gamma: tuple[float, float]) -> None:
    estimate, t, control = estimates(gamma=gamma)[key], unsupported(key), LOG.click.mean()
    limits = estimate.range
    assert limits is not None
    assert limits.kind == "band"
    assert estimate.effect_size_ci_lower is not None
    assert estimate.effect_size_ci_upper is not None
    assert estimate.rel_effect_size_ci_lower is not None
    assert estimate.rel_effect_size_ci_upper is not None
    down, up = (1 / gamma[0] - 1) * t, (gamma[1] - 1) * t
    assert t > 0.001
    assert limits.ci_lower == pytest.approx(estimate.effect_size_ci_lower + down, rel=1e-9)
    assert limits.ci_upper == pytest.approx(estimate.effect_size_ci_upper + up, rel=1e-9)
    assert limits.rel_ci_lower == pytest.approx(estimate.rel_effect_size_ci_lower + down / control, rel=1e-9)
    assert limits.rel_ci_upper == pytest.approx(estimate.rel_effect_size_ci_upper + up / control, rel=1e-9)
    assert estimate.unsupported == pytest.approx(t / control, rel=1e-9)


def test_slots_have_wider_factors_of_their_own() -> None:
    plain, same, wide = estimates(), estimates(gamma=1.2), estimates(gamma_slots=(1.7, 4.0))

    def factors(found: dict[str, Estimate], key: str) -> tuple[Any, Any]:
        band = found[key].sensitivity
        assert band is not None
        return band["gamma_lower"], band["gamma_upper"]

    assert factors(plain, "point-ncis-adaptive") == (1.15, 1.3)
    assert factors(plain, "slot-ncis-adaptive") == (1.3, 2.0)
    assert factors(same, "point-ncis-adaptive") == factors(same, "slot-ncis-adaptive") == (1.2, 1.2)
    assert factors(wide, "slot-ncis-adaptive") == (1.7, 4.0)
    slot, wider = plain["slot-ncis-adaptive"].range, wide["slot-ncis-adaptive"].range
    assert slot is not None
    assert wider is not None
    assert wider.ci_upper > slot.ci_upper  # type: ignore[operator]


@pytest.mark.parametrize(("rate", "end"), [(0.9, "lower"), (0.01, "upper")], ids=["worth more", "worth less"])
def test_factors_give_way_to_the_slice_test(rate: float, end: str) -> None:
    """Actions with weights 1/6, 2/3, 10/3 and 40, by hand at bound 20: the cap c solves c = 20·(.6 + .01·c), so c = 15
    and q = .75; the slice between caps 5 and 15 is the last action alone, worth far more or less than the others."""
    p, t, rates = (np.array(v) for v in ([0.6, 0.3, 0.09, 0.01], [0.1, 0.2, 0.3, 0.4], [0.2, 0.2, 0.2, rate]))
    counts = (p * 40_000).astype(int)
    shown = np.repeat(np.arange(4), counts)
    click = np.concatenate([np.arange(n) < round(r * n) for n, r in zip(counts, rates, strict=True)])
    table = pa.table({
        "ranking": [[int(a)] for a in shown], "click": click, "id": np.arange(len(shown)),
        "p": [np.log(p).tolist()] * len(shown), "t": [np.log(t).tolist()] * len(shown),
    })  # fmt: skip
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking", id="id"), control=ft.PlackettLuce("p"),
        treatment=ft.PlackettLuce("t"), estimators=["point-ncis-adaptive"], weight_bound=20.0, interval="delta",
    )  # fmt: skip
    e = test.run(table, threads=1).metrics["click"].estimates["point-ncis-adaptive"]
    assert e.sensitivity is not None
    assert e.range is not None
    caps = {c: (np.minimum(t / p, c), np.minimum(t, c * p).sum()) for c in (5.0, 15.0)}
    (small, small_q), (large, large_q) = caps[5.0], caps[15.0]
    assert large_q == pytest.approx(0.75)
    gamma = (p * (large - small) * rates).sum() / ((large_q - small_q) / small_q * (p * small * rates).sum())
    assert e.sensitivity["slice_gamma"] == pytest.approx(gamma, rel=1e-6)
    nearest = e.sensitivity[f"slice_gamma_ci_{end}"]
    assert nearest is not None
    unsupported = float((p * large * (1 / large_q - 1) * rates).sum())
    factors = (1 / 1.15, nearest) if end == "lower" else (nearest, 1.3)
    assert factors[0] < 1 / 1.15 or factors[1] > 1.3  # refuted
    assert (e.range.factor_lower, e.range.factor_upper) == pytest.approx(factors, rel=1e-9)
    assert e.range.ci_lower == pytest.approx(e.effect_size_ci_lower + (factors[0] - 1) * unsupported, rel=1e-6)
    assert e.range.ci_upper == pytest.approx(e.effect_size_ci_upper + (factors[1] - 1) * unsupported, rel=1e-6)
    assert range_meaning(e).endswith("; this log refutes the usual 1/1.15 to 1.3")
    assert e.sensitivity["gamma_upper"] == 1.3  # the band stays what it is


def test_without_a_band_the_range_is_noise() -> None:
    for key in ("cis", "ncis"):
        e = estimates()[key]
        assert e.range is not None
        assert e.unsupported is None
        assert e.range.kind == "noise"
        assert (e.range.ci_lower, e.range.ci_upper) == (e.effect_size_ci_lower, e.effect_size_ci_upper)
        assert not e.word.startswith(("positive", "negative"))  # noise alone at most leans


def test_the_relative_error_is_that_of_the_ratio() -> None:
    for key, e in estimates(interval="delta").items():
        if key == "slot-ncis-adaptive":
            continue
        value, psi = LOG.estimate(key, LOG.click, CAP, BOUND)
        control = LOG.click.mean()
        influence = (psi + value - value / control * LOG.click) / control
        by_unit = np.bincount(LOG.unit, weights=influence - influence.mean())
        expected = np.sqrt((by_unit**2).sum()) / LOG.rows
        # the product has buckets of units in place of units, and a factor C/(C − 1)
        assert e.rel_std_error == pytest.approx(expected, rel=0.06), key


def test_words_from_both_intervals() -> None:
    verdicts = ("positive", "neutral", "negative")
    words = {(a, b): word_on(a, b, "band") for a, b in product(verdicts, verdicts)}
    assert words == {
        ("positive", "positive"): "positive", ("positive", "neutral"): "leans positive",
        ("positive", "negative"): "neutral", ("neutral", "positive"): "leans positive",
        ("neutral", "neutral"): "neutral", ("neutral", "negative"): "leans negative",
        ("negative", "positive"): "neutral", ("negative", "neutral"): "leans negative",
        ("negative", "negative"): "negative",
    }  # fmt: skip
    assert word_on("positive", "positive", "calibrated") == "positive"
    assert word_on("positive", "positive", "noise") == "leans positive"
    assert word_on("insufficient", "positive", "band") == "insufficient"


@pytest.mark.parametrize(
    ("word", "adjusted", "then"),
    [
        ("positive", "neutral", "leans positive"),
        ("positive", "positive", "positive"),
        ("leans negative", "neutral", "leans negative"),
        ("neutral", "neutral", "neutral"),
    ],
)
def test_a_verdict_that_is_lost_among_several_at_most_leans(word: str, adjusted: str, then: str) -> None:
    numbers = (0.2, 0.1, 0.0, -0.1, 0.1, 0.0, -0.1, 0.1)
    estimate = Estimate(*numbers, "positive", [], 99.0, word=word)
    assert with_adjusted(estimate, Adjusted(0.1, 0.2, adjusted, None, None, None, None)).word == then


def test_every_form_has_the_range() -> None:
    result = build_test(KEYS).run(LOG.table())
    document = json.loads(result.to_json())
    validate(document, SCHEMA)
    for key, row in zip(KEYS, result.to_dicts(), strict=True):
        e = document["metrics"]["click"]["estimates"][key]
        limits = {"kind", "ci_lower", "ci_upper", "rel_ci_lower", "rel_ci_upper", "factor_lower", "factor_upper"}
        assert set(e["range"]) == limits
        assert (e["range"]["factor_upper"] is None) == (e["range"]["kind"] != "band")
        assert e["word"] in SCHEMA["$defs"]["word"]["enum"]
        assert row["range_ci_lower"] == e["range"]["ci_lower"]
        assert row["word"] == e["word"]
