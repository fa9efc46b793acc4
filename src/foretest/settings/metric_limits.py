"""What metrics that are made of others cannot have: refused where the settings ask for it."""

from __future__ import annotations

from foretest.errors import BadInput
from foretest.settings.analysis import BOUNDED, Analysis
from foretest.settings.log_columns import MULTIPLICITIES, LogColumns, multiplicities_of
from foretest.settings.metric_definitions import MetricDefinitions
from foretest.settings.predictions import prediction_columns


def refuse_metrics(metrics: MetricDefinitions, log: LogColumns, analysis: Analysis) -> None:
    """Refuse intervals that know no losses and no ratios, units that are not known, predictions of losses."""
    no_bound = [*(one.name for one in metrics.differences), *(one.name for one in metrics.ratios)]
    if analysis.interval in BOUNDED and no_bound:
        raise BadInput(
            f'[analysis] interval = "{analysis.interval}" is for rewards of 0 or more, and {no_bound[0]} is not one:'
            ' take interval = "bootstrap" or "delta", or leave the metric out.'
        )
    if metrics.per_unit:
        name = metrics.per_unit[0].name
        if log.unit is None:
            raise BadInput(
                f'[metrics.{name}] per = "unit": name the column of units in [log] unit, as in unit = "user".'
            )
        for role in multiplicities_of(log):
            raise BadInput(
                f'[metrics.{name}] per = "unit": of {MULTIPLICITIES[role].log} ([log] {role}) nobody knows how many'
                f" displays a {log.unit} had. Leave the metric out, or take a log with all rows."
            )
    parts = {part.name for part in metrics.parts}
    for name in prediction_columns(log, analysis):
        if name in log.rewards and name not in parts:
            raise BadInput(
                f"[analysis] predictions of {name}: predictions are of rewards of 0 or more, and it is signed."
            )
