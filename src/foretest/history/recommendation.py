"""Which estimator, and which bound on its weights, came closest to the online tests of a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from foretest.displays.batch import Floats
from foretest.files import json_ready

#: a lead of fewer standard errors may be chance
CLEAR = 2.0


def recommend(
    parts: Sequence[Mapping[str, Any]], headline: str | None = None, unused: Sequence[str] = ()
) -> dict[str, Any] | None:
    """From the tests of one metric, those in which all estimators have a number.

    `rmse` is that of the offline against the online uplift, `error` what is left of it without the noise of online:
    mean[(x − y)² − se_y² + 2 cov], as both share the control's log. Calibrated estimates are those left one out; the
    others fit nothing. The best is clearly so where it leads the headline by two standard errors, test by test. Those
    `unused`, calibrated by a fit that is not used, are judged and not recommended.
    """
    found = _estimators(parts)
    if found is None:
        return None
    labels, squares, corrected = found
    best = min((label for label in labels if label not in unused),
               key=lambda label: float(corrected[labels.index(label)].mean()))  # fmt: skip
    errors = {label: _errors(squares[i], corrected[i]) for i, label in enumerate(labels)}
    current = headline if headline in labels else best
    gain = corrected[labels.index(current)] - corrected[labels.index(best)]
    bounds = _bounds(parts)
    told: dict[str, Any] = json_ready(
        {
            "tests": squares.shape[1],
            "estimator": best,
            "estimators": errors,
            "headline": current,
            "clear": best != current and _is_clear(gain),
            "weight_bound": None if bounds is None else bounds["weight_bound"],
            "weight_bounds": bounds,
        }
    )
    return told


def _estimators(parts: Sequence[Mapping[str, Any]]) -> tuple[list[str], Floats, Floats] | None:
    """The estimators, (x − y)² by estimator and test, and the same less the noise of y."""
    labels = list(dict.fromkeys(label for part in parts for label in part["offline"]))
    # a calibrated estimate that no test has (a history of one test) is no candidate
    labels = [label for label in labels if any(_value(part["offline"].get(label)) is not None for part in parts)]
    some = [
        part for part in parts
        if _value(part["online"]) is not None
        and all(_value(part["offline"].get(label)) is not None for label in labels)
    ]  # fmt: skip
    if not labels or not some:
        return None
    y = np.array([_value(part["online"]) for part in some])
    x = np.array([[_value(part["offline"][label]) for part in some] for label in labels])
    noise = [[part["noise"].get(label, {}) for part in some] for label in labels]
    extra = np.array([[_known(n.get("online_error")) ** 2 - 2.0 * _known(n.get("covariance")) for n in row]
                      for row in noise])  # fmt: skip
    squares = np.square(x - y)
    return labels, squares, squares - extra


def _bounds(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The error along the bound on the weights of `point-ncis-adaptive`, over the grid that all tests share."""
    label = "point-ncis-adaptive"
    paths = [(part["bounds"], _value(part["online"]), part["noise"].get(label, {})) for part in parts
             if part.get("bounds") and _value(part["online"]) is not None]  # fmt: skip
    if not paths:
        return None
    grid = sorted(set.intersection(*(set(path["bounds"]) for path, _, _ in paths)))
    rows = []
    for path, online, noise in paths:
        at = dict(zip(path["bounds"], path["rel_effect_size"], strict=True))
        if all(at[bound] is not None for bound in grid):
            # the noise shared with online is taken to be that at the run's own bound
            extra = _known(noise.get("online_error")) ** 2 - 2.0 * _known(noise.get("covariance"))
            squares = np.square(np.array([at[bound] for bound in grid]) - online)
            rows.append((squares, squares - extra))
    if not grid or not rows:
        return None
    squares, corrected = (np.array([row[k] for row in rows]) for k in (0, 1))
    best = int(np.argmin(corrected.mean(axis=0)))
    used = paths[0][0].get("weight_bound")
    own = grid.index(used) if used in grid else best
    columns = [_errors(squares[:, i], corrected[:, i]) for i in range(len(grid))]
    return {
        "tests": len(rows), "weight_bound": grid[best], "used": used,
        "clear": own != best and _is_clear(corrected[:, own] - corrected[:, best]), "bounds": grid,
        **{name: [column[name] for column in columns] for name in ("rmse", "error")},
    }  # fmt: skip


def sentence(told: Mapping[str, Any]) -> str:
    """The recommendation in words."""
    best, current = told["estimator"], told["headline"]
    error = 100.0 * told["estimators"][best]["rmse"]
    if best == current:
        said = f"{best} came closest to online, with an error of {error:.1f} points over {told['tests']} tests."
    else:
        other = 100.0 * told["estimators"][current]["rmse"]
        said = (
            f"{best} came closest to online over {told['tests']} tests: an error of {error:.1f} points, where {current}"
            f" has {other:.1f}{'.' if told['clear'] else '; the lead may be chance.'}"
        )
    bounds = told["weight_bounds"]
    if bounds is not None:
        at = 100.0 * bounds["rmse"][bounds["bounds"].index(bounds["weight_bound"])]
        said += f" Of the bounds of point-ncis-adaptive {bounds['weight_bound']:g} did best ({at:.1f} points"
        if bounds["used"] in bounds["bounds"] and bounds["used"] != bounds["weight_bound"]:
            used = 100.0 * bounds["rmse"][bounds["bounds"].index(bounds["used"])]
            said += f"; {bounds['used']:g}, as used, {used:.1f}{'' if bounds['clear'] else ': the lead may be chance'}"
        said += ")."
    return said


def learned_sentence(label: str, calibration: Mapping[str, Any]) -> str:
    """What the fit says, and whether it is used."""
    gamma, count = calibration["gamma"], calibration["tests"]
    tests = f"{count:,} test{'' if count == 1 else 's'}"
    if gamma is None:
        return f"{label}: {calibration['reason']}."
    between = ""
    if calibration["gamma_ci_lower"] is not None:
        between = f", 95 % interval {calibration['gamma_ci_lower']:.2f} to {calibration['gamma_ci_upper']:.2f}"
    spread = calibration["tau2"] ** 0.5
    said = (
        f"{label}, by {tests}: what the log does not support was worth {gamma:.2f} times what it does (Γ0{between}),"
        f" and varies by {spread:.2f} (τ) from test to test."
    )
    use = (
        f"foretest run --calibration calibration.json gives {calibration['estimator']} beside {label}."
        if calibration["used"]
        else f"Not used: {calibration['reason']}."
    )
    return f"{said} {use}"


def _is_clear(gain: Floats) -> bool:
    error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.inf
    return bool(gain.mean() > CLEAR * error)


def _errors(squares: Floats, corrected: Floats) -> dict[str, float]:
    return {"rmse": float(np.sqrt(squares.mean())), "error": float(np.sqrt(max(0.0, corrected.mean())))}


def _value(estimate: Mapping[str, Any] | None) -> float | None:
    return None if estimate is None else estimate["rel_effect_size"]


def _known(value: float | None) -> float:
    return 0.0 if value is None else float(value)
