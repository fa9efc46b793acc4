"""Some rows of a log, as a log: which, with which columns, and where they are in the whole."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from foretest.sources import ROW_NUMBER, ArrowTable, open_source
from foretest.sources.some_rows import SomeRows

TABLE = pa.table({"x": np.arange(10), "who": pa.array(list("abbabaabba")).dictionary_encode(), "text": ["t"] * 10})


@pytest.mark.parametrize("batch_rows", [3, 100])
def test_chosen_rows_keep_their_positions(batch_rows: int) -> None:
    chosen = SomeRows(ArrowTable(TABLE), "who", lambda who: np.asarray(pc.equal(who.dictionary_decode(), "b")))
    assert open_source(chosen) is chosen
    assert chosen.repeatable
    assert chosen.rows is None
    chunks = [chunk for part in chosen.parts(["x"], batch_rows) for chunk in part()]
    expected = [1, 2, 4, 7, 8]
    assert [x for chunk in chunks for x in chunk.batch["x"].to_pylist()] == expected
    assert [at for chunk in chunks for at in chunk.positions().tolist()] == expected
    assert set(chunks[0].batch.schema.names) == {"x", "who", ROW_NUMBER}
