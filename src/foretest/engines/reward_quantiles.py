"""A pass over rewards alone: the quantile of the rewarded rows at which a reward is cut.

It is exact for up to 2^17 rewarded rows, and else that of the 2^17 whose units have the smallest hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np
import pyarrow as pa

from foretest.aggregation.kept_rows import Columns, KeptRows
from foretest.background import in_background
from foretest.displays.batch import Floats
from foretest.displays.merging import merged
from foretest.engines.local import Progress, fold_in_threads
from foretest.engines.spark import fold_in_tasks
from foretest.errors import BadInput
from foretest.log.reader import Reader
from foretest.log.rows import Rows
from foretest.records import dataclass
from foretest.settings.metric_roles import MetricRole
from foretest.settings.settings import Settings
from foretest.settings.winsorising import limits_to_find
from foretest.sources import Source
from foretest.sources.spark_frames import SparkFrame

MOST_ROWS = 1 << 17
_ORDER = ("unit", "r", "m")


@dataclass
class _Rewards:
    """The rewarded rows of some rewards, by name."""

    rows: dict[str, KeptRows] = field(default_factory=dict)

    def add(self, rows: Rows) -> None:
        for name, kept in self.rows.items():
            r = rows.logged_rewards[:, rows.names.index(name)]
            at = np.flatnonzero(r > 0.0)
            some = at[kept.below(rows.unit[at])]
            kept.add({"unit": rows.unit[some], "r": r[some], "m": rows.displays_per_row[some]}, len(at))

    def finish(self) -> _Rewards:
        return self

    def __add__(self, other: _Rewards) -> _Rewards:
        return _Rewards({name: merged([kept, other.rows[name]]) for name, kept in self.rows.items()})

    def to_batch(self) -> pa.RecordBatch:
        """The rows of all rewards, for a task to send; how many were seen stands in every row."""
        parts = [(place, kept.columns(), kept.seen) for place, kept in enumerate(self.rows.values())]
        tables = [
            pa.table({"reward": np.full(len(rows["unit"]), place), **rows, "seen": np.full(len(rows["unit"]), seen)})
            for place, rows, seen in parts
            if rows
        ]
        whole = pa.concat_tables(tables).combine_chunks() if tables else _SCHEMA.empty_table()
        return whole.to_batches()[0] if len(whole) else pa.RecordBatch.from_pylist([], _SCHEMA)

    @classmethod
    def of(cls, names: Iterable[str]) -> _Rewards:
        """No rows of some rewards yet."""
        return cls({name: KeptRows(MOST_ROWS, _ORDER) for name in names})

    @classmethod
    def total(cls, batches: Sequence[pa.RecordBatch], names: Iterable[str]) -> _Rewards:
        """The rows of several tasks."""
        total = cls.of(names)
        for batch in batches:
            of = batch["reward"].to_numpy()
            for place, kept in enumerate(total.rows.values()):
                at = np.flatnonzero(of == place)
                if not len(at):
                    continue
                rows: Columns = {name: batch[name].to_numpy()[at] for name in _ORDER}
                kept.add(rows, int(batch["seen"].to_numpy()[at[0]]))
        return total


_SCHEMA = pa.schema({
    "reward": pa.int64(), "unit": pa.uint64(), "r": pa.float64(), "m": pa.float64(), "seen": pa.int64(),
})  # fmt: skip


def find_limits(
    source: Source, settings: Settings, *, reader: type[Reader] = Reader, threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, float]:  # fmt: skip
    """The limits of the rewards that are cut at a quantile of the log, by reward."""
    quantiles = limits_to_find(settings)
    narrow = _rewards_alone(settings, reader)
    if isinstance(source, SparkFrame):
        rewards = fold_in_tasks(
            source, narrow, lambda: _Rewards.of(quantiles), _Rewards.to_batch,
            lambda batches: _Rewards.total(batches, quantiles),
        ) or _Rewards.of(quantiles)  # fmt: skip
    else:
        rewards = in_background(
            lambda: fold_in_threads(source, narrow, lambda: _Rewards.of(quantiles), threads=threads, progress=progress)
        )
    return {name: _limit(name, quantiles, rewards.rows[name].columns()) for name in quantiles}


def _rewards_alone(settings: Settings, reader: type[Reader]) -> Reader:
    """A reader of rewards, units and what else decides which rewards count."""
    signed = {name: MetricRole(signed=True) for name, table in settings.metrics.items() if table.signed}
    plain = replace(settings, log=replace(settings.log, features=()), metrics=signed)
    return reader(plain).for_value_model()


def _limit(name: str, quantiles: Mapping[str, float], rows: Columns) -> float:
    if not rows:
        raise BadInput(
            f"[metrics.{name}] winsorise = {quantiles[name]:g}: no row of the log has a reward in '{name}', so that it"
            " has no quantile. Give a limit, or leave winsorise out."
        )
    return weighted_quantile(rows["r"], rows["m"], quantiles[name])


def weighted_quantile(values: Floats, weights: Floats, quantile: float) -> float:
    """The smallest value up to which at least this share of the weight lies.

    >>> weighted_quantile(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 1.0, 1.0, 1.0]), 0.75)
    3.0
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    at = int(np.searchsorted(below, quantile * below[-1] * (1.0 - 1e-12)))
    return float(values[order[min(at, len(order) - 1)]])
