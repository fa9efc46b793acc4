"""Options that commands share; those of the analysis come from its settings dataclass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

from foretest.cli.memory import reuse_freed_memory
from foretest.errors import BadInput, choose, nearest
from foretest.files import read_text, user_path
from foretest.settings.analysis import Analysis
from foretest.stores import is_address, location

ENGINES = ("local", "spark")
VERDICTS = ("negative", "neutral", "insufficient")
AUDIT = "audit"
UNVERIFIED = "unverified"
GUARDRAIL = "guardrail"
NO_WINNER = "no-winner"
LEANS_NEGATIVE = "leans-negative"

_TYPES: dict[str, Any] = {
    "estimators": list[str], "cap": float | Literal["auto"], "weight_bound": float | Literal["auto"], "draws": int,
    "confidence_level": float, "n_resamples": int, "buckets": int, "strata_base": float, "folds": int,
    "seed": int, "r_max": float, "gamma": list[float], "gamma_slots": list[float], "ignore_audit": bool,
    "examination": list[str],
}  # fmt: skip
_OVERRIDES = "Settings of the analysis, to use instead of those in the settings file"


def _option(name: str, text: str) -> Any:
    return Annotated[_TYPES.get(name, str) | None, Parameter(help=text, negative=(), consume_multiple=True)]


AnalysisOptions = make_dataclass(
    "AnalysisOptions",
    [(f.name, _option(f.name, f.metadata["help"]), None) for f in fields(Analysis)],
    namespace={"__module__": __name__},  # cyclopts takes the classes of module "types" for builtins
)

OnlineOptions = make_dataclass(
    "OnlineOptions",
    [
        (f.name, _option(f.name, f.metadata["help"].replace(" | bernstein | betting", "")), None)
        for f in fields(Analysis)
        if f.name in ("confidence_level", "interval", "n_resamples", "buckets", "seed", "window")
    ],
    namespace={"__module__": __name__},
)
Overrides = Annotated[AnalysisOptions | None, Parameter(name="*", group=_OVERRIDES)]  # type: ignore[valid-type]
OnlineOverrides = Annotated[OnlineOptions | None, Parameter(name="*", group=_OVERRIDES)]  # type: ignore[valid-type]

_LOGS = "Files (Parquet, Arrow, CSV, JSON lines), folders or globs: one row per display."
Logs = Annotated[list[str] | None, Parameter(help=_LOGS, negative=())]
SqlText = Annotated[
    str | None,
    Parameter(
        help="A query over files to use instead of LOG, as in SELECT * FROM 'log.parquet' JOIN 'scores.csv' USING (id),"
        " or @FILE for a file with the query."
    ),
]
#: what a command says that has no settings file
NO_SETTINGS = (
    "{0} needs --config or -c: The settings file (TOML). foretest init LOG proposes one. See foretest {0} --help."
)

SettingsFile = Annotated[str, Parameter(name=("--config", "-c"), help="The settings file (TOML).")]
MaybeSettingsFile = Annotated[
    str | None,
    Parameter(name=("--config", "-c"), help="The settings file (TOML). Saved aggregates need none."),
]
Vectors = Annotated[
    str | None,
    Parameter(
        help="Instead of a log, lines of JSON with what a sampler in another language draws: each is compared with"
        " foretest.serving."
    ),
]
_VERDICT_CONDITIONS = (
    "Exit with code 3 if any of these conditions is met, comma-separated: negative, neutral, insufficient (the verdict"
    " of any metric; if metrics have roles, of any goal)"
)
_LEANS_CONDITION = (
    "leans-negative (the word of any such metric is negative or leans negative: noise, or the range, lies below 0; of a"
    " goal that should decrease, above 0)"
)
FailOn = Annotated[str, Parameter(help=f"{_VERDICT_CONDITIONS}, guardrail (a guardrail fails).")]
_AUDIT_CONDITIONS = "audit (the propensity audit fails), unverified (too little of it could be run)"
FailOnAudit = Annotated[str, Parameter(help=f"Exit with code 3 if any of these is met: {_AUDIT_CONDITIONS}.")]
_WINNER_CONDITION = (
    "no-winner (no treatment is clearly better in the first goal, worse in no goal and sure to keep every guardrail)"
)
FailOnAll = Annotated[
    str,
    Parameter(
        help=f"{_VERDICT_CONDITIONS}, {_LEANS_CONDITION}, {_AUDIT_CONDITIONS}, guardrail (a guardrail fails),"
        f" {_WINNER_CONDITION}."
    ),
]
CalibrationFile = Annotated[
    str | None,
    Parameter(help="A calibration.json written by foretest history: adds calibrated estimates to the plain ones."),
]
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print the result as JSON, and nothing else.")]
AsMarkdown = Annotated[
    bool, Parameter(name="--markdown", negative=(), help="Print the tables as Markdown, as for a pull request.")
]
Figures = Annotated[
    bool,
    Parameter(name="--figures", negative=(), help="Also write each figure to OUT/figures, as .vl.json, .svg and .png."),
]
NoReport = Annotated[
    bool, Parameter(name="--no-report", negative=(), help="Write OUT/result.json alone, without the page report.html.")
]
Quiet = Annotated[
    bool,
    Parameter(name="--quiet", negative=(), help="Show no progress: no bar, and no line a minute outside a terminal."),
]
Replace = Annotated[
    bool,
    Parameter(
        name="--replace",
        negative=(),
        help="Also replace files of these names that Foretest did not make, or that were edited since.",
    ),
]
Engine = Annotated[
    str,
    Parameter(help="local, or spark: PySpark reads LOG (Parquet) or runs the query, and its tasks add up the rows."),
]
Threads = Annotated[int | None, Parameter(help="Threads that read the log and add up its rows; default: all cores.")]
World = Annotated[
    str,
    Parameter(
        help="The simulated recommender: paper | mild | dense | rewards | sharp | no-overlap | reranker | browsing."
    ),
]
Seed = Annotated[int, Parameter(help="Seed of everything that is random.")]


def analysis_overrides(options: Any) -> dict[str, Any]:
    """The settings of the analysis that options give."""
    given = {f.name: value for f in fields(Analysis) if (value := getattr(options, f.name, None)) is not None}
    if "examination" in given:
        given["examination"] = examination_of(given["examination"])
    return given


def examination_of(words: list[str]) -> str | list[float]:
    """The examination curve on a command line: numbers, or one word.

    >>> examination_of(["1", "0.6"]), examination_of(["fit"]), examination_of(["out/result.json"])
    ([1.0, 0.6], 'fit', 'out/result.json')
    """
    try:
        return [float(word) for word in words]
    except ValueError:
        if len(words) == 1:
            return words[0]
        shown = " ".join(words)
        raise BadInput(
            f"--examination {shown}: expected one number per slot, as in 1.0 0.6 0.4, or one word."
        ) from None


def log_source(command: str, log: list[str] | None, sql: str | None, config: str | None, engine: str = "local") -> Any:
    """The log that a command is given: files or a query, read here or by Spark; None where the settings name tables."""
    choose("engine", engine, ENGINES)
    if sql is None and not log and config is not None and _names_tables(config):
        return None
    if log and sql is not None:
        raise BadInput("LOG and --sql are both given: a query names its files itself, as in FROM 'log.parquet'.")
    if sql is None and not log:
        raise BadInput(f"{command} needs LOG or --sql: {_LOGS} Put them before the options. See foretest {command}"
                       " --help.")  # fmt: skip
    paths = [plain(path) for path in log or ()]
    sql = None if sql is None else query_text(sql)
    if engine == "spark":
        from foretest.engines.spark import read

        return read(paths, sql)
    if sql is None:
        return paths
    from foretest.sources import Sql

    return Sql(sql)


def plain(path: str) -> str:
    """A path without what it can do without, such as ./ and a / at its end; an address as it is.

    >>> plain("./logs/"), plain("s3://shop/logs/")
    ('logs', 's3://shop/logs/')
    """
    return path if is_address(path) else str(Path(path))


def _names_tables(config: str) -> bool:
    """Has the settings file the tables of a long log?"""
    from foretest.settings.file import read_tables

    log = read_tables(location(config)).get("log")
    return isinstance(log, dict) and "tables" in log


def query_text(sql: str) -> str:
    """The query that --sql is given: the text itself, or that of the file in @FILE.

    >>> query_text("SELECT 1")
    'SELECT 1'
    """
    if not sql.startswith("@"):
        return sql
    if sql == "@":
        raise BadInput("--sql @: expected the name of a file after the @, as in --sql @query.sql.")
    path = user_path(sql[1:])
    text = read_text(path, "SQL file", "expected a query in UTF-8, as in SELECT * FROM 'log.parquet'.")
    return text.removeprefix("\ufeff")  # a byte order mark, as some editors write


def fail_conditions(fail_on: str, known: tuple[str, ...] = VERDICTS) -> list[str]:
    """The conditions of --fail-on.

    >>> fail_conditions("negative, neutral")
    ['negative', 'neutral']
    """
    words = [word.strip() for word in fail_on.split(",") if word.strip()]
    for word in words:
        if word not in known:
            hint = nearest(word, known) if word != "positive" else ""
            raise BadInput(f"--fail-on {word}: unknown condition.{hint} Known: {', '.join(known)}.")
    return words


def whole_number(_: Any, tokens: Sequence[Token]) -> int:
    """A converter that refuses 1.5, which would else be rounded."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"expected a whole number, not {tokens[0].value}.") from None


def check_at_least(option: str, value: int, least: int) -> None:
    """Refuse an option's value below the least that makes sense."""
    if value < least:
        raise BadInput(f"{option} {value}: expected at least {least}.")


def prepare_threads(threads: int | None) -> None:
    """Refuse fewer than one thread, and have those that read a log reuse the memory of earlier batches."""
    if threads is not None:
        check_at_least("--threads", threads, 1)
    reuse_freed_memory()
