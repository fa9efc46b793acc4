"""Arrow's functions without `pyarrow.compute`: what the documented ones answer, and that days need no import of it."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc

from foretest.displays.arrow_functions import cast, dictionary_encode, replace_in_text, take

TEXTS = pa.array(["2026-03-01T10", None, "2026-03-01 11", "a day", "a day"])
TIMES = pa.array([0, None, 86_400_000_001, -1], pa.timestamp("us"))


def test_functions_answer_as_the_documented_ones() -> None:
    assert dictionary_encode(TEXTS).equals(pc.dictionary_encode(TEXTS))
    rows = pa.array([3, 0, 0])
    assert take(TEXTS, rows).equals(pc.take(TEXTS, rows))
    assert cast(TIMES, pa.date32(), safe=False).equals(pc.cast(TIMES, pa.date32(), safe=False))
    assert cast(pa.array([True, None]), pa.float64()).equals(pc.cast(pa.array([True, None]), pa.float64()))
    day = (r"^(\d{4}-\d{2}-\d{2})[T ].*$", r"\1")
    assert replace_in_text(TEXTS, *day).equals(pc.replace_substring_regex(TEXTS, *day))


def test_days_are_found_without_the_documented_functions() -> None:
    script = """
import sys, pyarrow as pa
from foretest.displays.days import coded_days
coded_days(pa.Array.from_buffers(pa.date32(), 2, [None, pa.py_buffer(bytes(8))]))
assert "pyarrow.compute" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)
