"""Was each arm's log drawn from the policy that the settings describe? The propensity audit of both arms.

What an arm showed is a draw of its own policy, so each log is audited as a control's: that of the treatment with the
treatment in the control's place, and the other arm's policy as what it is weighed against, where the log has its
columns. Only a sample of units is checked and priced, those whose hashes are smallest, as many as any audit looks at.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.fold_start import SAMPLED_DISPLAYS
from foretest.diagnostics.audit import knows_draw, likelihood, moments, possible_weights, rows
from foretest.displays.keys import hash_keys
from foretest.errors import BadInput, RowFault
from foretest.kernels.hashing import hash_integers
from foretest.log.opening import open_log
from foretest.offline.test import OfflineTest
from foretest.online.arms import Arms
from foretest.policies import Logged, Policy
from foretest.policies.logging_mixture import loggers_of
from foretest.results.audit import FAIL, Audit, Finding
from foretest.settings.analysis import Analysis
from foretest.settings.settings import Settings
from foretest.settings.trained_until import with_all_rows
from foretest.sources import Source
from foretest.sources.some_rows import SomeRows

CONTROL, TREATMENT = Arms._fields
#: the column of the policies of an online test that has none
NO_COLUMN = "none"

_MARGIN = 1.25  # units differ in size: the sampled ones may have fewer displays than their share
_OF_WEIGHTS = (moments.MOMENT, moments.BALANCE, possible_weights.NAME)


class ArmAudit(NamedTuple):
    """The audit of an arm's log, or why there is none."""

    audit: Audit | None
    obstacle: str | None = None

    def note(self, arm: str) -> list[str]:
        """That the log was not audited, and why."""
        return [] if self.obstacle is None else [f"the {arm}'s log was not audited: {self.obstacle}"]


def describes_policies(settings: Settings) -> bool:
    """Do the settings say which policies the arms ran?"""
    return not (isinstance(settings.control, Logged) and settings.control.columns == (NO_COLUMN,))


def audit_arm(arm: str, log: Any, n_rows: int, settings: Settings, threads: int | None = None) -> ArmAudit:
    """Audit the log of an arm, of so many rows, under the settings of the offline test of the same change."""
    settings = with_all_rows(settings)  # online no treatment is evaluated on what it was trained on
    control = loggers_of(settings.control).baseline_policy
    if arm == TREATMENT and len(settings.treatments) > 1:
        names = ", ".join(settings.treatments)
        return ArmAudit(None, f"the settings name several treatments ({names}), and not which of them this arm ran.")
    own, other = (control, settings.treatment) if arm == CONTROL else (settings.treatment, control)
    obstacle = ""
    for against in (other, own):  # the other policy's scores may be missing: then the arm's policy is tested alone
        try:
            audit = _audit(log, n_rows, settings, own, against, threads)
        except BadInput as error:
            if _is_impossible(error):
                return ArmAudit(_of_online_test(arm, _never_shown(error), settings))
            obstacle = str(error)
        else:
            return ArmAudit(_of_online_test(arm, audit, settings, alone=against is own))
    return ArmAudit(None, obstacle)


def _audit(log: Any, n_rows: int, settings: Settings, own: Policy, against: Policy, threads: int | None) -> Audit:
    """The audit of a log as that of a control."""
    source = open_log(log, settings)
    if not source.repeatable:
        raise BadInput("it is a stream that can be read once. Give files or a table to have it audited.")
    names = {name for _, schema in source.schemas() for name in schema.names}
    columns = replace(
        settings.log, features=tuple(name for name in settings.log.features if name in names), segments=(),
        slot_rewards=None, item_features=(), logger=None, time=None, reward_time=None, reward_age=None, read_at=None,
    )  # fmt: skip
    analysis = Analysis(seed=settings.analysis.seed, ignore_audit=settings.analysis.ignore_audit)
    arm = Settings(columns, own, against, analysis)
    share = _MARGIN * SAMPLED_DISPLAYS / max(1, n_rows)
    audited = log if share >= 1.0 else _sampled(source, arm, share)
    audit = OfflineTest.from_settings(arm).check(audited, threads=threads).audit
    assert audit is not None
    return audit


def _sampled(source: Source, settings: Settings, share: float) -> SomeRows:
    """The rows of a share of the units, those of smallest hash."""
    limit = np.uint64(share * 2.0**64)
    column = settings.log.unit or settings.log.id

    def is_chosen(values: Any) -> npt.NDArray[np.bool_]:
        hashes = hash_integers(values) if column is None else hash_keys(column, values)
        return np.asarray(hashes <= limit)

    return SomeRows(source, column, is_chosen)


def _of_online_test(arm: str, audit: Audit, settings: Settings, *, alone: bool = False) -> Audit:
    """The findings that concern an arm: it needs no exploration, what the other policy's scores were computed from does
    not matter, and a policy alone has no weights."""
    left_out = (rows.EXPLORATION, knows_draw.NAME, *(_OF_WEIGHTS if alone else ()))
    findings = [
        replace(finding, meaning=_words(arm, finding.meaning), remedy=finding.remedy and _words(arm, finding.remedy))
        for finding in audit.findings
        if finding.name not in left_out
    ]
    # that the other arm's policy is taken as it is logged is no doubt of this one
    unchecked = None if audit.unchecked == TREATMENT else audit.unchecked
    return Audit.of(findings, ignore=settings.analysis.ignore_audit, unchecked=unchecked)


def _words(arm: str, text: str) -> str:
    """Words of the audit of a control, said of an arm: in that of the treatment the policies have changed places, and
    nothing can be fitted."""
    if arm == CONTROL:
        return text
    text = re.sub(r'set \w+ = "fit", or ', "", text)
    return re.sub(rf"\b({CONTROL}|{TREATMENT})\b", lambda name: TREATMENT if name[0] == CONTROL else CONTROL, text)


def _is_impossible(error: BadInput) -> bool:
    """Did the policy of the arm give probability 0 to what was shown?"""
    fault = error.__context__  # the fault of rows that the error explains
    return isinstance(fault, RowFault) and fault.kind == "control-zero"


def _never_shown(error: BadInput) -> Audit:
    """The audit of a log with rows that its policy never shows."""
    return Audit.of([Finding(likelihood.CALIBRATION, FAIL, None, None, str(error).rstrip("."), None)], ignore=False)
