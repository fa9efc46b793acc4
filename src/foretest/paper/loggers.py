"""The conclusion's idea, tried: several loggers together come closer to the treatment than production alone.

"Combining them in order to make the mixture of policies closer to the test policy could help to reduce the variance."
A log of which a part was shown by other iterations has weights w = π_t/π_mix, π_mix = Σ_k α_k π_k: never above 1/α_k
times those of logger k alone. Here the loggers are production and two other treatments of the same team. The log is as
long as production's own; the uplift is over production, whose value is Σ (π_p/π_mix) r/n; both logs are held against
the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from foretest.offline.test import OfflineTest
from foretest.paper.estimators import NAMES, mean, rms
from foretest.paper.rows import read_displays
from foretest.policies import Mixture, PlackettLuce, Policy
from foretest.settings.log_columns import LogColumns
from foretest.simulate import (
    Displays,
    SimulatedTest,
    World,
    changed_scores,
    chunk_generator,
    click_probability,
    draw_displays,
    draw_test,
    sample_rankings,
)
from foretest.simulate.displays import CHUNK
from foretest.simulate.log import as_lists

SHARES = (0.6, 0.2, 0.2)
"""Of the displays: production's, and those of two other iterations."""

TESTS = 8
"""Tests of the history that are tried, at most."""

DRAWS = 128
"""Rankings of each normaliser, for both logs: mixtures are drawn from one by one."""

LOGGERS_STREAM = 5
"""The displays of a mixed log never meet those of the same test's other logs."""

ESTIMATORS = ("cis", "ncis", "point-ncis", "point-ncis-adaptive")
"""Those that need no value model."""

SINGLE: Policy = PlackettLuce("control_scores")
MIXED: Policy = Mixture([
    (share, SINGLE if k == 0 else PlackettLuce(f"iteration_{k}_scores")) for k, share in enumerate(SHARES)
])  # fmt: skip


def several_loggers(
    folder: Path,
    world: World,
    tests: int,
    rows: int,
    seed: int,
    truth: dict[str, Any],
    progress: Callable[[int], None],
) -> dict[str, Any]:
    """The first tests of a history in `folder`: production's log beside one of several loggers, of as many rows.

    The other iterations of test j are the treatments of tests j + N and j + 2N, which a history of N tests does not
    have. `truth` is the history's. `progress` is called after each test with the number of tests in all.
    """
    found: dict[str, list[dict[str, Any]]] = {"single": [], "mixed": []}
    for number in range(1, min(tests, TESTS) + 1):
        test = draw_test(world, number, seed)
        others = [draw_test(world, number + k * tests, seed) for k in range(1, len(SHARES))]
        known = truth[test.name]["rel_uplift"]
        single = str(folder / test.name / "control.parquet")
        found["single"].append(_answers(SINGLE, single, rows, known))
        found["mixed"].append(_answers(MIXED, mixed_log(world, test, others, rows), rows, known))
        progress(min(tests, TESTS))
    return {
        "tests": len(found["single"]),
        "shares": list(SHARES),
        "rows": rows,
        **{name: _over_tests(answers) for name, answers in found.items()},
    }


def mixed_log(world: World, test: SimulatedTest, others: list[SimulatedTest], rows: int) -> pa.Table:
    """A log of `rows` displays, each shown by production or one of the other iterations."""
    return pa.Table.from_batches(_chunks(world, test, others, rows))


def _chunks(world: World, test: SimulatedTest, others: list[SimulatedTest], rows: int) -> Iterator[pa.RecordBatch]:
    for chunk in range(-(-rows // CHUNK)):
        rng = chunk_generator(test.seed, LOGGERS_STREAM, chunk)
        displays = draw_displays(world, test.change, rng)
        scores = [displays.control_scores, *(changed_scores(world, displays, o.change, rng) for o in others)]
        yield _logged(world, displays, scores, chunk * CHUNK, rng)[: rows - chunk * CHUNK]


def _logged(
    world: World, displays: Displays, scores: list[Any], first: int, rng: np.random.Generator
) -> pa.RecordBatch:
    """What each display's logger showed, and what came of it."""
    logger = rng.choice(len(scores), size=len(displays), p=SHARES)
    of_logger = np.stack(scores)[logger, np.arange(len(displays))]
    rankings = sample_rankings(of_logger, rng.standard_exponential(displays.appeal.shape), world.slots)
    click = rng.random(len(displays)) < click_probability(world, displays, rankings)
    columns = {
        "display_id": np.arange(len(displays)) + first,
        "logger": logger,
        "ranking": as_lists(rankings, np.full(len(displays), world.slots)),
        "treatment_scores": as_lists(displays.treatment_scores, displays.length),
        "control_scores": as_lists(displays.control_scores, displays.length),
        "click": click,
    }
    columns |= {f"iteration_{k}_scores": as_lists(scores[k], displays.length) for k in range(1, len(scores))}
    return pa.RecordBatch.from_pydict(columns)


def production_value(test: OfflineTest, log: Any, rows: int) -> float:
    """Σ (π_p/π_mix) r/n: what production earns a display, from a log of any loggers."""
    displays, rewards = read_displays(test, log, rows)
    some = np.flatnonzero(rewards)
    part = displays.take(some)
    weights = np.exp(SINGLE.log_prob(part, part.ranking) - test.settings.control.log_prob(part, part.ranking))
    return float(weights @ rewards[some]) / len(rewards)


def _answers(control: Policy, log: Any, rows: int, known: float) -> dict[str, Any]:
    """One log: what its weights are like, and by estimator the relative uplift minus the truth."""
    test = OfflineTest(
        log=LogColumns(rewards=("click",), ranking="ranking", id="display_id"),
        control=control,
        treatment=PlackettLuce("treatment_scores"),
        estimators=list(ESTIMATORS),
        draws=DRAWS,
        interval="delta",
    )
    result = test.run(log)
    click, health, weights = result.metrics["click"], result.health, result.weights
    assert weights is not None
    base = production_value(test, log, rows)
    return {
        "rankings_above_cap": weights["share_above_cap"],
        "log10_weight_q90": weights["log10_quantiles"]["0.9"],
        "mass_kept": health["support"]["mean_q"],
        "rows_above_cap": health["capped_share"],
        "effective_positives": health["effective_positives"]["click"],
        "errors": {
            key: None if e.treatment is None or not base else e.treatment / base - 1.0 - known
            for key, e in click.estimates.items()
        },
    }


def _over_tests(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the tests, and bias and root mean square of the errors."""
    names = [name for name in answers[0] if name != "errors"]
    document: dict[str, Any] = {name: mean(_column(answers, name)) for name in names}
    document["estimators"] = {}
    for key in ESTIMATORS:
        errors = _column([answer["errors"] for answer in answers], key)
        document["estimators"][key] = {"name": NAMES[key].name, "bias": mean(errors), "rmse": rms(errors)}
    return document


def _column(rows: list[dict[str, Any]], name: str) -> Any:
    return np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=np.float64)
