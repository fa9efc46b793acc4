"""The capital of a bettor on terms in [0, 1] that mostly equal one constant: the bets once, then the capital for any m.

The bets of Waudby-Smith and Ramdas (2024) depend on the m that is bet against only through their cap, and all units
without reward have the same term: a run of them is one power, not a loop.
"""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import jit

# A bet made after i terms is renewed when a term other than the constant comes, and i/1024 terms later at the latest:
# at every term up to the 2 048th, and then with a lag of a thousandth. The rule depends on past terms only, as it must.
_RENEWALS = 1024


@jit
def bets(gaps, terms, zero, budget, horizon, target):
    """λ of every block of terms: `zeros[j]` times the constant `zero`, then (where ends[j]) one other term, `own[j]`.

    gaps[u] constants come before terms[u], gaps[-1] after the last. λ_i = √(budget/(N σ̂²_{i−1})) before its cap, with
    μ̂_i = (½ + Σ_{j≤i} y_j)/(i+1) and σ̂²_i = (¼ + Σ_{j≤i} (y_j − μ̂_j)²)/(i+1). N is the horizon or, with a target,
    the number of terms until that many others than the constant are met at the pace so far.
    """
    lots = 2 * _RENEWALS + int(_RENEWALS * np.log(1.0 + horizon / _RENEWALS)) + 2 * len(gaps) + 16
    lam = np.empty(lots)
    zeros = np.empty(lots)
    own = np.zeros(lots)
    ends = np.zeros(lots, np.bool_)
    blocks = 0
    seen = 0.0  # i
    total = 0.5  # ½ + Σ y
    squares = 0.25  # ¼ + Σ (y − μ̂)²
    for u in range(len(gaps)):
        left = float(gaps[u])
        last = u == len(terms)
        while True:
            if last and left == 0.0:
                break
            length = max(1.0, np.floor(seen / _RENEWALS))
            steps = horizon if target == 0.0 else min(horizon, (seen + 1.0) * target / (u + 1.0))
            lam[blocks] = np.sqrt(budget * (seen + 1.0) / (steps * squares))
            run = min(left, length)
            if run > 0.0:
                # each constant is (zero·(i+1) − total)/(j+1) away from the mean μ̂_j that it has joined
                away = zero * (seen + 1.0) - total
                if run == 1.0:
                    squares += (away / (seen + 2.0)) ** 2
                else:  # Σ 1/(j+1)² by the midpoint rule, good to 1e-7 after 2 048 terms
                    squares += away * away * (1.0 / (seen + 1.5) - 1.0 / (seen + run + 1.5))
                seen += run
                total += run * zero
                left -= run
            zeros[blocks] = run
            # another term that comes before the block is full is bet on with the block's bet
            if run < length and not last:
                own[blocks] = terms[u]
                ends[blocks] = True
                seen += 1.0
                total += terms[u]
                squares += (terms[u] - total / (seen + 1.0)) ** 2
            blocks += 1
            if ends[blocks - 1]:
                break
    return lam[:blocks], zeros[:blocks], own[:blocks], ends[:blocks]


@jit
def log_capital(lam, zeros, own, ends, zero, m, at_best):
    """log ∏ (1 + λ_j (y_j − m)) with bets capped at ½/m: in the end or, `at_best`, at its highest so far.

    In a run of equal terms the capital only grows or only shrinks: it is highest at the end of a run.
    """
    most = -np.inf
    capital = 0.0
    cap = 0.5 / m if m > 0.0 else np.inf
    for j in range(len(lam)):
        bet = min(lam[j], cap)
        if zeros[j] > 0.0:
            capital += zeros[j] * np.log1p(bet * (zero - m))
            most = max(most, capital)
        if ends[j]:
            capital += np.log1p(bet * (own[j] - m))
            most = max(most, capital)
    return most if at_best else capital
