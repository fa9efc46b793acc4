"""Aggregates of layout 2, whose sums were fields and had names of text, as the tree of today's.

Only names and places change: arrays are taken over as they are, those of several metrics in one cut apart, and single
numbers made arrays of one. This is the table of old names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation import quantities as q
from foretest.aggregation.flat import Flat
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.groups import MOST_VALUES
from foretest.aggregation.quantities import Quantity

_Node = Any
_Items = Iterator[tuple[Any, _Node]]

#: sums of one weighting and metric, by their old name
_PLAIN = {
    "h": q.WEIGHTS, "h2": q.SQUARED_WEIGHTS, "hr": q.WEIGHTED_REWARDS, "hr2": q.SQUARED_WEIGHTED_REWARDS,
    "hrr": q.WEIGHTED_SQUARES, "hv": q.PREDICTED_BESIDE, "t": q.UNSUPPORTED_REWARDS, "slice": q.SLICE,
    "slice_expected": q.SLICE_EXPECTED, "model_moments": q.MODEL_MOMENTS, "bound_gains": q.BOUND_GAINS,
    "bound_count": q.BOUND_COUNT, "noise_second": q.NOISE_SECOND, "noise_rewards": q.NOISE_REWARDS,
    "noise_positives": q.NOISE_POSITIVES, "noise_count": q.NOISE_COUNT,
    **{quantity.name: quantity for quantity in (*q.NOISE_OBSERVED, *q.NOISE_EXPECTED, *q.BOUND_PRODUCTS.values())},
}  # fmt: skip
_BY_SLOT = {"h": q.SLOT_WEIGHTS, "n": q.SLOT_DISPLAYS, "hr": q.SLOT_WEIGHTED_REWARDS}
_BY_STRATUM = {"h": q.STRATUM_WEIGHTS, "hr": q.STRATUM_WEIGHTED_REWARDS}
_SLOPES = {"slope_hr": q.SLOPE, "slope_t": q.SLOPE_UNSUPPORTED}
_OF_PARTS = {"n": q.DISPLAYS, "rewarded": q.REWARDED_ROWS}
_OF_METRICS = {"r": q.REWARDS, "r2": q.SQUARED_REWARDS, "positives": q.POSITIVES}
_BEFORE = {"supported": q.SUPPORTED_BEFORE, "second": q.SECOND_BEFORE}
_BINS = (q.BIN_REWARDS, q.BIN_WEIGHTED_REWARDS, q.BIN_SQUARED_REWARDS, q.BIN_SQUARED_WEIGHTED_REWARDS)
#: columns of kept rows, by what is behind the colon of their old name
_OF_WEIGHTINGS = ("log_h", "log_cap", "second", "q", "unsupported", "log_capped")
_OF_NUMBERS = ("r", "slot", "company", "above", "below")
_OF_TEXTS = (
    "number", "text", "stratum", "own total", "own surprise", "own variance", "own bridge proposal",
    "own bridge policy", "own bridge variance",
)  # fmt: skip


def in_layout_of_today(flat: Flat, plan: FoldPlan) -> Flat:
    """Aggregates as they are written today; those of today as they are."""
    if "ledger" in flat.tree["fields"]:
        return flat
    arrays = dict(flat.arrays)
    return Flat(_Converter(arrays, plan).aggregates(flat.tree["fields"], ""), arrays)


class _Sum(NamedTuple):
    """A sum: its key in an account, as the tree has it, and its node."""

    quantity: Quantity
    node: _Node
    metric: int | None = None
    owner: Any = None


class _Converter:
    """Makes the tree, and new arrays where old ones are cut or made of numbers."""

    def __init__(self, arrays: dict[str, Any], plan: FoldPlan) -> None:
        self.arrays, self.plan = arrays, plan
        self.weightings = [{"object": repr(weighting)} for weighting in plan.point_weightings]

    def aggregates(self, old: dict[str, _Node], path: str) -> _Node:
        cells = len(self.arrays[old["n"]["array"]])
        accounts = [self._account(None, None, None, self._plain_sums(old, path))]
        for weighting, node in _items(old["h"]):
            accounts.append(self._scaled(weighting, None, node))
        for (weighting, metric), node in ((key["tuple"], node) for key, node in _items(old["hr"])):
            accounts.append(self._scaled(weighting, metric, node))
        fields = {
            "plan": {"plan": True},
            "ledger": _ledger(cells, accounts, old["strata"], None),
            "rewarded": self._rows(old["rewarded"]),
            "sample": self._rows(old["sample"]),
            "units": old["units"],
            "sampled": old["sampled"],
            "treatments": {
                "map": [
                    [name, self.aggregates(node["fields"], f"{path}/treatments/{name}")]
                    for name, node in _items(old["treatments"])
                ]
            },
            "segments": {
                "map": [
                    [name, self._parts(node["fields"], f"{path}/segments/{name}")]
                    for name, node in _items(old["segments"])
                ]
            },
        }
        if "replay" in old:
            counts = old["replay"]["fields"]
            first = (counts["first_position"], counts["first_id"])
            found = {"rows": counts["rows"], "differ": counts["differ"]}
            found["first"] = {"tuple": list(first)} if first[0] >= 0 else None
            fields["replay"] = {"class": "ReplaySums", "fields": found}
        if "large_units" in old:
            fields["large_units"] = old["large_units"]
        return {"class": "Aggregates", "fields": fields}

    # -- sums in which no weight is -------------------------------------------------------------------------------

    def _plain_sums(self, old: dict[str, _Node], path: str) -> Iterator[_Sum]:
        yield _Sum(q.DISPLAYS, old["n"])
        yield _Sum(q.CAPPED_ROWS, self._number(path, "capped_rows", old))
        yield _Sum(q.LARGEST_LOG_WEIGHT, self._number(path, "max_log_w", old))
        for name, quantity in _OF_METRICS.items():
            yield from self._rows_of(quantity, old[name])
        for key, node in _items(old["v"]):
            label, metric = key["tuple"]
            if label.endswith(": squares"):
                yield _Sum(q.UPLIFTS, self._uplifts(node, old), metric, label.removesuffix(": squares"))
            else:
                yield _Sum(q.EXPECTED, node, metric, label)
        for table, node in _items(old["strata_n"]):
            yield _Sum(q.STRATUM_DISPLAYS, node, None, table)
        for field, quantity in (("unsupported", q.UNSUPPORTED), ("approximate", q.APPROXIMATE)):
            for weighting, count in _items(old[field]):
                yield _Sum(quantity, self._new(f"{path}/{field}/{weighting['object']}", [count]), None, weighting)
        bins = old["bins"]["fields"]
        yield _Sum(q.BIN_DISPLAYS, bins["n"])
        yield _Sum(q.BIN_WEIGHTS, bins["w"])
        name = bins["by_metric"]["array"]
        for m, of_metric in enumerate(self.arrays[name]):
            for quantity, array in zip(_BINS, of_metric, strict=True):
                yield _Sum(quantity, self._new(f"{name}/{m}/{quantity.name}", array), m)
        if "cut" in old:
            yield _Sum(q.CUT, old["cut"])
        if "trained" in old:
            yield _Sum(q.LEFT_OUT_AS_TRAINED, old["trained"])
        if "ages" in old:
            yield from self._ages(old["ages"]["fields"])
        if "thinned" in old:
            yield from self._thinned(old["thinned"]["fields"], f"{path}/thinned")

    def _thinned(self, old: dict[str, _Node], path: str) -> Iterator[_Sum]:
        yield _Sum(q.ROWS, old["rows"])
        yield _Sum(q.KEEP, old["keep"])
        yield _Sum(q.LARGEST_LOG_SHARE, self._number(path, "max_log_weight", old))
        yield from self._rows_of(q.POSITIVE_DISPLAYS, old["positives"])
        name = old["squares"]["array"]
        squares = self.arrays[name]
        yield _Sum(q.SQUARES, self._new(f"{name}/all", squares[:1]))
        for m in range(len(squares) - 1):
            yield _Sum(q.SQUARES_REWARDS, self._new(f"{name}/{m}", squares[m + 1 : m + 2]), m)
        for table, node in _items(old["strata"]):
            yield _Sum(q.STRATUM_ROWS, node, None, table)

    def _ages(self, old: dict[str, _Node]) -> Iterator[_Sum]:
        yield _Sum(q.AGES_OF_REWARDS, old["rewarded"])
        yield _Sum(q.AGES_OF_WAITING, old["waiting"])
        yield _Sum(q.LEFT_OUT_OF_WINDOW, old["left_out"])
        yield _Sum(q.LATE_REWARDS, old["late"])
        name = old["read_at"]["array"]
        first, last = self.arrays[name]
        yield _Sum(q.FIRST_READ, self._new(f"{name}/first", [first]))
        yield _Sum(q.LAST_READ, self._new(f"{name}/last", [last]))

    def _uplifts(self, node: _Node, old: dict[str, _Node]) -> _Node:
        """Σ δ and Σ δ² of a log that was not thinned had neither Σ m²δ, which is the first, nor Σ m²."""
        array = self.arrays[node["array"]]
        if len(array) == 2:
            array = [*array, array[0], self.arrays[old["n"]["array"]].sum()]
        return self._new(f"{node['array']}/of 4", array)

    def _rows_of(self, quantity: Quantity, node: _Node) -> Iterator[_Sum]:
        """An array by metric, metric by metric."""
        name = node["array"]
        for m, row in enumerate(self.arrays[name]):
            yield _Sum(quantity, self._new(f"{name}/{m}", row), m)

    def _number(self, path: str, name: str, old: dict[str, _Node]) -> _Node:
        value = old[name]["float"] if isinstance(old[name], dict) else old[name]
        return self._new(f"{path}/{name}", [float(value)])

    def _new(self, name: str, values: Any) -> _Node:
        self.arrays[name] = np.atleast_1d(np.asarray(values, np.float64))
        return {"array": name}

    # -- sums with a weight in them ---------------------------------------------------------------------------------

    def _scaled(self, weighting: _Node, metric: int | None, node: _Node) -> _Node:
        old = node["fields"]
        sums = (self._named(name, array, weighting, metric) for name, array in _items(old["arrays"]))
        return self._account(weighting, metric, old["exponent"], sums)

    def _named(self, name: str, node: _Node, weighting: _Node, metric: int | None) -> _Sum:
        """A sum by its old name, as in `hr:click`: the rewards by stratum of the table of that metric."""
        if name in _PLAIN:
            return _Sum(_PLAIN[name], node, metric)
        kind, _, rest = name.partition(":")
        if kind in _SLOPES:
            return _Sum(_SLOPES[kind], node, metric, int(rest))
        if kind == "hv":
            label, _, number = rest.rpartition(":")
            return _Sum(q.PREDICTED, node, int(number), label)
        if weighting["object"].startswith("SlotRatio"):
            return _Sum(_BY_SLOT[kind], node, metric)
        return _Sum(_BY_STRATUM[kind], node, metric, rest)

    @staticmethod
    def _account(
        weighting: _Node, metric: int | None, exponent: int | None, sums: Iterator[_Sum] | list[_Sum]
    ) -> _Node:
        items = [
            [{"tuple": [{"quantity": found.quantity.name}, found.metric, found.owner]}, found.node] for found in sums
        ]
        fields = {"weighting": weighting, "metric": metric, "exponent": exponent, "sums": {"map": items}}
        return {"class": "Account", "fields": fields}

    # -- parts of a log, kept rows -----------------------------------------------------------------------------------

    def _parts(self, old: dict[str, _Node], path: str) -> _Node:
        accounts = [self._account(None, None, None, self._sums_of_parts(old))]
        accounts += [self._scaled(weighting, None, node) for weighting, node in _items(old["h"])]
        for (weighting, metric), node in ((key["tuple"], node) for key, node in _items(old["hr"])):
            accounts.append(self._scaled(weighting, metric, node))
        groups = {
            "limit": old["buckets"],
            "labels": old["labels"],
            "hashes": old["hashes"],
            "crowded": old["crowded"],
            "most": MOST_VALUES if old.get("most") is None else old["most"],
            "units": old["units"],
        }
        return _ledger(old["buckets"], accounts, {"map": []}, {"class": "Groups", "fields": groups})

    def _sums_of_parts(self, old: dict[str, _Node]) -> Iterator[_Sum]:
        for name, node in _items(old["sums"]):
            kind, _, rest = name.partition(":")
            if name == "rows":  # which had one number for each value, where today's is by bucket too
                by_cell = np.zeros((len(self.arrays[node["array"]]), old["buckets"]))
                by_cell[:, 0] = self.arrays[node["array"]]
                yield _Sum(q.ROWS, self._new(f"{node['array']}/by cell", by_cell.ravel()))
            elif name in _OF_PARTS:
                yield _Sum(_OF_PARTS[name], node)
            elif kind in _OF_METRICS:
                yield _Sum(_OF_METRICS[kind], node, int(rest))
            elif kind == "unsupported":
                yield _Sum(q.UNSUPPORTED, node, None, self.weightings[int(rest)])
            elif kind in _BEFORE:
                weighting, _, metric = rest.partition(":")
                yield _Sum(_BEFORE[kind], node, int(metric), self.weightings[int(weighting)])

    def _rows(self, node: _Node) -> _Node:
        """Kept rows with today's names of columns."""
        fields = dict(node["fields"])
        fields["order"] = {"tuple": [self._column(name) for name in fields["order"]["tuple"]]}
        fields["parts"] = {
            "list": [
                {"map": [[self._column(name), array] for name, array in _items(part)]}
                for part in fields["parts"]["list"]
            ]
        }
        return {"class": "KeptRows", "fields": fields}

    def _column(self, name: str) -> _Node:
        kind, colon, rest = name.partition(":")
        read: Callable[[str], Any] | None = None
        if kind in _OF_WEIGHTINGS:
            return {"tuple": [kind, self.weightings[int(rest)]]} if colon else name
        if kind in _OF_NUMBERS:
            read = int
        elif kind in _OF_TEXTS:
            return {"tuple": [kind, rest]}
        if not colon or read is None:
            return name
        return {"tuple": [kind, *map(read, rest.split(":"))]}


def _ledger(cells: int, accounts: list[_Node], strata: _Node, groups: _Node) -> _Node:
    by_name = [
        [{"tuple": [account["fields"]["weighting"], account["fields"]["metric"]]}, account] for account in accounts
    ]
    fields = {"cells": cells, "accounts": {"map": by_name}, "strata": strata, "groups": groups}
    return {"class": "Ledger", "fields": fields}


def _items(node: _Node) -> _Items:
    """The keys and values of a mapping in a tree."""
    yield from node["map"]
