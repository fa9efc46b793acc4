"""Random rankings of two Plackett-Luce policies, priced as they are drawn, without an exp for each draw.

All draws of a display are made together, slot after slot, from an alias table of the policy they come from.
"""

from __future__ import annotations

import numpy as np

from foretest.kernels.exponential import exp_within, log_within, sum_of
from foretest.kernels.jit import inner, jit, step
from foretest.kernels.lists import longest
from foretest.kernels.plackett_luce import load_row, log_prob_by_tails
from foretest.kernels.random import GAMMA, draw_state, mix64, state_of, uniform_at, unit_of

# A product of K ratios of exponentials stays in range while K times the spread of both score lists is below this.
SAFE_SPREAD = 600.0
# A tail found by subtraction keeps its digits while it is at least this share of the total.
_SAFE_SHARE = 0.05
SLICE = 3.0  # the slice test compares weights between c/3 and c


@step
def spread(x, n):
    """The difference between the highest score, which is 0, and the lowest."""
    least = 0.0
    for j in range(n):
        least = min(least, x[j])
    return -least


@step
def _alias_table(e, n, keep, either, small, large):
    """Walker's alias table by Vose's method: item j with probability keep[j], else its alias; e sums to 1.

    either[2j] = j and either[2j+1] is the alias: a pick is a load, not a branch that the processor may mispredict.
    """
    smalls = np.uint64(0)
    larges = np.uint64(0)
    one = np.uint64(1)
    for j in range(n):  # counters move by 0 or 1, for a branch here would be guessed wrong every other time
        keep[j] = e[j] * n
        either[2 * j] = j
        either[2 * j + 1] = j
        is_small = np.uint64(keep[j] < 1.0)
        small[smalls] = j
        large[larges] = j
        smalls += is_small
        larges += one - is_small
    while smalls > 0 and larges > 0:
        s = np.uint64(small[smalls - one])
        big = np.uint64(large[larges - one])
        either[np.uint64(2) * s + one] = big
        keep[big] -= 1.0 - keep[s]
        is_small = np.uint64(keep[big] < 1.0)
        small[smalls - one] = big
        smalls += is_small - one
        larges -= is_small
    for j in range(larges):
        keep[large[j]] = 1.0
    for j in range(smalls):  # rounding left these just below 1
        keep[small[j]] = 1.0


@inner
def _is_taken(chosen, slots, d, item):
    """Has draw d shown the item in one of its first slots?"""
    taken = False
    for slot in range(slots):
        taken |= chosen[slot, d] == item
    return taken


@step
def _scan(e, n, chosen, slots, d, target):
    """The item, of those that draw d has left, at which the running sum of e passes the target."""
    running = 0.0
    item = np.uint32(0)
    for j in range(n):
        if not _is_taken(chosen, slots, d, np.uint32(j)):
            running += e[j]
            item = np.uint32(j)
            if running > target:
                break
    return item


@inner
def _fill_slot(e, n, keep, either, slot, tails, states, u, chosen, waiting, count):
    """chosen[slot, d] of every draw d, among the items it has left, in proportion to e.

    All draws pick from the alias table at once, and those that hit an item they have shown pick again: no draw waits
    for another. Where little mass is left and a peaked policy would pick for long, the items left are scanned. Random
    numbers, picks and the search for items that are shown have loops of their own, some of which vectorise.
    """
    picked = chosen[slot]
    scanned = np.uint64(0)
    for d in range(count):
        u[d] = unit_of(mix64(states[d]))
        states[d] += GAMMA
        scanned += np.uint64(tails[d] < _SAFE_SHARE)
    for d in range(count):
        picked[d] = _alias_of(u[d] * n, keep, either)
        waiting[d] = 0
    for before in range(slot):
        earlier = chosen[before]
        for d in range(count):
            waiting[d] |= np.uint32(earlier[d] == picked[d])
    if scanned > 0:
        for d in range(count):
            if tails[d] < _SAFE_SHARE:
                picked[d] = _scan(e, n, chosen, slot, d, u[d] * tails[d])
                waiting[d] = 0
    left = np.uint64(0)
    if slot > 0:
        for d in range(count):
            again = np.uint64(waiting[d])
            waiting[left] = d  # overwritten by the next unless the item is taken
            left += again
    while left > 0:
        still = np.uint64(0)
        for at in range(left):
            d = np.uint64(waiting[at])
            item = _alias_of(unit_of(mix64(states[d])) * n, keep, either)
            states[d] += GAMMA
            picked[d] = item
            waiting[still] = d
            still += np.uint64(_is_taken(chosen, slot, d, item))
        left = still


