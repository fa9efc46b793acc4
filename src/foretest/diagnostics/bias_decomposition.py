"""Which strata the bias of NCIS comes from: its between-context part, stratum by stratum (paper, section 5.2).

With z = w̄/w, NCIS tends to E_t[R z]/E_t[z], and its distance from the truth is

    NCIS − E_t[R] = Cov_t(R, z)/E_t[z] = { Cov(E_t[R|G], E_t[z|G]) + E[Cov_t(R, z|G)] } / E_t[z]

for strata G of contexts: a part between strata and a part within them. A log shows the first. With ρ_g = n_g/n the
share of a stratum, m_g = Σ_g w̄/n_g its kept mass, v_g = Σ_g w̄r/Σ_g w̄ its value, M = Σ ρ_g m_g and Θ = Σ ρ_g v_g
(PieceNCIS),

    NCIS − PieceNCIS = Σ_g ρ_g m_g v_g/M − Σ_g ρ_g v_g = Σ_g ρ_g (v_g − Θ)(m_g − M)/M

A stratum that is worth more than the average and of which the cap keeps less pulls NCIS down, as does one that is
worth less and kept more. v_g stands for E_t[R|g], which no log shows: the two are equal where R and z are uncorrelated
within the stratum, which is what PieceNCIS assumes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.aggregation.aggregates import Aggregates
from foretest.estimators.base import Estimator, ratio
from foretest.files import finite_or_none
from foretest.inference.buckets import Stratum, bucket_sums
from foretest.inference.delta import std_error


def bias_contributions(n: npt.NDArray[Any], h: npt.NDArray[Any], hr: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """ρ_g (v_g − Θ)(m_g − M)/M of every stratum (the last axis): the sum over strata is NCIS − PieceNCIS.

    `n` are rows, `h` sums of w̄ and `hr` sums of w̄r, these two in any one unit. Strata without weight have no value:
    they contribute 0, and shares are among the others. Real or complex, like an estimator's value.

    Table 1 of the paper: NCIS is 1.79381, PieceNCIS 2.1.

    >>> contributions = bias_contributions(np.array([0.1, 0.9]), np.array([0.07, 0.9]), np.array([0.84, 0.9]))
    >>> [round(float(part), 5) for part in contributions], round(1.74 / 0.97 - 2.1, 5)
    ([-0.27557, -0.03062], -0.30619)
    """
    rows = np.where(h != 0, n, 0.0 * n)
    share = ratio(rows, rows.sum(axis=-1, keepdims=True))
    value, mass = ratio(hr, h), ratio(h, n)
    mean_mass = (share * mass).sum(axis=-1, keepdims=True)
    piece = (share * value).sum(axis=-1, keepdims=True)
    return np.asarray(share * (value - piece) * ratio(mass - mean_mass, mean_mass))


def strata_with_bias(
    aggregates: Aggregates, estimator: Estimator, metric: int, strata: list[Stratum]
) -> list[dict[str, Any]]:
    """The rows of a stratified estimator's table, each with its contribution to the bias of NCIS and its error.

    The NCIS is that of the same weights. A stratum without weight has neither.
    """
    if not strata:
        return []
    sums = bucket_sums(aggregates, estimator, metric)
    total = sums.total()
    contributions = bias_contributions(total.n, total.h, total.hr)[0]
    influences = sums.influence(lambda s: bias_contributions(s.n, s.h, s.hr))
    rows = []
    for g, stratum in enumerate(strata):
        error = std_error(influences[:, g], aggregates.displays, aggregates.n_units)
        known = stratum.value is not None
        rows.append({
            **stratum._asdict(),
            "bias_contribution": finite_or_none(contributions[g]) if known else None,
            "bias_contribution_std_error": finite_or_none(error) if known else None,
        })  # fmt: skip
    return rows
