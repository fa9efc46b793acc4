"""V(x), the expected reward of a display from its context alone, fitted on data the estimate does not use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.background import in_background, side_by_side
from foretest.displays.arrow_numbers import filled, to_numpy
from foretest.displays.batch import Floats, Hashes
from foretest.displays.merging import by, joined
from foretest.displays.ragged import is_text, numbers, plain
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derived_bucket
from foretest.records import dataclass

FOLD_SALT = 2
MOST_ROWS = 200_000
MOST_CATEGORIES = 250  # of a text feature; the rarest share one code


class FeatureRows(NamedTuple):
    """Rows that a value model is fitted on."""

    features: pa.RecordBatch | pa.Table
    rewards: Floats  # rows × metrics, as logged
    unit: Hashes
    displays_per_row: Floats


@dataclass(frozen=True)
class ValueModel:
    """Gradient-boosted trees with a Poisson loss, which suits rare rewards; one model per fold and metric.

    `models[f]` did not see the units of fold f. A model fitted on a separate log has one fold. Two models with the same
    `fingerprint` predict the same: it is a hash of the rows they were fitted on, and of how.
    """

    models: tuple[tuple[Any, ...], ...]  # fold, metric; a number where there was nothing to learn
    encoder: Encoder
    fingerprint: str = ""

    def predict(self, features: pa.RecordBatch, unit: Hashes) -> Floats:
        """V(x) for each row and metric, from the model that did not see the row's unit."""
        x = self.encoder.matrix(features)
        fold = fold_of(unit, len(self.models))
        values = np.empty((len(unit), len(self.models[0])))
        for f, by_metric in enumerate(self.models):
            rows = np.flatnonzero(fold == f)
            for m, model in enumerate(by_metric):
                if len(rows):
                    values[rows, m] = model if isinstance(model, float) else model.predict(x[rows])
        return values


@dataclass(frozen=True)
class Encoder:
    """Context features as a matrix: numbers and dates as they are, text by its place among the commonest values."""

    names: tuple[str, ...]
    categories: tuple[tuple[str, ...] | None, ...]  # None: a number

    @classmethod
    def fit(cls, features: pa.Table) -> Encoder:
        """The encoder of some features, with the commonest values of each text."""
        columns = (_as_text_or_number(column.combine_chunks()) for column in features.columns)
        categories = tuple(_commonest(column) if is_text(column.type) else None for column in columns)
        return cls(tuple(features.column_names), categories)

    def matrix(self, features: pa.RecordBatch | pa.Table) -> Floats:
        """One row per row of `features`, one column per feature."""
        matrix = np.empty((features.num_rows, len(self.names)))
        import pyarrow.compute as pc

        for j, (name, categories) in enumerate(zip(self.names, self.categories, strict=True)):
            column = features[name]
            if isinstance(column, pa.ChunkedArray):
                column = column.combine_chunks()
            column = _as_text_or_number(column)
            if categories is None:
                matrix[:, j] = numbers(filled(column, np.nan))
            else:
                # an unseen or rare value, and null, share the code after the last
                place = pc.index_in(column, pa.array(categories, pa.large_string()))
                matrix[:, j] = to_numpy(filled(place, len(categories)))
        return matrix

    @property
    def categorical(self) -> list[bool]:
        """For each feature, whether it is text."""
        return [categories is not None for categories in self.categories]


def _commonest(texts: pa.Array) -> tuple[str, ...]:
    """The commonest values, the most frequent first; one code is left for all others."""
    import pyarrow.compute as pc

    counts = pc.value_counts(texts.drop_null()).to_pylist()
    ranked = sorted(counts, key=lambda count: (-count["counts"], count["values"]))
    return tuple(count["values"] for count in ranked[: MOST_CATEGORIES - 1])


def fit_value_model(batches: Iterable[FeatureRows], folds: int, seed: int, threads: int | None = None) -> ValueModel:
    """Fit on at most 200 000 rows of some batches, those of the smallest unit hashes.

    With one fold (a separate log) every row is used for the one model. Models are fitted side by side.
    """
    rows = in_background(lambda: smallest_rows(batches))
    features, rewards, unit, displays = rows
    encoder = Encoder.fit(features)
    x = encoder.matrix(features)
    fold = fold_of(unit, folds)

    def fit(f: int, m: int) -> Any:
        seen = np.flatnonzero(fold != f) if folds > 1 else np.arange(len(unit))
        return _fit(x[seen], rewards[seen, m], encoder.categorical, seed, displays[seen])

    metrics = range(rewards.shape[1])
    fitted = iter(side_by_side([partial(fit, f, m) for f in range(folds) for m in metrics], threads))
    models = tuple(tuple(next(fitted) for _ in metrics) for _ in range(folds))
    return ValueModel(models, encoder, _fingerprint(x, rows, encoder, folds, seed))


