"""What the columns of an unknown log may be: by their names, their types and the values of the first rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from foretest.displays.column_types import is_integer, is_key, is_number
from foretest.displays.ragged import is_list
from foretest.records import dataclass

REWARDS = frozenset([
    "click", "clicks", "clicked", "reward", "rewards", "conversion", "conversions", "converted", "purchase",
    "purchases", "purchased", "order", "orders", "revenue", "sale", "sales", "buy", "like", "likes", "play", "plays",
    "watched", "install", "installs", "booking", "bookings", "engagement", "clk", "clks", "conv",
])  # fmt: skip
UNITS = frozenset([
    "user", "users", "visitor", "customer", "account", "member", "cookie", "session", "person", "subscriber",
    "uid", "usr",
])  # fmt: skip
DISPLAYS = frozenset([
    "display", "impression", "impressions", "request", "query", "event", "view", "slate", "round", "page", "search",
])  # fmt: skip
ITEMS = frozenset([
    "item", "items", "product", "sku", "article", "action", "doc", "document", "movie", "video", "ad", "offer",
    "listing", "content", "itm",
])  # fmt: skip
SLOTS = frozenset(["slot", "position", "rank", "place", "pos"])
SCORES = frozenset(["score", "scores", "logit", "logits"])
KEEP = frozenset(["keep"])
PROBABILITIES = frozenset(["prob", "probability", "propensity", "pscore", "propensities"])
CONTROL = frozenset([
    "control", "old", "prod", "production", "logging", "logged", "behavior", "behaviour", "current", "baseline",
    "served", "online",
])  # fmt: skip
TREATMENT = frozenset([
    "treatment", "new", "target", "evaluation", "eval", "challenger", "variant", "offline", "proposed",
])  # fmt: skip
TIMES = frozenset(["ts", "timestamp", "time", "datetime"])
REWARD_TIMES = REWARDS | frozenset(["converted", "bought", "ordered", "played", "liked", "installed", "booked"])
DAYS = frozenset(["date", "day", "ds", "dt"])
SHOWN = frozenset(["ranking", "shown", "slate", "ranked", "recommended", "displayed", "served"])
_FEW_ROWS = 10

Floats = npt.NDArray[np.float64]


def words(name: str) -> frozenset[str]:
    """The words of a column's name, in lower case.

    >>> sorted(words("userId_2")), sorted(words("control-scores"))
    (['2', 'id', 'user'], ['control', 'scores'])
    """
    parts = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return frozenset(part.lower() for part in re.split(r"[^A-Za-z0-9]+", parts) if part)


@dataclass(frozen=True)
class Column:
    """One column of the first rows."""

    name: str
    values: pa.Array

    @cached_property
    def words(self) -> frozenset[str]:
        return words(self.name)

    @property
    def kind(self) -> pa.DataType:
        return self.values.type

    @property
    def is_list(self) -> bool:
        return is_list(self.kind)

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The lengths of lists, 0 of a null."""
        return np.asarray(pc.fill_null(pc.list_value_length(self.values), 0), np.int64)

    @cached_property
    def _inner(self) -> pa.Array:
        """The values, of all lists one after the other."""
        return pc.list_flatten(self.values) if self.is_list else self.values

    @cached_property
    def flat(self) -> Floats:
        """The numbers, of all lists one after the other, without nulls; none where they are no numbers."""
        if not is_number(self._inner.type):
            return np.zeros(0)
        return np.asarray(self._inner.cast(pa.float64(), safe=False).drop_null())

    @cached_property
    def codes(self) -> npt.NDArray[np.int64]:
        """A number for each value, of all lists one after the other; equal values have the same, a null has −1."""
        inner = self._inner
        if pa.types.is_dictionary(inner.type):
            inner = inner.dictionary_decode()
        return np.asarray(pc.fill_null(inner.dictionary_encode().indices, -1), np.int64)

    @cached_property
    def repeats_values(self) -> bool:
        """Has a list the same value twice?"""
        row = np.repeat(np.arange(len(self.values)), self.lengths)
        return len(np.unique(row * (len(self.codes) + 1) + self.codes)) < len(row)

    @property
    def holds_numbers(self) -> bool:
        return is_number(self.kind.value_type if self.is_list else self.kind)

    @property
    def holds_integers(self) -> bool:
        return is_integer(self.kind.value_type if self.is_list else self.kind)

    @property
    def holds_keys(self) -> bool:
        return is_key(self.kind.value_type if self.is_list else self.kind)

    @property
    def holds_scores(self) -> bool:
        """Numbers with fractions, or such whose name says that they are scores."""
        return self.holds_numbers and (not self.holds_integers or self.has_word(SCORES))

    @cached_property
    def distinct(self) -> int:
        """How many different values it has."""
        return 0 if self.is_list else len(pc.unique(self.values))

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """The row of each number of `flat`."""
        if not is_number(self._inner.type):
            return np.zeros(0, np.int64)
        every = np.repeat(np.arange(len(self.values)), self.lengths)
        return every[np.asarray(self._inner.is_valid())] if self._inner.null_count else every

    @cached_property
    def sums(self) -> Floats:
        """The sum of each list."""
        return np.bincount(self.rows, weights=self.flat, minlength=len(self.values)).astype(np.float64)

    def has_word(self, options: Iterable[str]) -> bool:
        """Has the name one of these words?"""
        return bool(self.words & frozenset(options))

    @property
    def is_probabilities(self) -> bool:
        """Are they lists between 0 and 1 that sum to 1?"""
        values = self.flat
        within = len(values) > 0 and bool((values >= 0.0).all()) and bool((values <= 1.0 + 1e-6).all())
        return self.is_list and within and bool((np.abs(self.sums - 1.0) <= 1e-6).all())

    @property
    def is_logarithm(self) -> bool:
        """Are these logarithms of probabilities? Without noise all are 0."""
        return bool((self.flat < 0.0).any()) or (self.has_word(["log", "logprob", "logp"]) and not self.flat.any())

    @property
    def is_share(self) -> bool:
        """Is it one number per row, above 0 and at most 1?"""
        plain = self.holds_numbers and not self.is_list and not pa.types.is_boolean(self.kind)
        return plain and self.values.null_count == 0 and bool(((self.flat > 0.0) & (self.flat <= 1.0)).all())

    @property
    def is_time(self) -> bool:
        """Is it one timestamp a row, which may be null?"""
        return bool(pa.types.is_timestamp(self.kind))

    @property
    def is_reward(self) -> bool:
        """Is it one number per row, never negative?"""
        plain = self.holds_numbers and not self.is_list
        return plain and self.values.null_count == 0 and bool((self.flat >= 0.0).all())

    @property
    def tells_rows_apart(self) -> bool:
        """Is it an integer that no two rows share, as a key is? Of few rows nobody can tell."""
        return self.holds_integers and len(self.values) > _FEW_ROWS and self.distinct == len(self.values)

    @property
    def is_constant(self) -> bool:
        """Is it one number other than 0 in all rows? All 0 may be a rare reward."""
        return len(self.values) > _FEW_ROWS and self.distinct == 1 and bool(self.flat.any())


def first_with(columns: Iterable[Column], options: Iterable[str]) -> Column | None:
    """The first column whose name has one of these words."""
    wanted = frozenset(options)
    return next((column for column in columns if column.has_word(wanted)), None)
