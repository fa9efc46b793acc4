"""What an online test of the baseline would vary by, where several policies logged: by the baseline's own rows.

The value R_p of a pooled log is an estimate from all rows, weighted by π_p/π_mix; its error says nothing about how
users vary who are shown the baseline alone, as those of an online control arm are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from foretest.background import in_background
from foretest.files import finite_or_none
from foretest.log.logger_rows import rows_of_baseline
from foretest.online.arms import ArmReader, fold_arm
from foretest.online.metric_arms import MetricArm, metric_places
from foretest.online.test import OnlineTest
from foretest.settings.settings import Settings
from foretest.sources import Source


class ControlArm(NamedTuple):
    """The rows that an online control arm would be like: the error of each metric's mean, and how many units there
    are."""

    errors: dict[int, float | None]  # by place among the metrics that have sums; else that of the log's own mean
    units: int


def baseline_rows(source: Source, settings: Settings, threads: int | None) -> ControlArm:
    """The rows of the baseline of a log of several loggers, in one pass."""
    plain = replace(settings, online=replace(settings.online, covariate=None))
    reader = ArmReader(OnlineTest.from_settings(plain).settings)
    rows = rows_of_baseline(source, settings)
    arm = in_background(lambda: fold_arm(rows, reader, threads=threads))
    definitions, places = settings.definitions, metric_places(settings)
    errors = {
        m: finite_or_none(MetricArm(arm, definitions.formulas[name], (places[name],)).error)
        for name, m in definitions.linear.items()
    }
    return ControlArm(errors, arm.n_units)
