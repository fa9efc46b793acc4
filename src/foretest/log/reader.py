"""What a display log is: the roles of columns, and batches checked and turned into plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from foretest.displays.batch import Displays, Floats, Hashes
from foretest.displays.days import is_day
from foretest.displays.keys import hash_keys, refuse_nulls
from foretest.displays.ragged import Ragged, common_codes, integers, is_list, is_text, numbers, plain, split_lists
from foretest.errors import BadInput, RowFault, nearest
from foretest.kernels.checks import positions_in, ranking_faults, slot_faults
from foretest.kernels.hashing import hash_integers
from foretest.log.logger_columns import logger_columns
from foretest.policies.base import policy_columns, refuse_not_finite
from foretest.policies.pooled import Pooled
from foretest.settings.analysis import VALUE_MODEL
from foretest.settings.settings import Settings
from foretest.sources import AGGREGATES, Chunk, Remarks, Source


@dataclass(frozen=True)
class Rows:
    """A checked batch: one entry a display in every field."""

    displays: Displays
    rewards: Floats  # rows × metrics
    unit: Hashes
    stratum: pa.Array | None  # the strata column
    value: Floats | None  # the column of V(x)
    features: pa.RecordBatch | None
    names: tuple[str, ...]  # of the metrics
    slots: dict[int, Ragged] = field(default_factory=dict)  # what each slot earned, by metric
    context: pa.RecordBatch | None = None  # features and candidates as read, for those rows that the audit samples
    segments: dict[str, pa.Array] = field(default_factory=dict)  # the segment columns
    log_baseline: Floats | None = None  # of several loggers, log w_p of rewarded rows: the baseline's part in them

    @property
    def control_rewards(self) -> Floats:
        """The control's rewards: r, or of several loggers w_p r."""
        return self.rewards if self.log_baseline is None else self.rewards * np.exp(self.log_baseline)[:, None]

    @cached_property
    def rewarded(self) -> npt.NDArray[np.int64]:
        """The rows that have a reward of some metric."""
        found = self.rewards[:, 0] != 0.0
        for more in self.rewards.T[1:]:
            found |= more != 0.0
        return np.flatnonzero(found)

    def __len__(self) -> int:
        return len(self.rewards)

    def take(self, at: npt.NDArray[np.int64]) -> Rows:
        """Some rows, without the columns that are asked for a batch at a time: strata, values, features, segments."""
        return Rows(
            self.displays.take(at), self.rewards[at], self.unit[at], None, None, None, self.names,
            slots={m: lists.take(at) for m, lists in self.slots.items()},
            log_baseline=None if self.log_baseline is None else self.log_baseline[at],
        )  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """Which columns a test reads, what they must hold, and how a batch of them becomes `Rows`."""

    settings: Settings
    features: bool = False  # are the context features needed (a value model)?
    strata: bool = False  # is the strata column needed?
    extra: tuple[str, ...] = ()  # columns that a reward model reads
    slots: bool = False  # are the rewards of slots needed?
    value_model_only: bool = False  # rewards, units and features, and nothing of the policies

    @property
    def columns(self) -> tuple[str, ...]:
        """The needed columns; no other is read."""
        return tuple(dict.fromkeys(name for name, _, _ in self._roles))

    @property
    def _policies(self) -> tuple[Any, ...]:
        return self.settings.control, *self.settings.treatments.values()

    @property
    def _scores(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for p in self._policies for name in getattr(p, "score_columns", ())))

    @property
    def _audited(self) -> tuple[str, ...]:
        """The columns that the audit looks at beside those of the policies, where it can draw rankings."""
        log, can_draw = self.settings.log, [getattr(p, "can_draw", True) for p in self._policies]
        features = log.features if all(can_draw) else ()
        return (*features, log.candidates) if log.candidates is not None and can_draw[0] else features

    @property
    def _unpriced(self) -> set[str]:
        """Score columns that the shown ranking's probability does not follow from: a column says it."""
        return {name for p in self._policies for name in getattr(p, "score_columns", ()) if _logged_columns(p)}

    @property
    def _roles(self) -> list[tuple[str, str, Callable[[pa.DataType], bool]]]:
        """(column, what it must be, the test of its type) in role order."""
        log, analysis = self.settings.log, self.settings.analysis
        roles: list[tuple[str, str, Callable[[pa.DataType], bool]]] = []
        roles += [(name, "a number or bool column (a reward)", _is_number) for name in log.rewards]
        if log.unit is not None:
            roles.append((log.unit, "an integer or string column (the unit)", _is_key))
        if log.id is not None:
            roles.append((log.id, "an integer or string column (the display's id)", _is_key))
        if self.value_model_only:
            roles += [(name, "a number, bool, string or date column (a feature)", _is_feature) for name in log.features]
            return roles
        if log.ranking is not None:
            if log.candidates is None:
                roles.append((log.ranking, "a list of integers (the positions shown)", _is_list_of(_is_integer)))
            else:
                roles.append((log.ranking, "a list of integer or string ids (the items shown)", _is_list_of(_is_key)))
                roles.append((log.candidates, "a list of integer or string ids (the items)", _is_list_of(_is_key)))
        roles += self._slot_roles if self.slots else []
        roles += [
            (name, f"a list of numbers (scores{self._whose(name)})", _is_list_of(_is_number)) for name in self._scores
        ]
        for policy in self._policies:
            logged = {name for name, _ in _logged_columns(policy)}
            for name in policy_columns(policy):
                if name in logged:
                    roles.append((name, f"a number column (a probability{self._whose(name)})", _is_number))
                elif name not in self._scores:
                    roles.append((name, f"a column ({_why_read(policy)})", _anything))
        roles += [(name, "a column (of the reward model)", _anything) for name in self.extra]
        if analysis.value is not None:
            roles.append((analysis.value, "a number column (V(x))", _is_number))
        if self.strata and analysis.strata != VALUE_MODEL:
            roles.append((analysis.strata, "an integer, string or bool column (strata)", _is_label))
        for name in log.features:
            if self.features or name in self._audited:
                roles.append((name, "a number, bool, string or date column (a feature)", _is_feature))
        roles += [(name, "an integer, string or bool column (a segment)", _is_label) for name in log.segments]
        if log.logger is not None:
            roles.append((log.logger, "an integer, string or bool column (the logger)", _is_label))
            if log.date is not None:
                roles.append((log.date, "a date, timestamp, string or integer column (the day)", is_day))
        return roles

    @property
    def _slot_roles(self) -> list[tuple[str, str, Callable[[pa.DataType], bool]]]:
        what = "a list of numbers (what each slot earned)"
        return [(name, what, _is_list_of(_is_number)) for name in (self.settings.log.slot_rewards or {}).values()]

    def _whose(self, column: str) -> str:
        """Of several treatments, whose column it is."""
        control, treatments = self.settings.control, self.settings.treatments
        if isinstance(control, Pooled) and column in policy_columns(control):
            return next(f" of the logger '{n}'" for n, p in control.components if column in policy_columns(p))
        if len(treatments) == 1 or column in policy_columns(control):
            return ""
        return next((f" of the treatment '{n}'" for n, p in treatments.items() if column in policy_columns(p)), "")

    def for_value_model(self) -> Reader:
        """The part of the log that V(x) is fitted on: rewards, units and features."""
        return replace(self, value_model_only=True)

    def check(self, source: Source) -> None:
        """Refuse a log that lacks a column or has one of the wrong type, before any row is read."""
        for name, schema in source.schemas():
            if AGGREGATES in (schema.metadata or {}):
                raise BadInput(f"{name}: holds saved aggregates, expected a log. Aggregates are for foretest run.")
            if not self.value_model_only:
                self._check_loggers(name, schema)
            wanted = [*self._roles, *([] if self.value_model_only else self._slot_roles)]
            extra = (
                []
                if self.value_model_only
                else [c for c in (self.settings.log.date, *self.settings.log.features) if c is not None]
            )
            for column, expected, fits in [*wanted, *((c, "a column", _anything) for c in extra)]:
                found = schema.names.count(column)
                if found == 0:
                    more = ", …" if len(schema.names) > 30 else ""
                    raise BadInput(
                        f"{name}: no column '{column}'.{nearest(column, schema.names)} Expected {expected};"
                        f" the log has: {', '.join(schema.names[:30])}{more}."
                    )
                if found > 1:
                    raise BadInput(f"{name}: column '{column}' is there {found} times. Rename all but one.")
                kind = schema.field(column).type
                if not fits(kind):
                    why = source.remark(name, column) if isinstance(source, Remarks) else ""
                    raise BadInput(
                        f"{name}: column '{column}' is {kind}{why}, expected {expected}. Convert it, or name another"
                        " column."
                    )
            self._check_ids(name, schema)
        self._check_files_agree(source)

    def _check_loggers(self, name: str, schema: pa.Schema) -> None:
        """Every logger is priced on every row: its columns must be in every file, whoever showed its rows."""
        for logger, policy in getattr(self.settings.control, "components", ()) if self.settings.log.logger else ():
            missing = [column for column in policy_columns(policy) if column not in schema.names]
            if missing:
                columns = ", ".join(f"'{column}'" for column in missing)
                raise BadInput(
                    f"{name}: the logger '{logger}' cannot be priced on the rows of the others: the log has no column"
                    f" {columns}.{nearest(missing[0], schema.names)} Every row needs the columns of every logger,"
                    " whichever of them showed it."
                )

    def _check_files_agree(self, source: Source) -> None:
        """Keys, strata and features mean the same in every file: 1 and "1" are two."""
        log, analysis = self.settings.log, self.settings.analysis
        strata = analysis.strata if self.strata and analysis.strata != VALUE_MODEL else None
        features = [f for f in log.features if self.features or self.value_model_only or f in self._audited]
        (first, begin), *others = source.schemas()
        for column in (log.unit, log.id, strata, *features, *(() if self.value_model_only else log.segments)):
            for name, schema in others if column is not None else ():
                kind, other = schema.field(column).type, begin.field(column).type
                if _family(kind) != _family(other):
                    raise BadInput(
                        f"{name}: column '{column}' is {kind}, but {other} in {first}: it must be of one type in all"
                        " files. Convert one of them."
                    )

    def _check_ids(self, name: str, schema: pa.Schema) -> None:
        """Shown items are looked up among the candidates: text and integers never meet."""
        ranking, candidates = self.settings.log.ranking, self.settings.log.candidates
        if self.value_model_only or ranking is None or candidates is None:
            return
        shown, items = schema.field(ranking).type, schema.field(candidates).type
        if is_text_key(shown.value_type) != is_text_key(items.value_type):
            raise BadInput(
                f"{name}: column '{ranking}' is {shown} and column '{candidates}' is {items}: the ids of shown items"
                " and of candidates must be of one type. Convert one of them."
            )

    def read(self, chunk: Chunk) -> Rows:
        """The rows of one chunk, checked; a fault is raised as a RowFault."""
        log, batch = self.settings.log, chunk.batch
        found = [self._reward(batch, name) for name in log.rewards]
        rewards = found[0][:, None] if len(found) == 1 else np.column_stack(found)
        identity = None if log.id is None else hash_keys(log.id, batch[log.id])
        if log.unit is not None:
            unit = hash_keys(log.unit, batch[log.unit])
        else:
            unit = hash_integers(chunk.positions()) if identity is None else identity
        if self.value_model_only:
            nothing = Ragged.packed(np.empty(0, np.int32), np.zeros(batch.num_rows, np.int64))
            displays = Displays({}, nothing, nothing.lengths, unit)
            return Rows(displays, rewards, unit, None, None, features_of(batch, log.features), log.rewards)
        value = None
        if self.settings.analysis.value is not None:
            value = _finite(self.settings.analysis.value, batch[self.settings.analysis.value], "V(x)")
        displays = (
            self._displays_of_loggers(batch, identity, unit) if log.logger else self._displays(batch, identity, unit)
        )
        return Rows(
            displays=displays,
            rewards=rewards,
            unit=unit,
            stratum=batch[self.settings.analysis.strata]
            if self.strata and self.settings.analysis.strata != VALUE_MODEL
            else None,
            value=value,
            features=features_of(batch, log.features) if self.features else None,
            names=log.rewards,
            slots=self._slots(batch, displays.slots, rewards) if self.slots else {},
            context=batch.select(list(dict.fromkeys(self._audited))) if self._audited else None,
            segments={name: batch[name] for name in log.segments},
        )

    def _slots(self, batch: pa.RecordBatch, shown: npt.NDArray[np.int64], rewards: Floats) -> dict[int, Ragged]:
        """What each slot earned, checked in every row: one entry a shown item, 0 or more, in sum the reward."""
        log = self.settings.log
        found = {}
        for metric, name in (log.slot_rewards or {}).items():
            m = log.rewards.index(metric)
            lists = _list_of_numbers(name, batch[name])
            fault = slot_faults(lists.values, lists.starts, lists.lengths, shown, rewards[:, m])
            for code in np.unique(fault[fault > 0]).tolist():
                rows = np.flatnonzero(fault == code)
                at = int(rows[0])
                what, remedy = _slot_fault(code, lists[at], int(shown[at]), metric, float(rewards[at, m]))
                raise RowFault(f"slots-{code}", name, rows, what, remedy)
            found[m] = lists
        return found

    def r_max(self, source: Source) -> dict[str, float]:
        """The largest possible reward of each metric where it is known: as set, 1 for bool columns."""
        given = self.settings.analysis.r_max
        bounds: dict[str, float] = {}
        for name in self.settings.log.rewards:
            if isinstance(given, Mapping):
                if name in given:
                    bounds[name] = float(given[name])
            elif given is not None:
                bounds[name] = float(given)
            if name not in bounds and all(pa.types.is_boolean(s.field(name).type) for _, s in source.schemas()):
                bounds[name] = 1.0
        return bounds

    def _reward(self, batch: pa.RecordBatch, name: str) -> Floats:
        values = _finite(name, batch[name], "the reward")
        if values.min(initial=0.0) < 0.0:
            rows = np.flatnonzero(values < 0.0)
            raise RowFault("reward-negative", name, rows, f"the reward is negative ({values[rows[0]]:g})",
                           "Rewards must be 0 or more: split gains and losses into two metrics.")  # fmt: skip
        given = self.settings.analysis.r_max
        bound = given.get(name) if isinstance(given, Mapping) else given
        if bound is not None and values.max(initial=0.0) > bound:
            rows = np.flatnonzero(values > bound)
            raise RowFault("reward-above-r-max", name, rows,
                           f"the reward {values[rows[0]]:g} is above r_max = {bound:g}",
                           "Raise r_max, or mend the reward.")  # fmt: skip
        return values

    def _displays_of_loggers(self, batch: pa.RecordBatch, identity: Hashes | None, unit: Hashes) -> Displays:
        """The same with the logger and the day of each row; a logger's column must be filled on every row."""
        control = self.settings.control
        assert isinstance(control, Pooled)
        more = logger_columns(batch, self.settings.log, control.names)
        try:
            displays = self._displays(batch, identity, unit)
        except RowFault as fault:
            if fault.kind not in ("null", "null-inside") or fault.column not in policy_columns(control):
                raise
            whose = next(name for name, policy in control.components if fault.column in policy_columns(policy))
            raise RowFault(
                fault.kind, fault.column, fault.rows,
                f"{fault.what}, so the logger '{whose}' cannot be priced on this row",
                "Every row needs the columns of every logger, whichever of them showed it: fill it, or leave the row"
                " out.",
            ) from None  # fmt: skip
        return replace(displays, columns={**displays.columns, **more})

    def _displays(self, batch: pa.RecordBatch, identity: Hashes | None, unit: Hashes) -> Displays:
        log = self.settings.log
        columns: dict[str, Any] = {name: _list_of_numbers(name, batch[name]) for name in self._scores}
        for name in self._unpriced:  # all others are checked where the shown ranking is priced
            refuse_not_finite(name, columns[name])
        for policy in self._policies:
            logged = {name for name, _ in _logged_columns(policy)}
            for name in policy_columns(policy):
                if name not in columns:
                    columns[name] = (
                        _logged_numbers(name, batch[name]) if name in logged else _any_column(name, batch[name])
                    )
        lists = {name: c.lengths for name, c in columns.items() if isinstance(c, Ragged)}
        for name in self.extra:
            if name not in columns:
                columns[name] = _any_column(name, batch[name])
        if log.candidates is not None:
            lists = {log.candidates: _list_lengths(log.candidates, batch[log.candidates]), **lists}
        eligible = _same_lengths(lists, batch.num_rows)
        if log.ranking is None:
            ranking = Ragged.packed(np.empty(0, np.int32), np.zeros(batch.num_rows, np.int64))
        else:
            ranking = self._ranking(batch, eligible, known=bool(lists))
        key_columns = None if identity is not None else policy_columns(self.settings.control)
        # rows without id or unit are told apart, for draws, by what they show
        root = identity if identity is not None else unit if log.unit is not None else np.zeros_like(unit)
        return Displays(columns, ranking, eligible, root, key_columns)

    def _ranking(self, batch: pa.RecordBatch, eligible: npt.NDArray[np.int64], known: bool) -> Ragged:
        log = self.settings.log
        name = log.ranking
        assert name is not None
        values, starts, lengths = _lists(name, batch[name])
        if log.candidates is None:
            ranking = Ragged(integers(values), starts, lengths)
        else:
            items, i_starts, i_lengths = _lists(log.candidates, batch[log.candidates])
            item_codes, shown_codes = common_codes(items, values)
            place, absent, repeated = positions_in(shown_codes, starts, lengths, item_codes, i_starts, i_lengths)
            if repeated.any():
                raise RowFault("candidates-repeat", log.candidates, np.flatnonzero(repeated),
                               "a candidate is listed twice", "List each eligible item once.")  # fmt: skip
            rows = np.flatnonzero(absent & (lengths <= i_lengths))
            if len(rows):
                listed = batch[log.candidates][int(rows[0])].as_py()
                item = next(item for item in batch[name][int(rows[0])].as_py() if item not in listed)
                raise RowFault("ranking-absent", name, rows,
                               f"the shown item {item!r} is not among the row's candidates (column '{log.candidates}')",
                               "Add it to the candidates, or leave the row out.")  # fmt: skip
            ranking = Ragged.packed(place, lengths)
        fault = ranking_faults(ranking.values, ranking.starts, ranking.lengths, eligible if known else lengths * 0 - 1)
        for code in np.unique(fault[fault > 0]).tolist():
            rows = np.flatnonzero(fault == code)
            at = int(rows[0])
            what = _ranking_fault(code, batch[name][at].as_py(), int(eligible[at]) if known else None)
            raise RowFault(f"ranking-{code}", name, rows, what, _RANKING_REMEDY[log.candidates is not None])
        return ranking


