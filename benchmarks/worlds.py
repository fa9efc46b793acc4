"""The named worlds, measured: uplifts, estimates of one log, weights. `python benchmarks/worlds.py`

prints a table and writes it into docs/measured/worlds.md, between two comments, with the spread of the estimates over
logs of the world `paper`.
"""

from __future__ import annotations

import argparse
import platform
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from history_agreement import log_prob
from pages import DOCS, into_page

import foretest as ft
from foretest.simulate import WORLDS, World, simulate_log, true_values

ROWS, SEED, SEEDS = 200_000, 0, 20
CAP = 100.0
FOR = {
    "paper": "the default", "mild": "small changes", "dense": "many moderately large weights",
    "sharp": "low temperatures", "no-overlap": "little common support", "rewards": "many rewards",
}  # fmt: skip
SHOWN = {
    "cis": "CIS at cap 100", "ncis": "NCIS at cap 100", "point-ncis-adaptive": "`point-ncis-adaptive`",
    "slot-ncis-adaptive": "`slot-ncis-adaptive`",
}  # fmt: skip


def estimates(world: World, seed: int) -> tuple[pa.Table, dict[str, float]]:
    """A log of the control, and the relative uplifts that it tells."""
    log = pa.Table.from_batches(simulate_log(world, ROWS, seed))
    test = ft.OfflineTest(
        log=ft.LogColumns(
            rewards=["click"], unit="user", ranking="ranking", id="display_id", slot_rewards={"click": "slot_click"}
        ),
        control=ft.PlackettLuce(scores="control_scores"),
        treatment=ft.PlackettLuce(scores="treatment_scores"),
        estimators=list(SHOWN),
        cap=CAP,
        interval="delta",
    )
    found = test.run(log, threads=1).metrics["click"].estimates
    return log, {key: e.rel_effect_size for key, e in found.items() if e.rel_effect_size is not None}


def log10_weights(log: pa.Table) -> npt.NDArray[np.float64]:
    batch = log.combine_chunks().to_batches()[0]
    return (log_prob(batch, "treatment_scores") - log_prob(batch, "control_scores")) / np.log(10.0)


def measure(name: str) -> dict[str, Any]:
    world = WORLDS[name]
    log, found = estimates(world, SEED)
    logged = log10_weights(log)
    treated = log10_weights(pa.Table.from_batches(simulate_log(world, ROWS, SEED, arm="treatment")))
    click = log["click"].to_numpy().astype(np.float64)
    capped = np.minimum(CAP, 10.0**logged)
    truth = true_values(world, world.change, SEED)
    return {
        "what it is for": FOR[name],
        "click rate": percent(click.mean(), 2),
        "**true uplift of clicks**": f"**{percent(truth['click'].rel_uplift, 2, sign=True)}**",
        "its standard error, points": f"{100 * truth['click'].std_error:.2f}",
        "true uplift of revenue": percent(truth["revenue"].rel_uplift, 1, sign=True),
        **{f"{title}: uplift": percent(found[key], 1, sign=True) for key, title in SHOWN.items()},
        "treatment mass kept, mean w̄": f"{capped.mean():.3f}",
        "effective positives, (Σw̄r)²/Σ(w̄r)²": thousands((capped @ click) ** 2 / (capped**2 @ click)),
        "rows with w > 100": small((logged > 2).mean()),
        "largest w in the log": thousands(10 ** logged.max()),
        "treatment's rankings with w > 10": small((treated > 1).mean()),
        "… with w > 100": small((treated > 2).mean()),
        "… with w > 10⁶": small((treated > 6).mean()),
        "largest w among the treatment's rankings": f"10^{treated.max():.0f}",
    }


def percent(value: float, digits: int, *, sign: bool = False) -> str:
    text = f"{100 * value:{'+' if sign else ''}.{digits}f} %"
    return text.replace("-", "−")


def small(share: float) -> str:
    return "0" if share == 0 else percent(share, 1) if share >= 0.001 else percent(share, 3)


def thousands(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ")


def report() -> str:
    columns = {name: measure(name) for name in FOR}
    lines = [
        f"{thousands(ROWS)} displays, seed {SEED}; w is the importance weight of a ranking, w̄ = min(w, {CAP:.0f}).",
        "",
        f"| | {' | '.join(f'`{name}`' for name in columns)} |",
        f"| --- |{' --- |' * len(columns)}",
    ]
    for title in columns["paper"]:
        lines.append(f"| {title} | {' | '.join(str(column[title]) for column in columns.values())} |")
    many = [estimates(WORLDS["paper"], seed)[1] for seed in range(SEEDS)]
    said = []
    for key, title in SHOWN.items():
        seen = np.array([found[key] for found in many])
        ends = f"{percent(seen.min(), 1, sign=True)} to {percent(seen.max(), 1, sign=True)}"
        said.append(f"{title} ranged from {ends} (mean {percent(seen.mean(), 1, sign=True)})")
    lines += [
        "",
        f"The estimates in the table are of one log and carry its noise. Over seeds 0 to {SEEDS - 1} of `paper`,"
        f" {thousands(ROWS)} displays each, {', '.join(said)}.",
        "",
        f"foretest {ft.__version__}, Python {platform.python_version()}, NumPy {np.__version__}.",
    ]
    return "\n".join(lines)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    text = report()
    print(text)
    into_page(DOCS / "measured/worlds.md", "worlds", text)


if __name__ == "__main__":
    main()
