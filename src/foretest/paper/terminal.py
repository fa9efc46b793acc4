"""A run of the paper in a terminal: Table 2 beside the printed one, and the other findings in a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from foretest.formatting import plural
from foretest.paper.markdown import count, percent
from foretest.report.digits import decimal

if TYPE_CHECKING:
    from foretest.paper.study import PaperStudy

_FIGURES = {"correlation": "corr.", "precision": "right", "fnr": "FNR", "ci_size": "CI size"}


def study_table(study: PaperStudy) -> Group:
    """Table 2, ours and the paper's, and one line for each of the others."""
    document = study.to_dict()
    run, rows = document["run"], document["table_2"]["rows"]
    title = f"Table 2: {plural(document['table_2']['tests'], 'test')} of world {run['world']}, in brackets the paper's"
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", title=title, title_justify="left")
    table.add_column("", no_wrap=True)
    for name in _FIGURES.values():
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows.values():
        table.add_row(row["name"], *(_beside(row, name) for name in _FIGURES))
    return Group(table, Text(), *(Text(line, style="dim") for line in _lines(document)))


def _beside(row: dict[str, Any], name: str) -> str:
    printed = f" ({decimal(row['paper'][name]['value'])})" if row["paper"] else ""
    return f"{decimal(row['ours'][name])}{printed}"


def _lines(document: dict[str, Any]) -> list[str]:
    table_1, section = document["table_1"]["closed_form"], document["section_4_3"]
    parts = document["bias_decomposition"]["tests"]
    saving = document["computation_time"]["normalisers"]["point-ncis"]["all_rows_over_rewarded"]
    both = {True: "some cap", False: "no cap", None: "perhaps some cap"}[section["satisfies_both"]]
    needed = section["rows_needed_for_both"]
    return [
        f"Table 1: NCIS {table_1['ncis']:.5f}, PieceNCIS and PointNCIS {table_1['piece-ncis']:.1f},"
        f" truth {table_1['truth']:.1f}",
        f"Section 4.3: {both} has little noise and a small bias bound"
        + (f"; that takes a log of {count(needed)} displays" if needed else ""),
        f"Normaliser, all rows over rewarded rows: {decimal(saving, 1)}",
        f"Bias of NCIS: {percent(parts['mean']['between_contexts'])} between contexts,"
        f" {percent(parts['mean']['within_contexts'])} within",
    ]
