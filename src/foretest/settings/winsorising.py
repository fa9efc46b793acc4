"""`[metrics.NAME] winsorise`: rewards above a limit count as the limit, which is given or a quantile of the log."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from foretest.errors import BadInput, check_number, is_finite_number
from foretest.settings.unknown_keys import refuse_unknown

if TYPE_CHECKING:
    from foretest.settings.settings import Settings

_EXPECTED = (
    "expected a quantile below 1, as in winsorise = 0.999, or a limit, as in winsorise = {limit = 50.0}, which then"
    " counts for every larger reward"
)


_LOOKS_LIKE_PERCENT = 90  # and below 100


class Winsorising(NamedTuple):
    """How one reward is cut."""

    limit: float | None  # None until it is found in the log
    quantile: float | None  # of the rewarded rows; None where the limit was given


def winsorising(given: Any) -> Winsorising | None:
    """The setting, checked; None where there is none.

    >>> winsorising(0.999), winsorising(50)
    (Winsorising(limit=None, quantile=0.999), Winsorising(limit=50.0, quantile=None))
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        refuse_unknown("winsorise", given, ["limit", "quantile"])
        limit, quantile = given.get("limit"), given.get("quantile")
        if limit is not None:
            check_number("winsorise limit", limit, above=0.0)
        if quantile is not None:
            check_number("winsorise quantile", quantile, above=0.0, below=1.0)
        if limit is None and quantile is None:
            raise BadInput(f"winsorise = {given!r}: {_EXPECTED}.")
        return Winsorising(None if limit is None else float(limit), None if quantile is None else float(quantile))
    if not is_finite_number(given) or given <= 0.0:
        raise BadInput(f"winsorise = {given!r}: {_EXPECTED}.")
    if _LOOKS_LIKE_PERCENT <= given < 100:
        raise BadInput(
            f"winsorise = {given!r}: a quantile in percent, or a limit? Write winsorise = {given / 100:g}, or"
            f" winsorise = {{limit = {given:g}}}."
        )
    return Winsorising(None, float(given)) if given < 1.0 else Winsorising(float(given), None)


def limits_to_find(settings: Settings) -> dict[str, float]:
    """The quantiles of rewards whose limit is still to be found."""
    cut = {name: table.winsorising for name, table in settings.metrics.items()}
    return {name: w.quantile for name, w in cut.items() if w is not None and w.limit is None and w.quantile is not None}


def found_limits(settings: Settings) -> dict[str, float]:
    """The limits that were found in a log."""
    cut = {name: table.winsorising for name, table in settings.metrics.items()}
    return {
        name: w.limit for name, w in cut.items() if w is not None and w.limit is not None and w.quantile is not None
    }


def with_limits(settings: Settings, limits: Mapping[str, float]) -> Settings:
    """The settings with the limits that were found."""
    tables = dict(settings.metrics)
    for name, quantile in limits_to_find(settings).items():
        if name in limits:
            tables[name] = dataclasses.replace(tables[name], winsorise={"limit": limits[name], "quantile": quantile})
    return dataclasses.replace(settings, metrics=tables)


def refuse_limits_to_find(settings: Settings, why: str) -> None:
    """Refuse a quantile where its limit would differ from file to file."""
    for name, quantile in limits_to_find(settings).items():
        raise BadInput(
            f"[metrics.{name}] winsorise = {quantile:g} is a quantile of one log, and {why}: write the limit, as in"
            " winsorise = {limit = 50.0}; a run on a typical log says which it is."
        )
