"""Does a reward model bring the pointwise estimator closer to the truth? `python benchmarks/dr_point.py`.

`dr-point` is doubly robust on normalised weights: mean of w̃ (r − r̂(x, a)) + E_t r̂(x, A), with w̃ of
`point-ncis-adaptive`. Its r̂ is cross-fitted by user: gradient boosting with a Poisson loss on the context and, for each
slot, the treatment's score of the item less the control's expectation of that score over the candidates. (The control's
own score is no feature: what the treatment shows and the control does not lies beyond all that was seen of it.)

Logs of every named world, and the tests of histories of `paper`, each with a treatment of its own; the truth is known.
The Markdown goes into docs/explanation/estimators.md, between two comments.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pages import DOCS, into_page

import foretest as ft
from foretest.aggregation.choose_estimators import choose_estimators
from foretest.aggregation.value_model import Encoder
from foretest.displays.batch import Displays
from foretest.offline.prepare_and_fold import offline_reader
from foretest.simulate import WORLDS, World, draw_test, simulate_log, true_values
from foretest.sources.base import Chunk
from foretest.weights.normaliser import Normaliser
from foretest.weights.policy_pair import MODEL
from foretest.weights.weightings import log_weights

Floats = npt.NDArray[np.float64]

LOGS, ROWS = 6, 100_000
HISTORIES, TESTS = (0,), 39
BATCH = 1 << 14
BOUND = 20.0
DRAWS = 8  # of the treatment, for E_t r̂
FEATURES = ["recency", "activity", "group"]
CONTROL, TREATMENT = ft.PlackettLuce("control_scores"), ft.PlackettLuce("treatment_scores")
NORMALISER = Normaliser(TREATMENT, CONTROL)


class Uplifts(NamedTuple):
    """Of one log, relative to the control's value."""

    point: float
    dr: float
    truth: float


def displays_of(table: pa.Table) -> Displays:
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="display_id"),
        control=CONTROL, treatment=TREATMENT, estimators=["point-ncis-adaptive"],
    )  # fmt: skip
    [batch] = table.combine_chunks().to_batches()
    return offline_reader(choose_estimators(test.settings)[0]).read(Chunk(batch, "log", 0, 0)).displays


def weights(displays: Displays) -> Floats:
    """w̃ of every row, clicked or not."""
    w = np.exp(log_weights(TREATMENT, CONTROL, displays))
    masses = NORMALISER.at_adaptive_cap(displays, BOUND)
    capped, some = np.minimum(w, masses.cap), masses.cap > 0.0
    return np.where(some, capped / np.where(some, masses.q, 1.0), 1.0)


def ranking_features(scores: Floats, centre: Floats, ranking: npt.NDArray[np.integer]) -> Floats:
    return np.take_along_axis(scores, ranking.astype(np.int64), axis=1) - centre[:, None]


class Terms(NamedTuple):
    """Of every row: w̃, r, r̂ of the ranking shown, and E_t r̂."""

    weight: Floats
    click: Floats
    predicted: Floats
    expected: Floats

    def uplifts(self) -> tuple[float, float]:
        """Relative, by the plain weights and with the model."""
        w, r, shown, drawn = self
        return float((w * r).mean() / r.mean() - 1.0), float((w * (r - shown) + drawn).mean() / r.mean() - 1.0)


