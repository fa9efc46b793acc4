"""A log that a service drew is replayed row by row: it passes whole, and a single row that was changed is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.aggregation.replay_sums import ReplaySums, RowPlace
from foretest.displays.merging import merged
from foretest.results.audit import Finding
from foretest.serving import Sampler
from foretest.storage.saved.files import SavedFile
from tests.serving.support import TABLES, analysed_policy

SEED = 7


def served(table: dict[str, Any], rows: int = 600, *, ids: str = "int", items: bool = False) -> pa.Table:
    """A log as a service wrote it, with rewards beside."""
    g = np.random.default_rng(0)
    sampler, written = Sampler(table, slots=2, seed=SEED), []
    for number in range(rows):
        key: Any = number * 3 if ids == "int" else f"view-{number}"
        candidates = g.permutation(1000)[:5].tolist() if items else None
        row = sampler.draw(g.normal(size=5), candidates, key=key).row
        written.append({**row, "user": number % 150, "click": int(g.random() < 0.3), "new": g.normal(size=5).tolist()})
    return pa.Table.from_pylist(written)


def test_of(control: Any, **log: Any) -> ft.OfflineTest:
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", **{"id": "id", **log})
    return ft.OfflineTest(log=columns, control=control, treatment=ft.PlackettLuce("new", 1.0), n_resamples=100)


test_of.__test__ = False  # type: ignore[attr-defined]


def finding(result: Any) -> Finding:
    [found] = [f for f in result.audit.findings if f.name == "replayed"]
    return found


def with_row(log: pa.Table, row: int, ranking: list[Any]) -> pa.Table:
    rankings = log["ranking"].to_pylist()
    rankings[row] = ranking
    return log.set_column(log.schema.get_field_index("ranking"), "ranking", pa.array(rankings))


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_log_that_a_service_drew_passes(table: dict[str, Any]) -> None:
    test = test_of(analysed_policy(table, "scores", replay_seed=SEED, log_prob="log_prob"))
    result = test.check(served(table))
    assert finding(result).outcome == "pass"
    assert finding(result).meaning.startswith("100 % of the rows (600)")
    assert next(f for f in result.audit.findings if f.name == "logged probabilities").outcome == "pass"


@pytest.mark.parametrize("ids", ["int", "text"])
@pytest.mark.parametrize("items", [False, True], ids=["positions", "ids"])
def test_one_row_that_was_changed_fails_and_is_named(ids: str, items: bool) -> None:
    table = TABLES["plackett-luce"]
    log = served(table, ids=ids, items=items)
    test = test_of(analysed_policy(table, "scores", replay_seed=SEED), candidates="candidates" if items else None)
    assert finding(test.check(log)).outcome == "pass"
    changed = with_row(log, 411, log["ranking"][411].as_py()[::-1])
    for result in (test.check(changed), test.run(changed)):
        found = finding(result)
        assert found.outcome == "fail"
        name = "1233" if ids == "int" else '"view-411"'
        assert found.meaning == (
            f"1 of 600 rows shows another ranking than follows from the seed and the id; the first has the id {name}"
        )
        assert result.audit.outcome == "fail"
    twice = with_row(changed, 37, log["ranking"][37].as_py()[::-1])
    assert finding(test.check(twice)).meaning.endswith(
        "the first has the id " + ("111" if ids == "int" else '"view-37"')
    )


def test_a_wrong_seed_or_type_of_id_fails_nearly_everywhere() -> None:
    log = served(TABLES["plackett-luce"])
    other = test_of(analysed_policy(TABLES["plackett-luce"], "scores", replay_seed=SEED + 1)).check(log)
    text = log.set_column(log.schema.get_field_index("id"), "id", pa.array([str(i) for i in log["id"].to_pylist()]))
    as_text = test_of(analysed_policy(TABLES["plackett-luce"], "scores", replay_seed=SEED)).check(text)
    for result in (other, as_text):
        assert finding(result).statistic > 0.5  # type: ignore[operator]
        assert "the ids are of another type" in str(finding(result).remedy)


def test_without_a_seed_nothing_is_replayed() -> None:
    result = test_of(analysed_policy(TABLES["plackett-luce"], "scores")).check(served(TABLES["plackett-luce"]))
    assert not [f for f in result.audit.findings if f.name == "replayed"]


def test_one_row_of_a_hundred_thousand(tmp_path: Path) -> None:
    from foretest.policies.replay import replayed_rankings
    from tests.serving.support import displays_of

    n, policy = 100_000, analysed_policy(TABLES["plackett-luce"], "scores", replay_seed=SEED)
    scores = np.random.default_rng(3).normal(size=(n, 4))
    blank = displays_of(list(scores), [[0, 1]] * n, list(range(n)))
    shown = replayed_rankings(analysed_policy(TABLES["plackett-luce"]), blank, SEED).flat().reshape(n, 2)
    shown[73_219] = shown[73_219, ::-1]
    lists = {"scores": pa.array(list(scores)), "ranking": pa.array(list(shown)), "new": pa.array(list(scores[::-1]))}
    log = pa.table({"id": np.arange(n), "user": np.arange(n), "click": np.arange(n) % 5 == 0, **lists})
    pq.write_table(log, tmp_path / "log.parquet", row_group_size=9_000)
    found = finding(test_of(policy).check(tmp_path / "log.parquet", threads=2))
    assert (found.outcome, found.statistic) == ("fail", 1 / n)
    assert found.meaning.startswith("1 of 100,000 rows")
    assert found.meaning.endswith("the id 73219")


def test_saved_sums_and_packed_logs_keep_the_counts(tmp_path: Path) -> None:
    table = TABLES["exploring share"]
    log = served(table)
    log = with_row(log, 500, log["ranking"][500].as_py()[::-1])
    test = test_of(analysed_policy(table, "scores", replay_seed=SEED))
    wanted = finding(test.run(log))
    parts = []
    for number, part in enumerate((log.slice(0, 250), log.slice(250))):
        parts.append(tmp_path / f"{number}.parquet")
        test.save_aggregates(part, parts[-1])
    assert finding(test.run(parts)) == wanted
    saved = SavedFile.open(parts[1])
    counts = saved.read(saved.plan(saved.settings())).replay
    assert counts == ReplaySums(350, 1, RowPlace(250, "1500"))
    test.pack(log, tmp_path / "packed")
    assert finding(test.run(tmp_path / "packed")) == wanted


def test_every_treatment_has_the_finding() -> None:
    log = served(TABLES["mallows"])
    control = analysed_policy(TABLES["mallows"], "scores", replay_seed=SEED)
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id")
    treatments = {"a": ft.PlackettLuce("new", 1.0), "b": ft.PlackettLuce("new", 3.0)}
    result = ft.OfflineTest(log=columns, control=control, treatment=treatments).check(log)
    assert finding(result).meaning.startswith("100 % of the rows (600)")
    assert [finding(treatment) for treatment in result.treatments] == [finding(result)] * len(result.treatments)


def test_of_several_loggers_each_replays_its_own_rows() -> None:
    first, second = served(TABLES["plackett-luce"], 300), served(TABLES["mallows"], 300)
    log = pa.concat_tables([first, second]).append_column("who", pa.array(["a"] * 300 + ["b"] * 300))
    log = log.set_column(log.schema.get_field_index("user"), "user", pa.array(np.arange(600) % 150))
    controls = {
        "a": analysed_policy(TABLES["plackett-luce"], "scores", replay_seed=SEED),
        "b": analysed_policy(TABLES["mallows"], "scores"),
    }
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", logger="who")
    test = ft.OfflineTest(log=columns, control=controls, treatment=ft.PlackettLuce("new", 1.0), baseline="a")
    assert finding(test.check(log)).meaning.startswith("100 % of the rows (300)")
    controls["b"] = analysed_policy(TABLES["mallows"], "scores", replay_seed=SEED)
    test = ft.OfflineTest(log=columns, control=controls, treatment=ft.PlackettLuce("new", 1.0), baseline="a")
    assert finding(test.check(log)).meaning.startswith("100 % of the rows (600)")


def test_counts_do_not_depend_on_how_a_log_is_cut() -> None:
    places = [None, RowPlace(30, '"b"'), RowPlace(12, '"z"'), RowPlace(12, '"a"')]
    parts = [ReplaySums(*counts, place) for counts, place in zip(((5, 0), (4, 2), (7, 1), (1, 1)), places, strict=True)]
    assert merged(parts) == merged(parts[::-1]) == ReplaySums(17, 4, RowPlace(12, '"a"'))


def with_slots(log: pa.Table) -> pa.Table:
    """The log with what each slot earned: the first of every third display, else the second."""
    slots = [[float(click), 0.0][:: -1 if row % 3 else 1] for row, click in enumerate(log["click"].to_pylist())]
    return log.append_column("slot_click", pa.array(slots))


@pytest.mark.parametrize("items", [False, True], ids=["positions", "ids"])
def test_a_replay_beside_rewards_of_slots(items: bool) -> None:
    """Their examination curve takes a pass of its own, in which the control has two roles."""
    log = with_slots(served(TABLES["plackett-luce"], items=items))
    columns = {"slot_rewards": {"click": "slot_click"}, "candidates": "candidates" if items else None}
    results = [
        test_of(analysed_policy(TABLES["plackett-luce"], "scores", replay_seed=seed), **columns).run(log)
        for seed in (SEED, None)
    ]
    assert finding(results[0]).meaning.startswith("100 % of the rows (600)")
    with_replay, without = (result.metrics["click"].estimates["pbm"].treatment for result in results)
    assert with_replay == without
