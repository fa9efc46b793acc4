"""The cases of the gallery on other logs: how often is the truth in the range? `python benchmarks/gallery.py`

runs the code of the pages of docs/gallery with other seeds, and writes a table into their index, between two comments.
FORETEST_DATA names the folder that `make data` fills.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pages import DOCS, into_page

import foretest as ft

LOGS, FIRST_SEED = 40, 100


class Case(NamedTuple):
    """A page, the texts in it that hold a seed, and its truths as an expression of its own names."""

    page: str
    seeds: tuple[str, ...]
    truths: str


CASES = (
    Case(
        "movielens", ("default_rng(0)", "slots=3, seed=1", "replay_seed = 1"),
        "{'explores': worth(treatment) / worth(production) - 1, 'always the best': always / worth(production) - 1}",
    ),
    Case(
        "digits", ("default_rng(1)",),
        "{'new': truth(new, 0.1) / control - 1, 'wrong': truth(wrong, 0.1) / control - 1}",
    ),
    Case("decision-service", ("default_rng(0)",), "{'our rule': ours / control - 1}"),
)  # fmt: skip


class Answer(NamedTuple):
    """What one log says of one treatment."""

    truth: float
    uplift: float
    word: str
    in_noise: bool
    in_range: bool


def answers(case: Case, seed: int) -> Iterator[tuple[str, Answer]]:
    """Run the page's code with another seed, in an empty folder; what is said of each treatment."""
    names: dict[str, Any] = {}
    for language, file, text in blocks(case, seed):
        if language == "toml":
            Path(file).write_text(text, encoding="utf-8")
        elif "import foretest as ft" not in text:  # what is only shown
            exec(text, names)
        if Path("events.json").exists() and not Path("articles").exists():
            ft.from_dsjson("events.json", "articles")
    truths = eval(case.truths, names)
    result = ft.OfflineTest.from_toml("test.toml").run("log.parquet")
    metrics = {one.name: one.metrics for one in result.treatments} or {next(iter(truths)): result.metrics}
    for name, [metric] in ((name, list(of_one.values())) for name, of_one in metrics.items()):
        e = metric.estimates[metric.headline]
        truth = float(truths[name])
        in_noise = e.rel_effect_size_ci_lower <= truth <= e.rel_effect_size_ci_upper
        in_range = e.range.rel_ci_lower <= truth <= e.range.rel_ci_upper
        yield name, Answer(truth, e.rel_effect_size, e.word, in_noise, in_range)


def blocks(case: Case, seed: int) -> list[tuple[str, str, str]]:
    """Language, file and text of the page's Python and TOML, with another seed."""
    text = (DOCS / "gallery" / f"{case.page}.md").read_text(encoding="utf-8")
    for place in case.seeds:
        if text.count(place) != 1:
            raise SystemExit(f"{case.page}.md: {place!r} is not there once.")
        text = text.replace(place, re.sub(r"\d+(?=\)?$)", str(seed), place))
    return re.findall(r"^```(python|toml)(?: file=(\S+))?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def table() -> str:
    lines = [
        "| case | treatment | truth | mean uplift | word | truth in the range | in the noise alone |",
        "| --- | --- | ---: | ---: | --- | ---: | ---: |",
    ]
    for case in CASES:
        found: dict[str, list[Answer]] = defaultdict(list)
        for seed in range(FIRST_SEED, FIRST_SEED + LOGS):
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                for name, answer in answers(case, seed):
                    found[name].append(answer)
                os.chdir(DOCS)
            print(case.page, seed, file=sys.stderr)
        lines += [line(case.page, name, told) for name, told in found.items()]
    return "\n".join([*lines, "", f"{LOGS} logs of each case; `python benchmarks/gallery.py`."])


def line(page: str, name: str, told: list[Answer]) -> str:
    truth, uplift = (100.0 * float(np.mean([getattr(one, field) for one in told])) for field in ("truth", "uplift"))
    words = ", ".join(f"`{word}` {count}" for word, count in Counter(one.word for one in told).most_common())
    inside = [f"{sum(getattr(one, field) for one in told)} of {len(told)}" for field in ("in_range", "in_noise")]
    return f"| [{page}]({page}.md) | {name} | {truth:+.1f} % | {uplift:+.1f} % | {words} | {' | '.join(inside)} |"


if __name__ == "__main__":
    text = table()
    print(text)
    into_page(DOCS / "gallery" / "index.md", "drawn-again", text)
