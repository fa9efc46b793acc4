"""Checks of a user's own classes, to be run in the user's own tests."""

from __future__ import annotations

from foretest.testing.policies import PolicyReport, WrongPolicy, check_policy

__all__ = ["PolicyReport", "WrongPolicy", "check_policy"]
