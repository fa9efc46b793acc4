"""q(x) over all rankings of a display: where these are few, with one slot, or for a deterministic treatment."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from math import perm
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.kernels import enumeration as all_rankings
from foretest.kernels import point_path as path_kernel
from foretest.kernels import weight_bounds as bounds_kernel
from foretest.policies.call_size import rankings_at_once
from foretest.special import gammaln
from foretest.weights.policy_pair import PolicyPair
from foretest.weights.weight_bounds import BoundMasses

MOST_RANKINGS = 5_000_000

Indices = npt.NDArray[np.int64]


class Priced(NamedTuple):
    """All rankings of some displays, one display after the other."""

    rows: Indices  # which displays
    alpha: Floats  # π_t of every ranking
    beta: Floats  # π_p
    starts: Indices  # of each display: its first ranking, and how many it has
    counts: Indices


class ExactMasses(NamedTuple):
    """What all rankings of the displays say at a cap c, given or adaptive."""

    cap: Floats  # the adaptive cap; 0 where one cap was given, or where there is none
    q: Floats
    squares: Floats  # E_p[w̄²]
    q_below: Floats  # q at c/3


def is_cheap(pair: PolicyPair, displays: Displays, most: int) -> npt.NDArray[np.bool_]:
    """The displays with at most `most` rankings, or one slot; all of them for a deterministic treatment."""
    if pair.is_deterministic:
        return np.ones(len(displays), np.bool_)
    m, k = displays.eligible, displays.slots
    log_rankings = gammaln(m + 1.0) - gammaln(m - k + 1.0)  # of M!/(M−K)!
    return np.asarray((k == 1) | (log_rankings < np.log(most + 0.5)))


def exact_masses(
    pair: PolicyPair, displays: Displays, *, cap: float = np.nan, zero: bool = False, bound: float = np.nan,
    priced: Priced | None = None,
) -> ExactMasses:  # fmt: skip
    """q at `cap`, or the adaptive cap for `bound` and q there; then E_p[w̄²] at that cap, and q at a third of it.

    `priced` has π_t and π_p of all rankings of each display, where they are known.
    """
    most = _refuse_too_many(pair, displays)
    cap, bound = float(cap), float(bound)  # of an integer the kernel would be compiled anew
    if pair.is_fused:
        return ExactMasses(*all_rankings.enumerate_all(*pair.score_lists(displays), most, cap, zero, bound))
    masses = np.empty((4, len(displays)))
    for rows, *rankings in all_priced(pair, displays) if priced is None else [priced]:
        masses[:, rows] = all_rankings.masses_of_rankings(*rankings, cap, zero, bound)
    return ExactMasses(*masses)


def exact_path(
    pair: PolicyPair, displays: Displays, log_w: Floats, most: Floats, caps: Floats, bounds: Floats, *,
    priced: Priced | None = None,
) -> tuple[Floats, Floats]:  # fmt: skip
    """log h of the shown rankings at each cap and at each bound, over all rankings; `priced` as for the masses."""
    if pair.is_fused:
        return path_kernel.path_of_all(  # type: ignore[no-any-return]
            *pair.score_lists(displays), _most_rankings(displays), log_w, most, caps, bounds
        )
    of_caps, of_bounds = np.empty((len(displays), len(caps))), np.empty((len(displays), len(bounds)))
    for rows, *rankings in all_priced(pair, displays) if priced is None else [priced]:
        of_caps[rows], of_bounds[rows] = path_kernel.path_of_rankings(*rankings, log_w[rows], caps, bounds)
    return of_caps, of_bounds


def exact_bounds(
    pair: PolicyPair, displays: Displays, most: Floats, bounds: Floats, *, priced: Priced | None = None
) -> BoundMasses:
    """The masses at the adaptive caps of ascending bounds, over all rankings; no log w is above `most`."""
    masses, rankings = BoundMasses.empty(len(displays), len(bounds)), _refuse_too_many(pair, displays)
    if pair.is_fused:
        bounds_kernel.bounds_of_all(*pair.score_lists(displays), rankings, most, bounds, *masses)
        return masses
    for rows, *of_all in all_priced(pair, displays) if priced is None else [priced]:
        some = BoundMasses.empty(len(rows), len(bounds))
        bounds_kernel.bounds_of_rankings(*of_all, most[rows], bounds, *some)
        masses.put(rows, some)
    return masses


def _refuse_too_many(pair: PolicyPair, displays: Displays) -> int:
    """The most rankings that a display has, refused where that would take too long to go through."""
    most = _most_rankings(displays)
    if most > MOST_RANKINGS and not pair.is_deterministic:
        raise BadInput(
            f'normaliser = "exact": a display has {most:,} rankings, more than {MOST_RANKINGS:,}. Use "auto".'
        )
    return most


def _most_rankings(displays: Displays) -> int:
    """M!/(M−K)! of the display that has most."""
    return max(perm(int(m), int(k)) for m, k in zip(displays.eligible, displays.slots, strict=True))


def all_priced(pair: PolicyPair, displays: Displays) -> Iterator[Priced]:
    """π_t and π_p of all rankings of each display, many displays of one shape at a time.

    A deterministic treatment has one ranking: π_t = (1, 0), π_p = (π_p(a), 1 − π_p(a)).
    """
    if pair.is_deterministic:
        width = int(displays.eligible.max(initial=0)) + 1
        rankings = pair.treatment.sample(displays, np.full((len(displays), width), 0.5))
        p = np.exp(pair.control.log_prob(displays, rankings))
        certain = np.tile([1.0, 0.0], (len(p), 1))
        yield _one_shape(np.arange(len(p)), certain, np.stack([p, 1.0 - p], axis=1))
        return
    shapes, shape = np.unique(np.stack([displays.eligible, displays.slots]), axis=1, return_inverse=True)
    for which, (m, k) in enumerate(shapes.T.tolist()):
        all_rankings = np.array(list(permutations(range(m), k)), np.int32)
        rows, step = np.flatnonzero(shape == which), max(1, rankings_at_once(displays) // len(all_rankings))
        for some in (rows[at : at + step] for at in range(0, len(rows), step)):
            part = displays.take(np.repeat(some, len(all_rankings)))
            rankings = Ragged.packed(np.tile(all_rankings.ravel(), len(some)), np.full(len(part), k))
            alpha, beta = (
                np.exp(policy.log_prob(part, rankings)).reshape(len(some), -1)
                for policy in (pair.treatment, pair.control)
            )
            yield _one_shape(some, alpha, beta)


def _one_shape(rows: Indices, alpha: Floats, beta: Floats) -> Priced:
    """Displays with as many rankings each."""
    count = alpha.shape[1]
    return Priced(rows, alpha.ravel(), beta.ravel(), np.arange(len(rows)) * count, np.full(len(rows), count))
