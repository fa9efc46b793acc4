"""How well do offline and online agree on simulated histories? The paper's Table 2, with a known truth.

For every seed the real commands run: `foretest simulate history`, then `foretest history`; the logs (1.8 GB a seed) are
removed as soon as they are read. Then an A/A history, whose treatments are the control, the same way.

    python benchmarks/history_agreement.py [--seeds 0 1 2 3 4] [--folder FOLDER]

prints the tables and writes them into docs/measured/agreement.md, between two comments. With --folder what was found of
each seed is kept there, and found again by the next run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pages import DOCS, into_page

import foretest
from foretest.kernels import plackett_luce

Floats = npt.NDArray[np.float64]

SEEDS = (0, 1, 2, 3, 4)
CAP = 100.0
SAMPLE = 8192  # displays of each treatment's log whose weights are looked at
# A/A: enough tests to tell 10 % from 5 or 15 (standard error 1.5 %), enough clicks (about 160 an arm) to call one
AA_TESTS, AA_ROWS, AA_SEED = 400, 8192, 0

ORDER = ("cis", "ncis", "piece-ncis", "point-ncis-adaptive")
CALIBRATED = ("point-ncis-calibrated", "slot-ncis-calibrated")  # judged leave-one-test-out
LABELS = ("cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive", "slot-ncis-adaptive", *CALIBRATED)
STEPS = (
    *itertools.pairwise(ORDER),
    ("point-ncis-adaptive", "slot-ncis-adaptive"),
    ("point-ncis-adaptive", "point-ncis-calibrated"),
    ("slot-ncis-adaptive", "slot-ncis-calibrated"),
)
# the paper's Table 2: 39 online A/B tests of one company
PAPER = {
    "cis": (-0.15, 0.28, 0.64, 1.0),
    "ncis": (0.24, 0.47, 0.33, 1.1),
    "piece-ncis": (0.36, 0.53, 0.28, 1.5),
    "point-ncis": (0.49, 0.56, 0.16, 0.8),
}


# -- one seed ---------------------------------------------------------------------------------------------------------


def run(*words: str) -> tuple[float, float]:
    """Run a `foretest` command; its CPU and wall seconds, those of its processes included."""
    command = [str(Path(sys.executable).with_name("foretest")), *words]
    # one thread for scikit-learn too: on shared cores threads mostly wait for each other, and a wait counts as CPU
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - begin


def study(place: Path, *options: str) -> dict[str, Any]:
    """Simulate a history and run it; the agreement, the truth, the treatments' weights and the CPU time."""
    history, out = place / "history", place / "agreement"
    try:
        simulated = run("simulate", "history", "-o", str(history), *options)
        compared = run("history", str(history / "manifest.toml"), "-o", str(out), "--threads", "1")
        found = json.loads((out / "agreement.json").read_text(encoding="utf-8"))
        truth = json.loads((history / "truth.json").read_text(encoding="utf-8"))
        weights = [weights_of(history / test["name"] / "treatment.parquet") for test in found["tests"]]
    finally:
        for folder in (history, out):
            shutil.rmtree(folder, ignore_errors=True)
    seconds = {"simulate": simulated[0], "history": compared[0], "wall": simulated[1] + compared[1]}
    return {"agreement": found, "truth": truth, "weights": weights, "seconds": seconds}


def weights_of(log: Path) -> dict[str, float]:
    """Of rankings that a treatment showed: weights far out, and the mass that the cap keeps."""
    with pq.ParquetFile(log) as file:
        batch = next(file.iter_batches(SAMPLE))
    log_w = log_prob(batch, "treatment_scores") - log_prob(batch, "control_scores")
    return {
        "over_100": float((log_w > np.log(100.0)).mean()),
        "over_million": float((log_w > np.log(1e6)).mean()),
        "largest": float(log_w.max() / np.log(10.0)),
        "kept": float(np.exp(np.minimum(0.0, np.log(CAP) - log_w)).mean()),
    }


