"""Vega, Vega-Lite and Vega-Embed as one script: made by vl-convert, then kept in the user's cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

# Addresses that the libraries hold: of an editor that is never offered, of a format's name, of an advice in a message.
# A page that names no other host is easier to trust, and none of them is needed.
_ADDRESSES = {
    "https://vega.github.io/editor/": "about:blank",
    "https://vega.github.io/schema/": "/schema/",
    "https://github.com/": "",
}
_LAYOUT = 1  # of what is kept; another has another name


def vega_bundle() -> str:
    """The script, licence notices in front; it defines `vegaEmbed`."""
    place = cache_folder() / f"vega-{version('vl-convert-python')}-{_LAYOUT}.js"
    kept = _read(place)
    if kept is not None:
        return kept
    script = make_bundle()
    with contextlib.suppress(OSError):  # a read-only or full place: the script is made anew each time
        _write(place, script)
    return script


def make_bundle() -> str:
    """About two seconds of work."""
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    for address, other in _ADDRESSES.items():
        script = script.replace(address, other)
    # the script stands in a script element, which these would end or confuse
    for mark in ("</script", "<!--"):
        script = script.replace(mark, mark.replace("<", "\\x3c"))
    return f"/*\n{notices()}*/\n{script}"


def notices() -> str:
    """The licences of what the bundle holds."""
    return (files("foretest.report") / "templates" / "notices.txt").read_text(encoding="utf-8")


def cache_folder() -> Path:
    """Where the user's caches are, on this system."""
    given = os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given) / "foretest"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "foretest"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "foretest"


def _read(place: Path) -> str | None:
    """What was kept, if it is whole: its first line is the hash of the rest."""
    try:
        mark, _, script = place.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return script if mark == _mark(script) else None


def _write(place: Path, script: str) -> None:
    from foretest.files import write_whole

    write_whole(place, f"{_mark(script)}\n{script}")


def _mark(script: str) -> str:
    return f"// sha256 {hashlib.sha256(script.encode()).hexdigest()}"
