"""Tables that fit: where the terminal is narrow, the columns that are least needed are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

from foretest.records import dataclass

_FOLDED = 12  # characters that a column of names needs at least; longer names go on in the next line


@dataclass(frozen=True)
class Column:
    """A column of a table: its title and its cells. An `optional` one may be left out, the highest number first."""

    title: str
    cells: Sequence[str | Text]
    number: bool = False  # aligned right
    optional: int = 0
    folds: bool = False  # are long cells broken into lines?

    @property
    def width(self) -> int:
        """The characters that it needs."""
        widest = max(cell_len(str(text)) for text in (self.title, *self.cells))
        return min(widest, _FOLDED) if self.folds else widest


@dataclass(frozen=True)
class FittedTable:
    """A table of columns, as many of them as the terminal has room for."""

    columns: Sequence[Column]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Table]:
        yield self.table(options.max_width)

    def table(self, width: int) -> Table:
        """The table in so many characters. Gaps shrink before the last optional column is left out."""
        ranks = sorted({column.optional for column in self.columns if column.optional}, reverse=True)
        for left_out in range(len(ranks) + 1):
            shown = [column for column in self.columns if column.optional not in ranks[:left_out]]
            needed, gaps = sum(column.width for column in shown), len(shown) - 1
            for gap in (2, 1) if left_out == len(ranks) - 1 else (2,):
                if needed + gap * gaps <= width:
                    return _table(shown, gap)
        return _table(shown, 1)


def _table(columns: Sequence[Column], gap: int) -> Table:
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.number else "left",
            no_wrap=not column.folds,
            overflow="fold" if column.folds else "ellipsis",
        )
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*cells)
    return table


def markdown_table(columns: Sequence[Column]) -> str:
    r"""All columns as a Markdown table.

    >>> print(markdown_table([Column("metric", ["a|b"]), Column("uplift", ["+1.0 %"], number=True)]))
    | metric | uplift |
    | --- | ---: |
    | a\|b | +1.0 % |
    """
    rows = [[markdown_text(column.title) for column in columns], ["---:" if c.number else "---" for c in columns]]
    rows += [[_markdown_cell(cell) for cell in cells] for cells in zip(*(c.cells for c in columns), strict=True)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _markdown_cell(cell: str | Text) -> str:
    """A cell; the name of the headline, which the terminal marks with >, is bold."""
    if isinstance(cell, Text) and cell.style == "bold":
        return f"**{markdown_text(cell.plain.removeprefix('> '))}**"
    return markdown_text(str(cell))


def markdown_text(text: str) -> str:
    r"""Text that Markdown shows as it is, in one line.

    >>> markdown_text("a|b *c*"), markdown_text("<b> two\nlines")
    ('a\\|b \\*c\\*', '\\<b\\> two lines')
    """
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~" else c for c in " ".join(text.split()))
