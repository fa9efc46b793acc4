"""The command line in this process."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from foretest import cli

#: of a log with two logged policies, as few numbers as there can be
LOGGED = """\
[log]
rewards = ["click"]

[control]
policy = "logged"
prob = "control"

[treatment]
policy = "logged"
prob = "treatment"

[analysis]
estimators = ["ncis"]
n_resamples = 100
"""


def exit_code_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """Run a command, and give its exit code."""
    monkeypatch.setattr(sys, "argv", ["foretest", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code
