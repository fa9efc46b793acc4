"""Is this the treatment that was meant? Scores of another order or display, in all rows or in some; probabilities,
rates or ranks in place of scores; another scale or temperature, the control itself, and zeros that were floored.

The thresholds are such that of simulated right logs with good new models fewer than one in fifty is questioned:
docs/explanation/audit.md has the table.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.audit_context import first_ids
from foretest.aggregation.outside_candidates import OUTSIDE
from foretest.aggregation.treatment_scores import (
    COMPARED,
    CORRELATION,
    SCALED_TREATMENT,
    SHAPE_CONTROL,
    SHAPE_TREATMENT,
    SPREAD_CONTROL,
    SPREAD_TREATMENT,
    TIES,
)
from foretest.diagnostics.audit.by_unit import first_of_units
from foretest.diagnostics.health import control_is_deterministic
from foretest.diagnostics.score_lumps import score_lump
from foretest.diagnostics.separating_values import separating_values
from foretest.diagnostics.treatment_health import (
    CONSTANT,
    LOG_NEVER,
    PROBABILITY,
    RANK,
    RATE,
    TreatmentHealth,
    scale_ratio,
    treatment_health,
)
from foretest.formatting import format_number, percent
from foretest.kernels.score_lists import EQUAL
from foretest.policies.base import CONTROL, given_number
from foretest.policies.control_number import DEFAULT_NUMBER, main_policy
from foretest.policies.fitted_parameter import parameter_of
from foretest.policies.logging_mixture import loggers_of
from foretest.results.questions import Question

IDENTICAL, ORDER, REVERSED = "identical policies", "order of items", "reversed scores"
LOOKS_LIKE, SCALE, NEVER_SHOWN = "not scores", "another scale", "never shown"
NUMBER = "another temperature"
SOME_ORDER, SOME_REVERSED = "order of items in some displays", "reversed scores in some displays"
SOME_EQUAL = "equal scores in some displays"

FEWEST_DISPLAYS = 100
LEAST_CORRELATION = 0.02  # and two standard errors: below, the two lists have nothing to do with each other
MOST_SCALE = 10.0  # times the control's, or a tenth of it
MOST_FLAT = 0.5  # times the control's: rates on a scale of their own
MOST_NEVER_SHOWN = 0.02
LEAST_FACTOR = 1.5  # between two temperatures that may be one by right
LIKE_SPREAD = 1.25  # of the scores: no temperature makes up for it
SURE_ERRORS = 3.0  # a fitted number is another than the default
LEAST_EQUAL = 0.02  # of the displays with three items and more
MOST_TIES = 0.2  # of the scores of the others: where more are tied, some lists are all equal by nature

_IDENTICAL = (
    "the two policies are identical: every weight is 1, so the uplift is 0 by construction. If a change was meant,"
    " check the columns and parameters of [treatment]."
)
_CONSTANT = "the treatment's scores are all equal within a display: it shows items at random. Is the column filled?"


def treatment_questions(aggregates: Aggregates) -> list[Question]:
    """What the treatment of a log asks for; nothing where too few displays are known of it."""
    health = treatment_health(aggregates)
    if health is None or len(aggregates.sampled_displays["unit"]) < FEWEST_DISPLAYS:
        return []
    if health.identical:
        return [Question(IDENTICAL, _IDENTICAL)]
    # a control that never varies shows no other ranking, as the audit says
    never = None if control_is_deterministic(aggregates) else _never(_mass_never_shown(aggregates, health))
    shape = _not_scores(aggregates, health)
    questions = [shape, never, _default_number(aggregates)]
    if shape is None:
        order = _order(aggregates, health)
        # floored items stretch the control's scale, and a treatment that likes them turns its order round
        blurred = never is not None and (order is None or order.kind == REVERSED)
        questions += [] if blurred else [_scale(aggregates, health), order, _other_number(aggregates)]
        questions += [_equal_in_some(aggregates), _lump(aggregates) if order is None and never is None else None]
    return [question for question in questions if question is not None]


def _not_scores(aggregates: Aggregates, health: TreatmentHealth) -> Question | None:
    """Probabilities, rates or ranks where scores are read on a scale; policies that only sort take any of them."""
    if health.looks_like is None:
        return None
    if health.looks_like == CONSTANT:
        return Question(LOOKS_LIKE, _CONSTANT)
    if np.isnan(aggregates.sampled_displays[SCALED_TREATMENT]).any():
        return None
    entropy = _entropy_words(health)
    if health.looks_like == PROBABILITY:
        return Question(
            LOOKS_LIKE,
            f"the treatment's scores are between 0 and 1 and sum to 1 in every display, like a softmax's"
            f" output{entropy}. A policy takes the softmax itself: give the scores before it, or the"
            " logarithms of these.",
        )
    if health.looks_like == RATE and health.scale_ratio is not None and health.scale_ratio < MOST_FLAT:
        return Question(
            LOOKS_LIKE,
            "the treatment's scores are all between 0 and 1, like click rates, and the control's are not: the treatment"
            f" then hardly prefers any item{entropy}. Give scores on the control's scale (of rates, log(p/(1 − p))), or"
            " the temperature that the treatment would be served at.",
        )
    if health.looks_like == RANK:
        way = ", and 1 seems to be the best" if (health.rank_correlation or 0.0) < 0.0 else ""
        return Question(
            LOOKS_LIKE,
            f"the treatment's scores are evenly spaced in every display, like ranks{way}{entropy}. Give the scores that"
            " the ranks come from, higher for better; for a policy of ranks alone use mallows or epsilon-greedy.",
        )
    return None


def _entropy_words(health: TreatmentHealth) -> str:
    if health.entropy_treatment is None or health.entropy_control is None:
        return ""
    return f" (entropy {health.entropy_treatment:.2f}, the control's {health.entropy_control:.2f})"


def _scale(aggregates: Aggregates, health: TreatmentHealth) -> Question | None:
    """Asked only where the scores themselves are on another scale: a temperature of one's own is meant."""
    ratio = health.scale_ratio
    raw = scale_ratio(aggregates.sampled_displays, SPREAD_CONTROL, SPREAD_TREATMENT)
    if ratio is None or raw is None or min(ratio, raw) <= 0.0:
        return None
    large, small = min(ratio, raw) > MOST_SCALE, max(ratio, raw) < 1.0 / MOST_SCALE
    if not large and not small:
        return None
    size = format_number(ratio if large else 1.0 / ratio)
    how = f"{size} times as far apart as" if large else f"{size} times closer together than"
    follows = "shows nearly always its best items" if large else "hardly prefers any item"
    return Question(
        SCALE,
        f"within a display the treatment's scores are {how} the control's, in units of the temperature: the treatment"
        f" {follows}{_entropy_words(health)}. Are they on another scale (percent, margins, calibrated rates)? Give"
        " scores on the control's scale, or the temperature that the treatment would be served at.",
    )