def terms(table: pa.Table, seed: int) -> Terms:
    """Weights, and a model fitted on the users of the other half."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    displays = displays_of(table)
    n = len(displays)
    parts = [np.arange(at, min(at + BATCH, n)) for at in range(0, n, BATCH)]
    weight = np.concatenate([weights(displays.take(rows)) for rows in parts])
    click = table["click"].to_numpy(zero_copy_only=False).astype(np.float64)
    treatment, control = (
        table[name].combine_chunks().values.to_numpy().reshape(n, -1).astype(np.float64)
        for name in ("treatment_scores", "control_scores")
    )
    shown = table["ranking"].combine_chunks().values.to_numpy().reshape(n, -1)
    odds = np.exp(control - control.max(axis=1, keepdims=True))
    centre = (odds * treatment).sum(axis=1) / odds.sum(axis=1)
    context = table.select(FEATURES)
    encoder = Encoder.fit(context)
    x = encoder.matrix(context)
    fold = table["user"].to_numpy() % 2
    categorical = [*encoder.categorical, *[False] * shown.shape[1]]
    predicted, expected = np.empty(n), np.zeros(n)
    for held in (0, 1):
        seen, rows = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
        model = HistGradientBoostingRegressor(
            loss="poisson", categorical_features=categorical, max_iter=60, learning_rate=0.1, max_leaf_nodes=15,
            min_samples_leaf=200, random_state=seed % (1 << 32),
        )  # fmt: skip
        model.fit(np.hstack([x, ranking_features(treatment, centre, shown)])[seen], click[seen])
        of_rows = displays.take(rows)

        def predict(ranking: npt.NDArray[np.integer], rows: npt.NDArray[np.int64] = rows, model: Any = model) -> Floats:
            features = ranking_features(treatment[rows], centre[rows], ranking)
            return np.asarray(model.predict(np.hstack([x[rows], features])))

        predicted[rows] = predict(shown[rows])
        for draw in range(DRAWS):
            drawn = TREATMENT.sample(of_rows, NORMALISER.pair.uniforms(of_rows, MODEL, draw, 1))
            expected[rows] += predict(np.asarray(drawn.values).reshape(len(rows), -1)) / DRAWS
    return Terms(weight, click, predicted, expected)


def uplifts(world: World, seed: int, truth: float) -> Uplifts:
    table = pa.Table.from_batches(simulate_log(world, ROWS, seed))
    return Uplifts(*terms(table, seed).uplifts(), truth)


def logs_of(name: str, logs: int) -> list[Uplifts]:
    """Logs of one world, whose treatment is the same in all."""
    world = WORLDS[name]
    truth = true_values(world, world.change, 0)["click"].rel_uplift
    return [uplifts(world, 1000 + seed, truth) for seed in range(logs)]


def history(seed: int, tests: int) -> list[Uplifts]:
    """The tests of one history of `paper`."""
    world, found = WORLDS["paper"], []
    for number in range(1, tests + 1):
        test = draw_test(world, number, seed)
        truth = true_values(world, test.change, test.seed, displays=1 << 16, draws=2)["click"].rel_uplift
        found.append(uplifts(replace(world, change=test.change), test.seed, truth))
    return found


def row(name: str, found: list[Uplifts]) -> str:
    """Bias, spread and RMSE of both, in points; and the difference of squared errors, with its standard error."""
    point, dr, truth = 100.0 * np.array(found).T
    cells = [name, f"{truth.mean():+.1f}"]
    for x in (point, dr):
        cells += [f"{(x - truth).mean():+.2f}", f"{np.sqrt(((x - truth) ** 2).mean()):.2f}"]
    less = (point - truth) ** 2 - (dr - truth) ** 2
    cells.append(f"{less.mean():+.2f} ± {less.std(ddof=1) / np.sqrt(len(less)):.2f}")
    if np.ptp(truth) > 0.0:
        cells += [f"{np.corrcoef(x, truth)[0, 1]:.2f}" for x in (point, dr)]
    else:
        cells += ["", ""]
    return f"| {' | '.join(cells)} |"


def lines(logs: int, tests: int) -> Iterator[str]:
    yield (
        "| | truth | bias: `point-ncis-adaptive` | its RMSE | bias: `dr-point` | its RMSE | squared error less by"
        " | correlation with the truth: `point-ncis-adaptive` | `dr-point` |"
    )
    yield f"| ---{' | ---:' * 8} |"
    for name in sorted(WORLDS):
        yield row(f"`{name}`, {logs} logs", logs_of(name, logs))
    for seed in HISTORIES:
        yield row(f"history of `paper`, seed {seed}, {tests} tests", history(seed, tests))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=LOGS, help=f"of each world (default {LOGS})")
    parser.add_argument("--tests", type=int, default=TESTS, help=f"of each history (default {TESTS})")
    options = parser.parse_args()
    begin = time.process_time()
    said = []
    for line in lines(options.logs, options.tests):
        said.append(line)
        print(line, flush=True)
    said += [
        "",
        f"{ROWS:,} displays a log; in percentage points of the relative uplift of clicks. foretest {ft.__version__},"
        f" Python {platform.python_version()}, NumPy {np.__version__}. {time.process_time() - begin:,.0f} s of CPU.",
    ]
    print("\n".join(said[-2:]), file=sys.stderr)
    into_page(DOCS / "explanation/estimators.md", "dr-point", "\n".join(said))


if __name__ == "__main__":
    main()
