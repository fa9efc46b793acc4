"""The propensity audit: was this log drawn from the control as the settings describe it?

Importance weighting is only as right as the control's probabilities. Each test looks at them from another side; none
asks whether the mean weight is 1, which fails for right probabilities where weights are heavy. Where the control has no
scores, what was shown cannot be held against them, and a treatment without scores is taken as it is logged: the audit
is then at best unverified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.audit_context import DAY, HASHED_ITEMS, ITEMS, NUMBER, TEXT, features_that_vary, first_ids
from foretest.aggregation.audit_draws import AS_SERVED, LOG_RANKINGS, NO_ITEM, NO_RANK, OWN, RANKS
from foretest.aggregation.control_fit import information_ratio
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Column, Columns
from foretest.aggregation.ledger import Account
from foretest.aggregation.likelier_number import GAIN, LIKELIER
from foretest.aggregation.logger_columns import logger_of
from foretest.aggregation.quantities import WEIGHTS
from foretest.aggregation.shown_scores import RESIDUAL
from foretest.aggregation.thinning import are_displays
from foretest.aggregation.weight_bins import WeightBins
from foretest.diagnostics.audit import (
    item_slots,
    knows_draw,
    likelihood,
    moments,
    other_policy,
    own_policy,
    possible_weights,
    redeployed,
    replayed,
    rows,
)
from foretest.diagnostics.audit.by_unit import FEWEST_UNITS, independent_rows, rows_of_units
from foretest.diagnostics.reward_questions import are_counts
from foretest.diagnostics.separating_values import separating_values
from foretest.displays.batch import Floats
from foretest.displays.ragged import Ints
from foretest.inference.multiple_testing import holm
from foretest.policies.control_number import main_policy
from foretest.policies.fitted_parameter import number_of, parameter_of
from foretest.results.audit import (
    CONTROL,
    FAIL,
    FEW_ROWS,
    NOT_MADE,
    PASS,
    TREATMENT,
    UNVERIFIED,
    WARN,
    Audit,
    Finding,
    not_made,
)
from foretest.weights.exposure_weights import ExposureWeighting
from foretest.weights.weightings import Uncapped

__all__ = ["FAIL", "NOT_MADE", "PASS", "UNVERIFIED", "WARN", "Audit", "Finding", "audit", "audits"]

FEWEST_ROWS = 100  # in the sample, independent of one another


def audit(aggregates: Aggregates) -> Audit:
    """All tests of one treatment: on the fixed sample of displays, but for the replay, which is of every row."""
    return audits({"": aggregates})[""]


def audits(by_treatment: Mapping[str, Aggregates]) -> dict[str, Audit]:
    """The audit of each treatment; of whether their scores know the draw they are asked as one family."""
    standings = {name: draw_standing(aggregates) for name, aggregates in by_treatment.items()}
    tested = {name: one for name, one in standings.items() if isinstance(one, knows_draw.Standing)}
    adjusted = dict(zip(tested, holm([one.p_value for one in tested.values()]), strict=True))
    return {
        name: _audit(aggregates, standings[name], adjusted.get(name, 1.0)) for name, aggregates in by_treatment.items()
    }


def _audit(aggregates: Aggregates, standing: knows_draw.Standing | str, p_adjusted: float) -> Audit:
    plan, sample = aggregates.plan, aggregates.sampled_displays
    tests: dict[str, Callable[[Columns, FoldPlan], Finding]] = {
        rows.EXPLORATION: _exploration,
        rows.LOGGED: _logged,
        likelihood.CALIBRATION: _calibration,
        likelihood.PIT: _ranks,
        item_slots.NAME: _items,
        moments.MOMENT: _moment,
        moments.BALANCE: _balance,
        rows.REPEATS: _repeats,
    }
    findings = []
    for name, test in tests.items():
        obstacle = _obstacle(name, sample, plan)
        findings.append(test(sample, plan) if obstacle is None else not_made(name, obstacle))
    findings = _with_cause(findings, sample, plan)
    findings.insert(len(findings) - 1, _possible_weights(aggregates, sample))
    if AS_SERVED in sample:
        findings.insert(1, rows.as_served(sample[AS_SERVED]))
    if aggregates.replay is not None:
        findings.insert(1, replayed.replayed(aggregates.replay))
    by_day = _by_day(sample, plan)
    if by_day is not None:
        findings.insert(1 + next(i for i, f in enumerate(findings) if f.name == likelihood.PIT), by_day)
    of_own = own_policy.own_policy(sample)
    if of_own is not None:
        findings.append(of_own)
    findings = _with_treatment(findings, standing, p_adjusted)
    return Audit.of(findings, ignore=plan.settings.analysis.ignore_audit, unchecked=_unchecked(findings, sample, plan))


_OF_TREATMENT = (moments.MOMENT, moments.BALANCE, possible_weights.NAME)  # which a right control may fail


def _with_treatment(findings: list[Finding], standing: knows_draw.Standing | str, p_value: float) -> list[Finding]:
    """The findings with whether the treatment knows the draw. Where the control passes its own tests, a capped moment
    that is off has the same cause; so have the other tests of weights where the treatment does know it."""
    if isinstance(standing, str):
        return _after_balance(findings, not_made(knows_draw.NAME, standing))
    doubts = [
        finding.name for finding in findings
        if finding.name not in _OF_TREATMENT
        and (finding.outcome == FAIL or (finding.outcome == WARN and finding.name in _OF_DRAWS))
    ]  # fmt: skip
    further = knows_draw.knows_draw(standing, p_value, doubts)
    if not doubts:
        alike = _OF_TREATMENT if further.outcome == FAIL else (moments.MOMENT,)
        findings = [knows_draw.with_leak(one) if one.name in alike else one for one in findings]
    return _after_balance(findings, further)


def _after_balance(findings: list[Finding], further: Finding) -> list[Finding]:
    after = 1 + [finding.name for finding in findings].index(moments.BALANCE)
    return [*findings[:after], further, *findings[after:]]


def draw_standing(aggregates: Aggregates) -> knows_draw.Standing | str:
    """How far the treatment's scores are from not knowing the draw; in words where that cannot be said."""
    plan, sample = aggregates.plan, aggregates.sample.columns()
    obstacle = _obstacle(knows_draw.NAME, sample, plan)
    if obstacle is not None:
        return obstacle
    if any(aggregates.positives[m] == aggregates.rows and are_counts(sample["r", m]) for m in plan.rewards.values()):
        return "every row has a reward, and rows that were chosen by their reward show what users like"
    starts = independent_rows(sample["unit"])
    error = sample.get("log_p_scores", sample.get(OWN, sample["log_p"])) - sample["expected_log_p"]
    standing = knows_draw.standing(sample, starts, error, _information_ratio(sample, plan, np.arange(len(error))))
    return "the treatment's scores follow the control's, or no display has a choice" if standing is None else standing


