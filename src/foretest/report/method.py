"""How the numbers were computed: formulas, references, and the settings as a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from foretest.calibration.fit import CALIBRATED
from foretest.inference.verdict import DENSE_POSITIVES, FEWEST_POSITIVES, FEWEST_UNITS
from foretest.records import dataclass
from foretest.report.blocks import Link
from foretest.report.estimator_words import ESTIMATORS
from foretest.results.examination_text import FITTED
from foretest.results.result import Result
from foretest.settings.analysis import AUTO, GAMMA

_PAPER = Link(
    "Gilotte, Calauzènes, Nedelec, Abraham, Dollé: Offline A/B testing for Recommender Systems (WSDM 2018)",
    "https://doi.org/10.1145/3159652.3159687",
)
_CLICK_MODELS = Link(
    "Li et al.: Offline Evaluation of Ranking Policies with Click Models (KDD 2018)",
    "https://doi.org/10.1145/3219819.3220028",
)
_FROM_THE_TOP = Link(
    "McInerney et al.: Counterfactual Evaluation of Slate Recommendations with Sequential Reward"
    " Interactions (KDD 2020)",
    "https://doi.org/10.1145/3394486.3403229",
)
_REFERENCES: dict[str, list[Link]] = {
    "is": [Link("Horvitz, Thompson: A Generalization of Sampling Without Replacement from a Finite Universe (1952)",
                "https://doi.org/10.1080/01621459.1952.10483446")],
    "nis": [Link("Hesterberg: Weighted Average Importance Sampling and Defensive Mixture Distributions (1995)",
                 "https://doi.org/10.1080/00401706.1995.10484303")],
    "dr": [Link("Dudík, Langford, Li: Doubly Robust Policy Evaluation and Learning (2011)",
                "https://arxiv.org/abs/1103.4601")],
    "cis": [Link("Bottou et al.: Counterfactual Reasoning and Learning Systems (2013)",
                 "https://arxiv.org/abs/1209.2355")],
    "iips": [_CLICK_MODELS],
    "niips": [_CLICK_MODELS],
    "pbm": [_CLICK_MODELS],
    "fitted curve": [Link("Agarwal et al.: Estimating Position Bias without Intrusive Interventions (WSDM 2019)",
                          "https://arxiv.org/abs/1812.05161")],
    "rips": [_FROM_THE_TOP],
    "cascade-ncis-adaptive": [_FROM_THE_TOP],
    "cascade-dr": [Link("Kiyohara et al.: Doubly Robust Off-Policy Evaluation for Ranking Policies under the Cascade"
                        " Behavior Model (WSDM 2022)", "https://doi.org/10.1145/3488560.3498380")],
    "bootstrap": [Link("Efron: Bootstrap Methods: Another Look at the Jackknife (1979)",
                       "https://doi.org/10.1214/aos/1176344552")],
    "delta": [Link("Deng, Knoblich, Lu: Applying the Delta Method in Metric Analytics (2018)",
                   "https://arxiv.org/abs/1803.06336")],
    "bernstein": [Link("Maurer, Pontil: Empirical Bernstein Bounds and Sample Variance Penalization (2009)",
                       "https://arxiv.org/abs/0907.3740")],
    "betting": [Link("Waudby-Smith, Ramdas: Estimating Means of Bounded Random Variables by Betting (2024)",
                     "https://arxiv.org/abs/2010.09686")],
    "band": [Link("Imbens, Manski: Confidence Intervals for Partially Identified Parameters (2004)",
                  "https://doi.org/10.1111/j.1468-0262.2004.00555.x")],
    "online": [Link("Fabijan et al.: Diagnosing Sample Ratio Mismatch in Online Controlled Experiments (KDD 2019)",
                    "https://doi.org/10.1145/3292500.3330722")],
    "covariate": [Link("Deng, Xu, Kohavi, Walker: Improving the Sensitivity of Online Controlled Experiments by"
                       " Utilizing Pre-Experiment Data (WSDM 2013)", "https://doi.org/10.1145/2433396.2433413")],
    "sequential": [Link("Waudby-Smith et al.: Time-uniform central limit theory and asymptotic confidence sequences"
                        " (2021)", "https://arxiv.org/abs/2103.06476")],
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A step of the method; `formula` is the key of a formula in the template, or empty."""

    title: str
    formula: str
    line: str


