"""How the numbers were found, for those who check: formulas, references, and the settings as a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from foretest.calibration.fit import CALIBRATED
from foretest.inference.verdict import FEWEST_POSITIVES, FEWEST_UNITS
from foretest.report.blocks import Link
from foretest.report.words import ESTIMATORS
from foretest.results.result import Result

_PAPER = Link(
    "Gilotte, Calauzènes, Nedelec, Abraham, Dollé: Offline A/B testing for Recommender Systems (WSDM 2018)",
    "https://doi.org/10.1145/3159652.3159687",
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
    "iips": [Link("Li et al.: Offline Evaluation of Ranking Policies with Click Models (KDD 2018)",
                  "https://doi.org/10.1145/3219819.3220028")],
    "rips": [Link("McInerney et al.: Counterfactual Evaluation of Slate Recommendations with Sequential Reward"
                  " Interactions (KDD 2020)", "https://doi.org/10.1145/3394486.3403229")],
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
}  # fmt: skip


def methods(result: Result) -> list[dict[str, str]]:
    """What was done, in order: a title, the key of a formula, a line."""
    analysis = result.settings["analysis"]
    if "cap" in analysis:
        analysis = {**analysis, "cap": result.cap}
    kinds = result.provenance.get("estimators", {})
    labels = list(next(iter(result.metrics.values())).estimates)
    steps = []
    for label in labels:
        key = kinds.get(label, {}).get("key", label)
        if key in ESTIMATORS and key != "online":
            title = f"{label}: {ESTIMATORS[key][0].lower()}"
            formula = "" if key in CALIBRATED.values() else key
            steps.append({"title": title, "formula": formula, "line": _line(key, analysis)})
        elif key != "online":
            steps.append({"title": label, "formula": "", "line": "Your own estimator."})
    online = "sample_ratio" in result.health
    if online:
        steps.append({"title": "reward per display", "formula": "online", "line": "A ratio by unit in each arm."})
        steps.append({"title": "sample ratio", "formula": "chi-square",
                      "line": "One degree of freedom, on units; an alert at p below 0.001."})  # fmt: skip
    steps.append({"title": "interval", "formula": "", "line": _interval(analysis, online)})
    if any(e.sensitivity is not None for e in next(iter(result.metrics.values())).estimates.values()):
        steps.append({"title": "sensitivity band", "formula": "", "line": _band(analysis)})
    steps.append({"title": "verdict", "formula": "", "line": (
        "Positive if the interval of the absolute uplift lies above 0, negative if below, else neutral. Insufficient"
        f" with fewer than {FEWEST_POSITIVES:.0f} effective positives or {FEWEST_UNITS} units, or without support."
    )})  # fmt: skip
    return steps


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
        bound = f"b = {analysis['weight_bound']:g}"
        return f"Each display has the largest cap that keeps the weight at or below {bound} ({_draws(analysis)})."
    if key == "slot-ncis-adaptive":
        bound = f"b = {analysis['weight_bound']:g}"
        return f"Each slot of each display has the largest cap that keeps its weight at or below {bound}."
    if key == "iips":
        return "P(a in k) is the probability that the item sits in slot k, whatever the others show. No cap."
    if key == "rips":
        return "The probability of a prefix is that of the items down to slot k, in order. No cap."
    if key in CALIBRATED.values():
        plain = next(label for label, calibrated in CALIBRATED.items() if calibrated == key)
        return (
            f"The relative uplift of {plain} plus (Γ0 − 1)·T: T is the mean of (w̃ − w̄)·r, what the cap leaves"
            " unsupported, over the control's value; Γ0 is what past A/B tests say it is worth, against what is"
            " supported. Normal limits, with the spread and the uncertainty of Γ0 in them."
        )
    return "w is how much likelier the treatment was to show what was shown. No cap."


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
        return f"Betting on sums by unit, one after the other, with the known range of rewards. {paired}"
    return f"Empirical Bernstein bound, by unit, with the known range of rewards. {paired}"


def _band(analysis: Mapping[str, Any]) -> str:
    down, up = analysis["gamma"]
    decided = " The verdict is decided on it." if analysis["decide_on"] == "band" else ""
    return (
        f"Of the point estimators: the part of each display's treatment that the cap cuts off earns between 1/{down:g}"
        f" and {up:g} times what is left of it. Limits after Imbens and Manski, joined with the interval.{decided}"
    )


def references(result: Result) -> list[Link]:
    """Of what was used, the paper first."""
    online = "sample_ratio" in result.health
    kinds = result.provenance.get("estimators", {})
    labels = list(next(iter(result.metrics.values())).estimates)
    used = [kinds.get(label, {}).get("key", label) for label in labels] + [
        result.settings["analysis"]["interval"],
        "delta",
        *(["band"] if any(e.sensitivity for m in result.metrics.values() for e in m.estimates.values()) else []),
    ]
    found = [link for key in dict.fromkeys(used) for link in _REFERENCES.get(key, [])]
    return found if online else [_PAPER, *found]


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings as TOML, as a settings file would say them.

    >>> print(settings_text({"log": {"rewards": ["click"]}, "control": {}, "analysis": {"cap": 100.0}}), end="")
    [log]
    rewards = ["click"]
    <BLANKLINE>
    [analysis]
    cap = 100.0
    """
    tables = []
    several = [(f"[{name}]", table) for name, held in settings.items() if isinstance(held, list) for table in held]
    alone = [(name, table) for name, table in settings.items() if not isinstance(table, list)]
    for name, table in [*alone, *several]:
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