def _unchecked(findings: list[Finding], sample: Columns, plan: FoldPlan) -> str | None:
    """Whose probabilities could not be checked against its scores, or that there are too few rows for it."""
    control, treatment = plan.settings.control, plan.settings.treatment
    made = {finding.name for finding in findings if finding.outcome != NOT_MADE}
    can_compare = bool(sample) and _obstacle_to_draws(likelihood.CALIBRATION, sample, plan) is None
    if can_compare and not made & {likelihood.CALIBRATION, replayed.NAME}:
        return FEW_ROWS
    # the one ranking that its scores allow was shown in every row, or a row would have been refused
    alone = bool(sample) and control.can_draw and _needs_no_exploration(sample, plan)
    if not made & _VERIFYING and not alone:
        return CONTROL
    return None if treatment.can_draw else TREATMENT


_OF_DRAWS = (likelihood.CALIBRATION, likelihood.PIT, item_slots.NAME)
_OF_BOTH = (moments.MOMENT, moments.BALANCE)
# the tests that compare what was shown with the control's scores: without any of them, probabilities are taken on trust
_VERIFYING = {rows.LOGGED, rows.SERVED, replayed.NAME, likelihood.CALIBRATION}


def _obstacle(name: str, sample: Columns, plan: FoldPlan) -> str | None:
    """Why a test cannot be run; None if it can."""
    log, control = plan.settings.log, plan.settings.control
    if not sample:
        return "the log is empty"
    if name == rows.REPEATS and log.id is None and "scores" not in sample:
        return "without an id or scores, equal rows cannot be told from copies; name the display's id in [log]"
    if name == rows.EXPLORATION and "certain" not in sample:
        return "the control is known slot by slot, not how likely a whole ranking was"
    if name == rows.LOGGED and "log_p_scores" not in sample:
        has = "logged probability" if control.can_draw else "scores"
        return f"the control has no {has} to compare"
    if name in (*_OF_DRAWS, *_OF_BOTH, knows_draw.NAME):
        return _obstacle_to_draws(name, sample, plan) or _too_few(len(independent_rows(sample["unit"])))
    return None


