"""`check_policy` accepts right policies and says what is wrong with each wrong one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.testing import WrongPolicy, check_policy

BUILT_IN = [
    ft.PlackettLuce("s"), ft.PlackettLuce("s", 0.05, prob="p"), ft.Thurstone("s", 1.0), ft.Mallows("s", 0.5),
    ft.EpsilonGreedy("s", 0.2), ft.EpsilonGreedy("s", 0.0), ft.EpsilonGreedy("s", 1.0), ft.TopK("s"), ft.Fixed("r"),
    ft.SwapNeighbours("s", 0.1), ft.SwapNeighbours("s", 0.0), ft.SwapNeighbours("s", 0.5),
    ft.Mixture([(1, ft.PlackettLuce("s")), (2, ft.Mallows("t", 0.3))]),
    ft.Mixture([(3, ft.Fixed("r")), (1, ft.PlackettLuce("s"))]),
]  # fmt: skip
STATE = np.random.default_rng(0)


class Own:
    """Plackett-Luce by hand; subclasses break one thing."""

    def __init__(self, scores: str = "s") -> None:
        self.scores = scores

    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> Any:
        return ft.PlackettLuce(self.scores).log_prob(displays, rankings)

    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> Any:
        return ft.PlackettLuce(self.scores).sample(displays, uniforms)


class ProductOfSoftmaxes(Own):
    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> Any:
        s = displays[self.scores].padded(-np.inf)
        log_p = s - np.logaddexp.reduce(s, axis=1, keepdims=True)
        row = np.repeat(np.arange(len(rankings)), rankings.lengths)
        return np.bincount(row, log_p[row, rankings.flat()], minlength=len(rankings))


class OtherDraws(Own):
    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> Any:
        return ft.PlackettLuce(self.scores, 2.0).sample(displays, uniforms)


class NeverShown(Own):
    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> Any:
        return ft.EpsilonGreedy(self.scores, 0.0).log_prob(displays, rankings)


class OwnRandomness(Own):
    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> Any:
        return super().sample(displays, STATE.random(uniforms.shape))


class Positive(Own):
    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> Any:
        return -super().log_prob(displays, rankings)


class NotANumber(Own):
    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> Any:
        return np.where(displays.eligible > 6, np.nan, super().log_prob(displays, rankings))


class Lists(Own):
    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> Any:
        return super().log_prob(displays, rankings).tolist()


class Matrix(Own):
    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> Any:
        return super().sample(displays, uniforms).padded(-1)


class Twice(Own):
    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> Any:
        return ft.Ragged.packed(np.zeros(int(displays.slots.sum()), np.int32), displays.slots)


class Outside(Own):
    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> Any:
        drawn = super().sample(displays, uniforms)
        return ft.Ragged.packed(drawn.flat() + 1, displays.slots)


class ByBatch(Own):
    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> Any:
        return super().log_prob(displays, rankings) - 1e-4 * (len(displays) == 1)


class DrawsByBatch(Own):
    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> Any:
        return super().sample(displays, uniforms if len(displays) > 1 else 1.0 - uniforms)


class Changing(Own):
    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> Any:
        drawn = super().sample(displays, uniforms)
        uniforms[:] = 0.5
        return drawn


class Unpicklable(Own):
    def __init__(self) -> None:
        super().__init__()
        self.function = lambda: None


class Forgetful(Own):
    """Its copy has another temperature."""

    temperature = 2.0

    def __reduce__(self) -> Any:
        return Flat, (self.scores,)


class Flat(Own):
    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> Any:
        return ft.PlackettLuce(self.scores, 9.0).log_prob(displays, rankings)


class Supported(Own):
    full_support = True

    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> Any:
        return ft.EpsilonGreedy(self.scores, 0.0).log_prob(displays, rankings)


class Certain(Own):
    deterministic = True


class Marginals(Own):
    def slot_marginals(self, displays: ft.Displays) -> ft.Ragged:
        return ft.PlackettLuce(self.scores, 3.0).slot_marginals(displays)


@pytest.mark.parametrize("policy", BUILT_IN, ids=repr)
def test_built_in_policies_are_right(policy: ft.Policy) -> None:
    report = check_policy(policy)
    assert (report.displays, report.draws) == (21, 42_000)
    assert report.largest_error < 1e-9
    assert report.smallest_p_value > 1e-6 / 21


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (ProductOfSoftmaxes(), r"all 2 rankings of display 2 \(2 items, 2 shown\) sum to 0\.\d+, not 1"),
        (OtherDraws(), r"does not have the probabilities of log_prob on display \d+ .* was drawn .* expected .*p ="),
        (NeverShown(), r"sample draws the ranking \[\d.*\] of display \d+ .*, to which log_prob gives probability 0"),
        (OwnRandomness(), "gives other rankings when it is called again with the same uniforms"),
        (Positive(), r"log_prob is above 0 \(\d.*\) for the ranking \[0\] of display 1"),
        (NotANumber(), r"log_prob is NaN \(nan\) for the ranking \[0, 1\] of display 8 \(7 items, 2 shown\)"),
        (Lists(), "expected a float array with one number per display, got <class 'list'>"),
        (Matrix(), r"sample: expected an ft.Ragged of whole numbers, got ndarray"),
        (Twice(), r"sample shows an item twice: \[0, 0\] of 2 items"),
        (Outside(), r"sample shows a position outside the display's items: \[1\] of 1 items"),
        (ByBatch(), r"log_prob depends on the other displays of a batch: by 0.0001 for 1 of 21"),
        (DrawsByBatch(), "sample depends on the other displays of a batch"),
        (Changing(), "sample changes the uniforms that it is given"),
        (Unpicklable(), r"cannot be pickled \(.*\): define the class at the top of a module"),
        (Forgetful(), "a pickled copy gives other answers"),
        (Supported(), "declares full_support, and gives a ranking probability 0"),
        (Certain(), "declares that it is deterministic"),
        (Marginals(), r"slot_marginals differs by 0\.\d+ from the sum over all rankings"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_wrong_is_said(policy: Any, sentence: str) -> None:
    with pytest.raises(WrongPolicy, match=sentence) as caught:
        check_policy(policy)
    assert str(caught.value).startswith(type(policy).__name__)
    assert "\n" not in str(caught.value)


def test_an_own_policy_that_is_right() -> None:
    assert check_policy(Own()).largest_error < 1e-12


def test_a_right_policy_is_hardly_ever_refused() -> None:
    """The p-values of the draws are uniform or larger, so that a bound of 1e-6 is one: 40 seeds, 21 displays each."""
    smallest = [check_policy(Own(), seed=seed, draws=500).smallest_p_value for seed in range(40)]
    # the smallest of 40·21 p-values is below 1e-5 with probability 0.8 %
    assert min(smallest) > 1e-5


def test_rows_of_a_log() -> None:
    g = np.random.default_rng(1)
    table = pa.table({"s": [g.normal(size=m).tolist() for m in (3, 5, 40, 6)], "other": [1, 2, 3, 4]})
    assert check_policy(Own(), table, slots=3).displays == 3  # 40·39·38 rankings are too many
    assert check_policy(Own(), table).displays == 8  # with one slot and with two
    with pytest.raises(ft.BadInput, match="the table has no column 's', which is one of Own"):
        check_policy(Own(), table.drop_columns("s"))
    with pytest.raises(ft.BadInput, match="no row has at most 5,040 rankings"):
        check_policy(Own(), table.slice(2, 1), slots=3)
    with pytest.raises(ft.BadInput, match=r"no column of Own.* is a list"):
        check_policy(Own("other"), table)


def test_a_logged_policy_has_nothing_to_check() -> None:
    with pytest.raises(ft.BadInput, match="Logged only prices the ranking that was shown"):
        check_policy(ft.Logged(prob="p"))
