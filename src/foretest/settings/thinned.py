"""What settings of a thinned log may not ask for."""

from __future__ import annotations

from foretest.errors import BadInput
from foretest.settings.analysis import BOUNDED
from foretest.settings.settings import Settings


def refuse_bounds(settings: Settings) -> None:
    """Refuse intervals that need to know every unit of a log from which rows were left out."""
    log, interval = settings.log, settings.analysis.interval
    if log.keep is not None and interval in BOUNDED:
        raise BadInput(
            f'interval = "{interval}" needs all rows of every unit, and [log] keep = "{log.keep}" says that rows were'
            ' left out: use "bootstrap" or "delta".'
        )
