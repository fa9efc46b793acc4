"""First contact with a log: its layout, what each column may be, and the settings that follow, or what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    Floats,
    first_with,
)
from foretest.convert.drawn_policy import drawn_policy
from foretest.records import dataclass
from foretest.report.board.texts import visible

FIRST_ROWS = 5_000
FEW_ROWS = 200  # that are compared one by one
_NEARLY_ALL = 0.9  # of the first rows: the last display may be cut
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
    lacks: dict[str, str] = field(default_factory=dict)  # what is missing, by table
    drawn: tuple[str, ...] = ()  # keys of the control that its logged probabilities show
    guessed: str | None = None  # the reward, where no name says which column it is

    @property
    def tables(self) -> dict[str, Any]:
        """The tables of a settings file; what is missing is left out."""
        log = {key: value for key, value in self.log.items() if value != []}
        return {"log": log, "control": self.control, "treatment": self.treatment}

    @property
    def missing(self) -> list[str]:
        """What must be known beyond this log's columns."""
        return list(self.lacks.values())

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
    plain = [column for column in columns if not column.is_list]
    item = first_with([c for c in plain if c.holds_keys], ITEMS)
    slot = first_with([c for c in plain if c.holds_numbers], SLOTS)
    display = None
    if len(plain) == len(columns) and item is not None and slot is not None:
        display = _display_key([c for c in plain if c is not item and c is not slot], item, slot)
    if display is not None and item is not None and slot is not None:
        look = _with_keep(FirstLook(LONG, columns))
        _long(look, display, item, slot)
    else:
        look = _with_keep(FirstLook(DISPLAY, columns))
        _displays(look)
    _rewards_and_units(look, rewards)
    _temperatures(look)
    scores = "a list of its scores" if look.layout == DISPLAY else "a column of its scores"
    if not look.control:
        look.lacks["control"] = (
            f"what the control would show: {scores} for all eligible items, or the probability of what was shown"
        )
        if look.layout == LONG and (of_items := first_with(look.free, PROBABILITIES)) is not None:
            look.lacks["control"] += f" (together: '{visible(of_items.name)}' differs from item to item)"
    if not look.treatment:
        look.lacks["treatment"] = f"what the treatment would show: {scores}, one for each eligible item"
    if not look.log.get("rewards"):
        look.lacks["log"] = _which_reward(_possible_rewards(look))
    return look


def _with_keep(look: FirstLook) -> FirstLook:
    """The look with the column of what was kept: before the policies, which take what is named like a probability."""
    keep = first_with([column for column in look.columns if column.is_share], KEEP)
    if keep is not None:
        look.log["keep"] = look.name(keep, "the probability with which a row was kept")
    return look


def _display_key(columns: Sequence[Column], item: Column, slot: Column) -> Column | None:
    """A key that the rows of a display share: named like one, or else the one whose rows fill slots in turn."""
    keys = [c for c in columns if c.holds_keys and 1 < c.distinct < len(c.values)]
    filled = [c for c in keys if _fills_slots(c, item, slot)]
    return (
        first_with(filled, DISPLAYS) or first_with(keys, DISPLAYS) or first_with(filled, ["session"]) or _finest(filled)
    )


def _finest(keys: Sequence[Column]) -> Column | None:
    return max(keys, key=lambda key: key.distinct, default=None)


def _fills_slots(key: Column, item: Column, slot: Column) -> bool:
    """Have nearly all values of a key several rows, each with another item, and slots that follow one another?"""
    place = np.asarray(pc.cast(slot.values, pa.float64(), safe=False).fill_null(np.nan))
    pairs = np.unique(np.stack([key.codes, item.codes]), axis=1)
    shown = np.isfinite(place) & (place > 0.0 if _zeros_repeat(key, place) else place >= 0.0)
    order = np.lexsort((place[shown], key.codes[shown]))
    display, at = key.codes[shown][order], place[shown][order]
    if pairs.shape[1] < _NEARLY_ALL * len(place) or len(display) < 2:
        return False
    within = display[1:] == display[:-1]
    return bool(within.any()) and float((np.diff(at)[within] == 1.0).mean()) >= _NEARLY_ALL


def _zeros_repeat(key: Column, place: Floats) -> bool:
    """Have several rows of one value slot 0? Then 0 is no slot."""
    zeros = key.codes[(place == 0.0) & (key.codes >= 0)]
    return len(np.unique(zeros)) < len(zeros)


