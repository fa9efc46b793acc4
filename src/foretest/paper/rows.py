"""The displays of a log as one batch, to measure something row by row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from foretest.displays.batch import Displays, Floats
from foretest.engines.local import read_rows
from foretest.log.reader import Reader
from foretest.offline.test import OfflineTest
from foretest.sources import open_source


class RewardedDisplays(NamedTuple):
    """Displays and their rewards of one metric."""

    displays: Displays
    rewards: Floats


def read_displays(test: OfflineTest, log: Any, most: int) -> RewardedDisplays:
    """The displays of the log's first batches, until there are `most`, and the first metric's rewards."""
    displays, rewards, count = [], [], 0
    for rows in read_rows(open_source(log), Reader(test.settings)):
        displays.append(rows.displays)
        rewards.append(rows.rewards[:, 0])
        count += len(rows)
        if count >= most:
            break
    return RewardedDisplays(Displays.concatenate(displays), np.concatenate(rewards))