_RANKING_REMEDY = {
    False: "A ranking holds distinct positions into the row's lists, from 0, best slot first; if these are item ids,"
    " name the column of eligible ids in [log] candidates.",
    True: "A ranking holds distinct ids of the row's candidates, best slot first.",
}


def _ranking_fault(code: int, ranking: list[Any], eligible: int | None) -> str:
    """What is wrong with a row's ranking, by the codes of `ranking_faults`."""
    items = f"{eligible} eligible item{'' if eligible == 1 else 's'}"
    if code == 1:
        return "the ranking is empty"
    if code == 2:
        return f"the ranking shows {len(ranking)} items, more than the row's {items}"
    if code == 3 and eligible is None:
        return f"the position {min(ranking)} in the ranking is negative"
    if code == 3 and eligible is not None:
        place = next(place for place in ranking if place < 0 or place >= eligible)
        return f"the position {place} in the ranking is outside the row's lists of {items}"
    return f"the ranking shows the item {next(i for i in ranking if ranking.count(i) > 1)!r} twice"


def _slot_fault(code: int, slots: npt.NDArray[Any], shown: int, metric: str, reward: float) -> tuple[str, str]:
    """What is wrong with the rewards of a row's slots, by the codes of `slot_faults`, and what to do."""
    if code == 1:
        what = f"the list has length {len(slots)}, but the row shows {shown} item{'' if shown == 1 else 's'}"
        return what, "Give one number for each shown slot, in the ranking's order, 0 where it earned nothing."
    if code == 2:
        return "the reward of a slot is NaN or infinite", "Every slot needs a finite number, 0 where it earned nothing."
    if code == 3:
        what = f"the reward of a slot is negative ({slots.min():g})"
        return what, "Rewards must be 0 or more: split gains and losses into two metrics."
    what = f"the slots sum to {float(slots.astype(np.float64).sum()):g}, but the reward '{metric}' is {reward:g}"
    return what, "The slots must share out the row's whole reward: mend them, or take slot_rewards out of [log]."


