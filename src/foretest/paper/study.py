"""A run of the whole paper: every table and figure, in the paper's order, from one seed."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from foretest._version import __version__
from foretest.files import json_ready, json_text, write_whole
from foretest.history.run import run_history
from foretest.paper.cap_bands import cap_bands
from foretest.paper.capping import cappings
from foretest.paper.decomposition import decompose, over_tests
from foretest.paper.estimators import TABLE_2_KEYS, all_estimators, column
from foretest.paper.example import METRIC, Example, run_example
from foretest.paper.loggers import several_loggers
from foretest.paper.modelled_bias import modelled_bias
from foretest.paper.normaliser_cost import normaliser_cost
from foretest.paper.table_one import table_one
from foretest.paper.table_two import table_two
from foretest.paper.uncapped import uncapped
from foretest.progress import Progress
from foretest.records import dataclass
from foretest.remains import temporary_folder
from foretest.simulate import World, draw_test, write_history
from foretest.simulate.displays import CHUNK

SCHEMA = 1
PACKAGES = ("numpy", "scipy", "pyarrow", "numba", "scikit-learn", "vl-convert-python")

EXAMPLE_DISPLAYS, EXAMPLE_DRAWS = 8 * CHUNK, 16
"""Displays and draws of the example's bias decomposition; each test of the history has a chunk and 8 draws."""


@dataclass(frozen=True)
class PaperStudy:
    """The results of one run, as plain data; each field but the last three has a section in the summary."""

    run: dict[str, Any]  # world, tests, rows, seed, versions, the tests' own seeds
    table_1: dict[str, Any]
    section_4_3: dict[str, Any]
    table_2: dict[str, Any]
    computation_time: dict[str, Any]
    capping: dict[str, Any]  # zero against max
    uncapped: dict[str, Any]  # IS, NIS, DR
    estimators: dict[str, Any]  # modelled bias
    loggers: dict[str, Any]  # several, against one
    bias_decomposition: dict[str, Any]
    example: dict[str, Any]  # the result of the test of section 4.3, and its truth
    agreement: dict[str, Any]  # the content of agreement.json, all estimators
    cpu_seconds: dict[str, float]  # by stage

    def to_dict(self) -> dict[str, Any]:
        """The content of paper.json."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        document: dict[str, Any] = json_ready({"foretest": __version__, "schema": SCHEMA, **content})
        return document

    def figures(self) -> dict[str, dict[str, Any]]:
        """The paper's figures as Vega-Lite specifications, by the name of their files."""
        from foretest.report.charts.cap import cap_chart
        from foretest.report.charts.cap_estimates import cap_estimates_chart
        from foretest.report.charts.correlation import correlation_chart
        from foretest.report.charts.decisions import decisions_chart
        from foretest.report.charts.weights import weights_chart

        result, agreement = self.example["result"], self.agreement
        path = result["metrics"][METRIC]["cap_path"]
        level = result["settings"]["analysis"]["confidence_level"]
        table = {key: agreement["table"][key] for key in TABLE_2_KEYS}
        figures = {
            "figure-1-weights": weights_chart(result["weights"]),
            "figure-2-cap": cap_chart(path),
            "figure-2-estimates": cap_estimates_chart(path),
            "figure-3-correlation": correlation_chart(table),
        }
        for key in TABLE_2_KEYS:
            figures[f"figure-4-{key}"] = decisions_chart(agreement["tests"], key, level)
        return figures

    def write(self, out: str | Path) -> None:
        """OUT/README.md, OUT/report.html, OUT/paper.json and the pictures in OUT/figures."""
        from foretest.paper.summary import summary
        from foretest.report.paper_page import paper_page
        from foretest.report.pictures import write_pictures

        out, document, figures = Path(out), self.to_dict(), self.figures()
        words = summary(document, list(figures))
        write_pictures(out / "figures", figures)
        json_text(document, out / "paper.json")
        write_whole(out / "README.md", words)
        write_whole(out / "report.html", paper_page(document, figures, words))


