"""What the first demo would wait for, done beside it: kernels are compiled in a process of their own.

numba compiles one kernel at a time and keeps it on disk. While the demo simulates its log, another process compiles the
kernels that the demo needs last, so that it finds them ready: `python -m foretest.cli.compile_kernels`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

_LARGEST = "ranking_draws"  # the module of the kernel that takes longest


@contextmanager
def compiling_ahead() -> Iterator[None]:
    """Compile in another process until the block ends; nothing where kernels lie on disk already."""
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
    """Is the largest kernel on disk, newer than its source? Looked for where numba looks, without importing it."""
    spec = find_spec(f"foretest.kernels.{_LARGEST}")
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin)
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(chosen)] if chosen else [source.parent / "__pycache__", Path(os.path.expanduser("~/.cache/numba"))]
    found = (index for place in places for index in place.rglob(f"{_LARGEST}.draws-*.nbi"))
    return any(index.stat().st_mtime >= source.stat().st_mtime for index in found)


def compile_kernels() -> None:
    """Call kernels on two displays as a test of two Plackett-Luce policies with float32 scores calls them.

    Those that a test reaches last come first: it begins with the others meanwhile.
    """
    import numpy as np

    from foretest.aggregation.audit_draws import draw_from_control, drawn_columns
    from foretest.aggregation.point_path import BOUNDS, CAPS
    from foretest.displays.batch import Displays
    from foretest.displays.ragged import Ragged
    from foretest.policies import PlackettLuce
    from foretest.weights.normaliser import Normaliser
    from foretest.weights.slot_weights import slot_prices

    g = np.random.default_rng(0)
    # so many rankings that they are drawn, so far apart that none is certified
    lists = {name: Ragged.of(g.normal(scale=3.0, size=(2, 20)).astype(np.float32)) for name in ("t", "p")}
    shown = Ragged.of(np.array([[0, 1, 2, 3], [3, 2, 1, 0]], np.int32))
    displays = Displays({**lists}, shown, np.full(2, 20), np.arange(2).astype(np.uint64))
    treatment, control, log_w = PlackettLuce("t"), PlackettLuce("p"), np.zeros(2)
    normaliser = Normaliser(treatment, control).for_batch(displays)
    normaliser.at_cap(displays, 2.0, zero=False)
    normaliser.path(displays, log_w, CAPS, BOUNDS)
    drawn_columns(control, displays, log_w, draw_from_control(normaliser, displays, 16, weigh=True), seed=0)
    normaliser.at_adaptive_cap(displays, 2.0)
    slot_prices(displays, log_w, normaliser, [2.0])
    treatment.log_prob(displays, shown)


if __name__ == "__main__":
    import gc

    gc.disable()
    compile_kernels()
