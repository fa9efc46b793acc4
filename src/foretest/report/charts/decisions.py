"""Figure 4: each A/B test a box, its offline interval across and its online interval up."""

from __future__ import annotations

from typing import Any


def decisions_chart(
    tests: list[dict[str, Any]], estimator: str, confidence_level: float | None = None
) -> dict[str, Any]:
    """From `agreement.json`'s `tests`, for one estimator."""
    raise NotImplementedError
