"""Errors in what a user gave, as one sentence: what is wrong, where, what was expected, what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from foretest.formatting import visible_lines

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt


class BadInput(ValueError):
    """Something the user can fix. The command line prints the message and exits with code 2.

    >>> import foretest as ft
    >>> try:
    ...     ft.Analysis(cap=-1.0)
    ... except ft.BadInput as error:
    ...     print(error)
    cap = -1.0: expected a number above 0.
    """

    def __str__(self) -> str:
        return visible_lines(super().__str__())  # the names in it have any characters


class RowFault(BadInput):
    """A fault of some rows of one column, for policies of your own: the reader adds the file, the row and the count.

    Parameters
    ----------
    kind: a word that tells two faults of one column apart.
    column: the column.
    rows: the indices of the rows within the current batch.
    what: what is wrong with them.
    remedy: what to do.

    >>> import numpy as np
    >>> import foretest as ft
    >>> fault = ft.RowFault("price", "prices", np.array([3]), "is below 0", "Log the price that was shown.")
    >>> fault.column
    'prices'
    """

    def __init__(self, kind: str, column: str, rows: npt.NDArray[np.int64], what: str, remedy: str) -> None:
        super().__init__(f"column '{column}': {what}. {remedy}")
        self.kind, self.column, self.rows, self.what, self.remedy = kind, column, rows, what, remedy

    def sentence(self, source: str, row: int, count: int) -> str:
        """The full message, once the whole log has been searched for rows that share the fault."""
        return self._sentence(f"{source}: column '{self.column}', row {row} (the first row is 0)", "row", count)

    def sentence_of_display(self, source: str, column: str, display: Any, count: int) -> str:
        """The same for a log with one row per display and item: by the display, and the column that the user has."""
        return self._sentence(f"{source}: column '{column}', display {display!r}", "display", count)

    def _sentence(self, where: str, thing: str, count: int) -> str:
        share = f"no other {thing} has" if count == 1 else f"{count:,} {thing}s have"
        return f"{where}: {self.what}; {share} this fault. {self.remedy}"


#: what estimators and settings are called elsewhere, and here: their spelling would suggest another one
OTHER_NAMES = {
    "ipw": "is", "ips": "is", "snipw": "nis", "snips": "nis", "sndr": "point-dr-adaptive",
    "lambda_": "cap", "alpha": "confidence_level", "random_state": "seed", "n_bootstrap_samples": "n_resamples",
}  # fmt: skip


def nearest(name: str, options: Iterable[str]) -> str:
    """' Did you mean …?' with the option that has this name elsewhere, or the closest one, or an empty text.

    >>> nearest("click", ["clicks", "user"])
    " Did you mean 'clicks'?"
    >>> nearest("ips", ["is", "iips"])
    " Did you mean 'is'?"
    """
    import difflib  # only where something is wrong: a service imports this module too

    lower = {option.lower(): option for option in options}
    here = OTHER_NAMES.get(name.lower())
    if here in lower:
        return f" Did you mean '{here}'?" + (" It is 1 − alpha." if name.lower() == "alpha" else "")
    if name.lower() == "dm" and "dr" in lower:
        return " There is no direct method: 'dr' corrects a model by the rewards in the log."
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    return f" Did you mean '{lower[close[0]]}'?" if close else ""


def nearest_file(path: Path) -> str:
    """' Did you mean …?' with the closest name in the folder of the path, or an empty text."""
    try:
        return nearest(path.name, [p.name for p in path.parent.iterdir()])
    except OSError:
        return f" There is no folder {path.parent}."


def choose(kind: str, name: object, options: Iterable[str]) -> str:
    """`name` if it is one of the options, else a BadInput that lists them and names the nearest."""
    options = list(options)
    if isinstance(name, str) and name in options:
        return name
    hint = nearest(name, options) if isinstance(name, str) else ""
    raise BadInput(f"unknown {kind} {name!r}.{hint} Known: {', '.join(options)}.")


def is_finite_number(value: Any) -> bool:
    """Is it a number that a float can hold: no bool, not NaN, not infinite?

    >>> is_finite_number(3), is_finite_number(float("inf")), is_finite_number(10**400), is_finite_number(True)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of more than 308 digits
        return False


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
) -> None:
    """Refuse a value that is not a finite number within the limits."""
    good = is_finite_number(value)
    limits = []
    if above is not None:
        good = good and value > above
        limits.append(f"above {above:g}")
    if at_least is not None:
        good = good and value >= at_least
        limits.append(f"of at least {at_least:g}")
    if below is not None:
        good = good and value < below
        limits.append(f"below {below:g}")
    if not good:
        finite = "finite " if isinstance(value, float) and not math.isfinite(value) else ""
        percent = f" For {value} % write {value / 100:g}." if below == 1.0 and _is_percent(value) else ""
        raise BadInput(f"{name} = {value!r}: expected a {finite}number {' and '.join(limits)}.{percent}")


def _is_percent(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 50 <= value < 100


def check_integer(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Refuse a value that is not a whole number of at least `least` and at most `most`."""
    if most is not None and isinstance(value, Integral) and int(value) > most:
        raise BadInput(f"{name} = {value!r}: expected a whole number of at most {most}.")
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise BadInput(f"{name} = {value!r}: expected a whole number of at least {least}.")
