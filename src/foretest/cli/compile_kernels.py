"""Compile kernels in another process while the first demo simulates its log.

numba compiles one kernel at a time and caches it on disk. The other process starts with the kernels that the demo needs
last, so that the demo finds them ready. It runs `python -m foretest.cli.compile_kernels`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SLOWEST = "ranking_draws.draws"  # the kernel that takes longest to compile


@contextmanager
def compiling_in_background() -> Iterator[None]:
    """Compile kernels in another process until the block ends; do nothing if they are on disk already."""
    if is_compiled() or not sys.executable:
        yield
        return
    silent = subprocess.DEVNULL
    helper = subprocess.Popen([sys.executable, "-P", "-m", __spec__.name], stdin=silent, stdout=silent, stderr=silent)
    try:
        yield
    finally:
        helper.terminate()
        helper.wait()


def is_compiled() -> bool:
    """Is the slowest kernel on disk?"""
    from foretest.kernels.code_files import is_saved

    return is_saved(_SLOWEST)


def compile_kernels() -> None:
    """Call kernels on two displays, with the types that a test of two Plackett-Luce policies with float32 scores has.

    The kernels that a test needs last come first: the demo compiles the others itself in the meantime.
    """
    import numpy as np

    from foretest.aggregation.audit_draws import draw_rankings, drawn_columns
    from foretest.aggregation.point_path import BOUNDS, CAPS
    from foretest.aggregation.treatment_scores import compared_scores
    from foretest.displays.batch import Displays
    from foretest.displays.ragged import Ragged
    from foretest.policies import PlackettLuce
    from foretest.weights.company import company_excess
    from foretest.weights.normaliser import Normaliser
    from foretest.weights.slot_weights import slot_prices

    g = np.random.default_rng(0)
    # so many rankings that they are drawn, and scores so far apart that no bound certifies a display
    lists = {name: Ragged.of(g.normal(scale=3.0, size=(2, 20)).astype(np.float32)) for name in ("t", "p")}
    shown = Ragged.of(np.array([[0, 1, 2, 3], [3, 2, 1, 0]], np.int32))
    displays = Displays({**lists}, shown, np.full(2, 20), np.arange(2).astype(np.uint64))
    treatment, control, log_w = PlackettLuce("t"), PlackettLuce("p"), np.zeros(2)
    normaliser = Normaliser(treatment, control).for_batch(displays)
    normaliser.at_cap(displays, 2.0, zero=False)
    normaliser.path(displays, log_w, CAPS, BOUNDS)
    drawn = draw_rankings(normaliser.pair, displays, 16, weigh=True)
    drawn_columns(control, treatment, displays, log_w, drawn, seed=0)
    normaliser.at_adaptive_cap(displays, 2.0)
    prices = slot_prices(displays, log_w, normaliser, [2.0])
    company_excess(control, displays, np.ones(8, np.bool_), 0, prices.control)
    treatment.log_prob(displays, shown)
    compared_scores(lists["p"], lists["t"])


if __name__ == "__main__":
    import gc

    gc.disable()
    compile_kernels()
