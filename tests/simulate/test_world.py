"""What each named world promises, measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from foretest.simulate import (
    WORLDS,
    Displays,
    chunk_generator,
    click_probability,
    draw_displays,
    draw_test,
    sample_rankings,
    true_values,
)

pytestmark = pytest.mark.slow  # every world is simulated and measured

SATURATING = [name for name in WORLDS if WORLDS[name].clicks == "saturating"]  # test_clicks.py has the others
HARD = ["paper", "rewards", "sharp", "no-overlap"]


def log_probability(scores: NDArray[np.float32], rankings: NDArray[np.int16]) -> NDArray[np.float64]:
    """log π(a) of the Plackett-Luce policy: Σ_k s[a_k] - LSE of what is left, tails added from the end."""
    shifted = scores.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    shown = np.take_along_axis(shifted, rankings.astype(np.int64), axis=1)
    rest = np.exp(shifted)
    np.put_along_axis(rest, rankings.astype(np.int64), 0.0, axis=1)
    tails = np.cumsum(np.column_stack([rest.sum(axis=1), np.exp(shown[:, ::-1])]), axis=1)[:, 1:]
    total: NDArray[np.float64] = (shown - np.log(tails[:, ::-1])).sum(axis=1)
    return total


def log_weight(displays: Displays, rankings: NDArray[np.int16]) -> NDArray[np.float64]:
    return log_probability(displays.treatment_scores, rankings) - log_probability(displays.control_scores, rankings)


@dataclass(frozen=True)
class Measures:
    """Click probabilities and log10 weights of rankings of one world, drawn from each policy."""

    group: NDArray[np.int64]
    click: NDArray[np.float64]
    logged: NDArray[np.float64]
    treated: NDArray[np.float64]

    @property
    def mass_kept(self) -> float:
        """E_t[min(1, 100/w)], the treatment's mass that a cap of 100 keeps."""
        return float(np.minimum(1, 10 ** (2 - self.treated)).mean())

    @property
    def effective_positives(self) -> float:
        """(Σ w̄r)²/Σ(w̄r)² expected of 200 000 displays, with click probabilities for clicks."""
        capped = np.minimum(100, 10**self.logged)
        share = (capped * self.click).sum() ** 2 / (capped**2 * self.click).sum() / len(self.click)
        return float(200_000 * share)


