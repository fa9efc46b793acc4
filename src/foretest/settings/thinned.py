"""What settings of a thinned log may not ask for."""

from __future__ import annotations

from foretest.errors import BadInput
from foretest.settings.analysis import BOUNDED
from foretest.settings.log_columns import MULTIPLICITIES, multiplicities_of
from foretest.settings.settings import Settings


def refuse_bounds(settings: Settings) -> None:
    """Refuse intervals that need to know every unit of a log from which rows were left out."""
    log, interval = settings.log, settings.analysis.interval
    for role, column in multiplicities_of(log).items() if interval in BOUNDED else ():
        raise BadInput(
            f'interval = "{interval}" needs all rows of every unit, and [log] {role} = "{column}" says that'
            f' {MULTIPLICITIES[role].rows}: use "bootstrap" or "delta".'
        )


def refuse_covariate(settings: Settings) -> None:
    """Refuse a covariate where rows of units were left out: units of which no row is left are missing from its mean,
    and more of them in the arm whose units have fewer displays."""
    covariate, log = settings.online.covariate, settings.log
    for role, column in multiplicities_of(log).items() if covariate is not None and log.unit is not None else ():
        raise BadInput(
            f'[online] covariate = "{covariate}" needs every unit, and [log] {role} = "{column}" says that'
            f" {MULTIPLICITIES[role].rows}, so that units of column '{log.unit}' may be missing altogether. Leave"
            " covariate out, or give logs that were not thinned."
        )
