"""First contact: ten logs of different shapes, each run with the settings that were proposed, or told what it lacks."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest import serving
from foretest.convert.starting_settings import first_look_text, starting_settings
from tests.commands import exit_code_of
from tests.convert.test_open_bandit import write_csv
from tests.long_log import long_log, short_log

ROWS, M, K = 300, 6, 2


def lists(values: np.ndarray) -> pa.Array:
    return pa.array(values.tolist())


def display_log(**changed: Any) -> pa.Table:
    """One row per display; columns that are None are left out."""
    g = np.random.default_rng(0)
    scores = g.normal(size=(ROWS, M))
    ranking = np.argsort(-(scores + g.gumbel(size=scores.shape)), axis=1)[:, :K]
    slots = (g.random((ROWS, K)) < 0.2) * 1.0
    columns: dict[str, Any] = {
        "impression_id": np.arange(ROWS), "userId": g.integers(0, 90, ROWS), "shown": lists(ranking),
        "old_scores": lists(scores), "new_scores": lists(scores + g.normal(scale=0.3, size=scores.shape)),
        "clicks": slots.sum(axis=1), "slot_clicks": lists(slots), "country": g.choice(["fr", "de"], ROWS),
        **changed,
    }  # fmt: skip
    return pa.table({name: column for name, column in columns.items() if column is not None})


def bandit_log() -> pa.Table:
    g = np.random.default_rng(1)
    p, t = g.dirichlet(np.ones(M), ROWS), g.dirichlet(np.ones(M), ROWS)
    action = np.array([g.choice(M, p=row) for row in p])
    return pa.table({
        "request": np.arange(ROWS), "action": action, "logging_probs": lists(p), "target_probs": lists(t),
        "reward": (g.random(ROWS) < 0.3) * 1.0,
    })  # fmt: skip


def with_ids() -> pa.Table:
    log = display_log()
    items = np.array([np.random.default_rng(i).permutation(900)[:M] + 100 for i in range(ROWS)])
    shown = [items[i][row].tolist() for i, row in enumerate(log["shown"].to_pylist())]
    return display_log(shown=pa.array(shown), available=lists(items))


def logged_only() -> pa.Table:
    g = np.random.default_rng(2)
    return display_log(old_scores=None, log_prob=-g.uniform(1.0, 3.0, ROWS))


RUNS: dict[str, tuple[pa.Table, dict[str, Any]]] = {
    "displays": (display_log(), {"ranking": "shown", "unit": "userId", "slot_rewards": {"clicks": "slot_clicks"}}),
    "one metric without slots": (display_log(slot_clicks=None), {"rewards": ["clicks"], "id": "impression_id"}),
    "ids and candidates": (with_ids(), {"ranking": "shown", "candidates": "available"}),
    "a bandit": (bandit_log(), {"ranking": "action", "rewards": ["reward"], "id": "request"}),
    "logged probabilities": (logged_only(), {"ranking": "shown"}),
    "one row per item": (long_log(short_log()), {"layout": "long", "display": "view", "item": "sku", "slot": "place"}),
}


@pytest.mark.parametrize("name", RUNS)
def test_proposed_settings_run(name: str, tmp_path: Path) -> None:
    log, expected = RUNS[name]
    look, text = starting_settings(log)
    assert look.missing == []
    assert {key: look.log[key] for key in expected} == expected
    (tmp_path / "settings.toml").write_text(text, encoding="utf-8")
    test = ft.OfflineTest.from_toml(tmp_path / "settings.toml").replace(n_resamples=20)
    test.check(log)
    reward = look.log["rewards"][0]
    estimates = test.run(log).metrics[reward].estimates
    assert all(np.isfinite(e.treatment) for e in estimates.values())


def test_policies_that_were_proposed() -> None:
    assert starting_settings(bandit_log()).look.control == {"policy": "probabilities", "probs": "logging_probs"}
    assert starting_settings(logged_only()).look.control == {"policy": "logged", "log_prob": "log_prob"}


def test_both_temperatures_are_written() -> None:
    """The treatment's is the control's, so that it follows what is written there; comments say what is not known."""
    text = starting_settings(display_log()).text
    control, treatment = (tables := tomllib.loads(text))["control"], tables["treatment"]
    assert control == {"policy": "plackett-luce", "scores": "old_scores", "temperature": 1.0}
    assert treatment == {"policy": "plackett-luce", "scores": "new_scores", "temperature": "control"}
    assert text.partition("\n\n[treatment]\n")[0].endswith(
        '\n# 1.0 is the default: write production\'s own temperature, or "fit" if nobody knows it'
    )
    assert text.endswith('\ntemperature = "control"\n# the same: or write the temperature to try\n')
    alone = starting_settings(logged_only()).text
    assert alone.endswith("\ntemperature = 1.0\n# 1.0 is the default: or write the temperature to try\n")
    assert alone.count("temperature =") == 1
    assert "temperature" not in starting_settings(bandit_log()).text


def test_slots_from_0() -> None:
    log = long_log(short_log())
    place = log["place"].to_pylist()
    from_0 = log.set_column(2, "place", pa.array([None if x is None else x - 1 for x in place]))
    assert starting_settings(from_0).look.log["first_slot"] == 0
    zeros = log.set_column(2, "place", pa.array([0 if x is None else x for x in place]))
    assert "first_slot" not in starting_settings(zeros).look.log


LACKS = {
    "no control": (display_log(old_scores=None, new_scores=None), "what the control would show"),
    "no treatment": (display_log(new_scores=None), "what the treatment would show"),
    "no reward": (display_log(clicks=None, slot_clicks=None), "a reward: a column with a number of at least 0"),
}
REFUSED = {"no control": "[treatment] policy", "no treatment": "[treatment] policy", "no reward": "[log] rewards"}


@pytest.mark.parametrize("name", LACKS)
def test_what_is_missing_is_said(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, what = LACKS[name]
    pq.write_table(log, tmp_path / "log.parquet")
    file, place = str(tmp_path / "log.parquet"), tmp_path / "new.toml"
    assert exit_code_of(monkeypatch, "init", file, "-o", str(place)) == 0
    printed = capsys.readouterr().out
    assert f"- {what}" in printed
    assert f"Written: {place}, a skeleton: write what is marked MISSING in it." in printed
    skeleton = place.read_text(encoding="utf-8")
    assert f"\n# MISSING: {what}" in skeleton
    assert "# A skeleton, which does not run yet" in skeleton
    assert 'ranking = "shown"' in skeleton
    assert exit_code_of(monkeypatch, "check", file, "-c", str(place)) == 2
    assert f"new.toml: {REFUSED[name]} is missing" in capsys.readouterr().err


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(display_log(), tmp_path / "log.parquet")
    log, out = str(tmp_path / "log.parquet"), str(tmp_path / "new.toml")
    assert exit_code_of(monkeypatch, "init", log, "-o", out) == 0
    printed = capsys.readouterr().out
    assert "The log has one row per display." in printed
    assert "Not used: country." in printed
    assert f"Written: {out}. Read it, then: foretest check {log} -c {out}" in printed
    assert exit_code_of(monkeypatch, "check", log, "-c", out, "--quiet") == 0
    capsys.readouterr()
    assert exit_code_of(monkeypatch, "init", log, "-o", out) == 2
    assert "exists already, and is not replaced" in capsys.readouterr().err


def test_other_logs(tmp_path: Path) -> None:
    write_csv(tmp_path / "men.csv")
    look = starting_settings(str(tmp_path / "men.csv")).look
    assert look.log["rewards"] == ["click"]
    assert look.control == {"policy": "logged", "prob": "propensity_score"}
    assert look.missing == ["what the treatment would show: a list of its scores, one for each eligible item"]
    with pytest.raises(ft.BadInput, match="the log has no row"):
        starting_settings(display_log().slice(0, 0))


def test_columns_that_are_there_twice_and_files_that_differ(tmp_path: Path) -> None:
    log = display_log()
    with pytest.raises(ft.BadInput, match=r"the table: column 'clicks' is there 2 times\. Rename all but one\."):
        starting_settings(log.append_column("clicks", log["clicks"]))
    pq.write_table(log, tmp_path / "a.parquet")
    pq.write_table(log.drop_columns(["clicks"]), tmp_path / "b.parquet")
    assert starting_settings(str(tmp_path)).text == starting_settings(str(tmp_path / "a.parquet")).text


def test_a_row_without_a_display() -> None:
    log = long_log(short_log())
    views = [None if row == 3 else view for row, view in enumerate(log["view"].to_pylist())]
    log = log.set_column(0, "view", pa.array(views)).set_column(2, "place", log["place"].fill_null(0))
    assert 'layout = "long"' in starting_settings(log).text
    assert "first_slot" not in starting_settings(log).text


# -- a reward that no name gives away ----------------------------------------------------------------------------------


def unnamed_reward(**changed: Any) -> pa.Table:
    """A log whose reward is named like none."""
    g = np.random.default_rng(4)
    return display_log(clicks=None, slot_clicks=None, sold=(g.random(ROWS) < 0.2) * 12.5, **changed)


def test_the_only_number_left_is_proposed_as_the_reward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = str(tmp_path / "log.parquet"), str(tmp_path / "new.toml")
    pq.write_table(unnamed_reward(version=np.full(ROWS, 3), row_number=np.arange(ROWS)), log)
    assert exit_code_of(monkeypatch, "init", log, "-o", out) == 0
    guess = "The reward is a guess: no column is named like one, and 'sold' is the only one left with a number"
    assert guess in capsys.readouterr().out
    assert f"# {guess}" in Path(out).read_text(encoding="utf-8")
    assert starting_settings(log).look.log["rewards"] == ["sold"]
    assert exit_code_of(monkeypatch, "check", log, "-c", out, "--quiet") == 0


def test_two_displays_and_a_reward_by_another_name() -> None:
    rows = [
        {"visitor": "a1", "sold": 0.0, "shown": ["tea", "mug"], "pool": ["mug", "jam", "tea"],
         "old_model": [0.2, -1.0, 1.3], "new_model": [0.9, 0.0, 1.1]},
        {"visitor": "b7", "sold": 12.5, "shown": ["jam", "tea"], "pool": ["tea", "jam"],
         "old_model": [0.4, 0.6], "new_model": [0.1, 1.4]},
    ]  # fmt: skip
    look = starting_settings(pa.Table.from_pylist(rows)).look
    assert look.missing == []
    assert look.log == {"rewards": ["sold"], "ranking": "shown", "candidates": "pool", "unit": "visitor"}
    assert (look.control["scores"], look.treatment["scores"]) == ("old_model", "new_model")


def test_of_several_possible_rewards_the_user_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = str(tmp_path / "log.parquet"), str(tmp_path / "new.toml")
    pq.write_table(unnamed_reward(age=np.random.default_rng(5).integers(18, 80, ROWS)), log)
    assert exit_code_of(monkeypatch, "init", log, "-o", str(tmp_path / "skeleton.toml")) == 0
    question = "- which column is the reward? Possible: sold, age. Say so with --reward, as in --reward sold."
    assert question in capsys.readouterr().out
    assert exit_code_of(monkeypatch, "init", log, "-o", out, "--reward", "sold") == 0
    assert 'rewards = ["sold"]' in Path(out).read_text(encoding="utf-8")
    with pytest.raises(ft.BadInput, match=r"--reward sol: no such column\. Did you mean 'sold'\?"):
        starting_settings(log, ["sol"])
    with pytest.raises(ft.BadInput, match=r"--reward country: the column is string, expected a number or bool"):
        starting_settings(log, ["country"])


def test_what_slots_earned_says_which_column_is_the_reward() -> None:
    g = np.random.default_rng(6)
    slots = (g.random((ROWS, K)) < 0.2) * 1.0
    look = starting_settings(display_log(clicks=None, slot_clicks=lists(slots), sold=slots.sum(axis=1))).look
    assert look.log["rewards"] == ["sold"]
    assert look.log["slot_rewards"] == {"sold": "slot_clicks"}


def test_a_list_that_lacks_a_number() -> None:
    """A slot without a reward may be null: the sums are of those that are there."""
    g = np.random.default_rng(6)
    slots = (g.random((ROWS, K)) < 0.2) * 1.0
    with_nulls = pa.array([[None if one == 0.0 else one for one in row] for row in slots.tolist()])
    look = starting_settings(display_log(clicks=None, slot_clicks=with_nulls, sold=slots.sum(axis=1))).look
    assert look.log["slot_rewards"] == {"sold": "slot_clicks"}


# -- odd logs ---------------------------------------------------------------------------------------------------------


def item_log(*columns: str, shown_alone: bool = False, seed: int = 8) -> pa.Table:
    """One row per display and item, by short names; slots of candidates that were not shown are null."""
    g = np.random.default_rng(seed)
    rows = []
    for session in range(60):
        scores = g.normal(size=M)
        for place, item in enumerate(np.argsort(-(scores + g.gumbel(size=M))), start=1):
            rows.append({
                "session": f"s{session}", "uid": f"u{session // 3}", "itm": int(item) + 100,
                "pos": place if place <= K else None, "clk": int(place <= K and g.random() < 0.3),
                "mdl_score": scores[item], "new_score": scores[item] + 0.3 * g.normal(),
                "propensity": float(g.uniform(0.1, 0.9)),
            })  # fmt: skip
    named = [{name: row[name] for name in columns} for row in rows if row["pos"] is not None or not shown_alone]
    return pa.Table.from_pylist(named)


def typed(column: str, kind: pa.DataType, log: pa.Table) -> pa.Table:
    return log.set_column(log.column_names.index(column), column, pa.array(log[column].to_pylist(), kind))


def bandit_csv() -> pa.Table:
    g = np.random.default_rng(9)
    shares = {name: g.uniform(0.1, 0.9, ROWS).round(4) for name in ("propensity", "new_propensity")}
    return pa.table({
        "user": g.integers(0, 90, ROWS), "action": g.integers(0, 5, ROWS), "reward": g.integers(0, 2, ROWS), **shares
    })  # fmt: skip


CONTROL_CHARACTERS = [
    "id",
    "us\x07er",
    "sh\x1bown",
    "old\nscores",
    "new\x7f_scores",
    "clicks",
    "slot_clicks",
    "country",
]
IDS = {"ranking": "shown", "candidates": "available"}
ITEMS = {"layout": "long", "display": "session", "item": "itm", "slot": "pos", "unit": "uid", "rewards": ["clk"]}
ODD: dict[str, tuple[pa.Table, dict[str, Any], list[str]]] = {
    "a large list beside a list": (typed("available", pa.large_list(pa.int64()), with_ids()), IDS, []),
    "int64 beside int32": (typed("shown", pa.list_(pa.int32()), with_ids()), IDS, []),
    "lists of one length": (typed("available", pa.list_(pa.int64(), M), with_ids()), IDS, []),
    "clicks of slots as int8": (
        typed("slot_clicks", pa.list_(pa.int8()), display_log()), {"slot_rewards": {"clicks": "slot_clicks"}}, []
    ),
    "clicks before what was shown": (
        typed("slot_clicks", pa.list_(pa.int8()), display_log()).rename_columns(
            ["id", "user", "list", "old_scores", "new_scores", "clicks", "by_slot", "country"]
        ), {"ranking": "list", "slot_rewards": {"clicks": "by_slot"}}, [],
    ),
    "scores as integers": (
        typed("old_scores", pa.list_(pa.int64()), display_log(old_scores=lists(np.tile(np.arange(M), (ROWS, 1))))),
        {"ranking": "shown"}, [],
    ),
    "items by short names": (item_log("session", "uid", "itm", "pos", "clk", "mdl_score", "new_score"), ITEMS, []),
    "one score of an item": (
        item_log("session", "uid", "itm", "pos", "clk", "mdl_score", shown_alone=True), ITEMS, ["treatment"]
    ),
    "probabilities of items": (
        item_log("session", "uid", "itm", "pos", "clk", "propensity"), ITEMS, ["control", "treatment"]
    ),
    "a CSV with propensities": (bandit_csv(), {"ranking": "action", "rewards": ["reward"]}, []),
    "a CSV with one propensity": (bandit_csv().drop_columns(["new_propensity"]), {"ranking": "action"}, ["treatment"]),
    "control characters": (display_log().rename_columns(CONTROL_CHARACTERS), {"ranking": "sh\x1bown"}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_logs_get_settings_that_are_accepted_or_a_skeleton(name: str, tmp_path: Path) -> None:
    log, expected, missing = ODD[name]
    path = tmp_path / ("log.csv" if "CSV" in name else "log.parquet")
    pc.write_csv(log, path) if "CSV" in name else pq.write_table(log, path)
    look, text = starting_settings(str(path))
    assert {key: look.log[key] for key in expected} == expected
    assert list(look.lacks) == missing
    settings = tmp_path / "settings.toml"
    settings.write_text(text, encoding="utf-8")
    assert text.count("# MISSING: ") == len(missing)
    printed = first_look_text(look)
    assert (printed + text).replace("\n", "").isprintable()
    if missing:
        with pytest.raises(ft.BadInput, match=r"\[treatment\] policy is missing"):
            ft.OfflineTest.from_toml(settings)
        return
    assert ft.OfflineTest.from_toml(settings).check(str(path)).log["rows"] in (ROWS, 60)


def test_a_probability_of_each_item_is_not_that_of_what_was_shown() -> None:
    look = starting_settings(item_log("session", "uid", "itm", "pos", "clk", "propensity")).look
    assert look.lacks["control"].endswith("(together: 'propensity' differs from item to item)")


def test_what_is_no_display_of_items() -> None:
    """Rows of a user whose positions do not follow one another are displays of one item each."""
    g = np.random.default_rng(10)
    log = pa.table({
        "user": g.integers(0, 90, ROWS), "item": g.integers(0, 9, ROWS), "position": g.integers(1, 4, ROWS),
        "click": g.integers(0, 2, ROWS), "propensity": g.uniform(0.1, 0.9, ROWS),
    })  # fmt: skip
    look = starting_settings(log).look
    assert "layout" not in look.log
    assert (look.log["ranking"], look.log["unit"]) == ("item", "user")


# -- what a service's writer wrote -------------------------------------------------------------------------------------

SERVED: dict[str, tuple[Any, dict[str, Any]]] = {
    "plackett-luce": (serving.PlackettLuce(0.35), {"policy": "plackett-luce", "temperature": 0.35}),
    "epsilon-greedy": (serving.EpsilonGreedy(0.2), {"policy": "epsilon-greedy", "epsilon": 0.2}),
    "mallows": (serving.Mallows(0.4), {"policy": "mallows", "dispersion": 0.4}),
    "swap-neighbours": (serving.SwapNeighbours(0.15), {"policy": "swap-neighbours", "swap": 0.15}),
    "top-k": (serving.TopK(), {"policy": "top-k"}),
    "mixture": (serving.Mixture([(0.8, serving.TopK()), (0.2, serving.PlackettLuce())]), {"policy": "logged"}),
}
JOIN = """
    SELECT d.*, new_scores, [CAST(coalesce(list_contains(clicked, item), false) AS DOUBLE) FOR item IN ranking]
           AS slot_clicks, list_sum(slot_clicks) AS clicks
    FROM '{0}/displays/*.parquet' AS d JOIN '{0}/scores/*.parquet' USING (id)
    LEFT JOIN (SELECT display AS id, list(item) AS clicked FROM '{0}/clicks/*.parquet' GROUP BY display) USING (id)
