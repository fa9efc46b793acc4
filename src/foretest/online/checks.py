"""What an online test refuses: settings that it does not have, one log in both arms, units in both arms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from foretest.displays.column_types import is_text_key
from foretest.errors import BadInput, nearest
from foretest.online.arms import Arms
from foretest.online.sample_ratio import compared_units
from foretest.settings.analysis import BOUNDED
from foretest.sources import LakeLog, LogFiles, Source
from foretest.stores import Location

ANALYSIS_KEYS = ("confidence_level", "interval", "n_resamples", "buckets", "seed", "window")


@contextmanager
def naming_log(arm: str) -> Iterator[None]:
    """A fault inside the block says which arm's log it is in."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"the {arm}'s log: {error}") from None


def refuse_unused_settings(analysis: dict[str, Any]) -> None:
    """Refuse analysis settings that only an offline test has."""
    for key in analysis:
        if key not in ANALYSIS_KEYS:
            known = ", ".join(ANALYSIS_KEYS)
            raise BadInput(f"the online test has no setting '{key}'.{nearest(key, ANALYSIS_KEYS)} Known: {known}.")
    if analysis.get("interval") in BOUNDED:
        raise BadInput(f'interval = "{analysis["interval"]}" is not for online tests. Known: bootstrap, delta.')


def refuse_same_log(control_log: Any, treatment_log: Any) -> None:
    """Refuse one object as both logs; of paths, see `refuse_same_files`."""
    if control_log is treatment_log and not isinstance(control_log, str | Location):
        raise BadInput("the same log is given as control and as treatment: an A/B test has two.")


def refuse_same_files(control: Source, treatment: Source) -> None:
    """Refuse a file that is in both logs."""
    if isinstance(control, LogFiles | LakeLog) and isinstance(treatment, LogFiles | LakeLog):
        control_files = {path.resolve() for path in control.paths}
        for path in treatment.paths:
            if path.resolve() in control_files:
                raise BadInput(f"{path}: this file is in the control's log and in the treatment's. Leave one out.")


def refuse_other_unit_type(unit: str | None, control: Source, treatment: Source) -> None:
    """Refuse units that are numbers in one log and text in the other: 1 and "1" are two units, and a unit in both arms
    would not be noticed."""
    if unit is None:
        return
    [(control_name, control_schema), *_], [(treatment_name, treatment_schema), *_] = (
        control.schemas(),
        treatment.schemas(),
    )
    control_type, treatment_type = control_schema.field(unit).type, treatment_schema.field(unit).type
    if is_text_key(control_type) != is_text_key(treatment_type):
        raise BadInput(
            f"the treatment's log: {treatment_name}: column '{unit}' is {treatment_type}, but {control_type} in the"
            f" control's, {control_name}: it must be of one type in both. Convert one of them."
        )


def refuse_shared_units(arms: Arms, unit: str | None) -> None:
    """Refuse units that are in both arms."""
    compared = compared_units(arms)
    if compared is None:
        return
    control, treatment = (unit_days.units(compared.highest) for unit_days in (compared.control, compared.treatment))
    shared = len(np.intersect1d(control, treatment, assume_unique=True))
    if not shared:
        return
    count = f"{shared:,} unit{'s are' if shared != 1 else ' is'} in both arms"
    where = f"(column '{unit}'; the control has {len(control):,}, the treatment {len(treatment):,})"
    if not compared.complete:
        where = (
            f"(column '{unit}'), of the {len(control):,} and {len(treatment):,} units of smallest hash that were"
            " compared"
        )
    raise BadInput(f"{count} {where}: a unit must see one policy only. Leave such units out of both logs.")
