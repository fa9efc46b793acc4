"""How charts look: fonts, colours with a second sign beside each, and the two configurations, LIGHT and DARK."""

from __future__ import annotations

from typing import Any

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
WIDTH = 620  # of the plot: with its axis and legend a chart fits a page of 720 px

LIGHT: dict[str, Any] = {}
DARK: dict[str, Any] = {}
