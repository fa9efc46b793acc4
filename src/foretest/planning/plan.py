"""What a log could show, before its result is looked at: the smallest uplift, what would halve it, and what else would.

An offline test errs for two reasons. Sampling: the standard error se of the paired uplift, by unit; with power 80 % at
the level of the settings an uplift shows if it is at least (z_{1−α/2} + z_{.8})·se. It shrinks as 1/√n. Identification:
of the part of the treatment that the log does not support nothing is known but that it earns between 1/Γ_lower and
Γ_upper times as much as the rest; half the width of the sensitivity band,

    ½·[(Γ_upper − 1) + (1 − 1/Γ_lower)]·mean(t),    t = (w̃ − w̄) r

stays whatever the log's size. An uplift beyond their sum S + I shows. With f times the log it is S/√f + I, so that it
halves at f = (2S/(S − I))², and never if I ≥ S. For estimators without a band, I takes (1 − q̄)·R_t for mean(t), q̄ the
treatment mass that the cap leaves.

An online test with N users, shares (a, b), shows an uplift Δ if Δ = (z_{1−α/2} + z_{.8})·σ·√((1/a + 1/b)/N), σ² the
control's variance a user (of a ratio by user: the delta method), the treatment's taken to be the same.

For an exploration of ε both parts are predicted. If within a display reward and weight do not go together,
E_p[(w̃ − 1)² r² | x] = E_p[r²|x]·(E_p[w̃²|x] − 1) and E_p[t|x] = (1 − q(x))·E_p[w̃ r|x], so that

    s² = mean(r²)·(mean of E[w̃²|x] over rewarded rows, weighted by r², − 1)/n
    mean(t) = R_t·(mean of 1 − q(x) over rewarded rows, weighted by r)

under the control mixed with uniform rankings (`exploration`); the log as it is gets the same formula, to compare. It
costs at most ε·(R_p − R_uniform) ≤ ε·R_p.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import ndtri

from foretest._version import __version__
from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import choose_estimators, headline_of
from foretest.aggregation.fold_plan import FoldPlan
from foretest.background import in_background
from foretest.displays.days import days_of_rows
from foretest.engines import dispatch
from foretest.errors import BadInput
from foretest.files import finite_or_none, json_ready, json_text
from foretest.offline.test import OfflineTest, offline_reader
from foretest.online.comparison import POWER
from foretest.planning.exploration import SHARES, ExplorationFold, moments
from foretest.progress import Progress, stage
from foretest.results.result import Metric
from foretest.sources import Source, open_source, spool
from foretest.sources.spark_frames import SparkFrame
from foretest.storage.saved.files import saved_files
from foretest.weights.weightings import Weighting

SCHEMA = 1


@dataclass(frozen=True)
class PlanResult:
    """The content of plan.json."""

    document: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self.document

    def to_json(self, path: str | Path | None = None) -> str:
        """JSON text; with a path it is also written there, whole or not at all."""
        return json_text(self.document, path)

    def __str__(self) -> str:
        from foretest.terminal.plan import render_plan

        return render_plan(self.document)

    __repr__ = __str__


def plan_log(
    test: OfflineTest, log: Any, *, threads: int | None = None, progress: Progress | None = None
) -> PlanResult:
    """What the log could show of the test's headline, among estimators of whole rankings: read twice, or thrice where
    it has days."""
    if test.settings.log.logger is not None:
        raise BadInput("foretest plan is for a log of one control, and the settings name several ([[control]] tables).")
    folded = choose_estimators(test.settings)[0]
    leader = headline_of(folded.settings.analysis.headline, folded.estimators)
    able = [e for e in folded.estimators if not folded.weighting(e).by_slot]
    if not able:
        raise BadInput(
            "foretest plan is about whole rankings, and every estimator listed goes by slot: add point-ncis-adaptive to"
            " estimators."
        )
    label = headline_of(folded.settings.analysis.headline, able)
    [estimator] = [e for e in able if e.label == label]
    test = test.replace(estimators=[estimator], headline=None, interval="delta")
    with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
        source, notes = open_source(log), []
        if leader != label:
            notes.append(f"planned for {label}: {leader} goes by slot, and can show smaller uplifts than these.")
        saved = bool(saved_files(source))
        date = test.settings.log.date
        plan = choose_estimators(test.settings)[0]
        if not saved and not source.repeatable:
            columns = [*offline_reader(plan).columns, *([date] if date else [])]
            source = in_background(lambda: spool(source, columns, folder))
            log = str(Path(folder) / "stream.parquet")
        aggregates, said, r_max = test.aggregate(log, threads=threads, progress=progress)
        result = test.analyse(aggregates, said, r_max)
        days = None
        if date is not None and not saved:
            days = _days_of(source, date)
        sample = None
        if saved:
            notes.append("of saved aggregates the displays are gone: what exploration would buy needs the log.")
        elif not plan.can_draw:
            notes.append("a policy is logged and prices no other rankings: what exploration would buy needs scores.")
        else:
            bare = FoldPlan(aggregates.plan.settings)
            done = stage(progress, "exploration", source)
            sample = dispatch.aggregate(
                source, offline_reader(bare), bare, threads=threads, progress=done, kind=ExplorationFold
            )
    weighting = aggregates.plan.weighting(estimator)
    a = test.settings.analysis
    metrics = {
        name: _metric(result.metrics[name], aggregates, m, sample, weighting, days, test.settings.online.split)
        for m, name in enumerate(test.settings.log.rewards)
    }
    document = {
        "foretest": __version__,
        "schema": SCHEMA,
        "headline": label,
        "confidence_level": a.confidence_level,
        "power": POWER,
        "gamma": list(a.gamma),
        "split": list(test.settings.online.split),
        "unit": test.settings.log.unit,
        "log": {"rows": aggregates.rows, "units": aggregates.n_units, "days": days},
        "metrics": metrics,
        "notes": [*result.notes, *notes],
    }
    return PlanResult(json_ready(document))


def _metric(
    metric: Metric,
    aggregates: Aggregates,
    m: int,
    sample: Aggregates | None,
    weighting: Weighting,
    days: int | None,
    split: tuple[float, float],
) -> dict[str, Any]:
    [estimate] = metric.estimates.values()
    a, control = aggregates.plan.settings.analysis, metric.control.value
    factor = float(ndtri(0.5 + a.confidence_level / 2.0) + ndtri(POWER))
    width = 0.5 * ((a.gamma[1] - 1.0) + (1.0 - 1.0 / a.gamma[0]))
    if not control or estimate.std_error is None:
        found: dict[str, Any] = {"smallest_uplift": _parts(math.nan, math.nan), "to_halve": None, "online_units": None}
        return {"control": control, "treatment": estimate.treatment, "reasons": estimate.reasons, **found,
                "exploration": None}  # fmt: skip
    treatment = estimate.treatment or 0.0
    sampling = factor * estimate.std_error / control
    identification = _half_band(estimate.sensitivity, aggregates, weighting, width * treatment) / control
    total = sampling + identification
    exploration = None
    if sample is not None and sample.sample.columns():
        mean_square, rows = float(aggregates.r2[m]) / aggregates.rows, aggregates.rows
        r = sample.sample.columns()[f"r:{m}"]
        exploration = []
        for epsilon in SHARES if r.any() else ():
            of = moments(sample.sample.columns(), weighting, epsilon)
            spread, kept = float(np.average(of.second, weights=r**2)) - 1.0, float(np.average(of.kept, weights=r))
            noise = factor * math.sqrt(mean_square * max(0.0, spread) / rows) / control
            unknown = width * max(0.0, 1.0 - kept) * treatment / control
            exploration.append({
                "epsilon": epsilon, "cost_at_most": epsilon, "treatment_mass_kept": kept,
                "std_error": noise * control / factor, "largest_weight": of.largest, "weight_bound": of.bound,
                "smallest_uplift": _parts(noise, unknown),
            })  # fmt: skip
    return {
        "control": control,
        "treatment": estimate.treatment,
        "reasons": estimate.reasons,
        "smallest_uplift": _parts(sampling, identification),
        "to_halve": _to_halve(sampling, identification, days),
        "online_units": _online_units(metric.control.std_error, aggregates.n_units, total * control, factor, split),
        "exploration": exploration,
    }


def _parts(sampling: float, identification: float) -> dict[str, float | None]:
    """Relative to the control's value."""
    return {
        "sampling": finite_or_none(sampling),
        "identification": finite_or_none(identification),
        "total": finite_or_none(sampling + identification),
    }


