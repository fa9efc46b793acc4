"""foretest run, foretest check."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import (
    AUDIT,
    VERDICTS,
    AsJson,
    FailOnAll,
    FailOnAudit,
    Logs,
    Overrides,
    SettingsFile,
    Threads,
    refuse_threads,
    verdicts,
)
from foretest.cli.output import audit_met, deliver, print_json, refuse_place, show
from foretest.errors import BadInput
from foretest.progress import progress_bar
from foretest.settings import Analysis


@app.command
def run(
    log: Logs,
    /,
    *,
    config: SettingsFile,
    out: Annotated[Path | None, Parameter(name=("--out", "-o"), help="Folder for result.json.")] = None,
    json: AsJson = False,
    fail_on: FailOnAll = "",
    threads: Threads = None,
    analysis: Overrides = None,
) -> int:
    """The offline A/B test: a table on stdout, OUT/result.json.

    Example: foretest run logs/*.parquet -c test.toml -o out --fail-on negative
    """
    wanted = verdicts(fail_on, (*VERDICTS, AUDIT))
    refuse_threads(threads)
    refuse_place(out)
    test = _test(config, analysis)
    with progress_bar() as progress:
        result = test.run([str(path) for path in log], threads=threads, progress=progress)
    return deliver(result, out, json, wanted)


@app.command
def check(
    log: Logs,
    /,
    *,
    config: SettingsFile,
    json: AsJson = False,
    fail_on: FailOnAudit = "",
    threads: Threads = None,
    analysis: Overrides = None,
) -> int:
    """Schema, health and propensity audit only: can this log carry the question?

    Every row is read and checked. Example: foretest check logs/*.parquet -c test.toml --fail-on audit
    """
    wanted = verdicts(fail_on, (AUDIT,))
    refuse_threads(threads)
    test = _test(config, analysis)
    with progress_bar() as progress:
        result = test.check([str(path) for path in log], threads=threads, progress=progress)
    if json:
        document = result.to_dict()
        print_json({key: value for key, value in document.items() if key != "metrics"})
    else:
        show(result, False)
        print("\nEvery row is readable, and the columns fit the settings.")
    return 3 if audit_met(result, wanted) else 0


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