def methods(result: Result) -> list[Step]:
    """What was computed, in order."""
    analysis = result.settings["analysis"]
    if "cap" in analysis:
        analysis = {**analysis, "cap": result.cap}
    online = "sample_ratio" in result.health
    steps = [] if online else [_estimator_step(label, key, analysis) for label, key in _keys(result).items()]
    if online:
        chi_square = "One degree of freedom, on units; an alert if p is below 0.001."
        steps += [
            Step("reward per display", "online", "A ratio of sums over units in each arm."),
            Step("sample ratio", "chi-square", chi_square),
            *([Step("covariate", "", _COVARIATE)] if "covariate" in result.health else []),
        ]
    steps.append(Step("interval" if online else "noise", "", _interval(analysis, online)))
    steps += [] if result.sequential is None else [Step("interval, every look", "", _always_valid(result))]
    if any(e.sensitivity is not None for e in next(iter(result.metrics.values())).estimates.values()):
        steps.append(Step("robust or fragile", "", _band(analysis)))
    dense = "" if online else f" ({DENSE_POSITIVES:.0f} where a value is a ratio of dense rewards)"
    verdict = (
        "Positive if the interval of the absolute uplift lies above 0, negative if below, else neutral. Insufficient"
        f" with fewer than {FEWEST_POSITIVES:.0f} effective positives{dense} or {FEWEST_UNITS} units, or without"
        " support."
    )
    return [*steps, Step("verdict", "", verdict)]


_COVARIATE = (
    "Δ − θ·(X_t − X_c): X is an arm's mean of the covariate over its units, θ = Σ a·b/Σ b² over the units of both arms,"
    " a and b what a unit adds to the reward per display and to X. θ is taken as known."
)


def _always_valid(result: Result) -> str:
    """The boundary of the always-valid interval, with its numbers."""
    facts = result.sequential or {}
    return (
        "Asymptotic confidence sequence, by a normal mixture: estimate ± se·√[(1 + 1/(nρ²))·(log(1 + nρ²) − 2 log α)]"
        f" at n = {facts['units']:,} units, ρ² = {facts['mixture_variance']:.3g}, which is tightest at"
        f" {facts['tightest_at_units']:,} units; se by the delta method."
    )


def _keys(result: Result) -> dict[str, str]:
    """The key of each estimator by its label, which the user may have chosen."""
    kinds = result.provenance.get("estimators", {})
    labels = next(iter(result.metrics.values())).estimates
    return {label: kinds.get(label, {}).get("key", label) for label in labels}


def _estimator_step(label: str, key: str, analysis: Mapping[str, Any]) -> Step:
    if key not in ESTIMATORS:
        return Step(label, "", "Your own estimator.")
    formula = "" if key in CALIBRATED.values() else key
    return Step(f"{label}: {ESTIMATORS[key][0].lower()}", formula, _line(key, analysis))


def _bound(analysis: Mapping[str, Any]) -> str:
    bound = analysis["weight_bound"]
    return "b, which the log chooses" if bound == AUTO else f"b = {bound:g}"


def _line(key: str, analysis: Mapping[str, Any]) -> str:
    cap = f"c = {analysis['cap']:g}, {analysis['capping']} capping."
    if key in ("cis", "ncis"):
        return cap
    if key == "piece-ncis":
        by_value = analysis["strata"] == "value-model"
        strata = f"bins of a value model, base {analysis['strata_base']:g}" if by_value else f"by {analysis['strata']}"
        return f"Strata g: {strata}. {cap}"
    if key == "point-ncis":
        return f"q(x) is the share of the treatment that the cap leaves in display x ({_draws(analysis)}). {cap}"
    if key == "point-ncis-adaptive":
        cap = "Each display has the largest cap that keeps the weight at or below"
        return f"{cap} {_bound(analysis)} ({_draws(analysis)})."
    if key == "slot-ncis-adaptive":
        return f"Each slot of each display has the largest cap that keeps its weight at or below {_bound(analysis)}."
    if key == "cascade-ncis-adaptive":
        prefix = "The probability of a prefix is that of the items down to slot k, in order; q is over all as long."
        cap = "Each slot of each display has the largest cap that keeps its weight at or below"
        return f"{prefix} {cap} {_bound(analysis)} ({_draws(analysis)})."
    if key == "exposure-ncis-adaptive":
        exposure = "e(j) is item j's exposure, how likely it is looked at; Θ is the sum over the slots."
        return f"{exposure} Each display has the largest cap that keeps its weights at or below {_bound(analysis)}."
    if key == "pbm":
        return "e(j) is item j's exposure: how likely it is looked at, θ of each slot times P(j in k). No cap."
    if key in ("iips", "niips"):
        return "P(a in k) is the probability that the item is in slot k, whatever the other slots show. No cap."
    if key == "rips":
        return "The probability of a prefix is that of the items down to slot k, in order. No cap."
    if key == "point-dr-adaptive":
        return (
            f"r̂ is the predicted reward of an item in its slot; weights as in point-ncis-adaptive, {_bound(analysis)}."
        )
    if key == "cascade-dr":
        return "r̂ is the predicted reward of an item in slot k; weights as in rips. No cap."
    if key in CALIBRATED.values():
        plain = next(label for label, calibrated in CALIBRATED.items() if calibrated == key)
        return (
            f"The relative uplift of {plain} plus (Γ0 − 1)·T. T is the mean of (w̃ − w̄)·r, what the cap leaves"
            " unsupported, divided by the control's value. Γ0 is what past A/B tests say it is worth, relative to what"
            " is supported. Normal limits, which include the spread and the uncertainty of Γ0."
        )
    return "w is how much more likely the treatment was to show what was shown. No cap."


