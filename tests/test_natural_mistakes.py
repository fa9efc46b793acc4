"""Natural mistakes on logs whose truth is known: each is caught, questioned or explained, in a sentence that names it.

None gives a verdict without a warning.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft

ROWS, M, K = 6000, 8, 3


class Log(NamedTuple):
    """Two Plackett-Luce policies that know the items' appeal in part."""

    p: np.ndarray
    t: np.ndarray
    shown: np.ndarray
    click: np.ndarray
    user: np.ndarray
    rng: np.random.Generator


def draw(rows: int = ROWS, seed: int = 0) -> Log:
    rng = np.random.default_rng(seed)
    appeal = rng.normal(size=(rows, M))
    p = 1.2 * (0.5 * appeal + 0.9 * rng.normal(size=appeal.shape))
    t = p + 0.6 * appeal + 0.3 * rng.normal(size=appeal.shape)
    shown = np.argsort(-(p + rng.gumbel(size=p.shape)), axis=1)[:, :K]
    worth = np.take_along_axis(appeal, shown, axis=1).mean(axis=1)
    click = (rng.random(rows) < 0.15 * np.exp(0.5 * worth)).astype(float)
    return Log(p, t, shown, click, rng.integers(0, rows // 3, rows), rng)


def log_prob(scores: np.ndarray, ranking: np.ndarray) -> np.ndarray:
    """Plackett-Luce, slot by slot."""
    left, total, rows = scores.copy(), np.zeros(len(scores)), np.arange(len(scores))
    for k in range(ranking.shape[1]):
        total += left[rows, ranking[:, k]] - np.log(np.exp(left).sum(axis=1))
        left[rows, ranking[:, k]] = -np.inf
    return total


def scored(log: Log, *, unit: str | None = "user", **columns: Any) -> ft.Result:
    """The test of two policies with scores; `columns` replace those of the log."""
    table: dict[str, Any] = {
        "p": log.p,
        "t": log.t,
        "ranking": log.shown,
        "click": log.click,
        "user": log.user,
        **columns,
    }
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit=unit, ranking="ranking"), control=ft.PlackettLuce("p"),
        treatment=ft.PlackettLuce("t"), estimators=["is", "cis", "point-ncis", "point-ncis-adaptive"], n_resamples=50,
    )  # fmt: skip
    return test.run(pa.table({name: pa.array(list(column)) for name, column in table.items()}))


def logged(log_p: np.ndarray, log_t: np.ndarray, click: np.ndarray) -> ft.Result:
    """The test of two policies of which only the probabilities of what was shown are known."""
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(log_prob="p"), treatment=ft.Logged(log_prob="t"),
        estimators=["cis", "ncis"], n_resamples=50,
    )  # fmt: skip
    return test.run(pa.table({"p": np.minimum(log_p, 0.0), "t": np.minimum(log_t, 0.0), "click": click}))


def verdicts(result: ft.Result) -> set[str]:
    return {estimate.verdict for estimate in result.metrics["click"].estimates.values()}


def note(result: ft.Result, beginning: str) -> str:
    """The one note that begins so, which the terminal shows too."""
    [found] = [text for text in result.notes if text.startswith(beginning)]
    assert found[:40] in " ".join(str(result).split())
    return found


def test_the_right_log_is_neither_failed_nor_questioned() -> None:
    result = scored(draw())
    assert result.audit is not None
    assert result.audit.outcome == "pass"
    assert result.health["questions"] == []
    assert result.notes == []
    assert verdicts(result) == {"positive"}


# -- logged probabilities -------------------------------------------------------------------------------------------


def swapped(log: Log) -> tuple[np.ndarray, np.ndarray]:
    return log_prob(log.t, log.shown), log_prob(log.p, log.shown)


def off_by_one_row(log: Log) -> tuple[np.ndarray, np.ndarray]:
    return log_prob(log.p, log.shown), np.roll(log_prob(log.t, log.shown), 1)


def of_the_first_slot(log: Log) -> tuple[np.ndarray, np.ndarray]:
    return log_prob(log.p, log.shown), log_prob(log.t, log.shown[:, :1])


def product_of_softmaxes(log: Log) -> tuple[np.ndarray, np.ndarray]:
    one = log.p - np.log(np.exp(log.p).sum(axis=1, keepdims=True))
    return np.take_along_axis(one, log.shown, axis=1).sum(axis=1), log_prob(log.t, log.shown)


