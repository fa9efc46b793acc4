"""The roles of columns: which columns of a log a test reads, and what each must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from foretest.displays.column_types import (
    is_anything,
    is_feature,
    is_integer,
    is_item_feature,
    is_key,
    is_label,
    is_list_of,
    is_number,
    is_one_or_list_of,
    is_share,
)
from foretest.displays.days import is_day
from foretest.displays.times import is_time
from foretest.policies.adapter import as_policy, whose_columns
from foretest.policies.as_shown import shows_one_ranking
from foretest.policies.base import LoggedColumn, Policy, logged_column
from foretest.policies.logging_mixture import components_of, loggers_of
from foretest.policies.own_candidates import candidates_of
from foretest.records import dataclass
from foretest.settings.analysis import VALUE_MODEL
from foretest.settings.examination import examination_columns
from foretest.settings.late_rewards import reward_columns
from foretest.settings.log_columns import MULTIPLICITIES, multiplicities_of
from foretest.settings.predictions import prediction_columns
from foretest.settings.settings import Settings

_DAY = "a date, timestamp, string or integer column (the day)"
_TIME = "a timestamp, or text as in 2026-03-08T14:30:00"


class ColumnRole(NamedTuple):
    """A column that a test reads."""

    column: str
    expected: str  # what it must be, in words
    fits: Callable[[pa.DataType], bool]  # may it be of this type?


@dataclass(frozen=True)
class NeededColumns:
    """Which columns of a log a test reads; no other is read."""

    settings: Settings
    features: bool = False  # are the context features needed (a value model)?
    strata: bool = False  # is the strata column needed?
    extra: tuple[str, ...] = ()  # columns that a reward model reads
    slots: bool = False  # are the rewards of slots needed?
    examination: bool = False  # are examination curves needed?
    value_model_only: bool = False  # rewards, units and features, and nothing of the policies
    items: bool = False  # are the columns of the reward model needed, with a value for each eligible item?
    days: bool = False  # are the days of displays needed?
    shown_items_only: bool = False  # what the reward model is fitted on: rewards, units, what was shown, and features

    @property
    def columns(self) -> tuple[str, ...]:
        """The needed columns; no other is read."""
        return tuple(dict.fromkeys(role.column for role in self.roles))

    @property
    def policies_too(self) -> bool:
        """Are the columns of the policies read, and not those alone that a model is fitted on?"""
        return not (self.value_model_only or self.shown_items_only)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The control, then the treatments."""
        return self.settings.control, *self.settings.treatments.values()

    @property
    def scores(self) -> tuple[str, ...]:
        """The columns with one score per eligible item."""
        return tuple(dict.fromkeys(name for p in self.policies for name in p.score_columns))

    @property
    def rankings(self) -> tuple[str, ...]:
        """The columns with the rankings of policies that always show the same."""
        return tuple(dict.fromkeys(name for p in self.policies for name in p.ranking_columns))

    @property
    def own_candidates(self) -> dict[str, str]:
        """The lists of policies that choose from items of their own, with whose they are; none where one serves all."""
        several, lists = len(self.settings.treatments) > 1, {}
        for name, policy in self.settings.treatments.items():
            lists[candidates_of(policy)] = f"the treatment '{name}'" if several else "the treatment"
        lists[candidates_of(self.settings.control)] = "the control"
        return {column: whose for column, whose in lists.items() if column is not None}

    @property
    def by_slot(self) -> tuple[str, ...]:
        """The columns with numbers of the control slot by slot."""
        return self.settings.control.slot_columns

    @property
    def audited(self) -> tuple[str, ...]:
        """The columns that the audit looks at beside those of the policies: contexts, the day, ids, and where it draws
        the candidates."""
        log = self.settings.log
        candidates = self.settings.candidates if self.settings.control.can_draw else None
        more = [name for name in (log.date or log.time, log.id or log.unit, candidates) if name is not None]
        return tuple(dict.fromkeys([*log.contexts, *more]))

    @property
    def unpriced(self) -> set[str]:
        """Score columns that a probability of a shown ranking is not computed from, or not always: it is in a column of
        its own, 1 as that of a control that always shows the same, or 0 where a list lacks an item."""
        control = self.settings.control
        unpriced = [p for p in self.policies if logged_columns(p) or candidates_of(p) is not None]
        unpriced += [control] if shows_one_ranking(control) else []
        return {name for p in unpriced for name in p.score_columns}

    @property
    def roles(self) -> list[ColumnRole]:
        """The needed columns in role order."""
        log, analysis = self.settings.log, self.settings.analysis
        roles = [ColumnRole(name, "a number or bool column (a reward)", is_number) for name in log.rewards]
        if log.unit is not None:
            roles.append(ColumnRole(log.unit, "an integer or string column (the unit)", is_key))
        if log.id is not None:
            roles.append(ColumnRole(log.id, "an integer or string column (the display's id)", is_key))
        for role, column in multiplicities_of(log).items():
            roles.append(ColumnRole(column, f"a number column ({MULTIPLICITIES[role].meaning})", is_share))
        roles += self._time_roles()
        if self.value_model_only:
            roles += [
                ColumnRole(name, "a number, bool, string or date column (a feature)", is_feature)
                for name in log.features
            ]
            return roles
        roles += [*self._ranking_roles(), *(self.slot_roles if self.slots else []), *self._item_roles()]
        if self.shown_items_only:
            return [*roles, *self._feature_roles()]
        roles += self._policy_roles()
        if self.examination:
            what = "an integer, string or bool column (its value chooses the examination curve)"
            roles += [ColumnRole(name, what, is_label) for name in examination_columns(analysis.examination)]
        roles += [ColumnRole(name, "a column (of the reward model)", is_anything) for name in self.extra]
        if analysis.value is not None:
            roles.append(ColumnRole(analysis.value, "a number column (V(x))", is_number))
        if self.strata and analysis.strata != VALUE_MODEL:
            roles.append(ColumnRole(analysis.strata, "an integer, string or bool column (strata)", is_label))
        roles += self._feature_roles()
        roles += [ColumnRole(name, "an integer, string or bool column (a segment)", is_label) for name in log.segments]
        if log.logger is not None:
            roles.append(ColumnRole(log.logger, "an integer, string or bool column (the logger)", is_label))
        if log.date is not None:
            day = ColumnRole(log.date, _DAY, is_day)
            # only shares of several loggers and uplifts by day need it: elsewhere a date of another type is left alone
            needed = log.logger is not None or log.time is not None
            roles.append(day if needed else ColumnRole(log.date, "a column", is_anything))
        return roles

    def _time_roles(self) -> list[ColumnRole]:
        """When displays were shown, and when their rewards came."""
        log, roles = self.settings.log, []
        if log.time is not None:
            roles.append(ColumnRole(log.time, f"{_TIME} (of the display)", is_time))
        if self.settings.trained_until is not None and log.date is not None:
            roles.append(ColumnRole(log.date, _DAY, is_day))
        what, fits = f"{_TIME} (of the reward)", is_time
        if log.reward_age is not None:
            what, fits = "a number column (seconds from display to reward)", is_share
        return [*roles, *(ColumnRole(name, what, fits) for name in dict.fromkeys(reward_columns(log).values()))]

    def _feature_roles(self) -> list[ColumnRole]:
        """The context features that are read."""
        what = "a number, bool, string or date column (a feature)"
        named = [name for name in self.settings.log.features if self.features or name in self.audited]
        return [ColumnRole(name, what, is_feature) for name in named]

    @property
    def item_columns(self) -> tuple[str, ...]:
        """The columns that the reward model reads, with a value for each eligible item; none where it is not needed."""
        log, analysis = self.settings.log, self.settings.analysis
        return (log.item_features or tuple(prediction_columns(log, analysis).values())) if self.items else ()

    def _item_roles(self) -> list[ColumnRole]:
        """Features of items, numbers or text, or their predicted rewards."""
        if not self.settings.log.item_features:
            what = "a list of numbers (the predicted reward of each eligible item)"
            return [ColumnRole(name, what, is_list_of(is_number)) for name in self.item_columns]
        what = "a list of numbers or strings (a feature of each eligible item)"
        return [ColumnRole(name, what, is_list_of(is_item_feature)) for name in self.item_columns]

    def _ranking_roles(self) -> list[ColumnRole]:
        """What was shown, and the eligible items where the ranking has ids."""
        log = self.settings.log
        if log.ranking is None:
            return []
        shown = ColumnRole(log.ranking, *self._items("shown"))
        lists = self.own_candidates if log.candidates is None else {log.candidates: ""}
        return [shown, *(ColumnRole(name, _ids(whose), is_list_of(is_key)) for name, whose in lists.items())]

    def _items(self, of: str) -> tuple[str, Callable[[pa.DataType], bool]]:
        """What a column of rankings must be, in words and as a test of its type."""
        if self.settings.candidates is None:
            return f"a list of integers, or one integer (the positions {of})", is_one_or_list_of(is_integer)
        return f"a list of integer or string ids, or one id (the items {of})", is_one_or_list_of(is_key)

    def _policy_roles(self) -> list[ColumnRole]:
        """Scores, logged probabilities, and whatever else a user's own policy reads."""
        roles = [
            ColumnRole(name, f"a list of numbers (scores{self._whose(name)})", is_list_of(is_number))
            for name in self.scores
        ]
        roles += [ColumnRole(name, *self._items(f"of a fixed ranking{self._whose(name)}")) for name in self.rankings]
        what = "a list of numbers (the control's probabilities, slot by slot)"
        roles += [ColumnRole(name, what, is_list_of(is_number)) for name in self.by_slot]
        known = (*self.scores, *self.rankings, *self.by_slot)
        for policy in self.policies:
            logged = {name for name, _ in logged_columns(policy)}
            for name in policy.columns:
                if name in logged:
                    roles.append(ColumnRole(name, f"a number column (a probability{self._whose(name)})", is_number))
                elif name not in known:
                    roles.append(ColumnRole(name, f"a column ({whose_columns(policy)})", is_anything))
        return roles

    @property
    def slot_roles(self) -> list[ColumnRole]:
        """The columns that say what each slot earned."""
        what = "a list of numbers, or one number (what each slot earned)"
        columns = (self.settings.log.slot_rewards or {}).values()
        return [ColumnRole(name, what, is_one_or_list_of(is_number)) for name in columns]

    def _whose(self, column: str) -> str:
        """Whose column it is, for a message, where there are several loggers or treatments."""
        control, treatments = self.settings.control, self.settings.treatments
        for name, policy in loggers_of(control).named.items():
            if column in policy.columns:
                return f" of the logger '{name}'"
        if len(treatments) == 1 or column in control.columns:
            return ""
        return next((f" of the treatment '{n}'" for n, p in treatments.items() if column in p.columns), "")


def _ids(whose: str) -> str:
    return f"a list of integer or string ids (the items{whose and ' of '}{whose})"


def logged_columns(policy: Policy) -> list[LoggedColumn]:
    """The columns of logged probabilities that a policy and its components have."""
    own = logged_column(policy)
    inner = [pair for part in components_of(policy) for pair in logged_columns(as_policy(part))]
    return [own, *inner] if own else inner
