"""Where the predicted rewards of items come from: list columns of the log, or a model of the items' features."""

from __future__ import annotations

from collections.abc import Mapping

from foretest.errors import BadInput, nearest
from foretest.settings.analysis import Analysis
from foretest.settings.log_columns import LogColumns


def prediction_columns(log: LogColumns, analysis: Analysis) -> dict[str, str]:
    """The list column with the predicted rewards of items, by reward; empty where none is named."""
    given = analysis.predictions
    if given is None:
        return {}
    return dict(given) if isinstance(given, Mapping) else {log.rewards[0]: given}


def predicted_metrics(log: LogColumns, analysis: Analysis) -> tuple[str, ...]:
    """The rewards that items have a prediction of: where the log says which slot earned a reward, these alone."""
    named = log.rewards if log.item_features else prediction_columns(log, analysis)
    return tuple(name for name in log.rewards if name in named and (not log.slot_rewards or name in log.slot_rewards))


def check_predictions(log: LogColumns, analysis: Analysis) -> None:
    """Refuse predictions that no estimator could use."""
    given = analysis.predictions
    if given is None:
        return
    if log.item_features:
        raise BadInput(
            "[analysis] predictions and [log] item_features are both given: the predicted reward of an item is a column"
            " of the log, or fitted on the items' features. Leave one of them out."
        )
    if log.ranking is None:
        raise BadInput("[analysis] predictions is given without [log] ranking: name the column of the shown items too.")
    if isinstance(given, str) and len(log.rewards) > 1:
        raise BadInput(
            f'[analysis] predictions = "{given}" does not say which reward it predicts: the rewards are'
            f' {", ".join(log.rewards)}. Write a table, as in {{{log.rewards[0]} = "{given}"}}.'
        )
    for name in prediction_columns(log, analysis):
        if name not in log.rewards:
            raise BadInput(
                f"[analysis] predictions names '{name}', which is no reward.{nearest(name, log.rewards)}"
                f" The rewards are: {', '.join(log.rewards)}."
            )
    if not predicted_metrics(log, analysis):
        raise BadInput(
            f"[analysis] predictions is of {', '.join(prediction_columns(log, analysis))}, but [log] slot_rewards of"
            f" {', '.join(log.slot_rewards or ())}: give the slots' rewards of what is predicted."
        )