def marginal_frequencies(log: Log) -> tuple[np.ndarray, np.ndarray]:
    codes = log.shown @ (M ** np.arange(K))
    return np.log(np.bincount(codes)[codes] / len(codes)), log_prob(log.t, log.shown)


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        (swapped, "the two columns are swapped"),
        (off_by_one_row, "a join is off by a row"),
        (of_the_first_slot, "the probability of one slot"),
        (product_of_softmaxes, "a product of softmaxes in place of Plackett-Luce"),
        (marginal_frequencies, "a marginal frequency"),
    ],
)
def test_logged_probabilities_that_cannot_be(mistake: Any, named: str) -> None:
    log = draw(20_000)
    result = logged(*mistake(log), log.click)
    assert verdicts(result) == {"insufficient"}
    assert "the propensity audit failed (possible weights)" in result.metrics["click"].estimates["ncis"].reasons[0]
    assert named in " ".join(str(result).split())


def test_a_join_off_by_one_row_is_questioned_where_weights_are_possible() -> None:
    """A treatment far from the control has small weights on the wrong rows too."""
    log = draw()
    far = log._replace(t=2.5 * (0.7 * (log.t - log.p) + log.rng.normal(size=log.t.shape)))
    log_p, log_t = log_prob(far.p, far.shown), log_prob(far.t, far.shown)
    right, wrong = logged(log_p, log_t, log.click), logged(log_p, np.roll(log_t, 1), log.click)
    assert right.health["questions"] == []
    assert wrong.health["questions"] == ["order of rows"]
    asked = note(wrong, "what the control finds likely and what the treatment finds likely")
    assert asked.endswith("is a column of probabilities off by a row, sorted otherwise, or of another display?")


def test_logarithms_to_base_ten_are_questioned() -> None:
    log = draw(20_000)
    result = logged(*(log_prob(s, log.shown) / np.log(10.0) for s in (log.p, log.t)), log.click)
    assert result.audit is not None
    assert result.audit.outcome == "warn"
    assert "logarithms of another base (log10 in place of ln)" in " ".join(str(result).split())


@pytest.mark.parametrize("kept", ["clicked only", "negatives thinned"])
def test_rows_chosen_by_reward_are_not_verified(kept: str) -> None:
    log = draw()
    rows = log.click > 0 if kept == "clicked only" else (log.click > 0) | (log.rng.random(ROWS) < 0.2)
    result = logged(log_prob(log.p, log.shown)[rows], log_prob(log.t, log.shown)[rows], log.click[rows])
    assert result.audit is not None
    if result.audit.outcome != "fail":
        assert result.audit.outcome in ("unverified", "warn")
    doubt = " ".join([*result.notes, *(f.remedy or "" for f in result.audit.findings)])
    assert "chosen by reward" in doubt or "chosen by their reward" in doubt
    if kept == "clicked only":
        asked = note(result, "every row has a reward in 'click'")
        assert asked.endswith(
            "Were rows without a reward dropped? The log needs all displays that were shown, rewarded or not: without"
            " them there is no rate to compare."
        )


# -- the treatment --------------------------------------------------------------------------------------------------


def softmax(scores: np.ndarray) -> np.ndarray:
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("how", ["another order", "another display", "sorted"])
def test_treatment_scores_of_other_items(how: str) -> None:
    log = draw()
    wrong = {
        "another order": log.rng.permuted(log.t, axis=1), "another display": np.roll(log.t, 1, axis=0),
        "sorted": -np.sort(-log.t, axis=1),
    }[how]  # fmt: skip
    result = scored(log, t=wrong)
    assert result.health["questions"] == ["order of items"]
    asked = note(result, "the treatment's scores rank the items of a display no more like the control's than chance")
    correlation = result.health["treatment"]["rank_correlation"]
    assert f"(rank correlation {correlation:.2f} over 6,000 displays)" in asked
    question = "are the scores in the order of the candidates, and of the same display?"
    assert asked.endswith("were they sorted?") if how == "sorted" else asked.endswith(question)


def test_softmax_outputs_in_place_of_scores() -> None:
    log = draw()
    result = scored(log, t=softmax(log.t))
    assert result.health["questions"] == ["not scores"]
    assert result.health["treatment"]["looks_like"] == "probabilities"
    asked = note(result, "the treatment's scores are between 0 and 1 and sum to 1 in every display")
    assert asked.endswith("A policy takes the softmax itself: give the scores before it, or the logarithms of these.")
    assert scored(log, t=np.log(softmax(log.t))).health["questions"] == []


