"""What every policy must satisfy, run on all of them; what was logged; errors at the door."""

from __future__ import annotations

import pickle
from itertools import permutations

import numpy as np
import pytest

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput, RowFault
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import uniforms
from foretest.policies import (
    POLICIES,
    EpsilonGreedy,
    Logged,
    Mallows,
    Mixture,
    PlackettLuce,
    Policy,
    SwapNeighbours,
    Thurstone,
    TopK,
)
from foretest.policies.adapter import as_policy
from foretest.policies.base import positive
from foretest.policies.pricing import shown_log_prob


def displays(scores: list[list[float]], slots: list[int], **columns: object) -> Displays:
    """Displays with the list column "s", each showing its first items."""
    lists = Ragged.of([np.array(row, float) for row in scores])
    ranking = Ragged.of([np.arange(k, dtype=np.int32) for k in slots])
    return Displays({"s": lists, **columns}, ranking, lists.lengths, hash_integers(np.arange(len(scores))))


def repeated(scores: list[float], k: int, times: int) -> Displays:
    return displays([scores], [k]).take(np.zeros(times, np.int64))


DRAWABLE: dict[str, Policy] = {
    "plackett-luce": PlackettLuce("s", 0.7),
    "thurstone": Thurstone("s", 1.3),
    "mallows": Mallows("s", 0.6),
    "epsilon-greedy": EpsilonGreedy("s", 0.3),
    "greedy": EpsilonGreedy("s", 0.0),
    "uniform": EpsilonGreedy("s", 1.0),
    "top-k": TopK("s"),
    "swap-neighbours": SwapNeighbours("s", 0.2),
    "no swaps": SwapNeighbours("s", 0.0),
    "mixture": Mixture([(2.0, PlackettLuce("s")), (1.0, Mallows("s", 0.2)), (1.0, EpsilonGreedy("s", 0.0))]),
    "mixture with noise": Mixture([(0.5, Thurstone("s", 0.4)), (0.5, PlackettLuce("s", 3.0))]),
}
SCORES = {
    "distinct": [0.3, -1.0, 2.0, 0.9, -0.2, 1.1],
    "ties": [1.0, 0.0, 1.0, 1.0, 0.0, 0.0],
    "equal": [0.5] * 6,
}

every_policy = pytest.mark.parametrize("policy", DRAWABLE.values(), ids=DRAWABLE.keys())


@every_policy
@pytest.mark.parametrize("kind", SCORES)
def test_probabilities_of_all_rankings_sum_to_one(policy: Policy, kind: str) -> None:
    for m in range(1, 7):
        for k in range(1, m + 1):
            rankings = np.array(list(permutations(range(m), k)), np.int32)
            log_p = policy.log_prob(repeated(SCORES[kind][:m], k, len(rankings)), Ragged.of(rankings))
            assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-11), (m, k)
            assert (log_p <= 0.0).all() or log_p.max() < 1e-15
            if policy.full_support:
                assert np.isfinite(log_p).all()
            if policy.deterministic:
                assert np.count_nonzero(np.isfinite(log_p)) == 1


@every_policy
@pytest.mark.parametrize(
    ("kind", "m", "k"), [("distinct", 4, 2), ("ties", 4, 3), ("distinct", 3, 3), ("distinct", 5, 1)]
)
def test_draws_have_the_frequencies_of_log_prob(policy: Policy, kind: str, m: int, k: int) -> None:
    from scipy.stats import chisquare

    count = 20_000
    rankings = np.array(list(permutations(range(m), k)), np.int32)
    p = np.exp(policy.log_prob(repeated(SCORES[kind][:m], k, len(rankings)), Ragged.of(rankings)))
    u = uniforms(17, 0, np.arange(count, dtype=np.uint64), 0, 1, m + 1)[:, 0]
    drawn = policy.sample(repeated(SCORES[kind][:m], k, count), u).padded(-1)
    code = {tuple(r): i for i, r in enumerate(rankings.tolist())}
    counts = np.bincount([code[tuple(r)] for r in drawn.tolist()], minlength=len(p))
    possible = p > 0.0
    assert counts[~possible].sum() == 0
    if possible.sum() == 1:
        assert counts[possible] == count
    else:
        assert chisquare(counts[possible], count * p[possible] / p.sum()).pvalue > 1e-4


MIXED = [[0.3, 1.0], [2.0], [0.0, 1.0, -1.0, 0.5, 0.2], [1.0, 1.0, 0.0], [0.0, 3.0, 1.0, 2.0]]
SLOTS = [1, 1, 4, 3, 2]


