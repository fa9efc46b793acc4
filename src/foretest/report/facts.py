"""The health strip: what to know of the log before reading the result, each fact with its meaning and state."""

from __future__ import annotations

from typing import Any

from foretest.aggregation.dense import LEAST_SHARE
from foretest.formatting import displays_text, known_units, units_text
from foretest.inference.verdict import (
    DENSE_POSITIVES,
    EFFECTIVE,
    FEWEST_POSITIVES,
    FEWEST_UNITS,
    LEAST_MASS_KEPT,
    MOST_UNSUPPORTED,
)
from foretest.report.blocks import Fact
from foretest.report.digits import NONE, count, estimate_of_count, num, p_text, pct, tally
from foretest.report.online_part import online_part_facts
from foretest.report.words import things
from foretest.results.audit import FAIL, NOT_MADE, PASS, UNVERIFIED, WARN, Audit
from foretest.results.result import Estimate, Metric, Result

NEVER_VARIES = (
    "The control always shows one ranking, so no other ranking has a weight: this page has nothing on weights of"
    " rankings and their cap."
)
_FEW_UNITS = 30  # below, intervals take Student's quantiles
_SOME_POSITIVES = 100.0
_SOME_EFFECTIVE = 300.0  # from here on upper limits miss at most 9 % of the time at a nominal 5 %: measured


def offline_facts(result: Result) -> list[Fact]:
    """The facts of an offline test; further metrics than the first are in the details."""
    log, health = result.log, result.health
    name = next(iter(result.metrics))
    metric = result.metrics[name]
    effective = {m: v.estimates[v.headline or ""].effective_positives or 0.0 for m, v in result.metrics.items()}
    positives = log["positives"]
    fewest = _fewest_effective(metric.estimates[metric.headline or ""], positives[name], log["rows"])
    return [
        *_audit(result),
        _rows(log),
        _units(log, result.settings["log"].get("unit")),
        Fact("rewarded rows", tally(positives[name]),
             f"Displays with a reward above 0 in {name}. Only these carry information about the treatment's value.",
             _state(positives[name], FEWEST_POSITIVES, _SOME_POSITIVES), _other_metrics(positives, name, "{:,}")),
        Fact(f"effective {things(name)}", count(effective[name]),
             f"How many equally weighted rewards would give {metric.headline} as much information. A few large weights"
             f" make it small. Below {FEWEST_POSITIVES:.0f} ({DENSE_POSITIVES:.0f} where a value is a ratio of"
             f" dense rewards) the log cannot answer. Below {_SOME_EFFECTIVE:.0f} the"
             " upper limit may be too low, because a rare reward with a large weight may be missing from the log.",
             _state(effective[name], fewest, _SOME_EFFECTIVE),
             ", ".join(filter(None, [f"by {metric.headline}", _other_metrics(effective, name, None)]))),
        *_mass_kept(health, metric.headline),
        *(_support_by_headline(metric, positives[name]) if control_never_varies(result) else
          _support(health, result.cap, max(positives.values()))),
        *_outside_candidates(health.get("outside_candidates")),
        *_treatment(health.get("treatment"), never_varies=control_never_varies(result)),
        *_questions(health.get("questions", [])),
    ]  # fmt: skip


def _fewest_effective(estimate: Estimate, positives: float, rows: int) -> float:
    """The effective positives that the verdict needs: fewer where rewards are dense and no reason says too few."""
    is_dense = positives >= LEAST_SHARE * rows and not any(EFFECTIVE in reason for reason in estimate.reasons)
    return DENSE_POSITIVES if is_dense else FEWEST_POSITIVES


def control_never_varies(result: Result) -> bool:
    """Does the control always show one ranking? Weights of rankings are then 1 or 0, and say nothing."""
    return bool(result.health.get("control_deterministic"))


def _treatment(treatment: dict[str, Any] | None, *, never_varies: bool) -> list[Fact]:
    """How far the treatment's scores agree with the control's, where both have scores."""
    if treatment is None or treatment["rank_correlation"] is None:
        return []
    meaning = (
        "How alike the two policies rank the items of a display, by their scores: 1 is the same order, 0 no relation."
        " A new model usually agrees with the old one in part."
    )
    entropies = [treatment["entropy_treatment"], treatment["entropy_control"]]
    detail = ""
    if None not in entropies and not never_varies:
        meaning += " Entropy says how random a policy is, in nats."
        detail = f"entropy {entropies[0]:.1f}, control {entropies[1]:.1f}"
    return [Fact("rank correlation", f"{treatment['rank_correlation']:.2f}", meaning, "fine", detail)]


def _questions(kinds: list[str]) -> list[Fact]:
    """What looks like a mistake in the treatment or the rewards; nothing where nothing does."""
    if not kinds:
        return []
    meaning = "What looks like a mistake in the treatment or in the rewards, and may yet be right: the notes have each."
    return [Fact("questions", f"{len(kinds)}", meaning, "watch", ", ".join(kinds))]


