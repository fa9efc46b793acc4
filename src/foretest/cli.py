"""The command line. Heavy modules are imported inside commands, so that --help answers at once."""

from __future__ import annotations

import sys
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from cyclopts import App, CycloptsError, Parameter

from foretest._version import __version__
from foretest.errors import BadInput, choose
from foretest.settings import Analysis

if TYPE_CHECKING:
    from foretest.result import Result

app = App(
    name="foretest",
    version=__version__,
    help="Offline A/B tests for recommender systems: what an online test would show, from the log you already have."
    "\n\nStart with `foretest demo`. Exit codes: 0 done, 2 bad input, 3 a --fail-on condition is met, 1 a bug.",
)
simulate = App(name="simulate", help="Simulated recommenders with a known truth.")
app.command(simulate)

VERDICTS = ("negative", "neutral", "insufficient")

_KINDS: dict[str, Any] = {
    "estimators": list[str], "cap": float, "weight_bound": float, "draws": int, "confidence_level": float,
    "n_resamples": int, "buckets": int, "strata_base": float, "folds": int, "seed": int, "r_max": float,
}  # fmt: skip


def _option(name: str, text: str) -> Any:
    kind = _KINDS.get(name, str)
    return Annotated[kind | None, Parameter(help=text, negative=(), consume_multiple=True)]


AnalysisOptions = make_dataclass(
    "AnalysisOptions",
    [(f.name, _option(f.name, f.metadata["help"]), None) for f in fields(Analysis)],
)

Logs = Annotated[list[Path], Parameter(help="Parquet files, folders or globs: one row a display.", negative=())]
SettingsFile = Annotated[Path, Parameter(name=("--config", "-c"), help="The settings file (TOML).")]
FailOn = Annotated[
    str,
    Parameter(
        help="Exit with code 3 if any metric's verdict is one of these, comma-separated: negative, neutral, insufficient."
    ),
]
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print the result as JSON, and nothing else.")]
Threads = Annotated[int | None, Parameter(help="Threads that read and fold the log; default: all cores.")]
Overrides = Annotated[
    AnalysisOptions | None,  # type: ignore[valid-type]
    Parameter(name="*", group="Overrides of the settings file's [analysis] table"),
]


@app.command
def run(
    log: Logs,
    /,
    *,
    config: SettingsFile,
    out: Annotated[Path | None, Parameter(name=("--out", "-o"), help="Folder for result.json.")] = None,
    json: AsJson = False,
    fail_on: FailOn = "",
    threads: Threads = None,
    analysis: Overrides = None,
) -> int:
    """The offline A/B test: a table on stdout, OUT/result.json.

    Example: foretest run logs/*.parquet -c test.toml -o out --fail-on negative
    """
    wanted = [choose("--fail-on verdict", word.strip(), VERDICTS) for word in fail_on.split(",") if word.strip()]
    test = _test(config, analysis)
    _refuse_file(out)
    with _progress() as progress:
        result = test.run([str(path) for path in log], threads=threads, progress=progress)
    if out is not None:
        _write(result, out)
    _show(result, json)
    if out is not None and not json:
        print(f"\nWritten: {out / 'result.json'}")
    return 3 if any(metric.verdict in wanted for metric in result.metrics.values()) else 0


@app.command
def check(
    log: Logs,
    /,
    *,
    config: SettingsFile,
    json: AsJson = False,
    threads: Threads = None,
    analysis: Overrides = None,
) -> int:
    """Schema and health only: can this log carry the question?

    Every row is read and checked. Example: foretest check logs/*.parquet -c test.toml
    """
    test = _test(config, analysis)
    with _progress() as progress:
        result = test.check([str(path) for path in log], threads=threads, progress=progress)
    if json:
        document = result.to_dict()
        _print_json({key: document[key] for key in ("foretest", "schema", "log", "settings", "health", "notes")})
        return 0
    _show(result, False)
    print("\nEvery row is readable, and the columns fit the settings.")
    return 0


