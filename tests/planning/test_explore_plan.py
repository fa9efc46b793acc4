"""A plan with `uplift`: what is refused, the file, the words, the sampler's line and the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.planning.plan import PlanResult, plan_log
from foretest.planning.sampler_line import sampler_line
from foretest.report.charts.exploration import exploration_chart
from foretest.serving import Sampler
from foretest.serving.base import Scores
from tests.cli.test_commands import Command, foretest_command  # noqa: F401  a fixture
from tests.loggers import ThreeLoggers, build
from tests.planning.test_cheapest import DAYS, LOG, dated
from tests.schemas import validate
from tests.support import SmallLog

KEY = np.zeros(1, np.uint64)
SCHEMA = json.loads((Path(ft.__file__).parent / "schema" / "plan-1.json").read_text(encoding="utf-8"))


SETTINGS = """
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"
date = "day"
[control]
policy = "plackett-luce"
scores = "control_scores"
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
[analysis]
estimators = ["point-ncis-adaptive"]
"""


@pytest.fixture(scope="module")
def outlook() -> PlanResult:
    return plan_log(dated(), LOG.table(day=DAYS), uplift=0.08, days=20)


def test_the_file_is_valid(outlook: PlanResult) -> None:
    document = json.loads(outlook.to_json())
    validate(document, SCHEMA)
    explore = document["explore"]
    assert explore["recommended"]["level"] in explore["levels"]
    assert "explore" not in plan_log(dated(), LOG.table(day=DAYS)).to_dict()
    del explore["recommended"]["sampler"]
    with pytest.raises(Exception, match=r"not valid under any of the given schemas"):
        validate(document, SCHEMA)


def test_words_in_80_columns(outlook: PlanResult) -> None:
    text = str(outlook)
    assert max(map(len, text.splitlines())) <= 80
    words = " ".join(text.split())
    explore = outlook.to_dict()["explore"]
    assert "The cheapest exploration that shows 8 % of click in 20 days (2,400 displays):" in words
    assert f"Cheapest (by click): {explore['sentence']}" in words
    assert explore["recommended"]["sampler"]["line"] in text


def test_the_line_makes_a_sampler_of_the_same_control(outlook: PlanResult) -> None:
    """Its probabilities are those of the settings that stand beside it."""
    choice = outlook.to_dict()["explore"]["recommended"]
    sampler = eval(choice["sampler"]["line"], {"Sampler": Sampler})
    assert sampler.slots == LOG.k
    table = choice["settings"]
    parts = table.get("components", [table])
    assert all("scores" in part for part in parts)
    bare = [{k: v for k, v in part.items() if k != "scores"} for part in parts]
    assert choice["sampler"]["policy"] == ({**table, "components": bare} if "components" in table else bare[0])


def test_a_control_that_the_service_cannot_draw() -> None:
    own = ft.Thurstone(scores="control_scores", sigma=1.0)
    mixed = ft.Mixture([(0.9, own), (0.1, ft.EpsilonGreedy("control_scores", 1.0))])
    line = sampler_line(mixed, mixed.settings(), 2)
    assert line.line is line.policy is None
    assert line.reason is not None
    assert line.reason.startswith("foretest.serving does not draw from Thurstone: let the service draw")


def test_columns_are_left_out_of_the_line_at_any_depth() -> None:
    inner = ft.Mixture([(0.5, ft.TopK("s")), (0.5, ft.PlackettLuce("s", 2.0))])
    mixed = ft.Mixture([(0.9, inner), (0.1, ft.EpsilonGreedy("s", 1.0))])
    line = sampler_line(mixed, mixed.settings(), 3)
    assert line.line is not None
    assert '"s"' not in line.line
    sampler = eval(line.line, {"Sampler": Sampler})
    scores = Displays({"s": Ragged.of([[0.3, 1.2, 0.7, -0.4]])}, Ragged.of([[2, 0, 1]]), np.array([4]), KEY)
    assert sampler.policy.log_prob(Scores.of([0.3, 1.2, 0.7, -0.4]), [2, 0, 1]) == pytest.approx(
        float(mixed.log_prob(scores, scores.ranking)[0])
    )


def test_no_exploration_is_needed() -> None:
    result = plan_log(dated(), LOG.table(day=DAYS), uplift=0.9)
    choice = result.to_dict()["explore"]["recommended"]
    assert (choice["value"], choice["cost"], choice["epsilon"]) == (None, 0.0, 0.0)
    words = " ".join(str(result).split())
    assert "Leave the control as it is: 5 days of log could show" in words
    assert "Sampler(" not in words


def test_an_uplift_out_of_reach() -> None:
    result = plan_log(dated(), LOG.table(day=DAYS), uplift=0.004, days=5)
    explore = result.to_dict()["explore"]
    validate(result.to_dict(), SCHEMA)
    assert explore["recommended"] is None
    assert explore["sentence"].startswith("No exploration makes 0.40 % visible in 5 days of log")
    for level in explore["levels"].values():
        assert level["limited_by"] in ("sampling", "identification", "support")
        assert (level["needed"] is not None) == (level["limited_by"] == "sampling")
        if level["needed"] is not None:
            parts = level["needed"]["levels"]["slot"]["smallest_uplift"]
            assert level["needed"]["days"] > 5
            assert parts["total"] > 0.004
    assert "would do" in explore["levels"]["slot"]["sentence"]
    assert "Cheapest (by click): No exploration" in " ".join(str(result).split())


@pytest.mark.parametrize(
    ("uplift", "days", "words"),
    [
        (2, 14, r"uplift = 2 would be \+200%: an uplift is a share, as in 0.02 for 2 %. For 2 % write 0.02."),
        (0.0, 14, r"uplift = 0.0: expected a number above 0."),
        (float("nan"), None, r"uplift = nan: expected a finite number above 0"),
        (0.02, 0, r"days = 0: expected a whole number of at least 1."),
        (0.02, 1.5, r"days = 1.5: expected a whole number of at least 1."),
        (None, 14, r"days = 14 is given without uplift: say which uplift"),
    ],
)
def test_goals_that_are_none(uplift: Any, days: Any, words: str) -> None:
    with pytest.raises(ft.BadInput, match=words):
        plan_log(dated(), LOG.table(day=DAYS), uplift=uplift, days=days)


def undated(**columns: Any) -> ft.OfflineTest:
    log = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", **columns)
    control, treatment = (ft.PlackettLuce(scores=f"{name}_scores") for name in ("control", "treatment"))
    return ft.OfflineTest(log=log, control=control, treatment=treatment, estimators=["point-ncis-adaptive"])


def test_days_by_date_or_time() -> None:
    with pytest.raises(ft.BadInput, match=r'days = 14: nothing says how many days .* \[log\] date = "day" \(or time\)'):
        plan_log(undated(), LOG.table(), uplift=0.3, days=14)
    plain = plan_log(undated(), LOG.table(), uplift=0.3).to_dict()["explore"]
    assert plain["days"] is None
    assert plain["displays"] == LOG.rows
    assert "as much log as this" in plain["sentence"]
    stamps = np.datetime64("2026-03-01T22:00:00", "us") + DAYS * np.timedelta64(86_400_000_000, "us")
    document = plan_log(undated(time="ts"), LOG.table(ts=stamps), uplift=0.3, days=10).to_dict()
    assert document["log"]["days"] == 5
    assert document["explore"]["displays"] == 2 * LOG.rows


def test_logs_that_say_nothing_of_exploration(tmp_path: Path) -> None:
    """Saved sums, several loggers, logged policies, no scores: a note says why, and nothing is refused."""
    dated().save_aggregates(LOG.table(day=DAYS), tmp_path / "a.parquet")
    saved = plan_log(dated(), tmp_path / "a.parquet", uplift=0.02, days=14).to_dict()
    assert saved["explore"] is None
    assert any("saved aggregates have no displays" in note for note in saved["notes"])
    validate(saved, SCHEMA)
    with pytest.raises(ft.BadInput, match=r"this plan has no page"):
        PlanResult(saved).to_html()
    several = plan_log(build(estimators=["point-ncis-adaptive"]), ThreeLoggers(rows=300).table(), uplift=0.02).to_dict()
    assert several["explore"] is None
    assert any("several policies logged these rows" in note for note in several["notes"])
    p = np.full(200, 0.5)
    columns = pa.table({"click": np.arange(200) % 4 == 0, "p": p, "t": p * 0.9})
    logged = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t"),
        estimators=["ncis"],
    )  # fmt: skip
    document = plan_log(logged, columns, uplift=0.02).to_dict()
    assert document["explore"] is None
    assert any("needs scores" in note for note in document["notes"])
    log, shown = SmallLog(rows=300, units=300, m=3, k=3, seed=5), np.arange(3)
    orders = {"ranking": np.tile(shown, (300, 1)).tolist(), "other": np.tile(shown[::-1], (300, 1)).tolist()}
    columns = ft.LogColumns(rewards=["click"], id="id", ranking="ranking", slot_rewards={"click": "slot_click"})
    fixed = ft.OfflineTest(
        log=columns, control=ft.Fixed(ranking="ranking"), treatment=ft.Fixed(ranking="other"), examination=[1, 0.6, 0.4]
    )  # fmt: skip
    without_scores = plan_log(fixed, log.table(**orders), uplift=0.02).to_dict()
    assert without_scores["explore"] is None
    assert any("neither policy has scores" in note for note in without_scores["notes"])
    empty = LOG.table(day=DAYS, click=np.zeros(LOG.rows), slot_click=np.zeros((LOG.rows, LOG.k)).tolist())
    nothing = plan_log(dated(), empty, uplift=0.02).to_dict()
    assert nothing["explore"] is None


def test_the_page(outlook: PlanResult, tmp_path: Path) -> None:
    page = outlook.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    explore = outlook.to_dict()["explore"]
    for level, answer in explore["levels"].items():
        assert (f"What exploration costs and shows, by {level}" in page) == (answer["best"] is not None)
    assert "from foretest.serving import Sampler" in page
    assert "connect-src &#39;none&#39;" in page or "connect-src 'none'" in page


def test_the_picture(outlook: PlanResult) -> None:
    """A line for each way with a point for each control that shows anything, a rule, and a ring around the cheapest."""
    explore = outlook.to_dict()["explore"]
    level = explore["recommended"]["level"]
    layers = {layer["name"]: layer for layer in exploration_chart(explore, level)["layer"] if "name" in layer}
    drawn = layers["ways"]["data"]["values"]
    totals = {row["levels"][level]["smallest_uplift"]["total"] for row in explore["frontier"]}
    assert {row["uplift"] for row in drawn} <= totals
    assert layers["asked"]["data"]["values"][0]["uplift"] == 0.08
    [ring] = layers["cheapest"]["data"]["values"]
    assert ring["cost"] == explore["recommended"]["cost"]
    assert ring["uplift"] == explore["recommended"]["levels"][level]["smallest_uplift"]["total"]
    others = [name for name, answer in explore["levels"].items() if answer["cheapest"] is None and answer["best"]]
    for name in others:
        chart = exploration_chart(explore, name)
        assert "cheapest" not in {layer.get("name") for layer in chart["layer"]}
        assert "None reaches it." in " ".join(chart["title"]["subtitle"])
    assert others


def test_the_command(foretest_command: Command, tmp_path: Path) -> None:  # noqa: F811
    import pyarrow.parquet as pq

    pq.write_table(LOG.table(day=DAYS), "log.parquet")
    Path("own.toml").write_text(SETTINGS, encoding="utf-8")
    ran = foretest_command("plan", "log.parquet", "-c", "own.toml", "--uplift", "0.02")
    assert (ran.code, ran.out) == (2, "")
    assert "--uplift goes with --explore, which finds the cheapest exploration for it: add --explore." in ran.err
    ran = foretest_command("plan", "log.parquet", "-c", "own.toml", "--explore", "--uplift", "0.02", "--days", "1.5")
    assert ran.code == 2
    assert "--days: expected a whole number, not 1.5." in ran.err
    ran = foretest_command("plan", "log.parquet", "-c", "own.toml", "--explore", "--days", "14")
    assert "--explore needs the uplift that it is to make visible: add --uplift 0.02 for 2 %." in ran.err
    ran = foretest_command("plan", "log.parquet", "-c", "own.toml", "--explore", "--uplift", "2", "-o", "out")
    assert ran.code == 2
    assert "For 2 % write 0.02." in ran.err
    assert not Path("out").exists()
    ran = foretest_command("plan", "log.parquet", "-c", "own.toml", "--explore", "--uplift", "0.3", "-o", "out")
    assert ran.code == 0
    assert "Written: out/plan.json, out/report.html" in ran.out
    assert "--uplift 0.02 --days 14" in " ".join(foretest_command("plan", "--help").out.split())
