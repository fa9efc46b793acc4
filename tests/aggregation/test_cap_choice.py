"""cap = "auto": the rule against plain NumPy and enumeration, and the road of the chosen number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import norm

import foretest as ft
from foretest.aggregation.cap_choice import CANDIDATES, CapChoice, choose_cap
from foretest.errors import BadInput
from foretest.settings.analysis import Analysis
from tests.schemas import validate
from tests.storage.saved.support import read_back
from tests.support import SmallLog, build_test

LOG = SmallLog(rows=3000, units=900, spread=2.5, seed=21)
SCHEMA = Path(ft.__file__).parent / "schema" / "result-1.json"


def auto(estimators: Any = ("cis", "point-ncis"), **analysis: Any) -> ft.OfflineTest:
    return build_test(list(estimators), **{"cap": "auto", "interval": "delta", **analysis})


@pytest.fixture(scope="module")
def result() -> ft.Result:
    return auto().run(LOG.table())


def exact_rule(log: SmallLog, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """z·s/r̄ and B/r̄ with q(x) and E_p[w̄²|x] over all rankings of every row."""
    t, p, r = np.exp(log.log_t), np.exp(log.log_p), log.click
    noise, bias = [], []
    for c in CANDIDATES:
        mass = np.minimum(t, c * p)
        q = mass.sum(axis=1)
        second = (mass**2 / p).sum(axis=1) / q**2
        s = np.sqrt((r**2).mean() * (second.mean() - 1.0) / len(r))
        noise.append(norm.ppf(0.5 + level / 2) * s / r.mean())
        bias.append(0.3 * (1.0 - q.mean()))
    return np.array(noise), np.array(bias)


def test_the_rule_against_enumeration(result: ft.Result) -> None:
    """128 draws a display: 1/q² and its kin are a few per cent off, the choice is that of the exact rule."""
    chosen = result.health["cap"]
    noise, bias = exact_rule(LOG)
    np.testing.assert_allclose(chosen["bias"], bias, atol=0.003)
    np.testing.assert_allclose(chosen["noise"], noise, rtol=0.12)
    best = CANDIDATES[(noise + bias).argmin()]
    assert chosen["chosen"] == best == 31.6
    assert (chosen["metric"], chosen["source"], chosen["displays"]) == ("click", "draws", 3000)


def test_more_rows_choose_a_larger_cap() -> None:
    """The same weights, with n and the rewards of a hundred thousand times as many rows."""
    import dataclasses

    from foretest.aggregation.choose_estimators import choose_estimators
    from foretest.aggregation.sample_pass import SampleFold
    from foretest.engines import dispatch
    from foretest.offline.prepare_and_fold import offline_reader
    from foretest.sources import open_source

    plan = dataclasses.replace(choose_estimators(auto().settings)[0], estimators=())
    sample = dispatch.aggregate(open_source(LOG.table()), offline_reader(plan), plan, kind=SampleFold)
    caps = []
    for times in (1.0, 1e3, 1e5, 1e7):
        more = sample.ledger.mapped(lambda account, key, array, by=times: array * by)
        choice = choose_cap(dataclasses.replace(sample, ledger=more))
        at = choice.candidates.index(choice.chosen)
        assert choice.criterion[at] == min(choice.criterion)
        caps.append(choice.chosen)
    assert caps == sorted(caps)
    assert caps[-1] > 10 * caps[0]

    def chosen(gamma: float) -> float:
        settings = auto(gamma=gamma).settings
        return choose_cap(dataclasses.replace(sample, plan=dataclasses.replace(plan, settings=settings))).chosen

    assert chosen(3.0) > chosen(1.3) > chosen(1.01)


def test_the_pass_counts_as_the_fold_does() -> None:
    import dataclasses

    from foretest.aggregation.choose_estimators import choose_estimators
    from foretest.aggregation.sample_pass import DISPLAYS, DRAWS, SampleFold
    from foretest.engines import dispatch
    from foretest.offline.prepare_and_fold import offline_reader
    from foretest.sources import open_source

    log = SmallLog(rows=6000, units=900, m=4, k=1, spread=1.0, seed=3)
    plan = dataclasses.replace(choose_estimators(auto(metrics=("click", "revenue")).settings)[0], estimators=())
    sample = dispatch.aggregate(open_source(log.table()), offline_reader(plan), plan, kind=SampleFold)
    whole = dispatch.aggregate(open_source(log.table()), offline_reader(plan), plan)
    np.testing.assert_array_equal(sample.n, whole.n)
    np.testing.assert_allclose(np.sum(sample.r, axis=1), np.sum(whole.r, axis=1), rtol=1e-12)
    np.testing.assert_allclose(sample.r2, whole.r2, rtol=1e-12)
    columns, first = sample.sample.columns(), whole.sample.columns()
    assert columns["draws_treatment"].shape == (DISPLAYS, DRAWS // 2)
    for name in ("unit", "log_w", ("r", 1)):
        np.testing.assert_array_equal(columns[name], first[name][:DISPLAYS])


def test_a_run_with_the_number_gives_the_same(result: ft.Result) -> None:
    plain = auto(cap=result.cap).run(LOG.table())
    assert "cap" not in plain.health
    assert result.settings["analysis"]["cap"] == "auto"
    assert plain.settings["analysis"]["cap"] == result.cap
    mine, theirs = result.to_dict(), plain.to_dict()
    assert mine["metrics"] == theirs["metrics"]
    assert mine["weights"] == theirs["weights"]
    assert [note for note in result.notes if note not in plain.notes] == [
        note for note in result.notes if note.startswith('cap = "auto" chose 31.6 of 24 caps')
    ]


def test_it_is_said_everywhere(result: ft.Result) -> None:
    document = json.loads(result.to_json())
    validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert "chose 31.6 of 24 caps" in str(result)
    assert "at cap 31.6" in str(result)
    page = result.to_html()
    assert "chose 31.6 of 24 caps" in page
    assert "c = 31.6, max capping." in page


def test_a_stream_a_check_and_saved_aggregates(result: ft.Result, tmp_path: Path) -> None:
    table = LOG.table()
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=500))
    assert auto().run(stream).health["cap"] == result.health["cap"]
    checked = auto().check(table)
    assert checked.health["cap"] == result.health["cap"]
    assert checked.health["effective_sample_size"] == pytest.approx(result.health["effective_sample_size"])
    place = tmp_path / "a.parquet"
    auto().save_aggregates(table, place)
    choice = read_back(place).plan.cap_choice
    assert choice is not None
    assert choice.to_dict() == result.health["cap"]
    for test in (auto(), auto(cap=31.6), ft.OfflineTest.from_aggregates(place)):
        again = test.run(place)
        assert again.health["cap"] == result.health["cap"]
        assert again.to_dict()["metrics"] == result.to_dict()["metrics"]


def test_parts_whose_caps_differ_are_refused_by_name(tmp_path: Path) -> None:
    near = SmallLog(rows=3000, units=900, spread=0.4, seed=5)
    a, b, c, d = (tmp_path / f"{name}.parquet" for name in "abcd")
    auto().save_aggregates(LOG.table(), a)
    auto().save_aggregates(near.table(user=near.unit + 10_000), b)
    chosen = read_back(b).plan.settings.analysis.cap
    assert chosen != 31.6
    with pytest.raises(BadInput, match="their sums do not add up") as refused:
        auto().run([str(a), str(b)])
    assert f"{b} was made with cap = {chosen:g}, {a} with cap = 31.6: " in str(refused.value)
    assert str(refused.value).endswith("for each log, so give all of them one, as in cap = 31.6.")
    auto(cap=31.6).save_aggregates(near.table(user=near.unit + 10_000), c)
    both = auto().run([str(a), str(c)])
    assert (both.cap, both.log["rows"]) == (31.6, 6000)
    auto(cap=7.0).save_aggregates(LOG.table(), d)
    with pytest.raises(BadInput, match='was made with cap = 7, the settings say "auto"'):
        auto().run(d)


def test_a_packed_log_has_the_cap_of_its_log(result: ft.Result, tmp_path: Path) -> None:
    log = tmp_path / "log.parquet"
    pq.write_table(LOG.table(), log)
    for cap in ("auto", 50.0):
        out = tmp_path / f"packed-{cap}"
        auto(cap=cap).pack(log, out)
        of_packed = auto().run(out)
        assert of_packed.health["cap"]["criterion"] == pytest.approx(result.health["cap"]["criterion"], rel=1e-9)
        assert of_packed.metrics["click"].estimates["point-ncis"].treatment == pytest.approx(
            result.metrics["click"].estimates["point-ncis"].treatment, rel=1e-9
        )
        estimated = any("was packed with another cap" in note for note in " ".join(of_packed.notes).split("Note"))
        assert estimated == (cap != "auto")


def test_logged_policies_take_the_rows_weights() -> None:
    g = np.random.default_rng(2)
    rows = 4000
    p = np.exp(-3.0 * g.random(rows))
    t = np.clip(p * np.exp(g.normal(size=rows)), 0.0, 1.0)
    click = (g.random(rows) < 0.1).astype(float)
    table = pa.table({"click": click, "p": p, "t": t, "id": np.arange(rows)})
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], id="id"), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t"),
        estimators=["ncis"], cap="auto",
    )  # fmt: skip
    choice = test.run(table).health["cap"]
    w = t / p
    expected = []
    for c in CANDIDATES:
        capped = np.minimum(w, c)
        s = np.sqrt(click.mean() * ((capped**2).mean() / capped.mean() ** 2 - 1.0) / rows)
        expected.append(norm.ppf(0.95) * s / click.mean() + 0.3 * (1.0 - min(1.0, capped.mean())))
    np.testing.assert_allclose(choice["criterion"], expected, rtol=1e-9)
    assert choice["source"] == "log"
    assert choice["chosen"] == CANDIDATES[int(np.argmin(expected))]


def test_same_policies_have_the_smallest_cap_and_no_uplift() -> None:
    table = LOG.table(treatment_scores=LOG.table()["control_scores"])
    result = auto().run(table)
    assert result.health["cap"]["criterion"] == pytest.approx([0.0] * 24, abs=1e-12)
    assert result.cap == 1.78
    assert result.metrics["click"].estimates["cis"].effect_size == pytest.approx(0.0, abs=1e-12)


def test_a_log_without_reward_has_the_default() -> None:
    result = auto().run(LOG.table(click=np.zeros(LOG.rows)))
    assert result.cap == 100.0
    assert result.notes[0].startswith('cap = "auto": there is nothing to choose from, as no row has a reward')
    assert auto().run(LOG.table().slice(0, 0)).cap == 100.0


def test_what_is_refused() -> None:
    with pytest.raises(BadInput, match='cap = "auto" needs capping = "max"'):
        Analysis(cap="auto", capping="zero")
    with pytest.raises(BadInput, match="cap = 'best': expected a number above 0, or \"auto\""):
        Analysis(cap="best")


def test_a_choice_is_told_and_read_back(result: ft.Result) -> None:
    document = result.health["cap"]
    assert CapChoice.from_dict(json.loads(json.dumps(document))).to_dict() == document
