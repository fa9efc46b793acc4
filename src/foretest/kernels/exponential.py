"""exp and log of a whole row at once: the transcendental functions on the hot path."""

from __future__ import annotations

from typing import Any

import numpy as np

from foretest.kernels.jit import fast, finite, intrinsic, jit

_ROUND = 1.5 * 2.0**52
_HALF_ROOT = 0x3FE6A09E667F3BCD  # the bits of √½
_BLOCK = 1024


@intrinsic
def _bits_of(_: Any, number: Any) -> Any:
    """The 64 bits of a double as an integer: no instruction at all."""
    from llvmlite import ir
    from numba import types

    def same_bits(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), same_bits


@intrinsic
def _double_of(_: Any, bits: Any) -> Any:
    """The double with these 64 bits."""
    from llvmlite import ir
    from numba import types

    def same_bits(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), same_bits


@finite
def exp_within(x, e, n):
    """e[:n] <- exp(x[:n]), x ≤ 700, to a unit in the last place.

    exp(x) = 2^k·exp(r), k = round(x/ln 2), |r| ≤ ln(2)/2, by the polynomial 1 + r + r²·g(r) of degree 11 whose largest
    relative error there is least, 4e-18 (Remez), in Estrin's order, whose short chains overlap. Adding 1.5·2^52 rounds
    to a whole number and leaves it in the low bits, from which a shift makes 2^k: every step vectorises, unlike a call
    to the C library. Below −708 the answer is exp(−708).
    """
    for j in range(n):
        z = max(x[j], -708.0)
        shifted = z * 1.4426950408889634 + _ROUND
        k = shifted - _ROUND
        # ln 2 in two parts, so that k·ln 2 loses no digit
        r = z - k * 0.693147180369123816490
        r = r - k * 1.90821492927058770002e-10
        r2 = r * r
        r4 = r2 * r2
        p2 = r * 0.16666666666666412775 + 0.50000000000000106167
        p4 = r * 0.0083333333334943339182 + 0.041666666666530266166
        p6 = r * 0.00019841269506777413704 + 0.0013888888943597647322
        p8 = r * 2.7557586268520466129e-06 + 2.4801493136237505743e-05
        p10 = r * 2.5000071614941017014e-08 + 2.7630233902096336423e-07
        high = p10 * r4 + (p8 * r2 + p6)
        e[j] = ((high * r4 + (p4 * r2 + p2)) * r2 + r + 1.0) * _double_of((_bits_of(shifted) + 1023) << 52)


@finite
def log_within(x, out, n):
    """out[:n] <- log(x[:n]) of positive normal doubles, to a unit in the last place.

    log(x) = k·ln 2 + log(1 + f), √½ ≤ 1 + f < √2. With s = f/(2 + f), log(1 + f) = 2·artanh(s) = f − s·(f − R), where
    R = 2s²/3 + 2s⁴/5 + … + 2s²⁰/21: as |s| < 0.172, the terms left out are below the last place.
    """
    for j in range(n):
        bits = _bits_of(x[j])
        k = (bits - _HALF_ROOT) >> 52
        f = _double_of(bits - (k << 52)) - 1.0
        s = f / (2.0 + f)
        z = s * s
        w = z * z
        odd = w * (2 / 9 + w * (2 / 13 + w * (2 / 17 + w * (2 / 21)))) + 2 / 5
        even = w * (2 / 7 + w * (2 / 11 + w * (2 / 15 + w * (2 / 19)))) + 2 / 3
        out[j] = k * 0.693147180369123816490 - (s * (f - z * (z * odd + even)) - k * 1.90821492927058770002e-10 - f)


@jit
def exponentials(x, shift):
    """exp(x − shift), x − shift ≤ 700; 0 where that is below the smallest normal double, as it is for −∞."""
    n = len(x)
    out = np.empty(n)
    moved = np.empty(_BLOCK)
    for first in range(0, n, _BLOCK):
        size = min(_BLOCK, n - first)
        here = x[first : first + size]
        answer = out[first : first + size]
        for j in range(size):
            moved[j] = max(here[j] - shift, -709.0)  # the next step takes finite numbers
        exp_within(moved, answer, size)
        for j in range(size):
            answer[j] = answer[j] if moved[j] > -708.0 else 0.0
    return out


@fast
def sum_of(e, n):
    """Σ e[:n], in any order."""
    total = 0.0
    for j in range(n):
        total += e[j]
    return total
