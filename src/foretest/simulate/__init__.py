"""Simulated recommenders with a known truth."""

from foretest.simulate.change import Change, Changes, draw_change
from foretest.simulate.clicks import click_probability
from foretest.simulate.displays import (
    Displays,
    changed_scores,
    chunk_generator,
    draw_displays,
    sample_rankings,
    shown_rankings,
)
from foretest.simulate.history import SimulatedTest, draw_test, write_history
from foretest.simulate.log import simulate_log, write_log
from foretest.simulate.truth import Truth, true_values
from foretest.simulate.world import WORLDS, Group, World

__all__ = [
    "WORLDS",
    "Change",
    "Changes",
    "Displays",
    "Group",
    "SimulatedTest",
    "Truth",
    "World",
    "changed_scores",
    "chunk_generator",
    "click_probability",
    "draw_change",
    "draw_displays",
    "draw_test",
    "sample_rankings",
    "shown_rankings",
    "simulate_log",
    "true_values",
    "write_history",
    "write_log",
]
