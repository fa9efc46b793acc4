"""Table 1, against all rankings of its instance listed one by one."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.paper.table_one import CONTROL, GROUPS, ROWS, TREATMENT, WORTH, population, table_one

PRINTED = {"control": 1.9, "truth": 2.1, "cis": 1.74, "ncis": 1.74 / 0.97, "piece-ncis": 2.1, "point-ncis": 2.1}


def test_the_closed_form_is_what_the_paper_states() -> None:
    values = table_one()["closed_form"]
    assert values == pytest.approx(PRINTED, rel=1e-12)
    assert round(values["ncis"], 5) == 1.79381
    assert round(values["ncis"], 1) == table_one()["paper"]["ncis"]


def test_the_instance_has_the_columns_of_the_table() -> None:
    """Shares, values and kept masses by enumeration; reward and z uncorrelated within the registered."""
    p, t, worth = np.array(CONTROL), np.array(TREATMENT), np.array(WORTH)
    z = np.minimum(1.0, 100.0 * p / t)
    assert p.sum() == pytest.approx(1.0)
    assert (p @ worth, t @ worth, t @ z) == pytest.approx(GROUPS[0][2:], rel=1e-12)
    assert (t * z) @ worth - (t @ z) * (t @ worth) == pytest.approx(0.0, abs=1e-12)
    log = population()
    assert log.num_rows == ROWS
    registered = np.array(log["group"]) == "registered"
    assert registered.mean() == 0.1
    shown = np.array([row[0] for row in log["shown"].to_pylist()])[registered]
    assert (np.bincount(shown) / len(shown)).tolist() == list(CONTROL)


def test_the_estimators_find_the_closed_form_in_a_log() -> None:
    values = table_one()["from_log"]
    expected = {key: value for key, value in PRINTED.items() if key != "truth"}
    assert values == pytest.approx({**expected, "point-ncis-adaptive": 2.1}, rel=1e-12)


def test_the_groups_carry_the_whole_bias() -> None:
    carried = table_one()["ncis_bias"]
    assert carried["registered"] == pytest.approx(0.1 * (12 - 2.1) * (0.7 - 0.97) / 0.97)
    assert sum(carried.values()) == pytest.approx(1.74 / 0.97 - 2.1, rel=1e-12)
