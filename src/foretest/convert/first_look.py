"""First contact with a log: its layout, what each column may be, and the settings that follow, or what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa

from foretest.convert.column_guesses import (
    CONTROL,
    DAYS,
    DISPLAYS,
    ITEMS,
    KEEP,
    PROBABILITIES,
    REWARD_TIMES,
    REWARDS,
    SHOWN,
    SLOTS,
    TIMES,
    TREATMENT,
    UNITS,
    Column,
    first_with,
)
from foretest.convert.drawn_policy import drawn_policy
from foretest.records import dataclass

FIRST_ROWS = 5_000
# words of columns that are something else, even where no role could be given to them
_NO_REWARD = (
    CONTROL | TREATMENT | DAYS | DISPLAYS | ITEMS | KEEP | PROBABILITIES | SLOTS | TIMES | UNITS | {"id", "seed"}
)
_DRAWS = "plackett-luce"  # what a policy with scores is taken for
DISPLAY, LONG = "one row per display", "one row per display and item"


@dataclass
class FirstLook:
    """What a log seems to be."""

    layout: str
    columns: list[Column]
    log: dict[str, Any] = field(default_factory=dict)
    control: dict[str, Any] = field(default_factory=dict)
    treatment: dict[str, Any] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)  # by column
    missing: list[str] = field(default_factory=list)
    drawn: tuple[str, ...] = ()  # keys of the control that its logged probabilities show
    guessed: str | None = None  # the reward, where no name says which column it is

    @property
    def tables(self) -> dict[str, Any]:
        """The tables of a settings file."""
        return {"log": self.log, "control": self.control, "treatment": self.treatment}

    def name(self, column: Column, role: str) -> str:
        """The column's name, with its role remembered."""
        self.roles[column.name] = role
        return column.name

    @property
    def free(self) -> list[Column]:
        """The columns that have no role yet."""
        return [column for column in self.columns if column.name not in self.roles]


def look_at(rows: pa.Table, rewards: Sequence[str] = ()) -> FirstLook:
    """What the first rows of a log say; `rewards` are the columns that the user says are rewards."""
    columns = [Column(name, rows[name].combine_chunks()) for name in rows.column_names]
    lists = [column for column in columns if column.is_list]
    item = first_with([c for c in columns if not c.is_list and c.holds_keys], ITEMS)
    slot = first_with([c for c in columns if not c.is_list and c.holds_numbers], SLOTS)
    display = _repeated_key(columns, item)
    if not lists and item is not None and slot is not None and display is not None:
        look = _with_keep(FirstLook(LONG, columns))
        _long(look, display, item, slot)
    else:
        look = _with_keep(FirstLook(DISPLAY, columns))
        _displays(look)
    _rewards_and_units(look, rewards)
    _temperatures(look)
    if not look.control:
        look.missing.append(
            "what the control would show: a list of its scores for all eligible items, or the probability of what was"
            " shown"
        )
    if not look.treatment:
        look.missing.append("what the treatment would show: a list of its scores, one for each eligible item")
    if not look.log.get("rewards"):
        look.missing.append(_which_reward(_possible_rewards(look)))
    return look


def _with_keep(look: FirstLook) -> FirstLook:
    """The look with the column of what was kept: before the policies, which take what is named like a probability."""
    keep = first_with([column for column in look.columns if column.is_share], KEEP)
    if keep is not None:
        look.log["keep"] = look.name(keep, "the probability with which a row was kept")
    return look


def _repeated_key(columns: Sequence[Column], item: Column | None) -> Column | None:
    """A key that several rows share, named like a display."""
    keys = [c for c in columns if not c.is_list and c.holds_keys and c is not item and 1 < c.distinct < len(c.values)]
    return first_with(keys, DISPLAYS)


def _long(look: FirstLook, display: Column, item: Column, slot: Column) -> None:
    first = float(slot.flat.min(initial=1.0)) if not slot.values.null_count else 1.0
    zero = slot.values.null_count > 0 and bool((slot.flat == 0.0).any())
    look.log |= {
        "layout": "long", "display": look.name(display, "display"), "item": look.name(item, "item"),
        "slot": look.name(slot, "slot"),
    }  # fmt: skip
    if zero or (first == 0.0 and not _zero_means_not_shown(look, slot)):
        look.log["first_slot"] = 0
    scores = [
        c for c in look.free if c.holds_numbers and not c.holds_integers and not c.has_word(REWARDS | PROBABILITIES)
    ]
    _policies(look, [c for c in scores if c.values.null_count == 0], single=False)


