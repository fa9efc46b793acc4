"""Logged slots as a control: the answers of the policy whose probabilities they are, and what is said to be unknown."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from tests.schemas import validate
from tests.support import SCORES, SmallLog, build_test
from tests.weights.test_slot_marginals import Plain

LOG = SmallLog(rows=300, units=90, seed=7)
KEYS = ["iips", "slot-ncis-adaptive"]
COLUMNS = build_test(KEYS).settings.log


def table(log: SmallLog = LOG) -> pa.Table:
    """The log with the control's slot probabilities, summed over all rankings."""
    marginals, at, shown = log.marginals(log.log_p), np.arange(log.rows), log.rankings[log.shown]
    probs = np.stack([marginals[at, k, shown[:, k]] for k in range(log.k)], axis=1)
    return log.table(
        probs=pa.array(probs.tolist()), matrix=pa.array(marginals.reshape(log.rows, -1).tolist()),
        group=pa.array((log.unit % 2).tolist()),
    )  # fmt: skip


def build(control: Any, keys: Any = KEYS, treatment: Any = SCORES["treatment"], **more: Any) -> ft.OfflineTest:
    settings = {"weight_bound": 3.0, "n_resamples": 50, **more}
    return ft.OfflineTest(log=COLUMNS, control=control, treatment=treatment, estimators=keys, **settings)


MATRIX, PROBS = ft.LoggedSlots(matrix="matrix"), ft.LoggedSlots(probs="probs")


@pytest.mark.parametrize("bound", [3.0, "auto"])
def test_the_matrix_gives_the_answers_of_the_policy(bound: Any) -> None:
    exact = build(SCORES["control"], weight_bound=bound).run(table()).metrics["click"].estimates
    logged = build(MATRIX, weight_bound=bound).run(table()).metrics["click"].estimates
    for key in KEYS:
        for name in ("treatment", "std_error", "effect_size_ci_lower", "effect_size_ci_upper", "effective_positives"):
            assert getattr(logged[key], name) == pytest.approx(getattr(exact[key], name), rel=1e-6), (key, name)
        assert logged[key].verdict == exact[key].verdict
        assert logged[key].unsupported_rows == exact[key].unsupported_rows


def test_values_are_those_of_all_rankings_enumerated() -> None:
    estimates = build(MATRIX).run(table()).metrics["click"].estimates
    for key in KEYS:
        h = LOG.weights(key, 2.0, 3.0)
        assert estimates[key].treatment == pytest.approx((h * LOG.click).mean(), rel=1e-7)
    alone = build(PROBS, ["iips"]).run(table()).metrics["click"].estimates["iips"]
    assert alone.treatment == pytest.approx(estimates["iips"].treatment, rel=1e-12)


def test_normalised_slot_by_slot() -> None:
    """Σ_k Σ_i w_ik r_ik/Σ_i w_ik from what was logged of the shown items alone, also in parts that are added up."""
    w, earned = LOG.slot_weights("niips", 3.0), LOG.shares["click"] * LOG.click[:, None]
    expected = ((w * earned).sum(axis=0) / w.sum(axis=0)).sum()
    for control in (MATRIX, PROBS):
        found = build(control, ["niips"]).run(table(), batch_rows=37).metrics["click"].estimates["niips"]
        assert found.treatment == pytest.approx(expected, rel=1e-7)


def test_a_fixed_treatment_is_weighed_by_what_was_logged() -> None:
    """w_k = 1{a_k = t_k}/P_p(a_k in k)."""
    best = np.argsort(-LOG.treatment, axis=1, kind="stable")[:, : LOG.k]
    data = table().append_column("best", pa.array(best.tolist()))
    probs = np.array(data["probs"].to_pylist())
    expected = ((LOG.rankings[LOG.shown] == best) / probs * LOG.shares["click"] * LOG.click[:, None]).sum(axis=1).mean()
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking", slot_rewards={"click": "slot_click"}), control=PROBS,
        treatment=ft.Fixed("best"), estimators=["iips"],
    )  # fmt: skip
    assert test.run(data).metrics["click"].estimates["iips"].treatment == pytest.approx(expected, rel=1e-10)


