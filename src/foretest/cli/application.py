"""The application that commands register with."""

from __future__ import annotations

from cyclopts import App

from foretest._version import __version__

app = App(
    name="foretest",
    version=__version__,
    help="Offline A/B tests for recommender systems: estimate what an online test would show, from the log you already"
    " have.\n\nStart with: foretest demo. Exit codes: 0 done, 1 a bug in Foretest, 2 bad input, 3 a --fail-on condition"
    " is met.",
    suppress_keyboard_interrupt=False,
    help_format="plaintext",  # a Markdown parser takes 40 ms to import, a sixth of what --help costs
)
