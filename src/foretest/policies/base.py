"""What a policy is: two answers about a display, `log_prob` and `sample`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.days import written_day
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput, check_integer, is_finite_number
from foretest.formatting import shortened

FIT = "fit"  # in place of a number that the log is to show
CONTROL = "control"  # in place of a treatment's number that is the control's


class LoggedColumn(NamedTuple):
    """The column that holds the logged probability of the shown ranking."""

    name: str
    is_log: bool  # does it hold natural logarithms?


class Policy:
    """A distribution over top-K rankings of a display's eligible items.

    A subclass answers `log_prob(displays, rankings)` and `sample(displays, uniforms)` for many displays at once.
    Random numbers are passed in, so that a draw depends on the display and the seed alone; objects must pickle.
    Every policy may also be given the column that holds the logged (log-)probability of the shown ranking, which
    is then used for that ranking instead of being computed (`remember_logged`).

    `full_support`: every ranking has a positive probability. `deterministic`: one ranking has probability 1.
    Both default to False, which is always safe.

    A policy of your own, for displays of one slot:

    >>> import numpy as np
    >>> import foretest as ft
    >>> class Uniform(ft.Policy):
    ...     full_support = True
    ...     def __init__(self, scores):
    ...         self.scores = scores
    ...     @property
    ...     def score_columns(self):
    ...         return (self.scores,)
    ...     def log_prob(self, displays, rankings):
    ...         return -np.log(displays.eligible)
    ...     def sample(self, displays, uniforms):
    ...         return ft.Ragged.of((uniforms[:, :1] * displays.eligible[:, None]).astype(np.int64))
    >>> Uniform("scores").columns
    ('scores',)
    """

    full_support: bool = False
    deterministic: bool = False
    #: can rankings be drawn, and rankings that were not shown be priced?
    can_draw: bool = True
    #: is the probability of the ranking that was shown known, and not only those of its slots?
    prices_rankings: bool = True
    #: is P(item in slot) known of every item, or can it be counted over draws, and not only of those that were shown?
    knows_all_slots: bool = True
    _logged: LoggedColumn | None = None
    _replay_seed: int | None = None
    _trained_until: str | None = None
    _given_number: Any = None  # the temperature, sigma or epsilon as it was given; None where it is the default

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the log that this policy reads, in role order."""
        names = (*self.score_columns, *self.ranking_columns, *self.slot_columns)
        return (*names, self._logged.name) if self._logged else names

    @property
    def score_columns(self) -> tuple[str, ...]:
        """The list columns that this policy reads and that hold one number per eligible item."""
        return ()

    @property
    def ranking_columns(self) -> tuple[str, ...]:
        """The list columns that this policy reads and that hold items, best slot first, at least as many as a display
        shows; they are read as positions, also where the log has ids."""
        return ()

    @property
    def slot_columns(self) -> tuple[str, ...]:
        """The list columns that this policy reads and that hold numbers slot by slot."""
        return ()

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        """log π(ranking | display), for one ranking per display."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        """One ranking of `displays.slots` items for each display.

        `uniforms` has one row per display, as wide as the longest list of eligible items plus one.
        """
        raise NotImplementedError(f"{type(self).__name__} has no sample")

    def shown_slots(self, displays: Displays) -> Floats:
        """P(a_k in slot k) of every shown slot, one after the other, of a policy of which no more is known."""
        raise NotImplementedError(f"{type(self).__name__} has no shown_slots")

    def settings(self) -> dict[str, Any]:
        """The settings-file table that makes this policy."""
        values = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        if self._logged:
            values["log_prob" if self._logged.is_log else "prob"] = self._logged.name
        if self._replay_seed is not None:
            values["replay_seed"] = self._replay_seed
        if self._trained_until is not None:
            values["trained_until"] = self._trained_until
        return {"policy": self.key, **values}

    @property
    def key(self) -> str:
        """The name of this class in a settings file."""
        from foretest.policies import POLICIES

        known = {cls: key for key, cls in reversed(POLICIES.items())}
        return known.get(type(self), class_path(self))

    def __repr__(self) -> str:
        values = {k: v for k, v in self.settings().items() if k != "policy"}
        # an attribute of a user's policy may be a table of a million rows
        return f"{type(self).__name__}({', '.join(f'{k}={shortened(repr(v))}' for k, v in values.items())})"

    def remember_logged(self, log_prob: str | None, prob: str | None) -> None:
        """Name the column of the log that holds the logged probability of the shown ranking.

        A subclass calls it in its `__init__` to offer the arguments `log_prob` and `prob` that the built-in policies
        have. At most one of the two may be given; with neither, nothing changes. The named column is then read with
        the policy's other columns, its values are used for the shown ranking instead of `log_prob(displays, rankings)`,
        and `settings()` and `repr` show it. Rankings that were not shown are still priced by `log_prob`.

        Parameters
        ----------
        log_prob: the column with natural logarithms of probabilities.
        prob: the column with probabilities.
        """
        if log_prob is not None and prob is not None:
            raise BadInput("a policy takes log_prob or prob, not both.")
        if log_prob is not None:
            self._logged = LoggedColumn(log_prob, is_log=True)
        elif prob is not None:
            self._logged = LoggedColumn(prob, is_log=False)

    def remember_replay(self, seed: int | None) -> None:
        """Note the seed that `foretest.serving` drew the log with; None: it is not to be replayed."""
        if seed is not None:
            check_integer("replay_seed", seed, 0, (1 << 63) - 1)
            self._replay_seed = int(seed)

    def remember_training(self, until: date | str | None) -> None:
        """Note the last day that the policy's model has seen, if it has seen any: rows up to it cannot test it."""
        if until is not None:
            self._trained_until = written_day("trained_until", until)


