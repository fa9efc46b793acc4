"""r̂(x, item): the predicted reward of an item in a slot, from a column of the log or fitted on features of items."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.aggregation.value_model import FeatureRows, ValueModel, fit_value_model, fold_of, smallest_rows
from foretest.background import in_background
from foretest.displays.arrow_numbers import to_arrow, to_numpy
from foretest.displays.batch import Displays, Floats
from foretest.log.reader import Reader
from foretest.log.rows import Rows
from foretest.records import dataclass
from foretest.settings.predictions import prediction_columns
from foretest.settings.settings import Settings

SLOT = "foretest: slot"  # the feature that no column of a log is named as
_LARGEST_SCALE = 1e100  # of predictions: rewards beyond it are refused

Ints = npt.NDArray[np.int64]


class Cells(NamedTuple):
    """Items in slots of some rows."""

    row: Ints
    slot: Ints
    item: Ints


def shown_cells(displays: Displays) -> Cells:
    """What was shown, row by row and slot by slot."""
    slots = displays.slots
    row = np.repeat(np.arange(len(displays)), slots)
    return Cells(row, np.arange(len(row)) - (np.cumsum(slots) - slots)[row], displays.ranking.flat().astype(np.int64))


def all_cells(displays: Displays, rows: Ints) -> Cells:
    """Every eligible item in every slot of some rows, slot by slot."""
    eligible, lengths = displays.eligible[rows], displays.eligible[rows] * displays.slots[rows]
    at = np.repeat(np.arange(len(rows)), lengths)
    place = np.arange(len(at)) - (np.cumsum(lengths) - lengths)[at]
    return Cells(rows[at], place // eligible[at], place % eligible[at])


@dataclass(frozen=True)
class ItemModel:
    """How r̂ is found: `fitted` on features of items, or from the columns `predictions`, by place of the metric.

    Where the log says which slot earned the reward, a prediction is that of an item's own worth: in slot k it is
    multiplied by `scales`, what that slot earned over what was predicted for its items, in the other folds' rows.
    """

    settings: Settings
    fitted: ValueModel | None = None
    scales: Floats | None = None  # by fold, metric and slot; None: predictions are rewards
    scales_fingerprint: str = ""

    @property
    def fingerprint(self) -> str | None:
        """A hash of what it was fitted on; None where nothing was fitted."""
        return (self.scales_fingerprint or None) if self.fitted is None else self.fitted.fingerprint

    def predict(self, rows: Rows, cells: Cells) -> Floats:
        """r̂ of the cells, one column per metric, from what was fitted without the row's unit."""
        if self.fitted is not None:
            return self.fitted.predict(_features(self.settings, rows, cells), rows.unit[cells.row])
        values = np.zeros((len(cells.row), len(rows.names)))
        for m, column in _columns(self.settings).items():
            values[:, m] = to_numpy(rows.items[column].at(cells.row, cells.item))
        if self.scales is not None:
            fold = fold_of(rows.unit, len(self.scales))[cells.row]
            values *= self.scales[fold, :, np.minimum(cells.slot, self.scales.shape[2] - 1)]
        return values


def feature_rows(reader: Reader, rows: Rows) -> FeatureRows:
    """What a model is fitted on: V(x) on the rows themselves, the reward model on a row for each shown slot, with what
    it earned."""
    if not reader.shown_items_only:
        assert rows.features is not None
        return FeatureRows(rows.features, rows.logged_rewards, rows.unit, rows.displays_per_row)
    settings, cells = reader.settings, shown_cells(rows.displays)
    rewards = np.zeros((len(cells.row), len(rows.names)))
    for name in settings.predicted_metrics:
        m = rows.names.index(name)
        rewards[:, m] = rows.slots[m].flat() if m in rows.slots else rows.rewards[cells.row, m]
    displays = rows.displays_per_row[cells.row]
    rewards /= displays[:, None]
    return FeatureRows(_features(settings, rows, cells), rewards, rows.unit[cells.row], displays)


def fit_item_model(batches: Iterable[FeatureRows], settings: Settings, folds: int, threads: int | None) -> ItemModel:
    """Fit the model of items' features, or the slots' scales of their predictions."""
    if settings.log.item_features:
        return ItemModel(settings, fit_value_model(batches, folds, settings.analysis.seed, threads))
    rows = in_background(lambda: smallest_rows(batches))
    scales = _slot_scales(settings, rows, folds)
    content = json.dumps([scales.tolist(), folds]).encode()
    return ItemModel(settings, scales=scales, scales_fingerprint=hashlib.blake2b(content, digest_size=16).hexdigest())


def is_fitted(settings: Settings) -> bool:
    """Must the log be read before the fold? Not where predictions are rewards of single actions."""
    return bool(settings.log.item_features or settings.log.slot_rewards)


def _columns(settings: Settings) -> dict[int, str]:
    """The columns of predictions, by place of the metric."""
    log = settings.log
    parts = [part.name for part in settings.definitions.parts]
    return {parts.index(name): column for name, column in prediction_columns(log, settings.analysis).items()}


def _features(settings: Settings, rows: Rows, cells: Cells) -> pa.RecordBatch:
    """Context features of the cells' rows, features of their items, and the slot where rewards are by slot."""
    log, row = settings.log, to_arrow(cells.row)
    columns: dict[str, pa.Array] = {}
    if log.item_features and rows.features is not None:
        columns |= {name: rows.features[name].take(row) for name in rows.features.schema.names}
    columns |= {_item_feature(name): lists.at(cells.row, cells.item) for name, lists in rows.items.items()}
    if log.slot_rewards:
        columns[SLOT] = to_arrow(cells.slot.astype(np.float64))
    return pa.RecordBatch.from_pydict(columns)


def _item_feature(column: str) -> str:
    """The name of an item's feature among all: a context feature may have the name of its column."""
    return f"item: {column}"


def _slot_scales(settings: Settings, rows: FeatureRows, folds: int) -> Floats:
    """Σ r/Σ r̂ by fold, metric and slot, over the rows of the other folds; 0 where nothing was predicted, or next to
    nothing."""
    features, rewards, unit, displays = rows
    if not len(unit):
        return np.zeros((folds, rewards.shape[1], 1))
    slot, fold = np.asarray(features[SLOT]).astype(np.int64), fold_of(unit, folds)
    count = int(slot.max()) + 1
    scales = np.zeros((folds, rewards.shape[1], count))
    for m, column in _columns(settings).items():
        predicted = np.asarray(features[_item_feature(column)])
        for f in range(folds):
            seen = fold != f if folds > 1 else np.ones(len(unit), np.bool_)
            earned, expected = (
                np.bincount(slot[seen], weights=(values * displays)[seen], minlength=count)
                for values in (rewards[:, m], predicted)
            )
            scales[f, m] = np.divide(
                earned, expected, out=np.zeros(count), where=np.abs(expected) > earned / _LARGEST_SCALE
            )
    return scales
