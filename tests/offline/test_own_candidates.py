"""Tests whose policies choose from lists of their own: every answer against all rankings of the union."""

from __future__ import annotations

import dataclasses
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.report.facts import offline_facts
from tests.own_lists import CONTROL, LOG, OTHER, THETA, TREATMENT, OwnLog, expected, own_test, policies
from tests.schemas import validate

KEYS = [
    "is", "point-ncis", "point-ncis-adaptive", "iips", "rips", "slot-ncis-adaptive", "cascade-ncis-adaptive", "pbm",
    "exposure-ncis-adaptive",
]  # fmt: skip
BANDED = ["point-ncis-adaptive", "slot-ncis-adaptive", "cascade-ncis-adaptive", "exposure-ncis-adaptive"]
SCHEMA = json.loads(files("foretest").joinpath("schema/result-1.json").read_text(encoding="utf-8"))
CONTROLS = policies("control_scores", "control_fixed")
TREATMENTS = policies("treatment_scores", "treatment_fixed")
EXPLORING = [name for name in CONTROLS if name not in ("top-k", "fixed")]


def run(log: OwnLog, test: ft.OfflineTest) -> ft.Result:
    return test.run(log.table())


@pytest.mark.parametrize(
    ("control", "treatment", "k"),
    [
        *(("plackett-luce", name, 2) for name in TREATMENTS),
        *((name, "plackett-luce", 2) for name in EXPLORING[1:]),
        ("plackett-luce", "plackett-luce", 1),
        ("mallows", "mixture", 3),
    ],
)
def test_every_estimator_is_that_over_all_rankings_of_the_union(control: str, treatment: str, k: int) -> None:
    log = OwnLog(CONTROLS[control], rows=24, k=k, seed=k)
    result = run(log, own_test(CONTROLS[control], TREATMENTS[treatment], estimators=KEYS))
    wanted = expected(log, CONTROLS[control], TREATMENTS[treatment], cap=3.0, bound=4.0)
    estimates, level = result.metrics["click"].estimates, log.slots.sum() / log.rows
    for key in KEYS:
        assert estimates[key].treatment == pytest.approx(wanted.values[key], rel=1e-8, abs=1e-12), key
    for key in BANDED:
        assert estimates[key].unsupported == pytest.approx(wanted.unsupported[key] / level, rel=1e-8, abs=1e-12), key
    assert wanted.outside > 0.1
    assert result.health["outside_candidates"] == pytest.approx(wanted.outside, rel=1e-8)


def test_what_the_control_could_not_show_is_unsupported_at_every_level() -> None:
    """Where no cap binds, 1 − q is the mass outside: of items by slot, of items by θ, of rankings."""
    log, control, treatment = OwnLog(CONTROLS["plackett-luce"], k=2), CONTROLS["plackett-luce"], TREATMENTS["mallows"]
    uncut = {"weight_bound": 1e12, "cap": 1e12, "normaliser": "exact"}
    result = run(log, own_test(control, treatment, **uncut, estimators=KEYS))
    kept, rows = result.health["mass_kept"], range(log.rows)
    of_slots = np.zeros((log.rows, 2))
    of_rankings = np.zeros(log.rows)
    for i in rows:
        own, (rankings, t) = set(log.lists[CONTROL][i].items), log.priced(treatment, TREATMENT, i, log.union(i))
        outside = np.array([[item not in own for item in ranking] for ranking in rankings])
        of_slots[i], of_rankings[i] = t @ outside, t @ outside.any(axis=1)
    assert 1.0 - kept["slot-ncis-adaptive"] == pytest.approx(of_slots.mean(), rel=1e-8)
    assert result.health["outside_candidates"] == pytest.approx(of_slots.mean(), rel=1e-8)
    of_exposure = (of_slots @ THETA[:2] / THETA[:2].sum()).mean()
    assert 1.0 - kept["exposure-ncis-adaptive"] == pytest.approx(of_exposure, rel=1e-8)
    assert 1.0 - result.health["support"]["mean_q"] == pytest.approx(of_rankings.mean(), rel=1e-8)
    # with caps that bind, more is cut off
    capped = run(log, own_test(control, treatment, estimators=KEYS)).health
    assert 1.0 - capped["mass_kept"]["slot-ncis-adaptive"] > of_slots.mean()
    assert 1.0 - capped["mass_kept"]["exposure-ncis-adaptive"] > of_exposure
    assert 1.0 - capped["support"]["mean_q"] > of_rankings.mean()


