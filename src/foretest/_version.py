"""The version, read by the package, the build and every file that Foretest writes."""

__version__ = "0.2.0"
