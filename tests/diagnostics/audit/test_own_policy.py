"""A user's own policy that is no distribution fails the audit, as control and as treatment; a right one passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.own_policies import DOUBT, OF_POLICY, OF_PROPOSAL, SURPRISE, TOTAL, VARIANCE
from foretest.diagnostics.audit.own_policy import own_policy
from foretest.results.audit import FAIL, NOT_MADE, PASS
from tests.support import SmallLog

COLUMNS = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id")
LOG = SmallLog(rows=400)
OTHER = ft.PlackettLuce("treatment_scores")


class Own:
    """A Plackett-Luce policy whose log-probabilities, draws or both may be wrong."""

    def __init__(self, scores: str, shift: float = 0.0, drawn_at: float = 1.0, softmaxes: bool = False) -> None:
        self.scores, self.shift, self.drawn_at, self.softmaxes = scores, shift, drawn_at, softmaxes

    @property
    def score_columns(self) -> tuple[str, ...]:
        return (self.scores,)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.scores,)

    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> Any:
        if not self.softmaxes:
            return ft.PlackettLuce(self.scores).log_prob(displays, rankings) + self.shift
        s = displays[self.scores].padded(-np.inf)
        log_p = s - np.logaddexp.reduce(s, axis=1, keepdims=True)
        row = np.repeat(np.arange(len(rankings)), rankings.lengths)
        return np.bincount(row, log_p[row, rankings.flat()], minlength=len(rankings))

    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> Any:
        return ft.PlackettLuce(self.scores, self.drawn_at).sample(displays, uniforms)


def finding(result: ft.Result) -> Any:
    assert result.audit is not None
    return next((f for f in result.audit.findings if f.name == "own policy"), None)


def checked(control: Any, treatment: Any, log: SmallLog = LOG, **analysis: Any) -> ft.Result:
    test = ft.OfflineTest(log=COLUMNS, control=control, treatment=treatment, n_resamples=50, **analysis)
    return test.run(log.table())


@pytest.mark.parametrize("role", ["control", "treatment"])
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"shift": float(np.log(0.83))}, "probabilities of all rankings of a display sum to 0.83, not 1 (wrong in 16"),
        ({"softmaxes": True}, "probabilities of all rankings of a display sum to 0."),
        ({"drawn_at": 0.3}, "draws do not have its probabilities: they are more probable than its log_prob says"),
        ({"drawn_at": 4.0}, "draws do not have its probabilities: they are less probable than its log_prob says"),
    ],
)  # fmt: skip
def test_a_wrong_one_fails_and_no_verdict_stands(role: str, wrong: dict[str, Any], sentence: str) -> None:
    roles: dict[str, Any] = {"control": ft.PlackettLuce("control_scores"), "treatment": OTHER}
    roles[role] = Own(f"{role}_scores", **wrong)
    result = checked(**roles)
    found = finding(result)
    assert found.outcome == FAIL
    assert found.meaning.startswith(f"the {role}'s {sentence}")
    assert "check_policy" in found.remedy
    assert {e.verdict for e in result.metrics["click"].estimates.values()} == {"insufficient"}


def test_a_right_one_passes_and_built_in_ones_are_not_looked_at() -> None:
    found = finding(checked(Own("control_scores"), Own("treatment_scores")))
    assert found.outcome == PASS
    assert (
        found.meaning
        == "the control's probabilities sum to 1 over all rankings of 16 displays, and its draws have them"
    )
    assert finding(checked(ft.PlackettLuce("control_scores"), OTHER)) is None


def test_parts_of_mixtures_and_further_treatments() -> None:
    wrong, right = Own("treatment_scores", shift=-0.5), ft.PlackettLuce("control_scores")
    assert finding(checked(right, ft.Mixture([(1.0, wrong), (1.0, right)]))).outcome == FAIL
    result = checked(right, {"good": OTHER, "bad": wrong})
    by_name = {treatment.name: treatment for treatment in result.treatments}
    assert by_name["bad"].audit.outcome == FAIL
    assert [f for f in by_name["good"].audit.findings if f.name == "own policy"] == []


def test_saved_sums_keep_the_finding(tmp_path: Path) -> None:
    test = ft.OfflineTest(log=COLUMNS, control=ft.PlackettLuce("control_scores"),
                          treatment=Own("treatment_scores", shift=-0.3), n_resamples=50)  # fmt: skip
    table = LOG.table()
    for name, part in (("a", table.slice(0, 200)), ("b", table.slice(200))):
        test.save_aggregates(part, tmp_path / f"{name}.parquet")
    result = test.run([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")])
    assert finding(result).outcome == FAIL
    assert finding(result).meaning.endswith("(wrong in 32 of 32 displays)")


WIDE = SmallLog(rows=300, units=300, m=5, k=2)


def wide_finding(**wrong: Any) -> Any:
    """The finding on displays of 20 items of which 4 are shown: 116,280 rankings."""
    scores = {
        name: [4 * row for row in WIDE.table()[name].to_pylist()] for name in ("control_scores", "treatment_scores")
    }
    table = WIDE.table(**scores).append_column("long", [[[0, 6, 12, 18]] * WIDE.rows])
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="long", id="id")
    test = ft.OfflineTest(log=columns, control=ft.PlackettLuce("control_scores"), n_resamples=20, estimators=["cis"],
                          treatment=Own("treatment_scores", **wrong))  # fmt: skip
    return finding(test.check(table))


def test_where_rankings_are_too_many_draws_are_asked() -> None:
    right = wide_finding()
    assert right.outcome == PASS
    assert right.meaning.startswith("the treatment's probabilities sum to about ")
    assert abs(right.statistic) < 4.0


@pytest.mark.parametrize(
    "wrong",
    [{"shift": float(np.log(0.7))}, {"shift": 0.4}, {"softmaxes": True}, {"drawn_at": 0.3}, {"drawn_at": 4.0}],
    ids=str,
)  # fmt: skip
def test_a_wrong_one_is_seen_by_draws(wrong: dict[str, Any]) -> None:
    found = wide_finding(**wrong)
    assert found.outcome == FAIL
    assert found.meaning.startswith("the treatment's probabilities of all rankings of a display sum to about ")


def test_the_estimated_sum_is_the_sum() -> None:
    """e^shift, which a few thousand draws give to a few percent."""
    for shift in (-0.7, 0.7):
        about = float(wide_finding(shift=shift).meaning.partition("about ")[2].partition(",")[0])
        assert about == pytest.approx(np.exp(shift), rel=0.12)


@pytest.mark.parametrize(("mean", "variance"), [(0.001, 1e-9), (0.3, 0.2)])
def test_too_little_overlap_or_too_much_noise_says_nothing(mean: float, variance: float) -> None:
    nothing = np.full(16, np.nan)
    sample: Columns = {(name, "treatment"): nothing for name in (TOTAL, SURPRISE, VARIANCE)}
    sample |= {(name, "treatment"): np.full(16, mean) for name in (OF_PROPOSAL, OF_POLICY)}
    sample[DOUBT, "treatment"] = np.full(16, variance)
    found = own_policy(sample)
    assert found is not None
    assert found.outcome == NOT_MADE
    assert found.meaning.endswith("more than 5,000 rankings, and draws show too little of them")
