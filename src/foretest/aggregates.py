"""The fold and the merge: a log becomes a small table of sums, and tables of sums add up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays import Displays, Floats
from foretest.errors import BadInput
from foretest.estimators import DR, Estimator
from foretest.kept_rows import KeptRows
from foretest.kernels.random import derive
from foretest.log import Rows
from foretest.normaliser import MODEL, Normaliser
from foretest.scaled import ScaledSums, add_padded
from foretest.settings import VALUE_MODEL, Settings
from foretest.strata import Strata
from foretest.unit_counts import UnitCounts
from foretest.value_model import ValueModel
from foretest.weight_bins import WeightBins
from foretest.weights import Capped, PointWeighting, Uncapped, Weighting, log_weights

MOST_REWARDED = 1 << 17
SAMPLED_DISPLAYS = 20_000
SAMPLE_DRAWS = 32  # of each sampled display, half from each policy

# salts: what is derived from a unit's hash must not share bits with the samples of smallest hashes
BUCKET_SALT = 1


@dataclass(frozen=True)
class Plan:
    """What a fold adds up: fixed before the first row is read."""

    settings: Settings
    estimators: tuple[Estimator, ...] = ()
    value_model: ValueModel | None = None

    @property
    def metrics(self) -> tuple[str, ...]:
        return self.settings.log.rewards

    @property
    def row_is_unit(self) -> bool:
        return self.settings.log.unit is None

    @cached_property
    def normaliser(self) -> Normaliser:
        a = self.settings.analysis
        return Normaliser(self.settings.treatment, self.settings.control, a.normaliser, a.draws, a.seed)

    @cached_property
    def health_weighting(self) -> Capped:
        return Capped(self.settings.analysis.cap, self.settings.analysis.capping)

    @cached_property
    def weightings(self) -> list[Weighting]:
        """Those of all rows: the estimators' and the two that health needs."""
        asked = [self.weighting(e) for e in self.estimators]
        return list(dict.fromkeys([Uncapped(), self.health_weighting, *(w for w in asked if not w.pointwise)]))

    @cached_property
    def point_weightings(self) -> list[PointWeighting]:
        """Those of rewarded rows."""
        asked = [self.weighting(e) for e in self.estimators]
        return list(dict.fromkeys(w for w in asked if isinstance(w, PointWeighting)))

    @cached_property
    def stratified(self) -> list[Weighting]:
        return list(dict.fromkeys(self.weighting(e) for e in self.estimators if e.stratified))

    def weighting(self, estimator: Estimator) -> Weighting:
        return estimator.weighting(self.settings.analysis)

    @property
    def can_draw(self) -> bool:
        """Can rankings be drawn from both policies, and others than the shown be priced?"""
        return all(getattr(p, "can_draw", True) for p in (self.settings.treatment, self.settings.control))

    def table_of(self, metric: int) -> str:
        """The strata of a metric: shared, unless each metric has a value model of its own."""
        a = self.settings.analysis
        return "" if a.strata != VALUE_MODEL or a.value is not None else self.metrics[metric]

    @property
    def tables(self) -> list[str]:
        return list(dict.fromkeys(self.table_of(m) for m in range(len(self.metrics)))) if self.stratified else []

    def values(self, rows: Rows) -> Floats | None:
        """V(x), a column a metric, where an estimator asks for it."""
        if rows.value is not None:
            return np.repeat(rows.value[:, None], len(self.metrics), axis=1)
        if self.value_model is not None and rows.features is not None:
            return self.value_model.predict(rows.features, rows.unit)
        return None


