"""How many rankings of a display are enumerated rather than drawn: by what either costs, not by their number alone.

The unit is the time of one enumerated ranking. The kernel of two Plackett-Luce policies enumerates a ranking ten times
as fast as it draws one; any other pair prices both through `log_prob`, and a draw takes half as long again, for it must
be sampled too. Sampled displays have their draws whatever is enumerated beside them, so that only the smallest are. A
display may cost `TIMES` what it would cost with draws, all else that is done for it included, so that none costs much
more than one with an item or a slot more.
"""

from __future__ import annotations

from enum import Enum

MOST = 12_000
# for means over many displays: enumerate as many rankings as a few draws would cost, else draw a few
FEW_RANKINGS = 1_000
TIMES = 2.0
_DRAW_BY_KERNEL, _DRAW = 10.0, 1.5
_SMALL = 24  # four items: whatever the policy costs


class Purpose(Enum):
    """For what q(x) is needed; the value is what else a display costs there, in rankings that the kernel enumerates."""

    REWARDED = 3_500  # estimators, band and path of a rewarded row
    SAMPLED = 700  # health and audit, of every sampled display
    PREFIX = 0  # one of several prefixes of a rewarded row


def most_enumerated(draws: int, purpose: Purpose, *, fused: bool) -> int:
    """Displays with up to so many rankings are enumerated, where `draws` rankings would be drawn instead.

    >>> [most_enumerated(draws, purpose, fused=True) for purpose in Purpose for draws in (32, 256)]
    [7640, 12000, 2040, 6520, 1000, 5120]
    >>> [most_enumerated(draws, Purpose.REWARDED, fused=False) for draws in (4, 32, 256)]
    [24, 96, 768]
    >>> most_enumerated(32, Purpose.SAMPLED, fused=False)
    24
    """
    if fused:
        return min(MOST, max(FEW_RANKINGS, int(TIMES * (purpose.value + _DRAW_BY_KERNEL * draws))))
    if purpose is Purpose.SAMPLED:
        return _SMALL
    return min(MOST, max(_SMALL, int(TIMES * _DRAW * draws)))
