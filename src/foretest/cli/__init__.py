"""The command line. Heavy modules are imported inside commands, so that --help answers at once."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

from foretest.background import busy
from foretest.cli import demo, history, offline, online, paper, planning, saved, simulate  # noqa: F401  they register themselves
from foretest.cli.application import app
from foretest.errors import BadInput

__all__ = ["app", "main"]


class _Terminated(BaseException):
    """SIGTERM, as KeyboardInterrupt is SIGINT: files that are not whole are removed on the way out."""


@contextmanager
def _one_temporary_folder() -> Iterator[None]:
    """All temporary files of a command lie in one folder, which goes with it, whatever thread still writes."""
    before = tempfile.tempdir
    try:
        folder = tempfile.mkdtemp(prefix="foretest-")
    except OSError:  # nobody may write anywhere: who needs to is told
        yield
        return
    tempfile.tempdir = folder
    try:
        yield
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _termination_is_heard() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main() -> NoReturn:
    """The entry point: every outcome has an exit code, bad input one line on stderr."""
    # what imports and compilation make stays: looking through it for garbage is a tenth of a first run
    gc.set_threshold(100_000)
    # our matrix products are small: threads of BLAS would spin between them longer than they work
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with _termination_is_heard(), _one_temporary_folder():
            _main()
    except KeyboardInterrupt:
        _stop(128 + signal.SIGINT)
    except _Terminated:
        _stop(128 + signal.SIGTERM)
    finally:
        # Python's last look for garbage takes longer than --help; DuckDB calls what it leaves a leak, on stderr
        if "duckdb" not in sys.modules:
            gc.freeze()


def _main() -> NoReturn:
    try:
        code = app(sys.argv[1:], exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()  # a full disk or a closed pipe shows here, not after the last word
        sys.exit(code if isinstance(code, int) else 0)
    except CycloptsError as error:
        _fail(_usage(error))
    except BadInput as error:
        _fail(str(error))
    except BrokenPipeError:
        _forget_stdout()  # the reader of a pipe went away: nothing to say
        sys.exit(0)
    except OSError as error:
        place = error.filename or "output"
        if place == "output":
            _forget_stdout()
        _fail(f"{place}: {error.strerror or error}.")


def _stop(code: int) -> NoReturn:
    """Say so and go. A thread may be deep in a batch: Python would wait for it."""
    if busy():
        print("foretest: stopped", file=sys.stderr, flush=True)
        os._exit(code)
    _fail("stopped", code)


def _fail(message: str, code: int = 2) -> NoReturn:
    print(f"foretest: {' '.join(message.splitlines())}", file=sys.stderr)
    sys.exit(code)


def _forget_stdout() -> None:
    """What is still buffered cannot be written: let Python not try it again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: CycloptsError) -> str:
    """A mistake on the command line, in our words."""
    command = " ".join(error.command_chain or ())
    if isinstance(error, UnusedCliTokensError):
        what = f"unexpected argument '{(error.unused_tokens or ['?'])[0]}'."
    elif isinstance(error, MissingArgumentError) and error.argument is not None:
        argument = error.argument
        if error.keyword is not None:
            what = f"{error.keyword} needs a value."
        else:
            place = "" if argument.name.startswith("-") else " Put it before the options."
            what = f"{command} needs {' or '.join(argument.names)}: {argument.parameter.help}{place}"
    else:
        what = " ".join(str(error).split()).replace("float|Literal[auto]|None", 'a number or "auto"')
    return f"{what} See foretest {command + ' ' if command else ''}--help."