@every_policy
def test_rows_of_different_sizes_are_priced_and_drawn_alone(policy: Policy) -> None:
    together = displays(MIXED, SLOTS)
    log_p = policy.log_prob(together, together.ranking)
    u = uniforms(1, 0, together.identity, 0, 1, 6)[:, 0]
    drawn = policy.sample(together, u)
    assert drawn.lengths.tolist() == SLOTS
    for i, (scores, k) in enumerate(zip(MIXED, SLOTS, strict=True)):
        alone = displays([scores], [k])
        assert policy.log_prob(alone, alone.ranking)[0] == pytest.approx(log_p[i], rel=1e-14, abs=1e-15)
        assert policy.sample(alone, u[i : i + 1])[0].tolist() == drawn[i].tolist()
        assert len(set(drawn[i].tolist())) == k
        assert set(drawn[i].tolist()) <= set(range(len(scores)))
    back = np.arange(len(MIXED))[::-1]
    assert np.array_equal(policy.sample(together.take(back), u[back]).flat(), drawn.take(back).flat())


@every_policy
def test_no_rows_give_no_answers(policy: Policy) -> None:
    none = displays(MIXED, SLOTS).take(np.empty(0, np.int64))
    assert len(policy.log_prob(none, none.ranking)) == 0
    assert len(policy.sample(none, np.empty((0, 6)))) == 0


@every_policy
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_an_error_that_names_the_row(policy: Policy, bad: float) -> None:
    rows = displays([[0.0, 1.0], [bad, 1.0], [2.0, 0.0]], [1, 1, 1])
    kind = "NaN" if np.isnan(bad) else "infinite"
    with pytest.raises(RowFault, match=rf"^column 's': a score is {kind}\. Scores must be finite") as error:
        shown_log_prob(policy, rows, is_control=False)
    assert error.value.rows.tolist() == [1]


@every_policy
def test_policies_pickle(policy: Policy) -> None:
    copy = pickle.loads(pickle.dumps(policy))
    rows = displays(MIXED, SLOTS)
    assert repr(copy) == repr(policy)
    assert copy.settings() == policy.settings()
    assert np.array_equal(copy.log_prob(rows, rows.ranking), policy.log_prob(rows, rows.ranking))


@pytest.mark.parametrize(
    ("policy", "table", "text"),
    [
        (
            PlackettLuce("s"),
            {"policy": "plackett-luce", "scores": "s", "temperature": 1.0},
            "PlackettLuce(scores='s', temperature=1.0)",
        ),
        (
            Thurstone("s", 2, prob="p"),
            {"policy": "thurstone", "scores": "s", "sigma": 2.0, "prob": "p"},
            "Thurstone(scores='s', sigma=2.0, prob='p')",
        ),
        (
            Mallows("s", 0.5, log_prob="lp"),
            {"policy": "mallows", "scores": "s", "dispersion": 0.5, "log_prob": "lp"},
            "Mallows(scores='s', dispersion=0.5, log_prob='lp')",
        ),
        (
            EpsilonGreedy("s", 0),
            {"policy": "epsilon-greedy", "scores": "s", "epsilon": 0.0},
            "EpsilonGreedy(scores='s', epsilon=0.0)",
        ),
        (TopK("s"), {"policy": "top-k", "scores": "s"}, "TopK(scores='s')"),
        (
            SwapNeighbours("s", 0.25),
            {"policy": "swap-neighbours", "scores": "s", "swap": 0.25},
            "SwapNeighbours(scores='s', swap=0.25)",
        ),
        (Logged(prob="p"), {"policy": "logged", "prob": "p"}, "Logged(prob='p')"),
    ],
)
def test_settings_make_the_policy_again(policy: Policy, table: dict[str, object], text: str) -> None:
    assert policy.settings() == table
    assert repr(policy) == text
    keys = {k: v for k, v in table.items() if k != "policy"}
    assert POLICIES[str(table["policy"])](**keys).settings() == table


def test_bradley_terry_luce_is_plackett_luce() -> None:
    assert POLICIES["bradley-terry-luce"] is PlackettLuce
    assert PlackettLuce("s").key == "plackett-luce"


class Uniform(Policy):
    def __init__(self, scores: str) -> None:
        self.scores = scores


class NoBase:
    def __init__(self, column: str, number: float) -> None:
        self.column, self.number = column, number

    def log_prob(self, rows: Displays, rankings: Ragged) -> np.ndarray:
        return np.full(len(rows), np.nan)


def test_a_users_policy_is_named_by_module_and_class() -> None:
    assert Uniform("s").settings() == {"policy": f"{__name__}:Uniform", "scores": "s"}
    assert as_policy(NoBase("a", 2.0)).settings() == {"policy": f"{__name__}:NoBase", "column": "a", "number": 2.0}
    assert as_policy(NoBase("a", 2.0)).columns == ("a",)
    with pytest.raises(NotImplementedError, match="Uniform has no log_prob"):
        Uniform("s").log_prob(displays(MIXED, SLOTS), displays(MIXED, SLOTS).ranking)
    with pytest.raises(NotImplementedError, match="Uniform has no sample"):
        Uniform("s").sample(displays(MIXED, SLOTS), np.empty((5, 6)))


