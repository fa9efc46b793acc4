"""What does calibrating on one's own A/B tests bring? Leave-one-out on simulated histories, with a known truth.

For every seed a history is simulated and run (`foretest.simulate.write_history`, `foretest.run_history`, only
the estimators in question); its logs (1.8 GB) are removed as soon as they are read. Then histories with a
known Γ, Γ = 1 among them: tests drawn from the model, with the unsupported terms, noise and true uplifts of the
simulated histories.

    python benchmarks/calibration.py [--seeds 0 1 2 3 4] [--rows 150000] [--folder FOLDER]

prints the tables and writes them into docs/how-to/calibration.md, between two comments. With --folder what was found of
each seed is kept there, and found again by the next run.

    python benchmarks/calibration.py --kept FOLDER

takes instead what `history_agreement.py` kept there (seed-0.json, …) of the same tests.
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
from foretest.calibration.fit import CALIBRATED, History, apply
from foretest.estimators import ESTIMATORS
from foretest.history.run import run_history
from foretest.simulate import WORLDS, write_history

Floats = npt.NDArray[np.float64]

SEEDS = (0, 1, 2, 3, 4)
TESTS, ROWS = 39, 150_000
HISTORIES = 100  # drawn from the model
MODELS = ((1.0, 0.0), (1.0, 0.1), (1.17, 0.07), (0.85, 0.07))  # Γ0 and τ
LEVEL, Z = 0.9, 1.6449
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


def kept_for(seed: int, folder: Path) -> dict[str, Any]:
    """The same from what `history_agreement.py` kept: the whole agreement, calibration and all."""
    kept: dict[str, Any] = json.loads((folder / f"seed-{seed}.json").read_text(encoding="utf-8"))
    return {"agreement": kept["agreement"], "truth": kept["truth"], "rows": ROWS, "seconds": None}


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


def drawn(found: list[dict[str, Any]], label: str, gamma: float, tau: float) -> tuple[float, Floats, Floats]:
    """Histories from the model, with Γ_j of mean Γ and deviation τ: the share that use the fit, and correlation, false
    negatives, mean square error and coverage of the plain and of the calibrated estimate, leave-one-out."""
    rows = [
        (
            f["truth"][t["name"]]["rel_uplift"], t["unsupported"][label]["unsupported"],
            *(t["noise"][label][name] for name in ("offline_error", "online_error", "covariance")),
        )
        for f in found for t in f["agreement"]["tests"]
    ]  # fmt: skip
    columns = np.array(rows, np.float64).T
    used, plain, calibrated = [], [], []
    for number_of in range(HISTORIES):
        g = np.random.default_rng([0, number_of])
        truth, t, a, b, c = columns[:, g.choice(columns.shape[1], TESTS, replace=False)]
        noise_x = a * g.normal(size=TESTS)
        noise_y = c / a**2 * noise_x + np.sqrt(np.maximum(0.0, b**2 - (c / a) ** 2)) * g.normal(size=TESTS)
        x, y = truth - (gamma - 1.0 + tau * g.normal(size=TESTS)) * t + noise_x, truth + noise_y
        history = History(y - x, t, a**2 + b**2 - 2.0 * c)
        used.append(history.fit().doubt() is None)
        moved = [apply(fit, x[j], t[j], a[j] ** 2, LEVEL) for j, fit in enumerate(history.leave_one_out())]
        online = decided(y, b)
        plain.append(judged(x, a, y, online, truth))
        calibrated.append(
            judged(np.array([m.value for m in moved]), np.array([m.error for m in moved]), y, online, truth)
        )
    return float(np.mean(used)), np.mean(plain, axis=0), np.mean(calibrated, axis=0)


def decided(uplift: Floats, error: Floats) -> Floats:
    return np.sign(uplift) * (np.abs(uplift) > Z * error)


def judged(x: Floats, error: Floats, y: Floats, online: Floats, truth: Floats) -> tuple[float, float, float, float]:
    held = np.abs(x - truth) <= Z * error
    lower = decided(x, error) < online
    return float(np.corrcoef(x, y)[0, 1]), float(lower.mean()), float(np.mean((x - truth) ** 2)), float(held.mean())


def drawn_table(found: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| drawn with | used | correlation | false negatives | RMSE, points | ratio of RMSE | truth held |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for label in CALIBRATED:
        if label not in found[0]["agreement"]["table"]:
            continue
        for gamma, tau in MODELS:
            used, a, b = drawn(found, label, gamma, tau)
            pairs = [f"{number(before)} → {number(after)}" for before, after in zip(a, b, strict=True)]
            errors = 100.0 * np.sqrt([a[2], b[2]])
            lines.append(
                f"| `{label}`, Γ0 = {gamma:g}, τ = {tau:g} | {used:.0%} | {pairs[0]} | {pairs[1]}"
                f" | {number(errors[0])} → {number(errors[1])} | {number(errors[1] / errors[0], 3)} | {pairs[3]} |"
            )
    return [*lines, ""]


def report(found: list[dict[str, Any]], seeds: tuple[int, ...]) -> str:
    seconds = [f["seconds"] for f in found if f["seconds"] is not None]
    took = f" A history took {min(seconds):.0f} to {max(seconds):.0f} s of CPU time on shared cores." if seconds else ""
    lines = [
        f"World `paper`, seeds {', '.join(map(str, seeds))}; {TESTS} tests of 2 × {found[0]['rows']:,} displays each."
        " Means over seeds; the change is paired by seed, ± its standard error. Every calibrated estimate is by the fit"
        f" of the other {TESTS - 1} tests.",
        "",
        *table(found),
        *by_seed(found, seeds),
        f"**With a known Γ** ({HISTORIES} histories of {TESTS} tests each, drawn from the model with the unsupported"
        " terms, noise and true uplifts of the tests above; calibrated estimates are applied in all, used or not)",
        "",
        *drawn_table(found),
        f"foretest {foretest.__version__}, Python {platform.python_version()}, NumPy {np.__version__}.{took}",
    ]
    return "\n".join(lines)


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="default: 0 1 2 3 4, as documented")
    parser.add_argument("--rows", type=int, default=ROWS, help="displays an arm; default: 150000, as documented")
    parser.add_argument("--folder", type=Path, help="where what was found is kept; default: nowhere")
    parser.add_argument("--kept", type=Path, help="a folder with what history_agreement.py kept")
    options = parser.parse_args()
    seeds = tuple(options.seeds)
    if options.kept is not None:
        text = report([kept_for(seed, options.kept) for seed in seeds], seeds)
        print(text)
        into_page(DOCS / "how-to/calibration.md", "calibration", text)
        return
    with tempfile.TemporaryDirectory(prefix="foretest-calibration-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        text = report([found_for(seed, folder, options.rows) for seed in seeds], seeds)
    print(text)
    if (seeds, options.rows) == (SEEDS, ROWS):
        into_page(DOCS / "how-to/calibration.md", "calibration", text)
    else:
        print("\nOther seeds or rows than the documented: docs/how-to/calibration.md stays as it is.", file=sys.stderr)


if __name__ == "__main__":
    main()
