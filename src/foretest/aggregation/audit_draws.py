"""What the audit needs of each sampled display: its probability, its place among draws, which items the draws show.

All of it is computed display by display, so that samples of parts of a log join to the sample of the whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.audit_context import HASHED_ITEMS, ITEMS, ids_column
from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.shown_scores import shown_scores
from foretest.displays.batch import Displays, Floats, Hashes
from foretest.displays.ragged import Ragged
from foretest.kernels.hashing import chain_floats
from foretest.kernels.random import uniforms
from foretest.kernels.ranking_draws import LOG_W
from foretest.kernels.score_ranks import ranks_by_score
from foretest.policies import PlackettLuce
from foretest.policies.as_shown import shows_one_ranking
from foretest.policies.base import Policy, logged_column
from foretest.policies.call_size import rankings_at_once
from foretest.policies.own_candidates import items_of
from foretest.policies.pricing import shown_log_prob
from foretest.policies.repeated_rankings import log_probs
from foretest.special import gammaln
from foretest.weights.policy_pair import FROM_CONTROL, FROM_TREATMENT, PolicyPair

KEPT_RANKINGS = 4  # drawn rankings per display whose items are counted by slot
MOST_SLOTS = 8  # whose items are looked at
MOST_RANKS = 64
RANKS = "ranks"
LOG_RANKINGS = "log_rankings"
AS_SERVED = "as_served"  # is the shown ranking the one of a control that always shows the same?
OWN = "log_p_own"  # with several loggers, the log-probability of what was shown under the row's own logger
NO_RANK, NO_ITEM = 255, np.iinfo(np.int64).min
TIES = 101  # the stream of random numbers that break ties
_CERTAIN = -1e-9  # a ranking whose log-probability is above it is the only one


class Drawn(NamedTuple):
    """Rankings drawn for some displays, from the control and, where they can be weighed, from the treatment."""

    log_w: Floats | None  # displays × draws of the control's, where the treatment can price them
    log_w_treatment: Floats | None  # of the treatment's
    log_p: Floats  # displays × draws of the control's
    positions: npt.NDArray[np.int32]  # displays × draws of the control's × MOST_SLOTS; −1 beyond the display's slots


def draw_rankings(pair: PolicyPair, displays: Displays, count: int, *, weigh: bool) -> Drawn:
    """`count` rankings from the control for each display; as many from the treatment, and log w, where `weigh`."""
    if type(pair.control) is not PlackettLuce or (weigh and not pair.is_fused):
        return _generic_draws(pair, displays, count, weigh)
    log_p = np.empty((len(displays), count))
    positions = np.full((len(displays), count, MOST_SLOTS), -1, np.int32)
    # without weights the control is weighed against itself: the kernel takes two policies
    fused = pair if weigh else replace(pair, treatment=pair.control)
    log_w = fused.fused_draws(displays, LOG_W, count if weigh else 0, count, log_p=log_p, shown=positions)
    if not weigh:
        return Drawn(None, None, log_p, positions)
    of_treatment, of_control = (np.ascontiguousarray(half) for half in (log_w[:, :count], log_w[:, count:]))
    return Drawn(of_control, of_treatment, log_p, positions)


def _generic_draws(pair: PolicyPair, displays: Displays, count: int, weigh: bool) -> Drawn:
    """Draws by `sample` and `log_prob` alone; each ranking is priced once, those of one display together."""
    rows = len(displays)
    log_p, log_w, log_w_treatment = (np.empty((rows, count)) for _ in range(3))
    positions = np.full((rows, count, MOST_SLOTS), -1, np.int32)
    sources = [(pair.control, FROM_CONTROL), (pair.treatment, FROM_TREATMENT)][: 2 if weigh else 1]
    step = max(1, rankings_at_once(displays) // (count * len(sources)))
    for begin in range(0, rows, step):
        some = np.arange(begin, min(begin + step, rows))
        few = displays.take(some)
        sides = [
            source.sample(few.take(np.repeat(np.arange(len(some)), count)), pair.uniforms(few, stream, 0, count))
            for source, stream in sources
        ]
        positions[some] = _first_slots(sides[0]).reshape(-1, count, MOST_SLOTS)
        rankings = _by_display(sides, count)
        part = few.take(np.repeat(np.arange(len(some)), count * len(sides)))
        policies = [source for source, _ in sources]
        priced = [a.reshape(len(some), -1) for a in log_probs(policies, part, rankings, count * len(sides))]
        log_p[some] = priced[0][:, :count]
        if weigh:
            weighed = priced[1] - priced[0]
            log_w[some], log_w_treatment[some] = weighed[:, :count], weighed[:, count:]
    return Drawn(log_w, log_w_treatment, log_p, positions) if weigh else Drawn(None, None, log_p, positions)


def _by_display(sides: list[Ragged], count: int) -> Ragged:
    """Rankings of several draws, `count` per display each, as those of one display after the other."""
    if len(sides) == 1:
        return sides[0]
    order = np.arange(len(sides[0]) * len(sides)).reshape(len(sides), -1, count).swapaxes(0, 1).ravel()
    return Ragged.concatenate(sides).take(order)


def _first_slots(rankings: Ragged) -> npt.NDArray[np.int32]:
    """Rankings as rows of MOST_SLOTS positions, −1 where there is none."""
    cut = Ragged(rankings.values, rankings.starts, np.minimum(rankings.lengths, MOST_SLOTS))
    positions, padded = np.full((len(rankings), MOST_SLOTS), -1, np.int32), cut.padded(-1)
    positions[:, : padded.shape[1]] = padded
    return positions


def shown_columns(control: Policy, displays: Displays, log_p: Floats | None = None) -> Columns:
    """log π_p of each display as the weights use it, if it is not known yet, and whether nothing else could have been
    shown; neither where the control is known slot by slot. Of one that always shows the same also whether its own
    ranking was shown."""
    items = items_of(control, displays)
    single = np.asarray(items == 1)
    columns: Columns = {"single": single, LOG_RANKINGS: log_rankings(items, displays.slots)}
    if control.prices_rankings:
        log_p = shown_log_prob(control, displays, is_control=True) if log_p is None else log_p
        columns |= {"log_p": log_p, "certain": (log_p > _CERTAIN) & ~single}
    if shows_one_ranking(control):
        columns[AS_SERVED] = np.isfinite(control.log_prob(displays, displays.ranking))
    scores = control.score_columns
    if scores and displays.key_columns is not None:
        columns["scores"] = _hash_of_scores(displays, scores)
    return columns


def log_rankings(eligible: npt.NDArray[np.int64], slots: npt.NDArray[np.int64]) -> Floats:
    """log of the number of rankings that each display may show, M!/(M − K)!; NaN where M or K is not known.

    >>> np.exp(log_rankings(np.array([4, 0]), np.array([2, 2]))).round(9).tolist()
    [12.0, nan]
    """
    known = (slots > 0) & (eligible >= slots)
    m, k = np.where(known, eligible, 1), np.where(known, slots, 1)
    return np.where(known, gammaln(m + 1.0) - gammaln(m - k + 1.0), np.nan)


def drawn_columns(
    control: Policy, treatment: Policy, displays: Displays, log_p: Floats, drawn: Drawn, seed: int
) -> Columns:
    """For a control that can be drawn from: each display's expected log π_p, the place of `log_p` among draws, items by
    slot, and what the treatment's scores say of what was shown."""
    logged = logged_column(control) is not None
    shown = np.asarray(control.log_prob(displays, displays.ranking), np.float64) if logged else log_p
    ties = np.asarray(uniforms(seed, TIES, displays.key(), 0, 1, 1))[:, 0, 0]
    columns: Columns = {"expected_log_p": drawn.log_p.mean(axis=1), "place": shares_below(shown, drawn.log_p, ties)}
    if logged:
        columns["log_p_scores"] = shown
    positions = np.concatenate([_first_slots(displays.ranking)[:, None, :], drawn.positions], axis=1)
    columns |= _items_by_slot(control, displays, np.ascontiguousarray(positions[:, : 1 + KEPT_RANKINGS]))
    return columns | shown_scores(control, treatment, displays, positions)


