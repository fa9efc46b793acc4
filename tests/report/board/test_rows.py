"""What a board reads of each kind of result: the numbers of the file, and nothing else; damage is named."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import foretest as ft
from foretest.report.board.board import read_board
from foretest.report.board.fields import Damaged, Fields, read_document
from foretest.report.board.files import ResultFile
from foretest.report.board.history_rows import history_rows
from foretest.report.board.rows import Check, Row, result_rows
from tests.report.board.results import Document, document, put, set_uplift
from tests.support import SmallLog, build_test

FILE = ResultFile(Path("nowhere/result.json"), ("a", "b"), None)


def rows_of(content: Document) -> list[Row]:
    return result_rows(FILE, Fields(content))


def test_the_numbers_are_those_of_the_headline() -> None:
    content = document("offline")
    click, revenue = rows = rows_of(content)
    assert [(row.metric, row.leads, row.entry.kind, row.entry.name) for row in rows] == [
        ("click", True, "offline", "a/b"), ("revenue", False, "offline", "a/b"),
    ]  # fmt: skip
    for row in (click, revenue):
        metric = content["metrics"][row.metric]
        estimate = metric["estimates"][metric["headline"]]
        flat = row.to_dict()
        for name in ("effect_size", "rel_effect_size", "rel_effect_size_ci_upper", "verdict", "word"):
            assert flat[name] == estimate[name]
        assert flat["range_kind"] == estimate["range"]["kind"]
        assert flat["range_rel_ci_lower"] == estimate["range"]["rel_ci_lower"]
        assert flat["estimator"] == metric["headline"]
        assert not flat["word_by_verdict"]
        assert row.audit == Check(content["audit"]["outcome"])


def test_a_date_is_the_last_day_of_the_log_or_that_of_the_file(tmp_path: Path) -> None:
    put(tmp_path / "days", document("days"))
    put(tmp_path / "file", document("offline"))
    moment = datetime(2025, 12, 31, 23, 30, tzinfo=UTC).timestamp()
    for name in ("days", "file"):
        os.utime(tmp_path / name / "result.json", (moment, moment))
    entries = {row.entry.name: row.entry for row in read_board(tmp_path).rows}
    assert (entries["days"].day, entries["days"].dated_by) == (date(2026, 3, 5), "log")
    assert (entries["file"].day, entries["file"].dated_by) == (date(2025, 12, 31), "file")


def test_the_last_day_of_the_log_is_the_date() -> None:
    content = document("days")
    content["log"]["last_day"] = "2031-05-06"
    [row] = rows_of(content)
    assert row.entry.day == date(2031, 5, 6)
    assert row.entry.dated_by == "log"


def test_days_with_names_of_their_own_are_no_dates() -> None:
    content = document("days")
    for day in content["metrics"]["click"]["days"]:
        day["day"] = f"day {day['day'][-1]}"
    [row] = rows_of(content)
    assert row.entry.dated_by == "file"


def test_several_treatments_come_by_rank_with_goal_winner_and_guardrails() -> None:
    content = document("several")
    content["winner"] = "shy"
    ranks = {treatment["name"]: treatment["rank"] for treatment in content["treatments"]}
    rows = rows_of(content)
    order = [name for name in sorted(ranks, key=lambda name: ranks[name]) for _ in range(2)]
    assert [row.treatment for row in rows] == order
    assert [row.metric for row in rows] == ["click", "revenue"] * 2  # the goal first, though the log has it second
    assert {row.treatment for row in rows if row.wins} == {"shy"}
    for row in rows:
        [treatment] = [t for t in content["treatments"] if t["name"] == row.treatment]
        metric = treatment["metrics"][row.metric]
        assert row.guardrail == metric.get("guardrail")
        assert row.estimate is not None
        assert row.estimate.word == metric["estimates"][metric["headline"]]["word"]
        assert row.audit == Check(treatment["audit"]["outcome"])


@pytest.mark.parametrize(("uplift", "word"), [(0.1, "leans positive"), (0.0, "neutral"), (-0.1, "leans negative")])
def test_a_result_of_an_earlier_version_leans_at_most(uplift: float, word: str) -> None:
    content = set_uplift(document("old"), uplift, 0.02)
    [row] = rows_of(content)
    assert content["foretest"] == row.entry.version == "0.1.0"
    assert row.by_verdict
    assert row.estimate is not None
    assert (row.estimate.word, row.estimate.range) == (word, None)
    assert row.to_dict()["range_kind"] is None
    assert row.to_dict()["rel_effect_size_ci_lower"] == pytest.approx(uplift - 0.02)


def test_an_online_result_of_an_earlier_version_has_its_verdict() -> None:
    content = set_uplift(document("online"), 0.1, 0.02)
    estimate = content["metrics"]["click"]["estimates"]["online"]
    del estimate["word"], estimate["range"], estimate["rel_std_error"]
    [row] = rows_of(content)
    assert row.estimate is not None
    assert (row.entry.kind, row.estimate.word) == ("online", "positive")


def test_the_audit_of_an_online_result_is_its_split() -> None:
    content = document("online")
    split = content["health"]["sample_ratio"]
    for alert, p_value, outcome in ((False, 0.5, "pass"), (True, 1e-9, "fail"), (False, None, "unverified")):
        split |= {"alert": alert, "p_value": p_value}
        assert rows_of(content)[0].audit == Check(outcome, "split of units")


def test_an_audit_that_was_not_made_is_unverified() -> None:
    """As an earlier version called it."""
    content = document("old")
    content["audit"]["outcome"] = "not made"
    assert rows_of(content)[0].audit == Check("unverified")


def test_a_check_has_an_audit_and_no_metric() -> None:
    content = build_test(["ncis"]).check(SmallLog().table()).to_dict()
    [row] = rows_of(json.loads(json.dumps(content)))
    assert (row.entry.kind, row.metric, row.estimate) == ("check", None, None)
    assert row.audit == Check(content["audit"]["outcome"])


def test_a_history_counts_its_decisions() -> None:
    content = document("history")
    content["tests"][0]["date"], content["tests"][1]["date"] = "2026-05-01", "2026-04-01"
    for name, outcome in zip(("warn", "fail"), content["tests"], strict=True):
        outcome["audit"]["outcome"] = name
    rank = {"negative": -1, "neutral": 0, "insufficient": 0, "positive": 1}
    rows = history_rows(FILE, Fields(content))
    assert [row.metric for row in rows] == list(content["metrics"])
    for row in rows:
        metric = content["metrics"][row.metric]
        assert row.agreed is not None
        verdicts = [(t["offline"][row.agreed.estimator]["verdict"], t["online"]["verdict"]) for t in metric["tests"]]
        right = sum(rank[offline] == rank[online] for offline, online in verdicts)
        held = metric["table"][row.agreed.estimator]["range_held"]
        assert row.agreed == (right, 2, row.agreed.estimator, held)
        assert row.entry.day == date(2026, 5, 1)
        assert row.audit == Check("fail", "1 of 2 tests")


# -- damage ------------------------------------------------------------------------------------------------------------


def without_metrics(content: Document) -> None:
    del content["metrics"]


def without_headline(content: Document) -> None:
    content["metrics"]["click"]["headline"] = "absent"


def text_for_a_number(content: Document) -> None:
    content["metrics"]["click"]["estimates"]["ncis"]["rel_effect_size"] = "much"
    content["metrics"]["click"]["headline"] = "ncis"


def unknown_word(content: Document) -> None:
    content["metrics"]["click"]["estimates"]["ncis"]["word"] = "great"
    content["metrics"]["click"]["headline"] = "ncis"


def list_for_metrics(content: Document) -> None:
    content["metrics"] = []


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (without_metrics, "metrics is missing."),
        (without_headline, "metrics.click.estimates.absent is missing."),
        (text_for_a_number, "metrics.click.estimates.ncis.rel_effect_size should be a number."),
        (unknown_word, "metrics.click.estimates.ncis.word should be one of positive, leans positive, neutral,"),
        (list_for_metrics, "metrics should be an object."),
    ],
)
def test_damage_is_named_by_its_place(damage: Callable[[Document], None], sentence: str) -> None:
    content = document("offline")
    damage(content)
    with pytest.raises(Damaged, match=f"^{sentence}"):
        rows_of(content)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "the file is empty."),
        (b" \n", "the file is empty."),
        (b'{"foretest": "1",\n "sche', "damaged or cut short: it is not JSON after line 2."),
        (b"\xff\xfe\xff{", "damaged or cut short: it is not JSON."),
        (b"[" * 100_000, "damaged or cut short: it is not JSON."),
        (b'{"schema": ' + b"9" * 5000 + b"}", "damaged or cut short: it is not JSON."),
    ],
)
def test_what_is_not_json_is_damaged(text: bytes, sentence: str) -> None:
    with pytest.raises(Damaged, match=f"^{sentence}"):
        read_document(text)


@pytest.mark.parametrize("text", [b"[]", b"3", b"null", b'{"schema": 1}', b'{"foretest": 3, "schema": 1}'])
def test_json_of_others_is_not_ours(text: bytes) -> None:
    assert read_document(text) is None


@pytest.mark.parametrize("kind", ["offline", "several", "online", "history"])
def test_any_damage_gives_rows_or_a_sentence(kind: str) -> None:
    """Members removed or replaced at random: never another error."""
    whole = document(kind)
    for part in (whole, *whole["metrics"].values()):  # a board reads none of these
        for name in ("cap_path", "weights", "provenance", "calibration", "recommendation"):
            part.pop(name, None)
    generator = random.Random(0)
    sentences = []
    for _ in range(300):
        content = copy.deepcopy(whole)
        _damage(content, generator)
        try:
            rows = history_rows(FILE, Fields(content)) if kind == "history" else rows_of(content)
            assert all(row.to_dict() for row in rows)
        except Damaged as error:
            sentences.append(str(error))
    assert len(sentences) > 20
    assert all(sentence.endswith(".") for sentence in sentences)


def _damage(content: Any, generator: random.Random) -> None:
    """One member, at any depth, removed or replaced."""
    place = content
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = generator.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and generator.random() < 0.8:
            place = place[key]
            continue
        if generator.random() < 0.4:
            del place[key]
        else:
            place[key] = generator.choice([None, "x", -1, 1e308, True, [], {}, [1], {"a": 1}, float("nan"), 10**400])
        return


def test_a_later_schema_is_said(tmp_path: Path) -> None:
    put(tmp_path, document("offline") | {"schema": 2, "foretest": "9.0"})
    [problem] = read_board(tmp_path).problems
    assert problem.sentence == "Foretest 9.0 wrote it, under schema 2; this version reads schema 1."
    assert problem.place == "result.json"


def test_a_board_shows_itself_in_a_line(many: Path) -> None:
    board = ft.read_board(many)
    assert repr(board) == "<Board 200 results, 60 pairs of offline and online>"
    assert json.dumps(board.to_dict(), allow_nan=False)
