"""Sums and logs in files: saved aggregates, and packed logs."""
