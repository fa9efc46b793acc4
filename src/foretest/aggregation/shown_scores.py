"""What the treatment's scores say of the shown items, against the items of drawn rankings.

Given the context, what was shown is a draw of the control, whatever the treatment's scores are, unless they were
computed from it. Within a display ρ is the residual of the treatment's scores on the control's, scaled to unit mean
square over the candidates. Of the shown items S_1 = Σ ρ and S_2 = Σ (|ρ| − its mean over the candidates): less their
means over rankings drawn from the control, both have mean 0 if the scores do not know the draw.

The columns are found display by display, so that samples of parts of a log join: |ρ| with the display's own slope, and
S_1 as two sums that give it for any slope (`residual_at_one_slope`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.treatment_scores import common_scores, scores_of
from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged, places_within
from foretest.policies.base import Policy
from foretest.policies.own_candidates import OwnCandidates, places_column

# Σ over the items shown, less the mean over draws: of the residual with the display's own slope, not scaled yet; of the
# control's centred scores; of |ρ| less its mean
RESIDUAL, CONTROL, SIZE = "shown_residual", "shown_control", "shown_residual_size"
SLOPE = "score_slope"  # of the treatment's scores on the control's, in the display
RESIDUAL_SPREAD, CONTROL_SPREAD = "score_residual_spread", "score_control_spread"  # root mean squares of both
SCORED = "shown_scored"  # with candidates of its own: how many shown items the treatment scores, less the mean too
COLUMNS = (RESIDUAL, CONTROL, SIZE, SLOPE, RESIDUAL_SPREAD, CONTROL_SPREAD)  # of every display; SCORED besides
_ROUNDING = 1e-7  # of scores: below it a residual is what single precision leaves
_NOTHING = 1e-6  # of a spread or a number of items: what rounding leaves of equal ones
_AT_A_TIME = 2048  # displays


class _Items(NamedTuple):
    """The items that both policies score, display by display."""

    row: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]  # among the display's candidates
    control: Floats
    treatment: Floats


def shown_scores(control: Policy, treatment: Policy, displays: Displays, positions: npt.NDArray[np.int32]) -> Columns:
    """The columns of some displays; none where a policy has no scores.

    `positions` is displays × rankings × slots: the ranking shown, and those drawn from the policy that showed it.
    """
    items = _common_items(control, treatment, displays)
    if items is None:
        return {}
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # of scores of 1e307
        fit = _fitted(items, len(displays))
        scaled = np.abs(fit.residual * np.where(fit.residual_spread > 0.0, 1.0 / fit.residual_spread, 0.0)[items.row])
        sizes = scaled - _row_means(scaled, items.row, len(displays))[items.row]
        of_items = {RESIDUAL: fit.residual, CONTROL: fit.control, SIZE: sizes}
        if isinstance(treatment, OwnCandidates):
            of_items[SCORED] = np.ones(len(sizes))
        table, first = np.zeros((len(of_items), int(displays.eligible.sum()) + len(displays))), _places_before(displays)
        for line, values in zip(table, of_items.values(), strict=True):
            line[first[items.row] + items.place] = values
        columns: Columns = dict(zip(of_items, _less_their_means(table, first, positions), strict=True))
        # where only one ranking can be shown, rounding is left
        units = {RESIDUAL: fit.residual_spread, CONTROL: fit.control_spread}
        for name, column in columns.items():
            column[~(np.abs(column) > _NOTHING * units.get(str(name), 1.0))] = 0.0
        columns |= {SLOPE: fit.slope, RESIDUAL_SPREAD: fit.residual_spread, CONTROL_SPREAD: fit.control_spread}
        columns = {name: column.astype(np.float32) for name, column in columns.items()}
        usable = np.isfinite(np.stack(list(columns.values()))).all(axis=0)
    return {name: np.where(usable, column, np.float32(0.0)) for name, column in columns.items()}


def residual_at_one_slope(columns: Columns) -> Floats:
    """S_1 of every display with one slope for all, less its mean over draws; 0 where the treatment follows the control.

    With β of the display and b the control's centred scores, the residual at another slope is r + (β − slope)·b. Its
    mean square over the candidates is that of r and (β − slope)² times that of b, as r and b are orthogonal.
    """
    slope, control, residual = (columns[name].astype(np.float64) for name in (SLOPE, CONTROL_SPREAD, RESIDUAL_SPREAD))
    scale = control.max(initial=0.0)
    weights = np.square(control / scale) if scale > 0.0 else np.ones(len(control))
    common = float(weights @ slope / weights.sum()) if len(slope) else 0.0
    further = slope - common
    spread = np.hypot(residual, further * control)
    follows = spread <= _NOTHING * abs(common) * control
    return np.where(follows, 0.0, columns[RESIDUAL] + further * columns[CONTROL]) / np.where(follows, 1.0, spread)


def _places_before(displays: Displays) -> npt.NDArray[np.int64]:
    """Where each display's candidates begin in a table with a 0 before them, for slots (−1) that it does not have."""
    return np.asarray(np.cumsum(displays.eligible + 1) - displays.eligible)