@inner
def _alias_of(at, keep, either):
    """The item that a random number in (0, n) picks from the alias table."""
    whole = np.int64(at)  # signed converts in one instruction, unsigned indexes in one
    column = np.uint64(whole)
    return either[np.uint64(2) * column + np.uint64(at - whole >= keep[column])]


@inner
def _take_slot(et, ep, odds, n, slot, slots, chosen, tails_t, tails_p, above, below, count):
    """Update the weight of each draw with the item of one more slot, and what is left of both totals for the next."""
    picked = chosen[slot]
    for d in range(count):
        above[d] *= odds[picked[d]] * tails_p[d]
        below[d] *= tails_t[d]
    if slot + np.uint64(1) == slots:
        return
    for d in range(count):
        tails_t[d] -= et[picked[d]]
        tails_p[d] -= ep[picked[d]]
        if min(tails_t[d], tails_p[d]) < _SAFE_SHARE:
            tails_t[d] = _rest(et, n, chosen, slot + np.uint64(1), d)
            tails_p[d] = _rest(ep, n, chosen, slot + np.uint64(1), d)


@step
def _rest(e, n, chosen, slots, d):
    total = 0.0
    for j in range(n):
        if not _is_taken(chosen, slots, d, np.uint32(j)):
            total += e[j]
    return total


@step
def _log_probs(e, n, chosen, slots, tails, products, logs, out, count):
    """out <- log π of every draw: slot after slot for all of them, so that no division waits for another; the logarithm
    of a product is taken before it can underflow."""
    for d in range(count):
        tails[d] = 1.0
        products[d] = 1.0
        logs[d] = 0.0
    for slot in range(slots):
        picked = chosen[slot]
        for d in range(count):
            share = e[picked[d]]
            products[d] *= share / tails[d]
            tails[d] -= share
            if tails[d] < _SAFE_SHARE:
                tails[d] = _rest(e, n, chosen, slot + np.uint64(1), d)
            if products[d] < 1e-100:
                logs[d] += np.log(products[d])
                products[d] = 1.0
    log_within(products, out, count)
    for d in range(count):
        out[d] += logs[d]


@inner
def _last_slot_one_by_one(et, ep, n, chosen, slots, d, tail_t, ratio, zero):
    """Σ_j min(π_t(j|·), c/w·π_p(j|·)) of a draw over the items it has left, and this sum at a third of c; under zero
    capping Σ_j π_t(j|·)·1(w < c)."""
    share = 0.0
    low = 0.0
    for j in range(n):
        if not _is_taken(chosen, slots, d, np.uint32(j)):
            a = et[j]
            b = ratio * ep[j]
            c = b / SLICE
            share += min(a, b) if not zero else (a if a < b else 0.0)
            low += min(a, c) if not zero else (a if a < c else 0.0)
    return share / tail_t, low / tail_t


@inner
def _add_smaller(a, b, ratio, z, low, count):
    """z += min(a, ratio·b) and low += min(a, ratio·b/3) of every draw."""
    third = b / SLICE
    for d in range(count):
        over = ratio[d] * b
        under = ratio[d] * third
        z[d] += a if a < over else over
        low[d] += a if a < under else under


