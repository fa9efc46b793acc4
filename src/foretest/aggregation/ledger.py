"""The ledger: the only place where sums are added, merged, moved and divided into parts of a log.

Sums that share a unit are in one account: those of a weighting over all rows, those of a weighting and a metric over
rewarded rows, and those in which no weight is. Within an account a sum is named by its quantity, the metric and what
owns it: an estimator, a table of strata, a slot, a weighting. What a quantity declares (`quantities`) is all that the
ledger knows of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.groups import REST, Groups
from foretest.aggregation.quantities import Blocks, Merge, Quantity, Reward
from foretest.aggregation.strata import Strata
from foretest.displays.batch import Floats
from foretest.kernels.exponential import exponentials
from foretest.records import dataclass
from foretest.weights.weightings import Weighting

Ints = npt.NDArray[np.int64]

_STEP = 64  # exponents move in steps, so that rescaling is exact and rare
_LN2 = float(np.log(2.0))
_MERGES = {Merge.SUM: np.add, Merge.LARGEST: np.maximum, Merge.SMALLEST: np.minimum}


class Key(NamedTuple):
    """The name of a sum in its account."""

    quantity: Quantity
    metric: int | None = None  # its place among the metrics of the plan
    owner: Hashable = None


class Places(NamedTuple):
    """Where the amounts of some rows go: to cells, and of some quantities to blocks of cells, one after another."""

    cells: int  # how many there are
    cell: Ints  # of each row
    block: Ints | None = None  # of each row: its stratum, slot or group
    blocks: int = 1  # how many there are by now

    def take(self, rows: Ints) -> Places:
        """The places of some of the rows."""
        return self._replace(cell=self.cell[rows], block=None if self.block is None else self.block[rows])


@dataclass
class Account:
    """Sums in units of 2^exponent, or a power of it: a running exponent keeps 1e-300 from underflow and 1e300 from
    overflow."""

    weighting: Weighting | None = None
    metric: int | None = None
    exponent: int | None = None
    sums: dict[Key, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sums = {Key(*key): array for key, array in self.sums.items()}  # from a file they come as tuples

    def scaled(self, log_h: Floats) -> Floats:
        """h in units of 2^exponent, after raising the exponent to what the largest needs."""
        top = float(log_h.max(initial=-np.inf))
        if top == -np.inf:
            return np.zeros(len(log_h))
        self.raise_to(_STEP * int(np.ceil(top / (_STEP * _LN2))))
        assert self.exponent is not None
        unit = self.exponent * _LN2
        if top > unit:  # by rounding, beyond 1e15
            log_h = np.minimum(log_h, unit)
        return np.asarray(exponentials(log_h, unit))

    def raise_to(self, exponent: int) -> None:
        """Take a larger exponent for the unit, and express the sums in it."""
        if self.exponent is None:
            self.exponent = exponent
        elif exponent > self.exponent:
            for key, array in self.sums.items():
                if key.quantity.power:
                    array[:] = _shifted(array, (self.exponent - exponent) * key.quantity.power)
            self.exponent = exponent

    @property
    def log_unit(self) -> float:
        """The logarithm of the unit, 2^exponent."""
        return 0.0 if self.exponent is None else self.exponent * _LN2

    def key(self, quantity: Quantity, metric: int | None = None, owner: Hashable = None) -> Key:
        """The name of a sum, of the account's own metric where it has one."""
        return Key(quantity, self.metric if metric is None else metric, owner)

    def has(self, quantity: Quantity, metric: int | None = None, owner: Hashable = None) -> bool:
        """Was anything added to a sum?"""
        return self.key(quantity, metric, owner) in self.sums

    def get(self, quantity: Quantity, metric: int | None = None, owner: Hashable = None, *, size: int = 1) -> Floats:
        """A sum; zeros where nothing was added. In a log whose rows each stand for one display some quantities are
        kept as others."""
        array = self.sums.get(self.key(quantity, metric, owner))
        if array is None and quantity.unthinned is not None:
            return self.get(quantity.unthinned, metric, owner, size=size)
        return np.zeros(size) if array is None else array

    def total(self, quantity: Quantity, metric: int | None = None, owner: Hashable = None) -> float:
        """A sum over all cells and blocks."""
        return float(self.get(quantity, metric, owner).sum())

    def array(self, quantity: Quantity, size: int, metric: int | None = None, owner: Hashable = None) -> Floats:
        """The numbers of a sum themselves, to be added to in place."""
        key = self.key(quantity, metric, owner)
        if key not in self.sums:
            self.sums[key] = np.zeros(size)
        return self.sums[key]

    def open(self, quantity: Quantity, amounts: Any, metric: int | None = None, owner: Hashable = None) -> None:
        """Begin a sum; those that equal another where each row stands for one display are only then added to."""
        self.sums[self.key(quantity, metric, owner)] = np.atleast_1d(np.asarray(amounts, dtype=np.float64))

    def put(self, quantity: Quantity, amounts: Any, metric: int | None = None, owner: Hashable = None) -> None:
        """Add up amounts that have the shape of the sum; the shorter of two arrays is taken to end in zeros."""
        key = self.key(quantity, metric, owner)
        if quantity.unthinned is not None and key not in self.sums:
            return
        amounts = np.atleast_1d(np.asarray(amounts, dtype=np.float64))
        self.sums[key] = _merged(self.sums.get(key), amounts, quantity.merge)

    def add(
        self, quantity: Quantity, amounts: Any, at: Places, metric: int | None = None, owner: Hashable = None
    ) -> None:
        """Add the amounts of some rows at their places."""
        key = self.key(quantity, metric, owner)
        array = self.sums.get(key)
        if array is None and quantity.unthinned is not None:
            return
        if at.block is not None and quantity.blocks is Blocks.NONE and not quantity.in_parts:
            return
        if quantity.by_cell:
            width, place = at.cells, at.cell if at.block is None else at.block * at.cells + at.cell
        elif at.block is not None:
            width, place = 1, at.block
        else:
            self.put(quantity, np.sum(amounts), metric, owner)
            return
        size = at.blocks * width
        if at.block is None or size <= 4 * len(place):
            weights = amounts if isinstance(amounts, np.ndarray) else np.full(len(place), amounts)
            added = np.asarray(np.bincount(place, weights, size), np.float64)
            self.sums[key] = added if array is None else _merged(array, added, quantity.merge)
            return
        array = np.zeros(0) if array is None else array
        if len(array) < size:
            self.sums[key] = array = np.concatenate([array, np.zeros(size - len(array))])
        np.add.at(array, place, amounts)