def _draws(analysis: Mapping[str, Any]) -> str:
    return f"normaliser {analysis['normaliser']}, {analysis['draws']} draws where it is not exact"


def _interval(analysis: Mapping[str, Any], online: bool) -> str:
    paired = (
        "Both arms are resampled by unit."
        if online
        else "Control and treatment come from the same rows, so the uplift is paired."
    )
    if analysis["interval"] == "bootstrap":
        return (
            f"Percentile bootstrap, {analysis['n_resamples']:,} resamples of {analysis['buckets']:,} hash buckets of"
            f" units. {paired}"
        )
    if analysis["interval"] == "delta":
        return f"Delta method, by unit; Student's quantiles below 30 units. {paired}"
    if analysis["interval"] == "betting":
        return f"Betting on sums by unit, one unit after the other, with the known range of rewards. {paired}"
    return f"Empirical Bernstein bound, by unit, with the known range of rewards. {paired}"


def _band(analysis: Mapping[str, Any]) -> str:
    given = analysis.get("gamma")
    factors = [given] if given is not None else [GAMMA, analysis["gamma_slots"]]
    spans = [f"between 1/{down:g} and {up:g}" for down, up in factors]
    between = spans[0] if len(spans) == 1 else f"{spans[0]} (by slot and by exposure {spans[1]})"
    decided = " The verdict follows from these limits." if analysis["decide_on"] == "band" else ""
    return (
        "A verdict is robust if it stays the same when, in each display, the part of the treatment that the cap cuts"
        f" off earns {between} times what the rest earns, and the log does not refute that. Limits after Imbens and"
        f" Manski, joined with the interval of noise.{decided}"
    )


def references(result: Result) -> list[Link]:
    """The references for what was used, the paper first."""
    band = any(estimate.sensitivity for metric in result.metrics.values() for estimate in metric.estimates.values())
    curves = [metric.examination for metric in result.metrics.values() if metric.examination is not None]
    fitted = ["fitted curve"] if any(curve["kind"] == FITTED for curve in curves) else []
    used = [
        *_keys(result).values(),
        *fitted,
        result.settings["analysis"]["interval"],
        "delta",
        *(["band"] if band else []),
        *(["covariate"] if "covariate" in result.health else []),
        *(["sequential"] if result.sequential is not None else []),
    ]
    links = dict.fromkeys(link for key in used for link in _REFERENCES.get(key, []))
    return [*([] if "sample_ratio" in result.health else [_PAPER]), *links]


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings as the TOML text of a settings file.

    >>> print(settings_text({"log": {"rewards": ["click"]}, "control": {}, "analysis": {"cap": 100.0}}), end="")
    [log]
    rewards = ["click"]
    <BLANKLINE>
    [analysis]
    cap = 100.0
    """
    tables = []
    arrays = [(f"[{name}]", table) for name, value in settings.items() if isinstance(value, list) for table in value]
    alone = [(name, table) for name, table in settings.items() if not isinstance(table, list)]
    for name, table in [*alone, *arrays]:
        if table:
            lines = [f"{_toml_key(key)} = {_toml(value)}" for key, value in table.items() if value is not None]
            tables.append("\n".join([f"[{name}]", *lines]) + "\n")
    return "\n".join(tables)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml_key(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False)


def _toml_key(key: str) -> str:
    plain = key.replace("_", "").replace("-", "")
    return key if plain.isascii() and plain.isalnum() else json.dumps(key, ensure_ascii=False)
