"""Which estimator, and which bound on its weights, came closest to the online tests of a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from foretest.displays.batch import Floats
from foretest.files import json_ready
from foretest.formatting import plural
from foretest.history.records import BoundPath
from foretest.records import dataclass

#: a lead of fewer standard errors may be chance
CLEAR = 2.0
BOUNDED = "point-ncis-adaptive"  # the estimator whose bound on the weights is compared


@dataclass(frozen=True)
class ComparedTest:
    """One metric of a test: the relative uplifts online and offline, None where there is none.

    `noise` has, by estimator, the part of the squared difference that is noise of the online test, se_y² − 2 cov, and
    `reach` how far it may be from that, either way, where the covariance is not known.
    """

    online: float | None
    offline: dict[str, float | None]
    noise: dict[str, float]
    bounds: BoundPath | None = None
    reach: dict[str, float] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ComparedTest:
        """From a metric of a test, as agreement.json has it."""
        bounds = document.get("bounds")
        return cls(
            online=document["online"]["rel_effect_size"],
            offline={label: estimate["rel_effect_size"] for label, estimate in document["offline"].items()},
            noise={
                label: _zero_if_none(noise["online_error"]) ** 2 - 2.0 * _zero_if_none(noise["covariance"])
                for label, noise in document["noise"].items()
            },
            bounds=BoundPath(**bounds) if bounds else None,
            reach={
                label: 2.0 * noise["covariance_bound"]
                for label, noise in document["noise"].items()
                if noise.get("covariance_bound") is not None
            },
        )


class Errors(NamedTuple):
    """The root mean square of offline − online, and what is left of it without the noise of online."""

    rmse: float
    error: float


class Differences(NamedTuple):
    """(x − y)², the same less the noise of y, and how far that may be off; by candidate and test."""

    squares: Floats
    corrected: Floats
    reach: Floats

    def at_ends(self) -> list[Differences]:
        """With every covariance that is not known at its lower, and at its upper end; none where all are known."""
        if not self.reach.any():
            return []
        return [self._replace(corrected=self.corrected + end * self.reach) for end in (-1.0, 1.0)]

    def errors_at_ends(self, candidate: int) -> dict[str, float]:
        """What is left of the root mean square at both ends; nothing where all covariances are known."""
        ends = [one.errors(candidate).error for one in self.at_ends()]
        return dict(zip(("error_low", "error_high"), ends, strict=True)) if ends else {}

    def errors(self, candidate: int) -> Errors:
        squares, corrected = self.squares[candidate], self.corrected[candidate]
        return Errors(float(np.sqrt(squares.mean())), float(np.sqrt(max(0.0, corrected.mean()))))

    def leads_clearly(self, best: int, other: int) -> bool:
        """Whether the best is ahead of another by two standard errors, test by test."""
        if best == other:
            return False
        gain = self.corrected[other] - self.corrected[best]
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.inf
        return bool(gain.mean() > CLEAR * error)


def recommend(
    tests: Sequence[ComparedTest], headline: str | None = None, unused: Sequence[str] = ()
) -> dict[str, Any] | None:
    """The recommendation of agreement.json, from the tests of one metric in which all estimators have a number.

    `rmse` is the root mean square of the offline against the online uplift, `error` what is left of it without the
    noise of online: mean[(x − y)² − se_y² + 2 cov], as both share the control's log. Calibrated estimates are those by
    the fit of the other tests; no other estimate is fitted. The best is clearly so where it leads the headline by two
    standard errors, test by test, whichever end covariances are at that are not known. Estimators in `unused`,
    calibrated by a fit that is not used, are judged and not recommended.
    """
    labels = _candidates(tests)
    differences = _differences_by_estimator(tests, labels)
    if differences is None:
        return None
    best = min(
        (i for i, label in enumerate(labels) if label not in unused),
        key=lambda i: float(differences.corrected[i].mean()),
    )
    current = labels.index(headline) if headline in labels else best
    bounds = _recommend_bound(tests)
    recommendation: dict[str, Any] = json_ready(
        {
            "tests": differences.squares.shape[1],
            "estimator": labels[best],
            "estimators": {
                label: {**differences.errors(i)._asdict(), **differences.errors_at_ends(i)}
                for i, label in enumerate(labels)
            },
            "headline": labels[current],
            "clear": all(one.leads_clearly(best, current) for one in (differences, *differences.at_ends())),
            "weight_bound": None if bounds is None else bounds["weight_bound"],
            "weight_bounds": bounds,
        }
    )
    return recommendation


def _candidates(tests: Sequence[ComparedTest]) -> list[str]:
    """The estimators with a number in some test: a calibrated estimate in a history of one test has none."""
    labels = dict.fromkeys(label for test in tests for label in test.offline)
    return [label for label in labels if any(test.offline.get(label) is not None for test in tests)]


def _differences_by_estimator(tests: Sequence[ComparedTest], labels: list[str]) -> Differences | None:
    """Over the tests in which online and all estimators have a number; None where there are none."""
    whole = [
        test
        for test in tests
        if test.online is not None and all(test.offline.get(label) is not None for label in labels)
    ]
    if not labels or not whole:
        return None
    online = np.array([test.online for test in whole])
    offline = np.array([[test.offline[label] for test in whole] for label in labels])
    noise = np.array([[test.noise.get(label, 0.0) for test in whole] for label in labels])
    reach = np.array([[test.reach.get(label, 0.0) for test in whole] for label in labels])
    squares = np.square(offline - online)
    return Differences(squares, squares - noise, reach)


def _recommend_bound(tests: Sequence[ComparedTest]) -> dict[str, Any] | None:
    """The error along the bound on the weights of `point-ncis-adaptive`, over the grid that all tests share."""
    paths = [(test.bounds, test) for test in tests if test.bounds is not None and test.online is not None]
    if not paths:
        return None
    grid = sorted(set.intersection(*(set(path.bounds) for path, _ in paths)))
    differences = _differences_by_bound(paths, grid)
    if differences is None:
        return None
    best = int(np.argmin(differences.corrected.mean(axis=1)))
    used = paths[0][0].weight_bound
    errors = [differences.errors(i) for i in range(len(grid))]
    return {
        "tests": differences.squares.shape[1],
        "weight_bound": grid[best],
        "used": used,
        "clear": differences.leads_clearly(best, grid.index(used) if used in grid else best),
        "bounds": grid,
        "rmse": [error.rmse for error in errors],
        "error": [error.error for error in errors],
    }


def _differences_by_bound(paths: list[tuple[BoundPath, ComparedTest]], grid: list[float]) -> Differences | None:
    """Over the tests with a number at every bound of the grid; None where there are none."""
    squares, corrected = [], []
    for path, test in paths:
        uplift_at = dict(zip(path.bounds, path.rel_effect_size, strict=True))
        uplifts = [uplift_at[bound] for bound in grid]
        if all(uplift is not None for uplift in uplifts):
            squares.append(np.square(np.array(uplifts) - test.online))
            # the noise shared with online is taken to be that at the run's own bound
            corrected.append(squares[-1] - test.noise.get(BOUNDED, 0.0))
    if not grid or not squares:
        return None
    by_bound = np.array(squares).T
    # what is not known of the noise is the same at all bounds, and decides nothing between them
    return Differences(by_bound, np.array(corrected).T, np.zeros_like(by_bound))


def sentence(recommendation: Mapping[str, Any]) -> str:
    """A recommendation of agreement.json in words."""
    best, current = recommendation["estimator"], recommendation["headline"]
    errors, tests = recommendation["estimators"], recommendation["tests"]
    error = 100.0 * errors[best]["rmse"]
    if best == current:
        closest = f"{best} came closest to online, with an error of {error:.1f} points over {tests} tests."
    else:
        end = "." if recommendation["clear"] else "; the lead may be chance."
        closest = (
            f"{best} came closest to online over {tests} tests: an error of {error:.1f} points, where {current}"
            f" has {100.0 * errors[current]['rmse']:.1f}{end}"
        )
    bounds = recommendation["weight_bounds"]
    return closest if bounds is None else f"{closest} {_bound_sentence(bounds)}"


def _bound_sentence(bounds: Mapping[str, Any]) -> str:
    best, used = bounds["weight_bound"], bounds["used"]
    error_at = {bound: 100.0 * rmse for bound, rmse in zip(bounds["bounds"], bounds["rmse"], strict=True)}
    errors = f"{error_at[best]:.1f} points"
    if used in error_at and used != best:
        errors += f"; {used:g}, as used, {error_at[used]:.1f}{'' if bounds['clear'] else ': the lead may be chance'}"
    return f"Of the bounds of {BOUNDED} {best:g} did best ({errors})."


def learned_sentence(label: str, calibration: Mapping[str, Any]) -> str:
    """A calibration of agreement.json in words: what the fit says, and whether it is used."""
    gamma = calibration["gamma"]
    if gamma is None:
        return f"{label}: {calibration['reason']}."
    between = ""
    if calibration["gamma_ci_lower"] is not None:
        between = f", 95 % interval {calibration['gamma_ci_lower']:.2f} to {calibration['gamma_ci_upper']:.2f}"
    spread, unknown = calibration["tau2"] ** 0.5, _unknown_covariance_text(calibration.get("unknown_covariance"))
    use = (
        f"foretest run --calibration calibration.json gives {calibration['estimator']} beside {label}."
        if calibration["used"]
        else f"Not used: {calibration['reason']}."
    )
    return (
        f"{label}, by {plural(calibration['tests'], 'test')}: what the log does not support was worth {gamma:.2f} times"
        f" what it does (Γ0{between}), and varies by {spread:.2f} (τ) from test to test. {unknown}{use}"
    )


def _unknown_covariance_text(unknown: Mapping[str, Any] | None) -> str:
    """What Γ0 would be at both ends of the covariances that are not known; empty where all are known."""
    if unknown is None:
        return ""
    ends = [_end_text(unknown[name]) for name in ("at_lowest", "at_highest") if unknown[name]["gamma"] is not None]
    if len(ends) < 2:
        return ""
    return (
        f"In {plural(unknown['tests'], 'test')} given as results the covariance of offline and online noise is not"
        f" known: at its two bounds Γ0 is {ends[0]} and {ends[1]}. "
    )


def _end_text(fit: Mapping[str, Any]) -> str:
    lower, upper = fit["gamma_ci_lower"], fit["gamma_ci_upper"]
    return f"{fit['gamma']:.2f}" + ("" if lower is None else f" ({lower:.2f} to {upper:.2f})")


def _zero_if_none(value: float | None) -> float:
    return 0.0 if value is None else float(value)
