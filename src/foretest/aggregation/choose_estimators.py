"""Which estimators run: those that the settings ask for, or all that the columns and policies allow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from foretest.aggregation.fold_plan import Bounded, FoldPlan
from foretest.errors import BadInput, choose, nearest
from foretest.estimators import ESTIMATORS, HEADLINES, NIIPS, AdaptivePointDR, Estimator
from foretest.estimators.bounded import is_bounded
from foretest.policies.logging_mixture import loggers_of
from foretest.settings.analysis import BOUNDED, VALUE_MODEL
from foretest.settings.examination import curves_of
from foretest.settings.fitted_control import TWO_FITS, fitted_controls, refuse_bounds_of_fit
from foretest.settings.settings import Settings
from foretest.settings.thinned import refuse_bounds
from foretest.weights.exposure_weights import ExposureAdaptive, ExposureWeighting
from foretest.weights.slot_weights import SlotWeighting
from foretest.weights.weightings import Adaptive, Pointwise

_NO_SLOTS = (
    "it needs to know which slot earned the reward: name the list column that says it, as in"
    ' [log] slot_rewards = {click = "slot_click"}.'
)
# one note for all three: most logs do not say which slot earned the reward
_SLOTS_LEFT_OUT = "estimators by slot were left out: [log] slot_rewards does not say which slot earned the reward."

_NO_RANKINGS = "the control is known slot by slot (logged-slots), and it needs the probability of the whole ranking."
_RANKINGS_LEFT_OUT = (
    "estimators that weight whole rankings were left out: the control is known slot by slot (logged-slots), and so how"
    " likely a whole ranking was is not."
)
_LEFT_OUT = {_NO_SLOTS: _SLOTS_LEFT_OUT, _NO_RANKINGS: _RANKINGS_LEFT_OUT}

# no note: most logs have no predictions of items
_NO_PREDICTIONS = (
    'it needs predicted rewards of items: name their list column, as in [analysis] predictions = "predicted_clicks",'
    ' or features of items to fit a reward model on, as in [log] item_features = ["price"].'
)


class ChosenPlan(NamedTuple):
    """The plan of a run, and notes on what was left out."""

    plan: FoldPlan
    notes: list[str]


def choose_estimators(settings: Settings) -> ChosenPlan:
    """The plan of a run, and notes on what was left out. An estimator that is asked for but cannot run is an error."""
    _check_policies(settings)
    refuse_bounds(settings)
    refuse_bounds_of_fit(settings.analysis.interval, fitted_controls(settings))
    if settings.analysis.estimators is None:
        chosen, notes = _all_that_can_run(settings)
    else:
        chosen, notes = [_as_estimator(item) for item in settings.analysis.estimators], []
        _refuse_unable(chosen, settings)
    _refuse_same_names(chosen)
    _check_headline(chosen, settings)
    plan = FoldPlan(settings, tuple(chosen))
    return ChosenPlan(plan, notes + _metrics_without_slots(plan) + _metrics_without_predictions(plan))


def settle_dense(plan: FoldPlan, dense: bool) -> ChosenPlan:
    """The plan of a log whose density is known, and notes on what is left out for it, unless it was asked for.

    Where rewards are rare only rewarded rows are weighed. `point-dr-adaptive` weighs all: cheap for single actions,
    but for rankings many times the cost of all other estimators.
    """
    plan = replace(plan, dense=dense)
    rankings = bool(plan.settings.log.slot_rewards)
    if dense or not rankings or plan.settings.analysis.estimators is not None:
        return ChosenPlan(plan, [])
    left = [e for e in plan.estimators if not isinstance(e, AdaptivePointDR)]
    if len(left) == len(plan.estimators):
        return ChosenPlan(plan, [])
    note = f"{AdaptivePointDR.key} was left out: rewards are rare, and it weights every row. List it to run it."
    return ChosenPlan(replace(plan, estimators=tuple(left)), [note])


def _metrics_without_predictions(plan: FoldPlan) -> list[str]:
    """A note on metrics whose items have no predicted rewards."""
    labels = [e.label for e in plan.estimators if e.uses_items]
    without = [name for name in plan.shown if name not in plan.settings.predicted_metrics]
    without = [name for name in without if name in (plan.by_slot or plan.shown)]  # else said
    if not labels or not without:
        return []
    was = "was" if len(labels) == 1 else "were"
    return [
        f"{', '.join(labels)} {was} left out for {', '.join(without)}: [analysis] predictions has no column for it."
    ]


def _all_that_can_run(settings: Settings) -> tuple[list[Estimator], list[str]]:
    """The estimators that the columns and policies allow, and notes on the others."""
    chosen: list[Estimator] = []
    notes: list[str] = []
    for key, cls in ESTIMATORS.items():
        if cls is NIIPS and settings.control.prices_rankings:
            continue  # it weights every slot of every row: by itself only where the log allows little else
        estimator = cls()
        reason = _obstacle_of_any(estimator, settings)
        if reason is None:
            chosen.append(estimator)
        elif reason != _NO_PREDICTIONS:
            notes.append(_LEFT_OUT.get(reason, f"{key} was left out: {reason}"))
    if not chosen:
        raise BadInput(f"no estimator can run: {' '.join(dict.fromkeys(notes))}")
    return chosen, list(dict.fromkeys(notes))


def _refuse_unable(chosen: Sequence[Estimator], settings: Settings) -> None:
    for estimator in chosen:
        reason = _obstacle_of_any(estimator, settings)
        if reason is not None:
            raise BadInput(f"{estimator.label} cannot run: {reason} {_remaining(settings)}")


def _check_headline(chosen: Sequence[Estimator], settings: Settings) -> None:
    """The headline must run, and have a band where verdicts are decided on it."""
    labels, headline = [e.label for e in chosen], settings.analysis.headline
    if headline is not None and headline not in labels:
        raise BadInput(
            f"headline = '{headline}' is not among the estimators that run.{nearest(headline, labels)}"
            f" They are: {', '.join(labels)}."
        )
    if settings.analysis.decide_on == "band" and chosen:
        leads = headline_of(headline, chosen)
        if not any(e.label == leads and e.weighting(settings.analysis).banded for e in chosen):
            raise BadInput(
                f'decide_on = "band": {leads}, whose verdict is the metric\'s, has no sensitivity band; point-ncis,'
                " point-ncis-adaptive, slot-ncis-adaptive, cascade-ncis-adaptive and exposure-ncis-adaptive have."
                " Name one of them as headline, or decide on the interval."
            )


def _metrics_without_slots(plan: FoldPlan) -> list[str]:
    """A note on metrics that estimators by slot cannot answer for; an error where no other estimator runs."""
    by_slot = [e.label for e in plan.estimators if plan.weighting(e).by_slot]
    without = [name for name in plan.shown if name not in plan.by_slot]
    if not by_slot or not without:
        return []
    named = ", ".join(without)
    if len(by_slot) == len(plan.estimators):
        raise BadInput(
            f"{', '.join(by_slot)} cannot run for {named}: the log does not say which slot earned it. Name its list"
            " column in [log] slot_rewards, or list another estimator."
        )
    was = "was" if len(by_slot) == 1 else "were"
    return [
        f"{', '.join(by_slot)} {was} left out for {named}: the log does not say which slot earned it ([log]"
        " slot_rewards)."
    ]


def headline_of(
    asked: str | None, estimators: Sequence[Estimator], *, without: Collection[str] = frozenset(),
    first: str | None = None,
) -> str:  # fmt: skip
    """The estimator whose verdict is the metric's; those with keys in `without` lead only where no other can, and
    `first` before all others."""
    labels = [e.label for e in estimators]
    order = [key for key in ((first,) if first else ()) + HEADLINES if key in labels]
    return asked if asked in labels else ([key for key in order if key not in without] or order or labels)[0]


def obstacle(estimator: Estimator, settings: Settings) -> str | None:
    """Why an estimator cannot run here; None if it can."""
    return (
        _obstacle_in_policies(estimator, settings)
        or _obstacle_in_capping(estimator, settings)
        or _obstacle_in_predictions(estimator, settings)
        or _obstacle_in_values(estimator, settings)
    )


def _obstacle_in_policies(estimator: Estimator, settings: Settings) -> str | None:
    """Does it need to know more of slots or policies than the log has?"""
    weighting, control = estimator.weighting(settings.analysis), settings.control
    by_marginals = isinstance(weighting, SlotWeighting) and weighting.marginal
    if not control.prices_rankings and not by_marginals:
        return _NO_RANKINGS
    if weighting.by_slot and not settings.log.slot_rewards:
        return _NO_SLOTS
    if isinstance(weighting, SlotWeighting) and weighting.whole_slots and not control.knows_all_slots:
        return (
            "the control says how likely the shown items were, and it needs how likely every item was in every slot:"
            ' log the whole matrix, as in matrix = "column".'
        )
    if isinstance(weighting, Pointwise | Adaptive | SlotWeighting):
        what = "items" if weighting.by_slot else "rankings"
        for role in ("treatment", "control"):
            if not getattr(settings, role).can_draw and getattr(settings, role).prices_rankings:
                return (
                    f"the {role} is a logged policy, and this estimator needs the probability of {what} that were not"
                    f" shown: log the {role}'s scores (plackett-luce, thurstone, mallows, epsilon-greedy) or, of single"
                    " actions, all probabilities."
                )
    if getattr(estimator, "model", None) is not None and not settings.treatment.can_draw:
        return "its model's expectation is over draws from the treatment, and a logged policy cannot be drawn from."
    return None


def _obstacle_in_capping(estimator: Estimator, settings: Settings) -> str | None:
    """Do capping and normaliser suit its weights?"""
    a, weighting = settings.analysis, estimator.weighting(settings.analysis)
    if isinstance(weighting, Bounded) and a.capping == "zero":
        return "the adaptive cap needs max capping: no cap bounds its weights under zero capping."
    zero = isinstance(weighting, Pointwise) and weighting.capping == "zero"
    if zero and a.normaliser in ("midzuno-sen", "lahiri"):
        return f'normaliser = "{a.normaliser}" is biased under zero capping: use "auto".'
    return None


def _obstacle_in_predictions(estimator: Estimator, settings: Settings) -> str | None:
    """Does it lack predicted rewards of items?"""
    if not estimator.uses_items:
        return None
    if not settings.predicted_metrics:
        return _NO_PREDICTIONS
    return loggers_of(settings.control).lacks.get("predictions")


def _obstacle_in_values(estimator: Estimator, settings: Settings) -> str | None:
    """Does it lack strata or V(x), or the bound on its weights that the interval needs?"""
    a = settings.analysis
    has_value = a.value is not None or a.value_log is not None or bool(settings.log.features)
    has_items = FoldPlan(settings).predicts_items(estimator)
    if estimator.stratified and a.strata == VALUE_MODEL and not has_value:
        return "it needs strata: name a strata column, a value column, or features to fit a value model on."
    if estimator.uses_value and getattr(estimator, "model", None) is None and not (has_value or has_items):
        return (
            "it needs a model of the rewards: name a value column, features to fit a value model on, or predicted"
            ' rewards of items, as in [analysis] predictions = "predicted_clicks".'
        )
    needs_features = estimator.stratified or (estimator.uses_value and not has_items)
    if a.value_log is not None and not settings.log.features and needs_features:
        return "value_log needs features to fit V(x) on."
    if a.interval in BOUNDED and not is_bounded(estimator):
        return (
            f'interval = "{a.interval}" holds for cis, point-ncis-adaptive, slot-ncis-adaptive,'
            " cascade-ncis-adaptive and, with a given examination curve, exposure-ncis-adaptive only."
        )
    if _is_fitted(settings) and fitted_controls(settings) and isinstance(estimator.weighting(a), ExposureWeighting):
        return TWO_FITS
    if a.interval in BOUNDED and isinstance(estimator.weighting(a), ExposureAdaptive) and _is_fitted(settings):
        return (
            f'interval = "{a.interval}" knows no error of a fitted examination curve: give [analysis] examination'
            " numbers, as in [1.0, 0.6, 0.4]."
        )
    return None


def _is_fitted(settings: Settings) -> bool:
    """Is the examination curve of a metric to be fitted?"""
    a, slots = settings.analysis, settings.log.slot_rewards or {}
    return any(curves_of(a.examination, name) is None for name in settings.log.rewards if name in slots)


def _obstacle_of_any(estimator: Estimator, settings: Settings) -> str | None:
    """Why an estimator cannot run for one of the treatments: it runs for all, so that they compare, or for none."""
    obstacles = {name: obstacle(estimator, alone) for name, alone in settings.by_treatment().items()}
    if len(set(obstacles.values())) == 1:
        return next(iter(obstacles.values()))
    return next(f"with the treatment '{name}', {reason}" for name, reason in obstacles.items() if reason is not None)


def _remaining(settings: Settings) -> str:
    rest = [key for key, cls in ESTIMATORS.items() if _obstacle_of_any(cls(), settings) is None]
    return f"With these settings these can: {', '.join(rest)}." if rest else "With these settings none can."


def _as_estimator(item: Any) -> Estimator:
    if isinstance(item, Estimator):
        return item
    return ESTIMATORS[choose("estimator", item, ESTIMATORS)]()


def _refuse_same_names(estimators: list[Estimator]) -> None:
    labels = [e.label for e in estimators]
    for label in labels:
        if labels.count(label) > 1:
            raise BadInput(
                f"two estimators are named '{label}': list it once, or in Python give one of them another name=."
            )


def _check_policies(settings: Settings) -> None:
    """Refuse score policies without a ranking column, and features that the treatment uses."""
    several = len(settings.treatments) > 1
    named = {f"treatment '{name}'" if several else "treatment": p for name, p in settings.treatments.items()}
    for role, policy in {"control": settings.control, **named}.items():
        if (policy.can_draw or not policy.prices_rankings) and settings.log.ranking is None:
            raise BadInput(f"the {role} ranks items, so the log needs a ranking: name its column in [log] ranking.")
    used = {column for policy in named.values() for column in policy.columns}
    used -= set(settings.control.columns)
    for feature in settings.log.features:
        if feature in used:
            raise BadInput(
                f"the feature '{feature}' is a column of the treatment: strata and V(x) must not depend on it."
            )