@step
def _sum_last_slots(et, ep, n, chosen, slots, tails_t, tails_p, above, below, cap, zero, ratio, z, low, count):
    """z of every draw with its last slot summed out, at the cap and at a third of it: item after item for all draws.

    With ratio = c/w·tail_t/tail_p a term is min(et, ratio·ep)/tail_t. Over all items minus those taken: the difference
    keeps its digits where at least 5 % of both totals is left; elsewhere, over the items left.
    """
    for d in range(count):
        ratio[d] = cap * below[d] * tails_t[d] / (above[d] * tails_p[d])
        z[d] = 0.0
        low[d] = 0.0
    if not zero:
        for j in range(n):
            _add_smaller(et[j], ep[j], ratio, z, low, count)
        for slot in range(slots):
            for d in range(count):
                item = chosen[slot, d]
                over = ratio[d] * ep[item]
                z[d] -= min(et[item], over)
                low[d] -= min(et[item], over / SLICE)
    for d in range(count):
        z[d] /= tails_t[d]
        low[d] /= tails_t[d]
        if zero or min(tails_t[d], tails_p[d]) < _SAFE_SHARE:
            z[d], low[d] = _last_slot_one_by_one(et, ep, n, chosen, slots, d, tails_t[d], ratio[d], zero)
        z[d] = min(1.0, max(0.0, z[d]))
        low[d] = min(1.0, max(0.0, low[d]))


@step
def _gumbel_ranking(x, n, k, generator, noisy, ranking):
    """Top K of x + Gumbel noise: exact for any spread of scores, with two logs per item."""
    for j in range(n):
        noisy[j] = x[j] - np.log(-np.log(uniform_at(generator, np.uint64(j))))
    for slot in range(k):
        best = 0
        for j in range(1, n):
            if noisy[j] > noisy[best]:
                best = j
        ranking[slot] = best
        noisy[best] = -np.inf


@inner
def _capped_share(log_w, log_cap, zero):
    """z = w̄/w."""
    if zero:
        return 1.0 if log_w < log_cap else 0.0
    return np.exp(min(0.0, log_cap - log_w))


LOG_W, W, Z = 0, 1, 2  # what `draws` returns


@step
def _draw(
    source, tails, et, ep, odds, n, slots, keep, either, small, large, states, u, chosen, waiting,
    tails_t, tails_p, above, below, want, weigh, cap, zero, z, low, count,
):  # fmt: skip
    """Rankings from the policy whose shares are `source`, as many as there are states: w = above/below, or z.

    A separate function, so that what does not change from slot to slot stays in registers.
    """
    _alias_table(source, n, keep, either, small, large)
    for d in range(count):
        tails_t[d] = 1.0
        tails_p[d] = 1.0
        above[d] = 1.0
        below[d] = 1.0
    for slot in range(slots):
        if weigh and slot + np.uint64(1) == slots:
            _sum_last_slots(et, ep, n, chosen, slot, tails_t, tails_p, above, below, cap, zero, u, z, low, count)
            if want == Z:
                break
        _fill_slot(source, n, keep, either, slot, tails, states, u, chosen, waiting, count)
        _take_slot(et, ep, odds, n, slot, slots, chosen, tails_t, tails_p, above, below, count)