def test_health_says_it_in_words() -> None:
    log = OwnLog(CONTROLS["plackett-luce"])
    result = run(log, own_test(CONTROLS["plackett-luce"], TREATMENTS["plackett-luce"], estimators=KEYS))
    share = result.health["outside_candidates"]
    sentence = f"{100 * share:.1f} % of what the treatment shows comes from items that the control could not show."
    assert sum(note.startswith(sentence) for note in result.notes) == 1
    assert "outside candidates" in str(result)
    shown = next(fact.value for fact in offline_facts(result) if fact.name == "outside candidates")
    assert shown.startswith(f"{100 * share:.1f}")
    validate(json.loads(result.to_json()), SCHEMA)
    assert "never shown" not in result.health["questions"]
    checked = own_test(CONTROLS["plackett-luce"], TREATMENTS["plackett-luce"]).check(log.table())
    assert checked.health["outside_candidates"] == share
    assert any(note.startswith(sentence) for note in checked.notes)


def test_counted_where_the_treatment_knows_no_marginals() -> None:
    log = OwnLog(CONTROLS["plackett-luce"], rows=400)
    treatment = WithoutMarginals("treatment_scores")
    result = run(log, own_test(CONTROLS["plackett-luce"], treatment, estimators=["is"]))  # type: ignore[arg-type]
    exact = run(log, own_test(CONTROLS["plackett-luce"], TREATMENTS["plackett-luce"], estimators=["is"]))
    # 16 draws of 2 slots of 400 displays: a standard error of at most .5/√12 800
    assert result.health["outside_candidates"] == pytest.approx(exact.health["outside_candidates"], abs=4 * 0.0045)
    assert result.metrics["click"].estimates["is"].treatment == pytest.approx(
        exact.metrics["click"].estimates["is"].treatment, rel=1e-12
    )
    own = next(f for f in result.audit.findings if f.name == "own policy")  # type: ignore[union-attr]
    assert own.outcome == "pass"


class WithoutMarginals:
    """Plackett-Luce as a user's class might have it."""

    def __init__(self, scores: str) -> None:
        self.scores, self.score_columns, self.columns = scores, (scores,), (scores,)

    def log_prob(self, displays: Any, rankings: Any) -> Any:
        return ft.PlackettLuce(self.scores).log_prob(displays, rankings)

    def sample(self, displays: Any, uniforms: Any) -> Any:
        return ft.PlackettLuce(self.scores).sample(displays, uniforms)


def test_lists_that_are_one_give_the_digits_of_one_list() -> None:
    log = OwnLog(CONTROLS["plackett-luce"], rows=200)
    control, treatment = CONTROLS["plackett-luce"], ft.Mallows("control_scores", 0.4)
    kw: dict[str, Any] = {"examination": THETA.tolist(), "interval": "delta", "estimators": KEYS}
    columns = {"rewards": ["click"], "unit": "user", "ranking": "shown", "slot_rewards": {"click": "slot_click"}}
    one = ft.OfflineTest(
        log=ft.LogColumns(candidates=CONTROL, **columns), control=control, treatment=treatment, **kw
    ).run(log.table())  # fmt: skip
    own = ft.OfflineTest(
        log=ft.LogColumns(**columns), control=ft.OwnCandidates(control, CONTROL),
        treatment=ft.OwnCandidates(treatment, CONTROL), **kw,
    ).run(log.table())  # fmt: skip
    for key in KEYS:
        a, b = one.metrics["click"].estimates[key], own.metrics["click"].estimates[key]
        for field in ("treatment", "std_error", "rel_effect_size_ci_lower", "rel_effect_size_ci_upper", "unsupported"):
            x, y = getattr(a, field), getattr(b, field)
            assert x == y or x == pytest.approx(y, rel=1e-9), (key, field)
    assert own.health["outside_candidates"] == 0.0
    assert not any("could not show" in note for note in own.notes)
    assert own.health["treatment"] == one.health["treatment"]
    assert own.audit is not None
    assert own.audit == one.audit  # neither is drawn by the kernel of two Plackett-Luce policies


def assert_same(result: ft.Result, other: ft.Result, rel: float = 1e-12) -> None:
    for key, estimate in other.metrics["click"].estimates.items():
        ours = result.metrics["click"].estimates[key]
        assert ours.treatment == pytest.approx(estimate.treatment, rel=rel)
        assert ours.std_error == pytest.approx(estimate.std_error, rel=1e-9)
    assert result.health["outside_candidates"] == pytest.approx(other.health["outside_candidates"], rel=1e-12)


