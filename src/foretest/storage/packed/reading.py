"""Reading a packed log: the sums of all rows as they were saved, and only the rewarded rows folded anew."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold import Fold
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.scaled_sums import ScaledSums
from foretest.displays.batch import Floats
from foretest.engines import local
from foretest.errors import BadInput
from foretest.estimators import CIS, IIPS, IS, RIPS, AdaptivePointNCIS, AdaptiveSlotNCIS, PointNCIS
from foretest.kernels.normaliser import two_sided_means
from foretest.log.reader import Reader, Rows
from foretest.policies.pooled import Pooled
from foretest.progress import Progress, stage
from foretest.settings.analysis import BOUNDED
from foretest.sources import ParquetFiles, Source, pack_of
from foretest.storage.saved.files import SavedFile
from foretest.storage.saved.recipe import OtherLayout, first_difference, tables_of
from foretest.weights.weightings import Capped, Weighting

REST, REWARDED, BASE = "rest.parquet", "rewarded.parquet", "_packed.parquet"

# what the saved sums of all rows depend on, beside the policies
_LOG = ("rewards", "unit", "id", "ranking", "candidates", "logger")
_ANALYSIS = ("buckets", "seed", "baseline")
# whose values are Σ h·r / n: rows without a reward add nothing but themselves
_LINEAR = (IS, CIS, PointNCIS, AdaptivePointNCIS, IIPS, RIPS, AdaptiveSlotNCIS)


@dataclass(frozen=True)
class PackedLog:
    """A folder with a packed log."""

    folder: Path
    base: SavedFile | None  # the sums of all rows; None where another version wrote them

    @classmethod
    def is_one(cls, folder: Path) -> bool:
        return (folder / BASE).is_file()

    @classmethod
    def open(cls, folder: Path) -> PackedLog:
        place = folder / BASE
        if not place.is_file():
            raise BadInput(f"{place}: the file is missing, and with it the sums of all rows. Pack the log again.")
        try:
            return cls(folder, SavedFile.open(place, "Pack the log again."))
        except OtherLayout:
            return cls(folder, None)

    def read(
        self, reader: Reader, plan: FoldPlan, threads: int | None, batch_rows: int, progress: local.Progress | None
    ) -> Aggregates:
        """The aggregates of the log under a plan whose estimators need only the rewarded rows.

        Σ h of all rows is there at the cap the log was packed with; at another it is estimated from the sample of
        displays, and marked so.
        """
        assert self.base is not None
        found = local.fold_in_threads(
            rewarded_rows([self]), reader, lambda: _RewardedFold(plan), plan=plan,
            threads=threads, batch_rows=batch_rows, progress=progress,
        )  # fmt: skip
        base = self.base.read(self.base.plan(self.base.recipe.recorded(self.base.name)))
        if found.rewarded.seen != self.base.document["packed"]["rewarded"]:
            raise BadInput(f"{self.folder / REWARDED}: rows were added or taken away. Pack the log again.")
        return _joined(base, found, plan)


def _joined(base: Aggregates, found: Aggregates, plan: FoldPlan) -> Aggregates:
    """The saved sums of all rows with those of the rewarded rows, for every treatment."""
    missing = [w for w in plan.weightings if w not in base.h]
    whole = dataclasses.replace(
        base,
        plan=plan,
        h={w: base.h[w] if w in base.h else _estimated(base, w) for w in plan.weightings},
        hr=found.hr,
        unsupported=found.unsupported,
        approximate=found.approximate,
        rewarded=found.rewarded,
        sampled=dict.fromkeys(missing, True),
        treatments={
            name: _joined(base.treatments[name], further, plan.further[name])
            for name, further in found.treatments.items()
        },
    )
    return _at_other_cap(whole, plan) if plan.health_weighting in missing else whole


def fold_packed(
    source: Source, reader: Reader, plan: FoldPlan, threads: int | None, batch_rows: int, progress: Progress | None
) -> tuple[Aggregates | None, list[str]]:
    """The aggregates of packed logs from their rewarded rows, with notes; none where all rows must be read."""
    logs = packed_logs(source)
    if not logs:
        return None, []
    reason = why_all_rows(logs, plan)
    if reason is not None:
        return None, [f"{', '.join(str(log.folder) for log in logs)}: packed, but all rows were read: {reason}."]
    done = stage(progress, "read", rewarded_rows(logs))
    aggregates = Aggregates.total([log.read(reader, plan, threads, batch_rows, done) for log in logs])
    cap = plan.health_weighting
    if not aggregates.sampled.get(cap):
        return aggregates, []
    return aggregates, [
        f"health at cap {cap.cap:g} is estimated from a sample of {len(aggregates.sample):,} displays: the log was"
        " packed with another cap."
    ]


def packed_logs(source: Source) -> list[PackedLog]:
    """The packed logs of a source; none where anything else is among its files."""
    files = [(Path(name).parent, pack_of(schema)) for name, schema in source.schemas()]
    if any(pack is None for _, pack in files):
        return []
    logs = [PackedLog.open(folder) for folder in dict.fromkeys(folder for folder, _ in files)]
    for log in logs:
        if log.base is not None and (log.folder, log.base.document["packed"]["pack"]) not in files:
            raise BadInput(f"{log.folder}: its files are of two packed logs. Pack the log again.")
    return logs


def rewarded_rows(logs: list[PackedLog]) -> ParquetFiles:
    """The rows with a reward, and no others."""
    return ParquetFiles([log.folder / REWARDED for log in logs])


def why_all_rows(logs: list[PackedLog], plan: FoldPlan) -> str | None:
    """Why a run cannot do with the rewarded rows alone; None if it can."""
    settings = plan.settings
    full = [e.label for e in plan.estimators if type(e) not in _LINEAR]
    if full:
        return f"{', '.join(full)} need{'s' if len(full) == 1 else ''} them"
    if plan.segments:
        return "sums by segment are of all rows"
    if len(logs) > 1 and settings.log.unit is None and settings.log.id is None:
        return "with neither unit nor id, rows of several packed logs are told apart by their numbers"
    if len(logs) > 1 and isinstance(settings.control, Pooled):
        return "each was packed with the loggers' shares of its own log"
    for log in logs:
        if log.base is None:
            return "another version of Foretest packed them"
        difference = first_difference(_packed_for(log.base.recipe.settings), _packed_for(tables_of(settings)))
        if difference is not None:
            return f"the log was packed {difference}"
        if settings.analysis.interval in BOUNDED:
            exact = log.base.recipe.settings["analysis"]
            at = Capped(exact["cap"], exact["capping"])
            other = [e.label for e in plan.estimators if type(e) is CIS and plan.weighting(e) != at]
            if other:
                asked = f'interval = "{settings.analysis.interval}"'
                return f"{asked} needs the mean weight of all rows for {', '.join(other)}"
    return None


def _packed_for(tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    asked = (*_LOG, "date") if "logger" in tables["log"] else _LOG  # shares are by day
    return {
        **tables,
        "log": {key: value for key, value in tables["log"].items() if key in asked},
        "analysis": {key: value for key, value in tables["analysis"].items() if key in _ANALYSIS},
    }


class _RewardedFold(Fold):
    """A fold of rewarded rows alone: the sample of displays is that of all rows."""

    def _add_sample(self, rows: Rows, log_w: Floats) -> None:
        return


def _estimated(base: Aggregates, weighting: Weighting) -> ScaledSums:
    """Σ h by bucket and Σ h², from the sample of displays."""
    sums = ScaledSums()
    kept = base.sample.columns()
    if not kept:
        return sums
    buckets = len(base.n)
    bucket = base.plan.cells_at(kept["unit"], kept.get("logger"))
    times = base.rows / len(bucket)
    h = sums.scaled(weighting.log_h(kept["log_w"]))
    sums.add("h", times * np.bincount(bucket, weights=h, minlength=buckets))
    sums.add("h2", times * np.square(h).sum())
    return sums


def _at_other_cap(aggregates: Aggregates, plan: FoldPlan) -> Aggregates:
    """What health says of a cap, from the sample of displays: the share of rows above it, and q."""
    kept, cap = aggregates.sample.columns(), plan.health_weighting
    if not kept:
        return aggregates
    above = float((kept["log_w"] > np.log(cap.cap)).mean())
    if "q" in kept:
        drawn = np.hstack([kept["draws_treatment"], kept["draws_control"]])
        kept = {**kept, "q": np.minimum(two_sided_means(drawn, cap.cap, cap.capping == "zero"), 1.0)}
    sample = dataclasses.replace(aggregates.sample, parts=[kept])
    return dataclasses.replace(aggregates, sample=sample, capped_rows=round(above * aggregates.rows))
