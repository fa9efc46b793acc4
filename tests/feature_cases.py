"""Features of a test that may go together: what each adds to the settings, one log that has the columns of all, and
sets of features in which every pair occurs. The pairwise test and `benchmarks/compare_trees.py` share them."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import foretest as ft
from tests.late_log import BEGIN
from tests.support import list_column

ESTIMATORS = (
    "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive", "slot-ncis-adaptive", "cascade-ncis-adaptive",
    "exposure-ncis-adaptive",
)  # fmt: skip
LINEAR = ("is", "cis", "point-ncis", "point-ncis-adaptive")  # those that a packed log serves without its other rows
BOUNDED = ["cis", "point-ncis-adaptive", "slot-ncis-adaptive"]  # those whose rows have a known range
READ_AT = "2026-03-09"  # two days after the last display
LOGGERS = ("new", "old")

#: the settings of a test without any feature, by table of the settings file
PLAIN: dict[str, Any] = {
    "log": {
        "rewards": ["click", "revenue"], "unit": "user", "ranking": "ranking", "id": "id",
        "slot_rewards": {"click": "slot_click", "revenue": "slot_revenue"},
    },
    "control": {"policy": "plackett-luce", "scores": "control_scores"},
    "treatment": {"policy": "plackett-luce", "scores": "treatment_scores"},
    "metrics": {},
    "analysis": {
        "estimators": list(ESTIMATORS), "cap": 5.0, "weight_bound": 8.0, "strata": "stratum", "value": "v",
        "n_resamples": 60, "examination": [1.0, 0.6],
    },
}  # fmt: skip


Pair = frozenset[str]


class Feature(NamedTuple):
    """What a feature adds to each table of the settings; a key of None is taken out, lists of rewards are joined."""

    log: Mapping[str, Any] = {}
    control: Mapping[str, Any] = {}
    treatment: Mapping[str, Any] = {}
    metrics: Mapping[str, Any] = {}
    analysis: Mapping[str, Any] = {}
    several: bool = False  # loggers
    second: Mapping[str, Any] | None = None  # a treatment beside the first
    road: str | None = None  # how the log becomes an answer, where it is not read as it is


WINDOW = {"time": "ts", "reward_time": "clicked_at", "read_at": READ_AT}
FIT = {"temperature": "fit"}

#: those of which the pairwise test has every pair
FEATURES: dict[str, Feature] = {
    "thinned": Feature(log={"keep": "keep"}),
    # with the day: sums of several logs add up where each day has its own shares
    "loggers": Feature(log={"logger": "policy", "date": "day"}, analysis={"baseline": "new"}, several=True),
    "treatments": Feature(second={"scores": "other_scores"}),
    "segments": Feature(log={"segments": ["stratum"]}),
    "days": Feature(log={"date": "day", "time": "ts"}),
    "losses": Feature(log={"rewards": ["hide"], "slot_rewards": {"hide": "slot_hide"}},
                      metrics={"net": {"sum": {"click": 2.0, "hide": -1.0}}}),
    "ratio": Feature(metrics={"rpc": {"ratio": ["revenue", "click"]}}),
    "per unit": Feature(metrics={"cpu": {"per": "unit", "of": "click"}}),
    "own candidates": Feature(
        log={"ranking": "shown"}, control={"candidates": "control_items"},
        treatment={"candidates": "treatment_items"}, second={"candidates": "other_items"},
    ),
    "fitted control": Feature(control=FIT, treatment={"temperature": 1.0}, second={"temperature": 1.0}),
    "fitted curve": Feature(analysis={"examination": "fit"}),
    "window": Feature(log=WINDOW, analysis={"window": "2d"}),
    "saved": Feature(road="saved"),
    "packed": Feature(road="packed"),
    "spark": Feature(road="spark"),
}  # fmt: skip

#: pairs that cannot be had, with the sentence that says why
REFUSED: dict[Pair, str] = {
    frozenset(pair): sentence
    for *pair, sentence in (
        ("thinned", "per unit", 'per = "unit": of a thinned log .* nobody knows how many displays a user had'),
        ("loggers", "own candidates", r"candidates of their own are for one \[control\]"),
        ("fitted control", "fitted curve", "would be fitted by a control that is fitted itself"),
        ("fitted control", "saved", "sums of several days add up only under one number"),
        ("fitted control", "packed", "a packed log keeps sums under one number"),
    )
}

#: pairs that ought to run and do not: what is raised today. Nothing may be added here without being mended soon
HOLES: dict[Pair, tuple[type[Exception], str]] = {
    # saving leaves the estimator out, which the settings list, and reading then says to save again
    frozenset(("fitted curve", "saved")): (ft.BadInput, "made without exposure-ncis-adaptive.* Fold the log again"),
}

#: more of them, which the comparison of two trees has alone and in many pairs
MORE: dict[str, Feature] = {
    "signed": Feature(log={"rewards": ["balance"], "slot_rewards": {"balance": "slot_balance"}},
                      metrics={"balance": {"signed": True}}),
    "winsorised": Feature(metrics={"revenue": {"winsorise": 0.9}}),
    "date": Feature(log={"date": "day"}),
    "undated loggers": Feature(log={"logger": "policy"}, analysis={"baseline": "new"}, several=True),
    "roles": Feature(metrics={"click": {"role": "goal"}, "revenue": {"role": "guardrail", "margin": 0.1}}),
    "times": Feature(log=WINDOW),
    "cap of the log": Feature(analysis={"cap": "auto"}),
    "bound of the log": Feature(analysis={"weight_bound": "auto"}),
    "all estimators": Feature(analysis={"estimators": None}),
    "reward model": Feature(analysis={
        "predictions": {"click": "predicted_click", "revenue": "predicted_revenue"},
        "estimators": ["dr", "point-dr-adaptive", "cascade-dr", "point-ncis-adaptive"],
    }),
    "value model": Feature(log={"features": ["age"]}, analysis={"strata": None, "value": None}),
    "delta": Feature(analysis={"interval": "delta", "n_resamples": None}),
    "bernstein": Feature(analysis={"interval": "bernstein", "r_max": 60.0, "estimators": BOUNDED}),
    "betting": Feature(analysis={"interval": "betting", "r_max": 60.0, "estimators": BOUNDED}),
    "largest reward": Feature(analysis={"r_max": {"click": 1.0, "revenue": 50.0}}),
    "band": Feature(analysis={"decide_on": "band", "gamma": [1.2, 1.5]}),
    "zero": Feature(analysis={"capping": "zero", "estimators": ["is", "cis", "ncis", "piece-ncis", "point-ncis"]}),
    "drawn normaliser": Feature(analysis={"normaliser": "midzuno-sen", "draws": 32}),
    "no slots": Feature(log={"slot_rewards": None}, analysis={"estimators": ["ncis", "point-ncis-adaptive"],
                                                              "examination": None}),
    "no unit": Feature(log={"unit": None}),
    "no id": Feature(log={"id": None}),
    "trained": Feature(log={"date": "day"}, treatment={"trained_until": "2026-03-02"},
                       second={"trained_until": "2026-03-02"}),
    "one cut": Feature(metrics={"revenue": {"winsorise": {"limit": 2.0}}}),
}  # fmt: skip


def settings_of(names: Iterable[str], **changes: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of the settings with these features; then of each table in `changes` some keys."""
    tables, several, second = copy.deepcopy(PLAIN), False, None
    of_name = {**FEATURES, **MORE}
    chosen = [of_name[name] for name in names]
    for feature in [*chosen, Feature(**changes)]:
        for table in ("log", "control", "treatment", "metrics", "analysis"):
            _merge(tables[table], getattr(feature, table))
        several = several or feature.several
    if several:
        _several(tables)
    if any(feature.second is not None and "scores" in feature.second for feature in chosen):
        second = dict(tables["treatment"])
        for feature in chosen:
            second |= feature.second or {}
        tables["treatment"] = [{"name": "first", **tables["treatment"]}, {"name": "second", **second}]
    if not tables["log"].get("slot_rewards"):
        return tables
    slots = tables["log"]["slot_rewards"]  # of the rewards that the log has
    tables["log"]["slot_rewards"] = {name: slots[name] for name in tables["log"]["rewards"]}
    return tables


