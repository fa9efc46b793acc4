"""foretest check --vectors: another team's sampler against `foretest.serving`."""

from __future__ import annotations

from typing import Any

from foretest.cli.exit_codes import CONDITION_MET
from foretest.cli.output import print_json
from foretest.errors import BadInput
from foretest.files import read_text
from foretest.formatting import plural
from foretest.stores import location

_MOST = 20  # lines that differ are shown


def check_vectors_file(path: str, others: dict[str, Any], *, as_json: bool) -> int:
    """Check the vectors of a file; 3 where a line differs. `others` are options that are for a log."""
    for name, value in others.items():
        if value:
            raise BadInput(f"--vectors checks a file of vectors, without a log: leave {name} out.")
    from foretest.serving.vectors import check_vectors

    text = read_text(location(path), "file of vectors", "expected lines of JSON.")
    try:
        checked = check_vectors(text.split("\n"))  # other ends of lines may stand within text
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    differences = checked.differences
    if as_json:
        print_json({"lines": checked.lines, "differences": [difference._asdict() for difference in differences]})
    elif not differences:
        print(f"{path}: {plural(checked.lines, 'vector')}, each as foretest.serving draws it.")
    else:
        for difference in differences[:_MOST]:
            print(f"line {difference.line}: {difference.what}")
        if len(differences) > _MOST:
            print(f"… and {len(differences) - _MOST:,} more")
        print(f"{path}: {len(differences):,} of {plural(checked.lines, 'vector')} differ.")
    return CONDITION_MET if differences else 0
