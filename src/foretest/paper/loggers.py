"""The conclusion's idea, tried: several loggers together come closer to the treatment than production alone.

"Combining them in order to make the mixture of policies closer to the test policy could help to reduce the variance."
A log of which a part was shown by other iterations has weights w = π_t/π_mix, π_mix = Σ_k α_k π_k: never above 1/α_k
times those of logger k alone. Here the loggers are production and two other treatments of the same team. The log is as
long as production's own; the uplift is over production, whose value is Σ (π_p/π_mix) r/n; both logs are compared with
the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from foretest.displays.batch import Floats
from foretest.files import nan_if_none
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
"""Shares of the displays: production's, and those of two other iterations."""

TESTS = 8
"""The most tests of the history that are tried."""

DRAWS = 128
"""Rankings drawn for each normaliser, in both logs: few, as draws from mixtures are slow."""

LOGGERS_STREAM = 5
"""The displays of a mixed log are others than those of the same test's other logs."""

ESTIMATORS = ("cis", "ncis", "point-ncis", "point-ncis-adaptive")
"""Estimators that need no value model."""

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
    """Compare production's log with one of several loggers, of as many rows, in the first tests of a history.

    The other iterations of test j are the treatments of tests j + N and j + 2N, which a history of N tests does not
    have. The history is in `folder`, `truth` is its truth. `progress` is called after each test with the number of
    tests in all.
    """
    single, mixed = [], []
    for number in range(1, min(tests, TESTS) + 1):
        test = draw_test(world, number, seed)
        others = [draw_test(world, number + k * tests, seed) for k in range(1, len(SHARES))]
        known = truth[test.name]["rel_uplift"]
        single.append(_run_log(SINGLE, str(folder / test.name / "control.parquet"), rows, known))
        mixed.append(_run_log(MIXED, mixed_log(world, test, others, rows), rows, known))
        progress(min(tests, TESTS))
    return {
        "tests": len(single),
        "shares": list(SHARES),
        "rows": rows,
        "single": _over_tests(single),
        "mixed": _over_tests(mixed),
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
    """The rankings that each display's logger showed, and the clicks."""
    logger = rng.choice(len(scores), size=len(displays), p=SHARES)
    shown_scores = np.stack(scores)[logger, np.arange(len(displays))]
    rankings = sample_rankings(shown_scores, rng.standard_exponential(displays.appeal.shape), world.slots)
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
    """Σ (π_p/π_mix) r/n: what production earns per display, from a log of any loggers."""
    displays, rewards = read_displays(test, log, rows)
    some = np.flatnonzero(rewards)
    part = displays.take(some)
    weights = np.exp(SINGLE.log_prob(part, part.ranking) - test.settings.control.log_prob(part, part.ranking))
    return float(weights @ rewards[some]) / len(rewards)


class _LogResult(NamedTuple):
    """The weights of one log, and by estimator the relative uplift minus the truth."""

    rankings_above_cap: float | None
    log10_weight_q90: float | None
    mass_kept: float | None
    rows_above_cap: float | None
    effective_positives: float | None
    errors: dict[str, float | None]


def _run_log(control: Policy, log: Any, rows: int, known: float) -> _LogResult:
    """Run the test on one log; `known` is the true relative uplift."""
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
    return _LogResult(
        rankings_above_cap=weights["share_above_cap"],
        log10_weight_q90=weights["log10_quantiles"]["0.9"],
        mass_kept=health["support"]["mean_q"],
        rows_above_cap=health["capped_share"],
        effective_positives=health["effective_positives"]["click"],
        errors={
            key: None if e.treatment is None or not base else e.treatment / base - 1.0 - known
            for key, e in click.estimates.items()
        },
    )


def _over_tests(results: list[_LogResult]) -> dict[str, Any]:
    """Means over the tests, and bias and root mean square of the errors."""
    names = [name for name in _LogResult._fields if name != "errors"]
    document: dict[str, Any] = {name: mean(_column(getattr(result, name) for result in results)) for name in names}
    document["estimators"] = {}
    for key in ESTIMATORS:
        errors = _column(result.errors[key] for result in results)
        document["estimators"][key] = {"name": NAMES[key].name, "bias": mean(errors), "rmse": rms(errors)}
    return document


def _column(values: Iterable[float | None]) -> Floats:
    return np.array([nan_if_none(value) for value in values], dtype=np.float64)