def _default_number(aggregates: Aggregates) -> Question | None:
    """Asked where the control's temperature or sigma was fitted, and the treatment was given none."""
    settings = aggregates.plan.settings
    control, treatment = main_policy(settings.control), main_policy(settings.treatment)
    parameter = parameter_of(treatment)
    if parameter is None or type(treatment) is not type(control) or given_number(treatment) is not None:
        return None
    whose = loggers_of(settings.control).baseline
    fit = next((fit for fit in aggregates.plan.control_fits if fit.control == whose), None)
    if fit is None or abs(fit.value - DEFAULT_NUMBER) <= SURE_ERRORS * fit.std_error:
        return None
    name = parameter.name
    return Question(
        NUMBER,
        f"the control's {name} was fitted as {fit.value:.3g}, and the treatment has none, so that it draws at"
        f' {DEFAULT_NUMBER:g}. Would it be served with the control\'s? Then give it {name} = "{CONTROL}", else its own,'
        f" as in {name} = {DEFAULT_NUMBER}.",
    )


def _other_number(aggregates: Aggregates) -> Question | None:
    """Asked where two policies of one kind were given different temperatures, and no other spread of scores explains
    it."""
    settings, sample = aggregates.plan.settings, aggregates.sampled_displays
    policies = [main_policy(policy) for policy in (settings.control, settings.treatment)]
    if any(parameter_of(policy) is not None and given_number(policy) is None for policy in policies):
        return None
    control, treatment = (policy.settings() for policy in policies)
    name = {"plackett-luce": "temperature", "thurstone": "sigma"}.get(control["policy"])
    spread = scale_ratio(sample, SPREAD_CONTROL, SPREAD_TREATMENT)
    if name is None or treatment["policy"] != control["policy"] or not spread:
        return None
    ratio = treatment[name] / control[name]
    if max(ratio, 1.0 / ratio) < LEAST_FACTOR or max(spread, 1.0 / spread) > LIKE_SPREAD:
        return None
    return Question(
        NUMBER,
        f"the control has {name} {control[name]:.3g} and the treatment {treatment[name]:.3g}, though the scores of both"
        f" are as far apart within a display: for that alone the treatment shows its best items"
        f" {'less' if ratio > 1.0 else 'more'} often. Is that meant? If it would be served with the control's, give it"
        f' {name} = "{CONTROL}".',
    )


