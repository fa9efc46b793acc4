"""What the treatment shows that the control could not: a share of health, and a note."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.outside_candidates import OUTSIDE
from foretest.formatting import percent


def outside_candidates(aggregates: Aggregates) -> float | None:
    """The share of what the treatment shows that comes from items outside the control's list, all slots alike, over the
    sample of displays; None where the log has one list for all, or no rows."""
    share = aggregates.sampled_displays.get(OUTSIDE)
    known = np.empty(0) if share is None else share[np.isfinite(share)]
    return float(known.mean()) if len(known) else None


def outside_notes(aggregates: Aggregates) -> list[str]:
    """The share as a sentence, for every treatment that has one above 0."""
    names = list(aggregates.plan.settings.treatments) if aggregates.treatments else [""]
    shares = [outside_candidates(sums) for sums in (aggregates, *aggregates.treatments.values())]
    return [
        f"{name and f'{name}: '}{percent(share)} of what the treatment shows comes from items that the control could"
        " not show. No log of the control says anything about them: they are unsupported, and what they may earn is in"
        " the range."
        for name, share in zip(names, shares, strict=True)
        if share
    ]
