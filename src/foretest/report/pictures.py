"""Specifications as files: name.vl.json, name.svg and name.png, through vl-convert, with no network."""

from __future__ import annotations

import json
import re
from typing import Any

from foretest.files import write_all
from foretest.report.theme import LIGHT
from foretest.stores import Location, location

VEGA_LITE = "6.4"  # one of the versions that vl-convert has
_SCALE = 2.0  # pixels of a PNG per pixel of the chart: legible in print


def write_pictures(folder: str | Location, figures: dict[str, dict[str, Any]]) -> list[Location]:
    """Write every figure in three formats, all of them or none; returns their paths. Other files are left alone.

    Parameters
    ----------
    folder: where the files go; it is made if it is not there.
    figures: Vega-Lite specifications by name, each with a `description`, as `Result.figures` and `Agreement.figures`
        give them.

    Returns
    -------
    The paths of the files, three per figure: .vl.json, .svg and .png.

    >>> import tempfile
    >>> import foretest as ft
    >>> bar = {"description": "one bar", "data": {"values": [{"x": 1}]}, "mark": "bar"}
    >>> bar["encoding"] = {"x": {"field": "x", "type": "quantitative"}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(path.name for path in ft.write_pictures(folder, {"bar": bar}))
    ['bar.png', 'bar.svg', 'bar.vl.json']
    """
    files: dict[Location, bytes] = {}
    for name, spec in figures.items():
        whole = {**spec, "config": LIGHT}
        files[location(folder) / f"{name}.vl.json"] = (
            json.dumps(whole, ensure_ascii=False, allow_nan=False) + "\n"
        ).encode()
        files[location(folder) / f"{name}.svg"] = svg(whole).encode()
        files[location(folder) / f"{name}.png"] = png(whole)
    write_all(files)
    return list(files)


_NOT_IN_XML = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]")


def _drawable(value: Any) -> Any:
    """A specification without letters that XML cannot have, as a name may: drawing them ends the whole process.

    >>> _drawable({"title": ["a\\x1bb"]})
    {'title': ['a�b']}
    """
    if isinstance(value, dict):
        return {_drawable(key): _drawable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_drawable(inner) for inner in value]
    return _NOT_IN_XML.sub("\ufffd", value) if isinstance(value, str) else value


def svg(spec: dict[str, Any]) -> str:
    """A specification as an SVG picture, with its description for screen readers."""
    from xml.sax.saxutils import quoteattr

    import vl_convert

    spec = _drawable(spec)
    picture = str(vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[]))
    return picture.replace("<svg ", f'<svg role="img" aria-label={quoteattr(spec["description"])} ', 1)


def png(spec: dict[str, Any]) -> bytes:
    """A specification as a PNG picture."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(_drawable(spec), vl_version=VEGA_LITE, scale=_SCALE, allowed_base_urls=[]))
