"""The settings of a test: one set of dataclasses behind the Python API, the command line and the TOML file."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from foretest.errors import BadInput, choose, nearest

if TYPE_CHECKING:
    from foretest.policies import Policy
    from foretest.roles import MetricRole

NORMALISERS = ("auto", "exact", "midzuno-sen", "lahiri", "two-sided")
INTERVALS = ("bootstrap", "delta", "bernstein", "betting")
BOUNDED = ("bernstein", "betting")  # those that need the range of a row
CAPPINGS = ("max", "zero")
DECIDE_ON = ("interval", "band")
VALUE_MODEL = "value-model"
AUTO = "auto"
DEFAULT_CAP = 100.0
MOST_STRATA = 1000
TREATMENT = "treatment"  # the name of one alone


def _doc(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class LogColumns:
    """Which column plays which role in the log; one row is one display.

    >>> LogColumns(rewards=["click"], unit="user").rewards
    ('click',)
    """

    rewards: tuple[str, ...]
    unit: str | None = None
    ranking: str | None = None
    candidates: str | None = None
    id: str | None = None
    date: str | None = None
    features: tuple[str, ...] = ()
    slot_rewards: Mapping[str, str] | None = None
    segments: tuple[str, ...] = ()
    logger: str | None = None

    def __post_init__(self) -> None:
        for name in ("rewards", "features", "segments"):
            object.__setattr__(self, name, _names(f"[log] {name}", getattr(self, name)))
        for name in ("unit", "ranking", "candidates", "id", "date", "logger"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise BadInput(f"[log] {name} = {value!r}: expected the name of a column.")
        if not self.rewards:
            raise BadInput("[log] rewards is empty: name at least one reward column.")
        if len(set(self.rewards)) < len(self.rewards):
            raise BadInput(f"[log] rewards names a column twice: {', '.join(self.rewards)}.")
        if len(set(self.segments)) < len(self.segments):
            raise BadInput(f"[log] segments names a column twice: {', '.join(self.segments)}.")
        if self.candidates is not None and self.ranking is None:
            raise BadInput("[log] candidates is given without ranking: name the column of the shown items too.")
        if self.slot_rewards is not None:
            self._check_slots(self.slot_rewards)

    def _check_slots(self, slot_rewards: Any) -> None:
        if not isinstance(slot_rewards, Mapping) or not all(isinstance(v, str) for v in slot_rewards.values()):
            raise BadInput(
                f"[log] slot_rewards = {slot_rewards!r}: expected a list column for each metric, as in"
                f' {{{self.rewards[0]} = "slot_{self.rewards[0]}"}}.'
            )
        for name in slot_rewards:
            if name not in self.rewards:
                raise BadInput(
                    f"[log] slot_rewards names '{name}', which is no reward.{nearest(str(name), self.rewards)}"
                    f" The rewards are: {', '.join(self.rewards)}."
                )
        if self.ranking is None:
            raise BadInput("[log] slot_rewards is given without ranking: name the column of the shown items too.")


@dataclass(frozen=True)
class Analysis:
    """How the log is analysed: the keys of the settings file's [analysis] table."""

    estimators: tuple[Any, ...] | None = _doc(None, "estimators to run; default: all that columns and policies allow")
    cap: float | str = _doc(DEFAULT_CAP, "the cap c on importance weights; auto: chosen from weights alone")
    capping: str = _doc("max", "max: min(w, c); zero: w if w < c else 0")
    weight_bound: float = _doc(20.0, "the adaptive cap's bound on every normalised weight")
    headline: str | None = _doc(None, "the estimator whose verdict is the metric's")
    normaliser: str = _doc("auto", "auto | exact | midzuno-sen | lahiri | two-sided")
    draws: int = _doc(256, "rankings drawn for each display's normaliser")
    confidence_level: float = _doc(0.90, "of every interval")
    interval: str = _doc("bootstrap", "bootstrap | delta | bernstein | betting")
    n_resamples: int = _doc(1000, "bootstrap replicates")
    buckets: int = _doc(1024, "hash buckets of units that the intervals resample")
    strata: str = _doc(VALUE_MODEL, "value-model, or the name of a column")
    strata_base: float = _doc(2.0, "b of the value bins [b^k, b^(k+1))")
    value: str | None = _doc(None, "the column with a logged V(x)")
    value_log: str | None = _doc(None, "a separate log to fit V(x) on")
    folds: int = _doc(2, "folds of the cross-fitted V(x), by unit")
    seed: int = _doc(0, "of draws, resamples and folds")
    gamma: tuple[float, float] = _doc(
        (1.15, 1.3), "how many times less and more than supported recommendations unsupported ones may earn"
    )
    decide_on: str = _doc("interval", "interval | band: what the verdict of point estimators looks at")
    r_max: float | Mapping[str, float] | None = _doc(None, "largest possible reward, for bounds; 1 for bool columns")
    ignore_audit: bool = _doc(False, "let verdicts stand although the propensity audit fails")
    baseline: str | None = _doc(None, "of several loggers, the one that the treatment is compared with")

    def __post_init__(self) -> None:
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
        check_number("weight_bound", self.weight_bound, at_least=1.0)
        check_number("strata_base", self.strata_base, above=1.0)
        check_number("confidence_level", self.confidence_level, above=0.0, below=1.0)
        for name, least in (("draws", 2), ("n_resamples", 1), ("buckets", 2), ("folds", 2), ("seed", 0)):
            _integer(name, getattr(self, name), least)
        if self.draws % 2:
            raise BadInput(f"draws = {self.draws}: expected an even number, half for each policy.")
        choices = {"capping": CAPPINGS, "normaliser": NORMALISERS, "interval": INTERVALS, "decide_on": DECIDE_ON}
        for name, options in choices.items():
            choose(name, getattr(self, name), options)
        object.__setattr__(self, "gamma", _gamma(self.gamma))
        if isinstance(self.value_log, os.PathLike):
            object.__setattr__(self, "value_log", os.fspath(self.value_log))
        for name in ("headline", "value", "value_log", "baseline"):
            if getattr(self, name) is not None and not isinstance(getattr(self, name), str):
                raise BadInput(f"{name} = {getattr(self, name)!r}: expected text.")
        if not isinstance(self.ignore_audit, bool):
            raise BadInput(f"ignore_audit = {self.ignore_audit!r}: expected true or false.")
        if not isinstance(self.strata, str):
            raise BadInput(f'strata = {self.strata!r}: expected "value-model" or the name of a column.')
        if self.value is not None and self.value_log is not None:
            raise BadInput("value and value_log are both given: V(x) comes from a column or from a separate log.")
        if isinstance(self.r_max, Mapping):
            for metric, bound in self.r_max.items():
                check_number(f"r_max of '{metric}'", bound, above=0.0)
        elif self.r_max is not None:
            check_number("r_max", self.r_max, above=0.0)

    @property
    def cap_number(self) -> float:
        """The cap; of `auto`, which the number takes the place of before a log is folded, the default."""
        return DEFAULT_CAP if isinstance(self.cap, str) else self.cap

    def replace(self, **changes: Any) -> Analysis:
        """A copy with other values; an unknown name is refused."""
        refuse_unknown("[analysis]", changes, [f.name for f in dataclasses.fields(self)])
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True)
class Online:
    """The settings of the online test of the same change."""

    split: tuple[float, float] = (0.5, 0.5)

    def __post_init__(self) -> None:
        shares = self.split
        if not isinstance(shares, list | tuple) or len(shares) != 2 or not all(
            isinstance(s, int | float) and not isinstance(s, bool) and 0 < s < 1 for s in shares
        ) or abs(sum(shares) - 1.0) > 1e-9:  # fmt: skip
            raise BadInput(f"[online] split = {shares!r}: expected two shares that sum to 1, as in [0.5, 0.5].")
        object.__setattr__(self, "split", tuple(shares))


