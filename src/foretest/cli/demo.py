"""foretest demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import Quiet, Replace
from foretest.cli.output import PAGE, console, with_command, write_result
from foretest.cli.simulate import write_simulated_log
from foretest.progress import progress_bar


@app.command
def demo(
    *,
    out: Annotated[
        Path, Parameter(name=("--out", "-o"), help="Folder for the log, its settings and the result.")
    ] = Path("foretest-demo"),
    rows: Annotated[int, Parameter(help="Displays to simulate.")] = 200_000,
    seed: Annotated[int, Parameter(help="Seed of the simulated log.")] = 0,
    replace: Replace = False,
    quiet: Quiet = False,
) -> int:
    """Try Foretest: simulate a log whose true uplift is known, test it, and compare.

    Example: foretest demo -o shop
    """
    from foretest.cli.compile_kernels import compiling_in_background  # which imports subprocess

    with compiling_in_background():
        from foretest.formatting import percent
        from foretest.offline.test import OfflineTest
        from foretest.terminal.parts import RESULT_WIDTH
        from foretest.terminal.result import result_table

        truth = write_simulated_log("paper", rows, seed, out, replace=replace, quiet=quiet)
        test = OfflineTest.from_toml(out / "settings.toml")
        with progress_bar(quiet=quiet) as progress:
            result = with_command(test.run(str(out / "log.parquet"), progress=progress))
    write_result(result, out, truth)
    terminal = console(RESULT_WIDTH)
    terminal.print(result_table(result, truth))
    click = result.metrics["click"]
    headline = click.estimates[click.headline or ""]
    true, estimated = percent(truth["click"], sign=True), percent(headline.rel_effect_size, sign=True)
    terminal.print(
        f"\nThe log comes from a simulated shop, where the treatment's true uplift is {true}."
        "\ncis counts what the cap cuts off as worthless, so it is too low on average;"
        f" {click.headline} models what was cut off and says {estimated}."
        f"\n\nIn {out}: log.parquet, settings.toml, truth.json, result.json, {PAGE}. Try next:"
        f"\n  foretest run {out}/log.parquet -c {out}/settings.toml --cap 1000"
        f"\n  foretest check {out}/log.parquet -c {out}/settings.toml"
        f"\n  foretest simulate log --world no-overlap -o other"
        f"\nThen copy settings.toml, put your own columns in it, and run it on your log."
        f"\n\nThe full report, to open in a browser: {out / PAGE}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
    return 0
