"""What the tables of the terminal share: columns, styles of verdicts, and plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import StringIO
from textwrap import wrap

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from foretest.formatting import visible_lines
from foretest.settings.metric_roles import INCREASE, toward_good

WIDTH = 80  # of text, and of everything in a narrow terminal
RESULT_WIDTH = 100  # of a result where there is no terminal: its tables have many columns
VERDICT_STYLES = {
    "positive": "bold green", "leans positive": "dim green", "neutral": "yellow", "leans negative": "dim red",
    "negative": "bold red", "insufficient": "magenta",
}  # fmt: skip
GUARDRAIL_STYLES = {"pass": "green", "fail": "bold red", "unclear": "yellow"}


class PlainConsole(Console):
    """A console that shows names as they are, but for characters that a terminal would obey."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible_lines(segment.text))


def plain_text(content: RenderableType, width: int = WIDTH) -> str:
    """What the terminal would show, without colours and without spaces at the ends of lines."""
    out = StringIO()
    # in a notebook rich would show the content below the cell, and write nothing
    console = PlainConsole(
        file=out, width=width, color_system=None, emoji=False, legacy_windows=False, force_jupyter=False
    )
    console.print(content)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip("\n")


def list_table() -> Table:
    """A table without a header."""
    return Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)


def headed_table() -> Table:
    """A table with a dim header."""
    return Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")


def add_number_columns(table: Table, *titles: str) -> None:
    """Columns of numbers: aligned right, never wrapped."""
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)


def verdict_text(verdict: str, direction: str = INCREASE, mark: str = "") -> Text:
    """A verdict or a word in its colour: green is good and red is bad, whichever way is better; what leans is dim."""
    return Text(verdict + mark, style=VERDICT_STYLES[toward_good(verdict, direction)])


def guardrail_text(state: str) -> Text:
    """Whether a guardrail is kept, in its colour."""
    return Text(state, style=GUARDRAIL_STYLES[state])


def wrapped_lines(sentences: Iterable[str]) -> list[Text]:
    """Sentences as dim, indented lines."""
    return [Text(f"  {line}", style="dim") for sentence in sentences for line in wrap(sentence, WIDTH - 2)]


def note_lines(notes: Iterable[str]) -> list[Text]:
    """The notes below all tables, after an empty line; nothing if there are none."""
    lines = [Text(f"Note: {note}", style="dim") for note in notes]
    return [Text(), *lines] if lines else []