def _mass_kept(health: dict[str, Any], headline: str | None) -> list[Fact]:
    """How much of the treatment the headline's answer is about, where it is known."""
    mass = health.get("mass_kept", {}).get(headline)
    if mass is None:
        return []
    meaning = (
        f"The share of what the treatment would show that {headline} keeps, at its own cap or bound: the answer is"
        f" about that share, and the rest is modelled. Below {LEAST_MASS_KEPT:.0%} the log cannot answer."
    ).replace("%", "\N{NO-BREAK SPACE}%")
    return [
        Fact("mass behind the answer", pct(mass), meaning, _state(mass, LEAST_MASS_KEPT, 0.9), f"kept by {headline}")
    ]


def _outside_candidates(share: float | None) -> list[Fact]:
    """How much of what the treatment shows the control could not, where the policies have lists of their own."""
    if share is None:
        return []
    meaning = (
        "The share of what the treatment shows that comes from items outside the control's candidates. No log of the"
        " control says anything about them: they are certainly unsupported, and what they earn is in the range."
    )
    return [Fact("outside candidates", pct(share), meaning, _state(-share, -0.5, -0.1))]


def _support(health: dict[str, Any], cap: float, positives: int) -> list[Fact]:
    """How much of the treatment the log supports; `positives` is the largest number of rewarded rows of a metric."""
    mass, capped, unsupported = health["treatment_mass_kept"], health["capped_share"], health["unsupported_rows"]
    facts = [
        Fact("treatment mass kept", pct(mass),
             f"The share of what the treatment would show that the log supports at cap {cap:g} (the mean capped weight;"
             " by chance it can be a little over 100 %). The rest is modelled, not measured.",
             _state(mass, 0.5, 0.9)),
        Fact("rows above the cap", pct(capped),
             f"Displays whose weight exceeds the cap of {cap:g}: the treatment was much more likely than the control to"
             " show what was shown. There are few of them, with large weights.",
             _state(-(capped or 0.0), -0.05, -0.01)),
        _unsupported(unsupported, positives),
    ]  # fmt: skip
    # of a control that is known slot by slot no weight of a ranking is
    return facts[-1:] if mass is None and capped is None and positives else facts


def _support_by_headline(metric: Metric, positives: int) -> list[Fact]:
    """What the headline cannot weigh of a control that never varies; rankings have no weights there."""
    return [_unsupported(metric.estimates[metric.headline or ""].unsupported_rows, positives)]


def _unsupported(rows: int, positives: int) -> Fact:
    """Rewarded rows without support, of `positives`."""
    meaning = (
        "Rewarded displays in which the control shows so little of what the treatment would show that no weight can"
        f" make up for it. If they exceed {MOST_UNSUPPORTED:.0%} of the rewarded rows, the log cannot answer."
    ).replace("%", "\N{NO-BREAK SPACE}%")
    return Fact("unsupported rows", f"{rows:,}", meaning, _state(-rows / max(1, positives), -MOST_UNSUPPORTED, -1e-12))


def online_facts(result: Result) -> list[Fact]:
    """The facts of an online test: both arms, their split, and the smallest uplift that it could detect."""
    control, treatment, check = result.log, result.log["treatment"], result.health["sample_ratio"]
    unit = result.settings["log"].get("unit")
    name = next(iter(result.metrics))
    metric = result.metrics[name]
    positives = [arm["positives"][name] for arm in (control, treatment)]
    effective = metric.estimates[metric.headline or ""].effective_positives or 0.0
    smallest = result.health["minimum_detectable_effect"].get(name, {})
    known = check["p_value"] is not None
    observed = " : ".join(f"{100.0 * share:.1f}" for share in check["observed"]) if known else NONE
    facts = [
        Fact(f"{arm} rows", tally(log["rows"]), f"Displays in the {arm}'s log.", _state(log["rows"], 1, 1),
             _units_detail(log, unit))
        for arm, log in (("control", control), ("treatment", treatment))
    ]  # fmt: skip
    return [
        *facts,
        Fact("rewarded rows", tally(sum(positives)), f"Displays with a reward above 0 in {name}, in both arms.",
             _state(min(positives), FEWEST_POSITIVES, _SOME_POSITIVES), f"{positives[0]:,} and {positives[1]:,}"),
        Fact(f"effective {things(name)}", count(effective),
             "How many equal rewards would give as much information, in the arm that has fewer."
             f" Below {FEWEST_POSITIVES:.0f} the test cannot answer.",
             _state(effective, FEWEST_POSITIVES, _SOME_POSITIVES)),
        Fact("sample ratio", observed,
             "The percentages of units in control and treatment, compared with the designed split. A mismatch (p below"
             " 0.001) means that the arms are not comparable: they differ by something other than the treatment.",
             "alert" if check["alert"] else "watch" if check["days"] else "fine", f"p = {p_text(check['p_value'])}"),
        *_displays_per_unit(result.health.get("displays_per_unit"), unit),
        *(_arm_audit(arm, audit) for arm, audit in result.audits.items()),
        Fact("detectable uplift", pct(smallest.get("relative")),
             f"The minimum detectable effect in {name}: a true uplift of this size would be detected in"
             f" {100 * (smallest.get('power') or 0.8):g}\N{NO-BREAK SPACE}% of such tests.",
             "fine", num(smallest.get("absolute")) + " absolute"),
        *online_part_facts(result),
    ]  # fmt: skip


