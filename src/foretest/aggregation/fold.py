"""The fold: batches of a log in, `Aggregates` out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.audit_context import sampled_context
from foretest.aggregation.audit_draws import OWN, draw_from_control, drawn_columns, shown_columns
from foretest.aggregation.fold_plan import MOST_REWARDED, SAMPLE_DRAWS, SAMPLED_DISPLAYS, FoldPlan
from foretest.aggregation.kept_rows import Columns, KeptRows
from foretest.aggregation.point_path import path_columns
from foretest.aggregation.rewarded_rows import AT_ONCE, RewardedRows
from foretest.aggregation.scaled_sums import ScaledSums, add_padded
from foretest.aggregation.segment_sums import SegmentSums
from foretest.aggregation.strata import Strata
from foretest.aggregation.unit_counts import UnitCounts
from foretest.aggregation.weight_bins import WeightBins
from foretest.displays.batch import Displays, Floats, Hashes
from foretest.errors import BadInput
from foretest.estimators import DR
from foretest.log.reader import Rows
from foretest.policies.pooled import LOGGER, OwnLogger, Pooled
from foretest.weights.normaliser import FROM_TREATMENT, MODEL
from foretest.weights.slot_weights import SlotWeighting, slot_prices
from foretest.weights.weightings import PointWeights, Uncapped, Weighting, all_log_weights, of_metric


@dataclass
class Fold:
    """Batches in, `Aggregates` out."""

    plan: FoldPlan
    state: dict[str, Any] = field(default_factory=dict)
    further: dict[str, Fold] = field(default_factory=dict)  # a fold for each treatment after the first
    waiting: list[RewardedRows] = field(default_factory=list)  # rewarded rows to be priced

    def __post_init__(self) -> None:
        self.further = {name: type(self)(plan) for name, plan in self.plan.further.items()}
        plan, buckets, metrics = self.plan, self.plan.cells, len(self.plan.metrics)
        ties = tuple(f"r:{m}" for m in range(metrics))
        order = ("unit", "key", "log_w", *ties)
        self.state = {
            "plan": plan,
            "n": np.zeros(buckets),
            "r": np.zeros((metrics, buckets)),
            "r2": np.zeros(metrics),
            "positives": np.zeros(metrics),
            "h": {w: ScaledSums() for w in plan.weightings},
            "hr": {(w, m): ScaledSums() for w in [*plan.weightings, *plan.point_weightings] for m in range(metrics)},
            "v": {
                (e.label, m): np.zeros(buckets) for e in plan.estimators if isinstance(e, DR) for m in range(metrics)
            },
            "strata": {table: Strata() for table in plan.tables},
            "strata_n": {table: np.zeros(0) for table in plan.tables},
            "unsupported": dict.fromkeys(plan.point_weightings, 0),
            "approximate": dict.fromkeys(plan.point_weightings, 0),
            "max_log_w": -np.inf,
            "capped_rows": 0,
            "bins": WeightBins.empty(buckets, metrics),
            "rewarded": KeptRows(MOST_REWARDED, order),
            "sample": KeptRows(SAMPLED_DISPLAYS, order),
            "units": None if plan.row_is_unit else UnitCounts.empty(),
            "segments": {column: SegmentSums(buckets) for column in plan.segments},
        }

    def add(self, rows: Rows) -> None:
        """Take in one batch."""
        if not len(rows):
            return
        settings, rows = self.plan.settings, with_baseline(self.plan, rows)
        weights = all_log_weights(settings.treatments, settings.control, rows.displays)
        for state, log_w in zip((self, *self.further.values()), weights, strict=True):
            state.add_weighted(rows, log_w)

    def add_weighted(self, rows: Rows, log_w: Floats) -> None:
        """Take in one batch, its rankings priced."""
        plan, s, buckets = self.plan, self.state, self.plan.cells
        bucket = plan.cells_of(rows)
        s["n"] += np.bincount(bucket, minlength=buckets)
        s["max_log_w"] = max(s["max_log_w"], float(log_w.max()))
        s["capped_rows"] += int(np.count_nonzero(log_w > np.log(plan.settings.analysis.cap_number)))
        s["bins"].add(log_w, bucket)
        if s["units"] is not None:
            s["units"].add(rows.unit)
        values = plan.values(rows)
        codes = self._strata(rows, values)
        places = {table: code * buckets + bucket for table, code in codes.items()}
        for table, place in places.items():
            rows_there = np.bincount(place, minlength=self._places(table)).astype(np.float64)
            s["strata_n"][table] = add_padded(s["strata_n"][table], rows_there)
        for weighting in plan.weightings:
            self._add_weights(weighting, weighting.log_h(log_w), bucket, places)
        self._add_models(rows, log_w, bucket, values)
        rewarded = RewardedRows.of(rows, log_w, bucket, codes)
        if s["segments"]:  # which codes their values have is known while a batch is at hand
            points = self._add_rewarded(rewarded) if len(rewarded) else {}
            for column, sums in s["segments"].items():
                sums.add(plan, rows.segments[column], rows, bucket, log_w, points)
        elif len(rewarded):
            self._queue(rewarded)
        self._add_sample(rows, log_w)

    def finish(self) -> Aggregates:
        """The aggregates of all batches, with the sampled displays priced."""
        return priced(self.unpriced())

    def unpriced(self) -> Aggregates:
        """The same with the sampled displays themselves: parts of a log add up first, and are priced once."""
        self._add_waiting()
        sample: KeptRows = self.state["sample"]
        # keys break ties among the last rows: found here for those still held, not for all that passed
        sample.parts = [
            {**part, "key": displays.key()} for part, displays in zip(sample.parts, sample.displays, strict=True)
        ]
        return Aggregates(**self.state, treatments={name: state.unpriced() for name, state in self.further.items()})

    def _strata(self, rows: Rows, values: Floats | None) -> dict[str, npt.NDArray[np.int64]]:
        plan, strata = self.plan, self.state["strata"]
        if not plan.tables:
            return {}
        if rows.stratum is not None:
            return {"": strata[""].of_column(rows.stratum)}
        assert values is not None
        base = plan.settings.analysis.strata_base
        return {
            table: strata[table].of_values(values[:, plan.metrics.index(table) if table else 0], base)
            for table in plan.tables
        }

    def _places(self, table: str) -> int:
        """How many strata and buckets there are by now: place = stratum·buckets + bucket."""
        return len(self.state["strata"][table].labels) * self.plan.cells

    def _add_weights(
        self, weighting: Weighting, log_h: Floats, bucket: npt.NDArray[np.int64],
        places: dict[str, npt.NDArray[np.int64]],
    ) -> None:  # fmt: skip
        """Σh, Σh² over all rows; `places` are those of strata and buckets, by table."""
        sums = self.state["h"][weighting]
        h = sums.scaled(log_h)
        sums.add("h", np.bincount(bucket, weights=h, minlength=self.plan.cells))
        sums.add("h2", np.square(h).sum())
        if weighting in self.plan.stratified:
            for table, place in places.items():
                sums.add(f"h:{table}", np.bincount(place, weights=h, minlength=self._places(table)))

    def _queue(self, rewarded: RewardedRows) -> None:
        """Keep rewarded rows until there are enough to be priced together."""
        if sum(map(len, self.waiting)) + len(rewarded) < AT_ONCE:
            self.waiting.append(rewarded.compact())
        else:
            self.waiting.append(rewarded)
            self._add_waiting()

    def _add_waiting(self) -> None:
        waiting, self.waiting = self.waiting, []
        if waiting:
            self._add_rewarded(RewardedRows.concatenate(waiting))

    def _add_rewards(self, weighting: Weighting, log_h: Floats, rewarded: RewardedRows) -> None:
        """Σhr and its kin."""
        plan, buckets, rewards = self.plan, self.plan.cells, rewarded.rows.rewards
        for m in range(len(plan.metrics)):
            some = np.flatnonzero(rewards[:, m])
            r, at = rewards[some, m], rewarded.cell[some]
            sums = self.state["hr"][weighting, m]
            hr = sums.scaled(of_metric(log_h, m)[some]) * r
            sums.add("hr", np.bincount(at, weights=hr, minlength=buckets))
            sums.add("hr2", np.square(hr).sum())
            sums.add("hrr", (hr * r).sum())
            table = plan.table_of(m)
            if weighting in plan.stratified:
                place = rewarded.codes[table][some] * buckets + at
                sums.add(f"hr:{table}", np.bincount(place, weights=hr, minlength=self._places(table)))

    def _add_unsupported(
        self, weighting: Weighting, point: PointWeights, rewards: Floats, bucket: npt.NDArray[np.int64]
    ) -> None:
        """What the sensitivity band needs: Σ t = Σ (h − w̄) r and both sides of the slice test, with w̄' and q' at a
        third of the cap: Σ (w̄ − w̄') r and Σ (q − q')/q'·w̄' r."""
        sliced = np.isfinite(point.slice)
        for m in range(len(self.plan.metrics)):
            some = np.flatnonzero(rewards[:, m])
            r, sums = rewards[some, m], self.state["hr"][weighting, m]
            h, capped, below = (
                np.exp(of_metric(log, m)[some] - sums.log_unit)
                for log in (point.log_h, point.log_capped, point.log_below)
            )
            known = of_metric(sliced, m)[some]
            terms = {
                "t": (h - capped) * r,
                "slice": np.where(known, (capped - below) * r, 0.0),
                "slice_expected": np.where(known, of_metric(point.slice, m)[some] * below * r, 0.0),
            }
            for name, term in terms.items():
                sums.add(name, np.bincount(bucket[some], weights=term, minlength=len(self.state["n"])))

    def _add_models(self, rows: Rows, log_w: Floats, bucket: npt.NDArray[np.int64], values: Floats | None) -> None:
        """DR's control variate: Σ w·r̂(a, x) and Σ E_t r̂."""
        for estimator in self.plan.estimators:
            if not isinstance(estimator, DR):
                continue
            shown, expected = self._predictions(estimator, rows, values)
            sums = self.state["h"][Uncapped()]
            w = sums.scaled(log_w)
            for m in range(len(self.plan.metrics)):
                weighted = np.bincount(bucket, weights=w * shown[:, m], minlength=len(self.state["n"]))
                sums.add(f"hv:{estimator.label}:{m}", weighted)
                self.state["v"][estimator.label, m] += np.bincount(
                    bucket, weights=expected[:, m], minlength=len(self.state["n"])
                )

    def _predictions(self, estimator: DR, rows: Rows, values: Floats | None) -> tuple[Floats, Floats]:
        """r̂ of the shown ranking and its expectation under the treatment, a column a metric."""
        if estimator.model is None:
            assert values is not None
            return values, values
        metrics, displays, model = len(self.plan.metrics), rows.displays, estimator.model

        def predicted(rankings: Any) -> Floats:
            answer = np.asarray(model.predict(displays, rankings), dtype=np.float64).reshape(len(rows), -1)
            if answer.shape[1] != metrics:
                raise BadInput(
                    f"the reward model predicts {answer.shape[1]} columns, expected one a metric ({metrics})."
                )
            return answer

        total = np.zeros((len(rows), metrics))
        for draw in range(estimator.draws):
            u = self.plan.normaliser.uniforms(displays, MODEL, draw, 1)
            total += predicted(self.plan.settings.treatment.sample(displays, u))
        return predicted(displays.ranking), total / estimator.draws

    def _add_rewarded(self, rewarded: RewardedRows) -> dict[Weighting, PointWeights]:
        """All that is asked of rewarded rows; their weights by the pointwise estimators."""
        found = [self._add_priced(part) for part in rewarded.parts()]
        return {w: PointWeights.concatenate([points[w] for points in found]) for w in self.plan.point_weightings}

    def _add_priced(self, rewarded: RewardedRows) -> dict[Weighting, PointWeights]:
        """The same of some thousand rows: sums, weights, and the columns that are kept of them."""
        plan, s, rows, log_w, bucket = self.plan, self.state, rewarded.rows, rewarded.log_w, rewarded.cell
        points: dict[Weighting, PointWeights] = {}
        displays, rewards, worth = rows.displays, rows.rewards, rows.control_rewards
        for m in range(len(plan.metrics)):
            s["r"][m] += np.bincount(bucket, weights=worth[:, m], minlength=plan.cells)
        s["r2"] += np.square(rewards).sum(axis=0)
        s["positives"] += np.count_nonzero(rewards, axis=0)
        s["bins"].add_rewarded(log_w, bucket, rewards)
        for weighting in plan.weightings:
            self._add_rewards(weighting, weighting.log_h(log_w), rewarded)
        columns: dict[str, npt.NDArray[Any]] = {"unit": rows.unit, "key": displays.key(), "log_w": log_w}
        if rows.log_baseline is not None:
            columns |= {"log_baseline": rows.log_baseline, "logger": displays[LOGGER]}
        columns |= {f"r:{m}": rewards[:, m] for m in range(len(plan.metrics))}
        columns |= {f"stratum:{table}": code for table, code in rewarded.codes.items()}
        bounds = plan.slot_bounds
        normaliser = plan.normaliser.for_batch(displays)
        prices = None if bounds is None else slot_prices(displays, log_w, normaliser, bounds)
        for i, weighting in enumerate(plan.point_weightings):
            if isinstance(weighting, SlotWeighting):
                point = weighting.of_slots(log_w, displays, normaliser, prices, rows.slots, len(plan.metrics))
            else:
                point = weighting.of_rewarded(log_w, displays, normaliser)
            points[weighting] = point
            s["unsupported"][weighting] += int(point.unsupported.sum())
            s["approximate"][weighting] += int(point.approximate.sum())
            self._add_rewards(weighting, point.log_h, rewarded)
            if weighting.banded:
                self._add_unsupported(weighting, point, rewards, bucket)
            columns |= {f"log_h:{i}": point.log_h, f"log_cap:{i}": point.log_cap, f"q:{i}": point.q}
            columns |= {f"unsupported:{i}": point.unsupported, f"second:{i}": point.second}
            if weighting.by_slot:
                columns[f"log_capped:{i}"] = point.log_capped
        keep = s["rewarded"].below(columns["unit"])
        kept = {name: column[keep] for name, column in columns.items()}
        if len(keep) < len(rows):
            displays = displays.take(keep)
        kept |= path_columns(plan, normaliser, kept["log_w"], displays)
        s["rewarded"].add(kept, len(rows))
        return points

    def _add_sample(self, rows: Rows, log_w: Floats) -> None:
        sample: KeptRows = self.state["sample"]
        keep = sample.below(rows.unit)
        columns: dict[str, npt.NDArray[Any]] = {"unit": rows.unit[keep], "log_w": log_w[keep]}
        columns |= {f"r:{m}": rows.rewards[keep, m] for m in range(len(self.plan.metrics))}
        displays = rows.displays.take(keep)
        if self.plan.loggers > 1:
            columns["logger"] = displays[LOGGER]
        if rows.context is not None:
            context, displays = sampled_context(rows.context, keep, displays, self.plan.settings.log)
            columns |= context
        sample.add(columns, len(rows), displays)


