"""Some rows of a log, as a log: those that a column's values choose. They keep their positions in the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.arrow_numbers import to_arrow
from foretest.displays.ragged import takeable
from foretest.sources.base import BATCH_ROWS, ROW_NUMBER, Chunk, Part, Source


class SomeRows:
    """The rows of a source for which `is_chosen` is true, batch by batch, by one column; without one by their positions
    in the log."""

    def __init__(self, source: Source, column: str | None, is_chosen: Callable[[Any], npt.NDArray[np.bool_]]) -> None:
        self.source, self.column, self.is_chosen = source, column, is_chosen
        self.repeatable = source.repeatable

    @property
    def rows(self) -> int | None:
        """How many rows there are is not known beforehand."""
        return None

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return self.source.schemas()

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        wanted = list(dict.fromkeys([*columns, *([] if self.column is None else [self.column])]))
        return [partial(self._chunks, part) for part in self.source.parts(wanted, batch_rows)]

    def _chunks(self, part: Part) -> Iterator[Chunk]:
        for chunk in part():
            chosen = self.is_chosen(chunk.positions() if self.column is None else chunk.batch[self.column])
            whole = [takeable(array) for array in chunk.batch.columns]
            batch = pa.RecordBatch.from_arrays(whole, chunk.batch.schema.names).filter(to_arrow(chosen))
            if ROW_NUMBER not in batch.schema.names:
                batch = batch.append_column(ROW_NUMBER, to_arrow(np.flatnonzero(chosen)))
            yield chunk._replace(batch=batch)
