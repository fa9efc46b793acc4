"""A history whose online tests are adjusted for a covariate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from foretest.history.run import run_history
from foretest.online.adjustment import coefficient
from foretest.online.metric_arms import MetricArms
from foretest.online.resampling import arm_counts, replicates
from foretest.online.test import OnlineTest
from tests.history.test_run import SETTINGS, write
from tests.schemas import validate

pytestmark = [pytest.mark.usefixtures("few_resamples"), pytest.mark.slow]


def test_estimate_and_noise_are_of_the_adjusted_uplift(tmp_path: Path) -> None:
    manifest, settings = write(tmp_path, tests=2), tmp_path / "settings.toml"
    for log in sorted(tmp_path.glob("t*/*.parquet")):
        table = pq.read_table(log)
        unit = table["user"].to_numpy()
        clicks = np.bincount(unit - unit.min(), weights=table["click"].to_numpy().astype(float))
        pq.write_table(table.append_column("before", [clicks[unit - unit.min()]]), log)
    settings.write_text(f'{SETTINGS}\n[online]\ncovariate = "before"\n')
    document = run_history(manifest).to_dict()
    assert not document["failures"]
    [(_, written)] = document["settings"].items()
    assert written["online"] == {"split": [0.5, 0.5], "covariate": "before"}
    for i, test in enumerate(document["tests"]):
        alone = OnlineTest.from_toml(settings)
        arms = alone.arms(tmp_path / f"t{i}/control.parquet", tmp_path / f"t{i}/treatment.parquet")
        online = alone.analyse(arms).metrics["click"].estimates["online"]
        assert test["online"]["rel_effect_size"] == pytest.approx(online.rel_effect_size)
        assert test["online"]["p_value"] == pytest.approx(online.p_value)
        counts = arm_counts(alone.settings.analysis)
        theta = coefficient(MetricArms.at(arms, 0))
        drawn, plain = (replicates(MetricArms.at(arms, 0), counts, value).relative for value in (theta, 0.0))
        assert test["noise"]["ncis"]["online_error"] == pytest.approx(np.nanstd(drawn, ddof=1), rel=1e-6)
        assert np.nanstd(drawn) < np.nanstd(plain)


def test_the_document_keeps_to_its_schema(tmp_path: Path) -> None:
    import json

    import foretest

    manifest = write(tmp_path, tests=2)
    (tmp_path / "settings.toml").write_text(f"{SETTINGS}\n[online]\nsequential = true\n")
    document = json.loads(run_history(manifest).to_json())
    schema = Path(foretest.__file__).parent / "schema" / "agreement-1.json"
    validate(document, json.loads(schema.read_text(encoding="utf-8")))
    assert document["tests"][0]["online"]["always_valid"]["verdict"] in (
        "positive",
        "neutral",
        "negative",
        "insufficient",
    )
