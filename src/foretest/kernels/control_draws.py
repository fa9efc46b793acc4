"""Rankings drawn from a Plackett-Luce control, with their log-probabilities, for the propensity audit."""

from __future__ import annotations

import numpy as np

from foretest.kernels.exponential import exp_within, sum_of
from foretest.kernels.jit import jit
from foretest.kernels.lists import longest
from foretest.kernels.plackett_luce import load_row, log_prob_by_tails
from foretest.kernels.random import draw_state, state_of, uniform_at

# A tail found by subtraction keeps its digits while it is at least this share of the total; below it is added up anew.
_SAFE_SHARE = 1e-3
# Below this the exponentials themselves have lost digits to underflow: the draw is redone in log space.
_TINY = 1e-280


@jit
def _in_log_space(x, n, k, generator, left, ranking):
    """As `plackett_luce.sample`: each slot subtracts the largest score left."""
    for j in range(n):
        left[j] = x[j]
    for slot in range(k):
        most = -np.inf
        for j in range(n):
            most = max(most, left[j])
        total = 0.0
        for j in range(n):
            total += np.exp(left[j] - most)
        target = uniform_at(generator, np.uint64(slot)) * total
        running = 0.0
        chosen = -1
        for j in range(n):
            if left[j] == -np.inf:
                continue
            running += np.exp(left[j] - most)
            chosen = j
            if running > target:
                break
        ranking[slot] = chosen
        left[chosen] = -np.inf


@jit
def control_draws(values, starts, lengths, slots, inverse_temperature, keys, seed, stream, count, kept, most_slots):
    """log π of `count` rankings of each display, and the first `most_slots` positions of the first `kept` (else −1).

    Slot by slot, the item where the running sum of e over those left passes u·(their sum): with the same uniforms the
    rankings of `plackett_luce.sample`, at one exp an item and one log a draw.
    """
    rows = len(lengths)
    log_p = np.empty((rows, count))
    shown = np.full((rows, kept, most_slots), -1, np.int32)
    width = longest(lengths)
    x = np.empty(width)
    e = np.empty(width)
    left = np.empty(width)
    ranking = np.empty(longest(slots), np.int64)
    taken = np.empty(longest(slots))
    for i in range(rows):
        n = lengths[i]
        k = slots[i]
        load_row(values, starts[i], n, inverse_temperature, x)
        exp_within(x, e, n)
        total = sum_of(e, n)
        state = state_of(seed, stream, keys[i])
        for d in range(count):
            generator = draw_state(state, np.uint64(d))
            tail = total
            product = 1.0
            answer = 0.0
            filled = 0
            for slot in range(k):
                if tail < _SAFE_SHARE * total:
                    tail = sum_of(e, n)
                    if tail < _TINY:
                        break
                target = uniform_at(generator, np.uint64(slot)) * tail
                running = 0.0
                chosen = 0
                for j in range(n):
                    if e[j] > 0.0:  # 0: shown above
                        running += e[j]
                        chosen = j
                        if running > target:
                            break
                product *= tail
                if product < 1e-20 or product > 1e20:
                    answer -= np.log(product)
                    product = 1.0
                answer += x[chosen]
                tail -= e[chosen]
                taken[slot] = e[chosen]
                e[chosen] = 0.0
                ranking[slot] = chosen
                filled += 1
            for slot in range(filled):
                e[ranking[slot]] = taken[slot]
            if filled == k:
                log_p[i, d] = answer - np.log(product)
            else:
                _in_log_space(x, n, k, generator, left, ranking)
                log_p[i, d] = log_prob_by_tails(x, n, ranking, k)
            if d < kept:
                for slot in range(min(k, most_slots)):
                    shown[i, d, slot] = ranking[slot]
    return log_p, shown


@jit
def ranks_by_score(values, starts, lengths, positions, most):
    """How many items of its row score higher than each position's, equal ones counting where they stand before it.

    `positions` is rows × rankings × slots; ranks from `most` on are given as `most`, what is not there (−1) as 255.
    """
    rows, rankings, slots = positions.shape
    out = np.full((rows, rankings, slots), 255, np.uint8)
    for i in range(rows):
        row = values[starts[i] : starts[i] + lengths[i]]
        n = lengths[i]
        for r in range(rankings):
            for slot in range(slots):
                at = positions[i, r, slot]
                if at < 0:
                    continue
                rank = 0
                for j in range(n):
                    rank += row[j] > row[at] or (row[j] == row[at] and j < at)
                out[i, r, slot] = min(rank, most)
    return out
