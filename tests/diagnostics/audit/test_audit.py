"""The whole audit, on right logs and on logs broken on purpose; what becomes of its outcome."""

from __future__ import annotations

import json
from functools import reduce
from importlib.resources import files
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest import cli
from foretest.diagnostics.audit import Audit, Finding, audit
from foretest.terminal.result import render
from tests.schemas import validate

ROWS, M, K = 6000, 6, 2
TESTS = [
    "exploration", "logged probabilities", "log-likelihood", "rank among draws", "items by slot", "capped moment",
    "balance", "knows the draw", "possible weights", "repeated rows",
]  # fmt: skip


def right_columns(seed: int = 1, temperature: float = 1.0) -> dict[str, Any]:
    """A log drawn from its control by Gumbel noise: 6 items, 2 shown, four features, 25 item ids."""
    rng = np.random.default_rng(seed)
    control = rng.normal(size=(ROWS, M))
    shown = np.argsort(-(control / temperature + rng.gumbel(size=(ROWS, M))), axis=1)[:, :K]
    odds = np.exp(control / temperature)
    first, second = np.take_along_axis(odds, shown, axis=1).T
    ids = np.argsort(rng.random((ROWS, 25)), axis=1)[:, :M]
    return {
        "click": rng.random(ROWS) < 0.2,
        "user": np.arange(ROWS) // 2,
        "id": np.arange(ROWS),
        "country": rng.choice(["fr", "de", "it"], ROWS),
        "recency": rng.exponential(size=ROWS),
        "items": ids,
        "positions": shown,
        "ranking": shown,
        "control_scores": control,
        "treatment_scores": control + 0.7 * rng.normal(size=(ROWS, M)),
        "p": first / odds.sum(axis=1) * second / (odds.sum(axis=1) - first),
    }


def as_table(columns: dict[str, Any]) -> pa.Table:
    return pa.table({k: v.tolist() if getattr(v, "ndim", 1) == 2 else v for k, v in columns.items()})


def build(
    control: Any = None, treatment: Any = None, *, ids: bool = True, log: dict[str, Any] | None = None, **analysis: Any
) -> ft.OfflineTest:
    columns = {"rewards": ["click"], "unit": "user", "id": "id", "features": ["country", "recency"], **(log or {})}
    columns |= {"ranking": "ranking", **({"candidates": "items"} if ids else {})}
    return ft.OfflineTest(
        log=ft.LogColumns(**columns),
        control=control or ft.PlackettLuce("control_scores", prob="p"),
        treatment=treatment or ft.PlackettLuce("treatment_scores", 1.0),
        **{"cap": 20.0, "estimators": ["ncis"], **analysis},
    )


def with_ids(columns: dict[str, Any]) -> pa.Table:
    shown = np.take_along_axis(columns["items"], columns["positions"], axis=1)
    return as_table({**columns, "ranking": shown})


@pytest.fixture(scope="module")
def right() -> dict[str, Any]:
    return right_columns()


def findings_of(test: ft.OfflineTest, table: pa.Table) -> dict[str, Finding]:
    answer = test.check(table).audit
    assert answer is not None
    return {finding.name: finding for finding in answer.findings}


def outcomes(findings: dict[str, Finding]) -> dict[str, str]:
    return {name: finding.outcome for name, finding in findings.items()}


def test_a_right_log_passes_every_test(right: dict[str, Any]) -> None:
    for ids, table in ((True, with_ids(right)), (False, as_table(right))):
        findings = findings_of(build(ids=ids), table)
        assert list(findings) == TESTS
        assert set(outcomes(findings).values()) == {"pass"}


# -- broken on purpose ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stated", "word"), [(0.85, "too low"), (1.15, "too high")])
def test_a_wrong_temperature(right: dict[str, Any], stated: float, word: str) -> None:
    findings = findings_of(build(ft.PlackettLuce("control_scores", stated), ids=False), as_table(right))
    assert findings["log-likelihood"].outcome == "fail"
    assert word in (findings["log-likelihood"].remedy or "")
    assert findings["rank among draws"].outcome == "fail"
    assert findings["logged probabilities"].outcome == "not made"


