"""Tests of the rows themselves: logged against recomputed probabilities, no exploration, repeated rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats, Hashes
from foretest.results.audit import FAIL, PASS, WARN, Finding, not_made

LOGGED, EXPLORATION, REPEATS = "logged probabilities", "exploration", "repeated rows"
SERVED = "as served"
ROUNDING = 1e-6  # relative, of a probability or its logarithm
ROUGH = 1e-3  # beyond this it is no rounding of any kind
FEW_OFF = 0.001  # share of rows that may be off by more without failing the log
FEW_REPEATS = 0.01
MOST_OTHER = 0.05  # share of displays that may show another ranking than the control's without failing the log


def logged_probabilities(logged: Floats, recomputed: Floats) -> Finding:
    """log π_p as logged against log π_p of the same ranking from the scores.

    |Δ log π| ≤ 1e-6·(1 + |log π|), since either of the two, or a score, may have been written in single precision.
    """
    apart = np.abs(logged - recomputed)
    apart[~np.isfinite(apart)] = np.inf
    allowed = 1.0 + np.where(np.isfinite(recomputed), np.abs(recomputed), 0.0)
    off, far = apart > ROUNDING * allowed, apart > ROUGH * allowed
    largest = float((apart / allowed).max())
    share = float(far.mean())
    if not off.any():
        meaning = f"logged probabilities are those that the scores give, within {ROUNDING:g}"
        return Finding(LOGGED, PASS, None, largest, meaning, None)
    rows = int((far if far.any() else off).sum())
    worst = int(np.argmax(apart / allowed))
    outcome = FAIL if share > FEW_OFF else WARN
    size = "" if far.any() else f", by less than {ROUGH:g} of their logarithm"
    return Finding(
        LOGGED, outcome, None, largest,
        f"in {rows:,} of {len(logged):,} sampled displays ({rows / len(logged):.2%}) the logged probability is not the"
        f" one that the scores give{size}: log-probability {logged[worst]:.6g} is logged where {recomputed[worst]:.6g}"
        " follows from the scores",
        "One of the two is not of the policy that served. Perhaps the probability is of another number of slots, of one"
        " slot only, or not a natural logarithm; or temperature or scores are of another version. If the tests that use"
        " the scores pass, fix the logged column, or leave it out."
        if far.any()
        else "The numbers are rounded: log them with more digits.",
    )  # fmt: skip


def exploration(certain: npt.NDArray[np.bool_], declared: bool) -> Finding:
    """Does the log say anything about other rankings? `certain`: displays on which the control had but one to show."""
    share = float(certain.mean())
    if declared or share == 1.0:
        return Finding(
            EXPLORATION, FAIL, None, 1.0,
            "the control is deterministic: it shows one ranking with probability 1, so the log says nothing about any"
            " other, and no weighting of rankings can",
            "If the log says which slot earned the reward, name [log] slot_rewards and give [analysis] examination, how"
            " likely users look at each slot: estimates by exposure need no exploration. Else log a control that"
            " explores. Draw each ranking from plackett-luce on the scores, or let a share of displays be"
            " epsilon-greedy (5 % is a start), and log, when the ranking is drawn, the scores of all eligible items (or"
            " the probability of what was shown) with the ranking, its unit and a display id.",
        )  # fmt: skip
    if share > 0.1:
        return Finding(
            EXPLORATION, WARN, None, share,
            f"on {share:.1%} of displays the control shows one ranking with probability 1: of these the log says"
            " nothing about any other",
            "Explore there too, or leave these displays out and read the result as one of the others.",
        )  # fmt: skip
    meaning = "the control explores" if share == 0.0 else f"the control explores on {1.0 - share:.1%} of displays"
    return Finding(EXPLORATION, PASS, None, share, meaning, None)


def as_served(is_own: npt.NDArray[np.bool_]) -> Finding:
    """Does each display show the one ranking of a control that always shows the same? `is_own`: it does."""
    rows = int((~is_own).sum())
    share = rows / len(is_own)
    if not rows:
        return Finding(SERVED, PASS, None, 0.0, "every display shows the ranking that the control gives", None)
    return Finding(
        SERVED, FAIL if share > MOST_OTHER else WARN, None, share,
        f"{rows:,} of {len(is_own):,} sampled displays ({share:.2%}) show another ranking than the control gives;"
        " weights are of what was shown",
        "The log is of another policy, or something between it and the page changes what it gives: filters, caches,"
        " fallbacks, scores of another version. Log what the policy ranked when it served; if what was shown is right"
        ' however it came about, name the column of [log] ranking as the control, policy = "fixed".',
    )  # fmt: skip


def repeated_ids(unit: Hashes, key: Hashes) -> Finding:
    """Rows whose display id is that of an earlier row: copies where the unit is the same too, else ids used again."""
    repeats = _repeats([unit, key])
    again = _repeats([key]) - repeats
    if again > repeats:
        return Finding(
            REPEATS, WARN, None, again / len(unit),
            f"{again:,} of {len(unit):,} sampled rows ({again / len(unit):.2%}) have a display id that a row of another"
            " unit has",
            "An id names one display of the whole log: where it starts anew with every unit, day or server, name a"
            " column that does not.",
        )  # fmt: skip
    return _repeated(
        repeats, len(unit), "no display id occurs twice", "have a display id that another row has",
        "A display belongs in the log once. Remove the copies; after a join, look for displays that met several rows.",
        most=FAIL,
    )  # fmt: skip


def repeated_rows(unit: Hashes, key: Hashes, scores: Hashes, alike: list[Floats], *, has_unit: bool) -> Finding:
    """Rows that are equal in unit, ranking, scores, weight and rewards, where scores do not recur by chance.

    `key` is the hash of unit, ranking and scores; `alike` the columns that copies share too. Where scores recur under
    other units or rankings, or as a rule with other rewards, equal rows are no copies, and the test says nothing. With
    a unit, a page that is shown again from a cache looks like a copy and does no harm: the test then warns at most.
    """
    repeats = _repeats([key, *alike] if has_unit else [scores, key, *alike])
    (there, otherwise), (_, unlike) = _recurring(scores, [key]), _recurring(scores, [key, *alike])
    if otherwise > 0.1 * there or unlike > 0.5 * there:
        return not_made(REPEATS, "scores recur in this log, so rows may be equal by chance; name the display's id")
    return _repeated(
        repeats, len(unit), "no row occurs twice", "equal another row in ranking, scores and rewards",
        "If these are copies, remove them. If they are pages shown again, name the display's id (and the unit) in"
        " [log]: each is then a display of its own.",
        most=WARN if has_unit else FAIL,
    )  # fmt: skip


def _repeated(repeats: int, rows: int, none: str, some: str, remedy: str, *, most: str) -> Finding:
    share = repeats / rows
    if repeats == 0:
        return Finding(REPEATS, PASS, None, 0.0, f"{none} (of {rows:,} sampled)", None)
    outcome = most if share > FEW_REPEATS else WARN
    return Finding(REPEATS, outcome, None, share, f"{repeats:,} of {rows:,} sampled rows ({share:.2%}) {some}", remedy)


def _recurring(scores: Hashes, columns: list[npt.NDArray[Any]]) -> tuple[int, int]:
    """How many scores there are more than once, and how many of these with different columns.

    >>> _recurring(np.array([7, 7, 8, 8, 9], np.uint64), [np.array([1, 2, 3, 3, 4])])
    (2, 1)
    """
    if _all_differ(scores):
        return 0, 0
    order = np.lexsort([*columns[::-1], scores])
    ordered = scores[order]
    same = ordered[1:] == ordered[:-1]
    other = np.zeros(len(same), np.bool_)
    for column in columns:
        other |= column[order][1:] != column[order][:-1]
    there, unlike = ordered[1:][same], ordered[1:][same & other]
    return int((np.diff(there) != 0).sum() + (len(there) > 0)), int((np.diff(unlike) != 0).sum() + (len(unlike) > 0))


def _repeats(columns: list[npt.NDArray[Any]]) -> int:
    """How many rows are equal to an earlier one in all columns."""
    if _all_differ(columns[0]):
        return 0
    order = np.lexsort(columns[::-1])
    same = np.ones(max(len(order) - 1, 0), np.bool_)
    for column in columns:
        ordered = column[order]
        same &= ordered[1:] == ordered[:-1]
    return int(same.sum())


def _all_differ(column: npt.NDArray[Any]) -> bool:
    """Are all values different? They are in most logs, and one sort is quicker than one per column."""
    ordered = np.sort(column)
    return not (ordered[1:] == ordered[:-1]).any()
