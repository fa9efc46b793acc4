"""The command line. Heavy modules are imported inside commands, so that --help answers at once."""

from __future__ import annotations

import os
import sys
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, UnusedCliTokensError

from foretest._version import __version__
from foretest.errors import BadInput, choose, nearest
from foretest.settings import Analysis

if TYPE_CHECKING:
    from foretest.result import Result

app = App(
    name="foretest",
    version=__version__,
    help="Offline A/B tests for recommender systems: what an online test would show, from the log you already have."
    "\n\nStart with `foretest demo`. Exit codes: 0 done, 2 bad input, 3 a --fail-on condition is met, 1 a bug.",
    suppress_keyboard_interrupt=False,
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
    namespace={"__module__": __name__},  # cyclopts takes the classes of module "types" for builtins
)

OnlineOptions = make_dataclass(
    "OnlineOptions",
    [
        (f.name, _option(f.name, f.metadata["help"].replace(" | bernstein", "")), None)
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
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print the result as JSON, and nothing else.")]
Threads = Annotated[int | None, Parameter(help="Threads that read and fold the log; default: all cores.")]
Overrides = Annotated[
    AnalysisOptions | None,  # type: ignore[valid-type]
    Parameter(name="*", group="Instead of what the settings file says in its table analysis"),
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
    wanted = _verdicts(fail_on)
    _refuse_threads(threads)
    _refuse_place(out)
    test = _test(config, analysis)
    with _progress() as progress:
        result = test.run([str(path) for path in log], threads=threads, progress=progress)
    return _deliver(result, out, json, wanted)


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
    _refuse_threads(threads)
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
def online(
    control: Annotated[Path, Parameter(help="The control's log: a Parquet file, folder or quoted glob.")],
    treatment: Annotated[Path, Parameter(help="The treatment's log: a Parquet file, folder or quoted glob.")],
    /,
    *,
    config: SettingsFile,
    out: Annotated[Path | None, Parameter(name=("--out", "-o"), help="Folder for result.json.")] = None,
    json: AsJson = False,
    fail_on: FailOn = "",
    threads: Threads = None,
    analysis: Annotated[
        OnlineOptions | None,  # type: ignore[valid-type]
        Parameter(name="*", group="Instead of what the settings file says in its table analysis"),
    ] = None,
) -> int:
    """An online A/B test from its two logs: a table on stdout, OUT/result.json.

    Example: foretest online control.parquet "treatment/*.parquet" -c test.toml -o out
    """
    from foretest.online import OnlineTest

    wanted = _verdicts(fail_on)
    _refuse_threads(threads)
    _refuse_place(out)
    test = OnlineTest.from_toml(config)
    given = {name: value for name, value in vars(analysis or OnlineOptions()).items() if value is not None}
    try:
        test = test.replace(**given)
    except BadInput as error:
        raise BadInput(f"on the command line: {error}") from None
    with _progress() as progress:
        result = test.run(str(control), str(treatment), threads=threads, progress=progress)
    return _deliver(result, out, json, wanted)


@app.command
def history(
    manifest: Annotated[Path, Parameter(help="The manifest (TOML): settings, and a [[test]] table for each A/B test.")],
    /,
    *,
    out: Annotated[Path, Parameter(name=("--out", "-o"), help="Folder for agreement.json and the results kept.")],
    json: AsJson = False,
    threads: Threads = None,
) -> int:
    """Offline against online over many A/B tests: how often, and how well, they agreed.

    Results of tests whose logs and settings have not changed are reused. Example: foretest history tests.toml -o out
    """
    from foretest.history import run_history
    from foretest.progress import progress_bar
    from foretest.terminal import agreement_table

    _refuse_threads(threads)
    _refuse_place(out)
    with progress_bar("tests") as progress:
        agreement = run_history(manifest, cache=out / "cache", threads=threads, progress=progress)
    agreement.to_json(out / "agreement.json")
    for failure in agreement.failures:
        print(f"foretest: test '{failure['name']}' failed: {failure['error']}", file=sys.stderr)
    if json:
        _print_json(agreement.to_dict())
        return 0
    _console().print(agreement_table(agreement))
    known = f", {agreement.reused} of {len(agreement.tests)} tests were known already" if agreement.reused else ""
    print(f"\nWritten: {out / 'agreement.json'}{known}")
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
    true, estimated = percent(truth["click"], sign=True), percent(headline.rel_effect_size, sign=True)
    console.print(
        f"\nThe log was drawn from a simulated shop, where the treatment's true uplift is {true}."
        "\ncis counts what capping cuts off as worthless, so it errs downward;"
        f" {click.headline} models what was cut off and says {estimated}."
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
    world: Annotated[str, Parameter(help="paper | mild | dense | rewards | sharp | no-overlap")] = "paper",
    rows: Annotated[int, Parameter(help="Displays to simulate.")] = 200_000,
    seed: Annotated[int, Parameter(help="Of everything random.")] = 0,
) -> int:
    """The log of a simulated recommender, with settings to test it and, apart, the truth.

    Example: foretest simulate log --world sharp --rows 500000 -o sharp
    """
    from foretest.terminal import percent

    true = percent(_simulate(world, rows, seed, out)["click"], sign=True)
    print(f"{out}: log.parquet ({rows:,} displays), settings.toml, truth.json (click {true})")
    print(f"Next: foretest run {out}/log.parquet -c {out}/settings.toml")
    return 0


@simulate.command(name="history")
def simulate_history_command(
    *,
    out: Annotated[Path, Parameter(name=("--out", "-o"), help="Folder for the logs, settings, truth and manifest.")],
    world: Annotated[str, Parameter(help="paper | mild | dense | rewards | sharp | no-overlap")] = "paper",
    tests: Annotated[int, Parameter(help="A/B tests to simulate.")] = 39,
    rows: Annotated[int, Parameter(help="Displays of each arm.")] = 150_000,
    seed: Annotated[int, Parameter(help="Of everything random.")] = 0,
    aa: Annotated[bool, Parameter(negative=(), help="A/A tests: every treatment is the control.")] = False,
) -> int:
    """A history of A/B tests of a simulated recommender: both logs of each, a manifest, and, apart, the truth.

    Example: foretest simulate history -o tests, then foretest history tests/manifest.toml -o out
    """
    from foretest.progress import progress_bar
    from foretest.simulate import WORLDS, write_history

    for name, value, least in (("--tests", tests, 1), ("--rows", rows, 1), ("--seed", seed, 0)):
        if value < least:
            raise BadInput(f"{name} {value}: expected at least {least}.")
    _refuse_place(out)
    chosen = WORLDS[choose("world", world, WORLDS)]
    with progress_bar("tests") as progress:
        done = 0

        def advance(tests_done: int) -> None:
            nonlocal done
            if progress is not None:
                progress("simulate", tests, tests_done - done)
            done = tests_done

        write_history(out, chosen, tests, rows, seed, advance, aa=aa, processes=min(tests, os.cpu_count() or 1))
    print(f"{out}: {tests} tests of {rows:,} displays an arm, settings.toml, truth.json, manifest.toml")
    print(f"Next: foretest history {out}/manifest.toml -o {out}-agreement")
    return 0


def main() -> NoReturn:
    """The entry point: every outcome has an exit code, bad input one line on stderr."""
    try:
        code = app(sys.argv[1:], exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()  # a full disk or a closed pipe shows here, not after the last word
        sys.exit(code if isinstance(code, int) else 0)
    except CycloptsError as error:
        _fail(_usage(error))
    except BadInput as error:
        _fail(str(error))
    except BrokenPipeError:
        _forget_stdout()  # the reader of a pipe went away: nothing to say
        sys.exit(0)
    except OSError as error:
        place = error.filename or "output"
        if place == "output":
            _forget_stdout()
        _fail(f"{place}: {error.strerror or error}.")
    except KeyboardInterrupt:
        _fail("stopped", 130)


def _fail(message: str, code: int = 2) -> NoReturn:
    print(f"foretest: {' '.join(message.splitlines())}", file=sys.stderr)
    sys.exit(code)


def _forget_stdout() -> None:
    """What is still buffered cannot be written: let Python not try it again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: CycloptsError) -> str:
    """A mistake on the command line, in our words."""
    command = " ".join(error.command_chain or ())
    if isinstance(error, UnusedCliTokensError):
        what = f"unexpected argument '{(error.unused_tokens or ['?'])[0]}'."
    elif isinstance(error, MissingArgumentError) and error.argument is not None:
        argument = error.argument
        if error.keyword is not None:
            what = f"{error.keyword} needs a value."
        else:
            place = "" if argument.name.startswith("-") else " Put it before the options."
            what = f"{command} needs {' or '.join(argument.names)}: {argument.parameter.help}{place}"
    else:
        what = " ".join(str(error).split())
    return f"{what} See foretest {command + ' ' if command else ''}--help."


def _test(config: Path, overrides: Any) -> Any:
    from foretest.lineup import lineup
    from foretest.offline import OfflineTest

    test = OfflineTest.from_toml(config)
    given = {
        f.name: getattr(overrides, f.name) for f in fields(Analysis) if getattr(overrides, f.name, None) is not None
    }
    try:
        test = test.replace(**given)
    except BadInput as error:
        raise BadInput(f"on the command line: {error}") from None
    try:
        lineup(test.settings)
    except BadInput as error:
        raise BadInput(f"{config}: {error}") from None
    return test


def _verdicts(fail_on: str) -> list[str]:
    words = [word.strip() for word in fail_on.split(",") if word.strip()]
    for word in words:
        if word not in VERDICTS:
            hint = nearest(word, VERDICTS) if word != "positive" else ""
            raise BadInput(f"--fail-on {word}: unknown verdict.{hint} Known: {', '.join(VERDICTS)}.")
    return words


def _progress() -> Any:
    from foretest.progress import progress_bar

    return progress_bar()


def _simulate(world: str, rows: int, seed: int, out: Path) -> dict[str, float]:
    """Write a simulated log; the true relative uplift of each metric."""
    import json

    from foretest.simulate import WORLDS, write_log

    if rows < 1:
        raise BadInput(f"--rows {rows}: expected at least 1.")
    if seed < 0:
        raise BadInput(f"--seed {seed}: expected 0 or more.")
    _refuse_place(out)
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


def _refuse_place(out: Path | None) -> None:
    """Say before the work, not after it, that its output has no place."""
    if out is None:
        return
    place = next(p for p in (out, *out.absolute().parents) if p.exists())
    if not place.is_dir():
        raise BadInput(f"{place}: is a file, expected a folder for the output. Give -o another name.")
    if not os.access(place, os.W_OK | os.X_OK):
        raise BadInput(f"{place}: permission denied to write the output there. Give -o another folder.")


def _refuse_threads(threads: int | None) -> None:
    if threads is not None and threads < 1:
        raise BadInput(f"--threads {threads}: expected at least 1.")


def _deliver(result: Result, out: Path | None, as_json: bool, wanted: list[str]) -> int:
    """Write and show a result; the exit code that its verdicts ask for."""
    if out is not None:
        _write(result, out)
    _show(result, as_json)
    if out is not None and not as_json:
        print(f"\nWritten: {out / 'result.json'}")
    return 3 if any(metric.verdict in wanted for metric in result.metrics.values()) else 0


def _write(result: Result, out: Path) -> None:
    result.to_json(out / "result.json")


def _console() -> Any:
    from rich import console

    class Console(console.Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with code 1, which is a bug's

    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(highlight=False, width=80)


def _show(result: Result, as_json: bool) -> None:
    from foretest.terminal import result_table

    if as_json:
        _print_json(result.to_dict())
    else:
        _console().print(result_table(result))


def _print_json(document: dict[str, Any]) -> None:
    import json

    print(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