"""


def serve(policy: Any, folder: Path, format: str, *, joined: bool) -> None:
    """Displays through a sampler and a writer, with clicks and the treatment's scores, or beside them."""
    g = np.random.default_rng(3)
    sampler = serving.Sampler(policy, slots=2, seed=5)
    with (
        serving.LogWriter(folder / "displays", format) as displays,
        serving.LogWriter(folder / "clicks", format) as clicks,
        serving.LogWriter(folder / "scores", format) as later,
    ):
        for number in range(400):
            items = [f"item-{i}" for i in g.permutation(20)[: g.integers(2, 6)]]  # some displays show all they have
            scores = g.normal(size=len(items))
            draw = sampler.draw(scores, items, key=number)
            now = datetime(2024, 3, 1, tzinfo=UTC) + timedelta(minutes=number)
            row = {**draw.row, "user": int(g.integers(90)), "time": now, "country": None if number % 3 else "fr"}
            new = (scores + g.normal(size=len(items))).tolist()
            clicked = [item for item in draw.ranking if g.random() < 0.3]
            if joined:
                row |= {"new_scores": new, "click": float(len(clicked))}
            displays.write(row)
            later.write({"id": number, "new_scores": new})
            for item in clicked:
                clicks.write({"display": number, "item": item, "time": now})


