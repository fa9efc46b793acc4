"""Reading a packed log: the sums of all rows as they were saved, and only the rewarded rows folded again."""

from __future__ import annotations

import dataclasses

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold import Fold
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.ledger import Account, AccountKey, Ledger
from foretest.aggregation.logger_columns import logger_of
from foretest.aggregation.quantities import CAPPED_ROWS, SQUARED_WEIGHTS, WEIGHTS
from foretest.aggregation.thinning import standing_for
from foretest.displays.batch import Floats
from foretest.displays.merging import merged
from foretest.engines import local
from foretest.errors import BadInput
from foretest.estimators import (
    CIS,
    IIPS,
    IS,
    PBM,
    RIPS,
    AdaptiveCascadeNCIS,
    AdaptiveExposureNCIS,
    AdaptivePointNCIS,
    AdaptiveSlotNCIS,
    PointNCIS,
)
from foretest.log.reader import Reader
from foretest.log.rows import Rows
from foretest.policies.logging_mixture import LoggingMixture
from foretest.progress import Progress, stage
from foretest.records import dataclass
from foretest.settings.analysis import BOUNDED
from foretest.settings.log_columns import MULTIPLICITIES
from foretest.sources import ParquetFiles, Source, pack_of
from foretest.storage.saved.differences import difference_text
from foretest.storage.saved.files import SavedFile
from foretest.storage.saved.json_values import Tables, tables_of
from foretest.storage.saved.recipe import OtherLayout
from foretest.stores import Location, listed_location
from foretest.weights.policy_pair import z_of
from foretest.weights.weightings import Capped, Weighting

REST, REWARDED, BASE = "rest.parquet", "rewarded.parquet", "_packed.parquet"

# the settings that the saved sums of all rows depend on, beside the policies
_LOG = ("rewards", "unit", "id", "ranking", "candidates", "logger", *MULTIPLICITIES)
_ANALYSIS = ("buckets", "seed", "baseline")
# estimators whose value is Σ h·r / n: a row without a reward adds 1 to n, and nothing else
_LINEAR = (
    IS, CIS, PointNCIS, AdaptivePointNCIS, IIPS, RIPS, AdaptiveSlotNCIS, AdaptiveCascadeNCIS, PBM, AdaptiveExposureNCIS,
)  # fmt: skip


@dataclass(frozen=True)
class PackedLog:
    """A folder with a packed log."""

    folder: Location
    base: SavedFile | None  # the sums of all rows; None where another version wrote them

    @classmethod
    def is_one(cls, folder: Location) -> bool:
        return (folder / BASE).is_file()

    @classmethod
    def open(cls, folder: Location) -> PackedLog:
        place = folder / BASE
        if not place.is_file():
            raise BadInput(f"{place}: the file is missing, and with it the sums of all rows. Pack the log again.")
        try:
            return cls(folder, SavedFile.open(place, "Pack the log again."))
        except OtherLayout:
            return cls(folder, None)

    @property
    def rewards(self) -> list[str]:
        """The rewards by which rows were told apart; none where another version packed them."""
        return [] if self.base is None else list(self.base.recipe.settings["log"]["rewards"])

    @property
    def rewarded_rows(self) -> ParquetFiles:
        """The rows with a reward."""
        return ParquetFiles([self.folder / REWARDED])

    @property
    def other_rows(self) -> ParquetFiles:
        """The rows without."""
        return ParquetFiles([self.folder / REST])

    def read(
        self, reader: Reader, plan: FoldPlan, threads: int | None, batch_rows: int, progress: local.Progress | None
    ) -> Aggregates:
        """The aggregates of the log under a plan whose estimators need only the rewarded rows.

        Σ h of all rows is known at the cap the log was packed with; at another cap it is estimated from the sample of
        displays, and marked as estimated.
        """
        assert self.base is not None
        rewarded = local.fold_in_threads(
            rewarded_rows([self]), reader, lambda: _RewardedFold(plan), plan=plan,
            threads=threads, batch_rows=batch_rows, progress=progress,
        )  # fmt: skip
        base = self.base.read(self.base.plan(self.base.settings()))
        if rewarded.rewarded.seen != self.base.document["packed"]["rewarded"]:
            raise BadInput(f"{self.folder / REWARDED}: rows were added or removed. Pack the log again.")
        return _joined(base, rewarded, plan.lasting)


def _joined(base: Aggregates, of_rewarded: Aggregates, plan: FoldPlan) -> Aggregates:
    """The saved sums of all rows together with the sums of the rewarded rows, for every treatment."""
    missing = [w for w in plan.weightings if not base.has_weights(w)]
    whole = dataclasses.replace(
        base,
        plan=plan,
        ledger=_joined_ledger(base, of_rewarded, plan),
        rewarded=of_rewarded.rewarded,
        sampled=dict.fromkeys(missing, True),
        treatments={
            name: _joined(base.treatments[name], further, plan.further[name])
            for name, further in of_rewarded.treatments.items()
        },
    )
    return _at_other_cap(whole, plan) if plan.health_weighting in missing else whole


def _joined_ledger(base: Aggregates, of_rewarded: Aggregates, plan: FoldPlan) -> Ledger:
    """The saved sums of all rows, and those of the rewarded rows that were folded now: of weighted rewards all are of
    these, and counts by weighting."""
    by_weighting = {
        key: array for key, array in of_rewarded.ledger.plain.sums.items() if isinstance(key.owner, Weighting)
    }
    plain = {key: array for key, array in base.ledger.plain.sums.items() if not isinstance(key.owner, Weighting)}
    accounts: dict[AccountKey, Account] = {
        (None, None): dataclasses.replace(base.ledger.plain, sums={**plain, **by_weighting})
    }
    accounts |= {(w, None): base.weights(w) if base.has_weights(w) else _estimated(base, w) for w in plan.weightings}
    accounts |= {name: account for name, account in of_rewarded.ledger.accounts.items() if name[1] is not None}
    return dataclasses.replace(base.ledger, accounts=accounts)


