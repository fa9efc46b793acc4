"""Options that commands share; those of the analysis come from its settings dataclass."""

from __future__ import annotations

from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from foretest.errors import BadInput, choose, nearest
from foretest.settings.analysis import Analysis

ENGINES = ("local", "spark")
VERDICTS = ("negative", "neutral", "insufficient")
AUDIT = "audit"
GUARDRAIL = "guardrail"

_KINDS: dict[str, Any] = {
    "estimators": list[str], "cap": float | Literal["auto"], "weight_bound": float, "draws": int,
    "confidence_level": float, "n_resamples": int, "buckets": int, "strata_base": float, "folds": int,
    "seed": int, "r_max": float, "gamma": list[float], "ignore_audit": bool,
}  # fmt: skip


def option(name: str, text: str) -> Any:
    kind = _KINDS.get(name, str)
    return Annotated[kind | None, Parameter(help=text, negative=(), consume_multiple=True)]


AnalysisOptions = make_dataclass(
    "AnalysisOptions",
    [(f.name, option(f.name, f.metadata["help"]), None) for f in fields(Analysis)],
    namespace={"__module__": __name__},  # cyclopts takes the classes of module "types" for builtins
)

OnlineOptions = make_dataclass(
    "OnlineOptions",
    [
        (f.name, option(f.name, f.metadata["help"].replace(" | bernstein | betting", "")), None)
        for f in fields(Analysis)
        if f.name in ("confidence_level", "interval", "n_resamples", "buckets", "seed")
    ],
    namespace={"__module__": __name__},
)

_LOGS = "Files (Parquet, Arrow, CSV, JSON lines), folders or globs: one row a display."
Logs = Annotated[list[Path] | None, Parameter(help=_LOGS, negative=())]
SqlText = Annotated[
    str | None,
    Parameter(
        help="Instead of LOG a query over files, as in SELECT * FROM 'log.parquet' JOIN 'scores.csv' USING (id)."
    ),
]
SettingsFile = Annotated[Path, Parameter(name=("--config", "-c"), help="The settings file (TOML).")]
MaybeSettingsFile = Annotated[
    Path | None,
    Parameter(name=("--config", "-c"), help="The settings file (TOML); saved aggregates can do without."),
]
FailOn = Annotated[
    str,
    Parameter(
        help="Exit with code 3 if any metric's verdict is one of these, comma-separated:"
        " negative, neutral, insufficient; guardrail: if one fails. Where metrics have roles, verdicts are the goals'."
    ),
]
CalibrationFile = Annotated[
    Path | None,
    Parameter(help="calibration.json of foretest history: the calibrated estimates are given beside the plain ones."),
]
FailOnAudit = Annotated[str, Parameter(help="Exit with code 3 if the propensity audit fails: audit.")]
FailOnAll = Annotated[
    str,
    Parameter(
        help="Exit with code 3 if any metric's verdict is one of these, comma-separated:"
        " negative, neutral, insufficient; audit: if the propensity audit fails; guardrail: if one fails. Where metrics"
        " have roles, verdicts are the goals'."
    ),
]
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print the result as JSON, and nothing else.")]
Figures = Annotated[
    bool,
    Parameter(name="--figures", negative=(), help="Also write OUT/figures: each figure as .vl.json, .svg and .png."),
]
Engine = Annotated[
    str,
    Parameter(help="local, or spark: PySpark reads LOG (Parquet) or runs the query, and its tasks fold the rows."),
]
Threads = Annotated[int | None, Parameter(help="Threads that read and fold the log; default: all cores.")]
Overrides = Annotated[
    AnalysisOptions | None,  # type: ignore[valid-type]
    Parameter(name="*", group="Instead of what the settings file says in its table analysis"),
]


def log_or_sql(command: str, log: list[Path] | None, sql: str | None, engine: str = "local") -> Any:
    """The log that a command is given: files, or a query; read here, or by Spark."""
    choose("engine", engine, ENGINES)
    if log and sql is not None:
        raise BadInput("LOG and --sql are both given: a query names its files itself, as in FROM 'log.parquet'.")
    if sql is None and not log:
        raise BadInput(f"{command} needs LOG or --sql: {_LOGS} Put them before the options. See foretest {command}"
                       " --help.")  # fmt: skip
    paths = [str(path) for path in log or ()]
    if engine == "spark":
        from foretest.engines.spark import read

        return read(paths, sql)
    if sql is None:
        return paths
    from foretest.sources import Sql

    return Sql(sql)


def verdicts(fail_on: str, known: tuple[str, ...] = VERDICTS) -> list[str]:
    words = [word.strip() for word in fail_on.split(",") if word.strip()]
    for word in words:
        if word not in known:
            hint = nearest(word, known) if word != "positive" else ""
            raise BadInput(f"--fail-on {word}: unknown verdict.{hint} Known: {', '.join(known)}.")
    return words


def refuse_threads(threads: int | None) -> None:
    if threads is not None and threads < 1:
        raise BadInput(f"--threads {threads}: expected at least 1.")
