"""Parquet files as parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretest.sources import open_source, parquet


def test_wide_rows_come_in_smaller_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by bytes, not by rows alone: 4 000 rows of 800 bytes, at most 1 MB a batch."""
    rng = np.random.default_rng(0)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(4000 * 100)), 100).cast(pa.list_(pa.float64()))
    pq.write_table(pa.table({"scores": lists}), tmp_path / "wide.parquet", compression="none", use_dictionary=False)
    monkeypatch.setattr(parquet, "_MOST_BYTES", 1 << 20)
    [part] = open_source(str(tmp_path / "wide.parquet")).parts(["scores"], 65_536)
    batches = [chunk.batch for chunk in part()]
    assert sum(batch.num_rows for batch in batches) == 4000
    assert max(batch.num_rows for batch in batches) <= (1 << 20) // 800
    monkeypatch.undo()
    [part] = open_source(str(tmp_path / "wide.parquet")).parts(["scores"], 65_536)
    assert [chunk.batch.num_rows for chunk in part()] == [4000]