def _half_band(sensitivity: Any, aggregates: Aggregates, weighting: Weighting, worth: float) -> float:
    """Half the width of the band of the effect size, or where there is none what the cap could hide."""
    if sensitivity is not None and sensitivity["effect_size_lower"] is not None:
        return float(sensitivity["effect_size_upper"] - sensitivity["effect_size_lower"]) / 2.0
    sums = aggregates.h.get(weighting)
    if sums is None:
        return math.nan
    kept = float(sums.get("h").sum()) * math.exp(min(sums.log_unit, 700.0)) / aggregates.rows
    return max(0.0, 1.0 - kept) * worth


def _to_halve(sampling: float, identification: float, days: int | None) -> dict[str, float | None]:
    """f = (2S/(S − I))² times the log; None where no amount would do."""
    if not sampling > identification:
        return {"times": None, "more_days": None}
    times = (2.0 * sampling / (sampling - identification)) ** 2
    return {"times": times, "more_days": None if days is None else math.ceil((times - 1.0) * days)}


def _online_units(
    error: float | None, units: int, uplift: float, factor: float, split: tuple[float, float]
) -> int | None:
    """N = σ²·(1/a + 1/b)·(factor/Δ)² in both arms together, σ² = se²·units."""
    if error is None or not uplift > 0.0:
        return None
    return math.ceil(error**2 * units * sum(1.0 / share for share in split) * (factor / uplift) ** 2)


def _days_of(source: Source, name: str) -> int:
    """How many days the log has."""
    if isinstance(source, SparkFrame):
        quoted = name.replace("`", "``")
        column = source.frame.select(f"`{quoted}`").distinct().toArrow()[name].combine_chunks()
        return len(_unique(name, column))
    found: set[str] = set()

    def read() -> None:
        for part in source.parts([name]):
            for chunk in part():
                found.update(_unique(name, chunk.batch[name]))

    in_background(read)
    return len(found)


def _unique(name: str, column: pa.Array) -> list[str]:
    return list(pc.unique(days_of_rows(name, column).dictionary_decode()).to_pylist())
