"""Position-based clicks and clicks of people who browse, by hand; what a log of theirs has; the exact truth."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.simulate import (
    WORLDS,
    Displays,
    World,
    chunk_generator,
    click_probability,
    draw_displays,
    shown_rankings,
    simulate_log,
    true_values,
    write_log,
)
from foretest.simulate.clicks import clicked_slots
from foretest.simulate.displays import CHUNK
from foretest.simulate.truth import exact_values, values_of_log

RERANKER, BROWSING = WORLDS["reranker"], WORLDS["browsing"]
SMALL = replace(RERANKER, name="small", candidates=5, min_candidates=3, slots=3)


def display(world: World, rate: float, appeal: list[float]) -> Displays:
    """One display of known rate and appeals."""
    m = len(appeal)
    shape = replace(world, candidates=m, min_candidates=m, slots=min(world.slots, m))
    base = draw_displays(shape, shape.change, chunk_generator(3, 9, 0), 1)
    return replace(base, rate=np.array([rate]), appeal=np.array([appeal]))


def shares_of_slots(world: World, one: Displays, ranking: list[int], count: int = 40_000) -> np.ndarray:
    """How often each slot is the clicked one."""
    many = one.take(np.zeros(count, np.int64))  # type: ignore[arg-type]
    rankings = np.tile(np.array(ranking, np.int16), (count, 1))
    slots = clicked_slots(world, many, rankings, np.random.default_rng(2).random(count))
    return np.bincount(slots, minlength=len(ranking)) / count


def test_position_based_clicks_are_examination_times_worth() -> None:
    world = replace(RERANKER, candidates=3, min_candidates=3, slots=3, position_decay=1.0, appeal_effect=0.5)
    one = display(world, 0.4, [0.0, 1.0, 4.0])
    # θ = 1, 1/2, 1/3 sum to 11/6; worths .4, .4·exp(.5), and 1 where .4·exp(2) would be above it
    place, worth = np.array([6.0, 3.0, 2.0]) / 11.0, np.array([0.4, 0.4 * np.exp(0.5), 1.0])
    for ranking in permutations(range(3)):
        expected = place * worth[list(ranking)]
        got = click_probability(world, one, np.array([ranking], np.int16))[0]
        assert got == pytest.approx(expected.sum(), rel=1e-12)
    shares = expected / expected.sum()
    error = np.sqrt(shares * (1 - shares) / 40_000)
    assert (np.abs(shares_of_slots(world, one, list(ranking)) - shares) < 4 * error).all()
    assert world.examination == pytest.approx((1.0, 1 / 2, 1 / 3), rel=1e-15)


def test_people_who_browse_leave_where_an_item_draws_them_away() -> None:
    world = replace(BROWSING, candidates=3, min_candidates=3, slots=3, appeal_effect=1.0, abandonment=0.4)
    one = display(world, 0.1, [0.0, 0.5, 2.5])
    # attraction 1, e^.5, e^2.5: clicked .1, .1649, at most .5; left .4, .6595, always
    clicked, left = np.array([0.1, 0.1 * np.exp(0.5), 0.5]), np.array([0.4, 0.4 * np.exp(0.5), 1.0])
    for ranking in permutations(range(3)):
        at, expected = 1.0, []
        for item in ranking:
            expected.append(at * clicked[item])
            at *= (1 - clicked[item]) * (1 - left[item])
        assert click_probability(world, one, np.array([ranking], np.int16))[0] == pytest.approx(
            sum(expected), rel=1e-12
        )
    shares = np.array(expected) / sum(expected)  # the last ranking shows 2 first: nobody reads on
    assert shares.tolist() == [1.0, 0.0, 0.0]
    assert shares_of_slots(world, one, list(ranking)).tolist() == [1.0, 0.0, 0.0]
    assert world.examination is None


@pytest.mark.parametrize(
    ("world", "wrong", "message"),
    [
        (RERANKER, {"click_floor": 0.01}, "position-based clicks take no floor, ceiling or cannibalisation"),
        (BROWSING, {"cannibalisation": 0.1}, "browsing clicks take no floor, ceiling or cannibalisation"),
        (RERANKER, {"abandonment": 0.1}, "abandonment is for browsing clicks"),
        (BROWSING, {"abandonment": 1.5}, r"abandonment is 1\.5: expected a probability"),
        (RERANKER, {"clicks": "cascade"}, "clicks is 'cascade': expected one of saturating, position-based, browsing"),
        (RERANKER, {"temperature": -0.1}, r"temperature is -0\.1: expected 0 or more"),
    ],
)
def test_contradictions_are_refused(world: World, wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"world '{world.name}': .*{message}"):
        replace(world, **wrong)


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
def test_rankings_at_a_temperature(temperature: float) -> None:
    """The first slot is the softmax of s/T, at 0 the best score, the lower position first."""
    world, count = replace(SMALL, temperature=temperature), 40_000
    scores = np.tile(np.array([0.2, 1.0, 1.0, -np.inf, 0.7], np.float32), (count, 1))
    shown = shown_rankings(world, scores, np.random.default_rng(0).standard_exponential(scores.shape))
    assert shown.shape == (count, 3)
    first = np.bincount(shown[:, 0], minlength=5) / count
    if temperature == 0.0:
        assert (shown == [1, 2, 4]).all()
        return
    odds = np.exp(scores[0].astype(np.float64) / temperature)
    expected = odds / odds.sum()
    assert (np.abs(first - expected) <= 4 * np.sqrt(expected * (1 - expected) / count)).all()


def test_low_temperatures_neither_overflow_nor_tie() -> None:
    scores = np.array([[700.0, -800.0, -600.0, 5.0]], np.float32)
    world = replace(SMALL, candidates=4, min_candidates=4, slots=4, temperature=1e-3)
    assert shown_rankings(world, scores, np.ones((1, 4))).tolist() == [[0, 3, 2, 1]]


@pytest.mark.parametrize("temperature", [0.0, 0.4])
def test_the_exact_truth_is_the_enumeration(temperature: float) -> None:
    """Every ranking of displays with three to five candidates, priced by the policy of the log's settings."""
    world = replace(SMALL, temperature=temperature)
    displays = draw_displays(world, world.change, chunk_generator(5, 77, 0), 60)
    got = exact_values(world, displays, displays.treatment_scores)
    policy = ft.TopK("s") if temperature == 0.0 else ft.PlackettLuce("s", temperature)
    for i in range(60):
        m = int(displays.length[i])
        every = np.array(list(permutations(range(m), 3)), np.int32)
        lists = ft.Ragged.of([displays.treatment_scores[i, :m]] * len(every))
        rows = ft.Displays({"s": lists}, ft.Ragged.of(every), lists.lengths, np.zeros(len(every), np.uint64))
        p = np.exp(policy.log_prob(rows, rows.ranking))
        same = displays.take(np.full(len(every), i))  # type: ignore[arg-type]
        value = p @ click_probability(world, same, every.astype(np.int16))
        assert got[i] == pytest.approx(value, rel=1e-8)


