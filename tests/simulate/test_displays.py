"""Displays, the ranking sampler and the click model, against closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from foretest.simulate import (
    WORLDS,
    Displays,
    World,
    changed_scores,
    chunk_generator,
    click_probability,
    draw_displays,
    sample_rankings,
)
from foretest.simulate.clicks import clicked_slots

PAPER = WORLDS["paper"]
VARYING = replace(PAPER, min_candidates=5)


def drawn(world: World, count: int = 4000) -> Displays:
    return draw_displays(world, world.change, chunk_generator(3, 9, 0), count)


def test_rankings_are_distinct_positions_within_the_candidates() -> None:
    displays = drawn(VARYING)
    exponentials = np.random.default_rng(0).standard_exponential(displays.appeal.shape)
    for scores in (displays.control_scores, displays.treatment_scores):
        rankings = sample_rankings(scores, exponentials, VARYING.slots)
        assert rankings.shape == (4000, 4)
        assert (np.diff(np.sort(rankings, axis=1), axis=1) > 0).all()
        assert (rankings >= 0).all()
        assert (rankings < displays.length[:, None]).all()
    assert set(displays.length) == set(range(5, 21))


def test_rankings_follow_plackett_luce() -> None:
    scores = np.array([1.5, 0.0, -1.0, 2.0, -np.inf], dtype=np.float32)
    draws = 100_000
    rng = np.random.default_rng(1)
    rankings = sample_rankings(np.tile(scores, (draws, 1)), rng.standard_exponential((draws, 5)), 2)
    odds = np.exp(scores.astype(np.float64))
    first = odds / odds.sum()
    pairs = first[:, None] * odds / (odds.sum() - odds)[:, None]
    np.fill_diagonal(pairs, 0)
    counts = np.zeros((5, 5))
    np.add.at(counts, (rankings[:, 0], rankings[:, 1]), 1)
    for expected, got in [(first, counts.sum(axis=1) / draws), (pairs, counts / draws)]:
        assert expected.sum() == pytest.approx(1)
        assert (np.abs(got - expected) <= 4 * np.sqrt(expected * (1 - expected) / draws)).all()


def one_display(category: list[int]) -> Displays:
    """A display of known rate 0.02 and appeals 0, 1, 2."""
    base = drawn(replace(PAPER, candidates=3, min_candidates=3, slots=2), 1)
    return replace(
        base,
        rate=np.array([0.02]),
        appeal=np.array([[0.0, 1.0, 2.0]]),
        category=np.array([category], dtype=np.int8),
    )


def test_click_probability_is_the_formula() -> None:
    world = replace(PAPER, position_decay=1.0, appeal_effect=0.5, cannibalisation=0.25, click_ceiling=0.1)
    ranking = np.array([[2, 0]], dtype=np.int16)
    # Slots are looked at 2/3 and 1/3 of the time; appeals 2 and 0.
    rate = 0.02 * (2 / 3 * np.exp(1.0) + 1 / 3)
    apart = click_probability(world, one_display([0, 1, 2]), ranking)[0]
    alike = click_probability(world, one_display([0, 1, 0]), ranking)[0]
    assert apart == pytest.approx(0.001 + 0.099 * (1 - np.exp(-rate / 0.099)), rel=1e-12)
    assert alike == pytest.approx(0.001 + 0.099 * (1 - np.exp(-rate / 1.25 / 0.099)), rel=1e-12)


def test_only_touched_groups_change() -> None:
    displays = drawn(PAPER)
    changed = (displays.control_scores != displays.treatment_scores).any(axis=1)
    touched = [group.name in PAPER.change.touched for group in PAPER.groups]
    assert (changed == np.array(touched)[displays.group]).all()
    assert 0.3 < changed.mean() < 0.6


def test_another_change_leaves_the_control_as_it_is() -> None:
    other = draw_displays(PAPER, WORLDS["mild"].change, chunk_generator(3, 9, 0), 4000)
    assert np.array_equal(other.control_scores, drawn(PAPER).control_scores)
    assert not np.array_equal(other.treatment_scores, drawn(PAPER).treatment_scores)


def test_users_have_the_mean_number_of_displays() -> None:
    displays = drawn(replace(PAPER, displays_per_user=3.0), 8000)
    counts = np.bincount(displays.user)
    # A geometric number of mean 3 has variance 6.
    assert counts.mean() == pytest.approx(3, abs=4 * np.sqrt(6 / len(counts)))
    first = np.unique(displays.user, return_index=True)[1]
    assert np.array_equal(displays.owner, first[displays.user])
    for by_user in (displays.group, displays.activity):
        assert np.array_equal(by_user, by_user[displays.owner])
    assert not np.array_equal(displays.control_scores, displays.control_scores[displays.owner])


def test_sticky_users_keep_their_candidates() -> None:
    displays = drawn(replace(VARYING, displays_per_user=3.0, sticky=True))
    for of_items in (displays.length, displays.appeal, displays.category):
        assert np.array_equal(of_items, of_items[displays.owner])
    for scores in (displays.control_scores, displays.treatment_scores):
        assert np.array_equal(scores, scores[displays.owner])
    assert not np.array_equal(displays.recency, displays.recency[displays.owner])


def test_the_hidden_intent_is_not_a_function_of_what_is_logged() -> None:
    displays = drawn(PAPER, 8000)
    columns = [np.ones(8000), np.log(displays.recency), np.log(displays.activity)]
    columns += [displays.group == g for g in range(1, len(PAPER.groups))]
    logged = np.column_stack(columns)
    residual = np.log(displays.rate) - logged @ np.linalg.lstsq(logged, np.log(displays.rate))[0]
    # What the features leave over is the hidden part; what they explain is there too.
    assert residual.std() == pytest.approx(PAPER.hidden_intent_sd, rel=0.05)
    assert np.log(displays.rate).std() > 2 * residual.std()


def test_one_more_treatment_of_the_same_displays() -> None:
    """Without noise of its own (accuracy 1) a change gives one set of scores, drawn with the displays or afterwards."""
    world = replace(VARYING, change=replace(VARYING.change, accuracy=1.0))
    displays = drawn(world)
    scores = changed_scores(world, displays, world.change, np.random.default_rng(0))
    assert scores.dtype == np.float32
    padding = np.isneginf(displays.control_scores)
    assert (np.isneginf(scores) == padding).all()
    assert scores[~padding] == pytest.approx(displays.treatment_scores[~padding], abs=1e-5)


def test_another_treatment_has_noise_of_its_own() -> None:
    """In touched groups its noise has the change's strength and is independent of the first treatment's."""
    change = replace(PAPER.change, accuracy=0.0, cold_lift=0.0, strength=0.7)
    world = replace(PAPER, change=change, intent_coupling=0.0)
    displays = drawn(world)
    scores = changed_scores(world, displays, change, np.random.default_rng(0))
    touched = np.isin(displays.group, [k for k, g in enumerate(world.groups) if g.name in change.touched])
    first, second = (s - displays.control_scores for s in (displays.treatment_scores, scores))
    assert (second[~touched] == 0.0).all()
    count = second[touched].size
    assert second[touched].std() == pytest.approx(0.7, abs=4 * 0.7 / np.sqrt(2 * count))
    assert abs(np.corrcoef(first[touched].ravel(), second[touched].ravel())[0, 1]) < 4 / np.sqrt(count)


def test_the_clicked_slot_has_its_share_of_the_rate() -> None:
    """Two slots, by hand: p = (1, 2^-0.7)/sum, appeals 1 and 2 of other categories, λ = 0.02·Σ p_k exp(.46 u_k)."""
    one = one_display([0, 1, 2])
    world = replace(PAPER, candidates=3, min_candidates=3, slots=2, click_floor=0.01, click_ceiling=1.0)
    count = 40_000
    many = one.take(np.zeros(count, np.int64))  # type: ignore[arg-type]
    rankings = np.tile(np.array([1, 2], np.int16), (count, 1))
    slots = clicked_slots(world, many, rankings, np.random.default_rng(2).random(count))
    place = np.array([1.0, 2**-0.7]) / (1.0 + 2**-0.7)
    rate = 0.02 * place * np.exp(0.46 * np.array([1.0, 2.0]))
    earned = 0.99 * (1.0 - np.exp(-rate.sum() / 0.99))
    first = (0.01 * place[0] + earned * rate[0] / rate.sum()) / (0.01 + earned)
    assert set(slots) == {0, 1}
    assert (slots == 0).mean() == pytest.approx(first, abs=4 * np.sqrt(first * (1 - first) / count))
