"""Do the weights have the means they must have? The capped moment, and the balance of context features."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.audit.by_unit import two_sided, z_by_unit
from foretest.audit.context import Feature
from foretest.audit.finding import Finding, not_made, tested
from foretest.displays import Floats
from foretest.kernels.normaliser import two_sided_means
from foretest.weights import capped

MOMENT, BALANCE = "capped moment", "balance"
FEWEST_AT_CAP = 100.0  # n·q̄/c: below, the mean of weights up to c is not yet normal
_LEAST_MASS = 0.1  # of q̂ in a denominator: any function of the context is a good weight for it


def mass_of_draws(draws_treatment: Floats, draws_control: Floats, cap: float, *, zero: bool) -> Floats:
    """q̂(x), unbiased and not cut at 1, from as many draws of each policy."""
    return np.asarray(two_sided_means(np.hstack([draws_treatment, draws_control]), cap, zero))


def _enough(name: str, units: int, q: float, cap: float) -> Finding | None:
    if units * q / cap > FEWEST_AT_CAP:
        return None
    needed = FEWEST_AT_CAP * cap / max(q, 1e-9)
    many = f"{needed:,.0f}" if q > 1e-3 else "far more"
    return not_made(name, f"weights up to {cap:g} need more than {many} units in the sample, and it has {units:,}")


def capped_moment(
    log_w: Floats, draws_treatment: Floats, draws_control: Floats, starts: npt.NDArray[np.int64], cap: float,
    capping: str,
) -> Finding:  # fmt: skip
    """mean(w̄ − q(x)) = 0, z by unit: what mean(w) = 1 would say of weights that have no tail."""
    q = mass_of_draws(draws_treatment, draws_control, cap, zero=capping == "zero")
    few = _enough(MOMENT, len(starts), float(q.mean()), cap)
    if few is not None:
        return few
    w = np.exp(capped(log_w, cap, capping))
    z = float(z_by_unit((w - q)[:, None], starts)[0])
    said = f"mean {w.mean():.4f}, expected {q.mean():.4f} at cap {cap:g} (z = {z:+.1f})"
    return tested(
        MOMENT, two_sided(z), z,
        f"capped weights have the mean they must have: {said}",
        f"capped weights are on average too {'small' if z < 0 else 'large'}: {said}",
        "Rankings that the treatment likes were shown "
        f"{'less' if z < 0 else 'more'} often than [control] says. Check its parameters, and that its scores and the"
        " treatment's belong to the same display and the same list of items.",
    )  # fmt: skip


def balance(
    features: list[Feature], log_w: Floats, draws_treatment: Floats, draws_control: Floats,
    starts: npt.NDArray[np.int64], cap: float,
) -> Finding:  # fmt: skip
    """(mean(w̃ f) − mean f)/sd f = 0 for every context feature f, z by unit, Bonferroni over features.

    w̃ − 1 = (w̄ − q)/q. Of the two q, each has draws of its own: as w̄ − q̂ has mean 0 given the context and the other
    draws, so has the quotient, which an inverse of one and the same q̂ would not have.
    """
    half = draws_treatment.shape[1] // 2
    q = mass_of_draws(draws_treatment[:, :half], draws_control[:, :half], cap, zero=False)
    few = _enough(BALANCE, len(starts), float(q.mean()), cap)
    if few is not None:
        return few
    if not features:
        return not_made(BALANCE, "no feature varies")
    other = mass_of_draws(draws_treatment[:, half:], draws_control[:, half:], cap, zero=False)
    excess = (np.exp(capped(log_w, cap, "max")) - q) / np.maximum(other, _LEAST_MASS)
    scaled = np.column_stack([(f.values - f.values.mean()) / f.values.std() for f in features])
    terms = excess[:, None] * scaled
    z = z_by_unit(terms, starts)
    worst = int(np.abs(z).argmax())
    p = min(1.0, len(features) * two_sided(float(z[worst])))
    shift, count = float(terms[:, worst].mean()), len(features)
    said = f"{features[worst].name} by {shift:+.3f} standard deviations (z = {z[worst]:+.1f}, {count} looked at)"
    return tested(
        BALANCE, p, float(z[worst]),
        f"weights leave the contexts as they are; most moved is {said}",
        f"weights move the contexts, which no ranking can change: {said}",
        "The probabilities are wrong for some of the contexts: look at that feature's values one by one. Perhaps a part"
        " of the traffic was served by another policy; leave it out, or describe it.",
    )  # fmt: skip
