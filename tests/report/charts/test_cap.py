"""Figure 2 as drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from foretest.formatting import percent
from foretest.report.charts.cap import cap_chart, cap_charts
from foretest.report.charts.cap_estimates import bound_chart, cap_estimates_chart
from tests.report.support import HOSTILE, Drawing, assert_sound
from tests.support import SmallLog, build_test

LOG = SmallLog(rows=600, spread=3.0)
NEAR = SmallLog(rows=600, units=600, spread=0.02, seed=6)


def path_of(log: SmallLog = LOG, table: Any = None, **analysis: Any) -> dict[str, Any]:
    settings = {"r_max": 1.0, "interval": "delta", **analysis}
    result = build_test(["cis"], **settings).run(log.table() if table is None else table)
    found: dict[str, Any] = result.to_dict()["metrics"]["click"]["cap_path"]
    return found


@pytest.fixture(scope="module")
def path() -> dict[str, Any]:
    return path_of(cap=10.0)


def test_three_curves_and_the_uplift_sought(path: dict[str, Any]) -> None:
    spec = cap_chart(path)
    assert_sound(spec)
    drawing = Drawing(spec)
    assert drawing.marks("curves") == 3
    assert len({shape.get("stroke-dasharray") for shape in drawing.shapes("curves")}) == 3
    assert drawing.marks("sought") == 1
    assert {"noise", "bias bound", "smallest uplift it could show", "1 % uplift sought", "cap 10", "click"} <= set(
        drawing.words()
    )
    assert drawing.width() <= 720


def test_the_numbers_at_the_run_s_cap_are_said(path: dict[str, Any]) -> None:
    k = 4  # 10 on the path
    text = cap_chart(path)["description"]
    assert f"At a cap of 10: noise ±{percent(path['noise'][k])}, bias at most {percent(path['bias_bound'][k])}" in text
    assert f"is sure to show is {percent(path['sensitivity'][k])}." in text
    assert "Noise (half the 90 % interval) is below 1 % at no cap" in text
    assert "No cap keeps both below it." in text


def test_a_strip_a_cap_tells_every_number(path: dict[str, Any]) -> None:
    spec = cap_chart(path)
    [strips] = [layer for layer in spec["layer"] if layer.get("name") == "strips"]
    rows = strips["data"]["values"]
    assert Drawing(spec).marks("strips") == len(rows) >= 17
    assert rows[4]["words"] == "10"
    assert percent(path["sensitivity"][4]) in rows[4].values()


def test_bands_are_drawn_where_the_criteria_hold(path: dict[str, Any]) -> None:
    near = cap_chart(path_of(NEAR))
    drawing = Drawing(near)
    assert drawing.marks("noise_band") == drawing.marks("bias_band") == drawing.marks("both_band") == 1
    assert "both below 1 %" in drawing.words()
    assert "Both are at" in near["description"]
    assert Drawing(cap_chart(path)).marks("noise_band") == 0


def test_without_r_max_only_noise_is_drawn() -> None:
    spec = cap_chart(path_of(r_max=None))
    assert_sound(spec)
    assert Drawing(spec).marks("curves") == 1
    assert "needs r_max" in spec["description"]
    assert "bias bound" not in Drawing(spec).words()


def test_estimates_with_their_intervals(path: dict[str, Any]) -> None:
    spec = cap_estimates_chart(path)
    assert_sound(spec)
    drawing = Drawing(spec)
    assert (drawing.marks("estimates"), drawing.marks("intervals")) == (2, 2)
    assert {"CIS", "NCIS", "cap 10", "click"} <= set(drawing.words())
    for key in ("cis", "ncis"):
        lower, upper = (path[key][f"rel_effect_size_ci_{end}"][4] for end in ("lower", "upper"))
        value = percent(path[key]["rel_effect_size"][4], sign=True)
        said = f"{key.upper()} {value} ({percent(lower, sign=True)} to {percent(upper, sign=True)})"
        assert said in spec["description"]
    assert drawing.width() <= 720


def test_caps_with_too_few_rewards_are_shaded() -> None:
    few = path_of(table=LOG.table().slice(0, 60))
    assert min(few["effective_positives"]) < 30
    assert Drawing(cap_estimates_chart(few)).marks("too_few") == 1
    assert min(path_of(NEAR)["effective_positives"]) > 30
    assert Drawing(cap_estimates_chart(path_of(NEAR))).marks("too_few") == 0


@pytest.mark.parametrize("chart", [cap_chart, cap_estimates_chart])
def test_no_rows_and_no_reward_draw_an_empty_frame(chart: Any) -> None:
    for table in (LOG.table().slice(0, 0), LOG.table(click=np.zeros(LOG.rows))):
        spec = chart(path_of(table=table))
        drawing = Drawing(spec)
        assert drawing.marks("curves") == drawing.marks("estimates") == 0
        assert "cap on the weights" in drawing.words()


@pytest.mark.parametrize("chart", [cap_chart, cap_estimates_chart])
def test_a_hostile_metric_is_text(chart: Any) -> None:
    table = LOG.table().append_column(HOSTILE, pa.array(LOG.click))
    result = build_test(["cis"], metrics=(HOSTILE,)).run(table).to_dict()
    spec = chart(result["metrics"][HOSTILE]["cap_path"])
    assert_sound(spec, HOSTILE)
    drawing = Drawing(spec)
    assert any(word.startswith("a.b[c] </script>") for word in drawing.words())
    assert "<img" not in drawing.text


def points_of(table: Any = None, **analysis: Any) -> dict[str, Any]:
    test = build_test(["cis", "point-ncis", "point-ncis-adaptive"], interval="delta", **analysis)
    found: dict[str, Any] = test.run(LOG.table() if table is None else table).to_dict()["metrics"]["click"]["cap_path"]
    return found


def test_point_ncis_is_a_third_line_against_the_cap() -> None:
    path = points_of(cap=10.0)
    spec = cap_estimates_chart(path)
    assert_sound(spec)
    drawing = Drawing(spec)
    assert drawing.marks("estimates") == 3
    assert "PointNCIS" in drawing.words()
    [strips] = [layer for layer in spec["layer"] if layer.get("name") == "strips"]
    at = path["point-ncis"]["caps"].index(10.0)
    assert percent(path["point-ncis"]["rel_effect_size"][at], sign=True) in strips["data"]["values"][4].values()
    first, last = (path["point-ncis"]["rel_effect_size"][k] for k in (0, -1))
    said = (
        f"PointNCIS goes from {percent(first, sign=True)} at a cap of 1 to {percent(last, sign=True)} at a cap of 1e6."
    )
    assert said in spec["description"]


def test_the_bound_has_a_chart_of_its_own() -> None:
    path = points_of(weight_bound=7.0)
    spec = bound_chart(path)
    assert_sound(spec)
    drawing = Drawing(spec)
    assert {"bound 7", "bound on the weights", "click"} <= set(drawing.words())
    assert drawing.width() <= 720
    adaptive = path["point-ncis-adaptive"]
    k = adaptive["bounds"].index(7.0)
    assert f"At a bound of 7: {percent(adaptive['rel_effect_size'][k], sign=True)} (" in spec["description"]
    assert [len(chart["layer"]) > 0 for chart in cap_charts(path)] == [True] * 3
    assert len(cap_charts(path_of())) == 2


def test_a_log_without_reward_has_empty_point_charts() -> None:
    path = points_of(LOG.table(click=np.zeros(LOG.rows)))
    for spec in cap_charts(path):
        assert_sound(spec)
    assert "There is no reward" in bound_chart(path)["description"]