@jit
def draws(
    t_values, t_starts, p_values, p_starts, lengths, slots, t_inverse, p_inverse, keys, seed, t_stream, p_stream,
    first, from_t, from_p, want, cap, zero, means, log_p, shown,
):  # fmt: skip
    """log w, w or z of each display's rankings from number `first`: `from_t` of the treatment, `from_p` of the control.

    z = w̄/w (rankings from the treatment) has the last slot summed out,
    E_t[z | a_1..a_{K−1}] = Σ_j min(π_t(j|·), c/w_{K−1}·π_p(j|·)), which has q for mean and a smaller variance.

    Where they are not empty: means (displays × 2) <- the mean z of the treatment's rankings at the cap, and at a third
    of it; log_p (displays × rankings) <- log π_p of the control's; shown (displays × rankings × slots) <- the positions
    of as many of the control's rankings and slots as it has room for; the rest of it is left as it is.
    """
    rows = len(lengths)
    out = np.empty((rows, from_t + from_p))
    width = longest(lengths)
    deep = longest(slots)
    most = max(from_t, from_p)
    t = np.empty(width)
    p = np.empty(width)
    et = np.empty(width)
    ep = np.empty(width)
    odds = np.empty(width)
    keep = np.empty(width)
    either = np.empty(2 * width, np.uint32)
    small = np.empty(width, np.int64)
    large = np.empty(width, np.int64)
    ranking = np.empty(deep, np.int64)
    # one entry per draw: slot after slot is filled for all of them
    chosen = np.empty((deep, most), np.uint32)
    waiting = np.empty(most, np.uint32)
    states = np.empty(most, np.uint64)
    u = np.empty(most)
    tails_t = np.empty(most)
    tails_p = np.empty(most)
    above = np.empty(most)  # w = above/below, so that there is one division per draw
    below = np.empty(most)
    z = np.empty(most)
    low = np.empty(most)
    weigh = want == Z or len(means) > 0
    log_cap = np.log(cap)
    for i in range(rows):
        n = lengths[i]
        k = slots[i]
        load_row(t_values, t_starts[i], n, t_inverse, t)
        load_row(p_values, p_starts[i], n, p_inverse, p)
        in_range = k * (spread(t, n) + spread(p, n)) <= SAFE_SPREAD
        if in_range:
            exp_within(t, et, n)
            exp_within(p, ep, n)
            # in shares of the total, so that a product of many tails stays in range
            by_t = 1.0 / sum_of(et, n)
            by_p = 1.0 / sum_of(ep, n)
            for j in range(n):
                et[j] *= by_t
                ep[j] *= by_p
                odds[j] = et[j] / ep[j]
        for side in range(2):
            of_treatment = side == 0
            many = np.uint64(from_t if of_treatment else from_p)
            if many == 0:
                continue
            answer = out[i, :from_t] if of_treatment else out[i, from_t:]
            state = state_of(seed, t_stream if of_treatment else p_stream, keys[i])
            if in_range:
                for d in range(many):
                    states[d] = draw_state(state, np.uint64(first) + d) + GAMMA
                _draw(
                    et if of_treatment else ep, tails_t if of_treatment else tails_p, et, ep, odds, n, np.uint64(k),
                    keep, either, small, large, states, u, chosen, waiting, tails_t, tails_p, above, below,
                    want, weigh and of_treatment, cap, zero, z, low, many,
                )  # fmt: skip
                if want == Z:
                    for d in range(many):
                        answer[d] = z[d]
                elif want == W:
                    for d in range(many):
                        answer[d] = above[d] / below[d]
                else:
                    for d in range(many):
                        u[d] = above[d] / below[d]
                    log_within(u, answer, many)
                if not of_treatment:
                    if len(log_p) > 0:
                        _log_probs(ep, n, chosen, np.uint64(k), tails_p, above, below, log_p[i], many)
                    for d in range(min(from_p, shown.shape[1])):
                        for slot in range(min(k, shown.shape[2])):
                            shown[i, d, slot] = chosen[slot, d]
            else:
                for d in range(many):
                    generator = draw_state(state, np.uint64(first) + d)
                    _gumbel_ranking(t if of_treatment else p, n, k, generator, keep, ranking)
                    of_control = log_prob_by_tails(p, n, ranking, k)
                    log_w = log_prob_by_tails(t, n, ranking, k) - of_control
                    answer[d] = log_w if want == LOG_W else np.exp(log_w)
                    if weigh:
                        z[d] = _capped_share(log_w, log_cap, zero)
                        low[d] = _capped_share(log_w, log_cap - np.log(SLICE), zero)
                        if want == Z:
                            answer[d] = z[d]
                    if not of_treatment:
                        if len(log_p) > 0:
                            log_p[i, d] = of_control
                        if d < shown.shape[1]:
                            for slot in range(min(k, shown.shape[2])):
                                shown[i, d, slot] = ranking[slot]
            if of_treatment and len(means) > 0:
                means[i, 0] = sum_of(z, from_t) / from_t
                means[i, 1] = sum_of(low, from_t) / from_t
    return out
