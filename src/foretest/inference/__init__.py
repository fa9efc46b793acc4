"""Intervals of a paired uplift, one method per file, all from the same sums by bucket of units."""
