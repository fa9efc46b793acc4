"""The command line in this process."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from foretest import cli


def exit_code_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """Run a command, and give its exit code."""
    monkeypatch.setattr(sys, "argv", ["foretest", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code