def _obstacle_to_draws(name: str, sample: Columns, plan: FoldPlan) -> str | None:
    """Why a test that needs drawn rankings cannot be run, however many rows there are; None if it can."""
    log, control, treatment = plan.settings.log, plan.settings.control, plan.settings.treatment
    for role, policy in (("control", control), ("treatment", treatment)):
        if not policy.prices_rankings:
            return "this test draws rankings, and the control is known slot by slot; log the scores of all items"
        if not policy.can_draw and (role == "control" or name in _OF_BOTH):
            return f"this test draws rankings, and the {role} is a logged policy; log the scores of all items"
    if _is_deterministic(sample):
        return "the control is deterministic"
    if name == knows_draw.NAME and RESIDUAL not in sample:
        for role, policy in (("treatment", treatment), ("control", control)):
            if not main_policy(policy).score_columns:
                return f"the {role} has no scores"
        return "the saved sample of displays lacks what the treatment scores of it; pack or fold the log again"
    if name == moments.BALANCE and not log.features:
        return "the settings name no context features; name some in [log] features"
    lacking = [f for f in log.features if (NUMBER, f) not in sample and (TEXT, f) not in sample]
    if name == moments.BALANCE and lacking:
        return f"the saved sample of displays lacks {', '.join(lacking)}; pack or fold the log again"
    if name == item_slots.NAME and not {ITEMS, HASHED_ITEMS, RANKS} & set(sample):
        return "the control declares no score columns, and the log has no candidates"
    return None


def _too_few(rows: int) -> str | None:
    """That a test cannot be run on so few rows; None if it can."""
    return f"{rows:,} rows are too few, {FEWEST_ROWS} are needed" if rows < FEWEST_ROWS else None


def _is_deterministic(sample: Columns) -> bool:
    """Was one ranking certain on every display with several? Judged from rows: saved sums do not have the policy."""
    return bool(sample["certain"].any()) and bool((sample["certain"] | sample["single"]).all())


def _exploration(sample: Columns, plan: FoldPlan) -> Finding:
    if _needs_no_exploration(sample, plan):
        return not_made(rows.EXPLORATION, "not needed by the headline")
    return rows.exploration(sample["certain"], _is_deterministic(sample))


def _needs_no_exploration(sample: Columns, plan: FoldPlan) -> bool:
    """Does the control never vary, and an estimator lead that allows it?"""
    asked = plan.settings.analysis.headline
    able = [e.label for e in plan.estimators if isinstance(plan.weighting(e), ExposureWeighting)]
    return bool(able) and asked in (None, *able) and _is_deterministic(sample)


def _logged(sample: Columns, plan: FoldPlan) -> Finding:
    return rows.logged_probabilities(sample.get(OWN, sample["log_p"]), sample["log_p_scores"])


def _calibration(sample: Columns, plan: FoldPlan) -> Finding:
    priced = sample.get("log_p_scores", sample.get(OWN, sample["log_p"]))
    ratio = _information_ratio(sample, plan, np.arange(len(sample["unit"])))
    return likelihood.calibration(priced, sample["expected_log_p"], independent_rows(sample["unit"]), ratio)


