"""Decision-service JSON as a display log: columns, settings, and estimates by hand from the lines of the file."""

from __future__ import annotations

import gzip
import json
import math
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.commands import exit_code_of
from tests.convert.dsjson_text import DANGLING, cb_event, cb_events, ccb_event, ccb_events, write_lines


def convert(folder: Path, events: list[Any], **options: Any) -> ft.DsjsonLog:
    write_lines(folder / "events.json", events)
    return ft.from_dsjson(folder / "events.json", folder / "out", **options)


def settings_of(log: ft.DsjsonLog) -> dict[str, Any]:
    return tomllib.loads(log.settings.read_text(encoding="utf-8"))


def test_columns_of_one_action(tmp_path: Path) -> None:
    context = {
        "User": [{"tier": "pro"}, {"geo": "UK", "_age": 3}],
        "hour": 7,
        "keep": True,
        "vector": [0.1],
        "_multi": [{}] * 3,
    }
    log = convert(tmp_path, [
        cb_event(c=context, pdrop=0.5),
        cb_event(EventId="e2", _original_label_cost=-0.25, Timestamp="2021-02-04T18:00:00+02:00", c={"hour": "noon"}),
    ])  # fmt: skip
    first, second = pq.read_table(log.path).to_pylist()
    assert first == {
        "event_id": "e1", "time": datetime(2021, 2, 4, 16, 31, 29, 243000, UTC), "keep": 0.5, "action": 1,
        "reward": 1.0, "label_cost": -1.0, "original_label_cost": None, "probabilities": [0.15, 0.8, 0.05],
        "User.tier": "pro", "User.geo": "UK", "hour": "7.0", "keep_": True,
    }  # fmt: skip
    assert second["time"] == datetime(2021, 2, 4, 16, 0, tzinfo=UTC)
    assert (second["reward"], second["label_cost"], second["original_label_cost"]) == (0.25, -1.0, -0.25)
    assert (second["hour"], second["keep"], second["User.tier"]) == ("noon", 1.0, None)
    assert settings_of(log) == {
        "log": {"rewards": ["reward"], "id": "event_id", "date": "time", "keep": "keep", "ranking": "action",
                "features": ["User.tier", "User.geo", "hour", "keep_"]},
        "control": {"policy": "probabilities", "probs": "probabilities"},
        "treatment": {"policy": "top-k", "scores": "probabilities"},
    }  # fmt: skip


def test_columns_by_slot(tmp_path: Path) -> None:
    log = convert(tmp_path, [ccb_event({}, {"_original_label_cost": -2.0}), ccb_event({"_a": [1, 0, 2]}, EventId="c2")])
    first, second = pq.read_table(log.path).to_pylist()
    assert first == {
        "event_id": "c1", "time": datetime(2021, 6, 9, 12, 8, tzinfo=UTC), "keep": 1.0, "ranking": [2, 0],
        "reward": 3.0, "slot_rewards": [1.0, 2.0], "label_costs": [-1.0, 0.0], "original_label_costs": [None, -2.0],
        "prob": 0.3, "slot_probs": [0.5, 0.6], "greedy_prob": 1.0, "User.id": "u",
    }  # fmt: skip
    assert second["greedy_prob"] == 1.0
    assert settings_of(log) == {
        "log": {"rewards": ["reward"], "id": "event_id", "date": "time", "features": ["User.id"], "ranking": "ranking",
                "slot_rewards": {"reward": "slot_rewards"}},
        "control": {"policy": "logged", "prob": "prob"},
        "treatment": {"policy": "logged", "prob": "greedy_prob"},
    }  # fmt: skip


def greedy_weights(events: list[dict[str, Any]]) -> np.ndarray:
    """1/p where the shown action is the likeliest, 0 elsewhere, from the lines alone."""
    return np.array([(e["p"][0] == max(e["p"])) / e["p"][0] for e in events])


def test_estimates_of_one_action(tmp_path: Path) -> None:
    events = cb_events(400)
    log = convert(tmp_path, events)
    w, r = greedy_weights(events), np.array([-e["_label_cost"] for e in events])
    test = log.test.replace(n_resamples=20, estimators=["is", "nis", "point-ncis-adaptive"])
    metric = test.run(log.path).metrics["reward"]
    assert metric.control.value == pytest.approx(r.mean(), rel=1e-12)
    assert metric.estimates["is"].treatment == pytest.approx((w * r).mean(), rel=1e-9)
    assert metric.estimates["nis"].treatment == pytest.approx((w * r).sum() / w.sum(), rel=1e-9)


@pytest.mark.slow
def test_settings_run_as_they_are(tmp_path: Path) -> None:
    for events in (cb_events(300), ccb_events(300), [{**e, "pdrop": 0.5} for e in cb_events(300)]):
        log = convert(tmp_path, events)
        estimates = log.test.run(log.path).metrics["reward"].estimates
        assert {"is", "nis", "ncis", "dr"} <= set(estimates) or "_outcomes" in events[0]
        assert all(np.isfinite(estimate.treatment) for estimate in estimates.values())


