"""Options that commands share; those of the analysis come from its settings dataclass."""

from __future__ import annotations

from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from foretest.errors import BadInput, nearest
from foretest.settings import Analysis

VERDICTS = ("negative", "neutral", "insufficient")
AUDIT = "audit"

_KINDS: dict[str, Any] = {
    "estimators": list[str], "cap": float, "weight_bound": float, "draws": int, "confidence_level": float,
    "n_resamples": int, "buckets": int, "strata_base": float, "folds": int, "seed": int, "r_max": float,
    "ignore_audit": bool,
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
        (f.name, option(f.name, f.metadata["help"].replace(" | bernstein", "")), None)
        for f in fields(Analysis)
        if f.name in ("confidence_level", "interval", "n_resamples", "buckets", "seed")
    ],
    namespace={"__module__": __name__},
)

Logs = Annotated[list[Path], Parameter(help="Parquet files, folders or globs: one row a display.", negative=())]
SettingsFile = Annotated[Path, Parameter(name=("--config", "-c"), help="The settings file (TOML).")]
FailOn = Annotated[
    str,
    Parameter(
        help="Exit with code 3 if any metric's verdict is one of these, comma-separated:"
        " negative, neutral, insufficient."
    ),
]
FailOnAudit = Annotated[str, Parameter(help="Exit with code 3 if the propensity audit fails: audit.")]
FailOnAll = Annotated[
    str,
    Parameter(
        help="Exit with code 3 if any metric's verdict is one of these, comma-separated:"
        " negative, neutral, insufficient; audit: if the propensity audit fails."
    ),
]
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print the result as JSON, and nothing else.")]
Threads = Annotated[int | None, Parameter(help="Threads that read and fold the log; default: all cores.")]
Overrides = Annotated[
    AnalysisOptions | None,  # type: ignore[valid-type]
    Parameter(name="*", group="Instead of what the settings file says in its table analysis"),
]


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