def _items_by_slot(control: Policy, displays: Displays, positions: npt.NDArray[np.int32]) -> Columns:
    """Which item is in which slot: by id where the log has ids, else by its rank in the control's scores."""
    for name in (ITEMS, HASHED_ITEMS):
        if ids_column(name) in displays.columns:
            ids = displays[ids_column(name)]
            at = ids.starts[:, None, None] + np.maximum(positions, 0)
            return {name: np.where(positions < 0, NO_ITEM, ids.values[at])}
    scores = control.score_columns
    if not scores:
        return {}
    lists = displays[scores[0]]
    return {RANKS: ranks_by_score(lists.values, lists.starts, lists.lengths, positions, MOST_RANKS)}


def _hash_of_scores(displays: Displays, names: tuple[str, ...]) -> Hashes:
    hashes = np.zeros(len(displays), np.uint64)
    for name in names:
        lists = displays[name]
        chain_floats(hashes, lists.values, lists.starts, lists.lengths)
    return hashes


_TIE = 1e-9  # relative: log-probabilities computed in two ways differ by less


def shares_below(shown: Floats, drawn: Floats, uniforms: Floats) -> Floats:
    """The randomised probability integral transform of log π(a) among S draws: uniform where a is one more draw.

    u = (draws below + V·(1 + draws equal))/(S + 1), V uniform.

    >>> shares_below(np.array([0.5]), np.array([[0.1, 0.5, 0.9]]), np.array([0.5])).tolist()
    [0.5]
    """
    close = _TIE * (1.0 + np.abs(shown[:, None]))
    with np.errstate(invalid="ignore"):  # probability 0, which the test `calibration` reports
        below = (drawn < shown[:, None] - close).sum(axis=1)
        equal = (np.abs(drawn - shown[:, None]) <= close).sum(axis=1)
    return np.asarray((below + uniforms * (1.0 + equal)) / (drawn.shape[1] + 1.0))