def test_a_logged_probability_of_another_number_of_slots(right: dict[str, Any]) -> None:
    odds = np.exp(right["control_scores"])
    first = odds[np.arange(ROWS), right["positions"][:, 0]] / odds.sum(axis=1)
    findings = findings_of(build(), with_ids({**right, "p": first}))
    assert findings["logged probabilities"].outcome == "fail"
    assert "100.00%" in findings["logged probabilities"].meaning
    # the scores are right, and the tests that use them say so
    assert findings["log-likelihood"].outcome == findings["rank among draws"].outcome == "pass"


def test_scores_of_other_displays(right: dict[str, Any]) -> None:
    scores = np.roll(right["control_scores"], 1, axis=0)
    findings = findings_of(build(ft.PlackettLuce("control_scores")), with_ids({**right, "control_scores": scores}))
    assert findings["log-likelihood"].outcome == findings["rank among draws"].outcome == "fail"


def test_probabilities_that_are_right_on_average_only(right: dict[str, Any]) -> None:
    """Half the log is colder, half is warmer than stated: the mean is right, the places among draws are not."""
    cold, warm = right_columns(3, 0.5), right_columns(4, 2.0)
    half = {name: np.concatenate([cold[name][: ROWS // 2], warm[name][ROWS // 2 :]]) for name in cold}
    findings = findings_of(build(ft.PlackettLuce("control_scores"), ids=False), as_table(half))
    assert findings["log-likelihood"].outcome == "pass"
    assert findings["rank among draws"].outcome == "fail"


def test_an_item_that_is_not_shown_after_all(right: dict[str, Any]) -> None:
    """Item 7 is replaced, where it would be shown, by an eligible item that is not shown."""
    items, shown = right["items"], right["positions"].copy()
    rng = np.random.default_rng(5)
    for i, slot in np.argwhere(np.take_along_axis(items, shown, axis=1) == 7):
        if rng.random() < 0.6:
            shown[i, slot] = next(j for j in range(M) if j not in shown[i] and items[i, j] != 7)
    findings = findings_of(build(ft.PlackettLuce("control_scores")), with_ids({**right, "positions": shown}))
    assert findings["items by slot"].outcome == "fail"
    assert "the item 7 was shown" in findings["items by slot"].meaning


def test_ids_that_are_texts_are_counted_too(right: dict[str, Any]) -> None:
    table = with_ids(right)
    for name in ("items", "ranking"):
        texts = [[f"item-{i}" for i in row] for row in table[name].to_pylist()]
        table = table.set_column(table.column_names.index(name), name, [texts])
    assert findings_of(build(), table)["items by slot"].outcome == "pass"


def test_weights_with_the_wrong_mean(right: dict[str, Any]) -> None:
    """The treatment's scores and what was shown go together in a way that the control does not know."""
    treatment = right["treatment_scores"].copy()
    np.put_along_axis(treatment, right["positions"], np.take_along_axis(treatment, right["positions"], 1) + 0.2, 1)
    findings = findings_of(build(), with_ids({**right, "treatment_scores": treatment}))
    assert findings["capped moment"].outcome == "fail"
    assert "too large" in findings["capped moment"].meaning
    assert findings["log-likelihood"].outcome == "pass"


def test_a_country_served_by_another_policy(right: dict[str, Any]) -> None:
    """In Italy the treatment was live already."""
    rng = np.random.default_rng(6)
    live = np.argsort(-(right["treatment_scores"] + rng.gumbel(size=(ROWS, M))), axis=1)[:, :K]
    shown = np.where((right["country"] == "it")[:, None], live, right["positions"])
    findings = findings_of(build(ft.PlackettLuce("control_scores")), with_ids({**right, "positions": shown}))
    assert findings["balance"].outcome == "fail"
    assert "country = 'it'" in findings["balance"].meaning


def test_repeated_rows(right: dict[str, Any]) -> None:
    table = with_ids(right)
    twice = pa.concat_tables([table, table.slice(0, 200)])
    finding = findings_of(build(), twice)["repeated rows"]
    assert finding.outcome == "fail"
    assert finding.statistic == pytest.approx(200 / 6200)
    assert findings_of(build(log={"id": None}), twice)["repeated rows"].outcome == "warn"
    alone = findings_of(build(log={"id": None, "unit": None}), twice)["repeated rows"]
    assert alone.outcome == "fail"
    assert alone.statistic == pytest.approx(200 / 6200)
    assert findings_of(build(log={"id": None, "unit": None}), table)["repeated rows"].outcome == "pass"


def test_a_deterministic_control_is_told_what_to_log(right: dict[str, Any]) -> None:
    best = np.argsort(-right["control_scores"], axis=1, kind="stable")[:, :K]
    columns = {**right, "positions": best, "p": np.ones(ROWS)}
    for control in (ft.EpsilonGreedy("control_scores", epsilon=0.0), ft.PlackettLuce("control_scores", prob="p")):
        findings = findings_of(build(control), with_ids(columns))
        assert findings["exploration"].outcome == "fail"
        assert "deterministic" in findings["exploration"].meaning
        assert "epsilon-greedy" in (findings["exploration"].remedy or "")
        for name in ("log-likelihood", "rank among draws", "items by slot", "capped moment", "balance"):
            assert findings[name].outcome == "not made"
            assert findings[name].meaning == "not made: the control is deterministic"
    support = build(ft.EpsilonGreedy("control_scores", epsilon=0.0)).check(with_ids(columns)).health["support"]
    assert support["share_deterministic"] == 1.0


# -- what cannot be tested --------------------------------------------------------------------------------------------


def test_a_logged_control_gets_the_tests_that_need_no_draws(right: dict[str, Any]) -> None:
    findings = findings_of(build(ft.Logged(prob="p")), with_ids(right))
    assert outcomes(findings) == {
        **dict.fromkeys(TESTS, "not made"), "exploration": "pass", "possible weights": "pass", "repeated rows": "pass",
    }  # fmt: skip
    for name in ("log-likelihood", "rank among draws", "items by slot", "capped moment", "balance"):
        assert "the control is a logged policy" in findings[name].meaning
    assert "no scores" in findings["logged probabilities"].meaning
    without = findings_of(build(ft.Logged(prob="p"), log={"id": None}), with_ids(right))
    assert without["repeated rows"].outcome == "not made"


def test_a_logged_treatment_leaves_the_tests_of_the_control(right: dict[str, Any]) -> None:
    findings = findings_of(build(treatment=ft.Logged(prob="p")), with_ids(right))
    made = {name for name, outcome in outcomes(findings).items() if outcome == "pass"}
    assert made == set(TESTS) - {"capped moment", "balance", "knows the draw"}
    assert "the treatment is a logged policy" in findings["balance"].meaning


def test_short_and_empty_logs_say_so(right: dict[str, Any]) -> None:
    table = with_ids(right)
    assert "too few" in findings_of(build(), table.slice(0, 60))["log-likelihood"].meaning
    empty = build().run(table.slice(0, 0)).audit
    assert empty is not None
    assert empty.outcome == "unverified"
    assert "too few" in findings_of(build(log={"features": []}), table.slice(0, 60))["rank among draws"].meaning
    assert "name no context features" in findings_of(build(log={"features": []}), table)["balance"].meaning


def test_what_is_not_verified_for_want_of_rows_asks_for_no_scores(right: dict[str, Any]) -> None:
    """Other tests may be left out for reasons of their own; a log without scores is asked for them, short or not."""
    table = with_ids(right).slice(0, 60)
    [note] = [note for note in build(ft.PlackettLuce("control_scores")).run(table).notes if "not verified" in note]
    assert "too few rows" in note
    assert "Log the scores" not in note
    logged = build(control=ft.Logged(prob="p"), treatment=ft.Logged(prob="p"), estimators=["ncis"])
    result = logged.run(table)
    [note] = [note for note in result.notes if "not verified" in note]
    assert "Log the scores" in note
    assert set(result.to_dict()["audit"]) == {"outcome", "findings", "ignored"}


# -- parts, verdicts, pages -------------------------------------------------------------------------------------------


def test_parts_of_a_log_join(right: dict[str, Any]) -> None:
    test, table = build(), with_ids(right)
    whole, _, _ = test.aggregate(table)
    parts = [test.aggregate(table.slice(a, 1700))[0] for a in range(0, ROWS, 1700)]
    joined = audit(reduce(add, parts[::-1]))
    for left, other in zip(audit(whole).findings, joined.findings, strict=True):
        assert (left.name, left.outcome, left.meaning) == (other.name, other.outcome, other.meaning)
        assert (left.p_value is None) == (other.p_value is None)
        if left.p_value is not None:
            assert left.p_value == pytest.approx(other.p_value, rel=1e-9)


def test_rows_that_are_equal_by_chance_are_no_fault() -> None:
    """Two contexts, and neither unit nor id: equal rows have draws of their own, or all would err together."""
    rng = np.random.default_rng(11)
    scores = np.array([[0.0, 1.0, -1.0], [0.5, 0.0, 2.0]])[rng.integers(0, 2, ROWS)]
    shown = np.argsort(-(scores + rng.gumbel(size=scores.shape)), axis=1)[:, :1]
    table = as_table({
        "click": rng.random(ROWS) < 0.2, "ranking": shown, "control_scores": scores,
        "treatment_scores": scores[:, ::-1].copy(),
    })  # fmt: skip
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking"),
        control=ft.PlackettLuce("control_scores"), treatment=ft.PlackettLuce("treatment_scores"),
        estimators=["ncis"], cap=10.0,
    )  # fmt: skip
    by_test = outcomes(findings_of(test, table))
    unmade = {"logged probabilities", "balance", "repeated rows"}
    assert by_test == {name: "not made" if name in unmade else "pass" for name in TESTS}


WRONG = ft.PlackettLuce("control_scores", 1.5)


def test_a_failed_audit_leaves_no_verdict(right: dict[str, Any]) -> None:
    table = as_table(right)
    good = build(ft.PlackettLuce("control_scores"), ids=False).run(table).metrics["click"]
    assert good.verdict != "insufficient"
    result = build(WRONG, ids=False).run(table)
    estimate = result.metrics["click"].estimates["ncis"]
    assert result.metrics["click"].verdict == estimate.verdict == "insufficient"
    assert estimate.reasons[0].startswith("the propensity audit failed (log-likelihood")
    assert estimate.effect_size is not None
    ignored = build(WRONG, ids=False, ignore_audit=True).run(table)
    assert ignored.metrics["click"].verdict != "insufficient"
    assert ignored.metrics["click"].estimates["ncis"].effect_size == estimate.effect_size
    assert ignored.audit is not None
    assert ignored.audit.ignored
    assert any("ignore_audit = true" in note for note in ignored.notes)
    assert not build(ignore_audit=True).run(with_ids(right)).notes


def test_the_document_is_valid_and_says_all(right: dict[str, Any]) -> None:
    schema = json.loads((files("foretest") / "schema" / "result-1.json").read_text())
    for test, table in ((build(), with_ids(right)), (build(WRONG, ids=False), as_table(right))):
        document = test.run(table).to_dict()
        validate(document, schema)
        assert [finding["name"] for finding in document["audit"]["findings"]] == TESTS
        assert set(document["audit"]["findings"][0]) == {
            "name", "outcome", "p_value", "statistic", "meaning", "remedy",
        }  # fmt: skip


def test_the_terminal_is_calm_when_all_is_well(right: dict[str, Any]) -> None:
    """A line a test with its p-value; of what failed, what was found and what to do."""
    result = build().run(with_ids(right))
    assert result.audit is not None
    good = render(result)
    [line] = [line for line in good.splitlines() if "audit" in line]
    assert line.split()[:3] == ["propensity", "audit", "passed"]
    for finding in result.audit.findings:
        [line] = [line for line in good.splitlines() if f"  {finding.name} " in line]
        assert line.startswith("pass")
        assert ("; p = " in line) == (finding.p_value is not None)
    bad = render(build(WRONG, ids=False).run(as_table(right)))
    assert "FAILED" in bad
    assert "perhaps too high" in " ".join(bad.split())
    assert "Look for rules after the ranking" in " ".join(bad.split())
    checked = render(build(WRONG, ids=False).check(as_table(right)))
    for name in TESTS:
        assert name in checked


SETTINGS = """
[log]
rewards = ["click"]
unit = "user"
id = "id"
ranking = "ranking"
[control]
policy = "plackett-luce"
scores = "control_scores"
temperature = {temperature}
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
temperature = 1.0
[analysis]
estimators = ["ncis"]
"""


@pytest.fixture
def folder(tmp_path: Path, right: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(as_table(right), tmp_path / "log.parquet")
    for name, temperature in (("good", 1.0), ("bad", 1.5)):
        (tmp_path / f"{name}.toml").write_text(SETTINGS.format(temperature=temperature))
    return tmp_path


def exit_code(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["foretest", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.mark.parametrize("command", ["check", "run"])
def test_fail_on_audit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    for name, code in (("good", 0), ("bad", 3)):
        assert exit_code(monkeypatch, command, "log.parquet", "-c", f"{name}.toml", "--fail-on", "audit") == code
        assert exit_code(monkeypatch, command, "log.parquet", "-c", f"{name}.toml") == 0
    capsys.readouterr()
    words = (command, "log.parquet", "-c", "bad.toml", "--json", "--fail-on", "audit", "--ignore-audit")
    assert exit_code(monkeypatch, *words) == 3  # the audit fails, ignored or not
    document = json.loads(capsys.readouterr().out)
    assert document["audit"]["outcome"] == "fail"
    assert document["audit"]["ignored"]
    assert exit_code(monkeypatch, command, "log.parquet", "-c", "bad.toml", "--fail-on", "audits") == 2
    assert "Did you mean 'audit'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        (("good.toml",), "Every row is readable, and the columns fit the settings."),
        (("bad.toml",), "Every row is readable, but the propensity audit FAILED: do not use results until it passes."),
        (
            ("bad.toml", "--ignore-audit"),
            "Every row is readable, but the propensity audit FAILED: ignore_audit = true lets verdicts stand.",
        ),
    ],
    ids=["passed", "failed", "ignored"],
)
def test_check_ends_with_no_all_clear_after_a_failed_audit(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    ends: str,
) -> None:
    assert exit_code(monkeypatch, "check", "log.parquet", "-c", *options) == 0
    assert capsys.readouterr().out.endswith(f"\n\n{ends}\n")


def test_check_has_no_verdicts_to_fail_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(monkeypatch, "check", "log.parquet", "-c", "good.toml", "--fail-on", "negative") == 2
    assert "Known: audit, unverified." in capsys.readouterr().err


def test_the_worst_finding_is_the_outcome() -> None:
    def finding(outcome: str) -> Finding:
        return Finding("x", outcome, None, None, "", None)

    for outcomes_, whole in (
        (["pass", "warn", "fail"], "fail"), (["pass", "warn", "not made"], "warn"), (["pass", "not made"], "pass"),
    ):  # fmt: skip
        assert Audit.of([finding(o) for o in outcomes_], ignore=True).outcome == whole
        assert Audit.of([finding(o) for o in outcomes_], ignore=True).ignored == (whole == "fail")


# -- few units --------------------------------------------------------------------------------------------------------


def few_units(right: dict[str, Any], units: int = 12, rows: int = ROWS) -> pa.Table:
    return with_ids({**right, "user": np.arange(ROWS) % units}).slice(0, rows)


def test_few_units_are_audited_by_rows(right: dict[str, Any]) -> None:
    """Rankings are drawn for every display, however few users see them."""
    findings = findings_of(build(ft.PlackettLuce("control_scores")), few_units(right))
    assert outcomes(findings) == {**dict.fromkeys(TESTS, "pass"), "logged probabilities": "not made"}
    assert "6,000 displays" in findings["rank among draws"].meaning
    wrong = findings_of(build(ft.PlackettLuce("control_scores", 2.0)), few_units(right))
    assert wrong["log-likelihood"].outcome == wrong["rank among draws"].outcome == "fail"
    assert "computed" not in wrong["knows the draw"].meaning


def test_the_temperature_of_few_units_leaves_no_verdict(right: dict[str, Any]) -> None:
    result = build(ft.PlackettLuce("control_scores", 2.0)).run(few_units(right))
    assert result.metrics["click"].verdict == "insufficient"


def ninety_rows(control: ft.Policy) -> ft.Result:
    """Of two items, shown alike, the second earns nine times as much; the treatment likes it."""
    g, rows = np.random.default_rng(2), 90
    shown = g.integers(0, 2, (rows, 1))
    table = pa.table({
        "click": (g.random(rows) < np.where(shown[:, 0] == 1, 0.9, 0.1)).astype(float), "user": np.arange(rows) % 40,
        "id": np.arange(rows), "ranking": shown.tolist(), "p": np.full(rows, 0.5),
        "control_scores": np.zeros((rows, 2)).tolist(), "treatment_scores": np.tile([0.0, 1.0], (rows, 1)).tolist(),
    })  # fmt: skip
    estimators = ["nis"] if isinstance(control, ft.Logged) else ["point-ncis-adaptive"]
    return build(control, ids=False, log={"features": []}, cap=100.0, estimators=estimators).run(table)


def test_without_rows_to_audit_an_answer_leans_at_most() -> None:
    result = ninety_rows(ft.PlackettLuce("control_scores"))
    estimate = result.metrics["click"].estimates["point-ncis-adaptive"]
    assert result.audit is not None
    assert result.audit.outcome == "unverified"
    assert (estimate.verdict, estimate.word) == ("positive", "leans positive")
    assert estimate.reasons == ["too few rows for the propensity audit: no answer is better than leans"]
    assert any("the log has too few rows for the audit" in note for note in result.notes)


def test_a_logged_control_keeps_its_outcome_and_its_word() -> None:
    result = ninety_rows(ft.Logged(prob="p"))
    [note] = [note for note in result.notes if "not verified" in note]
    assert "Log the scores" in note
    assert not result.metrics["click"].estimates["nis"].reasons


def micro_randomised(g: np.random.Generator, never: float) -> pa.Table:
    """A trial of 37 users: a message is sent at .6 of the decisions, but at none where the user could not get one,
    which the logged probabilities do not know; the treatment would send at .7."""
    rows = 7770
    sent = (g.random(rows) < 0.6) & (g.random(rows) >= never)
    walked = g.gamma(1.0, 1.0 + 0.1 * sent, rows)
    return pa.table({
        "steps": walked, "user": np.arange(rows) % 37, "p": np.where(sent, 0.6, 0.4), "t": np.where(sent, 0.7, 0.3),
    })  # fmt: skip


@pytest.mark.parametrize(("never", "outcome"), [(0.0, "pass"), (0.2, "warn")])
def test_a_micro_randomised_trial_with_rows_that_were_never_randomised(never: float, outcome: str) -> None:
    offline = ft.OfflineTest(
        log=ft.LogColumns(rewards=["steps"], unit="user"), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t"),
        estimators=["is", "nis"],
    )  # fmt: skip
    result = offline.run(micro_randomised(np.random.default_rng(4), never))
    audit = result.audit
    assert audit is not None
    [weights] = [finding for finding in audit.findings if finding.name == "possible weights"]
    assert weights.outcome == outcome
    assert ("some rows were never randomised" in (weights.remedy or "")) == (outcome == "warn")
    assert ("weights below 1" in result.health["questions"]) == (outcome == "warn")


def test_rows_of_few_units_are_impossible_as_often_as_they_should() -> None:
    """Right logs of 20 units and their opposite: weights whose two columns are swapped."""
    swapped, outcomes = [], []
    for seed in range(40):
        g = np.random.default_rng(seed)
        z, rows = g.normal(size=2000), 2000
        log_w = np.log(0.5) + z * np.sqrt(2.0 * np.log(2.0))  # mean 1: E exp(σz) = exp(σ²/2) = 2
        table = {"r": np.ones(rows), "user": np.arange(rows) % 20}
        for p, t, into in ((-9.0 + 0.0 * z, -9.0 + log_w, outcomes), (-9.0 + log_w, -9.0 + 0.0 * z, swapped)):
            offline = ft.OfflineTest(
                log=ft.LogColumns(rewards=["r"], unit="user"), control=ft.Logged(log_prob="p"),
                treatment=ft.Logged(log_prob="t"), estimators=["ncis"], interval="delta",
            )  # fmt: skip
            answer = offline.check(pa.table({**table, "p": p, "t": t})).audit
            assert answer is not None
            into += [finding.outcome for finding in answer.findings if finding.name == "possible weights"]
    assert outcomes.count("fail") == 0
    assert swapped.count("fail") == 40
