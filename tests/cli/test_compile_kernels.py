"""Kernels compiled beside the first demo: the right ones, only when they are missing, and never longer than it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from foretest.cli import compile_kernels as background
from foretest.kernels import code_files
from foretest.kernels.jit import Kernel


def signatures() -> dict[Kernel, set[Any]]:
    """Of every kernel that Python calls, the types it is ready for."""
    by_kernel = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("foretest.kernels."):
            for kernel in vars(module).values():
                if isinstance(kernel, Kernel) and not kernel.options.get("no_cpython_wrapper"):
                    by_kernel[kernel] = set(kernel.by_types)
    return by_kernel


COMPILED = [
    "draws", "log_weight_bound", "squares_of_draws", "cut_of_draws", "uniforms", "path_of_draws", "ranks_by_score",
    "adaptive_caps_of_draws", "plackett_luce", "plackett_luce_company", "shown_marginals", "bounds_of_slots",
    "log_prob",
]  # fmt: skip


@pytest.mark.slow
def test_kernels_are_compiled_for_the_types_of_the_demo(tmp_path: Path) -> None:
    """In a process of its own, where no other test has compiled anything."""
    script = f"""
import sys
sys.path.insert(0, {os.getcwd()!r})
from tests.cli.test_compile_kernels import COMPILED, signatures
from foretest.cli.compile_kernels import compile_kernels
from foretest.offline.test import OfflineTest
from foretest.simulate import WORLDS, write_log

compile_kernels()
before = signatures()
write_log({str(tmp_path)!r}, WORLDS["paper"], 3000)
OfflineTest.from_toml({str(tmp_path / "settings.toml")!r}).run({str(tmp_path / "log.parquet")!r})
compiled = {{kernel.__name__ for kernel, types in before.items() if types}}
assert compiled >= set(COMPILED), set(COMPILED) - compiled
for kernel, types in signatures().items():
    if kernel.__name__ in COMPILED:
        assert types == before[kernel], (kernel.__name__, types - before[kernel])
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_kernels_are_looked_for_where_their_code_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    background.compile_kernels()
    assert background.is_compiled()
    monkeypatch.setattr(code_files, "folders", lambda: iter([tmp_path]))
    monkeypatch.setattr(code_files, "folders_of_level", lambda: iter([]))
    assert not background.is_compiled()
    (tmp_path / "ranking_draws.draws-0.code").touch()
    assert background.is_compiled()


def test_the_other_process_ends_with_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_files, "folders", lambda: iter([tmp_path]))
    monkeypatch.setattr(code_files, "folders_of_level", lambda: iter([]))
    started: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            started.append(self)

    monkeypatch.setattr(background.subprocess, "Popen", Recorded)
    with background.compiling_in_background():
        assert started[0].poll() is None
    assert started[0].poll() is not None
    monkeypatch.setattr(background, "is_compiled", lambda: True)
    with background.compiling_in_background():
        assert len(started) == 1