AccountKey = tuple[Weighting | None, int | None]


@dataclass
class Ledger:
    """All sums of a log, or of every value of a column by which it is divided."""

    cells: int
    accounts: dict[AccountKey, Account] = field(default_factory=dict)
    strata: dict[str, Strata] = field(default_factory=dict)  # by table
    #: the values of a column; every sum then has a block for each, and first one for those without a block of their own
    groups: Groups | None = None

    def account(self, weighting: Weighting | None = None, metric: int | None = None) -> Account:
        """The account of a weighting, and of a metric; without either that of all sums in which no weight is."""
        key = weighting, metric
        if key not in self.accounts:
            self.accounts[key] = Account(weighting, metric)
        return self.accounts[key]

    @property
    def plain(self) -> Account:
        """The sums in which no weight is."""
        return self.account()

    def places(self, cell: Ints, block: Ints | None = None) -> Places:
        """Where rows of these cells go, in a ledger by group those of each group."""
        return Places(self.cells, cell, block, 1 if self.groups is None else len(self.groups.labels) + 1)

    def places_of_strata(self, cell: Ints, codes: Mapping[str, Ints]) -> dict[str, Places]:
        """Where rows go in sums by stratum, by table."""
        return {table: Places(self.cells, cell, code, len(self.strata[table].labels)) for table, code in codes.items()}

    def sums(self) -> Iterator[tuple[Account, Key, Floats]]:
        """Every sum, with its account."""
        for account in self.accounts.values():
            for key, array in account.sums.items():
                yield account, key, array

    def width(self, key: Key, array: Floats) -> int:
        """How many numbers a block of a sum has."""
        if key.quantity.blocks is Blocks.FIXED and self.groups is None:
            return len(array)
        return self.cells if key.quantity.by_cell else 1

    def blocks(self, key: Key, array: Floats) -> Floats:
        """A sum with one row per block."""
        return array.reshape(-1, self.width(key, array) or 1)

    def mapped(self, change: Any) -> Ledger:
        """A ledger whose sums are `change(account, key, array)`; the strata and groups are the same."""
        accounts = {
            name: replace(account, sums={key: change(account, key, array) for key, array in account.sums.items()})
            for name, account in self.accounts.items()
        }
        return replace(self, accounts=accounts)

    # -- merging ------------------------------------------------------------------------------------------------------

    @classmethod
    def total(cls, ledgers: Sequence[Ledger]) -> Ledger:
        """The sums of all ledgers, by label. An account, which a file of an earlier version may lack, is that of all or
        of none; so are sums that need all parts."""
        strata = {table: Strata() for table in ledgers[0].strata}
        groups = Groups.union([ledger.groups for ledger in ledgers if ledger.groups is not None])
        total = cls(ledgers[0].cells, strata=strata, groups=groups)
        for ledger in ledgers:
            codes = {table: [strata[table].code(label) for label in old.labels] for table, old in ledger.strata.items()}
            of_groups = None if groups is None or ledger.groups is None else groups.codes_of(ledger.groups)
            total._take_in(ledger, codes, of_groups)
        names = list(total.accounts) if groups is not None else [
            name for name in total.accounts if all(name in ledger.accounts for ledger in ledgers)
        ]  # fmt: skip
        total.accounts = {name: total.accounts[name] for name in names}
        for name, account in total.accounts.items():
            everywhere = [key for key in account.sums if key.quantity.needs_all]
            for key in everywhere:
                if not all(name in ledger.accounts and key in ledger.accounts[name].sums for ledger in ledgers):
                    del account.sums[key]
        return total

    def _take_in(self, other: Ledger, codes: Mapping[str, list[int]], of_groups: list[int] | None) -> None:
        """Add the sums of another ledger, whose strata and groups have these codes here."""
        for name, theirs in other.accounts.items():
            mine = self.account(*name)
            if theirs.exponent is not None:
                mine.raise_to(theirs.exponent)
            shift = 0 if theirs.exponent is None or mine.exponent is None else theirs.exponent - mine.exponent
            for key, array in theirs.sums.items():
                quantity = key.quantity
                if of_groups is not None:
                    array = _recoded(other.blocks(key, array), of_groups)
                elif quantity.blocks is Blocks.STRATA:
                    array = _recoded(other.blocks(key, array), codes[str(key.owner)])
                if shift and quantity.power:
                    array = _shifted(array, shift * quantity.power)
                mine.sums[key] = _merged(mine.sums.get(key), array, quantity.merge)

    # -- metrics with losses ------------------------------------------------------------------------------------------

    def with_difference(self, place: int, gains: int, losses: int) -> Ledger:
        """The ledger with sums of a metric at `place`: those of its gains less those of its losses, as each quantity
        declares it."""
        accounts = dict(self.accounts)
        for (weighting, metric), account in self.accounts.items():
            if metric is None:
                more = {
                    key._replace(metric=place): _difference(
                        key.quantity, array, account.sums.get(key._replace(metric=losses), np.zeros(0))
                    )
                    for key, array in account.sums.items()
                    if key.metric == gains
                }
                accounts[weighting, None] = replace(account, sums={**account.sums, **more})
            elif metric == gains and (weighting, losses) in self.accounts:
                accounts[weighting, place] = self._difference_of(account, self.accounts[weighting, losses], place)
        return replace(self, accounts=accounts)

    def _difference_of(self, gains: Account, losses: Account, place: int) -> Account:
        """Gains less losses of one weighting, in a common unit."""
        less = Account(gains.weighting, place, gains.exponent)
        if losses.exponent is not None:
            less.raise_to(losses.exponent)
        sides = [
            {
                key._replace(metric=place): _in_unit(array, key.quantity, account.exponent, less.exponent)
                for key, array in account.sums.items()
            }
            for account in (gains, losses)
        ]
        for key in dict.fromkeys([*sides[0], *sides[1]]):
            quantity = key.quantity
            favour, against = (side.get(key, np.zeros(0)) for side in sides)
            less.open(quantity, _difference(quantity, favour, against), place, key.owner)
            if quantity.apart is not None:
                less.open(quantity.apart, against, place, key.owner)
            if quantity.sizes is not None:
                for side in (favour, against):
                    less.put(quantity.sizes, self.blocks(key, side).sum(axis=1), place, key.owner)
        return less

    # -- parts of a log ----------------------------------------------------------------------------------------------

    def of_groups(self, codes: Sequence[int]) -> Ledger:
        """The sums of some groups together, as those of a log of their own."""

        def together(account: Account, key: Key, array: Floats) -> Floats:
            blocks = self.blocks(key, array)  # the last groups may have nothing yet
            return np.asarray(blocks[[code for code in codes if code < len(blocks)]].sum(axis=0))

        return replace(self.mapped(together), groups=None)

    def filled(self, part: Ledger) -> Ledger:
        """These accounts, sum by sum with what a part of a log has of them."""
        accounts = dict(self.accounts)
        for name, theirs in part.accounts.items():
            if name in accounts:
                accounts[name] = replace(theirs, sums={**accounts[name].sums, **theirs.sums})
        return replace(self, accounts=accounts)

    def by_group(self, key: Key, account: Account) -> Floats:
        """A sum over all cells, by group."""
        assert self.groups is not None
        totals, by_block = (
            np.zeros(len(self.groups.labels) + 1),
            self.blocks(key, account.get(*key, size=0)).sum(axis=1),
        )
        totals[: len(by_block)] = by_block  # the last groups may have nothing yet
        return totals

    def move_to_rest(self, code: int) -> None:
        """Add the sums of a group to those without a block of their own."""
        for _, key, array in self.sums():
            blocks = self.blocks(key, array)
            if code < len(blocks):
                blocks[REST] += blocks[code]
                blocks[code] = 0.0

    # -- numbers that are fitted -------------------------------------------------------------------------------------

    def labels_of(self, key: Key) -> list[Any] | None:
        """What the blocks of a sum are of; None where their number says it."""
        if self.groups is not None:
            return [None, *self.groups.labels]
        return self.strata[str(key.owner)].labels if key.quantity.blocks is Blocks.STRATA else None

    def block_totals(self, like: Ledger, account: Account, key: Key, blocks: int) -> Floats:
        """A sum over the cells of each block, by the labels and in the unit that it has in `like`, whose account this
        is; a label that is not there counts as the rest."""
        totals = np.zeros(blocks)
        mine = self.accounts.get((account.weighting, account.metric))
        if mine is None or key not in mine.sums:
            return totals
        by_block = self.blocks(key, mine.sums[key]).sum(axis=1)
        labels, theirs = self.labels_of(key), like.labels_of(key)
        if labels is None or theirs is None:
            at: Any = np.arange(len(by_block))
        else:
            place = {label: k for k, label in enumerate(theirs)}
            at = [place.get(label, REST) for label in labels[: len(by_block)]]
        np.add.at(totals, at, by_block)
        return np.asarray(totals * np.exp(key.quantity.power * (mine.log_unit - account.log_unit)))


