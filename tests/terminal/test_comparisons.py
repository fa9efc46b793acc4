"""Several treatments as text: which to take comes first, every guardrail, and colours that say good and bad."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

import foretest as ft
from foretest.terminal.parts import guardrail_text, verdict_text
from foretest.terminal.result import result_table
from tests.offline.candidates import ROLES, UPLIFTS, candidates_log, candidates_test


@pytest.fixture(scope="module")
def result() -> ft.Result:
    return candidates_test(metrics=ROLES).run(candidates_log())


def test_which_treatment_to_take_comes_first(result: ft.Result) -> None:
    text = str(result)
    assert max(len(line) for line in text.splitlines()) <= 100
    assert text.splitlines()[0] == "Best that passes every guardrail: balanced, +40.0 % in click."
    assert text.index("Ranked higher, and not taken: bold") < text.index("Foretest 4,000 displays")
    alone = candidates_test(["bold"], metrics=ROLES).run(candidates_log())
    assert str(alone).startswith("The treatment does not pass, because the guardrail bounce fails.")
    assert str(candidates_test(["bold"]).run(candidates_log())).startswith("Foretest ")


def test_every_treatment_has_its_guardrails(result: ft.Result) -> None:
    text = str(result)
    _, _, table = text.partition("bounce (guardrail, lower is better, margin 10.0 %), cis")
    lines = table.splitlines()[2 : 2 + len(UPLIFTS)]
    assert [line.split()[1] for line in lines] == list(UPLIFTS)
    assert [line.split()[-1] for line in lines] == ["fail", "pass", "pass", "pass", "pass"]


def test_colours_say_good_and_bad(result: ft.Result) -> None:
    assert verdict_text("positive", "decrease").style == verdict_text("negative").style == "bold red"
    assert verdict_text("negative", "decrease").style == verdict_text("positive").style == "bold green"
    assert verdict_text("neutral", "decrease").style == verdict_text("neutral").style
    assert guardrail_text("fail").style == "bold red"
    out = StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system="standard", legacy_windows=False)
    console.print(result_table(result))
    _, _, bounce = out.getvalue().partition("margin 10.0 %")
    [bold] = [line for line in bounce.splitlines()[:3] if " bold " in line]
    assert "\x1b[1;31mpositive" in bold  # more bounces: red
    [harmful] = [line for line in bounce.splitlines()[:8] if " harmful " in line]
    assert "\x1b[1;32mnegative" in harmful


def test_treatments_and_segments_show_range_and_word(result: ft.Result) -> None:
    text = str(result)
    [head] = [line for line in text.splitlines() if "all at once" in line and "guardrail" not in line]
    assert head.split()[:4] == ["treatment", "uplift", "range", "word"]
    markdown = result.to_markdown()
    assert "| treatment | uplift | range | word | 90 % | all at once" not in markdown  # the name of the column is whole
    assert "| treatment | uplift | range | word | 90 %, all at once | p (Holm) | verdict |" in markdown
    assert markdown.startswith("**Best that passes every guardrail: balanced, +40.0 % in click.**")