def _why_read(policy: Any) -> str:
    """Where a policy's column comes from; of a user's own class, how it is told."""
    name = type(policy).__name__
    return f"of {name}" if hasattr(policy, "columns") else f"of {name}, whose text attributes name its columns"


def _logged_columns(policy: Any) -> list[tuple[str, bool]]:
    own = getattr(policy, "_logged", None)
    inner = [pair for _, part in getattr(policy, "components", ()) for pair in _logged_columns(part)]
    return [own, *inner] if own else inner


def _is_integer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def _is_key(kind: pa.DataType) -> bool:
    return (
        _is_key(kind.value_type) if pa.types.is_dictionary(kind) else bool(pa.types.is_integer(kind)) or is_text(kind)
    )


def is_text_key(kind: pa.DataType) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _is_label(kind: pa.DataType) -> bool:
    return _is_key(kind) or bool(pa.types.is_boolean(kind))


def _is_feature(kind: pa.DataType) -> bool:
    return _is_label(kind) or _is_number(kind) or bool(pa.types.is_temporal(kind))


def _family(kind: pa.DataType) -> str:
    """Text, time or number."""
    if is_text_key(kind):
        return "text"
    return "time" if pa.types.is_temporal(kind) else "number"


def features_of(batch: pa.RecordBatch, names: tuple[str, ...]) -> pa.RecordBatch:
    """Context features of every Arrow form as text or float64, times in microseconds."""
    arrays = []
    for array in (plain(batch[name]) for name in names):
        kind = array.type
        if is_text(kind):
            arrays.append(array.cast(pa.large_string()))
            continue
        if pa.types.is_temporal(kind):
            is_time, is_duration = pa.types.is_time(kind), pa.types.is_duration(kind)
            unit = pa.time64("us") if is_time else pa.duration("us") if is_duration else pa.timestamp("us")
            array = array.cast(unit, safe=False).cast(pa.int64())
        arrays.append(array.cast(pa.float64(), safe=False))
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _is_list_of(inner: Callable[[pa.DataType], bool]) -> Callable[[pa.DataType], bool]:
    return lambda kind: is_list(kind) and inner(kind.value_type)


