"""Scores of the treatment that are wrong in some of the displays: what is asked, of which, and where nothing is."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.diagnostics.treatment_questions import SOME_EQUAL, SOME_ORDER, SOME_REVERSED

ROWS, ITEMS = 3000, 12
RNG = np.random.default_rng(6)
COUNTRY = RNG.choice(["DE", "FR", "IT", "PL"], ROWS, p=[0.4, 0.3, 0.2, 0.1])
USER = RNG.integers(0, 1500, ROWS)
CONTROL = RNG.normal(size=(ROWS, ITEMS))
RIGHT = 0.8 * CONTROL + 0.6 * RNG.normal(size=CONTROL.shape)
SHOWN = np.argsort(-(CONTROL + RNG.gumbel(size=CONTROL.shape)), axis=1)[:, :3]
CLICK = (RNG.random(ROWS) < 0.1).astype(float)
SOME = RNG.random(ROWS) < 0.3
FRENCH = COUNTRY == "FR"

MISTAKES = {
    SOME_ORDER: lambda scores: np.random.default_rng(1).permuted(scores, axis=1),
    SOME_EQUAL: lambda scores: np.zeros_like(scores),
    SOME_REVERSED: lambda scores: -scores,
}


def table(treatment: np.ndarray, **columns: Any) -> pa.Table:
    plain = {
        "c": pa.array(list(CONTROL)), "t": pa.array(list(treatment)), "ranking": pa.array(list(SHOWN)),
        "click": CLICK, "user": USER, "id": [f"display-{i:04d}" for i in range(ROWS)], "country": COUNTRY,
    }  # fmt: skip
    return pa.table(plain | columns)


def settings(control: Any = None, treatment: Any = None, **changes: Any) -> ft.OfflineTest:
    log = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", features=["country"])
    return ft.OfflineTest(
        log=dataclasses.replace(log, **changes), control=control or ft.PlackettLuce("c"),
        treatment=treatment or ft.PlackettLuce("t"), estimators=["cis"], n_resamples=20,
    )  # fmt: skip


def with_mistake(kind: str, some: np.ndarray) -> np.ndarray:
    return np.where(some[:, None], MISTAKES[kind](RIGHT), RIGHT)


def note(result: ft.Result) -> str:
    [text] = [n for n in result.notes if "of the displays (" in n]
    return text


@pytest.mark.parametrize("kind", MISTAKES)
def test_wrong_scores_in_some_displays_are_asked_about(kind: str) -> None:
    result = settings().check(table(with_mistake(kind, SOME)), threads=1)
    assert result.health["questions"] == [kind]
    text = note(result)
    share = float(text.removeprefix("in about ").removeprefix("in ").split(" %")[0]) / 100.0
    assert share == pytest.approx(SOME.mean(), abs=0.03)
    names = [int(word[8:]) for word in text.split('"')[1::2]]
    assert text.count('first ids "display-') == 1
    assert len(names) == 3
    assert SOME[names].all()
    assert "nearly all where" not in text  # it is of no country


@pytest.mark.parametrize("kind", MISTAKES)
def test_the_value_that_tells_these_displays_from_the_others_is_named(kind: str) -> None:
    result = settings().check(table(with_mistake(kind, FRENCH)), threads=1)
    assert result.health["questions"] == [kind]
    assert "nearly all where country = 'FR')" in note(result)


def test_a_number_with_few_values_and_several_values_are_named() -> None:
    device = RNG.integers(1, 5, ROWS)
    wrong = with_mistake(SOME_EQUAL, device >= 3)
    result = settings(features=["device"]).check(table(wrong, device=device), threads=1)
    assert "nearly all where device = 3, device = 4)" in note(result)


def test_units_are_named_where_rows_have_no_ids() -> None:
    result = settings(id=None).check(table(with_mistake(SOME_EQUAL, SOME)), threads=1)
    first = note(result).split("first of 'user': ")[1].split(";")[0].rstrip(")").split(")")[0]
    assert set(map(int, first.split(", "))) <= set(USER[SOME])
    no_unit = settings(id=None, unit=None).check(table(with_mistake(SOME_EQUAL, SOME)).drop_columns(["user"]))
    assert [n for n in no_unit.notes if n.startswith(("in 2", "in 3"))]
    assert "first" not in " ".join(no_unit.notes)


def test_right_scores_are_not_asked_about() -> None:
    assert settings().check(table(RIGHT), threads=1).health["questions"] == []
    # nor a weak model, one of few levels whose lists are sometimes equal, or one that changes some displays only
    weak = 0.15 * CONTROL + 0.98 * RNG.normal(size=CONTROL.shape)
    assert settings().check(table(weak), threads=1).health["questions"] == []
    flags = (RIGHT > 1.8).astype(float)
    assert (flags.max(axis=1) == 0.0).mean() > 0.2
    assert SOME_EQUAL not in settings().check(table(flags), threads=1).health["questions"]
    partly = np.where(SOME[:, None], CONTROL + 2.0 * RNG.normal(size=CONTROL.shape), CONTROL)
    assert settings().check(table(partly), threads=1).health["questions"] == []


def test_lists_of_any_length_and_further_treatments() -> None:
    lengths = RNG.integers(3, ITEMS + 1, ROWS)
    eligible = np.where(np.arange(ITEMS) < lengths[:, None], CONTROL, -np.inf)
    shown = np.argsort(-(eligible + RNG.gumbel(size=eligible.shape)), axis=1)[:, :2]

    def cut(scores: np.ndarray) -> pa.Array:
        return pa.array([row[:n] for row, n in zip(scores, lengths, strict=True)])

    log = table(RIGHT, c=cut(CONTROL), t=cut(RIGHT), bad=cut(with_mistake(SOME_REVERSED, FRENCH)), ranking=list(shown))
    test = settings(treatment={"new": ft.PlackettLuce("t"), "bad": ft.PlackettLuce("bad")})
    result = test.check(log, threads=1)
    assert [t.health["questions"] for t in result.treatments] == [[], [SOME_REVERSED]]
    assert note(result).startswith("bad: in about ")
    assert "nearly all where country = 'FR'" in note(result)


def test_candidates_of_the_treatments_own_are_compared_where_both_have_them() -> None:
    own = np.array([RNG.permutation(np.arange(2, ITEMS + 2)) for _ in range(ROWS)])
    wide = np.column_stack([RIGHT, RNG.normal(size=(ROWS, 2))])
    scores = np.take_along_axis(np.where(SOME[:, None], -wide, wide), own, axis=1)
    log = table(RIGHT, c_items=[np.arange(ITEMS)] * ROWS, t_items=list(own), t=list(scores))
    control, treatment = (
        ft.OwnCandidates(ft.PlackettLuce(name), candidates=f"{name}_items") for name in ("c", "t")
    )  # fmt: skip
    assert settings(control, treatment).check(log, threads=1).health["questions"] == [SOME_REVERSED]


def test_threads_parts_and_saved_sums_ask_the_same(tmp_path: Path) -> None:
    log, test = table(with_mistake(SOME_ORDER, FRENCH)), settings()
    one = test.run(log, threads=1)
    assert one.health["questions"] == [SOME_ORDER]
    assert note(test.run(log, threads=2, batch_rows=400)) == note(one)
    for i in (0, 1):
        test.save_aggregates(log.slice(1500 * i, 1500), tmp_path / f"{i}.parquet")
    assert note(test.run([tmp_path / "0.parquet", tmp_path / "1.parquet"])) == note(one)
