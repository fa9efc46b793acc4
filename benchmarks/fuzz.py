"""Damaged input, for as long as it is told: python benchmarks/fuzz.py --seconds 60

Every input ends in success, or in one sentence and exit code 2: no traceback, no hang, no NaN in JSON, nothing written
after a failure. An input is a pure function of the seed, its kind and its number: `--only settings:1234` runs it again.
`--readers N` and `--runs N` ask for numbers of inputs in place of a time: readers are settings, manifests, calibrations
and the headers of saved sums, read in the process; runs are whole commands on small logs. Exit code 1 if anything was
found.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import fuzz_readers
import fuzz_runs
from fuzz_bases import write_bases
from fuzz_outcomes import Outcome, Trouble

KINDS = {**fuzz_readers.READERS, **fuzz_runs.RUNS}
READERS_SHARE = 0.3  # of a time


def one_input(kind: str, seed: int, number: int, bases: Path, folder: Path) -> Outcome:
    """Run one input in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return KINDS[kind](seed, number, bases, folder)


class Study:
    """Inputs by kind, how they ended, and the different troubles with the first input of each."""

    def __init__(self, seed: int, bases: Path, folder: Path) -> None:
        self.seed, self.bases, self.folder = seed, bases, folder
        self.inputs: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.troubles: dict[str, tuple[int, str, Trouble]] = {}

    def run(self, kinds: dict[str, float], *, inputs: int | None, seconds: float | None, first: int = 0) -> float:
        """Inputs of some kinds in turn, by their shares, until a number or a time is reached; the time taken."""
        begin = last = time.monotonic()
        for number, kind in enumerate(_in_turn(kinds)):
            now = time.monotonic()
            if number == inputs or (seconds is not None and now - begin > seconds):
                break
            if now - last > 60.0:
                last = now
                print(f"{number:,} inputs in {now - begin:.0f} s, {len(self.troubles)} different troubles", flush=True)
            self.add(kind, first + number)
        return time.monotonic() - begin

    def add(self, kind: str, number: int) -> None:
        outcome = one_input(kind, self.seed, number, self.bases, self.folder)
        self.inputs[kind] += 1
        self.refused[kind] += outcome.refused
        if outcome.trouble is not None:
            count, first, trouble = self.troubles.get(
                outcome.trouble.signature, (0, f"{kind}:{number}", outcome.trouble)
            )
            self.troubles[outcome.trouble.signature] = count + 1, first, trouble
            if not count:
                print(f"\n--only {first} --seed {self.seed}: {trouble.signature}\n{trouble.detail}", flush=True)

    def report(self, seconds: float) -> str:
        """A table of the kinds, and the different troubles."""
        lines = [f"{'kind':<22}{'inputs':>10}{'refused':>10}"]
        lines += [f"{kind:<22}{count:>10,}{self.refused[kind]:>10,}" for kind, count in sorted(self.inputs.items())]
        lines += [f"{self.inputs.total():,} inputs in {seconds:.0f} s; {len(self.troubles)} different troubles"]
        lines += [f"  {count:,} times, first {first}: {name}" for name, (count, first, _) in self.troubles.items()]
        return "\n".join(lines)


def _in_turn(kinds: dict[str, float]) -> Iterator[str]:
    """Kinds again and again, each as often as its share says."""
    credit = dict.fromkeys(kinds, 0.0)
    while True:
        for kind, share in kinds.items():
            credit[kind] += share
        kind = max(credit, key=credit.__getitem__)
        credit[kind] -= sum(kinds.values())
        yield kind


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="default: of the time")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--readers", type=int, help="inputs through the readers, in place of a time")
    parser.add_argument("--runs", type=int, help="whole commands, in place of a time")
    parser.add_argument("--only", help="one input, as in settings:1234")
    options = parser.parse_args()
    seed = int(time.time()) % 10**6 if options.seed is None else options.seed
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        bases = Path(place, "bases")
        write_bases(bases)
        study = Study(seed, bases, Path(place, "input"))
        print(f"seed {seed}", flush=True)
        taken = 0.0
        if options.only:
            kind, _, number = options.only.rpartition(":")
            study.add(kind, int(number))
            shutil.copytree(study.folder, "fuzz-input", dirs_exist_ok=True)
        elif options.readers is None and options.runs is None:
            taken += study.run(
                fuzz_readers.SHARES, inputs=None, seconds=READERS_SHARE * options.seconds, first=options.first
            )
            taken += study.run(
                fuzz_runs.SHARES, inputs=None, seconds=(1 - READERS_SHARE) * options.seconds, first=options.first
            )
        else:
            taken += study.run(fuzz_readers.SHARES, inputs=options.readers or 0, seconds=None, first=options.first)
            taken += study.run(fuzz_runs.SHARES, inputs=options.runs or 0, seconds=None, first=options.first)
        print(study.report(taken))
    return 1 if study.troubles else 0


if __name__ == "__main__":
    sys.exit(main())
