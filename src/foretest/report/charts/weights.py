"""Figure 1: the distribution of log10 w under the treatment, with its 80 % band."""

from __future__ import annotations

from typing import Any


def weights_chart(weights: dict[str, Any]) -> dict[str, Any]:
    """From `result.json`'s `weights`."""
    raise NotImplementedError
