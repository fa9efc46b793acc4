"""foretest warm: everything that is compiled, in one folder, for images and executors."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import Quiet
from foretest.errors import BadInput
from foretest.files import user_path
from foretest.progress import progress_bar


@app.command
def warm(
    folder: Annotated[str, Parameter(help="Where to put the compiled kernels and page templates; made if missing.")],
    /,
    *,
    quiet: Quiet = False,
) -> int:
    """Compile all kernels into a folder, so that containers and Spark executors start without compiling.

    Runs small tests of every built-in policy, which takes a few minutes where nothing is compiled yet. Set the
    variable FORETEST_CACHE to the folder where Foretest runs, with the same versions. The code is for all processors
    that have AVX2 (x86-64-v3), and on others for this kind.
    Example: foretest warm /opt/foretest-cache
    """
    place = user_path(folder)
    if not isinstance(place, Path):
        raise BadInput(f"{folder}: expected a folder of this machine; copy it to the store when all is in it.")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be made a folder ({error.strerror or error}).") from None
    if not os.access(place, os.W_OK):
        raise BadInput(f"{folder}: cannot be written to.")
    place = place.resolve()
    os.environ["FORETEST_CACHE"] = str(place)
    from foretest.kernels.code_files import compile_for_level, copy_all

    compile_for_level()
    from foretest.cli.small_tests import run_small_tests

    with progress_bar(quiet=quiet) as progress:
        run_small_tests(progress)
    print(f"{folder}: {copy_all(place):,} kernels. Set FORETEST_CACHE={shlex.quote(str(place))} where Foretest runs.")
    return 0
