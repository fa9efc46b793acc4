"""The audit of the treatment's log in a history: a failed one is named, and its test has no part in the calibration."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretest.history.run import run_history
from foretest.report.history_page import history_page
from tests.history.test_run import SETTINGS, arm_of_treatment
from tests.schemas import validate
from tests.support import SmallLog

pytestmark = pytest.mark.usefixtures("few_resamples")
LABEL = "point-ncis-adaptive"


def write(folder: Path, wrong: str) -> Path:
    """Three tests; in the second the arm of the treatment has `wrong`: what the control showed, or no scores."""
    (folder / "settings.toml").write_text(SETTINGS)
    lines = ['settings = "settings.toml"']
    for i in range(3):
        log = SmallLog(rows=600, units=300, m=4, seed=i)
        treatment = arm_of_treatment(log, 100 + i)
        if i == 1 and wrong == "policy":
            users = treatment["user"]
            treatment = log.table().set_column(2, "user", users)
        if i == 1 and wrong == "columns":
            treatment = treatment.drop_columns(["treatment_scores"])
        if i == 1 and wrong == "displays":
            again = treatment.take(np.repeat(np.arange(600), 2))
            treatment = again.set_column(3, "id", pa.array(np.arange(1200)))
        pq.write_table(log.table(), folder / f"c{i}.parquet")
        pq.write_table(treatment, folder / f"t{i}.parquet")
        lines += ["[[test]]", f'name = "t{i}"', f'control = "c{i}.parquet"', f'treatment = "t{i}.parquet"']
    (folder / "manifest.toml").write_text("\n".join(lines))
    return folder / "manifest.toml"


def test_a_failed_arm_is_named_and_teaches_nothing(tmp_path: Path) -> None:
    manifest, cache = write(tmp_path, "policy"), tmp_path / "cache"
    agreement = run_history(manifest, cache=cache)
    document = agreement.to_dict()
    validate(document, json.loads((files("foretest") / "schema/agreement-1.json").read_text(encoding="utf-8")))
    assert [test["audit"]["outcome"] for test in document["tests"]] == ["pass"] * 3
    assert [test["treatment_audit"]["outcome"] for test in document["tests"]] == ["pass", "fail", "pass"]
    assert agreement.failed_treatment_audits == ["t1"]
    assert document["calibration"][LABEL]["tests"] == 2
    assert [point["weight"] > 0.0 for point in document["calibration"][LABEL]["points"]] == [True, False, True]
    assert "propensity audit FAILED: t1, the treatment's log" in str(agreement)
    assert "The propensity audit failed for the treatment&#39;s log of 1 test: t1." in history_page(agreement)

    again = run_history(manifest, cache=cache)
    assert again.reused == 3
    assert again.to_dict() == document

    (tmp_path / "settings.toml").write_text(f"{SETTINGS}ignore_audit = true\n")
    assert run_history(manifest).to_dict()["calibration"][LABEL]["tests"] == 3


def test_a_log_that_cannot_be_audited_is_named_in_a_note(tmp_path: Path) -> None:
    document = run_history(write(tmp_path, "columns")).to_dict()
    assert [test["treatment_audit"] is None for test in document["tests"]] == [False, True, False]
    assert document["notes"] == [
        "t1: the treatment's log could not be audited under these settings: foretest online says why."
    ]
    assert document["calibration"][LABEL]["tests"] == 3


def test_other_numbers_of_displays_per_unit_are_a_note(tmp_path: Path) -> None:
    document = run_history(write(tmp_path, "displays")).to_dict()
    assert [note for note in document["notes"] if note.startswith("t1: units have another number of displays")]
