"""How a log is analysed: the table [analysis]."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from foretest.displays.durations import duration_of
from foretest.errors import BadInput, check_integer, check_number, choose
from foretest.records import dataclass
from foretest.settings.changed_fields import call_text, changed_fields
from foretest.settings.examination import checked_examination
from foretest.settings.key_help import explained
from foretest.settings.unknown_keys import refuse_unknown

NORMALISERS = ("auto", "exact", "midzuno-sen", "lahiri", "two-sided")
INTERVALS = ("bootstrap", "delta", "bernstein", "betting")
BOUNDED = ("bernstein", "betting")  # those that need the range of a row
DECIDE_ON = ("interval", "band")
VALUE_MODEL = "value-model"
AUTO = "auto"
DEFAULT_CAP = 100.0
DEFAULT_BOUND = 20.0
GAMMA = (1.15, 1.3)  # of estimators by ranking
MOST_COUNTS = 10**9  # of all resamples: 8 GB
#: the least and the most of each setting that is a whole number; more would take days, or more memory than there is
_WHOLE_NUMBERS = {
    "draws": (2, 10**6), "n_resamples": (1, 10**6), "buckets": (2, 2**24), "folds": (2, 1000), "seed": (0, 2**64 - 1),
}  # fmt: skip


@dataclass(frozen=True)
class Analysis:
    """How the log is analysed: the keys of the settings file's [analysis] table.

    >>> import foretest as ft
    >>> ft.Analysis(confidence_level=0.95).replace(cap=30.0)
    Analysis(cap=30.0, confidence_level=0.95)
    """

    estimators: tuple[Any, ...] | None = explained(
        None, "estimators to run; default: all that columns and policies allow"
    )
    cap: float | str = explained(
        DEFAULT_CAP,
        "the cap c on importance weights, above 0; auto: chosen from weights alone, by a pass of its own over the log",
    )
    capping: str = explained("max", "what the cap does, max: min(w, c); zero: w if w < c else 0")
    weight_bound: float | str = explained(
        AUTO, "the adaptive cap's bound on every normalised weight, at least 1; auto: chosen by the log for each metric"
    )
    headline: str | None = explained(None, "the estimator whose verdict is the metric's")
    normaliser: str = explained("auto", "how q(x) is computed: auto | exact | midzuno-sen | lahiri | two-sided")
    draws: int = explained(256, "rankings drawn for each display's normaliser; an even number")
    confidence_level: float = explained(0.90, "the level of every interval, between 0 and 1")
    interval: str = explained("bootstrap", "the kind of interval: bootstrap | delta | bernstein | betting")
    n_resamples: int = explained(1000, "bootstrap resamples")
    buckets: int = explained(1024, "hash buckets of units that the intervals resample")
    strata: str = explained(
        VALUE_MODEL, "the strata of piece-ncis: value-model (bins of V(x)), or the name of a column"
    )
    strata_base: float = explained(2.0, "b of the value bins b^k <= V < b^(k+1), above 1")
    value: str | None = explained(None, "the column with a logged V(x)")
    value_log: str | None = explained(None, "a separate log to fit V(x) on")
    predictions: str | Mapping[str, str] | None = explained(
        None, "the list column with the predicted reward of each eligible item; of several rewards a table by reward"
    )
    folds: int = explained(2, "folds of the cross-fitted V(x) and of the reward model, by unit")
    seed: int = explained(0, "the seed of draws, resamples, the value model and the reward model")
    gamma: tuple[float, float] | None = explained(
        None,
        "how many times less and more than supported recommendations unsupported ones may earn, at every level;"
        " default: 1.15 and 1.3 for estimators by ranking, gamma_slots for those by slot",
    )
    gamma_slots: tuple[float, float] = explained(
        (1.3, 2.0), "gamma of estimators by slot and by exposure, where gamma is not given"
    )
    examination: str | tuple[float, ...] | Mapping[str, Any] | None = explained(
        None,
        "for estimators by exposure, how likely a user looks at each slot: numbers as in 1.0 0.6 0.4, fit (the"
        " default), or a result.json that has them",
    )
    decide_on: str = explained("interval", "interval | band: what the verdict of point estimators looks at")
    r_max: float | Mapping[str, float] | None = explained(
        None, "largest possible reward, for bounds; 1 for bool columns"
    )
    ignore_audit: bool = explained(False, "let verdicts stand although the propensity audit fails")
    baseline: str | None = explained(None, "of several loggers, the one that the treatment is compared with")
    window: str | None = explained(
        None, "how long after its display a reward counts, as in 7d, 36h or 90m; younger displays are left out"
    )

    def __post_init__(self) -> None:
        from foretest.weights.capping import CAPPINGS

        if self.estimators is not None:
            if isinstance(self.estimators, str) or not isinstance(self.estimators, list | tuple):
                raise BadInput(f'estimators = {self.estimators!r}: expected a list, as in ["ncis", "point-ncis"].')
            object.__setattr__(self, "estimators", tuple(self.estimators))
            if not self.estimators:
                raise BadInput("estimators is empty: leave the key out to run all that are possible.")
            _check_estimators(self.estimators)
        if self.cap != AUTO:
            if isinstance(self.cap, str):
                raise BadInput(f'cap = {self.cap!r}: expected a number above 0, or "{AUTO}".')
            check_number("cap", self.cap, above=0.0)
        elif self.capping == "zero":
            raise BadInput('cap = "auto" needs capping = "max": its rule is for min(w, c). Give cap a number.')
        if isinstance(self.weight_bound, str) and self.weight_bound != AUTO:
            raise BadInput(f'weight_bound = {self.weight_bound!r}: expected a number of at least 1, or "{AUTO}".')
        if self.weight_bound != AUTO:
            check_number("weight_bound", self.weight_bound, at_least=1.0)
        for name in ("cap", "weight_bound"):  # of whole numbers above 2^63 NumPy makes objects
            if isinstance(getattr(self, name), int) and getattr(self, name) > 2**53:
                object.__setattr__(self, name, float(getattr(self, name)))
        check_number("strata_base", self.strata_base, above=1.0)
        check_number("confidence_level", self.confidence_level, above=0.0, below=1.0)
        for name, (least, most) in _WHOLE_NUMBERS.items():
            check_integer(name, getattr(self, name), least, most)
        if self.interval == "bootstrap" and self.n_resamples * self.buckets > MOST_COUNTS:
            raise BadInput(
                f"n_resamples = {self.n_resamples} with buckets = {self.buckets}: a resample has a count for each"
                f" bucket, and memory is for {MOST_COUNTS:,} of them. Ask for fewer."
            )
        if self.draws % 2:
            raise BadInput(f"draws = {self.draws}: expected an even number, half for each policy.")
        choices = {"capping": CAPPINGS, "normaliser": NORMALISERS, "interval": INTERVALS, "decide_on": DECIDE_ON}
        for name, options in choices.items():
            choose(name, getattr(self, name), options)
        object.__setattr__(self, "gamma", None if self.gamma is None else _gamma("gamma", self.gamma))
        object.__setattr__(self, "gamma_slots", _gamma("gamma_slots", self.gamma_slots))
        if self.examination is not None:
            object.__setattr__(self, "examination", checked_examination(self.examination))
        if isinstance(self.value_log, os.PathLike):
            object.__setattr__(self, "value_log", os.fspath(self.value_log))
        if self.window is not None:
            duration_of("window", self.window)
        for name in ("headline", "value", "value_log", "baseline"):
            if getattr(self, name) is not None and not isinstance(getattr(self, name), str):
                raise BadInput(f"{name} = {getattr(self, name)!r}: expected text.")
        if not isinstance(self.ignore_audit, bool):
            raise BadInput(f"ignore_audit = {self.ignore_audit!r}: expected true or false.")
        if not isinstance(self.strata, str):
            raise BadInput(f'strata = {self.strata!r}: expected "value-model" or the name of a column.')
        if self.value is not None and self.value_log is not None:
            raise BadInput("value and value_log are both given: V(x) comes from a column or from a separate log.")
        _check_predictions(self.predictions)
        if isinstance(self.r_max, Mapping):
            for metric, bound in self.r_max.items():
                check_number(f"r_max of '{metric}'", bound, above=0.0)
        elif self.r_max is not None:
            check_number("r_max", self.r_max, above=0.0)

    def __repr__(self) -> str:
        return call_text(self, changed_fields(self))

    @property
    def cap_number(self) -> float:
        """The cap; of `auto`, which the number takes the place of before a log is folded, the default."""
        return DEFAULT_CAP if isinstance(self.cap, str) else self.cap

    @property
    def bound_number(self) -> float:
        """The bound on normalised weights; of `auto` the least of those that are chosen from."""
        return DEFAULT_BOUND if isinstance(self.weight_bound, str) else self.weight_bound

    def gamma_at(self, *, by_slot: bool) -> tuple[float, float]:
        """The factors (down, up) of what unsupported recommendations may earn, for estimators by slot or by ranking."""
        return self.gamma or (self.gamma_slots if by_slot else GAMMA)

    def replace(self, **changes: Any) -> Analysis:
        """A copy with other values; an unknown name is refused."""
        refuse_unknown("[analysis]", changes, [f.name for f in dataclasses.fields(self)])
        return dataclasses.replace(self, **changes)


def _check_estimators(items: tuple[Any, ...]) -> None:
    from foretest.estimators import ESTIMATORS, Estimator

    for item in items:
        if isinstance(item, type) and issubclass(item, Estimator):
            raise BadInput(f"estimators holds the class {item.__name__}: write {item.__name__}().")
        if not isinstance(item, Estimator):
            choose("estimator", item, ESTIMATORS)


def _check_predictions(given: Any) -> None:
    columns = list(given.values()) if isinstance(given, Mapping) else [given]
    if given is not None and not (columns and all(isinstance(column, str) for column in columns)):
        raise BadInput(
            f"predictions = {given!r}: expected the name of a list column, or one for each reward, as in"
            ' {click = "predicted_clicks"}.'
        )


def _gamma(name: str, value: Any) -> tuple[float, float]:
    """One number for both ends of the sensitivity band, or a pair."""
    ends = tuple(value) if isinstance(value, list | tuple) else (value,)
    if len(ends) not in (1, 2):
        raise BadInput(f"{name} = {value!r}: expected one number, or two as in [1.15, 1.3].")
    for end in ends:
        check_number(name, end, at_least=1.0)
    return float(ends[0]), float(ends[-1])
