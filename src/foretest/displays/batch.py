"""A batch of displays, as policies and estimators see it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.kernels.hashing import chain_floats, chain_integers

Floats = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Displays:
    """Rows of a log in plain arrays: `displays["column"]` is an array, or a `Ragged` for a list column.

    `ranking` has positions in each row's list of eligible items, best slot first; it is empty where the log has no
    ranking. `eligible` is the number of items that each row may show. `identity` is the hash of the display's id where
    the log has one (`key_columns` is then None), else of its unit.

    >>> import numpy as np
    >>> import foretest as ft
    >>> displays = ft.Displays(
    ...     {"scores": ft.Ragged.of([[0.3, 1.2, 0.7]])}, ranking=ft.Ragged.of([[1]]), eligible=np.array([3]),
    ...     identity=np.zeros(1, np.uint64),
    ... )
    >>> displays["scores"][0].tolist(), displays.slots.tolist()
    ([0.3, 1.2, 0.7], [1])
    """

    columns: dict[str, npt.NDArray[Any] | Ragged]  # by name
    ranking: Ragged  # positions in each row's list of eligible items, best slot first
    eligible: npt.NDArray[np.int64]  # how many items each row may show
    identity: Hashes  # of the display's id, else of its unit
    key_columns: tuple[str, ...] | None = None  # None where the log has an id

    def __len__(self) -> int:
        return len(self.eligible)

    def __getitem__(self, name: str) -> Any:
        try:
            return self.columns[name]
        except KeyError:
            raise BadInput(
                f"the column '{name}' was not read: name it in the `columns` of the policy or model that asks for it."
            ) from None

    @property
    def slots(self) -> npt.NDArray[np.int64]:
        """K of each row: the number of items shown."""
        return self.ranking.lengths

    def key(self) -> Hashes:
        """The hash on which a display's draws depend: of its id, else of unit, ranking and control columns.

        Rewards and treatment columns are never part of it: adding a treatment changes no number.
        """
        if self.key_columns is None:
            return self.identity
        keys = self.identity.copy()
        for column in (self.ranking, *(self.columns[name] for name in self.key_columns)):
            lists = column if isinstance(column, Ragged) else Ragged.packed(column, np.ones(len(self), np.int64))
            if lists.values.dtype.kind == "f":
                chain_floats(keys, lists.values, lists.starts, lists.lengths)
            elif lists.values.dtype.kind in "iu":
                chain_integers(keys, lists.values, lists.starts, lists.lengths)
        return keys

    def with_key(self) -> Displays:
        """The displays with their keys computed, for code that needs them several times."""
        return replace(self, identity=self.key(), key_columns=None)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Displays:
        """Some rows (repeats allowed), sharing the values of list columns."""
        columns = {name: c.take(rows) if isinstance(c, Ragged) else c[rows] for name, c in self.columns.items()}
        return replace(
            self,
            columns=columns,
            ranking=self.ranking.take(rows),
            eligible=self.eligible[rows],
            identity=self.identity[rows],
        )

    def compact(self) -> Displays:
        """A copy that shares no memory with the batch it came from."""
        columns = {name: c.compact() if isinstance(c, Ragged) else c.copy() for name, c in self.columns.items()}
        return replace(self, columns=columns, ranking=self.ranking.compact())

    @staticmethod
    def concatenate(parts: list[Displays]) -> Displays:
        """The rows of all parts, one after the other."""

        def column(name: str) -> npt.NDArray[Any] | Ragged:
            pieces = [part.columns[name] for part in parts]
            if isinstance(pieces[0], Ragged):
                return Ragged.concatenate(pieces)  # type: ignore[arg-type]
            return np.concatenate(pieces)  # type: ignore[arg-type]

        return Displays(
            {name: column(name) for name in parts[0].columns},
            Ragged.concatenate([part.ranking for part in parts]),
            np.concatenate([part.eligible for part in parts]),
            np.concatenate([part.identity for part in parts]),
            parts[0].key_columns,
        )
