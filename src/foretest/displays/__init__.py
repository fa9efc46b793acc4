"""Displays in memory: ragged lists, batches of displays, hashed keys, days."""