@cache
def measured(name: str) -> Measures:
    world = WORLDS[name]
    parts = []
    for chunk in range(8):
        rng = chunk_generator(1, 50, chunk)
        displays = draw_displays(world, world.change, rng)
        control, treatment = (
            sample_rankings(scores, rng.standard_exponential(scores.shape), world.slots)
            for scores in (displays.control_scores, displays.treatment_scores)
        )
        weights = [log_weight(displays, rankings) / np.log(10) for rankings in (control, treatment)]
        parts.append((displays.group, click_probability(world, displays, control), *weights))
    return Measures(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


@pytest.mark.parametrize("name", SATURATING)
def test_click_probabilities_stay_in_range_and_spread(name: str) -> None:
    world, click = WORLDS[name], measured(name).click
    assert world.name == name
    assert (click >= world.click_floor).all()
    assert (click <= world.click_ceiling).all()
    assert np.quantile(click, 0.99) > 10 * np.quantile(click, 0.05)


@pytest.mark.parametrize("name", [name for name in SATURATING if name != "rewards"])
def test_about_two_clicks_in_a_hundred(name: str) -> None:
    assert 0.018 < measured(name).click.mean() < 0.026
    assert WORLDS[name].click_floor == pytest.approx(1e-3)
    assert WORLDS[name].click_ceiling == 1.0


def test_rewards_has_many_clicks() -> None:
    assert 0.25 < measured("rewards").click.mean() < 0.35


def test_dense_has_many_moderately_large_weights() -> None:
    dense, paper = measured("dense"), measured("paper")
    assert (dense.treated > 1).mean() > 0.3 > (paper.treated > 1).mean()
    assert 0.03 < (dense.treated > 2).mean() < 0.15
    assert (dense.treated > 6).mean() < 1e-3
    assert dense.mass_kept > 0.9


def test_groups_differ_in_value_and_volume() -> None:
    paper = measured("paper")
    values = [paper.click[paper.group == g].mean() for g in range(4)]
    volumes = np.bincount(paper.group)
    assert max(values) > 5 * min(values)
    assert volumes.max() > 5 * volumes.min()


@pytest.mark.parametrize("name", HARD)
def test_weights_have_a_long_tail(name: str) -> None:
    world = measured(name)
    assert np.quantile(world.treated, 0.5) < 1
    assert 0.03 < (world.treated > 2).mean() < 0.5
    assert (world.treated > 6).mean() > 0.003
    assert world.logged.max() > 2
    assert world.effective_positives > 100


def test_a_cap_binds_in_paper_and_kills_in_no_overlap() -> None:
    assert 0.8 < measured("paper").mass_kept < 0.92
    assert measured("no-overlap").mass_kept < 0.7


def test_mild_weights_stay_below_the_cap() -> None:
    mild = measured("mild")
    assert (mild.treated > 2).mean() < 1e-3
    assert mild.treated.max() > 1
    assert mild.mass_kept > 0.999


def test_sharp_policies_concentrate() -> None:
    top = {}
    for name in ("paper", "sharp"):
        displays = draw_displays(WORLDS[name], WORLDS[name].change, chunk_generator(1, 50, 0))
        odds = np.exp(displays.control_scores.astype(np.float64))
        top[name] = np.median(odds.max(axis=1) / odds.sum(axis=1))
    assert top["sharp"] > 0.6 > 0.4 > top["paper"]


@pytest.mark.parametrize("name", WORLDS)
def test_uplift_is_positive_and_known_well(name: str) -> None:
    truth = true_values(WORLDS[name], WORLDS[name].change, seed=0, displays=8 * 8192, draws=2)["click"]
    assert truth.rel_uplift > 0.03
    assert truth.std_error < 0.002


def test_paper_uplift_hides_from_capped_importance_sampling() -> None:
    truth = true_values(WORLDS["paper"], WORLDS["paper"].change, seed=0)["click"]
    assert 0.09 < truth.rel_uplift < 0.12
    assert truth.std_error < 0.001
    paper = measured("paper")
    capped = (np.minimum(100, 10**paper.logged) * paper.click).mean() / paper.click.mean() - 1
    assert capped < -0.1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"slots": 21}, "slots <= min_candidates"),
        ({"displays_per_user": 0.5}, r"displays_per_user is 0\.5"),
        ({"groups": WORLDS["paper"].groups[:3]}, r"shares sum to 0\.95"),
        ({"change": replace(WORLDS["paper"].change, touched=("nobody",))}, "touches .'nobody'."),
        ({"groups": tuple(replace(g, touch_probability=0.0) for g in WORLDS["paper"].groups)}, "touch_probability"),
        ({"click_floor": 0.5, "click_ceiling": 0.4}, "click_floor < click_ceiling"),
    ],
)
def test_contradictions_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"world 'paper': .*{message}"):
        replace(WORLDS["paper"], **wrong)


def test_a_change_needs_a_correlation_and_a_spread() -> None:
    with pytest.raises(ValueError, match=r"accuracy is 1\.5"):
        replace(WORLDS["paper"].change, accuracy=1.5)
    with pytest.raises(ValueError, match="strength is -1"):
        replace(WORLDS["paper"].change, strength=-1.0)


@pytest.mark.parametrize("name", WORLDS)
def test_histories_have_winners_and_losers(name: str) -> None:
    tests = [draw_test(WORLDS[name], number, seed=100) for number in range(1, 40)]
    truths = [true_values(WORLDS[name], t.change, t.seed, displays=8192, draws=1)["click"] for t in tests]
    uplift = np.array([truth.rel_uplift for truth in truths])
    better, worse = (uplift > 0.01).mean(), (uplift < -0.01).mean()
    assert 0.4 < better < 0.8
    assert 0.05 < worse < 0.35
    assert np.median(np.abs(uplift)) < 0.1
