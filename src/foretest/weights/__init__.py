"""Importance weights: their caps, the pointwise normaliser, and weights of slots."""
