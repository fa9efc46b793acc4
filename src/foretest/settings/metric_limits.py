"""What metrics that are made of others cannot have: refused where the settings ask for it."""

from __future__ import annotations

from foretest.errors import BadInput
from foretest.settings.analysis import Analysis
from foretest.settings.log_columns import LogColumns
from foretest.settings.metric_definitions import MetricDefinitions
from foretest.settings.predictions import prediction_columns


def refuse_metrics(metrics: MetricDefinitions, log: LogColumns, analysis: Analysis) -> None:
    """Refuse settings under which a metric has no numbers, and predictions of losses."""
    for formula in metrics.formulas.values():
        formula.refuse(log, analysis)
    parts = {part.name for part in metrics.parts}
    for name in prediction_columns(log, analysis):
        if name in log.rewards and name not in parts:
            raise BadInput(
                f"[analysis] predictions of {name}: predictions are of rewards of 0 or more, and it is signed."
            )
