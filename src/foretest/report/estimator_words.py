"""What each estimator does, and why one of them is the headline, in plain words."""

from __future__ import annotations

from foretest.results.result import Metric, Result

#: key: a name for readers, and what the estimator does
ESTIMATORS: dict[str, tuple[str, str]] = {
    "is": ("Importance sampling", "weights every reward by how much more likely the treatment was to show it. Unbiased,"
           " but a few huge weights decide."),
    "nis": ("Normalised importance sampling", "importance sampling, divided by the mean of the weights."),
    "dr": ("Doubly robust", "importance sampling of what a reward model leaves unexplained; weights are not capped."),
    "cis": ("Capped importance sampling", "cuts weights at the cap and counts what was cut off as worthless, so it is"
            " too low on average. A reference point, not an answer."),
    "ncis": ("Normalised capped", "assumes that what was cut off earns as much as the average of what is left."),
    "piece-ncis": ("Piecewise normalised capped", "assumes that what was cut off earns as much as what is left in the"
                   " same stratum of similar displays."),
    "point-ncis": ("Pointwise normalised capped", "assumes that what was cut off earns as much as what is left in the"
                   " same display, at one cap for all displays."),
    "point-ncis-adaptive": ("Pointwise, adaptive cap", "like point-ncis, with a cap for each display, so that no weight"
                            " exceeds the bound."),
    "iips": ("Slot by slot", "weights what each slot earned by how much more likely the treatment is to put that item"
             " there. Right if slots do not influence each other; weights have no bound."),
    "niips": ("Slot by slot, normalised", "like iips, divided by the mean of the weights, slot by slot."),
    "rips": ("Slot by slot, from the top", "weights what each slot earned by how much more likely the treatment was to"
             " show the items down to it. Weights have no bound."),
    "slot-ncis-adaptive": ("Slot by slot, adaptive cap", "like iips, with a cap for each slot of each display, so that"
                           " no weight exceeds the bound; assumes that what was cut off earns as much as what is left"
                           " there."),
    "cascade-ncis-adaptive": ("Slot by slot, from the top, adaptive cap", "like rips, with a cap for each slot of each"
                              " display, so that no weight exceeds the bound; assumes that what was cut off earns as"
                              " much as what is left there."),
    "pbm": ("By exposure", "weights what an item earned by how much more likely users are to look at it under the"
            " treatment, wherever it was shown. Right if a slot earns how likely users look at it times what its item"
            " is worth; weights have no bound."),
    "exposure-ncis-adaptive": ("By exposure, adaptive cap", "like pbm, with a cap for each display, so that no weight"
                               " exceeds the bound; assumes that what was cut off earns as much as what is left in the"
                               " same display."),
    "point-dr-adaptive": ("Doubly robust, adaptive cap", "like point-ncis-adaptive, of what the predicted rewards of"
                          " items leave unexplained."),
    "cascade-dr": ("Doubly robust, from the top", "like rips, of what predicted rewards of items leave unexplained."),
    "point-ncis-calibrated": ("Pointwise, calibrated", "like point-ncis-adaptive, but counts what was cut off at what"
                              " past A/B tests say it is worth."),
    "slot-ncis-calibrated": ("Slot by slot, calibrated", "like slot-ncis-adaptive, but counts what was cut off at what"
                             " past A/B tests say it is worth."),
    "exposure-ncis-calibrated": ("By exposure, calibrated", "like exposure-ncis-adaptive, but counts what was cut off"
                                 " at what past A/B tests say it is worth."),
    "online": ("Online", "the difference between the two arms."),
}  # fmt: skip

_BY_EXPOSURE = (
    "the log says which slot earned the reward, and weights of items, wherever they were shown, ask least of the"
    " control's exploration"
)
_WHY = {
    "slot-ncis-adaptive": "the log says which slot earned the reward, and weights of single items, bounded like those"
    " of point-ncis-adaptive, leave less to chance than weights of whole rankings",
    "cascade-ncis-adaptive": "the log says which slot earned the reward, and weights of the items down to a slot leave"
    " less to chance than weights of whole rankings",
    "exposure-ncis-adaptive": _BY_EXPOSURE,
    "pbm": _BY_EXPOSURE,
    "point-ncis-adaptive": "its weights are bounded, it models what was cut off display by display, and in simulated"
    " histories of A/B tests it agreed best with the online results",
    "point-dr-adaptive": "with predicted rewards of items it varies clearly less than point-ncis-adaptive, by what the"
    " control could have shown, and where the log can check them they do no harm",
    "piece-ncis": "it models what was cut off stratum by stratum, and no estimator that does so display by display was"
    " run",
    "point-ncis": "it models what was cut off display by display",
    "ncis": "it corrects for the mass that the cap cuts off, and no finer estimator was run",
    "cis": "no normalised estimator was run; read it as a lower bound in expectation",
}


def headline_reason(result: Result, metric: Metric) -> str:
    """A sentence on which estimator is the headline, and why."""
    label = metric.headline or ""
    if result.settings["analysis"].get("headline") == label:
        return f"The headline is {label}, as the settings say."
    if len(metric.estimates) == 1:
        return f"The headline is {label}, the only estimator that was run."
    if metric.headline_reason is not None and label == "cascade-ncis-adaptive":
        return f"The headline is {label}, because {metric.headline_reason}."
    if metric.slot_model is not None and metric.slot_model.beside.fails:
        return f"The headline is {label}, by ranking and not by slot, because {metric.slot_model.beside.doubt}."
    if metric.headline_reason is not None and label == "exposure-ncis-adaptive":
        return f"The headline is {label}, because {metric.headline_reason}."
    unchecked = ""
    if metric.slots is not None and not metric.slots.get("compared", True) and label == metric.slots["slot"]:
        unchecked = (
            f". Whether slots influence each other could not be checked, because {metric.slots['point']} has too little"
            " evidence"
        )
    return f"The headline is {label}: {_WHY.get(label, 'it is the first that the settings list')}{unchecked}."
