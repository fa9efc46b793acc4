"""A pass that only counts and keeps a sample of displays: what must be known of a log before its fold, or beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold import Fold, for_treatment, with_baseline
from foretest.aggregation.kept_rows import Columns, KeptRows
from foretest.aggregation.quantities import DISPLAYS as DISPLAY_COUNT
from foretest.aggregation.rewarded_sums import add_rewards
from foretest.aggregation.thinning import add_rows, multiplicity_column
from foretest.displays.batch import Displays
from foretest.log.rows import Rows
from foretest.records import dataclass
from foretest.weights.weightings import log_weights

DISPLAYS = 4096
DRAWS = 128  # of each, half from each policy


@dataclass
class SampleFold(Fold):
    """Rows, rewards, units, and displays of the smallest unit hashes with draws from both policies.

    Only the sampled displays are weighed, so that a pass costs little more than reading the log. Bad rows elsewhere are
    left to the fold that follows.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.state = replace(self.state, sample=KeptRows(DISPLAYS, self.state.sample.order))

    def add(self, rows: Rows) -> None:
        if not len(rows):
            return
        state, policies, rows = self.state, self.plan.settings, with_baseline(self.plan, for_treatment(self.plan, rows))
        at = state.ledger.places(self.plan.cells_of(rows))
        state.ledger.plain.add(DISPLAY_COUNT, rows.displays_per_row, at)
        add_rows(state.ledger, rows, at, {})
        add_rewards(state.ledger.plain, rows, at)
        chosen = state.sample.below(rows.unit)
        part = rows.displays.take(chosen)
        columns: Columns = {"unit": rows.unit[chosen]}
        columns["log_w"] = log_weights(policies.treatment, policies.control, part) if len(chosen) else np.empty(0)
        columns |= {("r", m): rows.logged_rewards[chosen, m] for m in range(len(self.plan.metrics))}
        columns |= multiplicity_column(state.ledger, rows, chosen)
        state.sample.add(columns, len(rows), part)

    def unpriced(self) -> Aggregates:
        """Few displays, with draws of their own kind: each part prices its own."""
        aggregates, log = super().unpriced(), self.plan.settings.log
        columns = aggregates.sample.columns()
        if columns and self.plan.can_draw:
            [displays] = aggregates.sample.displays
            if log.unit is None and log.id is None:  # equal rows must not share their draws
                displays = replace(displays, identity=columns["unit"], key_columns=None)
            aggregates.sample.parts = [{**columns, **self._draws(displays)}]
        aggregates.sample.displays = []
        return aggregates

    def _draws(self, displays: Displays) -> Columns:
        treatment, control = self.plan.normaliser.pair.two_sided_draws(displays, DRAWS)
        return {"draws_treatment": treatment, "draws_control": control}