class ScorePolicy(Policy):
    """A policy that ranks by one list column, `scores`, with one number per eligible item."""

    def __init__(
        self, scores: str, *, log_prob: str | None = None, prob: str | None = None,
        trained_until: date | str | None = None,
    ) -> None:  # fmt: skip
        self.scores = scores
        self.remember_logged(log_prob, prob)
        self.remember_training(trained_until)

    @property
    def score_columns(self) -> tuple[str, ...]:
        return (self.scores,)


def class_path(policy: object) -> str:
    """The class of an object as a settings file names it, "module:Class"."""
    kind = type(policy)
    return f"{kind.__module__}:{kind.__qualname__}"


def refuse_slots_alone(policy: Any, role: str) -> None:
    """Refuse a policy of which only the slots' probabilities are known, in a role that prices whole rankings."""
    if not getattr(policy, "prices_rankings", True):
        raise BadInput(
            f"{role} cannot be logged-slots, which does not say how likely a whole ranking is: it is for a single"
            " [control]."
        )


def logged_column(policy: Policy) -> LoggedColumn | None:
    """The column with the logged probability of the shown ranking, where the policy was given one."""
    return policy._logged


def replay_seed(policy: Policy) -> int | None:
    """The seed of `foretest.serving` that the policy's log was drawn with, where it is to be replayed."""
    return policy._replay_seed


def trained_until(policy: Policy) -> str | None:
    """The last day that the policy's model has seen, as text; None where it is not given."""
    return policy._trained_until


def marginal_places(displays: Displays) -> tuple[npt.NDArray[np.int64], Floats]:
    """Where each display's P(item in slot) begin (K lists of M numbers, one after the other), and an array for all."""
    lengths = displays.eligible * displays.slots
    ends = np.cumsum(lengths)
    return ends - lengths, np.empty(int(lengths.sum()))


def positive(name: str, value: float, *, below: float = np.inf) -> float:
    """`value` as a float if it is in (0, below), else BadInput."""
    if not is_finite_number(value) or not 0.0 < value < below:
        limit = "a number above 0" if below == np.inf else f"a number between 0 and {below:g}"
        raise BadInput(f"{name} = {value!r}: expected {limit}.")
    return float(value)


SMALLEST_NOISE = 1e-30  # of which the inverse, and its square, are numbers of 4 bytes and of 8


def scale_of_noise(name: str, value: float) -> float:
    """`value` as a float if it is above 0 and scores can be divided by it, else BadInput."""
    scale = positive(name, value)
    if not SMALLEST_NOISE <= scale <= 1.0 / SMALLEST_NOISE:
        raise BadInput(f"{name} = {value!r}: expected a number from {SMALLEST_NOISE:g} to {1.0 / SMALLEST_NOISE:g}.")
    return scale


def given_number(policy: Policy) -> Any:
    """A policy's temperature, sigma or epsilon as it was given: a number, FIT or CONTROL; None where none was."""
    return policy._given_number


def number_or_word(value: Any, checked: Callable[[Any], float]) -> float:
    """The number that a policy was given, checked; FIT and CONTROL stay in its place until the number is settled."""
    word: Any = value
    return word if isinstance(value, str) and value in (FIT, CONTROL) else checked(value)


def is_open(value: Any) -> bool:
    """Is a policy's number still to be settled?"""
    return isinstance(value, str)


def known(name: str, value: Any) -> float:
    """A policy's number; BadInput where it is still to be settled."""
    if is_open(value) and value == CONTROL:
        raise BadInput(f'{name} = "{CONTROL}" is for the treatment of an offline test: here a number is needed.')
    if is_open(value):
        raise BadInput(
            f'{name} = "{FIT}" is for the control of an offline test, whose log shows the number: here it is needed.'
        )
    return float(value)
