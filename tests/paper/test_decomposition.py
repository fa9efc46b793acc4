"""The parts of NCIS's bias: exact moments by enumeration, draws against them, standard errors against repetition."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from foretest.paper.decomposition import Moments, decompose, display_moments, log_weights, over_tests, parts_of
from foretest.simulate import WORLDS, Displays, World, chunk_generator, click_probability, draw_displays
from tests.support import log_softmax_ranking

CAP = 5.0
SMALL: World = replace(WORLDS["paper"], candidates=4, min_candidates=4, slots=2, cold_share=0.3)
GROUPS = [group.name for group in SMALL.groups]


def drawn(count: int = 40) -> Displays:
    return draw_displays(SMALL, SMALL.change, chunk_generator(7, 20, 0), count)


def exact(displays: Displays) -> Moments:
    """Means of R, Z and RZ over all twelve rankings of each display, and the covariance of R and Z."""
    rankings = np.array(list(permutations(range(4), 2)), dtype=np.int16)
    t, p = (
        np.exp([[log_softmax_ranking(row.astype(float), a) for a in rankings] for row in scores])
        for scores in (displays.treatment_scores, displays.control_scores)
    )
    reward = np.stack([click_probability(SMALL, displays, np.tile(a, (len(displays), 1))) for a in rankings], axis=1)
    z = np.minimum(1.0, CAP * p / t)
    assert t.sum(axis=1) == pytest.approx(1.0)
    r, mass_kept, rz = ((t * value).sum(axis=1) for value in (reward, z, reward * z))
    return Moments(r, mass_kept, rz, rz - r * mass_kept, displays.group)


def test_weights_are_those_of_the_definition() -> None:
    displays = drawn(20)
    rankings = np.array([np.random.default_rng(k).permutation(4)[:2] for k in range(20)], dtype=np.int16)
    expected = [
        log_softmax_ranking(t.astype(float), a) - log_softmax_ranking(p.astype(float), a)
        for t, p, a in zip(displays.treatment_scores, displays.control_scores, rankings, strict=True)
    ]
    assert log_weights(displays, rankings) == pytest.approx(expected, abs=1e-9)


def test_the_parts_add_up_by_enumeration() -> None:
    moments = exact(drawn(400))
    parts = parts_of(moments, GROUPS)
    value = {name: part["value"] for name, part in parts.items() if name != "groups"}
    r, z = moments.r, moments.z
    assert value["truth"] == pytest.approx(r.mean())
    assert value["limit"] == pytest.approx(moments.rz.mean() / z.mean())
    covariance = moments.rz.mean() - r.mean() * z.mean()
    assert value["bias"] == pytest.approx(covariance / z.mean(), rel=1e-10)
    assert value["between_contexts"] == pytest.approx(np.cov(r, z, bias=True)[0, 1] / z.mean(), rel=1e-10)
    assert value["within_contexts"] == pytest.approx(moments.within.mean() / z.mean(), rel=1e-10)
    assert value["bias"] == pytest.approx(value["between_contexts"] + value["within_contexts"], rel=1e-10)
    member = moments.group[:, None] == np.arange(4)
    share = member.mean(axis=0)
    of_r, of_z = (member * r[:, None]).mean(axis=0) / share, (member * z[:, None]).mean(axis=0) / share
    between_groups = share @ ((of_r - r.mean()) * (of_z - z.mean())) / z.mean()
    assert value["between_groups"] == pytest.approx(between_groups, rel=1e-10)
    assert value["inside_groups"] == pytest.approx(value["between_contexts"] - between_groups, rel=1e-10)
    contributions = [group["bias_contribution"] for group in parts["groups"].values()]
    assert sum(contributions) == pytest.approx(between_groups, rel=1e-10)
    assert [group["kept"] for group in parts["groups"].values()] == pytest.approx(of_z)
    assert abs(value["within_contexts"]) > 1e-6


def test_table_1_has_only_a_part_between_groups() -> None:
    group = np.repeat([0, 1], [1, 9])
    r, z = np.where(group == 0, 12.0, 1.0), np.where(group == 0, 0.7, 1.0)
    parts = parts_of(Moments(r, z, r * z, np.zeros(10), group), ["registered", "unknown"])
    assert parts["bias"]["value"] == pytest.approx(1.74 / 0.97 - 2.1, rel=1e-12)
    assert parts["between_groups"]["value"] == pytest.approx(parts["bias"]["value"], rel=1e-12)
    assert parts["inside_groups"]["value"] == pytest.approx(0.0, abs=1e-12)
    assert parts["within_contexts"]["value"] == 0.0


def test_a_group_that_never_occurs_carries_nothing() -> None:
    parts = parts_of(Moments(*np.array([[1.0, 2.0], [0.5, 1.0], [0.5, 2.0], [0.0, 0.0]]), np.array([0, 0])), ["a", "b"])
    assert parts["groups"]["b"]["bias_contribution"] == 0.0
    assert parts["groups"]["b"]["value"] is None


def test_draws_have_the_enumerated_moments() -> None:
    """Each of 40 displays 2 000 times, 3 rankings each: means within 4.5 standard errors, the covariance too."""
    displays, copies = drawn(40), 2000
    expected = exact(displays)
    many = displays.take(np.repeat(np.arange(40), copies))  # type: ignore[arg-type]
    answer = display_moments(SMALL, many, np.random.default_rng(5), cap=CAP, draws=3)
    for name in ("r", "z", "rz", "within"):
        values = getattr(answer, name).reshape(40, copies)
        error = values.std(axis=1) / np.sqrt(copies)
        assert (np.abs(values.mean(axis=1) - getattr(expected, name)) <= 4.5 * error + 1e-12).all(), name


def test_standard_errors_are_those_of_repetition() -> None:
    """60 seeds of one chunk: the spread of every part against its mean standard error, within 4 of its own."""
    runs = [decompose(SMALL, SMALL.change, cap=CAP, seed=seed, draws=2) for seed in range(60)]
    for name in ("bias", "between_contexts", "within_contexts", "between_groups", "inside_groups"):
        values = np.array([run[name]["value"] for run in runs])
        errors = np.array([run[name]["std_error"] for run in runs])
        assert values.std(ddof=1) / errors.mean() == pytest.approx(1.0, abs=4 / np.sqrt(2 * 59)), name


def test_over_tests() -> None:
    def part(bias: float, between: float, within: float) -> dict[str, dict[str, float]]:
        named = {"bias": bias, "between_contexts": between, "within_contexts": within, "between_groups": between / 2}
        return {name: {"value": value} for name, value in named.items()}

    parts = [part(-0.03, -0.02, -0.01), part(0.005, -0.005, 0.01), part(-0.06, -0.06, 0.0)]
    answer = over_tests(parts, np.array([1.0, 0.5, 2.0]), np.array([-0.02, np.nan, -0.03]))
    assert answer["mean"]["bias"] == pytest.approx((-0.03 + 0.01 - 0.03) / 3)
    assert answer["mean"]["between_contexts"] == pytest.approx((-0.02 - 0.01 - 0.03) / 3)
    assert answer["mean"]["seen_by_strata"] == pytest.approx(-0.025)
    assert answer["mean_absolute"]["within_contexts"] == pytest.approx((0.01 + 0.02 + 0.0) / 3)
    assert answer["between_dominates"] == 2
    assert answer["strata_correlation"] == pytest.approx(1.0)
    assert over_tests(parts[:1], np.ones(1), np.zeros(1))["strata_correlation"] is None
