"""Folders of results for boards: a few real runs, and many that differ from them in their numbers alone."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import foretest as ft
from foretest.inference.uplift_range import word_on
from foretest.results.uplift_range import NOISE
from tests.public_objects import CLICKS
from tests.support import SCORES, SmallLog, build_test, few_resamples_of_tests

OLD = Path(__file__).resolve().parents[2] / "fixtures" / "version-0.1.0"
Document = dict[str, Any]


@cache
def real_agreement() -> str:
    """The agreement.json of a history of two tests."""
    with tempfile.TemporaryDirectory() as folder, few_resamples_of_tests():
        ft.simulate.write_history(folder, ft.simulate.WORLDS["mild"], 2, 600, 0)
        return ft.run_history(Path(folder) / "manifest.toml").to_json()


@cache
def real_result(kind: str) -> str:
    """The JSON of a real run: offline, with days, of several treatments, online, or of an earlier version."""
    log = SmallLog(rows=600).table()
    if kind == "offline":
        return build_test(["ncis", "point-ncis-adaptive"], metrics=("click", "revenue")).run(log).to_json()
    if kind == "days":
        days = [f"2026-03-{1 + row % 5:02d}" for row in range(600)]
        columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", date="day")
        test = ft.OfflineTest(log=columns, **SCORES, estimators=["ncis", "point-ncis-adaptive"], n_resamples=50)
        return test.run(log.append_column("day", [days])).to_json()
    if kind == "several":
        columns = ft.LogColumns(rewards=["revenue", "click"], unit="user", ranking="ranking", id="id")
        treatments = {"bold": SCORES["treatment"], "shy": ft.PlackettLuce("control_scores", temperature=1.2)}
        roles = {"click": {"role": "goal"}, "revenue": {"role": "guardrail", "margin": 0.01}}
        test = ft.OfflineTest(
            log=columns, control=SCORES["control"], treatment=treatments, metrics=roles, n_resamples=50, cap=3.0
        )
        return test.run(log).to_json()
    if kind == "online":
        return ft.OnlineTest(log=ft.LogColumns(rewards=["click"])).run(*CLICKS).to_json()
    assert kind == "old"
    return gzip.decompress((OLD / "calibrated.json.gz").read_bytes()).decode()


def document(kind: str) -> Document:
    """A real result, to be changed."""
    content: Document = json.loads(real_agreement() if kind == "history" else real_result(kind))
    return content


def estimates_of(content: Document) -> Iterator[tuple[Document, Document]]:
    """Every metric of a result, and of its treatments, with its headline's estimate."""
    parts = [content, *content.get("treatments", ())]
    for metric in (metric for part in parts for metric in part["metrics"].values()):
        yield metric, metric["estimates"][metric["headline"]]


def set_uplift(content: Document, uplift: float, half: float, reach: float = 0.0) -> Document:
    """A result whose headlines say this relative uplift, with an interval of ± half and a range that goes further."""
    for metric, estimate in estimates_of(content):
        control = metric["control"]["value"]
        limits = {"rel_effect_size": uplift, "rel_effect_size_ci_lower": uplift - half,
                  "rel_effect_size_ci_upper": uplift + half}  # fmt: skip
        estimate |= limits | {name.removeprefix("rel_"): control * value for name, value in limits.items()}
        estimate["rel_std_error"] = half / 1.645
        verdict = verdict_on(uplift - half, uplift + half)
        estimate["verdict"] = estimate["word"] = metric["verdict"] = verdict
        if "range" not in estimate:
            del estimate["word"]
            continue
        online = "treatment" in content["log"]
        ends = (uplift - half, uplift + half) if online else (uplift - half - reach, uplift + half + reach)
        estimate["range"] |= {"rel_ci_lower": ends[0], "rel_ci_upper": ends[1]}
        estimate["range"] |= {"ci_lower": control * ends[0], "ci_upper": control * ends[1]}
        if not online:
            estimate["range"]["kind"] = "band" if reach else NOISE
            estimate["word"] = word_on(verdict, verdict_on(*ends), estimate["range"]["kind"])
    return content


def verdict_on(lower: float, upper: float) -> str:
    return "positive" if lower > 0 else "negative" if upper < 0 else "neutral"


def put(folder: Path, content: Document | str, *, report: bool = True, name: str = "result.json") -> None:
    """Write a result as a command would, with a page beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / name).write_text(text, encoding="utf-8")
    if report:
        (folder / "report.html").write_text("<!doctype html><title>a report</title>", encoding="utf-8")


def many_results(folder: Path) -> int:
    """A folder of 200 results: 60 tests that were run offline and online, 40 of one treatment, 25 of two, 10 of an
    earlier version, and 5 histories; how many there are."""
    g = np.random.default_rng(0)
    kinds = ["offline", "days", "several", "old"]
    truth = g.normal(scale=0.04, size=200)

    def varied(kind: str, number: int) -> Document:
        half = float(0.01 + 0.04 * g.random())
        uplift = float(truth[number] + half * g.normal() / 1.6)
        content = set_uplift(document(kind), uplift, half, float(0.02 * g.random()))
        content["weights"] = None  # large, and nothing that a board reads
        for metric in content["metrics"].values():
            metric["cap_path"] = None
        if "audit" in content:
            content["audit"]["outcome"] = str(g.choice(["pass", "pass", "pass", "warn", "unverified", "fail"]))
        for day in (day for metric in content["metrics"].values() for day in metric.get("days", ())):
            day["day"] = f"2026-{1 + number % 9:02d}-{day['day'][-2:]}"
        return content

    for number in range(60):
        for kind in ("offline", "online"):
            put(folder / "tests" / f"ranker {number:02d}" / kind, varied(kind, number))
    for kind, count in zip(kinds, (20, 20, 25, 10), strict=True):
        for number in range(count):
            put(folder / "tries" / kind / f"{number:02d}", varied(kind, 60 + number), report=bool(number % 5))
    for number in range(5):
        content = document("history")
        for test in content["tests"]:
            test["date"] = f"2026-0{1 + number}-15"
        put(folder / "histories" / f"quarter {number}", content, name="agreement.json")
    return 200