def test_what_cannot_run_is_left_out_with_a_note() -> None:
    whole = build(MATRIX, None).run(table())
    assert list(whole.metrics["click"].estimates) == [
        "iips", "niips", "slot-ncis-adaptive", "pbm", "exposure-ncis-adaptive",
    ]  # fmt: skip
    assert sum("estimators that weight whole rankings were left out" in note for note in whole.notes) == 1
    shown = build(PROBS, None).run(table())
    assert list(shown.metrics["click"].estimates) == ["iips", "niips"]
    [note] = [note for note in shown.notes if note.startswith("slot-ncis-adaptive was left out")]
    assert note.endswith(
        "the control says how likely the shown items were, and it needs how likely every item was in every slot: log"
        ' the whole matrix, as in matrix = "column".'
    )


@pytest.mark.parametrize("key", ["is", "ncis", "point-ncis-adaptive", "rips"])
def test_what_cannot_run_and_is_listed_is_refused(key: str) -> None:
    with pytest.raises(ft.BadInput) as error:
        build(MATRIX, [key, "iips"]).run(table())
    assert str(error.value) == (
        f"{key} cannot run: the control is known slot by slot (logged-slots), and it needs the probability of the whole"
        " ranking. With these settings these can: iips, niips, slot-ncis-adaptive, pbm,"
        " exposure-ncis-adaptive."
    )


def test_without_slot_rewards_nothing_can_run() -> None:
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking"), control=MATRIX, treatment=SCORES["treatment"]
    )
    with pytest.raises(ft.BadInput, match=r"^no estimator can run: estimators that weight .* estimators by slot were"):
        test.run(table())


@pytest.mark.parametrize("control", [MATRIX, PROBS], ids=["matrix", "probs"])
def test_audit_and_health_say_what_is_not_known(control: ft.Policy) -> None:
    result = build(control, ["iips"]).run(table())
    assert result.audit.outcome == "unverified"
    made = {finding.name for finding in result.audit.findings if finding.outcome != "not made"}
    assert made == {"repeated rows"}
    assert result.weights is None
    assert result.metrics["click"].cap_path is None
    assert result.metrics["click"].estimates["iips"].lower_bound is None
    for name in ("effective_sample_size", "max_weight", "capped_share", "treatment_mass_kept", "control_deterministic"):
        assert result.health[name] is None
    assert result.health["effective_positives"] == {"click": None}
    assert result.health["treatment"]["entropy_control"] is None
    assert not result.health["treatment"]["identical"]
    checked = build(control, None).check(table())
    assert checked.audit.outcome == "unverified"


def test_it_is_shown_everywhere(tmp_path: Path) -> None:
    """The table, Markdown, JSON and the page."""
    result = build(MATRIX).run(table())
    assert "rankings have no known weight" in str(result)
    assert "slot-ncis-adaptive" in result.to_markdown()
    result.to_html(tmp_path / "page.html")
    assert "treatment mass kept" not in (tmp_path / "page.html").read_text(encoding="utf-8")
    schema = files("foretest") / "schema" / "result-1.json"
    document = json.loads(result.to_json())
    validate(document, json.loads(schema.read_text(encoding="utf-8")))
    assert document["settings"]["control"] == {"policy": "logged-slots", "matrix": "matrix"}


def test_segments_and_another_treatment_change_nothing() -> None:
    whole = build(MATRIX).run(table())
    both = {"one": SCORES["treatment"], "other": ft.TopK("treatment_scores")}
    beside = build(MATRIX, treatment=both).run(table())
    columns = ft.LogColumns(
        rewards=["click"], unit="user", ranking="ranking", id="id", slot_rewards={"click": "slot_click"},
        segments=["group"],
    )  # fmt: skip
    segmented = ft.OfflineTest(
        log=columns, control=MATRIX, treatment=SCORES["treatment"], estimators=KEYS, weight_bound=3.0, n_resamples=50
    ).run(table())
    assert {segment.value for segment in segmented.segments} == {"0", "1"}
    for result in (beside, segmented):
        for key in KEYS:
            one, other = (r.metrics["click"].estimates[key] for r in (whole, result))
            assert other.effect_size_ci_upper == pytest.approx(one.effect_size_ci_upper, abs=1e-12)
            assert other.treatment == pytest.approx(one.treatment, rel=1e-10)