def test_the_truth_of_a_log_is_that_of_its_own_displays() -> None:
    rows = CHUNK + 1000
    truth = values_of_log(RERANKER, rows, 4)["click"]
    chunks = [draw_displays(RERANKER, RERANKER.change, chunk_generator(4, 0, chunk)) for chunk in (0, 1)]
    sorts = {"control": [], "treatment": []}
    for part in (chunks[0], chunks[1].take(slice(1000))):
        for arm, worths in sorts.items():
            best = np.argsort(-getattr(part, f"{arm}_scores"), axis=1, kind="stable")
            worths.append(click_probability(RERANKER, part, best.astype(np.int16)))
    assert truth.control == pytest.approx(np.concatenate(sorts["control"]).mean(), rel=1e-12)
    assert truth.treatment == pytest.approx(np.concatenate(sorts["treatment"]).mean(), rel=1e-12)
    assert truth.std_error == 0.0
    elsewhere = true_values(RERANKER, RERANKER.change, 4, displays=8 * CHUNK)["click"]
    assert abs(elsewhere.rel_uplift - truth.rel_uplift) < 0.02
    assert elsewhere.std_error > 0.0
    with pytest.raises(ValueError, match="world 'browsing': its rankings are drawn"):
        values_of_log(BROWSING, 10, 0)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 0.25])
