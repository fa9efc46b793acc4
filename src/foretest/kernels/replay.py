"""The draws of `foretest.serving` for many displays at once: its numbers, and Plackett-Luce's rankings from them."""

from __future__ import annotations

import numpy as np

from foretest.kernels.exponential import log_within
from foretest.kernels.jit import jit, step
from foretest.kernels.lists import longest
from foretest.kernels.random import draw_state, state_of, uniform_at


@jit
def display_states(seed, stream, keys):
    """The generator's state of each display."""
    out = np.empty(len(keys), np.uint64)
    for i in range(len(keys)):
        out[i] = draw_state(state_of(seed, stream, keys[i]), np.uint64(0))
    return out


@jit
def first_numbers(states, width):
    """out[i, j] is number j of display i."""
    out = np.empty((len(states), width))
    for i in range(len(states)):
        for j in range(width):
            out[i, j] = uniform_at(states[i], np.uint64(j))
    return out


@jit
def gumbel_rankings(values, starts, lengths, slots, inverse_temperature, states, first, wide_spread, wide_gap, out):
    """out <- of each row the items with the highest s/T − log(−log u); u is `first` for the first item of a row."""
    width = longest(lengths)
    x, noise, best = np.empty(width), np.empty(width), np.empty(longest(slots))
    at = 0
    for i in range(len(starts)):
        n = lengths[i]
        low, high = np.inf, -np.inf
        for j in range(n):
            score = np.float64(values[starts[i] + j])
            low, high = min(low, score), max(high, score)
        for j in range(n):
            x[j] = (np.float64(values[starts[i] + j]) - high) * inverse_temperature
            noise[j] = uniform_at(states[i], np.uint64(j))
        if (high - low) * inverse_temperature > wide_spread:
            _compress(x, n, wide_gap)
        noise[0] = first[i]
        log_within(noise, noise, n)
        for j in range(n):
            noise[j] = -noise[j]
        log_within(noise, noise, n)
        for j in range(n):
            x[j] -= noise[j]
        _take_highest(x, n, slots[i], best, out[at : at + slots[i]])
        at += slots[i]


@step
def _compress(x, n, wide_gap):
    """Gaps above `wide_gap` are made that wide: noise keeps its digits beside them."""
    order = np.argsort(-x[:n], kind="mergesort")
    before = x[order[0]]
    total = 0.0
    x[order[0]] = 0.0
    for place in range(1, n):
        item = order[place]
        total += min(before - x[item], wide_gap)
        before = x[item]
        x[item] = -total


@step
def _take_highest(x, n, slots, best, out):
    """out <- the items of the highest numbers, in order; ties: the lower position first."""
    taken = 0
    for j in range(n):
        if taken == slots and not x[j] > best[slots - 1]:
            continue
        place = taken if taken < slots else slots - 1
        while place > 0 and x[j] > best[place - 1]:
            best[place] = best[place - 1]
            out[place] = out[place - 1]
            place -= 1
        best[place] = x[j]
        out[place] = j
        taken = min(taken + 1, slots)
