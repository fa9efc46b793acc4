"""Offline against online over a history of A/B tests."""