def log_prob(batch: pa.RecordBatch, scores: str) -> Floats:
    """log π of the shown rankings under the Plackett-Luce policy of some scores."""
    lists = []
    for name in (scores, "ranking"):
        column = batch[name]
        ends = column.offsets.to_numpy().astype(np.int64)
        lists += [np.array(column.values), ends[:-1], np.diff(ends)]
    lists[3] = lists[3].astype(np.int32)
    return np.asarray(plackett_luce.log_prob(*lists, 1.0))


def found_for(name: str, folder: Path, *options: str) -> dict[str, Any]:
    """What a study found, from `folder` if it is there."""
    place = folder / f"{name}.json"
    if not place.exists():
        print(f"{name} …", file=sys.stderr)
        place.write_text(json.dumps(study(folder / name, *options)), encoding="utf-8")
    found: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    if found["agreement"]["failures"]:
        raise SystemExit(f"{name}: {found['agreement']['failures']}")
    return found


# -- tables -----------------------------------------------------------------------------------------------------------


class Figure(NamedTuple):
    """A column of the table: what agreement.json calls it, its title, and how a number is written."""

    key: str
    title: str
    kind: str = "share"  # share, ratio or points


FIGURES = (
    Figure("correlation", "correlation"),
    Figure("precision", "precision"),
    Figure("fnr", "FNR"),
    Figure("ppv", "PPV"),
    Figure("miss_rate", "miss rate"),
    Figure("ci_size", "CI size", "ratio"),
)
MORE = (
    Figure("noise_ceiling", "noise ceiling"),
    Figure("deconvolved_correlation", "deconvolved correlation"),
    Figure("bias", "bias, points", "points"),
    Figure("rmse", "RMSE, points", "points"),
    Figure("coverage", "coverage"),
)


def number(value: float, kind: str = "share", *, sign: bool = False) -> str:
    """.47, 1.10, −3.4"""
    if kind == "points":
        text = f"{100.0 * value:.1f}"
    else:
        text = f"{value:.2f}"
        if abs(value) < 0.995:
            text = text.replace("0.", ".", 1)
    text = text.replace("-", "−")
    return f"+{text}" if sign and not text.startswith("−") else text


def values(found: list[dict[str, Any]], label: str, key: str) -> Floats:
    """A figure of an estimator, one a seed; NaN where it does not exist."""
    return np.array([np.nan if (v := f["agreement"]["table"][label][key]) is None else v for f in found], np.float64)


def mean_and_spread(seen: Floats, kind: str) -> str:
    """Mean and standard deviation over seeds; how many have the figure, where not all do."""
    known = seen[np.isfinite(seen)]
    if not len(known):
        return "–"
    spread = f" ± {number(float(known.std(ddof=1)), kind)}" if len(known) > 1 else ""
    some = f" ({len(known)} of {len(seen)})" if len(known) < len(seen) else ""
    return f"{number(float(known.mean()), kind)}{spread}{some}"


def table(found: list[dict[str, Any]], figures: tuple[Figure, ...]) -> list[str]:
    lines = [f"| | {' | '.join(f.title for f in figures)} |", f"| --- |{' --- |' * len(figures)}"]
    for label in LABELS:
        cells = [mean_and_spread(values(found, label, f.key), f.kind) for f in figures]
        lines.append(f"| `{label}` | {' | '.join(cells)} |")
    return [*lines, ""]


