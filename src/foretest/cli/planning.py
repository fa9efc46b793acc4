"""foretest plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.offline import configured_test
from foretest.cli.options import (
    AsJson,
    Engine,
    Logs,
    MaybeSettingsFile,
    Overrides,
    Quiet,
    SqlText,
    Threads,
    log_source,
    prepare_threads,
    whole_number,
)
from foretest.cli.output import PAGE, check_output_folder, console, output_place, print_json
from foretest.errors import BadInput
from foretest.progress import progress_bar

if TYPE_CHECKING:
    from foretest.planning.plan import PlanResult
    from foretest.stores import Location


@app.command
def plan(
    log: Logs = None,
    /,
    *,
    config: MaybeSettingsFile = None,
    sql: SqlText = None,
    engine: Engine = "local",
    explore: Annotated[
        bool, Parameter(negative=(), help="Find the cheapest exploration that makes --uplift visible in --days.")
    ] = False,
    uplift: Annotated[
        float | None, Parameter(help="With --explore: the uplift to show, as a share of the control: 0.02 for 2 %.")
    ] = None,
    days: Annotated[
        int | None,
        Parameter(
            converter=whole_number, help="With --explore: how many days of log; without, as many as the log has."
        ),
    ] = None,
    out: Annotated[
        str | None, Parameter(name=("--out", "-o"), help="Folder for plan.json, and with --explore report.html.")
    ] = None,
    json: AsJson = False,
    threads: Threads = None,
    quiet: Quiet = False,
    analysis: Overrides = None,
) -> int:
    """Estimate the smallest uplift that a log could show, and what would halve it.

    Considers more log, exploration by the control, and an online test.
    With --explore: the cheapest exploration that makes an uplift visible in time.

    Example: foretest plan logs/*.parquet -c test.toml
    Example: foretest plan logs/*.parquet -c test.toml --explore --uplift 0.02 --days 14 -o out
    """
    _check_goal(explore, uplift, days)
    source = log_source("plan", log, sql, config, engine)
    prepare_threads(threads)
    place = output_place(out)
    check_output_folder(place)
    test = configured_test("plan", source, config, analysis)
    from foretest.files import write_all
    from foretest.planning.plan import plan_log
    from foretest.terminal.plan import plan_table

    with progress_bar(quiet=quiet) as progress:
        plan_result = plan_log(test, source, uplift=uplift, days=days, threads=threads, progress=progress)
    files = {} if place is None else _files(plan_result, place)
    write_all(files)
    if json:
        print_json(plan_result.to_dict())
    else:
        console().print(plan_table(plan_result.to_dict()))
        if files:
            print(f"\nWritten: {', '.join(map(str, files))}")
    return 0


def _check_goal(explore: bool, uplift: float | None, days: int | None) -> None:
    """Refuse a goal without --explore, --explore without a goal, and a goal that is none, before any work."""
    given = next((name for name, value in (("--uplift", uplift), ("--days", days)) if value is not None), None)
    if given is not None and not explore:
        raise BadInput(f"{given} goes with --explore, which finds the cheapest exploration for it: add --explore.")
    if explore and uplift is None:
        raise BadInput("--explore needs the uplift that it is to make visible: add --uplift 0.02 for 2 %.")
    from foretest.planning.goal import goal_of

    goal_of(uplift, days)


def _files(plan_result: PlanResult, place: Location) -> dict[Location, bytes]:
    """What is written to the folder: plan.json and, where exploration was searched, its page."""
    files = {place / "plan.json": plan_result.to_json().encode()}
    if plan_result.to_dict().get("explore") is not None:
        files[place / PAGE] = plan_result.to_html().encode()
    return files
