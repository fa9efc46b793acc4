"""The first pass over files of decision-service JSON: what is in them, what is left out, and what to ask about."""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foretest.convert.dsjson_features import FeatureColumns
from foretest.convert.dsjson_labels import LineFault
from foretest.convert.dsjson_lines import Decision, decision
from foretest.errors import BadInput
from foretest.formatting import plural
from foretest.progress import Progress
from foretest.records import dataclass
from foretest.sources.local_copies import TextPlace
from foretest.sources.text_files import open_bytes

_AT_ONCE = 1000  # lines between two signs of progress


class LeftOut(NamedTuple):
    """Lines that are not in the log for one reason: where the first is, and what is the matter with it."""

    first: str  # as in "line 17 of events.json"
    what: str
    lines: int

    def __str__(self) -> str:
        return f"{self.first} {self.what}" + (f" ({self.lines:,} lines)" if self.lines > 1 else "")


@dataclass
class Tally:
    """How many lines have something, and the first that has it."""

    lines: int = 0
    first: int = -1
    what: str = ""

    def add(self, line: int) -> None:
        self.first = line if self.lines == 0 else self.first
        self.lines += 1


@dataclass
class Survey:
    """What the lines of some files are. Lines are counted through all files, from 0."""

    files: Sequence[Path]
    starts: list[int] = field(default_factory=list)  # the first line of each file
    lines: int = 0  # but for empty ones
    displays: int = 0
    by_slot: dict[bool, Tally] = field(default_factory=lambda: {False: Tally(), True: Tally()})
    faults: dict[str, Tally] = field(default_factory=dict)
    features: FeatureColumns = field(default_factory=FeatureColumns)
    thinned: Tally = field(default_factory=Tally)
    without_id: Tally = field(default_factory=Tally)
    without_time: Tally = field(default_factory=Tally)
    costly: Tally = field(default_factory=Tally)  # with a cost above 0
    highest_cost: float = 0.0
    other_costs: Tally = field(default_factory=Tally)  # with two costs that differ
    id_hashes: array[int] = field(default_factory=lambda: array("q"))
    id_lines: array[int] = field(default_factory=lambda: array("q"))

    def place(self, line: int) -> str:
        """A line as people count it, in its file."""
        file = bisect_right(self.starts, line) - 1
        of_file = "" if len(self.files) == 1 else f" of {self.files[file].name}"
        return f"line {line - self.starts[file] + 1}{of_file}"

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What is left out, by reason, in the order of the files."""
        return tuple(LeftOut(self.place(tally.first), tally.what, tally.lines) for tally in self.faults.values())

    def leave_out(self, line: int, fault: LineFault) -> None:
        """Note a line that is no decision."""
        self.faults.setdefault(fault.kind, Tally(what=fault.what)).add(line)

    def see(self, line: int, event: Decision) -> None:
        """Note a decision."""
        self.displays += 1
        self.by_slot[event.by_slot].add(line)
        self.features.see(event.context)
        highest = max(shown.cost for shown in event.outcomes)
        self.highest_cost = max(self.highest_cost, highest)
        for tally, applies in (
            (self.thinned, event.keep < 1.0),
            (self.without_id, event.event_id is None),
            (self.without_time, event.time is None),
            (self.costly, highest > 0.0),
            (self.other_costs, any(shown.cost != shown.label_cost for shown in event.outcomes)),
        ):
            if applies:
                tally.add(line)
        if event.event_id is not None:
            self.id_hashes.append(hash(event.event_id))
            self.id_lines.append(line)

    def questions(self) -> list[str]:
        """What may be wrong with the lines that are in the log."""
        return [text for text in (self._repeated_ids(), self._two_costs()) if text]

    def _repeated_ids(self) -> str:
        hashes = np.frombuffer(self.id_hashes, np.int64) if self.id_hashes else np.zeros(0, np.int64)
        order = np.argsort(hashes, kind="stable")
        repeats = order[1:][hashes[order[1:]] == hashes[order[:-1]]]
        if not len(repeats):
            return ""
        later = int(repeats.min())
        earlier = int(np.flatnonzero(hashes == hashes[later])[0])
        return (
            f"{plural(len(repeats), 'line')} {'has' if len(repeats) == 1 else 'have'} the EventId of an earlier line"
            f" ({self.place(self.id_lines[later])} that of {self.place(self.id_lines[earlier])}): is a file there"
            " twice? All are in the log."
        )

    def _two_costs(self) -> str:
        if not self.other_costs.lines:
            return ""
        return (
            f"in {plural(self.other_costs.lines, 'line')} '_original_label_cost' is not '_label_cost' (the first is"
            f" {self.place(self.other_costs.first)}): was the service in apprentice mode? It then shows its default"
            " action and not the first of 'a', and the log says nothing about the other actions."
        )


def survey(files: Sequence[Path], progress: Progress | None = None) -> Survey:
    """Look at every line of the files."""
    seen = Survey(files)
    line = 0
    for path in files:
        seen.starts.append(line)
        for text in lines_of(TextPlace(path, path)):
            if text.strip():
                seen.lines += 1
                try:
                    seen.see(line, decision(text))
                except LineFault as fault:
                    seen.leave_out(line, fault)
                if progress is not None and seen.lines % _AT_ONCE == 0:
                    progress("check", None, _AT_ONCE)
            line += 1
    return seen


def lines_of(place: TextPlace) -> Iterator[bytes]:
    """The lines of a file, which may be compressed (.gz)."""
    try:
        with open_bytes(place) as file:
            yield from file
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise BadInput(f"{place.path}: cannot be read to its end ({why}).") from None
