"""What does a history lose where results stand in place of logs? The same 39 simulated tests, given in four ways.

*Logs*: both arms' logs. *Sums*: the control's log, and n, mean and variance of both arms by user. *Uplift*: the
control's log, and the online uplift with its standard error alone. *Files*: the result.json of `foretest run` and sums;
no log is read. From logs the covariance of offline and online noise is measured; in the other three it is only bounded.

    python benchmarks/history_from_results.py [--rows 40000]

prints the tables and writes them into docs/how-to/calibration.md, between two comments.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pages import DOCS, into_page

import foretest
from foretest.calibration.fit import CALIBRATED
from foretest.history.run import run_history
from foretest.offline.test import OfflineTest
from foretest.simulate import WORLDS, World, write_history

TESTS, ROWS, SEED = 39, 40_000, 0
ESTIMATORS = ["cis", "point-ncis-adaptive", "slot-ncis-adaptive"]
WAYS = ("logs", "sums", "uplift", "files")
STUDIES: dict[str, World] = {
    "one display per user": WORLDS["paper"],
    "five displays per user": replace(WORLDS["paper"], displays_per_user=5.0),
}


def sums(log: Path) -> dict[str, Any]:
    """n, mean and variance of clicks by user."""
    table = pq.read_table(log, columns=["user", "click"]).group_by("user").aggregate([("click", "sum")])
    clicks = table["click_sum"].to_numpy().astype(np.float64)
    return {"n": len(clicks), "mean": float(clicks.mean()), "variance": float(clicks.var(ddof=1))}


def toml(value: Any) -> str:
    """A table of a manifest, in a line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def write_manifest(folder: Path, names: list[str], way: str) -> Path:
    """The manifest of the same tests, given in one of the ways."""
    lines = ['settings = "settings.toml"', 'truth = "truth.json"']
    for name in names:
        lines += ["", "[[test]]", f'name = "{name}"']
        arms = {arm: folder / name / f"{arm}.parquet" for arm in ("control", "treatment")}
        if way == "files":
            test = OfflineTest.from_toml(folder / "settings.toml").replace(estimators=ESTIMATORS)
            test.run(str(arms["control"]), threads=1).to_json(folder / name / "result.json")
            lines.append(f'offline = "{name}/result.json"')
        else:
            lines.append(f'control = "{name}/control.parquet"')
        if way == "logs":
            lines.append(f'treatment = "{name}/treatment.parquet"')
            continue
        given = {arm: sums(log) for arm, log in arms.items()}
        lines.append(f"online = {toml(uplift_of(given) if way == 'uplift' else given)}")
    path = folder / f"{way}.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def uplift_of(arms: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The relative uplift and its standard error by the delta method."""
    c, t = arms["control"], arms["treatment"]
    variance = t["variance"] / t["n"] + (t["mean"] / c["mean"]) ** 2 * c["variance"] / c["n"]
    return {"uplift": t["mean"] / c["mean"] - 1.0, "std_error": float(np.sqrt(variance)) / c["mean"]}


def study(world: World, rows: int) -> dict[str, dict[str, Any]]:
    """The agreement of the same tests, by way."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="history-") as name:
        folder = Path(name)
        write_history(folder, world, TESTS, rows, SEED)
        names = list(json.loads((folder / "truth.json").read_text(encoding="utf-8")))
        for way in WAYS:
            print(f"{way} …", file=sys.stderr)
            manifest = write_manifest(folder, names, way)
            found[way] = run_history(manifest, analysis={"estimators": ESTIMATORS}, threads=1).to_dict()
            if found[way]["failures"]:
                raise SystemExit(f"{way}: {found[way]['failures']}")
    return found


def number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def row_of(way: str, found: dict[str, Any], label: str) -> str:
    """A row of the table: the fit, its two ends, and the calibrated estimates left one out."""
    learned, figures = found["calibration"][label], found["table"]
    plain, calibrated = figures[label], figures[CALIBRATED[label]]
    ends, unknown = ["", ""], learned["unknown_covariance"]
    if unknown is not None:
        low, high = unknown["at_lowest"], unknown["at_highest"]
        ends[0] = f" ({number(low['gamma'])}, {number(high['gamma'])})"
        removed = [number(plain[f"deconvolved_correlation_{end}"]) for end in ("low", "high")]
        ends[1] = f" ({', '.join(removed)})"
    used = "yes" if learned["used"] else "no"
    return (
        f"| `{label}` | {way} | {number(learned['gamma'])}{ends[0]} | {number(learned['gamma_ci_lower'])} to"
        f" {number(learned['gamma_ci_upper'])} | {number(learned['tau2'] ** 0.5)} | {used}"
        f" | {number(plain['deconvolved_correlation'])}{ends[1]} | {number(100 * plain['rmse'])} →"
        f" {number(100 * calibrated['rmse'])} |"
    )


def covariances(found: dict[str, dict[str, Any]], label: str) -> str:
    """How large the covariances that logs show are, beside their bounds."""
    measured = np.array([test["noise"][label]["covariance"] for test in found["logs"]["tests"]])
    bounds = np.array([test["noise"][label]["covariance_bound"] for test in found["sums"]["tests"]])
    share = measured / bounds
    beyond = int((np.abs(share) > 1.0).sum())
    return (
        f"`{label}`: mean {number(float(share.mean()))}, from {number(float(share.min()))} to"
        f" {number(float(share.max()))}, beyond the bound in {beyond} of {len(share)} tests"
    )


def lines_of(title: str, found: dict[str, dict[str, Any]]) -> list[str]:
    """The table of one study."""
    labels = [label for label in CALIBRATED if label in found["logs"]["calibration"]]
    return [
        f"**{title[0].upper()}{title[1:]}**",
        "",
        "| | given | Γ0 (at both ends) | 95 % interval | τ | used | noise removed (at both ends) | RMSE, points |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(row_of(way, found[way], label) for label in labels for way in WAYS),
        "",
        f"Measured covariances as shares of their bounds: {'; '.join(covariances(found, label) for label in labels)}.",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    arguments, begin = parser.parse_args(), time.process_time()
    lines = [
        f"World `paper`, seed {SEED}, {TESTS} tests of 2 × {arguments.rows:,} displays. *Noise removed* is the"
        " deconvolved correlation of the plain estimator; RMSE is against the truth, plain → calibrated, each test by"
        " the fit of the others.",
        "",
    ]
    for title, world in STUDIES.items():
        print(title, file=sys.stderr)
        lines += lines_of(title, study(world, arguments.rows))
    lines.append(
        f"foretest {foretest.__version__}, Python {platform.python_version()}, NumPy {np.__version__}."
        f" {time.process_time() - begin:.0f} s of CPU time."
    )
    print("\n".join(lines))
    into_page(DOCS / "how-to/calibration.md", "results", "\n".join(lines))


if __name__ == "__main__":
    main()