@app.command
def demo(
    *,
    out: Annotated[
        Path, Parameter(name=("--out", "-o"), help="Folder for the log, its settings and the result.")
    ] = Path("foretest-demo"),
    rows: Annotated[int, Parameter(help="Displays to simulate.")] = 200_000,
    seed: Annotated[int, Parameter(help="Of the simulated log.")] = 0,
) -> int:
    """A simulated log with a known truth, the whole test, and the truth beside it."""
    from foretest.offline import OfflineTest
    from foretest.terminal import percent, result_table

    truth = _simulate("paper", rows, seed, out)
    test = OfflineTest.from_toml(out / "settings.toml")
    with _progress() as progress:
        result = test.run(str(out / "log.parquet"), progress=progress)
    _write(result, out)
    console = _console()
    console.print(result_table(result, truth))
    click = result.metrics["click"]
    headline = click.estimates[click.headline or ""]
    console.print(
        f"\nThe log was drawn from a simulated shop, where the treatment's true uplift is {percent(truth['click'], sign=True)}."
        f"\ncis counts what capping cuts off as worthless, so it errs downward; {click.headline} models what was cut off"
        f" and says {percent(headline.rel_effect_size, sign=True)}."
        f"\n\nIn {out}: log.parquet, settings.toml, truth.json, result.json. Try next:"
        f"\n  foretest run {out}/log.parquet -c {out}/settings.toml --cap 1000"
        f"\n  foretest check {out}/log.parquet -c {out}/settings.toml"
        f"\n  foretest simulate log --world no-overlap -o other"
        f"\nThen copy settings.toml, put your own columns in it, and run it on your log.",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
    return 0


@simulate.command(name="log")
def simulate_log_command(
    *,
    out: Annotated[Path, Parameter(name=("--out", "-o"), help="Folder for log.parquet, settings.toml and truth.json.")],
    world: Annotated[str, Parameter(help="paper | mild | dense | sharp | no-overlap")] = "paper",
    rows: Annotated[int, Parameter(help="Displays to simulate.")] = 200_000,
    seed: Annotated[int, Parameter(help="Of everything random.")] = 0,
) -> int:
    """The log of a simulated recommender, with settings to test it and, apart, the truth.

    Example: foretest simulate log --world sharp --rows 500000 -o sharp
    """
    from foretest.terminal import percent

    truth = _simulate(world, rows, seed, out)
    print(
        f"{out}: log.parquet ({rows:,} displays), settings.toml, truth.json (click {percent(truth['click'], sign=True)})"
    )
    print(f"Next: foretest run {out}/log.parquet -c {out}/settings.toml")
    return 0


def main() -> NoReturn:
    """The entry point: every outcome has an exit code, bad input one line on stderr."""
    try:
        code = app(exit_on_error=False, print_error=False, result_action="return_value")
        sys.exit(code if isinstance(code, int) else 0)
    except CycloptsError as error:
        _fail(f"{' '.join(str(error).split())} See foretest --help.")
    except BadInput as error:
        _fail(str(error))
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe went away: nothing to say
        sys.exit(0)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: {error.strerror or error}")
    except KeyboardInterrupt:
        _fail("stopped", 130)


def _fail(message: str, code: int = 2) -> NoReturn:
    print(f"foretest: {message}", file=sys.stderr)
    sys.exit(code)


def _test(config: Path, overrides: Any) -> Any:
    from foretest.offline import OfflineTest

    test = OfflineTest.from_toml(config)
    given = {
        f.name: getattr(overrides, f.name) for f in fields(Analysis) if getattr(overrides, f.name, None) is not None
    }
    return test.replace(**given)


def _progress() -> Any:
    from foretest.progress import progress_bar

    return progress_bar()


def _simulate(world: str, rows: int, seed: int, out: Path) -> dict[str, float]:
    """Write a simulated log; the true relative uplift of each metric."""
    import json

    from foretest.simulate import WORLDS, write_log

    if rows < 1:
        raise BadInput(f"--rows {rows}: expected at least 1.")
    _refuse_file(out)
    chosen = WORLDS[choose("world", world, WORLDS)]
    with _progress() as progress:
        done = 0

        def advance(rows_done: int) -> None:
            nonlocal done
            if progress is not None:
                progress("simulate", rows, rows_done - done)
            done = rows_done

        write_log(out, chosen, rows, seed, progress=advance)
    truth = json.loads((out / "truth.json").read_text(encoding="utf-8"))
    return {name: values["rel_uplift"] for name, values in truth["metrics"].items()}


def _refuse_file(out: Path | None) -> None:
    if out is not None and out.exists() and not out.is_dir():
        raise BadInput(f"{out}: is a file, expected a folder for the output.")


def _write(result: Result, out: Path) -> None:
    result.to_json(out / "result.json")


def _console() -> Any:
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=80)


def _show(result: Result, as_json: bool) -> None:
    from foretest.terminal import result_table

    if as_json:
        _print_json(result.to_dict())
    else:
        _console().print(result_table(result))


def _print_json(document: dict[str, Any]) -> None:
    import json

    print(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