def run_paper(
    out: str | Path, world: World, *, tests: int = 39, rows: int = 150_000, seed: int = 0, processes: int = 1,
    progress: Progress | None = None,
) -> PaperStudy:  # fmt: skip
    """Simulate, test offline and online, and measure all that the paper claims.

    The logs are written to a temporary folder in `out` and removed in the end, whatever happens. Results of tests with
    the same logs and settings, in `out`/cache, are reused. `processes` simulate side by side.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    report = progress or (lambda stage, total, done: None)
    clock = _Clock()
    with temporary_folder(out) as folder:
        report("example", 1, 0)
        with clock.stage("example"):
            example = run_example(folder / "example", world, rows, seed)
            report("example", 1, 1)
        with clock.stage("simulate"):
            _simulate(folder / "history", world, tests, rows, seed, processes, report)
        truth = json.loads((folder / "history" / "truth.json").read_text(encoding="utf-8"))
        with clock.stage("tests"):
            manifest = folder / "history" / "manifest.toml"
            analysis = {"estimators": all_estimators()}
            agreement = run_history(manifest, analysis=analysis, cache=out / "cache", progress=report).to_dict()
        with clock.stage("loggers"):
            mixed_loggers = several_loggers(
                folder / "history", world, tests, rows, seed, truth, lambda total: report("loggers", total, 1)
            )
        with clock.stage("normaliser"):
            cost = normaliser_cost(example.test, example.log)
    with clock.stage("decomposition"):
        parts = _decomposition(world, tests, seed, truth, example, agreement, report)
    names = [test["name"] for test in agreement["tests"]]
    known = np.array([truth[name]["rel_uplift"] for name in names])
    return PaperStudy(
        run=_description(world, tests, rows, seed, example),
        table_1=table_one(),
        section_4_3=cap_bands(example.metric["cap_path"], rows),
        table_2=table_two(agreement),
        computation_time=cost,
        capping=cappings(agreement),
        uncapped=uncapped(agreement),
        estimators=modelled_bias(agreement, known, example.metric, example.truth["rel_uplift"]),
        loggers=mixed_loggers,
        bias_decomposition=parts,
        example={"truth": example.truth, "result": example.result},
        agreement=agreement,
        cpu_seconds=clock.seconds,
    )


def _simulate(folder: Path, world: World, tests: int, rows: int, seed: int, processes: int, report: Progress) -> None:
    done = 0

    def advance(now: int) -> None:
        nonlocal done
        report("simulate", tests, now - done)
        done = now

    write_history(folder, world, tests, rows, seed, advance, processes=processes)


def _decomposition(
    world: World, tests: int, seed: int, truth: dict[str, Any], example: Example, agreement: dict[str, Any],
    report: Progress,
) -> dict[str, Any]:  # fmt: skip
    """The bias of NCIS in the example, exactly and by the groups of its log; and in every test."""
    cap = example.result["settings"]["analysis"]["cap"]
    exact = decompose(world, world.change, cap=cap, seed=seed, displays=EXAMPLE_DISPLAYS, draws=EXAMPLE_DRAWS)
    names = {test["name"] for test in agreement["tests"]}
    parts, control = [], []
    for number in range(1, tests + 1):
        test = draw_test(world, number, seed)
        report("bias parts", tests, 1)
        if test.name in names:
            parts.append(decompose(world, test.change, cap=cap, seed=test.seed))
            control.append(truth[test.name]["control"])
    strata_bias = column(agreement["tests"], "ncis") - column(agreement["tests"], "piece-ncis")
    return {
        "cap": cap,
        "control": example.truth["control"],
        "example": exact,
        "example_strata": example.by_group,
        "tests": over_tests(parts, np.array(control), strata_bias),
    }


def _description(world: World, tests: int, rows: int, seed: int, example: Example) -> dict[str, Any]:
    """All that is needed to repeat the run."""
    return {
        "world": world.name,
        "tests": tests,
        "rows": rows,
        "seed": seed,
        "test_seeds": {test.name: test.seed for test in (draw_test(world, k, seed) for k in range(1, tests + 1))},
        "analysis": example.result["settings"]["analysis"],
        "parameters": {**asdict(world), "first_day": world.first_day.isoformat()},
        "versions": {
            "foretest": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
    }


class _Clock:
    """CPU seconds of the stages of a run, child processes included."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = _cpu_seconds()
        yield
        self.seconds[name] = _cpu_seconds() - start


def _cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
