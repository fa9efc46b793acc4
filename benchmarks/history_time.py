"""Where the time of a history goes, as shares of CPU time: `python benchmarks/history_time.py`.

Simulates a few tests of the default world and runs them, in one thread, as `foretest history` would. The time of each
call is counted for the innermost stage it belongs to, so that reading for the value model is reading. Prints a Markdown
table; `foretest paper` writes the seconds of its own stages into paper.json.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from foretest.aggregation import value_model
from foretest.diagnostics import cap_path
from foretest.history import agreement
from foretest.history import run as history
from foretest.inference import bootstrap
from foretest.inference.buckets import BucketSums
from foretest.log.reader import Reader
from foretest.online import resampling
from foretest.simulate import WORLDS, write_history
from foretest.sources import open_source
from foretest.weights import weightings as weights
from foretest.weights.normaliser import Normaliser
from foretest.weights.policy_pair import PolicyPair

STAGES = ("simulate", "read", "weights", "normaliser", "value model", "resampling", "the rest")


class Stopwatch:
    """CPU seconds by stage: time belongs to the innermost stage that is open."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self.open = ["the rest"]
        self.since = time.process_time()

    def _count(self) -> None:
        now = time.process_time()
        self.seconds[self.open[-1]] += now - self.since
        self.since = now

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._count()
        self.open.append(name)
        try:
            yield
        finally:
            self._count()
            self.open.pop()

    def wrap(self, owner: Any, attribute: str, name: str) -> None:
        """Count the calls of a method, or of a function wherever it was imported, for a stage."""
        function = getattr(owner, attribute)

        def counted(*args: Any, **kwargs: Any) -> Any:
            with self.stage(name):
                return function(*args, **kwargs)

        modules = [module for key, module in list(sys.modules.items()) if key.startswith("foretest")]
        for place in [owner, *(m for m in modules if vars(m).get(attribute) is function)]:
            setattr(place, attribute, counted)

    def wrap_parts(self, source: Any) -> None:
        """Count the reading of a source's parts, batch by batch."""
        parts = source.parts

        def counted(part: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
            def read() -> Iterator[Any]:
                chunks = part()
                while True:
                    with self.stage("read"):
                        chunk = next(chunks, None)
                    if chunk is None:
                        return
                    yield chunk

            return read

        source.parts = lambda *args, **kwargs: [counted(part) for part in parts(*args, **kwargs)]


def watched(log: Path) -> Stopwatch:
    """A stopwatch on every stage; `log` is of the kind whose reading is counted."""
    watch = Stopwatch()
    watch.wrap_parts(type(open_source(str(log))))
    for owner, attribute, name in (
        (Reader, "read", "read"),
        (weights, "log_weights", "weights"),
        (Normaliser, "at_cap", "normaliser"),
        (Normaliser, "at_adaptive_cap", "normaliser"),
        (Normaliser, "path", "normaliser"),
        (Normaliser, "mass", "normaliser"),
        (PolicyPair, "two_sided_draws", "normaliser"),
        (value_model, "fit_value_model", "value model"),
        (value_model.ValueModel, "predict", "value model"),
        (BucketSums, "resampled", "resampling"),
        (bootstrap, "resample_counts", "resampling"),
        (bootstrap, "percentile_interval", "resampling"),
        (cap_path, "cap_path", "resampling"),
        (resampling, "replicates", "resampling"),
        (agreement, "figures", "resampling"),
    ):
        watch.wrap(owner, attribute, name)
    return watch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=4)
    parser.add_argument("--rows", type=int, default=150_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_history(folder / "warm", WORLDS["paper"], 1, 2000, 1)  # compile, and load what is loaded once
        history.run_history(folder / "warm" / "manifest.toml", threads=1)
        threadpool_limits(1, user_api="openmp")  # threads that wait for each other spin, and count as work
        watch = watched(folder / "warm" / "test-001" / "control.parquet")
        with watch.stage("simulate"):
            write_history(folder / "history", WORLDS["paper"], arguments.tests, arguments.rows, 0)
        history.run_history(folder / "history" / "manifest.toml", threads=1)
        with watch.stage("the rest"):
            pass
    total = sum(watch.seconds.values())
    print(f"{arguments.tests} tests of 2 × {arguments.rows:,} displays: {total / arguments.tests:.1f} CPU s a test\n")
    print("| stage | share of CPU time | s a test |\n| --- | ---: | ---: |")
    for name, seconds in watch.seconds.items():
        print(f"| {name} | {seconds / total:.0%} | {seconds / arguments.tests:.2f} |")


if __name__ == "__main__":
    main()
