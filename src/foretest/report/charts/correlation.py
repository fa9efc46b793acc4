"""Figure 3: the correlation of offline with online uplifts, a box an estimator."""

from __future__ import annotations

from typing import Any


def correlation_chart(table: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """From `agreement.json`'s `table`: quartiles as boxes, 10 % and 90 % as whiskers, the noise ceiling as a tick."""
    raise NotImplementedError
