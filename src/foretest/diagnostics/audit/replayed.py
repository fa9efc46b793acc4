"""Does every row show what follows from the service's seed and its id?"""

from __future__ import annotations

from foretest.aggregation.replay_sums import ReplaySums
from foretest.formatting import plural
from foretest.results.audit import FAIL, PASS, Finding, not_made

NAME = "replayed"


def replayed(counts: ReplaySums) -> Finding:
    """Every row is drawn again, none is sampled: a single one that differs fails."""
    if not counts.rows:
        return not_made(NAME, "the log has no row of a control with replay_seed")
    share = counts.differ / counts.rows
    if not counts.differ:
        meaning = f"100 % of the rows ({counts.rows:,}) show what follows from the seed and their ids"
        return Finding(NAME, PASS, None, 0.0, meaning, None)
    what = "shows" if counts.differ == 1 else "show"
    return Finding(
        NAME, FAIL, None, share,
        f"{counts.differ:,} of {plural(counts.rows, 'row')} {what} another ranking than follows from the seed and the"
        f" id; the first has the id {counts.first.id if counts.first else ''}",
        _remedy(share),
    )  # fmt: skip


def _remedy(share: float) -> str:
    """What to do: if nearly all rows differ, the settings are wrong; if some do, something changed what was drawn."""
    if share > 0.5:
        return (
            "The seed, the policy or one of its numbers is not what served, the ids are of another type than the keys"
            ' (12 is not "12"), or the scores were rounded or reordered on the way.'
        )
    return (
        "These rows were changed after they were drawn, by filters, caches or fallbacks, or were drawn by another seed"
        " or policy, or their scores were rounded: find what they have in common."
    )
