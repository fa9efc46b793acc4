"""The reader of a log: which columns a test reads, and how a batch of them becomes `Rows`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.batch import Displays, Floats, Hashes
from foretest.displays.keys import hash_keys
from foretest.displays.ragged import Ragged
from foretest.errors import RowFault
from foretest.kernels.hashing import hash_integers
from foretest.log.column_roles import NeededColumns, logged_columns
from foretest.log.column_values import (
    LARGEST,
    any_column,
    eligible_items,
    features_of,
    finite_numbers,
    list_lengths,
    list_of_numbers,
    logged_numbers,
)
from foretest.log.counted_rows import counted_rows
from foretest.log.examination_codes import curve_codes
from foretest.log.item_columns import ItemLists, item_lists
from foretest.log.logger_columns import logger_columns
from foretest.log.multiplicity_columns import multiplicities
from foretest.log.own_lists import own_lists
from foretest.log.reward_ages import days_of_displays, rows_of_whole, with_ages
from foretest.log.reward_parts import least_reward, with_parts
from foretest.log.rows import DAY, RowIds, Rows
from foretest.log.schema_checks import check_schemas
from foretest.log.shown_rankings import fixed_rankings, items_reached, shown_rankings, slot_rewards
from foretest.log.winsorised import winsorised
from foretest.policies.logging_mixture import loggers_of
from foretest.policies.pricing import refuse_not_finite
from foretest.records import dataclass
from foretest.settings.analysis import VALUE_MODEL
from foretest.settings.replay import replays_of
from foretest.sources import Chunk, Source


@dataclass(frozen=True)
class Reader(NeededColumns):
    """Which columns a test reads, and how a batch of them becomes `Rows`."""

    def for_value_model(self) -> Reader:
        """A reader of the part of the log that V(x) is fitted on: rewards, units and features."""
        return replace(self, value_model_only=True, items=False)

    def for_item_model(self) -> Reader:
        """A reader of what the reward model is fitted on: rewards, units, what was shown, and its features."""
        return replace(self, shown_items_only=True, slots=bool(self.settings.log.slot_rewards))

    def check(self, source: Source) -> None:
        """Refuse a log that lacks a column or has one of the wrong type, before any row is read."""
        check_schemas(self, source)

    def read(self, chunk: Chunk) -> Rows:
        """The rows of one chunk, checked; a fault is raised as a RowFault."""
        chunk = self.counted(chunk)
        with rows_of_whole(chunk):
            counts = multiplicities(self.settings.log, chunk.batch)
            rows = with_ages(self._rows(chunk), chunk, self.settings)
            rows = winsorised(rows, self.settings, math.prod(counts, start=rows.displays_per_row))
            rows = replace(with_parts(rows, self.settings.definitions), trained=chunk.trained)
            return reduce(Rows.standing_for, counts, rows)

    def counted(self, chunk: Chunk) -> Chunk:
        """The chunk without rows that do not count: what `read` takes of it."""
        return counted_rows(chunk, self.settings)

    def _rows(self, chunk: Chunk) -> Rows:
        """The rows as they are in the log, each for itself."""
        log, batch = self.settings.log, chunk.batch
        by_metric = [self._reward(batch, name) for name in log.rewards]
        rewards = by_metric[0][:, None] if len(by_metric) == 1 else np.column_stack(by_metric)
        alone = np.ones(len(rewards))
        identity = None if log.id is None else hash_keys(log.id, batch[log.id])
        if log.unit is not None:
            unit = hash_keys(log.unit, batch[log.unit])
        else:
            unit = hash_integers(chunk.positions()) if identity is None else identity
        if self.value_model_only:
            nothing = Ragged.packed(np.empty(0, np.int32), np.zeros(batch.num_rows, np.int64))
            displays = Displays({}, nothing, nothing.lengths, unit)
            features = features_of(batch, log.features)
            return Rows(displays, rewards, unit, None, None, features, log.rewards, alone, rewards)
        if self.shown_items_only:
            return self._shown_items(batch, rewards, unit)
        value = None
        if self.settings.analysis.value is not None:
            value = finite_numbers(self.settings.analysis.value, batch[self.settings.analysis.value], "V(x)")
        displays = self._displays_of_loggers(batch, identity, unit)
        if self.examination:
            codes = curve_codes(batch, self.settings, displays)
            displays = replace(displays, columns={**displays.columns, **codes})
        return Rows(
            displays=displays,
            rewards=rewards,
            unit=unit,
            stratum=batch[self.settings.analysis.strata]
            if self.strata and self.settings.analysis.strata != VALUE_MODEL
            else None,
            value=value,
            features=features_of(batch, log.features) if self.features else None,
            names=log.rewards,
            displays_per_row=alone,
            logged_rewards=rewards,
            slots=slot_rewards(batch, self.settings, displays.slots, rewards) if self.slots else {},
            items=self._item_lists(batch, displays),
            context=batch.select(list(dict.fromkeys(self.audited))) if self.audited else None,
            segments=self._segments(batch),
            unit_names=None if log.unit is None else batch[log.unit],
            ids=RowIds(batch[log.id], chunk.positions()) if log.id and replays_of(self.settings.control) else None,
        )

    def _segments(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """The segment columns, and the day where it is asked for."""
        columns = {name: batch[name] for name in self.settings.log.segments}
        days = days_of_displays(self.settings.log, batch) if self.days else None
        return columns if days is None else {**columns, DAY: days}

    def _shown_items(self, batch: pa.RecordBatch, rewards: Floats, unit: Hashes) -> Rows:
        """The rows that the reward model is fitted on, whose displays know what was shown and no policy."""
        log, lists = self.settings.log, {}
        for name in self.item_columns:
            lists[name] = list_lengths(name, batch[name])
        eligible = eligible_items(lists, batch.num_rows)
        displays = Displays({}, shown_rankings(batch, log, eligible, known=True), eligible, unit)
        return Rows(
            displays, rewards, unit, None, None, features_of(batch, log.features), log.rewards, np.ones(len(rewards)),
            rewards,
            slots=slot_rewards(batch, self.settings, displays.slots, rewards) if self.slots else {},
            items=self._item_lists(batch, displays),
        )  # fmt: skip

    def _item_lists(self, batch: pa.RecordBatch, displays: Displays) -> dict[str, ItemLists]:
        """What the reward model reads of every eligible item; without the slots' rewards it is of single actions."""
        log, what = self.settings.log, "a feature of an item" if self.settings.log.item_features else "a prediction"
        several = np.flatnonzero(displays.slots > 1)
        if len(several) and self.item_columns and not log.slot_rewards:
            assert log.ranking is not None
            raise RowFault("items-several", log.ranking, several,
                           f"the row shows {displays.slots[several[0]]} items, and predictions are of single actions",
                           "Name the list column that says which slot earned the reward in [log] slot_rewards, or leave"
                           f" {'[log] item_features' if log.item_features else '[analysis] predictions'} out."
                           )  # fmt: skip
        return {name: item_lists(name, batch[name], displays.eligible, what) for name in self.item_columns}

    def r_max(self, source: Source) -> dict[str, float]:
        """The largest possible reward of each metric where it is known: as set, 1 for bool columns."""
        given = self.settings.analysis.r_max
        bounds: dict[str, float] = {}
        for name in self.settings.log.rewards:
            if isinstance(given, Mapping):
                if name in given:
                    bounds[name] = float(given[name])
            elif given is not None:
                bounds[name] = float(given)
            if name not in bounds and all(pa.types.is_boolean(s.field(name).type) for _, s in source.schemas()):
                bounds[name] = 1.0
        for name, table in self.settings.metrics.items():
            cut = table.winsorising
            if cut is not None and cut.limit is not None and cut.quantile is None:
                bounds[name] = min(bounds.get(name, cut.limit), cut.limit)
        return {  # no reward is larger than LARGEST, whatever bound is given
            part.name: min(LARGEST, sum(term.share * bounds[term.column] for term in part.terms))
            for part in self.settings.definitions.parts
            if all(term.column in bounds for term in part.terms)
        }

    def _reward(self, batch: pa.RecordBatch, name: str) -> Floats:
        values = finite_numbers(name, batch[name], "the reward")
        floor = least_reward(self.settings, name)
        if values.min(initial=0.0) < floor:
            rows = np.flatnonzero(values < floor)
            raise RowFault("reward-negative", name, rows, f"the reward is negative ({values[rows[0]]:g})",
                           "Rewards must be 0 or more. If it may have losses, write"
                           f" [metrics.{name}] signed = true.")  # fmt: skip
        given = self.settings.analysis.r_max
        bound = given.get(name) if isinstance(given, Mapping) else given
        if bound is not None and np.abs(values).max(initial=0.0) > bound:
            rows = np.flatnonzero(np.abs(values) > bound)
            raise RowFault("reward-above-r-max", name, rows,
                           f"the reward {values[rows[0]]:g} is above r_max = {bound:g}",
                           "Raise r_max, or fix the reward.")  # fmt: skip
        return values

    def _displays_of_loggers(self, batch: pa.RecordBatch, identity: Hashes | None, unit: Hashes) -> Displays:
        """The displays with the logger and the day of each row; a logger's column must be filled on every row."""
        loggers = loggers_of(self.settings.control)
        more = logger_columns(batch, self.settings.log, loggers.names)
        try:
            displays = self._displays(batch, identity, unit)
        except RowFault as fault:
            reads_it = (name for name, policy in loggers.named.items() if fault.column in policy.columns)
            whose = next(reads_it, None) if fault.kind in ("null", "null-inside") else None
            if whose is None:
                raise
            raise RowFault(
                fault.kind, fault.column, fault.rows,
                f"{fault.what}, so the logger '{whose}' cannot be priced on this row",
                "Every row needs the columns of every logger, whichever of them showed it: fill it, or leave the row"
                " out.",
            ) from None  # fmt: skip
        return replace(displays, columns={**displays.columns, **more})

    def _displays(self, batch: pa.RecordBatch, identity: Hashes | None, unit: Hashes) -> Displays:
        log = self.settings.log
        columns: dict[str, Any] = {name: list_of_numbers(name, batch[name]) for name in self.scores}
        for name in self.unpriced:  # all others are checked where the shown ranking is priced
            refuse_not_finite(name, columns[name])
        for policy in self.policies:
            logged = {name for name, _ in logged_columns(policy)}
            for name in policy.columns:
                if name not in columns and name not in self.rankings:
                    columns[name] = (
                        logged_numbers(name, batch[name]) if name in logged else any_column(name, batch[name])
                    )
        by_item = {name: c for name, c in columns.items() if name not in self.by_slot}
        lists = {name: c.lengths for name, c in by_item.items() if isinstance(c, Ragged)}
        for name in self.extra:
            if name not in columns:
                columns[name] = any_column(name, batch[name])
        if self.own_candidates:
            own = own_lists(batch, self.settings, columns)
            return self._display_rows({**columns, **own.columns}, own.ranking, own.eligible, identity, unit)
        if log.candidates is not None:
            lists = {log.candidates: list_lengths(log.candidates, batch[log.candidates]), **lists}
        eligible = eligible_items(lists, batch.num_rows)
        if log.ranking is None:
            ranking = Ragged.packed(np.empty(0, np.int32), np.zeros(batch.num_rows, np.int64))
        else:
            ranking = shown_rankings(batch, log, eligible, known=bool(lists))
        fixed = {
            name: fixed_rankings(batch, name, log, eligible, bool(lists), ranking.lengths) for name in self.rankings
        }
        if fixed and not lists:
            eligible = items_reached({**fixed, log.ranking: ranking} if log.ranking else fixed)
        return self._display_rows({**columns, **fixed}, ranking, eligible, identity, unit)

    def _display_rows(
        self, columns: dict[str, Any], ranking: Ragged, eligible: npt.NDArray[np.int64], identity: Hashes | None,
        unit: Hashes,
    ) -> Displays:  # fmt: skip
        """The displays of a batch, with what their keys are made of."""
        key_columns = None if identity is not None else self.settings.control.columns
        # without id or unit, what a row shows is its identity, for draws
        root = identity if identity is not None else unit if self.settings.log.unit is not None else np.zeros_like(unit)
        return Displays(columns, ranking, eligible, root, key_columns)
