"""The examination curve in a line of text: for the terminal, for notebooks and for Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, log10
from typing import Any

from foretest.files import finite_or_none
from foretest.formatting import some_of

FITTED = "fit"  # the kind of a curve that comes from the log; any other was given
_SLOTS, _VALUES = 12, 4  # numbers of a curve, and curves of a column, in the line


def examination_line(examination: Mapping[str, Any]) -> str:
    """A metric's curve with its standard errors, and where it comes from.

    >>> examination_line({"kind": "fit", "theta": [1.0, 0.601, 0.4071], "std_error": [0.0, 0.021, 0.0049]})
    'examination: 1, 0.60 ± 0.02, 0.407 ± 0.005 (fitted from the log, ± std error)'
    >>> examination_line({"kind": "given", "theta": [1.0, 0.6]})
    'examination: 1, 0.6 (given)'
    >>> examination_line({"kind": "given", "column": "device", "curves": {"phone": [1.0, 0.4], "desktop": [1.0, 0.7]}})
    'examination by device: phone 1, 0.4; desktop 1, 0.7 (given)'
    """
    if "curves" in examination:
        curves = [f"{label} {curve_text(curve)}" for label, curve in examination["curves"].items()]
        more = len(curves) - _VALUES
        shown = "; ".join(curves[:_VALUES]) + (f" and {more} more" if more > 0 else "")
        return f"examination by {examination['column']}: {shown} (given)"
    if examination["kind"] == FITTED:
        curve = curve_text(examination["theta"], examination["std_error"])
        return f"examination: {curve} (fitted from the log, ± std error)"
    return f"examination: {curve_text(examination['theta'])} (given)"


def curve_text(theta: Sequence[float], errors: Sequence[float | None] | None = None) -> str:
    """How likely users look at each slot, best slot first.

    >>> curve_text([1.0, 0.5], [0.0, 0.1]), curve_text([3, 2, 1])
    ('1, 0.50 ± 0.10', '3, 2, 1')
    """
    known = [None] * len(theta) if errors is None else errors
    return some_of([_number(value, error) for value, error in zip(theta, known, strict=True)], _SLOTS)


def _number(value: float, error: float | None) -> str:
    error = None if error is None else finite_or_none(error)
    if not error:  # given, or the first slot, which is 1 by definition
        return f"{value:.3g}"
    digits = min(6, max(2, -floor(log10(error))))
    return f"{value:.{digits}f} ± {error:.{digits}f}"
