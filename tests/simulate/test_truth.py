"""The truth against the enumeration of every ranking, on a world small enough for it."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from foretest.simulate import WORLDS, Displays, chunk_generator, click_probability, draw_displays, true_values
from foretest.simulate.displays import CHUNK

TINY = replace(WORLDS["paper"], candidates=4, min_candidates=3, slots=2, cold_share=0.3)


def enumerated(displays: Displays, scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Each display's expected click probability: the sum over all rankings of π(a)·P(click | a)."""
    odds = np.exp(scores.astype(np.float64))
    total = odds.sum(axis=1)
    value = np.zeros(len(displays))
    for ranking in permutations(range(TINY.candidates), 2):
        first, second = odds[:, ranking[0]], odds[:, ranking[1]]
        probability = first / total * second / (total - first)
        shown = np.tile(np.array(ranking, dtype=np.int16), (len(displays), 1))
        value += probability * click_probability(TINY, displays, shown)
    return value


def test_truth_is_the_enumeration() -> None:
    chunks = [draw_displays(TINY, TINY.change, chunk_generator(5, 77, chunk)) for chunk in range(16)]
    control = np.concatenate([enumerated(chunk, chunk.control_scores) for chunk in chunks])
    treatment = np.concatenate([enumerated(chunk, chunk.treatment_scores) for chunk in chunks])
    uplift = treatment.mean() / control.mean() - 1
    terms = (treatment - (1 + uplift) * control) / control.mean()
    std_error = terms.std() / np.sqrt(len(terms))

    truth = true_values(TINY, TINY.change, seed=2)["click"]
    assert abs(truth.rel_uplift - uplift) < 4 * np.hypot(truth.std_error, std_error)
    assert truth.control == pytest.approx(control.mean(), abs=8 * control.std() / np.sqrt(len(control)))
    assert abs(uplift) > 20 * std_error  # else agreement would say little
    assert truth.effect_size == truth.treatment - truth.control
    assert truth.rel_uplift == pytest.approx(truth.effect_size / truth.control)


def test_standard_error_is_the_spread_over_seeds() -> None:
    truths = [true_values(TINY, TINY.change, seed, displays=CHUNK, draws=2) for seed in range(50)]
    for metric in ("click", "revenue"):
        spread = np.std([truth[metric].rel_uplift for truth in truths], ddof=1)
        claimed = np.mean([truth[metric].std_error for truth in truths])
        # The relative error of a standard deviation of 50 values is 10 %.
        assert spread == pytest.approx(claimed, rel=0.35)


def test_no_change_no_uplift() -> None:
    truth = true_values(TINY, replace(TINY.change, touched=()), seed=0, displays=CHUNK)["click"]
    assert truth.effect_size == 0
    assert truth.rel_uplift == 0
    assert truth.std_error == pytest.approx(0, abs=1e-9)


def test_repeated_users_do_not_change_the_truth() -> None:
    sticky = replace(TINY, displays_per_user=4.0, sticky=True)
    assert true_values(sticky, TINY.change, 0, displays=CHUNK) == true_values(TINY, TINY.change, 0, displays=CHUNK)
