"""A result as text: tables in 100 columns or fewer, and what stands below them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import foretest as ft
from foretest.results.uplift_range import Range
from foretest.terminal.parts import verdict_text
from foretest.terminal.result import render
from tests.results.support import UP, with_estimate
from tests.support import SmallLog, build_test


@pytest.fixture(scope="module")
def result() -> ft.Result:
    return build_test(["cis", "point-ncis-adaptive"]).run(SmallLog(rows=200, units=80).table())


def test_the_control_is_per_display(result: ft.Result) -> None:
    [title] = [line for line in render(with_estimate(result, UP)).splitlines() if line.startswith("click:")]
    assert title == "click: control 0.02000 [0.01800, 0.02200] per display"


def test_a_reason_is_there_once_with_the_estimators_that_share_it(result: ft.Result) -> None:
    few = replace(UP, verdict="insufficient", robustness=None, sensitivity=None, reasons=["no row has a reward"])
    text = render(with_estimate(result, few, cis=few))
    assert "  cis, point-ncis-adaptive: no row has a reward" in text.splitlines()


def test_a_weight_beyond_a_float_is_a_power_of_ten(result: ft.Result) -> None:
    health = {**result.health, "max_weight": None, "max_log10_weight": 412.3}
    [line] = [line for line in render(replace(result, health=health)).splitlines() if "largest weight" in line]
    assert line.split()[2] == "10^412"


def test_the_legend_names_factors_that_are_not_the_headlines(result: ft.Result) -> None:
    def with_factors(least: float, most: float) -> ft.Estimate:
        return replace(UP, range=Range("band", 0.0, 1.0, 0.0, 1.0, least, most))

    def legend_of(other: ft.Estimate) -> str:
        text = " ".join(render(with_estimate(result, with_factors(1 / 1.15, 1.3), other=other)).split())
        return text[text.index("range: allows for") : text.index("word: positive or negative")]

    assert legend_of(with_factors(1 / 1.15, 1.3)).endswith("from 1/1.15 to 1.3 times what supported ones earn ")
    assert legend_of(with_factors(1 / 1.3, 2.0)).endswith("supported ones earn (other: 1/1.3 to 2) ")
    noise = replace(UP, range=Range("noise", 0.0, 1.0, 0.0, 1.0))
    assert legend_of(noise).endswith("supported ones earn ")


def test_the_terminal_marks_a_fragile_verdict_in_100_columns(result: ft.Result) -> None:
    def table(*estimates: Any, **others: Any) -> str:
        text = render(with_estimate(result, *estimates, **others))
        assert all(len(line) <= 100 for line in text.splitlines())
        return " ".join(text.split())

    fragile = table(UP)
    assert "positive ~" in fragile
    assert "fragile at factors from 1/1.15 to 1.3: the verdict holds unless unsupported recommendations earn" in fragile
    assert "~ fragile (" not in fragile  # the sentence has said it
    assert "~ fragile (other): the verdict does not survive the factors of the range, or the log refutes them" in table(
        replace(UP, robustness="robust"), other=UP
    )
    assert "~" not in table(replace(UP, robustness="robust"))
    neutral = table(replace(UP, verdict="neutral", robustness="robust"))
    assert "robust at" not in neutral


def test_an_estimated_number_of_units_is_rounded(result: ft.Result) -> None:
    log = {**result.log, "rows": 900_000, "units": 200_134}
    text = render(replace(result, log={**log, "units_approximate": True}))
    assert "900,000 displays, about 200,000 units (user)" in text
    assert "900,000 displays, 200,134 units (user)" in render(replace(result, log=log))


def test_uplift_range_and_word_come_first_and_the_rest_where_there_is_room(result: ft.Result) -> None:
    shown = with_estimate(result, UP, other=replace(UP, range=None, word="neutral"))

    def lines(width: int) -> list[list[str]]:
        text = render(shown, width)
        [begin] = [k for k, line in enumerate(text.splitlines()) if line.startswith("  estimator")]
        assert all(len(line) <= width for line in text.splitlines()[begin : begin + 3])
        return [re.split(r" {2,}| (?=leans|neutral)", line.strip()) for line in text.splitlines()[begin : begin + 3]]

    head, other, lead = lines(120)
    assert head == ["estimator", "uplift", "range", "word", "noise, 90 %", "verdict", "treatment"]
    assert lead[0].startswith("> point-ncis-adaptive")
    assert lead[1:] == ["+3.0 %", "-0.50 to +6.0 %", "leans positive", "+1.0 to +5.0 %", "positive ~", "0.02060"]
    assert other[2] == other[4] == "+1.0 to +5.0 %"  # without a range of its own it has that of noise
    assert lines(100)[0] == head[:6]
    assert "noise, 90 %" in " ".join(lines(80)[0])
    assert lines(62)[0] == head[:4]


def test_what_range_and_word_mean_is_said_once(result: ft.Result) -> None:
    text = " ".join(render(with_estimate(result, UP)).split())
    assert text.count("range: allows for noise, and for what the log cannot support: unsupported recommendations") == 1
    assert "may earn from 1/1.15 to 1.3 times what supported ones earn" in text
    assert text.count("word: positive or negative if noise and range both say so; it leans if only one") == 1
    past = replace(UP, range=Range("calibrated", 0.0, 0.1, 0.0, 0.1))
    text = " ".join(render(with_estimate(result, past)).split())
    assert "range: allows for noise, and for what unsupported recommendations earned in past tests" in text
    check = " ".join(render(replace(result, metrics={})).split())
    assert "range:" not in check


def test_what_leans_is_dim_in_the_same_colour() -> None:
    assert verdict_text("leans positive").style == verdict_text("leans negative", "decrease").style == "dim green"
    assert verdict_text("leans negative").style == verdict_text("leans positive", "decrease").style == "dim red"


def test_markdown_has_all_columns(result: ft.Result) -> None:
    text = with_estimate(result, UP, **{"a|b": replace(UP, reasons=["few *rewards*"])}).to_markdown()
    assert "| estimator | uplift | range | word | noise, 90 % | verdict | treatment |" in text
    cells = ["+3.0 %", "-0.50 to +6.0 %", "leans positive", "+1.0 to +5.0 %", "positive \\~", "0.02060"]
    assert f"| **point-ncis-adaptive** | {' | '.join(cells)} |" in text.splitlines()
    assert "| a\\|b |" in text
    assert "a\\|b: few \\*rewards\\*" in text
    assert "- range: allows for noise" in text
    assert text.startswith("200 displays, 75 units (user), 75 with click. Propensity audit passed")
    assert replace(result, metrics={}).to_markdown().startswith("200 displays")


@pytest.mark.parametrize(
    ("examination", "line"),
    [
        ({"kind": "fit", "theta": [1.0, 0.604, 0.413], "std_error": [0.0, 0.021, 0.018], "pairs": []},
         "examination: 1, 0.60 ± 0.02, 0.41 ± 0.02 (fitted from the log, ± std error)"),
        ({"kind": "given", "theta": [1.0, 0.6, 0.4]}, "examination: 1, 0.6, 0.4 (given)"),
    ],
)  # fmt: skip
def test_the_examination_curve_has_a_line(result: ft.Result, examination: dict[str, Any], line: str) -> None:
    metric = replace(with_estimate(result, UP).metrics["click"], examination=examination)
    curved = replace(result, metrics={"click": metric})
    assert f"  {line}" in render(curved).splitlines()
    assert f"- {line}".replace("_", "\\_") in curved.to_markdown().splitlines()
    assert f"<small>click, {line}.</small>" in curved._repr_html_()
    assert "examination:" not in render(with_estimate(result, UP))