def test_saved_sums_of_the_shown_items_leave_out_what_they_must(tmp_path: Path) -> None:
    test = build(PROBS, None)
    test.save_aggregates(table(), tmp_path / "sums.parquet")
    again = ft.OfflineTest.from_aggregates(tmp_path / "sums.parquet").run(tmp_path / "sums.parquet")
    assert list(again.metrics["click"].estimates) == ["iips", "niips"]


def test_a_treatment_that_does_not_know_its_slots_is_drawn_from() -> None:
    """Within the noise of 1 024 draws for each rewarded row."""
    own = Plain(SCORES["treatment"])
    own.columns = ("treatment_scores",)
    exact = build(MATRIX).run(table()).metrics["click"].estimates["slot-ncis-adaptive"].treatment
    result = build(MATRIX, treatment=own).run(table())
    drawn = result.metrics["click"].estimates["slot-ncis-adaptive"].treatment
    assert drawn == pytest.approx(exact, rel=0.03)
    assert drawn != exact
    assert [note for note in result.notes if "counted over 1,024 draws" in note and "treatment" in note]
    assert not [note for note in result.notes if "the control cannot say" in note]


def test_settings_and_columns() -> None:
    assert MATRIX.settings() == {"policy": "logged-slots", "matrix": "matrix"}
    assert repr(PROBS) == "LoggedSlots(probs='probs')"
    assert (MATRIX.columns, MATRIX.slot_columns, MATRIX.score_columns) == (("matrix",), ("matrix",), ())
    assert (MATRIX.knows_all_slots, PROBS.knows_all_slots) == (True, False)
    rows = ft.Displays({}, ft.Ragged.of([[0]]), np.array([2]), np.zeros(1, np.uint64))
    with pytest.raises(ft.BadInput, match="do not say how likely a whole ranking is"):
        MATRIX.log_prob(rows, rows.ranking)
    with pytest.raises(ft.BadInput, match="do not say how likely another item is in a slot"):
        PROBS.slot_marginals(rows)


@pytest.mark.parametrize("given", [{}, {"probs": "a", "matrix": "b"}])
def test_one_of_two_columns(given: dict[str, str]) -> None:
    with pytest.raises(ft.BadInput, match=r'^the policy "logged-slots" needs probs = "column" or matrix = "column"'):
        ft.LoggedSlots(**given)


def test_it_is_for_a_single_control_alone() -> None:
    single = "cannot be logged-slots, which does not say how likely a whole ranking is: it is for a single"
    with pytest.raises(ft.BadInput, match=f"^the treatment {single}"):
        build(SCORES["control"], treatment=MATRIX)
    with pytest.raises(ft.BadInput, match=f"^the treatment 'b' {single}"):
        build(SCORES["control"], treatment={"a": SCORES["treatment"], "b": PROBS})
    with pytest.raises(ft.BadInput, match=f"^a component of a mixture {single}"):
        ft.Mixture([(1, SCORES["control"]), (1, MATRIX)])
    log = ft.LogColumns(rewards=["click"], ranking="ranking", logger="who")
    with pytest.raises(ft.BadInput, match=f"^the logger 'b', one of several, {single}"):
        ft.OfflineTest(
            log=log, control={"a": SCORES["control"], "b": MATRIX}, treatment=SCORES["treatment"], baseline="a"
        )


@pytest.mark.parametrize("keys", [KEYS, None])
def test_plan_says_what_it_needs(keys: Any) -> None:
    with pytest.raises(ft.BadInput, match=r"^foretest plan starts from whole rankings"):
        ft.plan_log(build(MATRIX, keys), table())


def test_an_automatic_cap_has_nothing_to_choose_from() -> None:
    """No ranking has a known weight: the cap plays no part, and estimates are those of any other."""
    plain, automatic = (build(MATRIX, cap=cap).run(table()) for cap in (100.0, "auto"))
    for key in KEYS:
        one, other = (r.metrics["click"].estimates[key].treatment for r in (plain, automatic))
        assert one == pytest.approx(other, rel=1e-12)