def test_a_policy_of_your_own(tmp_path: Path) -> None:
    """Uniform probabilities, joined by the EventId."""
    events = cb_events(200)
    log = convert(tmp_path, events)
    uniform = pa.table({
        "event_id": [e["EventId"] for e in events], "new": [[1 / len(e["a"])] * len(e["a"]) for e in events],
    })  # fmt: skip
    pq.write_table(uniform, tmp_path / "new.parquet")
    joined = ft.Sql(f"SELECT * FROM '{log.path}' JOIN '{tmp_path / 'new.parquet'}' USING (event_id)")
    settings = log.settings.read_text(encoding="utf-8").replace(
        'policy = "top-k"\nscores = "probabilities"', 'policy = "probabilities"\nprobs = "new"'
    )
    log.settings.write_text(settings, encoding="utf-8")
    test = log.test.replace(estimators=["is"], n_resamples=20)
    w = [-e["_label_cost"] / len(e["a"]) / e["p"][0] for e in events]
    assert test.run(joined).metrics["reward"].estimates["is"].treatment == pytest.approx(np.mean(w), rel=1e-9)


def test_estimates_by_slot(tmp_path: Path) -> None:
    events = ccb_events(400)
    log = convert(tmp_path, events)
    w, r = [], []
    for event in events:
        slots = event["_outcomes"]
        likeliest = all(slot["_p"][0] == max(slot["_p"]) for slot in slots)
        w.append(likeliest / math.prod(slot["_p"][0] for slot in slots))
        r.append(-sum(slot["_label_cost"] for slot in slots))
    estimates = log.test.replace(n_resamples=20).run(log.path).metrics["reward"].estimates
    assert set(estimates) == {"is", "nis", "cis", "ncis"}
    assert estimates["is"].treatment == pytest.approx(np.dot(w, r) / len(r), rel=1e-9)
    assert estimates["nis"].treatment == pytest.approx(np.dot(w, r) / np.sum(w), rel=1e-9)


def test_estimates_of_thinned_events(tmp_path: Path) -> None:
    events = [{**e, "pdrop": 0.75} if e["_label_cost"] == 0.0 else e for e in cb_events(400)]
    log = convert(tmp_path, events)
    w, r = greedy_weights(events), np.array([-e["_label_cost"] for e in events])
    stands_for = np.array([1 / (1 - e.get("pdrop", 0.0)) for e in events])
    metric = log.test.replace(n_resamples=20, estimators=["is", "nis"]).run(log.path).metrics["reward"]
    assert metric.control.value == pytest.approx((stands_for * r).sum() / stands_for.sum(), rel=1e-9)
    assert metric.estimates["is"].treatment == pytest.approx((stands_for * w * r).sum() / stands_for.sum(), rel=1e-9)
    nis = (stands_for * w * r).sum() / (stands_for * w).sum()
    assert metric.estimates["nis"].treatment == pytest.approx(nis, rel=1e-9)


@pytest.mark.parametrize("name", ["pdrop", "p_drop"])
@pytest.mark.parametrize("logged", [0.8, 0.2])
def test_keep(name: str, logged: float, tmp_path: Path) -> None:
    """Some writers multiply the label's probability by that of being kept, some do not."""
    log = convert(tmp_path, [cb_event(**{name: 0.75, "_label_probability": logged})])
    [row] = pq.read_table(log.path).to_pylist()
    assert (row["keep"], row["probabilities"]) == (0.25, [0.15, 0.8, 0.05])
    assert settings_of(log)["log"]["keep"] == "keep"
    assert "1 - pdrop" in log.settings.read_text(encoding="utf-8")


def test_nothing_dropped(tmp_path: Path) -> None:
    log = convert(tmp_path, [cb_event(pdrop=0.0)])
    assert "keep" not in settings_of(log)["log"]
    assert pq.read_table(log.path)["keep"].to_pylist() == [1.0]


def test_probabilities_of_few_digits(tmp_path: Path) -> None:
    events = [
        cb_event(p=[0.33333] * 3, _label_probability=0.33333),
        cb_event(p=[0.6, 0.3, 0.1], _label_probability=0.6),
    ]
    rounded, exact = pq.read_table(convert(tmp_path, events).path)["probabilities"].to_pylist()
    assert rounded == pytest.approx([1 / 3] * 3, rel=1e-12)
    assert exact == [0.3, 0.6, 0.1]


