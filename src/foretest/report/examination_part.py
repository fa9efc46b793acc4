"""The examination curve on the page: its chart, the pairs of slots behind a fit, the uplift under other curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foretest.inference.examination_fit import FEWEST_REWARDS
from foretest.records import dataclass
from foretest.report.audit_list import curve_lines
from foretest.report.blocks import Chart, Table, chart_of
from foretest.report.charts.examination import examination_chart
from foretest.report.digits import count, interval_text, num, pct
from foretest.results.examination_text import FITTED, curve_text
from foretest.results.range_text import range_of
from foretest.results.result import Estimate, Metric
from foretest.weights.examination import VARIANT_NAMES, varied

_PAIRS = 28  # rows of the table of pairs: all of eight slots
#: what a variant of a given curve is called
_WORDS = ("as given", "flatter, θ^0.8", "steeper, θ^1.25", "flatter, θ·k^0.15", "steeper, θ·k^−0.15")


@dataclass(frozen=True)
class ExaminationPart:
    """The curve of one metric, tests of it, and tables of what it rests on or of what it moves."""

    chart: Chart
    tests: list[str]  # what the log says of the model, a line each
    tables: list[Table]


def examination_part(name: str, metric: Metric, confidence_level: float) -> ExaminationPart | None:
    """What the page shows of a metric's examination curve; None where no estimator used one."""
    examination = metric.examination
    if examination is None:
        return None
    if examination["kind"] == FITTED:
        pairs = _pairs(name, examination)
        tables = [] if pairs is None else [pairs]
    else:
        tables = [_curves(name, label, e, examination) for label, e in metric.estimates.items() if e.curves]
    chart = chart_of(examination_chart(examination, name, confidence_level))
    return ExaminationPart(chart, curve_lines(metric), tables)


def _pairs(name: str, examination: Mapping[str, Any]) -> Table | None:
    """What the log says of each pair of slots, those with most rewards where there are many; None for one slot."""
    pairs, theta = examination.get("pairs", []), examination["theta"]
    if not pairs:
        return None
    most = sorted(pairs, key=lambda pair: -pair["effective_rewards"])[:_PAIRS]
    rows = []
    for pair in pairs:
        if pair in most:
            first, second = pair["slots"]
            by_curve = theta[second - 1] / theta[first - 1]
            number = count(pair["effective_rewards"])
            rows.append([f"{second} to {first}", f"{pair['ratio']:.3g}", f"{by_curve:.3g}", number])
    left_out = f" {len(pairs) - len(rows)} further pairs are in result.json." if len(pairs) > len(rows) else ""
    return Table(
        f"What the log says of each pair of slots ({name}).",
        ["slots", "ratio in the log", "ratio of the curve", "effective rewards"],
        rows,
        note="Ratio: how likely users look at the one slot, relative to the other. Effective rewards: of items that the"
        " control shows in either slot, in the slot that has fewer. Every slot must be connected with the first by"
        f" pairs with at least {FEWEST_REWARDS:.0f}.{left_out}",
        sortable=True,
    )


def _curves(name: str, label: str, estimate: Estimate, examination: Mapping[str, Any]) -> Table:
    """The uplift under the curve as given and under each of the curves around it."""
    limits, theta = range_of(estimate), examination.get("theta")
    uplifts = [
        (VARIANT_NAMES[0], estimate.rel_effect_size, estimate.effect_size, limits.rel_ci_lower, limits.rel_ci_upper),
        *((curve["curve"], curve["rel_effect_size"], curve["effect_size"], curve["rel_ci_lower"], curve["rel_ci_upper"])
          for curve in estimate.curves or ()),
    ]  # fmt: skip
    rows = []
    for curve, relative, absolute, lower, upper in uplifts:
        variant = VARIANT_NAMES.index(curve)
        by_slot = [] if theta is None else [curve_text(varied(tuple(theta), variant))]
        uplift = num(absolute, sign=True) if relative is None else pct(relative, sign=True)
        rows.append([_WORDS[variant], uplift, interval_text(lower, upper), *by_slot])
    return Table(
        f"Uplift by {label} under steeper and flatter curves ({name}).",
        ["curve", "uplift", "range", *([] if theta is None else ["by slot"])],
        rows,
        note="The first range is over all of these curves, the others are those of one curve alone. k is the number of"
        " the slot, from 1.",
        strong=[0],
    )