def priced(aggregates: Aggregates) -> Aggregates:
    """Aggregates whose sample of displays is priced, and no longer holds the displays."""
    for further in aggregates.treatments.values():
        priced(further)
    sample = aggregates.sample
    kept = sample.columns()
    if kept and sample.displays:
        sample.parts = [{**kept, **_draws(aggregates.plan, sample.displays[0], kept["unit"])}]
    sample.displays = []
    return aggregates


def _draws(plan: FoldPlan, displays: Displays, unit: Hashes) -> Columns:
    """What the audit keeps; log w of rankings drawn from both policies, and q(x) at the cap."""
    a, control = plan.settings.analysis, plan.settings.control
    columns = shown_columns(control, displays)
    if plan.settings.log.unit is None and plan.settings.log.id is None:
        # equal rows have equal keys, and must not share their draws: they would err together
        displays = replace(displays, identity=unit, key_columns=None)
    if not getattr(control, "can_draw", True):
        return columns
    displays = displays.with_key()
    half = SAMPLE_DRAWS // 2
    drawn = draw_from_control(plan.normaliser, displays, half, weigh=plan.can_draw)
    if isinstance(control, Pooled):
        columns |= _own_columns(plan, OwnLogger(control), displays, half)
    else:
        columns |= drawn_columns(control, displays, columns["log_p"], drawn, a.seed)
    if drawn.log_w is None:
        return columns
    treatment = plan.normaliser.draw(displays, FROM_TREATMENT, 0, half, from_treatment=True)
    both = np.hstack([treatment, drawn.log_w])
    q = plan.normaliser.mass(displays, a.cap_number, zero=a.capping == "zero", log_w=both)
    return {**columns, "draws_treatment": treatment, "draws_control": drawn.log_w, "q": q}


def _own_columns(plan: FoldPlan, own: OwnLogger, displays: Displays, count: int) -> Columns:
    """What the audit asks of a row's own logger: its probability of what was shown, and its draws."""
    logged, priced = own.shown(displays), own.log_prob(displays, displays.ranking)
    drawn = draw_from_control(replace(plan.normaliser, control=own), displays, count, weigh=False)
    columns: Columns = {OWN: logged, **drawn_columns(own, displays, priced, drawn, plan.settings.analysis.seed)}
    return {**columns, "log_p_scores": priced} if own.has_logged else columns


def with_baseline(plan: FoldPlan, rows: Rows) -> Rows:
    """Rows of several loggers with log w_p where there is a reward: nothing asks for it elsewhere."""
    control = plan.settings.control
    if not isinstance(control, Pooled):
        return rows
    found = np.zeros(len(rows))
    some = rows.rewarded
    if len(some):
        found[some] = control.log_baseline(rows.displays.take(some))
    return replace(rows, log_baseline=found)


def fold(batches: Iterable[Rows], plan: FoldPlan) -> Aggregates:
    """The aggregates of some batches."""
    state = Fold(plan)
    for rows in batches:
        state.add(rows)
    return state.finish()