def _several(tables: dict[str, Any]) -> None:
    control = tables["control"]
    tables["control"] = [{"name": name, **control, "scores": f"{name}_scores"} for name in LOGGERS]


def _merge(table: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if value is None:
            table.pop(key, None)
        elif key == "rewards":
            table[key] = [*table[key], *value]
        elif isinstance(value, Mapping) and isinstance(table.get(key), Mapping):
            table[key] = {**table[key], **value}
        else:
            table[key] = value


def roads_of(names: Iterable[str]) -> list[str]:
    """How the log becomes an answer, where not as it is."""
    of_name = {**FEATURES, **MORE}
    return [road for name in names if (road := of_name[name].road) is not None]


# -- settings as a file ---------------------------------------------------------------------------------------------


def toml_of(tables: Mapping[str, Any]) -> str:
    """The tables as a settings file has them."""
    lines: list[str] = []
    for name, table in tables.items():
        several = isinstance(table, list)
        for entry in table if several else [table]:
            if name == "metrics":
                for metric, keys in entry.items():
                    lines += [f"[metrics.{metric}]", *_keys(keys), ""]
            else:
                lines += [f"[[{name}]]" if several else f"[{name}]", *_keys(entry), ""]
    return "\n".join(lines)


def _keys(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in table.items()]


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_value(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


# -- the log --------------------------------------------------------------------------------------------------------


def feature_log(rows: int = 500, *, loggers: bool = False, units: int = 100, seed: int = 0) -> pa.Table:
    """A log with the columns of all features, in the order of time: of one policy, or of two."""
    g = np.random.default_rng(seed)
    m, k, at = 4, 2, np.arange(rows)[:, None]
    base = g.normal(size=(rows, m))
    scores = {"control": base}
    scores |= {name: base + 0.7 * g.normal(size=(rows, m)) for name in (*LOGGERS, "treatment", "other")}
    policy = np.where(g.random(rows) < 0.4, 1, 0) if loggers else np.zeros(rows, int)
    served = np.where(policy[:, None] == 1, scores["old"], scores["new"]) if loggers else base
    ranking = np.argsort(-(served + g.gumbel(size=(rows, m))), axis=1)[:, :k]  # Plackett-Luce
    time = BEGIN + np.sort(g.random(rows) * 6 * 86_400).astype("timedelta64[s]").astype("timedelta64[us]")
    age = g.exponential(86_400.0, rows).astype("timedelta64[s]").astype("timedelta64[us]")
    age = np.minimum(age, np.datetime64(READ_AT, "us") - time)
    stratum = g.integers(0, 2, rows)
    clicked = g.random(rows) < 0.25 + 0.25 * (ranking[:, 0] == 0) + 0.1 * stratum
    click = clicked.astype(float)
    revenue = click * np.exp(0.4 * g.normal(size=rows))
    hide = (clicked & (g.random(rows) < 0.6)).astype(float)
    slot = np.eye(k)[g.integers(0, k, rows)]
    rewards = {"click": click, "revenue": revenue, "hide": hide, "balance": revenue - 1.5 * hide}
    items = 10 + np.argsort(g.random((rows, 7)), axis=1)
    control_items = items[:, :m]
    treatment_items = np.where(np.arange(m) < m - 1, items[:, :m], items[:, m : 2 * m - 1].max(axis=1)[:, None])
    other_items = items[:, [2, 1, 0, 3]]
    names = np.array(LOGGERS)
    return pa.table({
        **rewards,
        **{f"slot_{name}": list_column(slot * r[:, None]) for name, r in rewards.items()},
        "user": g.integers(0, units, rows), "id": np.arange(rows), "stratum": stratum, "age": g.normal(size=rows),
        "v": 0.2 + 0.1 * stratum + 0.1 * g.random(rows),
        "ranking": list_column(ranking.astype(np.int32)),
        "shown": list_column(control_items[at, ranking]),
        "control_items": list_column(control_items), "treatment_items": list_column(treatment_items),
        "other_items": list_column(other_items),
        **{f"{name}_scores": list_column(s) for name, s in scores.items()},
        **{f"predicted_{name}": list_column(0.2 * np.exp(0.3 * g.normal(size=(rows, m)))) for name in
           ("click", "revenue")},
        "keep": 1.0 / g.integers(1, 5, rows), "kept_all": np.ones(rows), "policy": names[policy],
        "day": time.astype("datetime64[D]").astype(str).astype(object), "ts": time,
        "clicked_at": pa.array(time + age, mask=~clicked),
    })  # fmt: skip


# -- every pair -----------------------------------------------------------------------------------------------------


def pairs_of(names: Collection[str]) -> set[Pair]:
    return {frozenset(pair) for pair in combinations(names, 2)}


def covering_cases(
    names: Sequence[str], refused: Collection[Pair], size: int = 6, seed: int = 0, tries: int = 40
) -> list[tuple[str, ...]]:
    """Sets of at most `size` features, none with a refused pair, in which every other pair occurs. Each set is the best
    of some that begin with an open pair and grow by the feature that covers most."""
    random, left = Random(seed), pairs_of(names) - set(refused)
    cases = []
    while left:
        grown = [_grown(random, names, left, refused, size) for _ in range(tries)]
        best = max(grown, key=lambda case: len(pairs_of(case) & left))
        left -= pairs_of(best)
        cases.append(tuple(name for name in names if name in best))
    return cases


def _grown(random: Random, names: Sequence[str], left: set[Pair], refused: Collection[Pair], size: int) -> set[str]:
    case = set(random.choice(sorted(left, key=sorted)))
    while len(case) < size:
        fitting = [name for name in names if name not in case
                   and not any(frozenset((name, other)) in refused for other in case)]  # fmt: skip
        gains = {name: sum(frozenset((name, other)) in left for other in case) for name in fitting}
        best = max(gains.values(), default=0)
        if best == 0:
            break
        case.add(random.choice([name for name in fitting if gains[name] == best]))
    return case