@dataclass(frozen=True)
class Aggregates:
    """All that the analysis needs of a log. `a + b` is the aggregates of both logs together."""

    plan: Plan
    n: Floats  # rows by bucket
    r: Floats  # Σ r by metric and bucket
    r2: Floats  # Σ r² by metric
    positives: Floats  # rows with a reward, by metric
    h: dict[Weighting, ScaledSums]  # h, h2, h:<strata>, hv:<estimator>:<metric>
    hr: dict[tuple[Weighting, int], ScaledSums]  # hr, hr2, hrr, hr:<strata>, by metric
    v: dict[tuple[str, int], Floats]  # Σ E_t r̂ by bucket, of each DR estimator and metric
    strata: dict[str, Strata]
    strata_n: dict[str, Floats]  # rows by stratum × bucket
    unsupported: dict[Weighting, int]
    approximate: dict[Weighting, int]
    max_log_w: float
    capped_rows: int
    bins: WeightBins
    rewarded: KeptRows
    sample: KeptRows
    units: UnitCounts | None  # None: every row is a unit

    @property
    def rows(self) -> int:
        return int(self.n.sum())

    @property
    def n_units(self) -> int:
        return self.rows if self.units is None else self.units.units

    @property
    def largest_unit(self) -> int:
        return min(1, self.rows) if self.units is None else self.units.largest

    def __add__(self, other: Aggregates) -> Aggregates:
        strata, codes = {}, {}
        for table, mine in self.strata.items():
            both = Strata(list(mine.labels), dict(mine.codes))
            codes[table] = [both.code(label) for label in other.strata[table].labels]
            strata[table] = both
        theirs = other._recoded(codes)
        return Aggregates(
            plan=self.plan,
            n=self.n + other.n,
            r=self.r + other.r,
            r2=self.r2 + other.r2,
            positives=self.positives + other.positives,
            h={w: sums + theirs.h[w] for w, sums in self.h.items()},
            hr={key: sums + theirs.hr[key] for key, sums in self.hr.items()},
            v={key: sums + theirs.v[key] for key, sums in self.v.items()},
            strata=strata,
            strata_n={t: add_padded(sums.copy(), theirs.strata_n[t]) for t, sums in self.strata_n.items()},
            unsupported={w: count + other.unsupported[w] for w, count in self.unsupported.items()},
            approximate={w: count + other.approximate[w] for w, count in self.approximate.items()},
            max_log_w=max(self.max_log_w, other.max_log_w),
            capped_rows=self.capped_rows + other.capped_rows,
            bins=self.bins + other.bins,
            rewarded=self.rewarded + theirs.rewarded,
            sample=self.sample + other.sample,
            units=None if self.units is None or other.units is None else self.units + other.units,
        )

    def _recoded(self, codes: dict[str, list[int]]) -> Aggregates:
        """The same sums with other integers for the strata."""
        if all(new == list(range(len(new))) for new in codes.values()):
            return self
        buckets = len(self.n)

        def moved(array: Floats, new: list[int]) -> Floats:
            out = np.zeros((max(new, default=-1) + 1, buckets))
            held = array.reshape(-1, buckets)
            out[new[: len(held)]] = held
            return out.ravel()

        def table_of(name: str) -> str | None:
            kind, _, table = name.partition(":")
            return table if name.startswith(("h:", "hr:")) and kind in ("h", "hr") else None

        def recode(sums: ScaledSums) -> ScaledSums:
            arrays = {}
            for name, array in sums.arrays.items():
                table = table_of(name)
                arrays[name] = array if table is None else moved(array, codes[table])
            return ScaledSums(arrays, sums.exponent)

        parts = []
        for part in self.rewarded.parts:
            changed = {f"stratum:{t}": np.asarray(new)[part[f"stratum:{t}"]] for t, new in codes.items() if len(new)}
            parts.append({**part, **changed})
        kept = self.rewarded
        return Aggregates(**{
            **vars(self),
            "h": {w: recode(sums) for w, sums in self.h.items()},
            "hr": {key: recode(sums) for key, sums in self.hr.items()},
            "strata_n": {t: moved(sums, codes[t]) for t, sums in self.strata_n.items()},
            "rewarded": replace(kept, parts=parts),
        })  # fmt: skip


