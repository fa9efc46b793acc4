"""What the band, the audit and the path of the point estimators add to a run: `python benchmarks/trust_cost.py`.

A full run of 2 M displays in this process, on one thread, with the functions that do this work timed by the processor's
clock. The share is their time over that of all the rest beyond the same run on 1 000 rows, start-up left out. Prints a
Markdown table and writes it into docs/measured/benchmarks.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from pages import DOCS, into_page
from speed import SETTINGS, write_log

import foretest as ft
from foretest.aggregation import display_sample, rewarded_sums
from foretest.diagnostics import cap_path
from foretest.offline import analysis, estimates
from foretest.weights import weightings

# what is timed: part, module or class, function
PARTS: list[tuple[str, Any, str]] = [
    ("band", rewarded_sums, "_add_band_terms"),
    ("band", weightings, "_slices"),
    ("band", estimates, "sensitivity"),
    ("audit", display_sample, "sampled_context"),
    ("audit", display_sample, "shown_columns"),
    ("audit", display_sample, "drawn_columns"),
    ("audit", display_sample, "draw_rankings"),
    ("audit", analysis, "audits"),
    ("path", rewarded_sums, "path_columns"),
    ("path", cap_path, "path_along_caps"),
    ("path", cap_path, "path_along_bounds"),
]
REPEATS = 3


def timed(part: str, place: Any, name: str, spent: Counter[str]) -> None:
    function: Callable[..., Any] = getattr(place, name)

    @wraps(function)
    def measured(*args: Any, **named: Any) -> Any:
        start = time.process_time()
        try:
            return function(*args, **named)
        finally:
            spent[part] += time.process_time() - start

    setattr(place, name, measured)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the simulated logs are kept; default: a temporary folder")
    parser.add_argument("--rows", type=int, default=2_000_000)
    options = parser.parse_args()
    spent: Counter[str] = Counter()
    for part, place, name in PARTS:
        timed(part, place, name, spent)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        logs = {rows: folder / f"log-{rows}.parquet" for rows in (1000, options.rows)}
        for rows, path in logs.items():
            if not path.exists():
                write_log(path, rows)
        settings = folder / "settings.toml"
        settings.write_text(SETTINGS, encoding="utf-8")
        test = ft.OfflineTest.from_toml(settings)

        def run(rows: int) -> tuple[float, Counter[str]]:
            spent.clear()
            start = time.process_time()
            test.run(str(logs[rows]), threads=1)
            return time.process_time() - start, Counter(spent)

        run(1000)  # kernels are compiled and loaded
        small = min((run(1000) for _ in range(REPEATS)), key=lambda found: found[0])
        full = min((run(options.rows) for _ in range(REPEATS)), key=lambda found: found[0])
    added = {part: full[1][part] - small[1][part] for part in ("band", "audit", "path")}
    rest = full[0] - small[0] - sum(added.values())
    lines = ["| part | CPU s | of all the rest | goal |", "| --- | ---: | ---: | ---: |"]
    lines += [f"| {part} | {seconds:.2f} | {seconds / rest:.1%} | |" for part, seconds in added.items()]
    total = sum(added.values())
    lines += [f"| together | {total:.2f} | **{total / rest:.1%}** | ≤ 25 % |", f"| all the rest | {rest:.2f} | | |"]
    print("\n".join(lines))
    into_page(DOCS / "measured/benchmarks.md", "trust", "\n".join(lines))


if __name__ == "__main__":
    main()
