"""What a history of A/B tests says of the part of a treatment that a log does not support, and its use."""

from foretest.calibration.file import Calibration
from foretest.calibration.fit import History, apply

__all__ = ["Calibration", "History", "apply"]