def test_each_treatment_says_what_the_control_could_not_show() -> None:
    test = ft.OfflineTest(
        log=LOG, control=ft.OwnCandidates(CONTROLS["plackett-luce"], CONTROL), estimators=["is"], n_resamples=50,
        treatment={
            "bold": ft.OwnCandidates(TREATMENTS["plackett-luce"], TREATMENT),
            "shy": ft.OwnCandidates(ft.Mallows("other_scores", 0.5), OTHER),
        },
    )  # fmt: skip
    notes = run(OwnLog(CONTROLS["plackett-luce"], rows=80), test).notes
    assert sum("items that the control could not show" in note for note in notes) == 2
    assert any(note.startswith("shy: ") for note in notes)


IDS: dict[str, tuple[Any, Any]] = {
    "int32": (lambda item: item + 1_000_000, pa.int32()),
    "uint64": (lambda item: item + 2**63, pa.uint64()),
    "text": (lambda item: f"item {item}", pa.string()),
    "large text": (lambda item: f"item {item}", pa.large_string()),
    "dictionary": (lambda item: f"item {item}", pa.dictionary(pa.int32(), pa.string())),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_of_every_type(kind: str, tmp_path: Path) -> None:
    log = OwnLog(CONTROLS["plackett-luce"])
    test = own_test(CONTROLS["plackett-luce"], TREATMENTS["fixed"], estimators=KEYS)
    pq.write_table(log.table(*IDS[kind]), tmp_path / "log.parquet")
    assert_same(test.run(tmp_path / "log.parquet"), test.run(log.table()))


def test_sums_of_other_lists_do_not_add_up(tmp_path: Path) -> None:
    table = OwnLog(CONTROLS["plackett-luce"]).table()
    pq.write_table(table.append_column("copy", table[TREATMENT]), tmp_path / "log.parquet")
    for column in (TREATMENT, "copy"):
        test = ft.OfflineTest(
            log=LOG, control=ft.OwnCandidates(CONTROLS["plackett-luce"], CONTROL), estimators=["is"],
            treatment=ft.OwnCandidates(TREATMENTS["plackett-luce"], column),
        )  # fmt: skip
        test.save_aggregates(tmp_path / "log.parquet", tmp_path / f"{column}.sums")
    with pytest.raises(ft.BadInput, match=r'was made with \[treatment\] candidates = "copy"'):
        test.run([tmp_path / f"{TREATMENT}.sums", tmp_path / "copy.sums"])


def test_a_control_that_always_shows_the_same() -> None:
    """Exposure is that of the places shown; items outside its list have none."""
    log = OwnLog(CONTROLS["top-k"])
    log.shown[5] = log.shown[5][::-1]
    keys = ["pbm", "exposure-ncis-adaptive"]
    result = run(log, own_test(CONTROLS["top-k"], TREATMENTS["plackett-luce"], estimators=keys))
    value = 0.0
    for i in range(log.rows):
        union = log.union(i)
        rankings, t = log.priced(TREATMENTS["plackett-luce"], TREATMENT, i, union)
        shows = np.array([[[item == other for other in union] for item in ranking] for ranking in rankings], float)
        e_t = np.einsum("k,a,aki->i", THETA[:2], t, shows)
        value += sum(e_t[union.index(x)] / THETA[k] * log.slots[i, k] for k, x in enumerate(log.shown[i])) / log.rows
    assert result.metrics["click"].estimates["pbm"].treatment == pytest.approx(value, rel=1e-8)
    assert result.audit is not None
    served = next(f for f in result.audit.findings if f.name == "as served")
    assert served.statistic == pytest.approx(1 / 60)


def test_what_the_log_says_of_slots_is_of_the_control_alone() -> None:
    """The fitted curve and the tests of the model behind it, whatever list the treatment has."""
    control, fitted = CONTROLS["plackett-luce"], {"examination": "fit", "interval": "delta", "estimators": KEYS}
    log = OwnLog(control, rows=600, seed=3)
    log.user = np.arange(log.rows)
    one = ft.OfflineTest(
        log=dataclasses.replace(LOG, candidates=CONTROL), control=control, treatment=ft.Mallows("control_scores", 0.4),
        **fitted,
    ).run(log.table()).metrics["click"]  # fmt: skip
    own = run(log, own_test(control, TREATMENTS["plackett-luce"], **fitted)).metrics["click"]
    assert one.slot_model is not None
    assert one.slot_model.company.z is not None
    assert own.slot_model == one.slot_model
    assert own.examination == one.examination
    assert own.examination is not None


def test_one_id_a_row() -> None:
    log = OwnLog(CONTROLS["plackett-luce"], k=1)
    table, test = log.table(), own_test(CONTROLS["plackett-luce"], TREATMENTS["plackett-luce"], estimators=KEYS)
    plain = table.set_column(table.schema.get_field_index("shown"), "shown", pa.array([int(a) for [a] in log.shown]))
    assert_same(test.run(plain), test.run(table))
