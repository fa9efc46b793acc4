"""The company of an item: what the others beside it score, less what a policy puts beside it on average.

Given item i in slot k, the other places of a Plackett-Luce ranking are a ranking b of the other items, drawn from their
own Plackett-Luce policy and weighted by how likely i is to enter at slot k:

    ω(b) = e_i/(D_k + e_i)·Π_{l<k} D_l/(D_l + e_i),    E[ω] = P(i in slot k)

D_l what is left, before place l of b, of the sum of the others' e_j = exp(s_j/T). So the mean of (S − S(b))·ω(b) over
P(i in slot k) has the expectation S − E[S | i in slot k] exactly, with any number of draws, S the sum of the others'
worth. There are several S: the first adds up a number per item, the others signs by an item's position in its list.
"""

from __future__ import annotations

import math

import numpy as np

from foretest.kernels.jit import jit, step
from foretest.kernels.lists import longest
from foretest.kernels.plackett_luce import load_row
from foretest.kernels.random import draw_state, state_of, uniform_at

# what is left of a sum keeps its digits under subtraction while it is at least this share of what was added up
_SAFE_SHARE = 0.05
_LOWEST = -700.0  # of log e_j: below, it is practically 0, but must not be 0
# of a rewarded item: its score relative to the best, and its marginal; beyond, its odds are no floats
_FARTHEST, _LEAST = -600.0, 1e-290


@step
def _total(e, n):
    total = 0.0
    for j in range(n):
        total += e[j]
    return total


@step
def _add_item(worth, signs, item, sums):
    """sums += what each S adds up of one item."""
    sums[0] += worth[item]
    for c in range(len(signs)):
        sums[c + 1] += signs[c, item]


@step
def _add_weighted_differences(
    e, worth, signs, n, item, slot, slots, own, inverse_marginal, generator, left, beside, out
):  # fmt: skip
    """out += (S − S(b))·ω(b)/P(item in slot) of one ranking b of the others, for each S; `own` has these."""
    beside[:] = 0.0
    for j in range(n):
        left[j] = e[j]
    left[item] = 0.0
    rest = _total(left, n)
    added = rest
    # from 1/P down: neither it nor any product on the way leaves the range of floats
    weight = inverse_marginal
    for place in range(slots):
        if place < slot:
            weight *= rest / (rest + e[item])
        elif place == slot:
            weight *= e[item] / (rest + e[item])
        if place == slots - 1:
            break
        target = uniform_at(generator, np.uint64(place)) * rest
        running = 0.0
        picked = 0
        for j in range(n):
            if left[j] > 0.0:
                running += left[j]
                picked = j
                if running > target:
                    break
        _add_item(worth, signs, picked, beside)
        rest -= left[picked]
        left[picked] = 0.0
        if rest < _SAFE_SHARE * added:
            rest = _total(left, n)
            added = rest
    for c in range(len(beside)):
        out[c] += (own[c] - beside[c]) * weight


@jit
def plackett_luce_company(
    values, starts, lengths, worth, w_starts, signs, ranking, r_starts, slots, inverse_temperature, earns, marginals,
    keys, seed, stream, draws, out,
):  # fmt: skip
    """out <- for each shown slot that earns an unbiased estimate of S − E[S | its item in this slot], by column; NaN
    elsewhere, where a display shows one item, and where the item is next to impossible there."""
    x, e, left = np.empty(longest(lengths)), np.empty(longest(lengths)), np.empty(longest(lengths))
    total, beside = np.empty(len(signs) + 1), np.empty(len(signs) + 1)
    at = 0
    for row in range(len(starts)):
        n, k = lengths[row], slots[row]
        shown = ranking[r_starts[row] : r_starts[row] + k]
        own = worth[w_starts[row] : w_starts[row] + n]
        load_row(values, starts[row], n, inverse_temperature, x)
        for j in range(n):
            e[j] = math.exp(max(x[j], _LOWEST))
        state = state_of(seed, stream, keys[row])
        for slot in range(k):
            item = shown[slot]
            out[at] = np.nan
            if earns[at] and k > 1 and x[item] > _FARTHEST and marginals[at] > _LEAST:
                total[:] = 0.0
                for other in range(k):
                    if other != slot:
                        _add_item(own, signs, shown[other], total)
                out[at] = 0.0
                for d in range(draws):
                    _add_weighted_differences(
                        e, own, signs, n, item, slot, k, total, 1.0 / marginals[at],
                        draw_state(state, np.uint64(slot * draws + d)), left, beside, out[at],
                    )  # fmt: skip
                out[at] /= draws
            at += 1


@jit
def among_draws(worth, starts, lengths, signs, ranking, r_starts, slots, earns, drawn, draws, out):
    """out <- for each shown slot that earns S less the mean of S over those of a display's draws that have its item in
    this slot, for each S; NaN elsewhere, where no draw has it, and where a display shows one item.

    `drawn` has the draws of the first display one after the other, each with as many places as the display has slots,
    then those of the next.
    """
    at, first = 0, 0
    own, total = np.empty(len(signs) + 1), np.empty(len(signs) + 1)
    for row in range(len(slots)):
        k = slots[row]
        here = worth[starts[row] : starts[row] + lengths[row]]
        shown = ranking[r_starts[row] : r_starts[row] + k]
        for slot in range(k):
            out[at] = np.nan
            if earns[at] and k > 1:
                own[:] = 0.0
                total[:] = 0.0
                hits = 0
                for other in range(k):
                    _add_item(here, signs, shown[other], own)
                for d in range(draws):
                    begin = first + d * k
                    if drawn[begin + slot] == shown[slot]:
                        hits += 1
                        for other in range(k):
                            _add_item(here, signs, drawn[begin + other], total)
                if hits > 0:  # the item itself is in both sums
                    for c in range(len(own)):
                        out[at, c] = own[c] - total[c] / hits
            at += 1
        first += draws * k