def test_click_rates_in_place_of_scores() -> None:
    log = draw()
    result = scored(log, t=1.0 / (1.0 + np.exp(3.0 - 0.5 * log.t)))
    assert result.health["questions"] == ["not scores"]
    asked = note(result, "the treatment's scores are all between 0 and 1, like click rates")
    assert "the treatment then hardly prefers any item" in asked
    assert "Give scores on the control's scale" in asked


@pytest.mark.parametrize("best", [1, M])
def test_ranks_in_place_of_scores(best: int) -> None:
    """With ranks hardly anything of the treatment is kept: no verdict stands, and the question says why."""
    log = draw()
    ascending = np.argsort(np.argsort(log.t, axis=1), axis=1) + 1
    result = scored(log, t=(ascending if best == M else M + 1 - ascending).astype(float))
    assert result.health["questions"] == ["not scores"]
    asked = note(result, "the treatment's scores are evenly spaced in every display, like ranks")
    assert ("and 1 seems to be the best" in asked) == (best == 1)
    assert "Give the scores that the ranks come from, higher for better" in asked
    headline = result.metrics["click"]
    if best == 1:
        assert result.health["mass_kept"]["point-ncis-adaptive"] < 0.5
        assert headline.verdict == "insufficient"
        assert "the log supports only" in headline.estimates["point-ncis-adaptive"].reasons[-1]


def test_scores_on_another_scale() -> None:
    log = draw()
    large, small = scored(log, t=100.0 * log.t), scored(log, t=0.01 * log.t)
    assert large.health["questions"] == small.health["questions"] == ["another scale"]
    assert "times as far apart as the control's" in note(large, "within a display the treatment's scores are")
    assert "times closer together than the control's" in note(small, "within a display the treatment's scores are")


def test_losses_in_place_of_scores() -> None:
    log = draw()
    result = scored(log, t=-log.t)
    assert result.health["questions"] == ["reversed scores"]
    asked = note(result, "the treatment ranks the items of a display the other way round than the control")
    assert asked.endswith("Higher scores must be better: change their sign.")


def test_identical_policies() -> None:
    log = draw()
    result = scored(log, t=log.p)
    assert result.health["questions"] == ["identical policies"]
    asked = note(result, "the two policies are identical")
    assert "every weight is 1, so the uplift is 0 by construction" in asked


def test_each_treatment_has_its_own_questions() -> None:
    log = draw()
    table = {"p": log.p, "good": log.t, "bad": np.roll(log.t, 1, axis=0), "ranking": log.shown, "click": log.click}
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking"), control=ft.PlackettLuce("p"),
        treatment={"new": ft.PlackettLuce("good"), "joined": ft.PlackettLuce("bad")}, estimators=["cis"],
        n_resamples=20,
    )  # fmt: skip
    arrow = pa.table({name: pa.array(list(column)) for name, column in table.items()})
    for result in (test.run(arrow), test.check(arrow)):
        assert [t.health["questions"] for t in result.treatments] == [[], ["order of items"]]
        assert note(result, "joined: the treatment's scores rank the items of a display no more like")


# -- rewards and units ----------------------------------------------------------------------------------------------


def test_a_total_joined_to_every_display() -> None:
    log = draw()
    result = scored(log, click=np.bincount(log.user, log.click, minlength=ROWS)[log.user])
    assert result.health["questions"] == ["reward constant within units"]
    asked = note(result, "'click' is the same in all rows of a user")
    assert asked.endswith(
        "Is it a total joined to every display? A row needs what its own display earned, or the total is counted once"
        " per row."
    )


def test_a_user_column_that_is_not_the_unit() -> None:
    result = scored(draw(), unit=None)
    assert result.health["questions"] == ["unit column"]
    assert note(result, "the log has a column 'user', but [log] unit is not set").endswith('name it, unit = "user".')