def _fingerprint(x: Floats, rows: FeatureRows, encoder: Encoder, folds: int, seed: int) -> str:
    """A hash of all that the fit depends on: the rows in their order, the codes of texts, and the learner."""
    from importlib.metadata import version

    learner = f"scikit-learn {version('scikit-learn')}"
    options = json.dumps([encoder.names, encoder.categories, folds, seed, learner, list(x.shape)])
    digest = hashlib.blake2b(options.encode(), digest_size=16)
    weights = _weights(rows.displays_per_row)
    for array in (x, rows.rewards, rows.unit, *([] if weights is None else [weights])):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def fold_of(unit: Hashes, folds: int) -> npt.NDArray[np.int64]:
    """The fold of each unit, whose model did not see it."""
    return derived_bucket(unit, FOLD_SALT, folds)


def _fit(x: Floats, y: Floats, categorical: list[bool], seed: int, displays: Floats) -> Any:
    """A fitted regressor, or the mean of y where there is nothing to learn."""
    if len(y) == 0 or y.sum() == 0.0 or x.shape[1] == 0:
        return float(np.average(y, weights=displays)) if len(y) else 0.0
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingRegressor(
        loss="poisson",
        learning_rate=0.1,
        max_iter=80,
        max_leaf_nodes=15,
        min_samples_leaf=max(20, min(200, len(y) // 50)),
        l2_regularization=1.0,
        categorical_features=categorical,
        early_stopping=False,
        random_state=seed % (1 << 32),
    )
    # a feature that no row has: the learner wants a value, and one for all teaches it nothing
    x = np.where(np.isnan(x).all(axis=0), 0.0, x)
    # OpenMP's threads spin while they wait: on busy cores many times longer than they work
    with threadpool_limits(1, user_api="openmp"):
        return model.fit(x, y, sample_weight=_weights(displays))


def _weights(displays: Floats) -> Floats | None:
    """How many displays rows stand for, where they differ from one: a learner sorts weighted rows into other bins."""
    return displays if (displays != 1.0).any() else None


def _tie_breakers(features: pa.Table) -> list[npt.NDArray[Any]]:
    """The ranks of the features, column by column: rows of one unit are sorted by them, whatever the other rows are."""
    import pyarrow.compute as pc

    ranks = [pc.rank(_as_text_or_number(column.combine_chunks()), tiebreaker="dense") for column in features.columns]
    return [to_numpy(rank) for rank in ranks]


def _as_text_or_number(column: pa.Array) -> pa.Array:
    """Text as large strings; all else, dates included, as float64."""
    column = plain(column)
    if is_text(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_temporal(column.type):
        narrow = column.type.bit_width == 32
        column = column.cast(pa.int32() if narrow else pa.int64())
    return column.cast(pa.float64(), safe=False)


@dataclass
class SmallestRows:
    """The rows of the smallest unit hashes, in an order that does not depend on how the log was cut into batches."""

    parts: list[FeatureRows] = field(default_factory=list, metadata=by(joined))
    highest: int = field(default=(1 << 64) - 1, metadata=by(min))  # no row above this hash is among the smallest

    def __post_init__(self) -> None:
        self._cut_if_many()

    def add(self, batch: FeatureRows) -> None:
        """Take in some rows."""
        features, rewards, unit, displays = FeatureRows(*batch)
        rows = np.flatnonzero(unit <= np.uint64(self.highest))
        self.parts.append(FeatureRows(pa.table(features).take(rows), rewards[rows], unit[rows], displays[rows]))
        self._cut_if_many()

    def _cut_if_many(self) -> None:
        if sum(len(part.unit) for part in self.parts) > 2 * MOST_ROWS:
            self.parts = [_smallest_of(self.parts)]
            self.highest = int(self.parts[0].unit[-1])


def smallest_rows(batches: Iterable[FeatureRows]) -> FeatureRows:
    """The rows of the smallest unit hashes of some batches."""
    smallest = SmallestRows()
    for batch in batches:
        smallest.add(batch)
    if not smallest.parts:
        return FeatureRows(pa.table({}), np.zeros((0, 1)), hash_integers(np.zeros(0, np.int64)), np.zeros(0))
    return _smallest_of(smallest.parts)


def _smallest_of(parts: list[FeatureRows]) -> FeatureRows:
    """The first rows of all parts, sorted by unit hash."""
    features = pa.concat_tables([part.features for part in parts]).combine_chunks()
    rewards, unit = np.concatenate([part.rewards for part in parts]), np.concatenate([part.unit for part in parts])
    displays = np.concatenate([part.displays_per_row for part in parts])
    order = np.lexsort([displays, *rewards.T, *_tie_breakers(features), unit])[:MOST_ROWS]
    return FeatureRows(features.take(order), rewards[order], unit[order], displays[order])