def beside_the_paper(found: list[dict[str, Any]]) -> list[str]:
    """Means over seeds, and the paper's numbers."""
    keys = ("correlation", "precision", "fnr", "ci_size")
    lines = [
        "| | correlation | the paper's | precision | the paper's | FNR | the paper's | CI size | the paper's |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for label in LABELS:
        cells = []
        for key, theirs in zip(keys, PAPER.get(label, (None,) * 4), strict=True):
            mine = number(float(np.nanmean(values(found, label, key))))
            cells += [mine, "–" if theirs is None else number(theirs)]
        lines.append(f"| `{label}` | {' | '.join(cells)} |")
    return [*lines, ""]


def steps(found: list[dict[str, Any]]) -> list[str]:
    """From each estimator to the next better: the paired gain, its standard error, in how many seeds it is one."""
    lines = [
        "| gain | correlation | precision | FNR, less by | RMSE, ratio |",
        "| --- | --- | --- | --- | --- |",
    ]
    for worse, better in STEPS:
        cells = []
        for key, sign in (("correlation", 1.0), ("precision", 1.0), ("fnr", -1.0)):
            gain = sign * (values(found, better, key) - values(found, worse, key))
            error = f" ± {number(gain.std(ddof=1) / np.sqrt(len(gain)))}" if len(gain) > 1 else ""
            cells.append(f"{number(gain.mean(), sign=True)}{error} ({int((gain > 0).sum())} of {len(gain)})")
        ratio = values(found, better, "rmse") / values(found, worse, "rmse")
        cells.append(f"{mean_and_spread(ratio, 'ratio')} ({int((ratio < 1).sum())} of {len(ratio)})")
        lines.append(f"| `{worse}` → `{better}` | {' | '.join(cells)} |")
    return [*lines, ""]


def by_seed(found: list[dict[str, Any]], seeds: tuple[int, ...]) -> list[str]:
    lines = [
        f"| correlation / precision / FNR | {' | '.join(f'seed {s}' for s in seeds)} |",
        f"| --- |{' --- |' * len(seeds)}",
    ]
    for label in LABELS:
        columns = zip(*(values(found, label, key) for key in ("correlation", "precision", "fnr")), strict=True)
        lines.append(f"| `{label}` | {' | '.join(' / '.join(number(v) for v in cell) for cell in columns)} |")
    return [*lines, ""]


def in_order(found: list[dict[str, Any]]) -> str:
    """Do the means come in the paper's order?"""
    said = []
    for key, title, sign in (("correlation", "correlation", 1), ("precision", "precision", 1), ("fnr", "FNR", -1)):
        means = [sign * float(values(found, label, key).mean()) for label in ORDER]
        said.append(f"{title} {'yes' if all(a < b for a, b in itertools.pairwise(means)) else 'NO'}")
    return ", ".join(said)


def describe(found: list[dict[str, Any]]) -> str:
    """The histories themselves: true uplifts, the online tests' noise, weights."""
    tests = [test for f in found for test in f["agreement"]["tests"]]
    truth = np.array([f["truth"][test["name"]]["rel_uplift"] for f in found for test in f["agreement"]["tests"]])
    errors = [entry["std_error"] for f in found for entry in f["truth"].values()]
    online = np.array([test["online"]["rel_effect_size"] for test in tests])
    noise = np.median([test["noise"]["cis"]["online_error"] for test in tests])
    verdicts = [test["online"]["verdict"] for test in tests]
    ends = np.cumsum([0, *(len(f["agreement"]["tests"]) for f in found)])
    agree = [np.corrcoef(truth[a:b], online[a:b])[0, 1] for a, b in itertools.pairwise(ends)]
    weights = {key: np.array([w[key] for f in found for w in f["weights"]]) for key in found[0]["weights"][0]}
    calls = {name: verdicts.count(name) / len(verdicts) for name in ("positive", "neutral", "negative")}
    return (
        f"Of the {len(truth)} true uplifts {(truth > 0.02).mean():.0%} are above +2 %, {(truth < -0.02).mean():.0%}"
        f" below −2 %, {(np.abs(truth) > 0.10).mean():.0%} beyond ±10 % (standard deviation {100 * truth.std():.1f}"
        f" points; each is known to {100 * max(errors):.2f} points or better). Online, {calls['positive']:.0%} are"
        f" called positive, {calls['neutral']:.0%} neutral, {calls['negative']:.0%} negative; the median standard error"
        f" of an online uplift is {100 * noise:.1f} points, and online uplifts correlate with the truth by"
        f" {number(min(agree))} to {number(max(agree))}. Of the rankings that treatments showed,"
        f" {weights['over_100'].mean():.1%} have a weight above 100 and {weights['over_million'].mean():.1%} above 10⁶;"
        f" the largest is 10^{weights['largest'].max():.0f}. A cap of {CAP:.0f} keeps {weights['kept'].min():.2f} to"
        f" {weights['kept'].max():.2f} of a treatment's mass, median {np.median(weights['kept']):.2f}."
    )


def describe_aa(found: dict[str, Any]) -> str:
    """Tests of the control against itself."""
    tests = found["agreement"]["tests"]
    verdicts = [test["online"]["verdict"] for test in tests]
    called = sum(v in ("positive", "negative") for v in verdicts) / len(tests)
    error = np.sqrt(called * (1.0 - called) / len(tests))
    # nothing is beyond the log's support, so that nothing is calibrated
    labels = [label for label in LABELS if label not in CALIBRATED]
    offline = {
        label: np.array([test["offline"][label]["rel_effect_size"] for test in tests], np.float64) for label in labels
    }
    lines = [
        f"{len(tests)} A/A tests of 2 × {AA_ROWS:,} displays (seed {AA_SEED}). Online {verdicts.count('positive')} are"
        f" called positive, {verdicts.count('negative')} negative, {verdicts.count('insufficient')} insufficient:"
        f" **{called:.1%}** ± {error:.1%} are called, 10 % are expected at a level of 90 %. Offline:",
        "",
        "| | uplifts exactly 0 | largest uplift, absolute | verdicts other than neutral |",
        "| --- | --- | --- | --- |",
    ]
    for label, uplift in offline.items():
        other = sum(test["offline"][label]["verdict"] not in ("neutral", "insufficient") for test in tests)
        lines.append(f"| `{label}` | {(uplift == 0.0).sum()} | {np.abs(uplift).max():.1g} | {other} |")
    return "\n".join(lines)


def report(found: list[dict[str, Any]], aa: dict[str, Any], seeds: tuple[int, ...]) -> str:
    tests = len(found[0]["agreement"]["tests"])
    seconds = [f["seconds"] for f in found]
    cpu = [s["simulate"] + s["history"] for s in seconds]
    simulated = np.mean([s["simulate"] / (s["simulate"] + s["history"]) for s in seconds])
    lines = [
        f"World `paper`, seeds {', '.join(map(str, seeds))}; {tests} tests of 2 × 150,000 displays each. Mean ±"
        " standard deviation over seeds.",
        "",
        *table(found, FIGURES),
        *table(found, MORE),
        f"Are the means in the order `cis` < `ncis` < `piece-ncis` < `point-ncis-adaptive` (FNR the other way)?"
        f" {in_order(found)}. From each to the next, paired by seed: mean ± standard error (seeds in which it is a"
        " gain).",
        "",
        *steps(found),
        *by_seed(found, seeds),
        "**Beside the paper's Table 2**",
        "",
        *beside_the_paper(found),
        "**What these histories are**",
        "",
        describe(found),
        "",
        "**The control against itself**",
        "",
        describe_aa(aa),
        "",
        f"foretest {foretest.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, PyArrow"
        f" {pa.__version__}. A history took {min(cpu):.0f} to {max(cpu):.0f} s of CPU time on shared cores,"
        f" {simulated:.0%} of it to simulate; the A/A history"
        f" {aa['seconds']['simulate'] + aa['seconds']['history']:.0f} s.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="default: 0 1 2 3 4, as documented")
    parser.add_argument("--folder", type=Path, help="where what was found is kept; default: nowhere")
    options = parser.parse_args()
    seeds = tuple(options.seeds)
    with tempfile.TemporaryDirectory(prefix="foretest-agreement-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        found = [found_for(f"seed-{seed}", folder, "--seed", str(seed)) for seed in seeds]
        sizes = ("--tests", str(AA_TESTS), "--rows", str(AA_ROWS))
        aa = found_for("a-a", folder, "--aa", "--seed", str(AA_SEED), *sizes)
        text = report(found, aa, seeds)
    print(text)
    if seeds == SEEDS:
        into_page(DOCS / "measured/agreement.md", "agreement", text)
    else:
        print("\nOther seeds than the documented: docs/measured/agreement.md stays as it is.", file=sys.stderr)


if __name__ == "__main__":
    main()