def test_positive_costs_need_an_addition(tmp_path: Path) -> None:
    events = [
        cb_event(_label_cost=0.0),
        cb_event(_label_cost=1.0, EventId="e2"),
        cb_event(_label_cost=0.5, EventId="e3"),
    ]
    with pytest.raises(ft.BadInput) as error:
        convert(tmp_path, events)
    assert str(error.value) == (
        f"{tmp_path / 'events.json'}: a reward is minus the cost, and may not be negative. In 2 lines a cost is above 0"
        " (line 2 is the first), the highest 1. Give --add 1 (from Python add=1), which is added to every reward."
    )
    assert not (tmp_path / "out").exists()
    log = convert(tmp_path, events, add=1)
    assert pq.read_table(log.path)["reward"].to_pylist() == [1.0, 0.0, 0.5]
    text = log.settings.read_text(encoding="utf-8")
    assert "else '_label_cost', plus 1 so that none is negative (--add)." in text
    assert "The uplift is in percent of this sum" in text
    with pytest.raises(ft.BadInput, match="Give --add 1 "):
        convert(tmp_path, events, add=0.5)
    with pytest.raises(ft.BadInput, match="add = -1: expected a number of at least 0"):
        convert(tmp_path, events, add=-1)


def test_every_slot_gets_the_addition(tmp_path: Path) -> None:
    log = convert(tmp_path, [ccb_event({"_label_cost": 1.0})], add=1.0)
    [row] = pq.read_table(log.path).to_pylist()
    assert (row["slot_rewards"], row["reward"]) == ([0.0, 1.0], 1.0)


def test_lines_that_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    skipped, deferred = cb_event(_skipLearn=True), cb_event(_deferred=True)
    good = [cb_event(EventId=f"e{i}") for i in range(3)]
    write_lines(
        tmp_path / "events.json", [good[0], DANGLING, "", good[1], "{oops", skipped, DANGLING, deferred, good[2]]
    )
    assert (
        exit_code_of(monkeypatch, "convert", "dsjson", str(tmp_path / "events.json"), "-o", str(tmp_path / "out")) == 0
    )
    assert capsys.readouterr().out == (
        "5 of 8 lines were left out: line 2 is a reward without its decision (2 lines); line 5 is not JSON (Expecting"
        " property name enclosed in double quotes); line 6 is an event that was not activated (2 lines).\n"
        f"Written: {tmp_path / 'out'} (3 displays). Next: foretest run {tmp_path / 'out/log.parquet'} -c"
        f" {tmp_path / 'out/settings.toml'}\n"
    )
    log = ft.from_dsjson(tmp_path / "events.json", tmp_path / "out")
    assert (log.displays, log.lines) == (3, 8)
    assert [(reason.first, reason.lines) for reason in log.left_out] == [("line 2", 2), ("line 5", 1), ("line 6", 2)]


def test_a_file_without_a_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events.json"
    for events, why in (
        ([DANGLING], "1 of 1 lines was left out: line 1 is a reward without its decision."),
        ([], "There is no line."),
    ):
        write_lines(path, events)
        assert exit_code_of(monkeypatch, "convert", "dsjson", str(path), "-o", str(tmp_path / "out")) == 2
        assert f"{path}: no line is a decision that can be weighed. {why}" in " ".join(capsys.readouterr().err.split())
        assert not (tmp_path / "out").exists()


def test_two_kinds_of_decisions(tmp_path: Path) -> None:
    with pytest.raises(ft.BadInput) as error:
        convert(tmp_path, [cb_event(), ccb_event(), ccb_event()])
    assert str(error.value).endswith(
        "1 decision for one action (line 1 is the first) and 2 decisions by slot (line 2): convert them apart, each"
        " from files of its own."
    )


def test_questions(tmp_path: Path) -> None:
    log = convert(tmp_path, [cb_event(), cb_event(EventId="e2"), cb_event(), cb_event(_original_label_cost=0.0)])
    repeated, apprentice = log.remarks()
    assert repeated == (
        "Question: 2 lines have the EventId of an earlier line (line 3 that of line 1): is a file there twice? All are"
        " in the log."
    )
    assert apprentice.startswith(
        "Question: in 1 line '_original_label_cost' is not '_label_cost' (the first is line 4): was the service in"
        " apprentice mode?"
    )
    assert convert(tmp_path, [cb_event(_original_label_cost=-1.0)]).remarks() == []


def test_several_files(tmp_path: Path) -> None:
    (tmp_path / "days/01").mkdir(parents=True)
    write_lines(tmp_path / "days/01/a.json", [cb_event(), "{"])
    with gzip.open(tmp_path / "days/01/b.json.gz", "wt", encoding="utf-8") as file:
        file.write(f"\ufeff{json.dumps(cb_event(EventId='e2'))}\n\n[]\n")
    (tmp_path / "days/_SUCCESS.json").write_text("", encoding="utf-8")
    for source in (tmp_path / "days", str(tmp_path / "days/*/*"), sorted(tmp_path.glob("days/01/*"))):
        log = ft.from_dsjson(source, tmp_path / "out")
        assert pq.read_table(log.path)["event_id"].to_pylist() == ["e1", "e2"]
        assert [str(reason) for reason in log.left_out] == [
            "line 2 of a.json is not JSON (Expecting property name enclosed in double quotes)",
            "line 3 of b.json.gz is not a JSON object",
        ]