def _long(look: FirstLook, display: Column, item: Column, slot: Column) -> None:
    first = float(slot.flat.min(initial=1.0)) if not slot.values.null_count else 1.0
    zero = slot.values.null_count > 0 and bool((slot.flat == 0.0).any())
    look.log |= {
        "layout": "long", "display": look.name(display, "display"), "item": look.name(item, "item"),
        "slot": look.name(slot, "slot"),
    }  # fmt: skip
    place = np.asarray(pc.cast(slot.values, pa.float64(), safe=False).fill_null(np.nan))
    if zero or (first == 0.0 and not _zeros_repeat(display, place)):
        look.log["first_slot"] = 0
    scores = [
        c for c in look.free if c.holds_numbers and not c.holds_integers and not c.has_word(REWARDS | PROBABILITIES)
    ]
    _policies(look, [c for c in scores if c.values.null_count == 0], single=False)


def look_column(look: FirstLook, name: str) -> Column:
    """The column of that name."""
    return next(column for column in look.columns if column.name == name)


def _displays(look: FirstLook) -> None:
    """Rankings, candidates and score lists of a log with one row per display."""
    lists = [c for c in look.columns if c.is_list]
    numbers = [c for c in lists if c.holds_scores]
    shown = _ranking(look, lists, numbers)
    slots = shown.lengths if shown is not None and shown.is_list else np.ones(len(look.columns[0].values), np.int64)
    single = bool((slots == 1).all())
    if shown is not None:
        look.log["ranking"] = look.name(shown, "what was shown")
        if not _are_positions(shown, numbers):
            ids = _eligible_items(shown, [c for c in lists if c is not shown and c not in numbers])
            if ids is not None:
                look.log["candidates"] = look.name(ids, "the eligible items")
    free = [c for c in lists if c.name not in look.roles and (c.lengths >= slots).all()]
    # a display with few candidates shows all of them
    scores = [c for c in free if c in numbers and (c.lengths > slots).any()]
    by_slot = [c for c in free if c.holds_numbers and (c.lengths == slots).all() and not single]
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
    keys = [c for c in lists if c.holds_keys and c not in numbers]
    named = [
        c for c in keys if c.has_word(["ranking", "shown", "slate", "ranked", "recommended", "displayed", "served"])
    ]
    if named:
        return named[0]
    keys = [c for c in keys if not (c.has_word(REWARDS) or c.repeats_values)]
    if keys:
        return min(keys, key=lambda c: float(c.lengths.mean()))
    plain = [c for c in look.columns if not c.is_list and c.holds_keys]
    return first_with(plain, [*ITEMS, "arm", "choice", "chosen"]) if numbers or plain else None


def _eligible_items(shown: Column, lists: Sequence[Column]) -> Column | None:
    """The list of ids that has what was shown, whatever its type of list and integer."""
    rankings = shown.values[:FEW_ROWS].to_pylist()

    def share(column: Column) -> float:
        pairs = zip(rankings, column.values[:FEW_ROWS].to_pylist(), strict=True)
        return float(np.mean([set(ranking) <= set(items) for ranking, items in pairs if ranking and items] or [False]))

    if not shown.is_list:
        rankings = [[one] for one in rankings]
    likely = [c for c in lists if c.holds_keys and c.holds_integers == shown.holds_integers]
    best = max(likely, key=share, default=None)
    return best if best is not None and share(best) >= 0.5 else None


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
    if look.layout == LONG:  # a probability of each item is none of what was shown together
        display = look_column(look, look.log["display"])
        plain = [c for c in plain if len(np.unique(np.stack([display.codes, c.codes]), axis=1).T) == display.distinct]
    of_treatment = first_with(plain, TREATMENT)
    plain = [c for c in plain if c is not of_treatment]
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
    elif of_treatment is not None:
        look.treatment = {"policy": "logged", **_logged(look, of_treatment, "the treatment's probability of it")}
    if plain:
        column = plain[0]
        look.control = look.control or {"policy": "logged"}
        if look.control["policy"] != "probabilities":
            look.control |= _logged(look, column, "the probability of what was shown")


def _logged(look: FirstLook, column: Column, role: str) -> dict[str, str]:
    """The key that names a column of logged probabilities."""
    return {"log_prob" if column.is_logarithm else "prob": look.name(column, role)}


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
    names = [visible(column.name) for column in possible]
    return f"which column is the reward? Possible: {', '.join(names)}. Say so with --reward, as in --reward {names[0]}"


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