@dataclass(frozen=True)
class Settings:
    """Everything a settings file says."""

    log: LogColumns
    control: Policy
    treatment: Policy  # the first, where there are several
    analysis: Analysis = field(default_factory=Analysis)
    online: Online = field(default_factory=Online)
    treatments: Mapping[str, Policy] = field(default_factory=dict)  # by name, the first included
    metrics: Mapping[str, MetricRole] = field(default_factory=dict)  # what a metric is for, where it is told

    def __post_init__(self) -> None:
        if not isinstance(self.log, LogColumns):
            raise BadInput(
                f"log is of type {type(self.log).__name__}: expected LogColumns, the names of the log's columns;"
                " the log itself is given to run()."
            )
        self._check_loggers()
        for role in ("control", "treatment"):
            _check_policy(role, getattr(self, role))
        self._check_treatments()
        if self.metrics:
            from foretest.roles import checked_roles

            object.__setattr__(self, "metrics", checked_roles(self.metrics, self.log.rewards))
        if isinstance(self.analysis.r_max, Mapping):
            for name in self.analysis.r_max:
                if name not in self.log.rewards:
                    raise BadInput(
                        f"[analysis] r_max names '{name}', which is no reward.{nearest(name, self.log.rewards)}"
                        f" The rewards are: {', '.join(self.log.rewards)}."
                    )

    def _check_loggers(self) -> None:
        """Several policies by name produced the log together: they become one that prices rows by their mixture."""
        from foretest.policies.pooled import Pooled

        given, baseline = self.control, self.analysis.baseline
        if isinstance(given, Mapping):
            for name, policy in given.items():
                if not isinstance(name, str) or not name.strip():
                    raise BadInput(f"a control is named {name!r}: expected text, as the logger column has it.")
                _check_policy(f"the control '{name}'", policy)
            if not given:
                raise BadInput("control is empty: give a policy, or a dict of name to policy.")
            names = ", ".join(given)
            if self.log.logger is None:
                raise BadInput(
                    f"there are several controls ({names}), and no column says which of them showed a row: name it in"
                    ' [log] logger, as in logger = "policy".'
                )
            if baseline is None:
                raise BadInput(
                    f"there are several controls ({names}): say which of them the treatment is compared with, as in"
                    f' [analysis] baseline = "{next(iter(given))}".'
                )
            choose("[analysis] baseline", baseline, given)
            object.__setattr__(self, "control", Pooled(given, baseline))
            return
        several: Any = getattr(given, "loggers", None)
        if several is not None and baseline not in several:
            choose("[analysis] baseline", baseline, several)
        if several is not None and baseline != getattr(given, "baseline", baseline):
            object.__setattr__(self, "control", Pooled(several, str(baseline), getattr(given, "shares", None)))
        if several is None and self.log.logger is not None:
            raise BadInput(
                f'[log] logger = "{self.log.logger}" is given, and one control: give a [[control]] table, with a name,'
                " for each policy that the column names, or leave logger out."
            )
        if several is None and baseline is not None:
            raise BadInput(f"baseline = {baseline!r} is for several [[control]] tables, and there is one control.")

    def _check_treatments(self) -> None:
        """One alone is named "treatment", unless it was given a name."""
        named = dict(self.treatments) or {TREATMENT: self.treatment}
        for name, policy in named.items():
            if not isinstance(name, str) or not name.strip():
                raise BadInput(f"a treatment is named {name!r}: expected text.")
            _check_policy(f"the treatment '{name}'", policy)
        if len(named) == 1:
            named = dict.fromkeys(named, self.treatment)
        elif next(iter(named.values())) is not self.treatment:
            raise ValueError("`treatment` is the first of `treatments`")
        object.__setattr__(self, "treatments", named)

    def each_treatment(self) -> dict[str, Settings]:
        """The same settings for every treatment alone, by its name."""
        if len(self.treatments) == 1:
            return dict.fromkeys(self.treatments, self)
        return {
            name: dataclasses.replace(self, treatment=policy, treatments={name: policy})
            for name, policy in self.treatments.items()
        }


