"""Intervals of a paired uplift, one method a file, all over the same sums by bucket of units."""
