"""`cap = "auto"`: the cap that balances noise against what it cuts off, chosen from weights alone."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.kept_rows import Columns
from foretest.displays.batch import Floats
from foretest.formatting import percent
from foretest.kernels.normaliser import squares_of_draws, two_sided_means
from foretest.records import dataclass
from foretest.settings.analysis import DEFAULT_CAP
from foretest.special import ndtri

# 1.78 to 1e6, four per decade, in the digits that a reader would write
CANDIDATES = np.array([float(f"{10.0 ** (k / 4):.3g}") for k in range(1, 25)])


@dataclass(frozen=True)
class CapChoice:
    """How a cap was chosen. Columns have one number per candidate, relative to the control's value."""

    chosen: float
    candidates: tuple[float, ...]
    noise: tuple[float, ...]  # z·s/r̄
    bias: tuple[float, ...]  # B/r̄
    criterion: tuple[float, ...]  # their sum
    metric: str  # whose rewards set the scale
    source: str  # "draws" or "log"
    displays: int
    gamma_upper: float
    confidence_level: float

    def to_dict(self) -> dict[str, Any]:
        """The fields as result.json has them."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> CapChoice:
        """The choice that a `to_dict` describes."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in document.items()}
        return cls(**fields)

    def sentence(self) -> str:
        """The choice in words, for notes."""
        if not self.criterion:
            return f'cap = "auto": there is nothing to choose from, as no row has a reward; the cap is {self.chosen:g}.'
        at = self.candidates.index(self.chosen)
        noise, bias = (percent(column[at]) for column in (self.noise, self.bias))
        return (
            f'cap = "auto" chose {self.chosen:g} of {len(self.candidates)} caps: there the noise of point-ncis'
            f" (±{noise}) and what the cap could hide ({bias}) have the smallest sum, judged from weights alone. For"
            f" aggregates of other logs, write cap = {self.chosen:g}."
        )


def choose_cap(sample: Aggregates) -> CapChoice:
    """The cap c of `CANDIDATES` with the smallest z·s + B; the smallest of those that are equal.

        s² = mean(r²)·(mean E_p[w̃²|x] − 1)/n      the variance of the uplift, if rewards do not depend on weights
        B  = (Γ_upper − 1)·(1 − q̄)·r̄               the most that what is cut off can add

    w̃ = min(w, c)/q_c(x), from the draws of a sample of displays; a q below the share of one draw is taken for that
    share: draws cannot estimate it, and a handful of displays would decide. No reward of the treatment enters: only
    Σ r, Σ r² and n of the log, so that an interval at the chosen cap is as valid as at any other. (Rules that look at
    estimates need a bias that is monotone in c, which that of NCIS and PointNCIS is not.) Where a policy is logged
    nothing can be drawn, and the weights of the rows take the place of draws: q̄ = mean w̄ (at most 1), and
    w̃ = w̄/mean w̄.
    """
    plan, rows = sample.plan, sample.displays
    level = plan.settings.analysis.confidence_level
    _, gamma_upper = plan.settings.analysis.gamma_at(by_slot=False)
    columns, total = sample.sampled_displays, float(sample.r[0].sum())
    drawn = "draws_treatment" in columns
    choice = CapChoice(
        chosen=DEFAULT_CAP, candidates=(), noise=(), bias=(), criterion=(), metric=plan.metrics[0],
        source="draws" if drawn else "log", displays=len(columns.get("unit", ())), gamma_upper=gamma_upper,
        confidence_level=level,
    )  # fmt: skip
    if not columns or not total > 0.0:
        return choice
    moments = _moments_of_draws(columns) if drawn else _moments_of_rows(columns)
    z = float(ndtri(0.5 + level / 2.0))
    mean, square = total / rows, float(sample.r2[0]) / rows
    noise = z * np.sqrt(square * np.maximum(moments.second - 1.0, 0.0) / rows) / mean
    bias = (gamma_upper - 1.0) * (1.0 - moments.mass)
    criterion = noise + bias
    best = int(np.argmax(criterion <= criterion.min() * (1.0 + 1e-9)))
    return replace(
        choice, chosen=float(CANDIDATES[best]), candidates=_tuple(CANDIDATES), noise=_tuple(noise), bias=_tuple(bias),
        criterion=_tuple(criterion),
    )  # fmt: skip


class _Moments(NamedTuple):
    """At every candidate: the mean square of normalised weights, and the treatment's mass that the cap keeps."""

    second: Floats
    mass: Floats


def _tuple(column: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in column)


def _moments_of_draws(columns: Columns) -> _Moments:
    """mean E_p[w̃²|x] and mean q(x) over the displays of the sample."""
    log_w = np.hstack([columns["draws_treatment"], columns["draws_control"]])
    with np.errstate(over="ignore"):
        w = np.exp(log_w)
    second, mass = np.empty(len(CANDIDATES)), np.empty(len(CANDIDATES))
    for k, cap in enumerate(CANDIDATES):
        q = two_sided_means(log_w, cap, False)
        squares = squares_of_draws(w, np.full(len(w), cap), False)
        second[k] = np.maximum(1.0, squares / np.maximum(q, 1.0 / w.shape[1]) ** 2).mean()
        # q̄ = E_t[w̄/w], which is 1 and no noise where no weight is above the cap
        mass[k] = np.exp(np.minimum(0.0, np.log(cap) - columns["draws_treatment"])).mean()
    return _Moments(second, mass)


def _moments_of_rows(columns: Columns) -> _Moments:
    """mean w̃² and mean w̄ over the rows of the sample."""
    second, mass = np.empty(len(CANDIDATES)), np.empty(len(CANDIDATES))
    for k, cap in enumerate(CANDIDATES):
        capped = np.exp(np.minimum(columns["log_w"], np.log(cap)))
        mean = float(capped.mean())
        second[k] = float(np.square(capped).mean()) / mean**2 if mean > 0.0 else 1.0
        mass[k] = min(1.0, mean)
    return _Moments(second, mass)