@pytest.mark.parametrize(("name", "format"), [*((name, "parquet") for name in SERVED), ("plackett-luce", "jsonl")])
def test_what_a_writer_wrote(name: str, format: str, tmp_path: Path) -> None:
    """Every role is proposed, and how the control draws, from the probabilities that it logged."""
    policy, control = SERVED[name]
    serve(policy, tmp_path, format, joined=True)
    look, text = starting_settings(str(tmp_path / "displays"))
    assert look.log == {
        "rewards": ["click"], "ranking": "ranking", "candidates": "candidates", "unit": "user", "id": "id",
        "time": "time",
    }  # fmt: skip
    scores = {} if control["policy"] == "logged" else {"scores": "scores"}
    assert look.control == {**control, **scores, "log_prob": "log_prob"}
    temperature = "control" if name == "plackett-luce" else 1.0
    assert look.treatment == {"policy": "plackett-luce", "scores": "new_scores", "temperature": temperature}
    (tmp_path / "settings.toml").write_text(text, encoding="utf-8")
    test = ft.OfflineTest.from_toml(tmp_path / "settings.toml").replace(n_resamples=20)
    check = test.check(str(tmp_path / "displays"))
    assert check.audit.named("fail") == (["exploration"] if name == "top-k" else [])
    assert test.run(str(tmp_path / "displays")).log["rows"] == 400


