"""How many rankings a policy is asked about in one call."""

from __future__ import annotations

from foretest.displays.batch import Displays

_LEAST, _MOST = 256, 1 << 16
_SCORES = 1 << 18  # arrays of so many numbers stay in the cache: beyond, a policy in NumPy takes twice as long


def rankings_at_once(displays: Displays) -> int:
    """As many rankings as have some hundred thousand scores together.

    >>> from foretest.displays.ragged import Ragged
    >>> import numpy as np
    >>> [
    ...     rankings_at_once(Displays({}, Ragged.of([[0]]), np.array([items]), np.zeros(1, np.uint64)))
    ...     for items in (2, 64, 5000)
    ... ]
    [65536, 4096, 256]
    """
    return max(_LEAST, min(_MOST, _SCORES // max(1, int(displays.eligible.max(initial=1)))))
