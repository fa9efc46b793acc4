"""Small tests of every built-in policy, on logs of the types that logs have: real ones need the same kernels."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from foretest.cli.simulate import write_simulated_log
from foretest.offline.test import OfflineTest
from foretest.planning.plan import plan_log
from foretest.policies import (
    EpsilonGreedy,
    Logged,
    LoggedSlots,
    Mallows,
    Mixture,
    PlackettLuce,
    Policy,
    Probabilities,
    SwapNeighbours,
    Thurstone,
    TopK,
)
from foretest.progress import Progress
from foretest.settings.log_columns import LogColumns

_ROWS = 400
_SIZES = ((20, 4), (5, 2), (6, 1))  # items and slots: rankings drawn, gone through, single actions


class _Case(NamedTuple):
    """A log and the policies of its test."""

    name: str
    rows: pa.Table
    control: Policy
    treatment: Policy
    log: dict[str, Any]


def run_small_tests(progress: Progress | None) -> None:
    """Run all of them; pages are made too, so that their templates are compiled."""
    cases = list(_cases())
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            path = Path(folder) / "log.parquet"
            pq.write_table(case.rows, path)
            columns = LogColumns(rewards=("click",), unit="user", **case.log)
            test = OfflineTest(
                log=columns,
                control=case.control,
                treatment=case.treatment,
                ignore_audit=True,
                n_resamples=20,
                buckets=64,
            )
            result = test.run(str(path))
            if case is cases[0]:
                result.to_html()
                plan_log(test, str(path))
            if progress is not None:
                progress("small tests", len(cases), 1)
        _run_as_the_demo_does(Path(folder))


def _run_as_the_demo_does(folder: Path) -> None:
    """A simulated log, whose strata come from a value model."""
    write_simulated_log("paper", 5 * _ROWS, 0, folder, quiet=True)
    OfflineTest.from_toml(folder / "settings.toml").run(str(folder / "log.parquet"))


def _cases() -> Iterator[_Case]:
    shown = {"ranking": "ranking", "slot_rewards": {"click": "slot_click"}}
    for items, slots in _SIZES:
        for kind, places in ((np.float32, np.int32), (np.float64, np.int64)):
            rows = _rows(items, slots, np.dtype(kind), np.dtype(places))
            if slots == 1:
                chosen = Probabilities(probs="p_probs"), Probabilities(probs="t_probs")
                yield _Case("probabilities", rows, *chosen, {"ranking": "ranking"})
            policies = [(PlackettLuce("p"), PlackettLuce("t"))] if slots == 1 else _policies()
            for control, treatment in policies:
                yield _Case(control.key, rows, control, treatment, shown)
            named = {"ranking": "shown_ids", "candidates": "ids", "id": "name"}
            yield _Case("ids", rows, PlackettLuce("p"), PlackettLuce("t"), named)
            logged = Logged(log_prob="log_prob"), Logged(log_prob="other_log_prob")
            yield _Case("logged", rows, *logged, {"ranking": "ranking"})
            yield _Case("logged-slots", rows, LoggedSlots(probs="slot_probs"), PlackettLuce("t"), shown)


def _policies() -> Iterator[tuple[Policy, Policy]]:
    """Controls and treatments, each of the built-in policies on scores among both."""
    yield PlackettLuce("p"), PlackettLuce("t")
    yield PlackettLuce("p"), TopK("t")
    yield Thurstone("p"), Thurstone("t")
    yield Mallows("p", dispersion=0.7), Mallows("t", dispersion=0.7)
    yield EpsilonGreedy("p", epsilon=0.3), EpsilonGreedy("t", epsilon=0.3)
    yield SwapNeighbours("p", swap=0.3), SwapNeighbours("t", swap=0.3)
    yield Mixture([(0.9, TopK("p")), (0.1, PlackettLuce("p"))]), PlackettLuce("t")


def _rows(items: int, slots: int, kind: np.dtype[Any], places: np.dtype[Any]) -> pa.Table:
    g = np.random.default_rng(0)
    scores = g.normal(size=(_ROWS, items)).astype(kind)
    order = np.argsort(-scores, axis=1)  # which every control may show, now and then with the first two swapped
    order[::3, :2] = order[::3, 1::-1]
    ranking = order[:, :slots]
    clicks = (g.random(_ROWS) < 0.2).astype(np.float64)
    by_slot = np.zeros((_ROWS, slots))
    by_slot[np.arange(_ROWS), g.integers(0, slots, _ROWS)] = clicks
    probabilities = g.dirichlet(np.ones(items), (2, _ROWS))
    columns = {
        "click": pa.array(clicks.astype(np.int64) if kind == np.float64 else clicks > 0.0),
        "user": pa.array(g.integers(0, _ROWS // 2, _ROWS)),
        "name": pa.array([f"display {row}" for row in range(_ROWS)]),
        "ranking": _lists(ranking.astype(places)),
        "ids": _lists(np.tile(np.arange(items), (_ROWS, 1))),
        "shown_ids": _lists(ranking),
        "slot_click": _lists(by_slot),
        "p": _lists(scores),
        "t": _lists(g.normal(size=(_ROWS, items)).astype(kind)),
        "log_prob": pa.array(g.normal(-2.0, 0.1, _ROWS)),
        "other_log_prob": pa.array(g.normal(-2.0, 0.1, _ROWS)),
        "slot_probs": _lists(g.uniform(0.1, 0.4, (_ROWS, slots))),
        "p_probs": _lists(probabilities[0]),
        "t_probs": _lists(probabilities[1]),
    }
    return pa.table(columns)


def _lists(rows: npt.NDArray[Any]) -> pa.Array:
    """Lists of equal length."""
    ends = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(rows.ravel()))