def with_cap(settings: Settings, cap: float) -> Settings:
    """The same settings with a number for the cap."""
    return dataclasses.replace(settings, analysis=settings.analysis.replace(cap=cap))


def refuse_unknown(where: str, table: Mapping[str, Any], known: list[str]) -> None:
    """Refuse the first key that is not known, with the nearest that is, or the table it belongs to."""
    for key in table:
        if key not in known:
            elsewhere = _homes() if where.startswith(("[", "the settings file")) else _homes(policies=False)
            home = next((name for name, keys in elsewhere.items() if key in keys and name != where), None)
            hint = f" It belongs in {home}." if home else nearest(key, known)
            raise BadInput(f"{where} has an unknown key '{key}'.{hint} Known: {', '.join(known)}.")


def _homes(policies: bool = True) -> dict[str, set[str]]:
    """The keys of each table."""
    tables = {"[log]": LogColumns, "[analysis]": Analysis, "[online]": Online}
    homes = {name: {f.name for f in dataclasses.fields(cls)} for name, cls in tables.items()}
    if policies:
        homes["[control] or [treatment]"] = {"policy", "scores", "temperature", "prob", "log_prob", "components"}
    return homes


def _check_estimators(items: tuple[Any, ...]) -> None:
    from foretest.estimators import ESTIMATORS, Estimator

    for item in items:
        if isinstance(item, type) and issubclass(item, Estimator):
            raise BadInput(f"estimators holds the class {item.__name__}: write {item.__name__}().")
        if not isinstance(item, Estimator):
            choose("estimator", item, ESTIMATORS)


