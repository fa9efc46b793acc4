"""What does calibrating on one's own A/B tests bring? Leave-one-out on simulated histories, with a known truth.

For every seed a history is simulated and run (`foretest.simulate.write_history`, `foretest.history.run_history`, only
the estimators in question); its logs (0.5 GB) are removed as soon as they are read. Then histories in which there is
nothing to learn, Γ = 1 by construction: tests drawn from the model, with the unsupported terms, noise and true uplifts
of the simulated histories.

    python benchmarks/calibration.py [--seeds 0 1 2 3 4] [--rows 40000] [--folder FOLDER]

prints the tables and writes them into docs/calibration.md, between two comments. With --folder what was found of each
seed is kept there, and found again by the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pages import DOCS, into_page

import foretest
from foretest.calibration import CALIBRATED, History, apply
from foretest.estimators import ESTIMATORS
from foretest.history import run_history
from foretest.simulate import WORLDS, write_history

Floats = npt.NDArray[np.float64]

SEEDS = (0, 1, 2, 3, 4)
TESTS, ROWS = 39, 40_000
NOTHING = 100  # histories with nothing to learn
FIGURES = (("correlation", 1.0), ("precision", 1.0), ("fnr", 1.0), ("rmse", 100.0), ("bias", 100.0), ("coverage", 1.0))


def study(place: Path, seed: int, rows: int) -> dict[str, Any]:
    """Simulate a history and run it: the agreement, the truth, CPU seconds."""
    begin = time.process_time()
    with tempfile.TemporaryDirectory(prefix="history-", dir=place) as folder:
        write_history(folder, WORLDS["paper"], TESTS, rows, seed)
        estimators = ["cis", *(label for label in CALIBRATED if label in ESTIMATORS)]
        found = run_history(Path(folder) / "manifest.toml", analysis={"estimators": estimators}, threads=1).to_dict()
        truth = json.loads((Path(folder) / "truth.json").read_text(encoding="utf-8"))
    if found["failures"]:
        raise SystemExit(f"seed {seed}: {found['failures']}")
    return {"agreement": found, "truth": truth, "rows": rows, "seconds": time.process_time() - begin}


def found_for(seed: int, folder: Path, rows: int) -> dict[str, Any]:
    """What a study found, from `folder` if it is there."""
    place = folder / f"seed-{seed}-{rows}.json"
    if not place.exists():
        print(f"seed {seed} …", file=sys.stderr)
        text = json.dumps(study(folder, seed, rows))
        place.write_text(text, encoding="utf-8")
    found: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return found


def values(found: list[dict[str, Any]], label: str, key: str) -> Floats:
    """A figure of an estimator, one a seed."""
    return np.array([f["agreement"]["table"][label][key] for f in found], np.float64)


def number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def table(found: list[dict[str, Any]]) -> list[str]:
    """Means over seeds, plain and calibrated, and the paired change."""
    lines = [
        "| | correlation | right | false negatives | RMSE, points | bias, points | truth held |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for plain, calibrated in CALIBRATED.items():
        if plain not in found[0]["agreement"]["table"]:
            continue
        for label in (plain, calibrated):
            cells = [number(float((scale * values(found, label, key)).mean())) for key, scale in FIGURES]
            lines.append(f"| `{label}` | {' | '.join(cells)} |")
        cells = []
        for key, scale in FIGURES:
            change = scale * (values(found, calibrated, key) - values(found, plain, key))
            error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else float("nan")
            sign = "" if change.mean() < 0 else "+"
            cells.append(f"{sign}{number(change.mean())} ± {number(error)}")
        lines.append(f"| change | {' | '.join(cells)} |")
    return [*lines, ""]


def by_seed(found: list[dict[str, Any]], seeds: tuple[int, ...]) -> list[str]:
    lines = [
        "| | seed | Γ0 | 95 % interval | τ | used | correlation | RMSE, points | ratio of RMSE |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for plain, calibrated in CALIBRATED.items():
        for seed, f in zip(seeds, found, strict=True):
            learned, rows = f["agreement"]["calibration"].get(plain), f["agreement"]["table"]
            if learned is None:
                continue
            a, b = rows[plain], rows[calibrated]
            lines.append(
                f"| `{plain}` | {seed} | {number(learned['gamma'])} | {number(learned['gamma_ci_lower'])} to"
                f" {number(learned['gamma_ci_upper'])} | {number(learned['tau2'] ** 0.5)}"
                f" | {'yes' if learned['used'] else 'no'} | {number(a['correlation'])} → {number(b['correlation'])}"
                f" | {number(100 * a['rmse'])} → {number(100 * b['rmse'])} | {number(b['rmse'] / a['rmse'])} |"
            )
    return [*lines, ""]


def nothing_to_learn(found: list[dict[str, Any]], label: str, tau: float, seed: int = 0) -> tuple[float, float, float]:
    """Of histories with Γ_j of mean 1 and deviation τ: how many use the fit, the RMSE of the plain estimate, and that
    of the calibrated one over it, leave-one-out."""
    rows = [
        (
            f["truth"][t["name"]]["rel_uplift"], t["unsupported"][label]["unsupported"],
            *(t["noise"][label][name] for name in ("offline_error", "online_error", "covariance")),
        )
        for f in found for t in f["agreement"]["tests"]
    ]  # fmt: skip
    truth, unsupported, x_error, y_error, covariance = np.array(rows, np.float64).T
    used, plain, calibrated = [], [], []
    for number_of in range(NOTHING):
        g = np.random.default_rng([seed, number_of])
        some = g.choice(len(truth), TESTS, replace=False)
        value, t, a, b, c = (column[some] for column in (truth, unsupported, x_error, y_error, covariance))
        noise_x = a * g.normal(size=TESTS)
        noise_y = c / a**2 * noise_x + np.sqrt(np.maximum(0.0, b**2 - (c / a) ** 2)) * g.normal(size=TESTS)
        x, y = value - tau * g.normal(size=TESTS) * t + noise_x, value + noise_y
        history = History(y - x, t, a**2 + b**2 - 2.0 * c)
        used.append(history.fit().doubt() is None)
        plain.append(np.mean((x - value) ** 2))
        moved = [apply(fit, x[j], t[j], a[j] ** 2, 0.9).value for j, fit in enumerate(history.leave_one_out())]
        calibrated.append(np.mean((np.array(moved) - value) ** 2))
    return float(np.mean(used)), float(np.sqrt(np.mean(plain))), float(np.sqrt(np.mean(calibrated) / np.mean(plain)))


def nothing_table(found: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| Γ = 1 by construction | not used | RMSE, points | ratio of RMSE if it were used |",
        "| --- | --- | --- | --- |",
    ]
    for label in CALIBRATED:
        if label in found[0]["agreement"]["table"]:
            for tau in (0.0, 0.1):
                used, error, ratio = nothing_to_learn(found, label, tau)
                lines.append(
                    f"| `{label}`, τ = {tau:g} | {1 - used:.0%} | {number(100 * error)} | {number(ratio, 3)} |"
                )
    return [*lines, ""]


def report(found: list[dict[str, Any]], seeds: tuple[int, ...]) -> str:
    seconds = [f["seconds"] for f in found]
    lines = [
        f"World `paper`, seeds {', '.join(map(str, seeds))}; {TESTS} tests of 2 × {found[0]['rows']:,} displays each."
        " Means over seeds; the change is paired by seed, ± its standard error. Every calibrated estimate is by the fit"
        " of the other 38 tests.",
        "",
        *table(found),
        *by_seed(found, seeds),
        f"**Where there is nothing to learn** ({NOTHING} histories of {TESTS} tests, drawn from the model with the"
        " unsupported terms, noise and true uplifts of the tests above)",
        "",
        *nothing_table(found),
        f"foretest {foretest.__version__}, Python {platform.python_version()}, NumPy {np.__version__}. A history took"
        f" {min(seconds):.0f} to {max(seconds):.0f} s of CPU time on shared cores.",
    ]
    return "\n".join(lines)


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="default: 0 1 2 3 4, as documented")
    parser.add_argument("--rows", type=int, default=ROWS, help="displays an arm; default: 40000, as documented")
    parser.add_argument("--folder", type=Path, help="where what was found is kept; default: nowhere")
    options = parser.parse_args()
    seeds = tuple(options.seeds)
    with tempfile.TemporaryDirectory(prefix="foretest-calibration-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        text = report([found_for(seed, folder, options.rows) for seed in seeds], seeds)
    print(text)
    if (seeds, options.rows) == (SEEDS, ROWS):
        into_page(DOCS / "calibration.md", "calibration", text)
    else:
        print("\nOther seeds or rows than the documented: docs/calibration.md stays as it is.", file=sys.stderr)


if __name__ == "__main__":
    main()