def _zero_means_not_shown(look: FirstLook, slot: Column) -> bool:
    """Are there several rows with slot 0 in a display? Then 0 is no slot."""
    display = np.asarray(look_column(look, look.log["display"]).values.dictionary_encode("encode").indices)
    zeros = np.bincount(display[slot.flat == 0.0]) if len(slot.flat) == len(display) else np.zeros(1)
    return bool((zeros > 1).any())


def look_column(look: FirstLook, name: str) -> Column:
    """The column of that name."""
    return next(column for column in look.columns if column.name == name)


def _displays(look: FirstLook) -> None:
    """Rankings, candidates and score lists of a log with one row per display."""
    lists = [c for c in look.columns if c.is_list]
    numbers = [c for c in lists if c.holds_numbers and not c.holds_integers]
    shown = _ranking(look, lists, numbers)
    slots = shown.lengths if shown is not None and shown.is_list else np.ones(len(look.columns[0].values), np.int64)
    single = bool((slots == 1).all())
    if shown is not None:
        look.log["ranking"] = look.name(shown, "what was shown")
        if not _are_positions(shown, numbers):
            ids = next((c for c in lists if c is not shown and c.kind == shown.kind), None)
            if ids is not None:
                look.log["candidates"] = look.name(ids, "the eligible items")
    numbers = [c for c in numbers if c.name not in look.roles and (c.lengths >= slots).all()]
    scores = [c for c in numbers if (c.lengths > slots).any()]  # a display with few candidates shows all of them
    by_slot = [c for c in numbers if c not in scores and (c.lengths == slots).all() and not single]
    _policies(look, scores, single=single)
    rewards = [c for c in look.columns if c.is_reward and c.name not in look.roles]
    for column in by_slot:
        reward = next(
            (r for r in rewards if len(r.flat) == len(column.sums) and np.allclose(r.flat, column.sums)), None
        )
        if reward is not None and bool((column.flat >= 0.0).all()):
            look.log.setdefault("slot_rewards", {})[reward.name] = look.name(column, f"{reward.name} by slot")


def _ranking(look: FirstLook, lists: Sequence[Column], numbers: Sequence[Column]) -> Column | None:
    """What was shown: a list of positions or ids, or one of them."""
    keys = [c for c in lists if c.holds_keys and not (c.holds_numbers and not c.holds_integers)]
    named = [
        c for c in keys if c.has_word(["ranking", "shown", "slate", "ranked", "recommended", "displayed", "served"])
    ]
    if named:
        return named[0]
    if keys:
        return min(keys, key=lambda c: float(c.lengths.mean()))
    plain = [c for c in look.columns if not c.is_list and c.holds_keys]
    return first_with(plain, [*ITEMS, "arm", "choice", "chosen"]) if numbers or plain else None


def _are_positions(shown: Column, numbers: Sequence[Column]) -> bool:
    """Are the shown items positions in the score lists?"""
    if not shown.holds_integers or not numbers:
        return False
    longest = max(numbers, key=lambda c: int(c.lengths.sum())).lengths
    row = shown.rows if shown.is_list else np.arange(len(shown.values))
    return bool((shown.flat >= 0).all()) and len(row) == len(shown.flat) and bool((shown.flat < longest[row]).all())


def _policies(look: FirstLook, scores: Sequence[Column], *, single: bool) -> None:
    """The control and the treatment, from lists of scores or probabilities and from logged probabilities."""
    old = first_with(scores, CONTROL)
    new = first_with([c for c in scores if c is not old], TREATMENT)
    rest = [c for c in scores if c not in (old, new)]
    plain = [
        c for c in look.free if not c.is_list and c.holds_numbers and c.has_word([*PROBABILITIES, "logprob", "logp"])
    ]
    how = {column.name: _drawn(look, column, plain) for column in (rest if old is None else [old])}
    if old is None:
        drew = [column for column in rest if how[column.name] is not None]
        old = next(iter(drew or ([] if plain else rest)), None)
        rest = [column for column in rest if column is not old]
    if new is None and rest and not _of_the_sampler(look, rest[0]):
        new = rest.pop(0)
    if old is not None:
        look.control = _policy(look, old, "the control's", single)
        if look.control["policy"] != "probabilities":
            look.control |= how.get(old.name) or {}
            look.drawn = tuple(how.get(old.name) or ())
    if new is not None:
        look.treatment = _policy(look, new, "the treatment's", single)
    if plain:
        column = plain[0]
        look.control = look.control or {"policy": "logged"}
        if look.control["policy"] != "probabilities":
            look.control["log_prob" if column.is_logarithm else "prob"] = look.name(
                column, "the probability of what was shown"
            )


