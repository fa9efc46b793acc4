"""Figure 2: noise, bias bound and sensitivity of CIS against the cap; and the estimates against the cap."""

from __future__ import annotations

from typing import Any


def cap_chart(cap_path: dict[str, Any]) -> dict[str, Any]:
    """From a metric's `cap_path`: noise, bias bound and sensitivity, the uplift sought, the bands."""
    raise NotImplementedError


def cap_estimates_chart(cap_path: dict[str, Any]) -> dict[str, Any]:
    """From a metric's `cap_path`: relative uplift of CIS and NCIS with intervals."""
    raise NotImplementedError
