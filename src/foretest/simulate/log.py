"""A simulated log: one arm's displays as Arrow batches, and the folder a test of them needs.

Rows are made in chunks of `CHUNK` displays, each with a generator of its own: no digit of a row depends on the size of
the batches or on the number of rows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from foretest.simulate.clicks import click_probability, clicked_slots
from foretest.simulate.displays import CHUNK, CONTROL_STREAM, Displays, chunk_generator, draw_displays, shown_rankings
from foretest.simulate.settings_text import settings_text
from foretest.simulate.truth import Truth, is_exact, true_values, values_of_log
from foretest.simulate.world import World
from foretest.storage.ownership import marked_json, marked_schema, marked_toml, own_files

Arm = Literal["control", "treatment"]
"""Whose policy shows the rankings of a log."""

ARM_STREAMS = {"control": CONTROL_STREAM, "treatment": 2}
"""The displays of one arm never meet those of the other, nor those of the truth of the same seed."""

SLOT_STREAMS = {"control": 7, "treatment": 8}
"""The draw of the clicked slot has a generator of its own: no other digit of a log depends on it."""

TREATMENT_IDS = 2**40
"""First user and first display of a treatment's log: no user is in both arms."""

ROW_GROUP = 65_536
"""Rows of a Parquet row group, the most that are in memory at a time."""

SCHEMA = pa.schema(
    [
        ("display_id", pa.int64()),
        ("user", pa.int64()),
        ("day", pa.date32()),
        ("group", pa.string()),
        ("recency", pa.float32()),
        ("activity", pa.float32()),
        ("ranking", pa.list_(pa.int16())),
        ("control_scores", pa.list_(pa.float32())),
        ("treatment_scores", pa.list_(pa.float32())),
        ("click", pa.bool_()),
        ("revenue", pa.float32()),
        ("slot_click", pa.list_(pa.bool_())),
        ("slot_revenue", pa.list_(pa.float32())),
    ]
)
"""The columns of a simulated log."""


def simulate_log(
    world: World, rows: int, seed: int = 0, *, batch_rows: int = ROW_GROUP, arm: Arm = "control"
) -> Iterator[pa.RecordBatch]:
    """A simulated log as Arrow batches.

    The arm's policy showed the rankings; the scores of both policies are logged. The arms of one seed have different
    displays and different users.

    Parameters
    ----------
    world: the simulated recommender.
    rows: displays of the log.
    seed: the same seed gives the same rows, however many there are.
    batch_rows: rows per batch; the last may be smaller.
    arm: whose policy showed the rankings, `control` or `treatment`.

    Returns
    -------
    The batches, one after the other.

    >>> from foretest.simulate import WORLDS
    >>> [batch.num_rows for batch in simulate_log(WORLDS["paper"], 250, batch_rows=100)]
    [100, 100, 50]
    """
    if rows < 1 or batch_rows < 1 or seed < 0:
        raise ValueError(f"rows {rows}, batch_rows {batch_rows}, seed {seed}: expected >= 1, >= 1, >= 0")
    if arm not in ARM_STREAMS:
        raise ValueError(f"arm {arm!r}: expected one of {', '.join(ARM_STREAMS)}")
    return _cut(_chunks(world, rows, seed, arm), batch_rows)


