"""A log of which every uplift is known, and five treatments: one too bold, two that pass, one idle, one harmful."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import foretest as ft

#: the relative uplifts in click and in bounce
UPLIFTS = {
    "bold": (0.5, 0.3),
    "balanced": (0.4, 0.0),
    "cautious": (0.15, 0.0),
    "idle": (0.0, 0.02),
    "harmful": (-0.3, -0.2),
}
ROLES: dict[str, Any] = {
    "click": {"role": "goal"},
    "bounce": {"role": "guardrail", "direction": "decrease", "margin": 0.1},
}


def candidates_log(rows: int = 4000) -> pa.Table:
    """Clicks and bounces in half of the displays each, independently. A weight of 1 ± a by click and ± b by bounce
    has a mean of 1, and gives relative uplifts of a and b exactly."""
    click, bounce = np.arange(rows) % 2, np.arange(rows) // 2 % 2
    signs = 2.0 * click - 1.0, 2.0 * bounce - 1.0
    columns = {name: 0.4 * (1.0 + a * signs[0] + b * signs[1]) for name, (a, b) in UPLIFTS.items()}
    logged = {"click": click.astype(float), "bounce": bounce.astype(float), "p": np.full(rows, 0.4)}
    return pa.table({**logged, **columns, "user": np.arange(rows)})


def candidates_test(names: list[str] | None = None, metrics: Any = None, **more: Any) -> ft.OfflineTest:
    """A test of some of the treatments; of one alone where one is named."""
    chosen = {name: ft.Logged(prob=name) for name in names or UPLIFTS}
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click", "bounce"], unit="user"), control=ft.Logged(prob="p"),
        treatment=chosen if len(chosen) > 1 else next(iter(chosen.values())), estimators=["cis"],
        metrics=metrics, n_resamples=200, **more,
    )  # fmt: skip