def test_batches_and_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foretest.convert.dsjson._BATCH", 7)
    monkeypatch.setattr("foretest.convert.dsjson_survey._AT_ONCE", 10)
    events = cb_events(25)
    calls: list[tuple[str, int | None, int]] = []
    log = convert(tmp_path, events, progress=lambda *call: calls.append(call))
    table = pq.read_table(log.path)
    assert table["event_id"].to_pylist() == [event["EventId"] for event in events]
    assert table["action"].to_pylist() == [event["_labelIndex"] for event in events]
    assert calls == [("check", None, 10)] * 2 + [("write", 25, 7)] * 3


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    path = tmp_path / "a.json"
    write_lines(path, [cb_event()])
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps(cb_event()).encode())[:-12])
    for source, what in (
        (tmp_path / "none.json", "none.json: no such file or folder."),
        (tmp_path / "*.txt", "no file matches this pattern"),
        (tmp_path / "empty", "no file in the folder or below it ends in .json, .json.gz"),
        ([path, path], "this file is named twice, so its lines would count twice"),
        ([], "the list of files is empty"),
        (tmp_path / "b.json.gz", "b.json.gz: cannot be read to its end"),
    ):
        with pytest.raises(ft.BadInput) as error:
            ft.from_dsjson(source, tmp_path / "out")
        assert what in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_file_that_grows_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foretest.convert.dsjson._BATCH", 7)
    path = tmp_path / "events.json"

    def grow(stage: str, total: int | None, rows: int) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(cb_event()) + "\n")

    write_lines(path, cb_events(10))
    with pytest.raises(ft.BadInput, match="changed while it was read: it had 10 decisions and then 11"):
        ft.from_dsjson(path, tmp_path / "out", progress=grow)
    assert not (tmp_path / "out/log.parquet").exists()


def test_lines_without_time_or_id(tmp_path: Path) -> None:
    log = convert(tmp_path, [cb_event(EventId=None, Timestamp=None), cb_event()])
    assert {"id", "date"}.isdisjoint(settings_of(log)["log"])
    log.test.replace(n_resamples=20).run(log.path)


def test_many_features(tmp_path: Path) -> None:
    log = convert(tmp_path, [cb_event(c={f"f{i}": i for i in range(130)})])
    assert len(settings_of(log)["log"]["features"]) == 100
    assert "Of the context's features the first 100 are columns." in log.settings.read_text(encoding="utf-8")


def test_half_characters(tmp_path: Path) -> None:
    log = convert(tmp_path, [cb_event(EventId="e\ud800", c={"x\udfff": "\ud800", "big": 10**400})])
    [row] = pq.read_table(log.path).to_pylist()
    assert (row["event_id"], row["x?"]) == ("e?", "?")
    assert "big" not in row


def test_options_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(tmp_path / "a.json", [cb_event(_label_cost=1.0)])
    path, out = str(tmp_path / "a.json"), str(tmp_path / "out")
    assert exit_code_of(monkeypatch, "convert", "dsjson", path, "-o", out, "--add", "2") == 0
    assert pq.read_table(tmp_path / "out/log.parquet")["reward"].to_pylist() == [1.0]
    assert exit_code_of(monkeypatch, "convert", "open-bandit", path, "-o", out, "--add", "2") == 2
    assert exit_code_of(monkeypatch, "convert", "dsjson", path, "-o", out, "-c", path) == 2
    errors = " ".join(capsys.readouterr().err.split())
    assert "--add is of convert dsjson: convert open-bandit takes rewards as they are." in errors
    assert "convert dsjson takes files, folders or globs, and no -c or --sql." in errors


@pytest.mark.parametrize("name", ["events.json", "events.jsonl"])
@pytest.mark.parametrize("event", [cb_event(), ccb_event(), DANGLING])
def test_init_points_to_convert(
    name: str, event: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / name
    write_lines(path, [event])
    assert exit_code_of(monkeypatch, "init", str(path), "-o", str(tmp_path / "new.toml")) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert f"{path}: decision-service JSON (dsjson)" in message
    assert f"foretest convert dsjson {path} -o OUT" in message
    assert not (tmp_path / "new.toml").exists()


def test_init_of_other_json_lines(tmp_path: Path) -> None:
    from foretest.convert.starting_settings import starting_settings

    write_lines(tmp_path / "a.jsonl", [{"display": i, "click": 1, "c": 2} for i in range(3)])
    assert starting_settings(tmp_path / "a.jsonl").look.missing
