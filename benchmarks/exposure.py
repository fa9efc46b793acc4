"""Estimators by exposure, measured where the truth is known: python benchmarks/exposure.py [--only theta …] [--logs N]

    theta          is a fitted curve within two standard errors of the true one?
    coverage       does the interval with a fitted curve contain the truth as often as with the true curve?
    sharp          histories whose production scores are four times as sharp: exposure against slots
    deterministic  a production that never varies, re-ranked, under the right curve and under θ^1.25
    browsing       clicks that break the model, and clicks that do not: what the tests of the model find, and who leads
    cost           CPU time of a run by slot, and of the same with estimators by exposure; --logs is the number of turns

prints tables and, where all parts ran in full, writes them into docs/explanation/exposure.md, between two comments.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pages import DOCS, into_page

import foretest as ft
from foretest.kernels.slot_marginals import plackett_luce
from foretest.simulate import WORLDS, draw_test, simulate_log, true_values
from foretest.simulate.world import POSITION_BASED

Floats = npt.NDArray[np.float64]

ITEMS, THETA = 8, np.array([1.0, 0.6, 0.4])
SLOTS = len(THETA)
EXPOSURE, SLOT = "exposure-ncis-adaptive", "slot-ncis-adaptive"
FULL = {"theta": 100, "coverage": 2000, "sharp": 7, "deterministic": 200, "browsing": 100, "cost": 15}
ROWS, SHARP_TESTS, SHARP_DISPLAYS, RERANKED = 5000, 39, 60_000, 20_000
BY_SLOT = [
    "is", "nis", "cis", "ncis", "point-ncis", "point-ncis-adaptive", "iips", "rips", "slot-ncis-adaptive",
]  # fmt: skip
COSTED = 300_000  # displays, 2 % of them with a click
BROWSED = 86_000  # displays, with some 20 000 clicks where people leave at what attracts them


class PositionBased:
    """Displays of 8 items in 3 slots whose clicks are examination times worth."""

    def __init__(self, rows: int, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        quality = self.random.normal(size=(rows, ITEMS))
        self.control = 0.6 * quality + 0.6 * self.random.normal(size=(rows, ITEMS))
        self.treatment = 0.9 * quality + 0.4 * self.random.normal(size=(rows, ITEMS))
        self.worth = 0.25 / (1.0 + np.exp(0.5 - quality))

    def best(self, scores: Floats) -> npt.NDArray[np.int64]:
        """The items of the best scores, best first."""
        return np.argsort(-scores, axis=1, kind="stable")[:, :SLOTS]

    def earned(self, shown: npt.NDArray[np.int64]) -> Floats:
        """The expected clicks of each slot."""
        return np.asarray(THETA * np.take_along_axis(self.worth, shown, 1))

    def table(self, shown: npt.NDArray[np.int64], treatment: Floats) -> pa.Table:
        """A log of what was shown, with clicks drawn."""
        clicks = (self.random.random(shown.shape) < self.earned(shown)).astype(float)
        lists = {"ranking": shown.astype(np.int32), "c": self.control, "t": treatment, "slot_click": clicks}
        columns = {name: _lists(values) for name, values in lists.items()}
        return pa.table({**columns, "click": clicks.sum(axis=1), "user": np.arange(len(shown))})

    def explored(self) -> pa.Table:
        """The log of a Plackett-Luce control."""
        gumbel = self.random.gumbel(size=self.control.shape)
        return self.table(self.best(self.control + gumbel), self.treatment)

    def value(self, scores: Floats) -> Floats:
        """What a Plackett-Luce policy earns in each display, exactly."""
        rows, out = len(scores), np.empty(scores.size * SLOTS)
        starts = np.arange(rows) * ITEMS
        sizes = np.full(rows, ITEMS), np.full(rows, SLOTS)
        plackett_luce(scores.ravel(), starts, *sizes, 1.0, out, starts * SLOTS)
        return np.asarray(np.einsum("rkm,rm,k->r", out.reshape(rows, SLOTS, ITEMS), self.worth, THETA))


def _lists(values: npt.NDArray[Any]) -> pa.Array:
    flat = pa.array(values.ravel())
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1]).cast(pa.list_(flat.type))


def build(**settings: Any) -> ft.OfflineTest:
    """An offline test of a position-based log."""
    policies = {"control": ft.PlackettLuce(scores="c"), "treatment": ft.PlackettLuce(scores="t")}
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slot_click"})
    return ft.OfflineTest(log=columns, **{**policies, "interval": "delta", "estimators": [EXPOSURE], **settings})


def measure_theta(logs: int) -> Iterator[str]:
    """How often each θ_k is within two standard errors of the truth."""
    test, fits = build(), []
    for seed in range(logs):
        fits.append(test.aggregate(PositionBased(ROWS, seed).explored(), threads=1).aggregates.plan.fits[0])
    theta, error = (np.array([getattr(fit, name) for fit in fits]) for name in ("theta", "std_error"))
    inside = np.abs(theta - THETA) <= 2.0 * error
    yield f"| slot ({logs} logs of {ROWS:,} displays) | θ | mean fit | spread | mean standard error | within two |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for k in range(1, SLOTS):
        numbers = (THETA[k], theta[:, k].mean(), theta[:, k].std(ddof=1), error[:, k].mean())
        yield f"| {k + 1} | {' | '.join(f'{x:.3f}' for x in numbers)} | {inside[:, k].mean():.1%} |"


def measure_coverage(logs: int) -> Iterator[str]:
    """How often the 90 % interval contains the true uplift, of the same logs with a fitted and with the true curve."""
    world = PositionBased(400_000, 10**6)
    truth = float(world.value(world.treatment).mean() - world.value(world.control).mean())
    tests = {"fitted": build(), "true": build(examination=THETA.tolist())}
    held: dict[str, list[bool]] = {name: [] for name in tests}
    errors: dict[str, list[float]] = {name: [] for name in tests}
    for seed in range(logs):
        table = PositionBased(ROWS, seed).explored()
        for name, test in tests.items():
            e = test.run(table, threads=1).metrics["click"].estimates[EXPOSURE]
            held[name].append(e.effect_size_ci_lower <= truth <= e.effect_size_ci_upper)
            errors[name].append(e.std_error)
    yield f"| curve ({logs} logs of {ROWS:,} displays) | interval contains the truth | mean standard error |"
    yield "| --- | ---: | ---: |"
    for name in tests:
        yield f"| {name} | {np.mean(held[name]):.1%} | {np.mean(errors[name]):.5f} |"


def of_world(estimators: list[str], **settings: Any) -> ft.OfflineTest:
    """An offline test of a log of `foretest simulate`."""
    columns = ft.LogColumns(
        rewards=["click"], unit="user", ranking="ranking", id="display_id", slot_rewards={"click": "slot_click"}
    )
    return ft.OfflineTest(
        log=columns, control=ft.PlackettLuce(scores="control_scores"),
        treatment=ft.PlackettLuce(scores="treatment_scores"), estimators=estimators,
        **{"interval": "delta", **settings},
    )  # fmt: skip


def measure_sharp(histories: int) -> Iterator[str]:
    """Uplifts by slot and by exposure against the truth, where production hardly explores."""
    paper = WORLDS["paper"]
    world = replace(paper, control_sharpness=4.0 * paper.control_sharpness)
    test = of_world([SLOT, EXPOSURE])
    found: dict[str, list[float]] = {SLOT: [], EXPOSURE: [], "truth": [], "leads": []}
    yield "| history | RMSE by slot | by exposure | ratio | correlation by slot | by exposure |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for seed in range(histories):
        for number in range(1, SHARP_TESTS + 1):
            drawn = draw_test(world, number, seed)
            truth = true_values(world, drawn.change, drawn.seed)["click"].rel_uplift
            log = pa.Table.from_batches(simulate_log(replace(world, change=drawn.change), SHARP_DISPLAYS, drawn.seed))
            metric = test.run(log, threads=1).metrics["click"]
            found["truth"].append(float(truth))
            for key in (SLOT, EXPOSURE):
                found[key].append(float(metric.estimates[key].rel_effect_size or 0.0))
        yield _sharp_row(str(seed), {key: np.array(v[-SHARP_TESTS:]) for key, v in found.items()})
    yield _sharp_row("all", {key: np.array(v) for key, v in found.items()})


def _sharp_row(name: str, found: dict[str, Floats]) -> str:
    errors = {key: float(np.sqrt(np.square(found[key] - found["truth"]).mean())) for key in (SLOT, EXPOSURE)}
    alike = [float(np.corrcoef(found[key], found["truth"])[0, 1]) for key in (SLOT, EXPOSURE)]
    ratio = errors[EXPOSURE] / errors[SLOT]
    return f"| {name} | {errors[SLOT]:.4f} | {errors[EXPOSURE]:.4f} | {ratio:.2f} | {alike[0]:.3f} | {alike[1]:.3f} |"


def measure_deterministic(tests: int) -> Iterator[str]:
    """Re-rankings of what a control shows that never varies: is there a verdict, and does it contain the truth?"""
    given = {"right": THETA, "θ^1.25": THETA**1.25}
    held: dict[str, list[tuple[bool, bool, bool]]] = {name: [] for name in given}
    for seed in range(tests):
        world = PositionBased(RERANKED, seed)
        shown = world.best(world.control)
        below = np.full(world.treatment.shape, -50.0)  # what is not shown stays out
        strength = world.random.uniform(0.0, 1.0)
        blend = strength * world.treatment + (1.0 - strength) * world.control
        np.put_along_axis(below, shown, np.take_along_axis(blend, shown, 1), 1)
        truth = float((world.earned(world.best(below)) - world.earned(shown)).sum(axis=1).mean())
        table = world.table(shown, below)
        for name, theta in given.items():
            policies = {"control": ft.TopK(scores="c"), "treatment": ft.TopK(scores="t")}
            e = build(examination=theta.tolist(), **policies).run(table, threads=1).metrics["click"].estimates[EXPOSURE]
            inside = e.effect_size_ci_lower <= truth <= e.effect_size_ci_upper
            held[name].append((e.verdict != "insufficient", inside, e.range.ci_lower <= truth <= e.range.ci_upper))
    yield f"| curve given ({tests} tests of {RERANKED:,} displays) | verdict | interval holds the truth | range does |"
    yield "| --- | ---: | ---: | ---: |"
    for name, answers in held.items():
        verdict, interval, limits = np.mean(answers, axis=0)
        yield f"| {name} | {verdict:.1%} | {interval:.1%} | {limits:.1%} |"


def measure_browsing(logs: int) -> Iterator[str]:
    """How often the tests of the model fail, and which level leads."""
    browsing = WORLDS["browsing"]
    worlds = {"`browsing`": browsing, "position-based": replace(browsing, clicks=POSITION_BASED, abandonment=0.0)}
    test = of_world(["point-ncis-adaptive", "cascade-ncis-adaptive", SLOT, EXPOSURE])
    yield f"| clicks ({logs} logs of {BROWSED:,} displays) | clicks a log | company fails | slots or exposure lead |"
    yield "| --- | ---: | ---: | ---: |"
    for name, world in worlds.items():
        clicks, fails, leads = [], [], []
        for seed in range(logs):
            log = pa.Table.from_batches(simulate_log(world, BROWSED, seed))
            result = test.run(log, threads=1)
            metric = result.metrics["click"]
            clicks.append(result.log["positives"]["click"])
            fails.append(metric.slot_model.beside.fails)
            leads.append(metric.headline in (SLOT, EXPOSURE))
        yield f"| {name} | {np.mean(clicks):,.0f} | {np.mean(fails):.0%} | {np.mean(leads):.0%} |"


def measure_cost(turns: int) -> Iterator[str]:
    """What estimators by exposure add to a run on one thread; runs take turns, as other programs slow them down."""
    both, usual = [*BY_SLOT, "pbm", EXPOSURE], {"interval": "bootstrap"}
    tests = {
        "by slot": of_world(BY_SLOT, **usual),
        "and by exposure, curve fitted": of_world(both, **usual),
        "and by exposure, curve given": of_world(both, examination=[1.0, 0.6, 0.4, 0.3], **usual),
    }
    seconds: dict[str, list[float]] = {name: [] for name in tests}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/log.parquet"
        pq.write_table(pa.Table.from_batches(simulate_log(WORLDS["paper"], COSTED, 0)), path)
        for turn in range(turns + 1):
            for name, test in tests.items():
                start = time.process_time()
                test.run(path, threads=1)
                if turn:  # the first compiles
                    seconds[name].append(time.process_time() - start)
    least, middle = min(seconds["by slot"]), np.median(seconds["by slot"])
    yield f"| estimators ({COSTED:,} displays, {turns} turns) | least CPU seconds | more | median | more |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, found in seconds.items():
        low, median = min(found), np.median(found)
        yield f"| {name} | {low:.2f} | {low / least - 1.0:.0%} | {median:.2f} | {median / middle - 1.0:.0%} |"


PARTS: dict[str, Callable[[int], Iterator[str]]] = {
    "theta": measure_theta,
    "coverage": measure_coverage,
    "sharp": measure_sharp,
    "deterministic": measure_deterministic,
    "browsing": measure_browsing,
    "cost": measure_cost,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--logs", type=int, help="how many logs, tests or histories, instead of the documented numbers")
    arguments = parser.parse_args()
    for name in arguments.only:
        lines = []
        for line in PARTS[name](arguments.logs or FULL[name]):
            print(line, flush=True)
            lines.append(line)
        if arguments.logs is None:
            into_page(DOCS / "explanation/exposure.md", f"exposure-{name}", "\n".join(lines))


if __name__ == "__main__":
    main()