def _order(aggregates: Aggregates, health: TreatmentHealth) -> Question | None:
    """Scores that rank the items of a display no more like the control's than chance, or the other way round."""
    correlation, error = health.rank_correlation, health.rank_correlation_error
    if correlation is None or error is None or correlation >= LEAST_CORRELATION + 2.0 * error:
        return None
    displays = f"(rank correlation {correlation:.2f} over {len(aggregates.sampled_displays['unit']):,} displays)"
    if correlation < -LEAST_CORRELATION - 2.0 * error:
        return Question(
            REVERSED,
            f"the treatment ranks the items of a display the other way round than the control {displays}. Are its"
            " scores ranks, distances or losses? Higher scores must be better: change their sign.",
        )
    in_order = " They are in order of size in every display: were they sorted?" if health.sorted else ""
    return Question(
        ORDER,
        f"the treatment's scores rank the items of a display no more like the control's than chance {displays}. A new"
        " model usually agrees more: are the scores in the order of the candidates, and of the same display?"
        f"{in_order}",
    )


def _lump(aggregates: Aggregates) -> Question | None:
    """Scores of some displays that rank their items by chance, or the other way round, where the others' agree."""
    sample = aggregates.sampled_displays
    if COMPARED not in sample:
        return None
    correlation, units = sample[CORRELATION], len(first_of_units(sample["unit"]))
    lump = score_lump(correlation, sample[COMPARED], units)
    if lump is None:
        return None
    where = _where(aggregates, lump.displays, lump.judged)
    others = f"in the others it agrees (rank correlation {correlation[lump.judged & ~lump.displays].mean():.2f})"
    if lump.is_reversed:
        return Question(
            SOME_REVERSED,
            f"in about {percent(lump.share)} of the displays{where} the treatment ranks the items the other way round"
            f" than the control, and {others}. Have its scores the wrong sign there, or are they ranks or losses?"
            " Higher scores must be better in every row.",
        )
    return Question(
        SOME_ORDER,
        f"in about {percent(lump.share)} of the displays{where} the treatment's scores rank the items no more like the"
        f" control's than chance, and {others}. Are the scores there in the order of the candidates, and of the same"
        " display? See how these rows were joined or filled; mend them, or leave them out.",
    )


def _equal_in_some(aggregates: Aggregates) -> Question | None:
    """Lists of equal scores beside lists without ties: a model that had no answer, or a column that was filled."""
    sample = aggregates.sampled_displays
    if TIES not in sample:
        return None
    items, equal = sample[COMPARED].astype(np.float64), sample[SHAPE_TREATMENT] & EQUAL != 0
    judged = (items >= 3) & (sample[SHAPE_CONTROL] & EQUAL == 0)
    others = judged & ~equal
    if judged.sum() < FEWEST_DISPLAYS or not others.any():
        return None
    ties, share = float(sample[TIES][others].mean()), float(equal[judged].mean())
    by_nature = float((ties ** (items[judged] - 1.0)).mean())
    if share < LEAST_EQUAL + 5.0 * by_nature or ties > MOST_TIES:
        return None
    return Question(
        SOME_EQUAL,
        f"in {percent(share)} of the displays{_where(aggregates, equal & judged, judged)} the treatment's scores are"
        " all equal: it shows items there at random. Were scores missing, and filled with a constant? Score these"
        " displays, or leave their rows out.",
    )


def _where(aggregates: Aggregates, some: npt.NDArray[np.bool_], judged: npt.NDArray[np.bool_]) -> str:
    """The first ids of some displays and the values that tell them from the others, in brackets; empty where neither is
    known."""
    sample = aggregates.sampled_displays
    ids = first_ids(sample, np.flatnonzero(some), aggregates.plan.settings.log)
    clauses = [clause for clause in (ids, separating_values(sample, some, judged)) if clause]
    return f" ({'; '.join(clauses)})" if clauses else ""


def _mass_never_shown(aggregates: Aggregates, health: TreatmentHealth) -> float | None:
    """The mass that nobody announced: where policies name lists of their own, rankings that the control cannot show are
    meant, and have a note of their own."""
    sample = aggregates.sampled_displays
    if OUTSIDE not in sample or "draws_treatment" not in sample:
        return health.mass_never_shown
    drawn = sample["draws_treatment"]
    return float(((drawn > LOG_NEVER) & np.isfinite(drawn)).mean())


def _never(mass: float | None) -> Question | None:
    """Mass where the control's probability is 0, or floored at a number that is as good as 0."""
    if mass is None or mass <= MOST_NEVER_SHOWN:
        return None
    return Question(
        NEVER_SHOWN,
        f"{percent(mass)} of what the treatment shows has a probability of 0 under the control, or one below"
        f" e^-{LOG_NEVER:.0f} (as where zeros were floored, or items that may not be shown have a huge negative score)."
        " No log says anything about it: is, dr and cis count it as worth nothing, the others as worth as much as the"
        " rest. Check that the treatment's items are eligible, or let the control show them now and then.",
    )