def test_clicks_in_a_folder_of_their_own(tmp_path: Path) -> None:
    serve(serving.PlackettLuce(0.5), tmp_path, "parquet", joined=False)
    look, text = starting_settings(ft.Sql(JOIN.format(tmp_path)))
    assert look.missing == []
    assert look.log["rewards"] == ["clicks"]
    assert look.log["slot_rewards"] == {"clicks": "slot_clicks"}
    assert look.control["temperature"] == 0.5
    assert "The logged probabilities are those of policy = 'plackett-luce', temperature = 0.5." in text
    assert "production's own" not in text
    missing = starting_settings(str(tmp_path / "displays")).look.missing
    assert [what.partition(":")[0] for what in missing] == ["what the treatment would show", "a reward"]


def test_probabilities_that_scores_do_not_explain() -> None:
    """No list of scores is taken for the control's by its place alone where probabilities were logged."""
    g = np.random.default_rng(2)
    log = display_log(old_scores=None, log_prob=-g.uniform(1.0, 3.0, ROWS), relevance=display_log()["old_scores"])
    look = starting_settings(log).look
    assert look.control == {"policy": "logged", "log_prob": "log_prob"}
    assert look.treatment["scores"] == "new_scores"


@pytest.mark.parametrize("fault", ["a null in a ranking", "a position below 0", "equal scores"])
def test_probabilities_that_tell_nothing_of_the_scores(fault: str) -> None:
    """With equal scores every temperature gives what was logged, and none is proposed."""
    g = np.random.default_rng(4)
    sampler = serving.Sampler(serving.PlackettLuce(0.5), slots=2, seed=5)
    scores = np.zeros((ROWS, 4)) if fault == "equal scores" else g.normal(size=(ROWS, 4))
    rows = [sampler.draw(of_row, key=number).row for number, of_row in enumerate(scores)]
    if fault != "equal scores":
        rows[7]["ranking"][1] = None if fault == "a null in a ranking" else -1
    log = pa.Table.from_pylist([{**row, "click": int(g.random() < 0.3)} for row in rows])
    assert starting_settings(log).look.control == {"policy": "logged", "log_prob": "log_prob"}
