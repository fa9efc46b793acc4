"""The command line. Commands import heavy modules themselves, so that --help answers at once."""

# ruff: noqa: E402

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NoReturn

# what is imported and compiled stays alive: to search it for garbage takes a twentieth of --help and of small runs
gc.set_threshold(500_000)

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

from foretest.background import busy
from foretest.cli import board, convert, demo, history, init, offline, online, paper, planning, saved, simulate, warm  # noqa: F401  importing them registers them
from foretest.cli.application import app
from foretest.errors import BadInput
from foretest.formatting import one_line
from foretest.remains import temporary_folder
from foretest.stores import without_credentials

__all__ = ["app", "main"]


class _Terminated(BaseException):
    """SIGTERM, as KeyboardInterrupt is SIGINT: unfinished files are removed on the way out."""


@contextmanager
def _one_temporary_folder() -> Iterator[None]:
    """Put all temporary files of a command in one folder, and remove it at the end, whatever thread still writes."""
    before = tempfile.tempdir
    with ExitStack() as stack:
        with suppress(OSError):  # no folder can be written: the command that needs one says so
            tempfile.tempdir = str(stack.enter_context(temporary_folder()))
        try:
            yield
        finally:
            tempfile.tempdir = before


@contextmanager
def _raise_on_termination() -> Iterator[None]:
    """Turn SIGTERM into an exception, as Python does with SIGINT."""

    def stop(*_: Any) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main() -> NoReturn:
    """Run a command: every outcome has an exit code, and bad input one line on stderr."""
    # our matrix products are small: BLAS threads would wait between them for longer than they work
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with _raise_on_termination(), _one_temporary_folder():
            _main()
    except KeyboardInterrupt:
        _stop(128 + signal.SIGINT)
    except _Terminated:
        _stop(128 + signal.SIGTERM)
    finally:
        # the last garbage collection takes longer than --help; without it DuckDB reports a leak on stderr
        if "duckdb" not in sys.modules:
            gc.freeze()


def _main() -> NoReturn:
    try:
        code = app(sys.argv[1:], exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()  # a full disk or a closed pipe shows here, not at exit
        sys.exit(code if isinstance(code, int) else 0)
    except CycloptsError as error:
        _fail(_usage_message(error))
    except BadInput as error:
        _fail(str(error))
    except BrokenPipeError:
        _forget_stdout()  # the reader of the pipe has gone: there is nobody to tell
        sys.exit(0)
    except OSError as error:
        place = error.filename or "output"
        if place == "output":
            _forget_stdout()
        _fail(f"{place}: {error.strerror or error}.")


def _stop(code: int) -> NoReturn:
    """Exit at once, with a message. Python would wait for threads that are still at work."""
    if busy():
        print("foretest: stopped", file=sys.stderr, flush=True)
        os._exit(code)
    _fail("stopped", code)


def _fail(message: str, code: int = 2) -> NoReturn:
    print(one_line(f"foretest: {without_credentials(message)}"), file=sys.stderr)
    sys.exit(code)


def _forget_stdout() -> None:
    """Send what is still buffered nowhere: Python would try to write it again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage_message(error: CycloptsError) -> str:
    """What is wrong on the command line, and where to read on."""
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
            if "--config" in argument.names:
                what += " foretest init LOG proposes one."
    else:
        what = " ".join(str(error).split()).replace("float|Literal[auto]|None", 'a number or "auto"')
    return f"{what} See foretest {command + ' ' if command else ''}--help."
