"""The control's P(item in slot), found once where two passes over a log need it: kept by the first for the second."""

from __future__ import annotations

import threading
from dataclasses import field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Hashes
from foretest.displays.ragged import Ragged
from foretest.policies.all_rankings import is_own
from foretest.policies.logging_mixture import DAY
from foretest.records import dataclass
from foretest.weights.policy_pair import PolicyPair
from foretest.weights.slot_marginals import knows_marginals, slot_marginals

MOST_NUMBERS = 1 << 23  # that are kept, 64 MB; what comes later is priced again


@dataclass(frozen=True)
class KnownMarginals:
    """Marginals of the control that an earlier pass over the log has found, by the content of their displays."""

    contents: Hashes  # ascending
    tables: Ragged

    def places(self, control: Any, displays: Displays) -> npt.NDArray[np.int64]:
        """Where the tables of displays are; −1 where there is none."""
        contents = _content(control, displays)
        if contents is None or not len(self.contents):
            return np.full(len(displays), -1)
        place = np.minimum(np.searchsorted(self.contents, contents), len(self.contents) - 1)
        return np.where(self.contents[place] == contents, place, -1)


@dataclass
class MarginalStore:
    """Where the threads of a pass leave the marginals that they find."""

    contents: list[Hashes] = field(default_factory=list)
    tables: list[Ragged] = field(default_factory=list)
    numbers: int = 0
    lock: Any = field(default_factory=threading.Lock)

    def add(self, displays: Displays, pair: PolicyPair, table: Ragged) -> None:
        """Keep the control's marginals of some displays, where there is room."""
        contents, size = _content(pair.control, displays), int(table.lengths.sum())
        with self.lock:
            if contents is not None and self.numbers + size <= MOST_NUMBERS:
                self.contents.append(contents)
                self.tables.append(table)
                self.numbers += size

    def known(self) -> KnownMarginals | None:
        """All that was kept; None where that is nothing."""
        if not self.contents:
            return None
        contents = np.concatenate(self.contents)
        order = np.argsort(contents)
        return KnownMarginals(contents[order], Ragged.concatenate(self.tables).take(order))


def control_marginals(displays: Displays, pair: PolicyPair, known: KnownMarginals | None = None) -> Ragged:
    """P(item in slot) under the control, found now where it is not known; where it is counted over draws, the shown
    ranking is one of them."""
    if known is not None and len(displays):
        place = known.places(pair.control, displays)
        new = np.flatnonzero(place < 0)
        if not len(new):
            return known.tables.take(place)
        if len(new) < len(displays):
            old = np.flatnonzero(place >= 0)
            both = [known.tables.take(place[old]), control_marginals(displays.take(new), pair)]
            return Ragged.concatenate(both).take(np.argsort(np.concatenate([old, new])))
    return slot_marginals(pair.control, displays, pair, np.zeros(len(displays)))


def may_use_key(control: Any) -> bool:
    """May its marginals differ between displays that are alike but for their key? They may where they are counted over
    draws, and of a user's own class."""
    return is_own(control) or not knows_marginals(control)


def _content(control: Any, displays: Displays) -> Hashes | None:
    """A hash of all that the control's marginals depend on; None where a column holds anything but numbers."""
    names = dict.fromkeys((*control.columns, DAY))
    columns = {name: displays.columns[name] for name in names if name in displays.columns}
    values = [column.values if isinstance(column, Ragged) else column for column in columns.values()]
    if any(array.dtype.kind not in "fiu" for array in values):
        return None
    columns[""] = displays.eligible
    root = displays.key() if may_use_key(control) else np.zeros(len(displays), np.uint64)
    return replace(displays, columns=columns, identity=root, key_columns=tuple(columns)).key()
