"""Simulated recommenders with a known truth."""

from foretest.simulate.displays import (
    Displays,
    chunk_generator,
    click_probability,
    draw_displays,
    sample_rankings,
)
from foretest.simulate.log import simulate_log, write_log
from foretest.simulate.truth import Truth, true_values
from foretest.simulate.world import WORLDS, Change, Group, World

__all__ = [
    "WORLDS",
    "Change",
    "Displays",
    "Group",
    "Truth",
    "World",
    "chunk_generator",
    "click_probability",
    "draw_displays",
    "sample_rankings",
    "simulate_log",
    "true_values",
    "write_log",
]
