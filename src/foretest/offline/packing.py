"""A log rewritten as a packed one, after what must be known of it beforehand."""

from __future__ import annotations

import tempfile

from foretest.aggregation.choose_estimators import choose_estimators
from foretest.background import in_background
from foretest.log.opening import whole_displays
from foretest.log.reader import Reader
from foretest.offline.passes import Work, offline_reader, resolve_control_and_cap
from foretest.policies.logging_mixture import LoggingMixture
from foretest.progress import stage
from foretest.settings.analysis import AUTO
from foretest.settings.fitted_control import refuse_fitted_control
from foretest.settings.late_rewards import untimed
from foretest.settings.settings import Settings
from foretest.settings.trained_until import with_all_rows
from foretest.settings.winsorising import refuse_limits_to_find
from foretest.sources import Source, spool
from foretest.sources.long_tables import LongTables
from foretest.storage.packed.writing import pack
from foretest.stores import Location


def pack_log(settings: Settings, source: Source, out: Location, work: Work, *, replace: bool = False) -> None:
    """Rewrite a log as a folder in which rows with a reward are a file of their own: all rows, and all columns, as a
    run with another window wants them."""
    refuse_fitted_control(settings, "a packed log keeps sums under one number")
    refuse_limits_to_find(settings, "a packed log keeps sums under one limit")
    settings = with_all_rows(settings)  # a run leaves out what its treatments were trained on
    if settings.log.time is not None:
        Reader(settings).check(source)
        settings = untimed(settings)
    with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
        if isinstance(source, LongTables):
            whole = whole_displays(source, settings)
            source = in_background(lambda: spool(whole, whole.schemas()[0][1].names, folder))
        if settings.analysis.cap == AUTO or isinstance(settings.control, LoggingMixture):
            plan = choose_estimators(settings)[0]
            Reader(settings).check(source)
            if not source.repeatable:
                source = in_background(lambda: spool(source, source.schemas()[0][1].names, folder))
            settings = resolve_control_and_cap(source, offline_reader(plan), plan, folder, work).plan.settings
        pack(source, settings, out, replace=replace, progress=stage(work.progress, "pack", source))
