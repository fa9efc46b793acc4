"""Memory of a command's process."""

from __future__ import annotations

import subprocess
import sys

import pytest

# arrays of 4 MB, made and freed in a thread, as those of batches are
FAULTS = """
import resource, sys, threading
import numpy as np
if len(sys.argv) > 1:
    from foretest.cli.memory import reuse_freed_memory
    reuse_freed_memory()

def batches(count):
    for _ in range(count):
        arrays = [np.ones(1 << 19) for _ in range(3)]

def faults_of(count):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    thread = threading.Thread(target=batches, args=(count,))
    thread.start()
    thread.join()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults_of(2)
print(faults_of(50))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="another C library")
def test_arrays_take_the_memory_of_those_before_them() -> None:
    def faults(*arguments: str) -> int:
        ended = subprocess.run([sys.executable, "-c", FAULTS, *arguments], capture_output=True, text=True, check=True)
        return int(ended.stdout)

    of_all = 50 * 3 * (1 << 22) // 4096
    assert faults("reuse") < 0.1 * of_all