def _with_cause(findings: list[Finding], sample: Columns, plan: FoldPlan) -> list[Finding]:
    """The findings, the first of which that fails for what was drawn says why: rows of another policy, or else another
    temperature, sigma or epsilon."""
    at = next((i for i, f in enumerate(findings) if f.name in (*_OF_DRAWS, moments.MOMENT) and f.outcome == FAIL), None)
    if at is None:
        return findings
    finding, other, parameter = findings[at], _other_rows(sample, plan), parameter_of(plan.settings.control)
    if other is not None:
        clauses = (
            first_ids(sample, np.flatnonzero(other.rows), plan.settings.log),
            separating_values(sample, other.rows, np.ones(len(other.rows), np.bool_)),
        )
        remedy = other_policy.remedy(other.share, "; ".join(clause for clause in clauses if clause))
        finding = replace(finding, remedy=remedy)
    elif finding.name == likelihood.CALIBRATION and LIKELIER in sample and parameter is not None:
        fitted, given = float(sample[LIKELIER].mean()), number_of(plan.settings.control)
        finding = likelihood.with_likelier_number(finding, parameter.name, given, fitted)
    return [*findings[:at], finding, *findings[at + 1 :]]


def _other_rows(sample: Columns, plan: FoldPlan) -> other_policy.OtherRows | None:
    """The rows of another policy; None where there are none, or a file of before does not tell."""
    if LOG_RANKINGS not in sample or (LIKELIER in sample and GAIN not in sample):
        return None
    log_p = sample.get("log_p_scores", sample.get(OWN, sample["log_p"]))
    gain = float(sample[GAIN].mean()) if GAIN in sample else 0.0
    return other_policy.other_rows(log_p, sample[LOG_RANKINGS], gain)


def _information_ratio(sample: Columns, plan: FoldPlan, rows: Ints) -> float:
    """I_audit/I_fit of what was fitted of the control, for a test of some rows; 0 where nothing was: a fit errs, and
    right rows then look wrong."""
    logger = logger_of(sample)[rows]
    return information_ratio(plan.control_fits, np.bincount(logger, minlength=plan.loggers).astype(np.float64))


def _by_day(sample: Columns, plan: FoldPlan) -> Finding | None:
    """Whether the control was the same on all days; None where the log has no days, or draws cannot be compared."""
    if DAY not in sample or _obstacle(likelihood.CALIBRATION, sample, plan) is not None:
        return None
    apart = sample.get("log_p_scores", sample.get(OWN, sample["log_p"])) - sample["expected_log_p"]
    names, day = redeployed.days_in_order(sample[DAY])
    if len(names) < 2 or not np.isfinite(apart).all():
        return None
    return redeployed.likelihood_by_day(apart, sample["unit"], names, day)


def _ranks(sample: Columns, plan: FoldPlan) -> Finding:
    first = independent_rows(sample["unit"])
    return likelihood.ranks(sample["place"][first], _information_ratio(sample, plan, first))


def _items(sample: Columns, plan: FoldPlan) -> Finding:
    first = independent_rows(sample["unit"])
    for name, label, absent in ((ITEMS, "id", NO_ITEM), (HASHED_ITEMS, None, NO_ITEM), (RANKS, "rank", NO_RANK)):
        if name in sample:
            return item_slots.items_by_slot(sample[name][first], absent, label)
    raise AssertionError("the sample has no items: `_obstacle` should have said so")


def _moment(sample: Columns, plan: FoldPlan) -> Finding:
    a, first = plan.settings.analysis, independent_rows(sample["unit"])
    ratio = _information_ratio(sample, plan, first)
    return moments.capped_moment(sample["log_w"][first], sample["draws_control"][first], a.cap_number, a.capping, ratio)


