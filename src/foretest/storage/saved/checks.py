"""Saved aggregates that are refused: made with other settings, estimators or another value model than is asked for."""

from __future__ import annotations

from foretest.errors import BadInput
from foretest.estimators import Estimator
from foretest.settings.settings import Settings
from foretest.storage.saved.differences import (
    FREE,
    estimator_text,
    find_difference,
    value_text,
    with_setting,
)
from foretest.storage.saved.json_values import tables_of
from foretest.storage.saved.logger_days import with_shares, without_shares
from foretest.storage.saved.recipe import Recipe


def refuse_other_recipe(mine: Recipe, name: str, theirs: Recipe, other_name: str) -> None:
    """Refuse to add up aggregates that were made differently, and name the first difference."""
    difference = find_difference(without_shares(mine.settings), without_shares(theirs.settings))
    if difference is not None:
        key, here, there = difference
        raise BadInput(
            f"{name} was made {with_setting(key, here)}, {other_name} {with_setting(key, there)}: their sums do"
            f" not add up. Fold one of the logs again with foretest aggregate{_one_cap(key, mine, theirs)}."
        )
    _refuse_other_estimators(mine, name, theirs, other_name)
    if mine.value_model != theirs.value_model:
        raise BadInput(
            f"{name} was made with another value model V(x) than {other_name}: a cross-fitted one belongs to its"
            " log. Fold both with the same: name a column that holds V (value), a strata column (strata), or one"
            " log that it is fitted on (value_log)."
        )
    if mine.item_model != theirs.item_model:
        raise BadInput(
            f"{name} was made with another reward model than {other_name}: a cross-fitted one belongs to its log. Fit"
            " both on one log (value_log), or give predictions of single actions as a column (predictions)."
        )


def _refuse_other_estimators(mine: Recipe, name: str, theirs: Recipe, other_name: str) -> None:
    here, there = ([record["label"] for record in recipe.estimators] for recipe in (mine, theirs))
    if here != there:
        raise BadInput(
            f"{name} was made with the estimators {', '.join(here)}, {other_name} with {', '.join(there)}:"
            " their sums do not add up. Fold one of the logs again with foretest aggregate."
        )
    for a, b in zip(mine.estimators, theirs.estimators, strict=True):
        if a != b:
            raise BadInput(f"{name} was made with {estimator_text(a)}, {other_name} with {estimator_text(b)}.")


def _one_cap(key: str, mine: Recipe, theirs: Recipe) -> str:
    """What to do where the caps differ because one was chosen for each log; empty where that is not the reason."""
    if key != "cap" or (mine.cap_choice is None and theirs.cap_choice is None):
        return ""
    cap = value_text(theirs.settings["analysis"]["cap"])
    return f': cap = "auto" chooses a cap for each log, so give all of them one, as in cap = {cap}'


def refuse_other_settings(recipe: Recipe, name: str, settings: Settings) -> None:
    """Refuse a test whose settings differ from those of the fold in more than what may change."""
    difference = find_difference(recipe.settings, tables_of(with_shares(recipe.with_its_cap(settings), recipe.days)))
    if difference is not None:
        key, mine, theirs = difference
        now = f"the settings say {value_text(theirs)}" if theirs is not None else "the settings name none"
        raise BadInput(
            f"{name} was made {with_setting(key, mine)}, {now}. Once a log is folded, only {', '.join(FREE[:-1])}"
            f" and {FREE[-1]} can change: fold it again with foretest aggregate, or leave {key} as it was."
        )
    labels = [record["label"] for record in recipe.estimators]
    for item in settings.analysis.estimators or ():
        label = item.label if isinstance(item, Estimator) else item
        if label not in labels:
            raise BadInput(
                f"{name} was made without {label}: it has {', '.join(labels)}. Fold the log again with foretest"
                " aggregate, or leave it out."
            )
