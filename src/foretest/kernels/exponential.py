"""exp of a whole row at once: the one transcendental function on the hot path."""

from __future__ import annotations

from foretest.kernels.jit import fast, finite

_ROUND = 1.5 * 2.0**52


@finite
def exp_nonpositive(x, e, bits, power, n):
    """e[:n] <- exp(x[:n]), x ≤ 0, to 2 units in the last place.

    exp(x) = 2^k·exp(r), k = round(x/ln 2), |r| ≤ ln(2)/2, by a Taylor polynomial of degree 12. Adding 1.5·2^52 rounds
    to a whole number and leaves it in the low bits, whence 2^k is a shift: every step vectorises, which a call to the
    C library does not. `power` is the float64 view of `bits`. Below −708 the answer is exp(−708).
    """
    for j in range(n):
        z = max(x[j], -708.0)
        shifted = z * 1.4426950408889634 + _ROUND
        power[j] = shifted
        k = shifted - _ROUND
        # ln 2 in two parts, so that k·ln 2 loses no digit
        r = z - k * 0.693147180369123816490
        r = r - k * 1.90821492927058770002e-10
        p = 2.08767569878681e-09
        p = p * r + 2.505210838544172e-08
        p = p * r + 2.755731922398589e-07
        p = p * r + 2.7557319223985893e-06
        p = p * r + 2.48015873015873e-05
        p = p * r + 0.0001984126984126984
        p = p * r + 0.001388888888888889
        p = p * r + 0.008333333333333333
        p = p * r + 0.041666666666666664
        p = p * r + 0.16666666666666666
        p = p * r + 0.5
        p = p * r + 1.0
        e[j] = p * r + 1.0
    for j in range(n):
        bits[j] = (bits[j] + 1023) << 52
    for j in range(n):
        e[j] *= power[j]


@fast
def sum_of(e, n):
    """Σ e[:n], in any order."""
    total = 0.0
    for j in range(n):
        total += e[j]
    return total