@dataclass
class Fold:
    """Batches in, `Aggregates` out."""

    plan: Plan
    state: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan, buckets, metrics = self.plan, self.plan.settings.analysis.buckets, len(self.plan.metrics)
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
        }

    def add(self, rows: Rows) -> None:
        """Take in one batch."""
        if not len(rows):
            return
        plan, s, buckets = self.plan, self.state, self.plan.settings.analysis.buckets
        log_w = log_weights(plan.settings.treatment, plan.settings.control, rows.displays)
        bucket = (derive(rows.unit, BUCKET_SALT) % np.uint64(buckets)).astype(np.int64)
        s["n"] += np.bincount(bucket, minlength=buckets)
        rewarded = np.flatnonzero(rows.rewards.any(axis=1))
        for m in range(len(plan.metrics)):
            r = rows.rewards[rewarded, m]
            s["r"][m] += np.bincount(bucket[rewarded], weights=r, minlength=buckets)
            s["r2"][m] += np.square(r).sum()
            s["positives"][m] += np.count_nonzero(r)
        s["max_log_w"] = max(s["max_log_w"], float(log_w.max()))
        s["capped_rows"] += int(np.count_nonzero(log_w > np.log(plan.settings.analysis.cap)))
        s["bins"].add(log_w, bucket, rows.rewards, rewarded)
        if s["units"] is not None:
            s["units"].add(rows.unit)
        values = plan.values(rows)
        codes = self._strata(rows, values)
        for table, code in codes.items():
            s["strata_n"][table] = add_padded(
                s["strata_n"][table], self._by_cell(code, bucket, np.ones(len(rows)), table)
            )
        for weighting in plan.weightings:
            self._add_weights(weighting, weighting.log_h(log_w), rows, rewarded, bucket, codes)
        self._add_models(rows, log_w, bucket, values)
        self._add_rewarded(rows, rewarded, log_w, bucket, codes)
        self._add_sample(rows, log_w)

    def finish(self) -> Aggregates:
        """The aggregates of all batches, with the sampled displays priced."""
        sample: KeptRows = self.state["sample"]
        # keys break ties among the last rows: found here for those still held, not for all that passed
        sample.parts = [
            {**part, "key": displays.key()} for part, displays in zip(sample.parts, sample.displays, strict=True)
        ]
        kept = sample.columns()
        if kept and self.plan.can_draw:
            sample.parts = [{**kept, **self._draws(sample.displays[0])}]
        sample.displays = []
        return Aggregates(**self.state)

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

    def _by_cell(
        self, code: npt.NDArray[np.int64], bucket: npt.NDArray[np.int64], amounts: Floats, table: str
    ) -> Floats:
        buckets = self.plan.settings.analysis.buckets
        size = len(self.state["strata"][table].labels) * buckets
        return np.asarray(np.bincount(code * buckets + bucket, weights=amounts, minlength=size), np.float64)

    def _add_weights(
        self, weighting: Weighting, log_h: Floats, rows: Rows, rewarded: npt.NDArray[np.int64],
        bucket: npt.NDArray[np.int64], codes: dict[str, npt.NDArray[np.int64]],
    ) -> None:  # fmt: skip
        """Σh, Σh² over all rows, then Σhr and its kin over the rewarded."""
        plan, buckets = self.plan, self.plan.settings.analysis.buckets
        sums = self.state["h"][weighting]
        h = sums.scaled(log_h)
        sums.add("h", np.bincount(bucket, weights=h, minlength=buckets))
        sums.add("h2", np.square(h).sum())
        if weighting in plan.stratified:
            for table, code in codes.items():
                sums.add(f"h:{table}", self._by_cell(code, bucket, h, table))
        self._add_rewards(weighting, log_h[rewarded], rows.rewards[rewarded], rewarded, bucket, codes)

    def _add_rewards(
        self, weighting: Weighting, log_h: Floats, rewards: Floats, rewarded: npt.NDArray[np.int64],
        bucket: npt.NDArray[np.int64], codes: dict[str, npt.NDArray[np.int64]],
    ) -> None:  # fmt: skip
        plan, buckets = self.plan, self.plan.settings.analysis.buckets
        for m in range(len(plan.metrics)):
            some = np.flatnonzero(rewards[:, m])
            r, at = rewards[some, m], bucket[rewarded[some]]
            sums = self.state["hr"][weighting, m]
            hr = sums.scaled(log_h[some]) * r
            sums.add("hr", np.bincount(at, weights=hr, minlength=buckets))
            sums.add("hr2", np.square(hr).sum())
            sums.add("hrr", (hr * r).sum())
            table = plan.table_of(m)
            if weighting in plan.stratified:
                sums.add(f"hr:{table}", self._by_cell(codes[table][rewarded[some]], at, hr, table))

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

    def _add_rewarded(
        self, rows: Rows, rewarded: npt.NDArray[np.int64], log_w: Floats,
        bucket: npt.NDArray[np.int64], codes: dict[str, npt.NDArray[np.int64]],
    ) -> None:  # fmt: skip
        plan, s = self.plan, self.state
        if not len(rewarded):
            return
        displays, rewards = rows.displays.take(rewarded), rows.rewards[rewarded]
        columns: dict[str, npt.NDArray[Any]] = {"unit": rows.unit[rewarded], "key": displays.key()}
        columns["log_w"] = log_w[rewarded]
        columns |= {f"r:{m}": rewards[:, m] for m in range(len(plan.metrics))}
        columns |= {f"stratum:{table}": code[rewarded] for table, code in codes.items()}
        for i, weighting in enumerate(plan.point_weightings):
            point = weighting.of_rewarded(log_w[rewarded], displays, plan.normaliser)
            s["unsupported"][weighting] += int(point.unsupported.sum())
            s["approximate"][weighting] += int(point.approximate.sum())
            self._add_rewards(weighting, point.log_h, rewards, rewarded, bucket, codes)
            columns |= {f"log_h:{i}": point.log_h, f"log_cap:{i}": point.log_cap, f"q:{i}": point.q}
            columns[f"unsupported:{i}"] = point.unsupported
        keep = s["rewarded"].below(columns["unit"])
        s["rewarded"].add({name: column[keep] for name, column in columns.items()}, len(rewarded))

    def _add_sample(self, rows: Rows, log_w: Floats) -> None:
        sample: KeptRows = self.state["sample"]
        keep = sample.below(rows.unit)
        columns: dict[str, npt.NDArray[Any]] = {"unit": rows.unit[keep], "log_w": log_w[keep]}
        columns |= {f"r:{m}": rows.rewards[keep, m] for m in range(len(self.plan.metrics))}
        sample.add(columns, len(rows), rows.displays.take(keep))

    def _draws(self, displays: Displays) -> dict[str, Floats]:
        """log w of rankings drawn from both policies, and q(x) at the cap."""
        plan, a = self.plan, self.plan.settings.analysis
        treatment, control = plan.normaliser.two_sided_draws(displays, SAMPLE_DRAWS)
        both = np.hstack([treatment, control])
        q = plan.normaliser.mass(displays, a.cap, zero=a.capping == "zero", log_w=both)
        return {"draws_treatment": treatment, "draws_control": control, "q": q}


def fold(batches: Iterable[Rows], plan: Plan) -> Aggregates:
    """The aggregates of some batches."""
    state = Fold(plan)
    for rows in batches:
        state.add(rows)
    return state.finish()