def _drawn(look: FirstLook, scores: Column, logged: Sequence[Column]) -> dict[str, Any] | None:
    """How the control draws from these scores, if its logged probabilities show it."""
    if not logged or "ranking" not in look.log:
        return None
    items = look.log.get("candidates")
    shown = look_column(look, look.log["ranking"])
    return drawn_policy(scores, shown, None if items is None else look_column(look, items), logged[0])


def _of_the_sampler(look: FirstLook, column: Column) -> bool:
    """Are they the control's, as a row of foretest.serving names them, which drew in a way that is not known?"""
    return column.name == "scores" and {"id", "ranking", "log_prob"} <= {c.name for c in look.columns}


def _policy(look: FirstLook, column: Column, whose: str, single: bool) -> dict[str, Any]:
    if single and column.is_probabilities:
        return {"policy": "probabilities", "probs": look.name(column, f"{whose} probabilities")}
    return {"policy": _DRAWS, "scores": look.name(column, f"{whose} scores")}


def _temperatures(look: FirstLook) -> None:
    """A temperature for every policy that draws by one: the default, and for the treatment the control's."""
    control, treatment = look.control, look.treatment
    if control.get("policy") == _DRAWS:
        control.setdefault("temperature", 1.0)
    if treatment.get("policy") == _DRAWS:
        treatment["temperature"] = "control" if control.get("policy") == _DRAWS else 1.0


def _rewards_and_units(look: FirstLook, chosen: Sequence[str]) -> None:
    of_items = look.layout == LONG
    rewards = [c for c in look.columns if c.name in chosen] or [c for c in look.free if _is_named_reward(look, c)]
    look.log = {"rewards": [look.name(c, "a reward") for c in rewards], **look.log}
    unit = first_with([c for c in look.free if not c.is_list and c.holds_keys], UNITS)
    if unit is not None:
        look.log["unit"] = look.name(unit, "the unit")
    if not of_items:
        keys = [c for c in look.free if not c.is_list and c.holds_keys and c.distinct == len(c.values)]
        key = first_with(keys, [*DISPLAYS, "id"])
        if key is not None:
            look.log["id"] = look.name(key, "the display")
    _times(look)
    day = first_with([c for c in look.free if not c.is_list and not (c.holds_numbers and not c.holds_integers)], DAYS)
    if day is not None:
        look.log["date"] = look.name(day, "the day")
    possible = [] if rewards else _possible_rewards(look)
    if len(possible) == 1:
        look.guessed = look.name(possible[0], "a reward (a guess)")
        look.log["rewards"] = [look.guessed]


def _is_named_reward(look: FirstLook, column: Column) -> bool:
    """Does its name say that this is a reward, or a list of what its slots earned?"""
    by_slot = column.name in look.log.get("slot_rewards", {})
    fits = column.is_reward or (look.layout == LONG and column.holds_numbers and not column.is_list)
    return by_slot or (column.has_word(REWARDS) and fits)


def _possible_rewards(look: FirstLook) -> list[Column]:
    """The columns without a role whose numbers could be rewards: none negative, and nothing that tells rows apart."""
    return [
        c for c in look.free if c.is_reward and not c.has_word(_NO_REWARD) and not (c.tells_rows_apart or c.is_constant)
    ]


def _which_reward(possible: Sequence[Column]) -> str:
    """What is missing where no column is the reward, or where several could be."""
    if not possible:
        return "a reward: a column with a number of at least 0 in every row, such as clicks"
    names = ", ".join(column.name for column in possible)
    return f"which column is the reward? Possible: {names}. Say so with --reward, as in --reward {possible[0].name}"


def _times(look: FirstLook) -> None:
    """The time of the display, in every row, and that of the reward: null where there is none."""
    times = [c for c in look.free if c.is_time]
    came = first_with([c for c in times if c.values.null_count or c.has_word(TIMES | {"at"})], REWARD_TIMES)
    others = [c for c in times if c is not came and c.values.null_count == 0]
    shown = first_with(others, TIMES) or first_with(others, DISPLAYS | SHOWN)
    if shown is not None:
        look.log["time"] = look.name(shown, "when it was shown")
        if came is not None and look.log.get("rewards"):
            look.log["reward_time"] = look.name(came, "when the reward came")