def _chunks(world: World, rows: int, seed: int, arm: Arm) -> Iterator[pa.RecordBatch]:
    for chunk in range(-(-rows // CHUNK)):
        yield _chunk(world, seed, chunk, arm)[: rows - chunk * CHUNK]


def _cut(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The rows of all batches, in batches of `size`."""
    pending: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        while count + batch.num_rows >= size:
            taken = size - count
            yield pa.concat_batches([*pending, batch[:taken]])
            batch, pending, count = batch[taken:], [], 0
        if batch.num_rows:
            pending.append(batch)
            count += batch.num_rows
    if pending:
        yield pa.concat_batches(pending)


def _chunk(world: World, seed: int, chunk: int, arm: Arm) -> pa.RecordBatch:
    """One whole chunk of the log: displays, what the arm's policy showed, and what came of it."""
    rng = chunk_generator(seed, ARM_STREAMS[arm], chunk)
    displays = draw_displays(world, world.change, rng)
    exponentials = rng.standard_exponential(displays.appeal.shape)
    if world.sticky:
        exponentials = exponentials[displays.owner]
    scores = displays.control_scores if arm == "control" else displays.treatment_scores
    rankings = shown_rankings(world, scores, exponentials)
    click = rng.random(CHUNK) < click_probability(world, displays, rankings)
    revenue = (click * _revenue_of_a_click(world, displays, rng)).astype(np.float32)
    uniforms = chunk_generator(seed, SLOT_STREAMS[arm], chunk).random(CHUNK)
    is_clicked = np.arange(world.slots) == clicked_slots(world, displays, rankings, uniforms)[:, None]
    shown = np.full(CHUNK, world.slots)
    first_day = np.datetime64(world.first_day, "D")
    names = pa.array([group.name for group in world.groups], pa.string())
    first_id = chunk * CHUNK + (0 if arm == "control" else TREATMENT_IDS)
    columns = [
        pa.array(np.arange(CHUNK) + first_id),
        # A chunk has at most CHUNK users, so these ids never meet those of another chunk.
        pa.array(displays.user + first_id),
        pa.array(first_day + displays.day),
        names.take(pa.array(displays.group)),
        pa.array(displays.recency),
        pa.array(displays.activity),
        as_lists(rankings, shown),
        as_lists(displays.control_scores, displays.length),
        as_lists(displays.treatment_scores, displays.length),
        pa.array(click),
        pa.array(revenue),
        as_lists(is_clicked & click[:, None], shown),
        as_lists(is_clicked * revenue[:, None], shown),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _revenue_of_a_click(world: World, displays: Displays, rng: np.random.Generator) -> NDArray[np.float64]:
    """Log-normal with the group's mean: exp(N(log(mean) - sd²/2, sd²))."""
    mean = np.array([group.revenue for group in world.groups])[displays.group]
    return mean * rng.lognormal(-(world.revenue_sd**2) / 2, world.revenue_sd, len(displays))


def as_lists(
    padded: NDArray[np.int16] | NDArray[np.float32] | NDArray[np.bool_], length: NDArray[np.int64]
) -> pa.ListArray:
    """The first `length` values of every row of a padded array, as an Arrow list column."""
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    values = padded[np.arange(padded.shape[1]) < length[:, None]]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


def write_log(
    folder: str | os.PathLike[str],
    world: World,
    rows: int,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    *,
    replace: bool = False,
) -> None:
    """Write a simulated log with its settings and its truth: `log.parquet`, `settings.toml`, `truth.json`.

    Every file is written under a temporary name and then renamed, so that none is ever incomplete. Files of these names
    that Foretest did not make, or that were edited since, are refused.

    Parameters
    ----------
    folder: where to write; created if needed.
    world: the simulated recommender.
    rows: displays of the log.
    seed: the same seed gives the same rows.
    progress: is called with the number of rows done so far.
    replace: also files that would be refused.

    Returns
    -------
    Nothing.

    Raises
    ------
    BadInput: a file that is there would be lost.

    >>> import os, tempfile
    >>> from foretest.simulate import WORLDS
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_log(folder, WORLDS["reranker"], rows=100)
    ...     print(*sorted(os.listdir(folder)))
    log.parquet settings.toml truth.json
    """
    folder = Path(folder)
    batches = simulate_log(world, rows, seed)
    paths = [folder / name for name in ("log.parquet", "settings.toml", "truth.json")]
    with own_files(paths, replace=replace) as (log_file, settings_file, truth_file):
        # the truth has a stream of displays of its own, so another thread can compute it meanwhile
        with ThreadPoolExecutor(1) as pool:
            values = pool.submit(_truth, world, rows, seed)
            write_parquet(log_file, batches, progress)
            truth = {metric: value._asdict() for metric, value in values.result().items()}
        content = {
            "log": truth["click"],
            "metrics": truth,
            "world": world.name,
            "seed": seed,
            "rows": rows,
            **({} if world.examination is None else {"examination": list(world.examination)}),
        }
        settings_file.write_text(marked_toml(settings_text(world)), encoding="utf-8")
        truth_file.write_text(json.dumps(marked_json(content), indent=2) + "\n", encoding="utf-8")


def _truth(world: World, rows: int, seed: int) -> dict[str, Truth]:
    """The true values, by metric: exactly those of the log's own displays where they are known, else of others."""
    return values_of_log(world, rows, seed) if is_exact(world) else true_values(world, world.change, seed)


def write_parquet(
    path: Path, batches: Iterator[pa.RecordBatch], progress: Callable[[int], None] | None, schema: pa.Schema = SCHEMA
) -> None:
    """Stream the columns of `schema` to Parquet, one row group per batch."""
    done = 0
    # A dictionary of scores, all different, would cost time and save nothing.
    with pq.ParquetWriter(path, marked_schema(schema), compression="zstd", use_dictionary=["group", "day"]) as writer:
        for batch in batches:
            writer.write_batch(batch.select(schema.names), row_group_size=ROW_GROUP)
            done += batch.num_rows
            if progress is not None:
                progress(done)
