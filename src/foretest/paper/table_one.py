"""Table 1: the counter-example for NCIS, in closed form and from a log with its population.

With shares ρ_g, values v_g of the treatment and kept masses m_g = E_t[W̄/W | g], R and W̄/W uncorrelated within a group:

    truth Σρv;   CIS Σρmv;   NCIS Σρmv/Σρm;   PieceNCIS on the groups, and PointNCIS, Σρ·(mv/m) = Σρv
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from foretest.diagnostics.bias_decomposition import bias_contributions
from foretest.displays.batch import Floats
from foretest.offline.test import OfflineTest
from foretest.paper.published import TABLE_1
from foretest.policies import PlackettLuce
from foretest.settings.log_columns import LogColumns

CAP = 100.0


class CustomerGroup(NamedTuple):
    """A column of the table."""

    name: str
    share: float
    control: float  # value under the control
    treatment: float  # value under the treatment
    kept: float  # E_t[W̄/W]


GROUPS = (CustomerGroup("registered", 0.1, 10.0, 12.0, 0.7), CustomerGroup("unknown", 0.9, 1.0, 1.0, 1.0))

# An instance with one slot. The registered: two items that together have π_p = .998 and π_t = .5, and one of weight
# 250, so that E_t[W̄/W] = .5 + .5·100/250 = .7; each half of the treatment is worth 12.
CONTROL, TREATMENT, WORTH = (0.249, 0.749, 0.002), (0.25, 0.25, 0.5), (16.0, 8.0, 12.0)
ROWS = 10_000  # the fewest with exact proportions


def table_one() -> dict[str, Any]:
    """The closed form beside the estimates from a log, and the bias of NCIS group by group."""
    share, control, treatment, mass_kept = np.array([group[1:] for group in GROUPS]).T
    parts = bias_contributions(share, share * mass_kept, share * mass_kept * treatment)
    return {
        "cap": CAP,
        "rows": ROWS,
        "groups": [group._asdict() for group in GROUPS],
        "paper": dict(TABLE_1),
        "closed_form": closed_form(share, control, treatment, mass_kept),
        "from_log": from_log(),
        "ncis_bias": {group.name: float(part) for group, part in zip(GROUPS, parts, strict=True)},
    }


def closed_form(share: Floats, control: Floats, treatment: Floats, mass_kept: Floats) -> dict[str, float]:
    """The limits, from shares, values and kept masses of the groups."""
    truth, cis = float(share @ treatment), float(share @ (mass_kept * treatment))
    return {
        "control": float(share @ control),
        "truth": truth,
        "cis": cis,
        "ncis": cis / float(share @ mass_kept),
        "piece-ncis": float(share @ (mass_kept * treatment / mass_kept)),
        "point-ncis": truth,
    }


def population() -> pa.Table:
    """10 000 displays: the population in exact proportions, so that an estimator's value is its limit."""
    few = [round(ROWS * GROUPS[0].share * p) for p in CONTROL]
    many = ROWS - sum(few)
    scores = {"control": CONTROL, "treatment": TREATMENT}
    log: dict[str, Any] = {
        "group": [GROUPS[0].name] * sum(few) + [GROUPS[1].name] * many,
        "shown": [[item] for item, count in enumerate(few) for _ in range(count)] + [[0]] * many,
        "reward": np.repeat([*WORTH, GROUPS[1].control], [*few, many]),
    }
    for policy, shares in scores.items():
        # softmax of log π is π; the unknown customers have two items, alike under both policies
        log[policy] = [np.log(shares).tolist()] * sum(few) + [[0.0, 0.0]] * many
    return pa.table(log)


def from_log() -> dict[str, float | None]:
    """The control's value and the estimates, from the population's log."""
    test = OfflineTest(
        log=LogColumns(rewards=("reward",), ranking="shown"),
        control=PlackettLuce("control"),
        treatment=PlackettLuce("treatment"),
        estimators=["cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive"],
        cap=CAP,
        strata="group",
        interval="delta",
    )
    reward = test.run(population()).metrics["reward"]
    return {"control": reward.control.value} | {key: e.treatment for key, e in reward.estimates.items()}
