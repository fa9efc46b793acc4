"""Logs of other shapes, written once as a log with one row per display and a settings file that runs as it is."""