def fold_packed(
    source: Source, reader: Reader, plan: FoldPlan, threads: int | None, batch_rows: int, progress: Progress | None
) -> tuple[Aggregates | None, list[str]]:
    """The aggregates of packed logs from their rewarded rows, and notes; None where all rows must be read."""
    logs = packed_logs(source)
    if not logs:
        return None, []
    reason = why_all_rows(logs, plan)
    if reason is not None:
        return None, [f"{', '.join(str(log.folder) for log in logs)}: packed, but all rows were read: {reason}."]
    done = stage(progress, "read", rewarded_rows(logs))
    aggregates = merged([log.read(reader, plan, threads, batch_rows, done) for log in logs])
    cap = plan.health_weighting
    if not aggregates.sampled.get(cap):
        return aggregates, []
    return aggregates, [
        f"health at cap {cap.cap:g} is estimated from a sample of {len(aggregates.sample):,} displays: the log was"
        " packed with another cap."
    ]


def packed_logs(source: Source) -> list[PackedLog]:
    """The packed logs of a source; none where any of its files is not of a packed log."""
    files = [(listed_location(name).parent, pack_of(schema)) for name, schema in source.schemas()]
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
    """Why a run needs more than the rewarded rows; None if these are enough."""
    settings = plan.settings
    full = [e.label for e in plan.estimators if type(e) not in _LINEAR]
    if full:
        return f"{', '.join(full)} need{'s' if len(full) == 1 else ''} them"
    if plan.control_fits:
        return "a number of the control was fitted, and sums were saved under another"
    if plan.dense:
        return "rewards are dense, and rows without one are weighed too"
    if settings.trained_until is not None:
        return f"sums are of all rows, and those up to {settings.trained_until} are left out"
    if settings.log.time is not None:
        return "sums by day and ages are of all rows"
    if plan.segments:
        return "sums by segment are of all rows"
    if len(logs) > 1 and settings.log.unit is None and settings.log.id is None:
        return "with neither unit nor id, rows of several packed logs are distinguished by their numbers"
    if len(logs) > 1 and isinstance(settings.control, LoggingMixture):
        return "each was packed with the shares of the loggers of its own log"
    for log in logs:
        if log.base is None:
            return "another version of Foretest packed them"
        packed_with = log.base.recipe.settings
        difference = difference_text(_packed_for(packed_with), _packed_for(tables_of(settings)))
        if difference is not None:
            return f"the log was packed {difference}"
        if settings.analysis.interval in BOUNDED:
            lacking = _without_mean_weight(packed_with, plan)
            if lacking:
                interval = f'interval = "{settings.analysis.interval}"'
                return f"{interval} needs the mean weight of all rows for {', '.join(lacking)}"
    return None


def _without_mean_weight(packed_with: Tables, plan: FoldPlan) -> list[str]:
    """The estimators whose mean weight over all rows was not saved: those at another cap."""
    analysis = packed_with["analysis"]
    saved = Capped(analysis["cap"], analysis["capping"])
    return [e.label for e in plan.estimators if type(e) is CIS and plan.weighting(e) != saved]


def _packed_for(tables: Tables) -> Tables:
    """The settings that the sums of a packed log depend on."""
    asked = (*_LOG, "date") if "logger" in tables["log"] else _LOG  # shares are by day
    return {
        **tables,
        "log": {key: value for key, value in tables["log"].items() if key in asked},
        "analysis": {key: value for key, value in tables["analysis"].items() if key in _ANALYSIS},
    }


class _RewardedFold(Fold):
    """A fold of the rewarded rows without a sample of displays, which the saved sums have of all rows."""

    def _add_sample(self, rows: Rows, log_w: Floats) -> None:
        return


def _estimated(base: Aggregates, weighting: Weighting) -> Account:
    """Σ h by bucket and Σ h², estimated from the sample of displays."""
    account, sample = Account(weighting), base.sample.columns()
    if not sample:
        return account
    cell = base.plan.cells_at(sample["unit"], logger_of(sample))
    scale = base.rows / len(cell)
    h = account.scaled(weighting.log_h(sample["log_w"])) * standing_for(sample)
    account.add(WEIGHTS, scale * h, base.ledger.places(cell))
    account.put(SQUARED_WEIGHTS, scale * np.square(h).sum())
    return account


def _at_other_cap(aggregates: Aggregates, plan: FoldPlan) -> Aggregates:
    """The aggregates with the share of rows above the cap, and q at it, estimated from the sample of displays."""
    columns, cap = aggregates.sample.columns(), plan.health_weighting
    if not columns:
        return aggregates
    above = float(np.average(columns["log_w"] > np.log(cap.cap), weights=standing_for(columns)))
    if "q" in columns:
        z = z_of(columns["draws_treatment"], cap.cap, cap.capping == "zero")
        columns = {**columns, "q": z.mean(axis=1)}
    sample = dataclasses.replace(aggregates.sample, parts=[columns])
    ledger, plain = aggregates.ledger, aggregates.ledger.plain
    capped = {plain.key(CAPPED_ROWS): np.array([round(above * aggregates.displays)], np.float64)}
    accounts = {**ledger.accounts, (None, None): dataclasses.replace(plain, sums={**plain.sums, **capped})}
    return dataclasses.replace(aggregates, sample=sample, ledger=dataclasses.replace(ledger, accounts=accounts))
