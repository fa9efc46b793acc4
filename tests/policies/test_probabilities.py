"""Lists of probabilities of single actions: the answers of plain NumPy, zeros included, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.testing import check_policy

ROWS, M = 400, 5
RANKED = ["is", "nis", "cis", "ncis", "point-ncis", "point-ncis-adaptive"]
COLUMNS = ft.LogColumns(rewards=["click"], unit="user", ranking="action")
CONTROL, TREATMENT = ft.Probabilities("p"), ft.Probabilities("t")


class Bandit:
    """Rows that show one of M actions; the treatment never shows some that the control does, and the reverse."""

    def __init__(self, seed: int = 0, *, zeros: bool = True) -> None:
        g = np.random.default_rng(seed)
        self.p, self.t = g.dirichlet(np.ones(M), ROWS), g.dirichlet(np.ones(M), ROWS)
        if zeros:
            self.p[:, 0], self.t[:, 1] = 0.0, 0.0
            self.p, self.t = (x / x.sum(axis=1, keepdims=True) for x in (self.p, self.t))
        self.action = np.array([g.choice(M, p=row) for row in self.p])
        self.click = (g.random(ROWS) < 0.05 + 0.1 * self.action / M).astype(float)

    def table(self, **more: Any) -> pa.Table:
        lists = {"p": self.p.tolist(), "t": self.t.tolist()}
        lists |= {"log_p": np.log(np.maximum(self.p, 1e-300)).tolist(), "log_t": np.log(self.t + 1e-300).tolist()}
        columns = {"click": self.click, "user": np.arange(ROWS) // 2, "action": [[a] for a in self.action.tolist()]}
        return pa.table({**columns, **lists, **more})

    def values(self, cap: float, bound: float) -> dict[str, float]:
        """Every estimator in plain NumPy; q over all actions."""
        at = np.arange(ROWS)
        w, r = self.t[at, self.action] / self.p[at, self.action], self.click
        q = np.minimum(self.t, cap * self.p).sum(axis=1)
        capped = np.minimum(w, cap)
        weight = np.array([adaptive(t, p, bound, x) for t, p, x in zip(self.t, self.p, w, strict=True)])
        return {
            "is": (w * r).mean(), "nis": (w * r).sum() / w.sum(), "cis": (capped * r).mean(),
            "ncis": (capped * r).sum() / capped.sum(), "point-ncis": (capped / q * r).mean(),
            "point-ncis-adaptive": (weight * r).mean(),
        }  # fmt: skip


def adaptive(t: np.ndarray, p: np.ndarray, bound: float, w: float) -> float:
    """min(w, c̃)/q at the largest c̃ with c̃ ≤ bound·q, by bisection; 1 where there is none."""
    if p[t > 0].sum() < 1.0 / bound:
        return 1.0
    low, high = -60.0, float(np.log(bound))
    for _ in range(200):
        c = np.exp((low + high) / 2)
        low, high = (np.log(c), high) if c <= bound * np.minimum(t, c * p).sum() else (low, np.log(c))
    c = float(np.exp(low))
    return min(w, c) / float(np.minimum(t, c * p).sum())


def build(control: Any = CONTROL, treatment: Any = TREATMENT, **more: Any) -> ft.OfflineTest:
    settings = {"estimators": RANKED, "cap": 3.0, "weight_bound": 4.0, "n_resamples": 50, **more}
    return ft.OfflineTest(log=COLUMNS, control=control, treatment=treatment, **settings)


@pytest.mark.parametrize("zeros", [True, False])
def test_values_are_those_of_numpy(zeros: bool) -> None:
    bandit = Bandit(zeros=zeros)
    estimates = build().run(bandit.table()).metrics["click"].estimates
    for key, value in bandit.values(3.0, 4.0).items():
        assert estimates[key].treatment == pytest.approx(value, rel=1e-9), key


def test_without_zeros_it_is_the_softmax_of_logarithms() -> None:
    log = Bandit(1, zeros=False).table()
    exact = build(ft.PlackettLuce("log_p"), ft.PlackettLuce("log_t"), estimators=None).run(log)
    lists = build(estimators=None).run(log)
    one, other = (result.metrics["click"].estimates for result in (exact, lists))
    assert list(one) == list(other)
    for key in one:
        for name in ("treatment", "effect_size_ci_lower", "effect_size_ci_upper"):
            assert getattr(other[key], name) == pytest.approx(getattr(one[key], name), rel=1e-8), (key, name)
    assert lists.audit.outcome == "pass"
    sizes = [result.health["effective_sample_size"] for result in (lists, exact)]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-9)


def test_the_same_lists_have_an_uplift_of_zero() -> None:
    estimates = build(treatment=CONTROL).run(Bandit().table()).metrics["click"].estimates
    assert max(abs(e.effect_size) for e in estimates.values()) < 1e-15  # of sums of lists


def test_float32_and_mixtures() -> None:
    bandit = Bandit(2)
    lists = {name: pa.array(x.tolist(), pa.list_(pa.float32())) for name, x in (("p", bandit.p), ("t", bandit.t))}
    narrow = bandit.table().drop_columns(["p", "t"])
    for name, column in lists.items():
        narrow = narrow.append_column(name, column)
    one, other = (build().run(t).metrics["click"].estimates["ncis"].treatment for t in (bandit.table(), narrow))
    assert one == pytest.approx(other, rel=1e-5)
    mixed = ft.Mixture([(3, CONTROL), (1, TREATMENT)])
    both = Bandit(2)
    both.t = 0.75 * both.p + 0.25 * both.t
    direct = build().run(both.table()).metrics["click"].estimates["ncis"].treatment
    assert build(treatment=mixed).run(bandit.table()).metrics["click"].estimates["ncis"].treatment == pytest.approx(
        direct, rel=1e-9
    )


def test_it_is_a_policy() -> None:
    bandit = Bandit(3)
    check_policy(ft.Probabilities("p"), {"p": bandit.p[:6].tolist()}, slots=1)
    assert ft.Probabilities("p").settings() == {"policy": "probabilities", "probs": "p"}


def test_lists_in_another_order_are_questioned() -> None:
    bandit = Bandit(4, zeros=False)
    bandit.t = bandit.p[:, ::-1] * 0.9 + 0.02
    right = Bandit(4, zeros=False)
    right.t = right.p * 0.9 + 0.02
    wrong = build().run(bandit.table())
    assert wrong.health["treatment"]["rank_correlation"] < 0.2
    assert build().run(right.table()).health["treatment"]["rank_correlation"] == pytest.approx(1.0)


BROKEN = [
    ([0.5, 0.2, 0.2, 0.2, 0.2], "the probabilities sum to 1.3, not 1"),
    ([0.5, 0.7, -0.2, 0.0, 0.0], "a probability is -0.2"),
    ([0.5, float("nan"), 0.5, 0.0, 0.0], "a probability is NaN"),
    ([0.0, 2.0, 0.0, 0.0, 0.0], "a probability is 2"),
]


@pytest.mark.parametrize(("wrong", "what"), BROKEN)
@pytest.mark.parametrize("role", ["p", "t"])
def test_lists_that_are_no_distribution(role: str, wrong: list[float], what: str) -> None:
    bandit = Bandit()
    lists = {"p": bandit.p.tolist(), "t": bandit.t.tolist()}
    lists[role][7] = lists[role][9] = wrong
    log = bandit.table(**lists)
    with pytest.raises(ft.BadInput, match=rf"column '{role}', row 7 .*: {what}; 2 rows have this fault\. "):
        build().run(log)


def test_rankings_are_refused() -> None:
    log = Bandit().table(action=[[0, 1]] * ROWS)
    with pytest.raises(ft.BadInput, match=r"the row shows 2 items; .*A list of probabilities is of single actions"):
        build().run(log)


def test_an_action_that_the_control_never_shows_is_refused() -> None:
    log = Bandit().table(action=[[0]] * ROWS)
    with pytest.raises(
        ft.BadInput, match=r"column 'p'.* the control gives probability 0 to the ranking that was shown"
    ):
        build().run(log)


def test_a_list_of_another_length_is_refused() -> None:
    bandit = Bandit()
    lists = bandit.t.tolist()
    lists[3] = [0.5, 0.5]
    with pytest.raises(ft.BadInput, match=r"row 3 .*length"):
        build().run(bandit.table(t=lists))


def test_plan_has_no_scores_to_explore_with() -> None:
    rows = ft.plan_log(build(), Bandit().table()).to_dict()["metrics"]["click"]["exploration"]
    assert {row["kind"] for row in rows} == {"uniform"}
