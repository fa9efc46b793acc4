"""Vega, Vega-Lite and Vega-Embed as one script: made by vl-convert, then cached in the user's cache folder."""

from __future__ import annotations

import contextlib
import hashlib
from importlib.resources import files
from pathlib import Path

from foretest.files import cache_folder
from foretest.provenance import installed_version

# Addresses in the libraries: of an editor that pages never offer, of a schema, of advice in a message. None is needed,
# and a page that names no other host is easier to trust.
_ADDRESSES = {
    "https://vega.github.io/editor/": "about:blank",
    "https://vega.github.io/schema/": "/schema/",
    "https://github.com/": "",
}
_LAYOUT = 1  # version of the cached file's layout, part of its name


def vega_bundle() -> str:
    """The script that defines `vegaEmbed`, after its licence notices; from the cache if it is there."""
    try:
        path = cache_folder() / f"vega-{installed_version('vl-convert-python')}-{_LAYOUT}.js"
    except RuntimeError:  # a user without a home
        return make_bundle()
    cached = _read(path)
    if cached is not None:
        return cached
    script = make_bundle()
    with contextlib.suppress(OSError):  # a read-only or full disk: the script is made again each time
        _write(path, script)
    return script


def make_bundle() -> str:
    """The script, made again, which takes about two seconds."""
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    for address, other in _ADDRESSES.items():
        script = script.replace(address, other)
    # the page has the script in a script element, which these marks would end or confuse
    for mark in ("</script", "<!--"):
        script = script.replace(mark, mark.replace("<", "\\x3c"))
    return f"/*\n{notices()}*/\n{script}"


def notices() -> str:
    """The licences of the libraries in the bundle."""
    return (files("foretest.report") / "templates" / "notices.txt").read_text(encoding="utf-8")


def _read(path: Path) -> str | None:
    """The cached script; None unless it is complete: its first line must be the hash of the rest."""
    try:
        mark, _, script = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return script if mark == _mark(script) else None


def _write(path: Path, script: str) -> None:
    from foretest.files import write_whole

    write_whole(path, f"{_mark(script)}\n{script}")


def _mark(script: str) -> str:
    return f"// sha256 {hashlib.sha256(script.encode()).hexdigest()}"