def test_a_written_log_of_the_reranker(temperature: float, tmp_path: Path) -> None:
    """Its settings run, its shown rankings are the control's, and truth.json has the curve."""
    world = replace(RERANKER, temperature=temperature)
    write_log(tmp_path, world, 6000, 1)
    truth = json.loads((tmp_path / "truth.json").read_text(encoding="utf-8"))
    assert truth["examination"] == pytest.approx([1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6])
    assert truth["log"] == truth["metrics"]["click"]
    assert truth["log"]["rel_uplift"] == values_of_log(world, 6000, 1)["click"].rel_uplift
    test = ft.OfflineTest.from_toml(tmp_path / "settings.toml")
    wanted = ft.TopK("control_scores") if temperature == 0.0 else ft.PlackettLuce("control_scores", 0.25)
    assert test.settings.control.settings() == wanted.settings()
    result = test.run(tmp_path / "log.parquet")
    assert result.health["control_deterministic"] is (temperature == 0.0)
    assert result.audit.outcome == ("fail" if temperature == 0.0 else "pass")
    if temperature == 0.0:
        assert result.metrics["click"].verdict == "insufficient"


@pytest.mark.slow
def test_rewards_weighted_by_exposure_give_the_truth() -> None:
    """A control that never varies: θ of the slot that the treatment gives an item, over θ of the slot it was in."""
    rows = 12 * CHUNK
    log = pa.Table.from_batches(simulate_log(RERANKER, rows, 2))
    earned = np.array(log["slot_click"].to_pylist(), float)
    shown, scores = np.array(log["ranking"].to_pylist()), np.array(log["treatment_scores"].to_pylist())
    place = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)
    theta = np.array(RERANKER.examination)
    weighted = (earned * theta[np.take_along_axis(place, shown, axis=1)] / theta).sum(axis=1)
    plain = earned.sum(axis=1)
    uplift = weighted.mean() / plain.mean() - 1
    terms = (weighted - (1 + uplift) * plain) / plain.mean()
    truth = values_of_log(RERANKER, rows, 2)["click"].rel_uplift
    error = terms.std() / np.sqrt(rows)
    assert abs(uplift - truth) < 4 * error
    assert truth > 10 * error  # else agreement would say little


def test_the_named_worlds_are_what_they_promise() -> None:
    assert (RERANKER.temperature, RERANKER.candidates, RERANKER.min_candidates, RERANKER.slots) == (0.0, 6, 6, 6)
    truth = true_values(RERANKER, RERANKER.change, 0, displays=8 * CHUNK)["click"]
    assert 0.11 < truth.rel_uplift < 0.15
    assert 0.09 < truth.control < 0.11
    truth = true_values(BROWSING, BROWSING.change, 0, displays=4 * CHUNK, draws=2)["click"]
    assert 0.05 < truth.rel_uplift < 0.07
    assert 0.2 < truth.control < 0.25  # 20 000 clicks in 100 000 displays
    assert BROWSING.slots >= 3


@pytest.mark.slow
def test_company_tells_browsing_from_position_based_clicks() -> None:
    """Given a click of item i in slot k, the other shown items are no draw of the control where people are drawn away.

    z of Σ (S − E_p[S | a_k = i]), S the sum of the others' centred scores, over all 1 680 rankings.
    """
    independent = replace(BROWSING, clicks="position-based", abandonment=0.0)
    assert abs(company_z(independent, clicks=4000)) < 4.0
    assert company_z(BROWSING, clicks=20_000) < -3.3


def company_z(world: World, clicks: int) -> float:
    log = pa.Table.from_batches(simulate_log(world, 110_000, 6))
    clicked = log.filter(log["click"]).slice(0, clicks)
    assert clicked.num_rows == clicks
    scores = np.array(clicked["control_scores"].to_pylist(), float)
    shown, slot = np.array(clicked["ranking"].to_pylist()), np.array(clicked["slot_click"].to_pylist()).argmax(axis=1)
    every, row = np.array(list(permutations(range(8), 4))), np.arange(clicks)
    scores -= scores.mean(axis=1, keepdims=True)
    item = shown[row, slot]
    gaps = []
    for part in np.array_split(row, clicks // 500):
        s, odds = scores[part], np.exp(scores[part])
        left, p = np.repeat(odds.sum(axis=1)[:, None], len(every), axis=1), np.ones((len(part), len(every)))
        for place in range(4):
            p *= odds[:, every[:, place]] / left
            left -= odds[:, every[:, place]]
        p *= (every[:, slot[part]] == item[part]).T
        company = s[:, every].sum(axis=2)  # with item i, in what was shown and in what might have been
        expected = (p * company).sum(axis=1) / p.sum(axis=1)
        gaps.append(np.take_along_axis(s, shown[part], axis=1).sum(axis=1) - expected)
    gap = np.concatenate(gaps)
    return float(gap.sum() / np.sqrt((gap**2).sum()))