def summary(facts: list[Fact], *, never_varies: bool = False) -> str:
    """The facts that need attention, in a sentence; another on what is missing where the control never varies."""
    named = [fact.name for fact in facts if fact.state != "fine"]
    text = "Nothing here needs attention."
    if named:
        text = f"{'This needs' if len(named) == 1 else 'These need'} attention: {', '.join(named)}."
    return f"{text} {NEVER_VARIES}" if never_varies else text


def _displays_per_unit(check: dict[str, Any] | None, unit: str | None) -> list[Fact]:
    """Whether units have as many displays in both arms; nothing where every row is a unit."""
    if check is None or None in check["means"]:
        return []
    meaning = (
        f"The mean number of displays per {unit} in control and treatment. If they differ by more than chance (ranks, p"
        " below 0.001), a reward per display is divided by other numbers in each arm: judge by the reward per"
        f" {unit}."
    )
    means = " : ".join(num(mean) for mean in check["means"])
    p = "" if check["p_value"] is None else f"p = {p_text(check['p_value'])}"
    return [Fact(f"displays per {unit}", means, meaning, "alert" if check["alert"] else "fine", p)]


def _arm_audit(arm: str, audit: Audit) -> Fact:
    meaning = (
        f"Whether the {arm}'s log looks as if it was drawn from the policy that [{arm}] describes. If it fails, this"
        " arm showed something else, or rows are missing from its log. The tests are listed below."
    )
    return _audit_fact(f"{arm}'s audit", audit, meaning)


def _audit(result: Result) -> list[Fact]:
    if result.audit is None:
        return []
    meaning = (
        "Whether the log looks as if it was drawn from the control that the settings describe: all weights follow from"
        " that control. If the audit fails, there is no verdict. The tests are listed below."
    )
    return [_audit_fact("propensity audit", result.audit, meaning)]


def _audit_fact(name: str, audit: Audit, meaning: str) -> Fact:
    outcome = {PASS: "passed", WARN: "warns", FAIL: "failed", UNVERIFIED: "not verified"}[audit.outcome]
    run = sum(finding.outcome != NOT_MADE for finding in audit.findings)
    state = {WARN: "watch", UNVERIFIED: "watch", FAIL: "alert"}.get(audit.outcome, "fine")
    return Fact(name, outcome, meaning, state, f"{run} of {len(audit.findings)} tests run")


def _rows(log: dict[str, Any]) -> Fact:
    meaning = f"{log['rows']:,} displays in the log: one row is one list of recommendations that was shown."
    if "displays" in log:
        meaning = f"{displays_text(log)}: the log was thinned, and a row counts as often as displays it stands for."
    return Fact("rows", tally(log["rows"]), meaning, _state(log["rows"], 1, 1))


def _units(log: dict[str, Any], unit: str | None) -> Fact:
    is_estimate = bool(log.get("units_approximate"))
    meaning = (
        f"The independent units: different values of {unit}. Intervals are computed over units, not rows."
        if unit
        else "No unit column is named, so every row counts as independent. If one user has many rows, intervals are too"
        " narrow: name the user's column as unit."
    )
    if is_estimate:
        meaning += " Beyond 131,072 units their number is estimated, to within about 0.3\N{NO-BREAK SPACE}%."
    return Fact(
        "units",
        f"≈{estimate_of_count(known_units(log))}" if is_estimate else tally(log["units"]),
        meaning,
        _state(log["units"], FEWEST_UNITS, _FEW_UNITS),
        unit or "rows",
    )


def _units_detail(log: dict[str, Any], unit: str | None) -> str:
    return units_text(log) + (f" ({unit})" if unit else "")


def _state(value: float | None, alert: float, watch: float) -> str:
    """Below `alert` a value needs attention, below `watch` it is worth a look; an unknown value is fine."""
    return "fine" if value is None else "alert" if value < alert else "watch" if value < watch else "fine"


def _other_metrics(values: dict[str, Any], first: str, form: str | None) -> str:
    """A fact's values for up to three further metrics."""
    others = [(name, value) for name, value in values.items() if name != first]
    text = ", ".join(f"{name} {form.format(value) if form else count(value)}" for name, value in others[:3])
    return text + (", …" if len(others) > 3 else "")