def test_a_users_policy_that_answers_nan_is_named() -> None:
    with pytest.raises(RowFault, match=r"^column 'a': NoBase gives NaN as log-probability"):
        shown_log_prob(as_policy(NoBase("a", 1.0)), displays(MIXED, SLOTS), is_control=False)


def test_a_users_policy_that_gives_no_log_probabilities_is_refused() -> None:
    rows, policy = displays(MIXED, SLOTS), NoBase("a", 1.0)
    policy.log_prob = lambda rows, rankings: np.array([-1.0, 0.5, -1.0, 0.5, 0.0])  # type: ignore[method-assign]
    with pytest.raises(RowFault, match=r"NoBase gives the log-probability 0\.5, above 0") as error:
        shown_log_prob(as_policy(policy), rows, is_control=False)
    assert error.value.rows.tolist() == [1, 3]
    policy.log_prob = lambda rows, rankings: np.zeros((5, 2))  # type: ignore[method-assign]
    with pytest.raises(BadInput, match=r"NoBase\.log_prob gives an array of shape \(5, 2\) for 5 displays"):
        shown_log_prob(as_policy(policy), rows, is_control=False)


@pytest.mark.parametrize(
    "make",
    [
        lambda **logged: PlackettLuce("s", **logged),
        lambda **logged: Thurstone("s", **logged),
        lambda **logged: Mallows("s", 0.5, **logged),
        lambda **logged: EpsilonGreedy("s", 0.5, **logged),
        lambda **logged: Mixture([(1.0, PlackettLuce("s"))], **logged),
        Logged,
    ],
)
def test_what_was_logged_is_used_for_the_shown_ranking(make: type) -> None:
    p = np.array([0.5, 1.0, 0.25, 1e-300, 0.125])
    rows = displays(MIXED, SLOTS, p=p, lp=np.log(p))
    for policy in (make(prob="p"), make(log_prob="lp")):
        np.testing.assert_allclose(shown_log_prob(policy, rows, is_control=True), np.log(p), rtol=1e-15)
        assert policy.columns == (*policy.score_columns, policy._logged.name)
        copy = pickle.loads(pickle.dumps(policy))
        np.testing.assert_array_equal(shown_log_prob(copy, rows, is_control=True), np.log(p))
    with pytest.raises(BadInput, match=r"^a policy takes log_prob or prob, not both\.$"):
        make(prob="p", log_prob="lp")


@pytest.mark.parametrize(
    ("is_log", "value", "message"),
    [
        (False, np.nan, "the logged probability is NaN"),
        (True, np.nan, "the logged probability is NaN"),
        (False, -0.1, r'the probability -0\.1 is negative\. .* log_prob = "p"'),
        (False, 1.5, r"the probability 1\.5 is above 1\. "),
        (True, 0.3, r'the log-probability 0\.3 is above 0\. .* prob = "p"'),
    ],
)
def test_impossible_probabilities_are_refused(is_log: bool, value: float, message: str) -> None:
    good = -1.0 if is_log else 0.5
    rows = displays([[0.0]] * 3, [1] * 3, p=np.array([good, good, value]))
    policy = Logged(log_prob="p") if is_log else Logged(prob="p")
    with pytest.raises(RowFault, match=f"^column 'p': {message}") as error:
        shown_log_prob(policy, rows, is_control=False)
    assert error.value.rows.tolist() == [2]


@pytest.mark.parametrize("policy", [Logged(prob="p"), EpsilonGreedy("s", 0.0)], ids=["logged", "computed"])
def test_probability_zero_is_legal_for_the_treatment_only(policy: Policy) -> None:
    rows = displays([[1.0, 0.0], [0.0, 1.0]], [1, 1], p=np.array([1.0, 0.0]))
    assert shown_log_prob(policy, rows, is_control=False).tolist() == [0.0, -np.inf]
    with pytest.raises(RowFault, match="the control gives probability 0 to the ranking that was shown") as error:
        shown_log_prob(policy, rows, is_control=True)
    assert error.value.rows.tolist() == [1]
    assert error.value.column == policy.columns[0]


def test_a_column_that_was_not_read_is_named() -> None:
    with pytest.raises(BadInput, match=r"the column 'x' was not read"):
        PlackettLuce("x").log_prob(displays(MIXED, SLOTS), displays(MIXED, SLOTS).ranking)


@pytest.mark.parametrize("value", [0, -1.0, np.inf, np.nan, True, "1", None])
def test_only_numbers_above_zero_are_positive(value: object) -> None:
    with pytest.raises(BadInput, match=r"^x = .*: expected a number above 0\.$"):
        positive("x", value)  # type: ignore[arg-type]
    assert positive("x", np.float32(2)) == 2.0
