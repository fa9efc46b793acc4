"""The company of an item: what the others beside it score, less what a policy puts beside it on average.

Given item i in slot k, the other places of a Plackett-Luce ranking are a ranking b of the other items, drawn from their
own Plackett-Luce policy and weighted by how likely i is to enter at slot k:

    ω(b) = e_i/(D_k + e_i)·Π_{l<k} D_l/(D_l + e_i),    E[ω] = P(i in slot k)

D_l what is left, before place l of b, of the sum of the others' e_j = exp(s_j/T). So the mean of (S − S(b))·ω(b) over
P(i in slot k) has the expectation S − E[S | i in slot k] exactly, with any number of draws, S the sum of the others'
worth. There are several S: the first adds up a number per item, the next signs of the items above slot k, by their
positions in the list. The last ones add up worth and signs of the items below: of these the mean is taken given all
items down to slot k, where they are a Plackett-Luce ranking of what is left.
"""

from __future__ import annotations

import math

import numpy as np

from foretest.kernels.jit import jit, step
from foretest.kernels.lists import fill, longest
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
def _add_signs(signs, item, first, sums):
    """sums += the signs of one item, from a column on."""
    for c in range(len(signs)):
        sums[first + c] += signs[c, item]


@step
def _add_below(worth, signs, item, sums):
    """sums += worth and signs of an item below the slot."""
    sums[1 + len(signs)] += worth[item]
    _add_signs(signs, item, 2 + len(signs), sums)


@step
def _add_shown(worth, signs, shown, slot, slots, sums):
    """sums <- each S of a ranking: the worth of all but the slot's item, signs of those above, worth and signs of those
    below."""
    fill(sums, 0.0)
    for place in range(slots):
        if place == slot:
            continue
        sums[0] += worth[shown[place]]
        if place < slot:
            _add_signs(signs, shown[place], 1, sums)
        else:
            _add_below(worth, signs, shown[place], sums)


@step
def _picked(left, n, target):
    """The item at which the running sum of what is left exceeds the target."""
    running = 0.0
    picked = 0
    for j in range(n):
        if left[j] > 0.0:
            running += left[j]
            picked = j
            if running > target:
                break
    return picked


@step
def _add_weighted_differences(
    e, worth, signs, n, item, slot, slots, own, inverse_marginal, generator, left, beside, out
):  # fmt: skip
    """out += (S − S(b))·ω(b)/P(item in slot) of one ranking b of the others, for each S but those of the items below;
    `own` has these."""
    fill(beside, 0.0)
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
        picked = _picked(left, n, uniform_at(generator, np.uint64(place)) * rest)
        beside[0] += worth[picked]
        if place < slot:
            _add_signs(signs, picked, 1, beside)
        rest -= left[picked]
        left[picked] = 0.0
        if rest < _SAFE_SHARE * added:
            rest = _total(left, n)
            added = rest
    for c in range(1 + len(signs)):
        out[c] += (own[c] - beside[c]) * weight


@step
def _add_differences_below(e, worth, signs, n, shown, slot, slots, own, generator, left, beside, out):
    """out += S − S(b) of the items below, b a ranking of what the shown items down to the slot leave."""
    fill(beside, 0.0)
    for j in range(n):
        left[j] = e[j]
    for place in range(slot + 1):
        left[shown[place]] = 0.0
    rest = _total(left, n)
    added = rest
    for place in range(slot + 1, slots):
        picked = _picked(left, n, uniform_at(generator, np.uint64(slots + place)) * rest)
        _add_below(worth, signs, picked, beside)
        rest -= left[picked]
        left[picked] = 0.0
        if rest < _SAFE_SHARE * added:
            rest = _total(left, n)
            added = rest
    for c in range(1 + len(signs), len(beside)):
        out[c] += own[c] - beside[c]


@jit
def plackett_luce_company(
    values, starts, lengths, worth, w_starts, signs, ranking, r_starts, slots, inverse_temperature, earns, marginals,
    keys, seed, stream, draws, out,
):  # fmt: skip
    """out <- for each shown slot that earns an unbiased estimate of S − E[S | its item in this slot], by column; NaN
    elsewhere, where a display shows one item, and where the item is next to impossible there."""
    x, e, left = np.empty(longest(lengths)), np.empty(longest(lengths)), np.empty(longest(lengths))
    total, beside = np.empty(out.shape[1]), np.empty(out.shape[1])
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
            fill(out[at], np.nan)
            if earns[at] and k > 1 and x[item] > _FARTHEST and marginals[at] > _LEAST:
                _add_shown(own, signs, shown, slot, k, total)
                fill(out[at], 0.0)
                for d in range(draws):
                    generator = draw_state(state, np.uint64(slot * draws + d))
                    _add_weighted_differences(
                        e, own, signs, n, item, slot, k, total, 1.0 / marginals[at], generator, left, beside, out[at]
                    )
                    _add_differences_below(e, own, signs, n, shown, slot, k, total, generator, left, beside, out[at])
                for c in range(out.shape[1]):
                    out[at, c] /= draws
            at += 1


@step
def _same_above(drawn, shown, slot):
    """Do two rankings have the same items above a slot?"""
    same = True
    for place in range(slot):
        same &= drawn[place] == shown[place]
    return same


@jit
def among_draws(worth, starts, lengths, signs, ranking, r_starts, slots, earns, drawn, draws, out):
    """out <- for each shown slot that earns S less the mean of S over those of a display's draws that have its item in
    this slot, for each S; NaN elsewhere, where no draw has it, and where a display shows one item.

    For S of the items below it is the mean over the draws that also have the same items above; 0 where none has.

    `drawn` has the draws of the first display one after the other, each with as many places as the display has slots,
    then those of the next.
    """
    at, first = 0, 0
    own, total, of_draw = np.empty(out.shape[1]), np.empty(out.shape[1]), np.empty(out.shape[1])
    for row in range(len(slots)):
        k = slots[row]
        here = worth[starts[row] : starts[row] + lengths[row]]
        shown = ranking[r_starts[row] : r_starts[row] + k]
        for slot in range(k):
            fill(out[at], np.nan)
            if earns[at] and k > 1:
                _add_shown(here, signs, shown, slot, k, own)
                fill(total, 0.0)
                hits, prefixes = 0, 0
                for d in range(draws):
                    one = drawn[first + d * k : first + (d + 1) * k]
                    if one[slot] == shown[slot]:
                        hits += 1
                        _add_shown(here, signs, one, slot, k, of_draw)
                        for c in range(1 + len(signs)):
                            total[c] += of_draw[c]
                        if _same_above(one, shown, slot):
                            prefixes += 1
                            for c in range(1 + len(signs), len(total)):
                                total[c] += of_draw[c]
                for c in range(len(own)):
                    count = hits if c <= len(signs) else prefixes
                    if count > 0:
                        out[at, c] = own[c] - total[c] / count
                    elif hits > 0:
                        out[at, c] = 0.0
            at += 1
        first += draws * k
