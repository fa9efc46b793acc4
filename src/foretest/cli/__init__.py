"""The command line. Heavy modules are imported inside commands, so that --help answers at once."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

from foretest.cli import demo, history, offline, online, paper, simulate  # noqa: F401  they register themselves
from foretest.cli.application import app
from foretest.errors import BadInput

__all__ = ["app", "main"]


def main() -> NoReturn:
    """The entry point: every outcome has an exit code, bad input one line on stderr."""
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
    except KeyboardInterrupt:
        _fail("stopped", 130)


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
        what = " ".join(str(error).split())
    return f"{what} See foretest {command + ' ' if command else ''}--help."
