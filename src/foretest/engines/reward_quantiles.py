"""The limits of rewards that are cut at a quantile of the log: of its rewarded rows.

A quantile is exact for up to 2^17 rewarded rows, and else that of the 2^17 whose units have the smallest hashes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from foretest.aggregation.kept_rows import KeptRows
from foretest.displays.batch import Floats
from foretest.engines.scan import Search
from foretest.errors import BadInput
from foretest.log.reader import Reader
from foretest.log.rows import Rows
from foretest.records import dataclass
from foretest.settings.metric_roles import MetricRole
from foretest.settings.settings import Settings
from foretest.settings.winsorising import limits_to_find, with_limits
from foretest.sources import Chunk, Source

MOST_ROWS = 1 << 17
_ORDER = ("unit", "r", "m")


@dataclass
class _Rewards:
    """The rewarded rows of some rewards, by name."""

    rows: dict[str, KeptRows]

    def add(self, rows: Rows) -> None:
        for name, kept in self.rows.items():
            r = rows.logged_rewards[:, rows.names.index(name)]
            at = np.flatnonzero(r > 0.0)
            some = at[kept.below(rows.unit[at])]
            kept.add({"unit": rows.unit[some], "r": r[some], "m": rows.displays_per_row[some]}, len(at))


@dataclass(frozen=True)
class RewardLimits(Search[dict[str, float]]):
    """The limits of the rewards that are cut at a quantile of the log, by reward."""

    stage = "limits"

    @property
    def is_open(self) -> bool:
        return bool(limits_to_find(self.settings))

    @cached_property
    def _reader(self) -> Reader:
        """A reader of rewards, units and what else decides which rewards count."""
        signed = {name: MetricRole(signed=True) for name, table in self.settings.metrics.items() if table.signed}
        plain = replace(self.settings, log=replace(self.settings.log, features=()), metrics=signed)
        return Reader(plain).for_value_model()

    @property
    def columns(self) -> tuple[str, ...]:
        return self._reader.columns

    def read(self, chunk: Chunk) -> Rows:
        return self._reader.read(chunk)

    def start(self) -> _Rewards:
        return _Rewards({name: KeptRows(MOST_ROWS, _ORDER) for name in limits_to_find(self.settings)})

    def answer(self, counts: _Rewards, source: Source) -> dict[str, float]:
        return {
            name: _limit(name, quantile, counts.rows[name]) for name, quantile in limits_to_find(self.settings).items()
        }

    def found(self, settings: Settings, answer: dict[str, float]) -> Settings:
        return with_limits(settings, answer)


def _limit(name: str, quantile: float, kept: KeptRows) -> float:
    rows = kept.columns()
    if not rows:
        raise BadInput(
            f"[metrics.{name}] winsorise = {quantile:g}: no row of the log has a reward in '{name}', so that it"
            " has no quantile. Give a limit, or leave winsorise out."
        )
    return weighted_quantile(rows["r"], rows["m"], quantile)


def weighted_quantile(values: Floats, weights: Floats, quantile: float) -> float:
    """The smallest value up to which at least this share of the weight lies.

    >>> weighted_quantile(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 1.0, 1.0, 1.0]), 0.75)
    3.0
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    at = int(np.searchsorted(below, quantile * below[-1] * (1.0 - 1e-12)))
    return float(values[order[min(at, len(order) - 1)]])