def _difference(quantity: Quantity, favour: Floats, against: Floats) -> Floats:
    """One sum of a metric that is one part less another, from the sums of both; the shorter ends in zeros."""
    if quantity.reward is Reward.ABSENT:
        return favour if len(favour) else against
    share = {Reward.LINEAR: -1.0, Reward.SIZE: 1.0, Reward.APART: 0.0}[quantity.reward]
    return _merged(favour.copy(), share * against, Merge.SUM)


def _in_unit(array: Floats, quantity: Quantity, exponent: int | None, other: int | None) -> Floats:
    """A sum of an account with one exponent in the unit of another."""
    if exponent is None or other is None or exponent == other or not quantity.power:
        return array
    return _shifted(array, (exponent - other) * quantity.power)


def _shifted(array: Floats, shift: int) -> Floats:
    """The array times 2^shift, shift below 0; scores of 1e300 make a shift that no machine's integer holds."""
    return np.asarray(np.ldexp(array, max(shift, -10_000)))


def _recoded(blocks: Floats, codes: Sequence[int]) -> Floats:
    """Sums with block `codes[k]` in place of block k; those that become one are added up."""
    moved = np.zeros((max(codes, default=-1) + 1, blocks.shape[1]))
    np.add.at(moved, list(codes[: len(blocks)]), blocks)
    return moved.ravel()


def _merged(left: Floats | None, right: Floats, merge: Merge) -> Floats:
    """Both together, the shorter one filled up with zeros; `left` is changed in place where it is long enough."""
    if left is None:
        return right.copy()
    if len(left) < len(right):
        left = np.concatenate([left, np.zeros(len(right) - len(left))])
    left[: len(right)] = _MERGES[merge](left[: len(right)], right)
    return left