def _check_policy(role: str, policy: Any) -> None:
    if isinstance(policy, type):
        raise BadInput(f"{role} is the class {policy.__name__}: expected a policy, as in {policy.__name__}(…).")
    for method in ("log_prob", "sample"):
        if not callable(getattr(policy, method, None)):
            raise BadInput(
                f'{role} = {policy!r} has no {method}: expected a policy, as in PlackettLuce(scores="column"),'
                " or an object with log_prob(displays, rankings) and sample(displays, uniforms)."
            )


def _gamma(value: Any) -> tuple[float, float]:
    """One number for both ends of the sensitivity band, or a pair."""
    ends = tuple(value) if isinstance(value, list | tuple) else (value,)
    if len(ends) not in (1, 2):
        raise BadInput(f"gamma = {value!r}: expected one number, or two as in [1.15, 1.3].")
    for end in ends:
        check_number("gamma", end, at_least=1.0)
    return float(ends[0]), float(ends[-1])


def _names(where: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
        raise BadInput(f'{where} = {value!r}: expected a list of column names, as in ["click"].')
    return tuple(value)


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
) -> None:
    """Refuse what is not a finite number within the limits."""
    good = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    limits = []
    if above is not None:
        good = good and value > above
        limits.append(f"above {above:g}")
    if at_least is not None:
        good = good and value >= at_least
        limits.append(f"of at least {at_least:g}")
    if below is not None:
        good = good and value < below
        limits.append(f"below {below:g}")
    if not good:
        finite = "finite " if isinstance(value, float) and not math.isfinite(value) else ""
        percent = f" For {value} % write {value / 100:g}." if below == 1.0 and _is_percent(value) else ""
        raise BadInput(f"{name} = {value!r}: expected a {finite}number {' and '.join(limits)}.{percent}")


def _is_percent(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 50 <= value < 100


def _integer(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise BadInput(f"{name} = {value!r}: expected a whole number of at least {least}.")
