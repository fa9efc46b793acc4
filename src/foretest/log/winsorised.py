"""Rewards above a limit count as the limit; what the slots earned shrinks with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foretest.displays.batch import Floats
from foretest.displays.ragged import Ragged
from foretest.log.rows import Rows
from foretest.settings.settings import Settings


def winsorised(rows: Rows, settings: Settings, displays_per_row: Floats) -> Rows:
    """The rows with rewards cut at the limits of the settings, and how much was cut."""
    cut = {name: table.winsorising for name, table in settings.metrics.items() if table.winsorising is not None}
    if not cut:
        return rows
    rewards, slots = rows.rewards.copy(), dict(rows.slots)
    amounts = np.zeros((2, len(rows.names)))
    for name, winsorising in cut.items():
        assert winsorising is not None
        if winsorising.limit is None:
            raise ValueError(f"the limit of '{name}' is not known yet")
        m = rows.names.index(name)
        before = rows.rewards[:, m]
        rewards[:, m] = np.minimum(before, winsorising.limit)
        amounts[:, m] = (before * displays_per_row).sum(), ((before - rewards[:, m]) * displays_per_row).sum()
        if m in slots:
            share = np.divide(rewards[:, m], before, out=np.ones(len(rows)), where=before > winsorising.limit)
            lists = slots[m]
            slots[m] = Ragged.packed(lists.flat() * np.repeat(share, lists.lengths), lists.lengths)
    return replace(rows.with_rewards(rewards, slots), cut=amounts)
