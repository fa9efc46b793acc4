"""Machine code on disk: the same answers without numba, and nothing run that is not whole and of these sources."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foretest.kernels import code_files, hashing, machine_code
from foretest.kernels.jit import Kernel, jit
from foretest.kernels.random import uniforms

KEYS = np.arange(3, dtype=np.uint64)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for code, and a kernel that is ready for nothing."""
    monkeypatch.setattr(code_files, "folders", lambda: iter([tmp_path / "missing", tmp_path]))
    monkeypatch.setattr(code_files, "folders_of_level", lambda: iter([]))
    monkeypatch.setattr(uniforms, "by_types", {})
    return tmp_path


def never(*args: Any) -> Any:
    raise AssertionError("compiled again")


def test_loaded_code_gives_what_compiled_code_gives(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = uniforms(1, 2, KEYS, 0, 3, 2)
    (saved,) = place.rglob("random.uniforms-*.code")
    assert code_files.is_saved("random.uniforms")
    monkeypatch.setattr(uniforms, "by_types", {})
    monkeypatch.setattr(machine_code, "compiled_by", never)
    loaded = uniforms(1, 2, KEYS, 0, 3, 2)
    assert loaded.dtype == np.float64
    np.testing.assert_array_equal(loaded, expected)
    del expected
    assert loaded.sum() > 0.0  # the memory is its own
    assert saved.stat().st_size > 1000


def test_threads_that_load_the_same_code_share_it(place: Path) -> None:
    """Each for itself would leave the others with the constants of one, which are gone when its function is."""
    expected = uniforms(1, 2, KEYS, 0, 3, 2)
    (saved,) = place.rglob("random.uniforms-*.code")
    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(machine_code._loaded, [saved.name] * 8)
    assert first is not None
    del others
    gc.collect()
    filler = [np.empty(3).dtype.newbyteorder() for _ in range(10_000)]  # where those constants may have been
    np.testing.assert_array_equal(first(1, 2, KEYS, 0, 3, 2), expected)
    assert len(filler) == 10_000


@pytest.mark.parametrize("damage", ["cut", "a byte", "no header", "another header", "empty"])
def test_damaged_code_is_not_run(damage: str, place: Path) -> None:
    expected = uniforms(1, 2, KEYS, 0, 3, 2)
    (saved,) = place.rglob("random.uniforms-*.code")
    whole = saved.read_bytes()
    _, _, code = whole.partition(b"\n")
    saved.write_bytes({
        "cut": whole[:-100], "a byte": whole[:-100] + b"x" + whole[-99:], "no header": code,
        "another header": b'{"wrapper": 1}\n' + code, "empty": b"",
    }[damage])  # fmt: skip
    uniforms.by_types.clear()
    np.testing.assert_array_equal(uniforms(1, 2, KEYS, 0, 3, 2), expected)
    assert saved.read_bytes() == whole  # written again


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setattr(code_files, "folders", lambda: iter([tmp_path / "file" / "kernels"]))
    monkeypatch.setattr(code_files, "folders_of_level", lambda: iter([]))
    monkeypatch.setattr(uniforms, "by_types", {})
    assert uniforms(1, 2, KEYS, 0, 3, 2).shape == (3, 3, 2)


def test_a_kernel_is_compiled_by_one_process_at_a_time(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = "hashing.any-0.code"
    with code_files.claimed(file) as mine:
        assert mine
        claims = [path.name for path in place.rglob(".*.claim")]
        assert claims == [f".{file}.claim"]
        answers: list[bool] = []
        waits = threading.Thread(target=lambda: answers.append(code_files.claimed(file).__enter__()))
        waits.start()
        waits.join(0.1)
        assert waits.is_alive()  # while the first has it
    waits.join(5.0)
    assert answers == [False]
    assert not list(place.rglob(".*.claim"))
    # the claim of a process that has died is no obstacle
    for claim in [place / "missing" / f".{file}.claim"]:
        claim.touch()
        os.utime(claim, (0, 0))
    with code_files.claimed(file) as mine:
        assert mine
    with pytest.raises(KeyError), code_files.claimed(file):
        raise KeyError
    assert not list(place.rglob(".*.claim"))


CLAIMED = """
import os, signal, sys
from pathlib import Path
from foretest.kernels import code_files
code_files.folders = lambda: iter([Path(sys.argv[1])])
code_files.folders_of_level = lambda: iter([])
with code_files.claimed("hashing.any-0.code"):
    os.kill(os.getpid(), signal.SIGTERM)
"""


def test_nobody_waits_for_a_process_that_was_killed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the demo ends the one that compiles beside it: what comes next would wait for a minute."""
    subprocess.run([sys.executable, "-c", CLAIMED, str(place / "missing")], check=False)
    [claim] = place.rglob(".*.claim")
    monkeypatch.setattr(code_files.time, "sleep", never)
    with code_files.claimed("hashing.any-0.code") as mine:
        assert mine
    assert not claim.exists()


def test_claims_of_others(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file system whose clock is ahead, and of another user, which cannot be removed."""
    claim = place / "missing" / ".hashing.any-0.code.claim"
    claim.parent.mkdir()
    claim.touch()
    os.utime(claim, (4e9, 4e9))
    monkeypatch.setattr(code_files, "_LONGEST", 0.1)

    def refused(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refused)
    with code_files.claimed("hashing.any-0.code") as mine:
        assert mine


def test_code_is_copied_for_other_machines(place: Path, tmp_path: Path) -> None:
    uniforms(1, 2, KEYS, 0, 3, 2)
    target = tmp_path / "image"
    assert code_files.copy_all(target) == 1
    (copied,) = target.rglob("*.code")
    assert copied.parent == target / "kernels" / code_files._key()


def test_each_combination_of_types_has_code_of_its_own() -> None:
    @jit
    def total(x, factor):  # type: ignore[no-untyped-def]
        out = 0.0
        for value in x:
            out += value * factor
        return out

    read_only = np.ones(4)
    read_only.flags.writeable = False
    values: list[Any] = [
        np.ones(4), read_only, np.ones(8)[::2], np.ones(4, np.float32), np.ones(4, np.int32), np.ones(4, np.bool_),
    ]  # fmt: skip
    for x in values:
        for factor in (2.0, 2, np.float32(2), np.uint8(2), np.float64(2), np.int64(2)):
            assert total(x, factor) == 8.0
    # float and np.float64 are alike; int is int64, and np.int64 is written otherwise
    assert len(total.by_types) == len(values) * 5
    assert total(np.ones(2), True) == 2.0
    assert total(np.asfortranarray(np.ones((1, 4)))[0], 1.0) == 4.0
    with pytest.raises(TypeError, match="not list"):
        total([1.0], 2.0)


def test_integers_of_python_beyond_64_bits_with_a_sign_are_unsigned() -> None:
    @jit
    def same(x):  # type: ignore[no-untyped-def]
        return x

    assert same(2**63) == 2**63
    assert same(-(2**63)) == -(2**63)


def test_code_of_other_sources_lies_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = code_files._key()
    other = tmp_path / "kernels"
    other.mkdir()
    for source in Path(code_files.__file__).parent.glob("*.py"):
        (other / source.name).write_bytes(source.read_bytes())
    monkeypatch.setattr(code_files, "__file__", str(other / "code_files.py"))
    code_files._key.cache_clear()
    assert code_files._key() == here  # wherever the package lies
    (other / "hashing.py").write_text("# changed", encoding="utf-8")
    code_files._key.cache_clear()
    assert code_files._key() != here
    monkeypatch.undo()
    code_files._key.cache_clear()
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert code_files._key() != here
    code_files._key.cache_clear()


def test_folders_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    key = code_files._key()
    beside = Path(code_files.__file__).parent / "__pycache__" / key
    monkeypatch.delenv("FORETEST_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert list(code_files.folders()) == [beside, Path("/somewhere/foretest/kernels") / key]
    monkeypatch.setenv("FORETEST_CACHE", "/chosen")
    assert list(code_files.folders()) == [Path("/chosen/kernels") / key, beside]


needs_level = pytest.mark.skipif(code_files._level_key() is None, reason="a processor without AVX2")


@needs_level
def test_code_of_the_processors_level_is_looked_for_last(monkeypatch: pytest.MonkeyPatch) -> None:
    key, package = code_files._level_key(), Path(code_files.__file__).parent
    assert key is not None
    monkeypatch.setenv("FORETEST_CACHE", "/chosen")
    places = [Path("/chosen/kernels") / key, package / "__pycache__" / key, package / "compiled" / key]
    assert list(code_files.folders_of_level()) == places
    # code of this processor is never written there
    assert not {place.name for place in code_files.folders()} & {key}


@needs_level
def test_a_process_compiles_for_the_level_where_it_is_asked_to(tmp_path: Path) -> None:
    expected = uniforms(1, 2, KEYS, 0, 3, 2).tolist()
    script = f"""
from pathlib import Path
import numpy as np
from foretest.kernels import code_files
level = code_files._level_key()
assert code_files._key() != level
code_files.compile_for_level()
assert code_files._key() == level
code_files.folders_of_level = lambda: iter([])
from foretest.kernels.random import uniforms
assert uniforms(1, 2, np.arange(3, dtype=np.uint64), 0, 3, 2).tolist() == {expected!r}
assert len(list(Path({str(tmp_path)!r}, "kernels", level).glob("*.code"))) == 1
"""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_CPU")}
    subprocess.run([sys.executable, "-c", script], check=True, env={**environment, "FORETEST_CACHE": str(tmp_path)})


def test_the_code_that_comes_with_the_package_is_of_these_sources() -> None:
    shipped = Path(code_files.__file__).parent / "compiled"
    assert [folder.name.partition("-")[0] for folder in shipped.iterdir()] == [code_files.sources()], (
        "a kernel has changed: run make compiled"
    )


def test_kernels_run_without_numba_and_beside_it(tmp_path: Path) -> None:
    """In another process: no numba where the code is on disk; then numba and its own kernels, then ours again."""
    np.testing.assert_array_equal(hashing.hash_integers(np.arange(4)), hashing.hash_integers(np.arange(4)))
    expected = [uniforms(1, 2, KEYS, 0, 3, 2).tolist(), hashing.hash_integers(np.arange(4)).tolist()]
    script = f"""
import sys
import numpy as np
from foretest.kernels import hashing
from foretest.kernels.random import uniforms
expected = {expected!r}
keys = np.arange(3, dtype=np.uint64)
def check():
    assert uniforms(1, 2, keys, 0, 3, 2).tolist() == expected[0]
    assert hashing.hash_integers(np.arange(4)).tolist() == expected[1]
check()
assert "numba" not in sys.modules
import numba
@numba.njit
def doubled(x):
    return x * 2.0
assert doubled(np.ones(3)).tolist() == [2.0] * 3
check()
uniforms.by_types.clear()
check()
"""
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ})


def test_only_kernels_of_the_package_are_on_disk() -> None:
    assert isinstance(uniforms, Kernel)

    @jit
    def one(x):  # type: ignore[no-untyped-def]
        return x + 1.0

    assert one(1.0) == 2.0
    assert not code_files.is_saved("test_machine_code.one")


def test_with_another_version_of_numba_its_own_files_are_used(tmp_path: Path) -> None:
    expected = uniforms(1, 2, KEYS, 0, 3, 2).tolist()
    script = f"""
from pathlib import Path
import numpy as np
from foretest.kernels import code_files, machine_code
machine_code._KNOWN = ("0.0.",)
code_files.folders = lambda: iter([Path({str(tmp_path / "ours")!r})])
code_files.folders_of_level = lambda: iter([])
from foretest.kernels.random import uniforms
assert uniforms(1, 2, np.arange(3, dtype=np.uint64), 0, 3, 2).tolist() == {expected!r}
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    assert not list((tmp_path / "ours").rglob("*.code"))
    assert list((tmp_path / "numba").rglob("random.uniforms-*.nbi"))