def _anything(kind: pa.DataType) -> bool:
    return True


def _finite(name: str, array: pa.Array, what: str) -> Floats:
    refuse_nulls(name, array)
    values = numbers(array).astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        suspect = not np.isfinite(values.sum())  # as it is where one of them is, and where they are very large
    rows = np.flatnonzero(~np.isfinite(values)) if suspect else np.empty(0, np.int64)
    if len(rows):
        kind = "NaN" if np.isnan(values[rows[0]]) else "infinite"
        raise RowFault("not-finite", name, rows, f"{what} is {kind}",
                       "Every row needs a finite number: mend it, or leave the row out.")  # fmt: skip
    return values


def _logged_numbers(name: str, array: pa.Array) -> Floats:
    refuse_nulls(name, array)
    return numbers(array).astype(np.float64, copy=False)


def _any_column(name: str, array: pa.Array) -> Any:
    """A column of a user's policy: a list of numbers, numbers, or whatever Arrow makes of it."""
    if is_list(array.type) and _is_number(array.type.value_type):
        return _list_of_numbers(name, array)
    refuse_nulls(name, array)
    return numbers(array) if _is_number(array.type) else np.asarray(plain(array).to_numpy(zero_copy_only=False))


def _lists(name: str, array: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    refuse_nulls(name, array)
    values, starts, lengths = split_lists(array)
    if values.null_count:
        inside = Ragged(values.is_null().to_numpy(zero_copy_only=False), starts, lengths)
        rows = [i for i in range(len(array)) if inside[i].any()]
        if rows:
            raise RowFault("null-inside", name, np.array(rows), "the list holds a null",
                           "Every entry needs a value: fill it, or leave the row out.")  # fmt: skip
        values = plain(values)
        values = pc.fill_null(values, "" if is_text(values.type) else 0)
    return values, starts, lengths


def _list_of_numbers(name: str, array: pa.Array) -> Ragged:
    values, starts, lengths = _lists(name, array)
    return Ragged(numbers(values), starts, lengths)


def _list_lengths(name: str, array: pa.Array) -> npt.NDArray[np.int64]:
    return _lists(name, array)[2]


def _same_lengths(lists: dict[str, npt.NDArray[np.int64]], rows: int) -> npt.NDArray[np.int64]:
    """The number of eligible items, on which all lists must agree."""
    if not lists:
        return np.zeros(rows, np.int64)
    first, eligible = next(iter(lists.items()))
    if (eligible == 0).any():
        raise RowFault("list-empty", first, np.flatnonzero(eligible == 0), "the list of candidates is empty",
                       "A display needs at least one eligible item.")  # fmt: skip
    for name, lengths in lists.items():
        other = np.flatnonzero(lengths != eligible)
        if len(other):
            at = other[0]
            raise RowFault("list-length", name, other,
                           f"the list has length {lengths[at]} where column '{first}' has length {eligible[at]}",
                           "All lists of a row have one entry for each eligible item.")  # fmt: skip
    return eligible
