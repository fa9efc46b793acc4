"""Faults of a control with scores, each of a kind that happens: the audit should fail."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from audit_logs import (
    PAPER,
    Case,
    Generator,
    Maker,
    lengths_of,
    lists,
    log_prob,
    put,
    scores_of,
    shown_of,
    simulated,
    world_case,
)

import foretest as ft


def temperature(stated: float) -> Maker:
    return lambda g, rows: world_case(simulated(PAPER, rows, g), ft.PlackettLuce("control_scores", stated))


def shuffled_scores(g: Generator, rows: int) -> Case:
    """Each display has the scores of another one with as many candidates."""
    table = simulated(replace(PAPER, min_candidates=12), rows, g)
    return world_case(put(table, "control_scores", table["control_scores"].take(g.permutation(rows))))


def shuffled_probabilities(g: Generator, rows: int) -> Case:
    table = simulated(PAPER, rows, g)
    log_p = g.permutation(log_prob(scores_of(table), shown_of(table)))
    return world_case(put(table, "log_p", log_p), ft.PlackettLuce("control_scores", log_prob="log_p"))


def other_version(g: Generator, rows: int) -> Case:
    """Scores of a model that correlates .98 with the one that served."""
    table = simulated(PAPER, rows, g)
    scores = scores_of(table) + 0.3 * g.standard_normal((rows, 12))
    return world_case(put(table, "control_scores", lists(scores, lengths_of(table))))


def other_slots(g: Generator, rows: int) -> Case:
    """The probability that was logged is that of the first two slots, and three were shown."""
    table = simulated(PAPER, rows, g)
    log_p = log_prob(scores_of(table), shown_of(table)[:, :2])
    return world_case(put(table, "log_p", log_p), ft.PlackettLuce("control_scores", log_prob="log_p"))


def duplicated(g: Generator, rows: int) -> Case:
    """One row in fifty is there twice."""
    table = simulated(PAPER, rows, g)
    copies = np.sort(np.concatenate([np.arange(rows), g.choice(rows, rows // 50, replace=False)]))
    return world_case(table.take(copies))


def swapped(g: Generator, rows: int) -> Case:
    """A rule: in one display of ten the first two items change places where the second has a lower score."""
    table = simulated(PAPER, rows, g)
    shown, scores = shown_of(table), scores_of(table)
    first, second = (scores[np.arange(rows), shown[:, slot]] for slot in (0, 1))
    change = (g.random(rows) < 0.1) & (second < first)
    shown[change, :2] = shown[change, 1::-1]
    return world_case(put(table, "ranking", lists(shown)))


def one_group(g: Generator, rows: int) -> Case:
    """The shoppers, 12 % of displays, were served at random."""
    table = simulated(PAPER, rows, g)
    shown = shown_of(table)
    keys = np.where(np.isneginf(scores_of(table)), np.inf, g.random((rows, 12)))
    there = np.array(table["group"].to_pylist()) == "shoppers"
    shown[there] = np.argsort(keys[there], axis=1)[:, :3]
    return world_case(put(table, "ranking", lists(shown)))


class Fault(NamedTuple):
    """A fault, and the rows of its logs."""

    name: str
    make: Maker
    rows: int


FAULTS = [
    Fault("temperature stated 3 % too high", temperature(1.03), 20_000),
    Fault("temperature stated 3 % too low", temperature(0.97), 20_000),
    Fault("temperature stated 10 % too high", temperature(1.1), 2_000),
    Fault("temperature stated 10 % too low", temperature(0.9), 2_000),
    Fault("scores shuffled among displays", shuffled_scores, 20_000),
    Fault("logged probabilities shuffled", shuffled_probabilities, 20_000),
    Fault("scores of another model version", other_version, 20_000),
    Fault("logged probabilities of another K", other_slots, 20_000),
    Fault("one row in 50 duplicated", duplicated, 20_000),
    Fault("a rule swaps two items in 10 % of displays", swapped, 20_000),
    Fault("12 % of displays served at random", one_group, 20_000),
]
