"""What holds for every test: the environment, and how the tests are spread over workers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadGroupScheduling

# Spark's Python workers may import the tests' own classes, wherever Spark was started
_ROOT = str(Path(__file__).resolve().parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), _ROOT)))
# on cores that others use, the threads of scikit-learn and BLAS wait for each other many times as long as they work
for _library in ("OMP", "OPENBLAS"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def _resamples_are_drawn_once() -> Iterator[None]:
    """Most tests run with the same few numbers of buckets and resamples: the same counts, read only."""
    from foretest.inference.bootstrap import resample_counts
    from foretest.offline import analysis
    from foretest.online import resampling

    @lru_cache(maxsize=8)
    def drawn_once(buckets: int, n_resamples: int, seed: int) -> Any:
        counts = resample_counts(buckets, n_resamples, seed)
        counts.flags.writeable = False
        return counts

    def drawn(buckets: int, n_resamples: int, seed: int) -> Any:
        large = buckets * n_resamples > 1 << 20  # 8 MB
        return (resample_counts if large else drawn_once)(buckets, n_resamples, seed)

    with pytest.MonkeyPatch.context() as patch:
        for module in (analysis, resampling):
            patch.setattr(module, "resample_counts", drawn)
        yield


SHARED = ("spark", "browser")  # one of each per run, so that their tests go to one worker
GROUPS = "file_of_groups"  # where the first worker says which test is in which group, and the scheduler reads it


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On several workers, what takes long begins first: nothing long is left for the end, when others are idle."""
    if not hasattr(config, "workerinput"):
        return
    first: dict[Any, int] = {}
    marks = (*SHARED, "slow")
    for item in items:
        for name in SHARED:
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.xdist_group(name))
        place = next((i for i, name in enumerate(marks) if item.get_closest_marker(name)), len(marks))
        first[_scope(item)] = min(place, first.get(_scope(item), place))
    items.sort(key=lambda item: first[_scope(item)])
    if config.workerinput["workerid"] == "gw0":
        groups = {item.nodeid: _group(item) for item in items if _group(item) is not None}
        Path(config.workerinput[GROUPS]).write_text(json.dumps(groups), encoding="utf-8")


def _group(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("xdist_group")
    return None if mark is None else mark.args[0]


def _scope(item: pytest.Item) -> Any:
    """What goes to one worker: a group, or the tests of a file that are in no group."""
    return _group(item) or item.path


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput[GROUPS] = str(_file_of_groups(node.config))


def _file_of_groups(config: pytest.Config) -> Path:
    folder = config._tmp_path_factory.getbasetemp()
    return folder / "groups.json"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadGroupScheduling | None:
    """`--dist loadgroup`, but tests of no group stay together by file, so that a module's fixtures are made once.

    xdist writes the group into the test's id, which has no effect from pytest 9.2 on: here it is read from a file.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class GroupOrFile(LoadGroupScheduling):
        @cached_property
        def groups(self) -> dict[str, str]:
            return json.loads(_file_of_groups(config).read_text(encoding="utf-8"))

        def _split_scope(self, nodeid: str) -> str:
            group = self.groups.get(nodeid) or super()._split_scope(nodeid)
            return group if group != nodeid else nodeid.partition("::")[0]

    return GroupOrFile(config, log)