def _possible_weights(aggregates: Aggregates, sample: Columns) -> Finding:
    name = possible_weights.NAME
    if not sample:
        return not_made(name, "the log is empty")
    too_few = _too_few(len(sample["unit"]))
    if too_few is not None:
        return not_made(name, too_few)
    if "certain" in sample and _is_deterministic(sample):
        return not_made(name, "the control is deterministic")
    if not aggregates.plan.prices_rankings:
        return not_made(name, "the control is known slot by slot, and rankings have no known weight")
    if LOG_RANKINGS in sample:
        never_shown = possible_weights.impossible_rankings(sample.get(OWN, sample["log_p"]), sample[LOG_RANKINGS])
        if never_shown is not None:
            return never_shown
    plan, weights = aggregates.plan, _WeightSums.of(aggregates)
    unit = sample["unit"]
    if weights.units < FEWEST_UNITS:
        unit = np.arange(len(unit), dtype=np.uint64)
        over_all, mean_weight = possible_weights.means_of_rows(sample["log_w"])
    else:
        units = float(weights.units)
        over_all = possible_weights.capped_means(weights.bins, plan.loggers, units, weights.largest_unit)
        mean_weight = weights.mean_below_one(plan.loggers)
    contexts: list[Column] = [(kind, column) for column in plan.settings.log.contexts for kind in (NUMBER, TEXT)]
    days = [] if plan.settings.log.date is None else [DAY]
    columns = {name: sample[name] for name in [*contexts, *days] if name in sample}
    in_groups = possible_weights.group_means(features_that_vary(columns), sample["log_w"], unit)
    return possible_weights.possible_weights(over_all, in_groups, mean_weight)


class _WeightSums(NamedTuple):
    """Sums of weights by cell: of all rows, or of a thinned log of those sampled displays that stand for equally many
    each: a weight w·m has no bound that is known beforehand."""

    bins: WeightBins
    n: Floats
    w: Floats
    log_unit: float  # of w
    max_log_w: float
    units: int
    largest_unit: int

    @classmethod
    def of(cls, aggregates: Aggregates) -> _WeightSums:
        cells = len(aggregates.n)
        if are_displays(aggregates.ledger):
            raw = aggregates.weights(Uncapped())
            return cls(aggregates.bins, aggregates.n, raw.get(WEIGHTS, size=cells), raw.log_unit, aggregates.max_log_w,
                       aggregates.n_units, aggregates.largest_unit)  # fmt: skip
        sample = aggregates.sampled_displays
        log_w, cell = sample["log_w"], aggregates.plan.cells_at(sample["unit"], logger_of(sample))
        account, sizes = Account(), rows_of_units(sample["unit"])
        bins = WeightBins(account, cells)
        bins.add(log_w, cell, np.ones(len(log_w)))
        n, w = (np.bincount(cell, amounts, cells).astype(np.float64) for amounts in (None, account.scaled(log_w)))
        return cls(bins, n, w, account.log_unit, float(log_w.max()), len(sizes), int(sizes.max()))

    def mean_below_one(self, loggers: int) -> possible_weights.CappedMean | None:
        """The test of the mean of w itself; None where a weight is large enough to move it."""
        if self.max_log_w >= 700.0:
            return None
        n, w = (x.reshape(loggers, -1).sum(axis=0) for x in (self.n, self.w))
        largest = float(np.exp(self.max_log_w))
        return possible_weights.mean_below_one(w * np.exp(self.log_unit), n, float(self.units), largest)


def _balance(sample: Columns, plan: FoldPlan) -> Finding:
    a, first = plan.settings.analysis, independent_rows(sample["unit"])
    ratio = _information_ratio(sample, plan, first)
    names: list[Column] = [(kind, name) for name in plan.settings.log.features for kind in (NUMBER, TEXT)]
    features = features_that_vary({name: sample[name][first] for name in names if name in sample})
    drawn = sample["draws_control"][first], sample["draws_treatment"][first]
    return moments.balance(features, sample["log_w"][first], *drawn, min(a.cap_number, a.bound_number), ratio)


def _repeats(sample: Columns, plan: FoldPlan) -> Finding:
    log = plan.settings.log
    if log.id is not None:
        return rows.repeated_ids(sample["unit"], sample["key"])
    rewards: list[Column] = [("r", m) for m in range(len(plan.metrics))]
    alike = [np.asarray(sample[name]) for name in ("log_w", *rewards)]
    return rows.repeated_rows(sample["unit"], sample["key"], sample["scores"], alike, has_unit=log.unit is not None)
