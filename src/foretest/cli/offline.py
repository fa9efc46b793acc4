"""foretest run, foretest check."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import (
    AsJson,
    FailOn,
    Figures,
    Logs,
    Overrides,
    SettingsFile,
    Threads,
    refuse_threads,
    verdicts,
)
from foretest.cli.output import deliver, print_json, refuse_figures, refuse_place, show
from foretest.errors import BadInput
from foretest.progress import progress_bar
from foretest.settings import Analysis


@app.command
def run(
    log: Logs,
    /,
    *,
    config: SettingsFile,
    out: Annotated[Path | None, Parameter(name=("--out", "-o"), help="Folder for result.json and report.html.")] = None,
    json: AsJson = False,
    figures: Figures = False,
    fail_on: FailOn = "",
    threads: Threads = None,
    analysis: Overrides = None,
) -> int:
    """The offline A/B test: a table on stdout, OUT/result.json, OUT/report.html.

    Example: foretest run logs/*.parquet -c test.toml -o out --fail-on negative
    """
    wanted = verdicts(fail_on)
    refuse_threads(threads)
    refuse_place(out)
    refuse_figures(figures, out)
    test = _test(config, analysis)
    with progress_bar() as progress:
        result = test.run([str(path) for path in log], threads=threads, progress=progress)
    return deliver(result, out, json, wanted, figures)


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
    refuse_threads(threads)
    test = _test(config, analysis)
    with progress_bar() as progress:
        result = test.check([str(path) for path in log], threads=threads, progress=progress)
    if json:
        document = result.to_dict()
        print_json(
            {key: document[key] for key in ("foretest", "schema", "log", "settings", "health", "weights", "notes")}
        )
        return 0
    show(result, False)
    print("\nEvery row is readable, and the columns fit the settings.")
    return 0


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
