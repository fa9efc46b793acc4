"""What an online test of the baseline would vary by, where several policies logged: by the baseline's own rows.

The value R_p of a pooled log is an estimate from all rows, weighted by π_p/π_mix; its error says nothing of how users
vary who are shown the baseline alone, as those of an online control arm are.
"""

from __future__ import annotations

from typing import NamedTuple

from foretest.background import in_background
from foretest.engines.local import fold_in_threads
from foretest.log.logger_rows import rows_of_logger
from foretest.online.arms import Arm, ArmReader
from foretest.online.comparison import arm_error
from foretest.online.test import OnlineTest
from foretest.policies.pooled import Pooled
from foretest.settings.settings import Settings
from foretest.sources import Source


class ControlArm(NamedTuple):
    """The rows that an online control arm would be like: the error of each part's mean, and how many units there
    are."""

    errors: list[float]  # by place in the parts of the metrics
    units: int


def baseline_rows(source: Source, settings: Settings, threads: int | None) -> ControlArm:
    """The rows of the baseline of a pooled log, in one pass."""
    pooled, column = settings.control, settings.log.logger
    assert isinstance(pooled, Pooled)
    assert column is not None
    parts, analysis, log = settings.definitions.parts, settings.analysis, settings.log
    reader = ArmReader(OnlineTest.from_settings(settings).settings)
    rows = rows_of_logger(source, column, pooled.names, pooled.baseline)

    def start() -> Arm:
        return Arm.empty(len(parts), analysis.buckets, log.unit is None, log.keep is not None)

    arm = in_background(lambda: fold_in_threads(rows, reader, start, threads=threads))
    return ControlArm([arm_error(arm, m) for m in range(len(parts))], arm.n_units)
