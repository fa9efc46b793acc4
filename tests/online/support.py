"""Arms of online tests, and tests of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import foretest as ft
from foretest.results.result import Estimate, Result

SCHEMA = json.loads((Path(ft.__file__).parent / "schema" / "result-1.json").read_text(encoding="utf-8"))


def arm(units: int, rate: float, seed: int, first: int = 0, repeats: bool = True) -> dict[str, Any]:
    """Displays of users of unequal size, whose own rates differ and grow with their size."""
    g = np.random.default_rng(seed)
    size = 1 + g.poisson(4.0 * g.gamma(1.0, size=units)) if repeats else np.ones(units, np.int64)
    own = np.clip(rate * g.gamma(2.0, 0.5, units) * (0.6 + 0.1 * size if repeats else 1.0), 0.0, 1.0)
    user = np.repeat(np.arange(units), size)
    click = (g.random(len(user)) < own[user]).astype(float)
    return {"user": user + first, "click": click, "revenue": click * np.exp(g.normal(size=len(user)))}


def online(unit: str | None = "user", rewards: tuple[str, ...] = ("click",), **keywords: Any) -> ft.OnlineTest:
    log = {name: keywords.pop(name) for name in ("id", "date") if name in keywords}
    return ft.OnlineTest(log=ft.LogColumns(rewards=rewards, unit=unit, **log), **keywords)


def answer(result: Result, metric: str = "click") -> Estimate:
    return result.metrics[metric].estimates["online"]


def flat(rows: int, positives: int, first: int = 0, reward: float = 1.0, units: int | None = None) -> pa.Table:
    click = np.zeros(rows)
    click[:positives] = reward
    return pa.table({"user": first + np.arange(rows) % (units or rows), "click": click})
