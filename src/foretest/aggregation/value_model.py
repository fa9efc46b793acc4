"""V(x), the expected reward of a display from its context alone, fitted on data the estimate does not use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from foretest.background import in_background, side_by_side
from foretest.displays.batch import Floats, Hashes
from foretest.displays.ragged import is_text, numbers, plain
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derived_bucket

FOLD_SALT = 2
MOST_ROWS = 200_000
MOST_CATEGORIES = 250  # of a text feature; the rarest share one code


@dataclass(frozen=True)
class ValueModel:
    """Gradient-boosted trees with a Poisson loss, which suits rare rewards; one model a metric and fold.

    `models[f]` did not see the units of fold f. A model fitted on a separate log has one fold. Two models with one
    `fingerprint` predict the same: it is a hash of the rows they were fitted on, and of how.
    """

    models: tuple[tuple[Any, ...], ...]  # fold, metric; a number where there was nothing to learn
    encoder: Encoder
    fingerprint: str = ""

    def predict(self, features: pa.RecordBatch, unit: Hashes) -> Floats:
        """V(x) of each row and metric, from the model that did not see the row's unit."""
        x = self.encoder.matrix(features)
        fold = _fold_of(unit, len(self.models))
        out = np.empty((len(unit), len(self.models[0])))
        for f, by_metric in enumerate(self.models):
            rows = np.flatnonzero(fold == f)
            for m, model in enumerate(by_metric):
                if len(rows):
                    out[rows, m] = model if isinstance(model, float) else model.predict(x[rows])
        return out


@dataclass(frozen=True)
class Encoder:
    """Context features as a matrix: numbers and dates as they are, text by its place among the commonest values."""

    names: tuple[str, ...]
    categories: tuple[tuple[str, ...] | None, ...]  # None: a number

    @classmethod
    def fit(cls, features: pa.Table) -> Encoder:
        found: list[tuple[str, ...] | None] = []
        for name in features.column_names:
            column = features[name].combine_chunks()
            column = _as_text_or_number(column)
            if not is_text(column.type):
                found.append(None)
                continue
            counts = pc.value_counts(column.drop_null()).to_pylist()
            ranked = sorted(counts, key=lambda c: (-c["counts"], c["values"]))
            found.append(tuple(c["values"] for c in ranked[: MOST_CATEGORIES - 1]))
        return cls(tuple(features.column_names), tuple(found))

    def matrix(self, features: pa.RecordBatch | pa.Table) -> Floats:
        out = np.empty((features.num_rows, len(self.names)))
        for j, (name, categories) in enumerate(zip(self.names, self.categories, strict=True)):
            column = features[name]
            if isinstance(column, pa.ChunkedArray):
                column = column.combine_chunks()
            column = _as_text_or_number(column)
            if categories is None:
                out[:, j] = numbers(pc.fill_null(column, np.nan))
            else:
                # an unseen or rare value, and null, share the code after the last
                place = pc.index_in(column, pa.array(categories, pa.large_string()))
                out[:, j] = pc.fill_null(place, len(categories)).to_numpy(zero_copy_only=False)
        return out

    @property
    def categorical(self) -> list[bool]:
        return [c is not None for c in self.categories]


def fit_value_model(
    rows: Iterable[tuple[pa.RecordBatch, Floats, Hashes]], folds: int, seed: int, threads: int | None = None
) -> ValueModel:
    """Fit on at most 200 000 rows, those of the smallest unit hashes: (features, rewards, unit) batch by batch.

    With one fold (a separate log) every row is used for the one model. Models are fitted side by side.
    """
    features, rewards, unit = in_background(lambda: smallest_rows(rows))
    encoder = Encoder.fit(features)
    x = encoder.matrix(features)
    fold = _fold_of(unit, folds)

    def fit(f: int, m: int) -> Any:
        seen = np.flatnonzero(fold != f) if folds > 1 else np.arange(len(unit))
        return _fit(x[seen], rewards[seen, m], encoder.categorical, seed)

    metrics = range(rewards.shape[1])
    fitted = iter(side_by_side([partial(fit, f, m) for f in range(folds) for m in metrics], threads))
    models = tuple(tuple(next(fitted) for _ in metrics) for _ in range(folds))
    return ValueModel(models, encoder, _fingerprint(x, rewards, unit, encoder, folds, seed))


def _fingerprint(x: Floats, rewards: Floats, unit: Hashes, encoder: Encoder, folds: int, seed: int) -> str:
    """All that the fit follows from: the rows in their order, what text stands for, and the learner."""
    from importlib.metadata import version

    learner = f"scikit-learn {version('scikit-learn')}"
    said = json.dumps([encoder.names, encoder.categories, folds, seed, learner, list(x.shape)])
    held = hashlib.blake2b(said.encode(), digest_size=16)
    for array in (x, rewards, unit):
        held.update(np.ascontiguousarray(array).tobytes())
    return held.hexdigest()


def _fold_of(unit: Hashes, folds: int) -> npt.NDArray[np.int64]:
    return derived_bucket(unit, FOLD_SALT, folds)


def _fit(x: Floats, y: Floats, categorical: list[bool], seed: int) -> Any:
    if len(y) == 0 or y.sum() == 0.0 or x.shape[1] == 0:
        return float(y.mean()) if len(y) else 0.0
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
    # OpenMP's threads spin while they wait: on busy cores many times longer than they work
    with threadpool_limits(1, user_api="openmp"):
        return model.fit(x, y)


def _tie_breakers(features: pa.Table) -> list[npt.NDArray[Any]]:
    """Columns in whose order rows of one unit stand, whatever other rows are held beside them."""
    ranks = [pc.rank(_as_text_or_number(column.combine_chunks()), tiebreaker="dense") for column in features.columns]
    return [rank.to_numpy() for rank in ranks]


def _as_text_or_number(column: pa.Array) -> pa.Array:
    """Text as large strings; all else, dates included, as float64."""
    column = plain(column)
    if is_text(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_temporal(column.type):
        narrow = column.type.bit_width == 32
        column = column.cast(pa.int32() if narrow else pa.int64())
    return column.cast(pa.float64(), safe=False)


def smallest_rows(rows: Iterable[tuple[pa.RecordBatch, Floats, Hashes]]) -> tuple[pa.Table, Floats, Hashes]:
    """The rows of the smallest unit hashes, in an order that does not depend on how the log was cut."""
    tables: list[pa.Table] = []
    rewards: list[Floats] = []
    units: list[Hashes] = []
    held = 0
    limit = np.uint64((1 << 64) - 1)

    def prune() -> None:
        nonlocal tables, rewards, units, held, limit
        table, r, u = pa.concat_tables(tables).combine_chunks(), np.concatenate(rewards), np.concatenate(units)
        order = np.lexsort([*r.T, *_tie_breakers(table), u])[:MOST_ROWS]
        if len(u) > MOST_ROWS:
            limit = u[order[-1]]
        tables, rewards, units, held = [table.take(order)], [r[order]], [u[order]], len(order)

    for features, r, unit in rows:
        keep = np.flatnonzero(unit <= limit)
        tables.append(pa.table(features).take(keep))
        rewards.append(r[keep])
        units.append(unit[keep])
        held += len(keep)
        if held > 2 * MOST_ROWS:
            prune()
    if not tables:
        return pa.table({}), np.zeros((0, 1)), hash_integers(np.zeros(0, np.int64))
    prune()
    return tables[0], rewards[0], units[0]