def _common_items(control: Policy, treatment: Policy, displays: Displays) -> _Items | None:
    p, t = (scores_of(policy, displays) for policy in (control, treatment))
    if p is None or t is None:
        return None
    common = common_scores(treatment, displays, p, t)
    lists = (p, t) if common is None else common
    row = np.repeat(np.arange(len(displays)), lists[0].lengths)
    if common is None:
        place = places_within(p.lengths)
    else:
        places: Ragged = displays[places_column(treatment.candidates)]  # type: ignore[attr-defined]
        place = places.flat()
        place = place[place < np.repeat(p.lengths, places.lengths)]
    return _Items(row, place, *(scores.flat().astype(np.float64) for scores in lists))


class _Fit(NamedTuple):
    """The treatment's scores on the control's, display by display."""

    residual: Floats  # of every item
    control: Floats  # centred scores
    slope: Floats  # of every display
    residual_spread: Floats
    control_spread: Floats


def _fitted(items: _Items, displays: int) -> _Fit:
    """The fit; residuals are 0 where the treatment follows the control to rounding."""
    levels, centred = [], []
    for scores in (items.control, items.treatment):
        levels.append(np.sqrt(_row_means(np.square(scores), items.row, displays)))
        centred.append(scores - _row_means(scores, items.row, displays)[items.row])
    control, treatment = centred
    squares = _row_means(np.square(control), items.row, displays)
    slope = np.where(squares > 0.0, _row_means(control * treatment, items.row, displays) / squares, 0.0)
    residual = treatment - slope[items.row] * control
    spread = np.sqrt(_row_means(np.square(residual), items.row, displays))
    spread[~(spread > _ROUNDING * (levels[1] + np.abs(slope) * levels[0]))] = 0.0
    residual[(spread == 0.0)[items.row]] = 0.0
    return _Fit(residual, control, slope, spread, np.sqrt(squares))


def _row_means(values: Floats, row: npt.NDArray[np.int64], rows: int) -> Floats:
    counts = np.bincount(row, minlength=rows)
    return np.asarray(np.bincount(row, values, rows) / np.maximum(counts, 1))


def _less_their_means(table: Floats, first: npt.NDArray[np.int64], positions: npt.NDArray[np.int32]) -> Floats:
    """Of every display the sum over the items shown, less the mean of the sums over drawn rankings: a line for each of
    the table, which has a value of every candidate; those of a display begin at `first`."""
    slots = max(1, int((positions[:, 0] >= 0).sum(axis=1).max(initial=0)))
    out = np.empty((len(table), len(positions)))
    for begin in range(0, len(positions), _AT_A_TIME):
        some = slice(begin, begin + _AT_A_TIME)
        at = [positions[some, :, slot] + first[some, None] for slot in range(slots)]  # quicker than all slots at once
        for line, values in zip(out, table, strict=True):
            sums = sum(values[of_slot] for of_slot in at)
            line[some] = sums[:, 0] - sums[:, 1:].mean(axis=1)
    return out
