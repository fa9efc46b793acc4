"""Figure 1 as data: how the weights of the treatment's own rankings are distributed."""

from __future__ import annotations

from typing import Any

from foretest.aggregates import Aggregates


def weight_distribution(aggregates: Aggregates) -> dict[str, Any] | None:
    """The histogram of log10 w of rankings drawn from the treatment, its quantiles, and the share above the cap.

    source          "draws": rankings drawn from the treatment for the sampled displays; "log": the rows, weighted by w
    displays, draws of the sample (draws null for "log")
    bin_width       in decades
    log10_lower     lower edge of each bin
    share           the treatment's share of each bin
    share_below, share_beyond   of weights under the first and over the last bin
    share_zero, share_infinite  of w = 0, and of rankings that the control never shows
    share_unseen    of the treatment's mass that no row of the log stands for (null for "draws")
    log10_quantiles {"0.1", "0.5", "0.9"}; null where it is beyond what can be seen
    cap, share_above_cap
    notes           in words
    """
    raise NotImplementedError