# -- lake tables ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Delta Lake", "Iceberg"])
def test_the_files_of_a_lake_table_are_not_added_up(kind: str, tmp_path: Path) -> None:
    """An old version of the table beside the new one would be read as well."""
    folder = tmp_path / "table"
    meta = folder / ("_delta_log" if kind == "Delta Lake" else "metadata")
    meta.mkdir(parents=True)
    name = "00000000000000000000.json" if kind == "Delta Lake" else "v1.metadata.json"
    (meta / name).write_text(json.dumps({"format-version": 2}))
    data = folder if kind == "Delta Lake" else folder / "data"
    data.mkdir(exist_ok=True)
    for version in ("old", "new"):
        pq.write_table(pa.table({"click": [1, 0], "p": [0.5, 0.5]}), data / f"{version}.parquet")
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="p")
    )
    with pytest.raises(
        ft.BadInput, match=f"a table of {kind}, not a plain folder: some of its files may have rows that"
    ):
        test.run(f"{data}/*.parquet")
    # the folder is read as the table, of which nothing is known here
    with pytest.raises(ft.BadInput, match=f"the {kind} table cannot be read"):
        test.run(str(folder))


# -- what the control never shows -----------------------------------------------------------------------------------


def bandit(share: float, floor: float, supported: float = 1.0) -> tuple[pa.Table, np.ndarray]:
    """One slot: the control shows three of four items evenly and the last never, whose score is `floor`; the treatment
    puts `share` on it and leaves out the first where `supported`, its worth beside the others', is not 1."""
    rng = np.random.default_rng(3)
    shown = rng.integers(0, 3, ROWS)
    others = np.array([float(supported == 1.0), 1.0, 1.0])
    treatment = np.append((1.0 - share) * others / others.sum(), share)
    click = (rng.random(ROWS) < np.where(shown == 0, 0.2 * supported, 0.2)).astype(float)
    table = pa.table({
        "click": click, "ranking": shown, "p": [[0.0, 0.0, 0.0, floor]] * ROWS,
        "t": [np.log(np.maximum(treatment, 1e-300)).tolist()] * ROWS,
    })  # fmt: skip
    return table, treatment


def run_bandit(table: pa.Table) -> ft.Result:
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking"), control=ft.PlackettLuce("p"),
        treatment=ft.PlackettLuce("t"), estimators=["is", "cis", "ncis", "point-ncis", "point-ncis-adaptive"],
        n_resamples=50,
    )  # fmt: skip
    return test.run(table)


@pytest.mark.parametrize("share", [0.6, 0.9])
@pytest.mark.parametrize("supported", [1.0, 2.0])
@pytest.mark.parametrize("floor", [-700.0, -60.0])
def test_an_item_that_the_control_never_shows(share: float, supported: float, floor: float) -> None:
    """Zeros floored at e^-700: no estimator, capped or not, has a verdict."""
    result = run_bandit(bandit(share, floor, supported)[0])
    assert verdicts(result) == {"insufficient"}
    kept = result.health["mass_kept"]["is"]
    assert kept == pytest.approx(1.0 - share, abs=0.01)
    reason = f"the log supports only {100 * kept:.1f} % of what the treatment shows, and the answer is about that part"
    assert result.metrics["click"].estimates["is"].reasons[-1].startswith(reason)
    assert "never shown" in result.health["questions"]


def test_floored_zeros_that_leave_a_verdict_are_explained() -> None:
    result = run_bandit(bandit(0.3, -700.0)[0])
    assert result.metrics["click"].estimates["is"].verdict == "negative"
    [asked] = [text for text in result.notes if "of what the treatment shows has a probability of 0" in text]
    assert asked.startswith("30.0 %")
    assert result.health["questions"] == ["never shown"]
    assert "as where zeros were floored" in asked
    assert "is, dr and cis count it as worth nothing" in asked


@pytest.mark.parametrize("policies", ["logged", "scored"])
def test_floored_probabilities_of_what_was_shown_fail(policies: str) -> None:
    """A log of another policy, whose items have a floor under this control and this treatment: every weight is fine."""
    log = draw()
    log_p, log_t = log_prob(log.p, log.shown), log_prob(log.t, log.shown)
    rows = log.rng.random(ROWS) < 0.05
    if policies == "logged":
        result = logged(np.where(rows, -700.0, log_p), np.where(rows, -700.0, log_t), log.click)
    else:
        p, t = log.p.copy(), log.t.copy()
        p[rows, log.shown[rows, 0]] = t[rows, log.shown[rows, 0]] = -700.0
        result = scored(log, p=p, t=t)
    assert verdicts(result) == {"insufficient"}
    assert result.audit is not None
    finding = next(f for f in result.audit.findings if f.name == "possible weights")
    assert finding.outcome == "fail"
    assert (
        f"{rows.sum():,} of 6,000 sampled displays show a ranking whose probability under the control is"
        in finding.meaning
    )
    assert (finding.remedy or "").startswith("Zeros were probably floored (at e^-700, 1e-300 or the like)")
