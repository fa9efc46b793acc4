"""A history end to end: offline and online as those tests say alone, the noise they share, the cache, failures."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.errors import BadInput
from foretest.estimators import NCIS
from foretest.history import cache as cache_module
from foretest.history.run import run_history
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derive
from foretest.offline.test import OfflineTest
from foretest.online.resampling import arm_counts
from foretest.online.test import OnlineTest
from foretest.simulate import WORLDS, write_history
from tests.schemas import validate
from tests.support import SmallLog

pytestmark = [pytest.mark.usefixtures("few_resamples"), pytest.mark.slow]

SETTINGS = """
[log]
rewards = ["click", "revenue"]
unit = "user"
ranking = "ranking"
id = "id"
[control]
policy = "plackett-luce"
scores = "control_scores"
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
[analysis]
estimators = ["cis", "ncis", "point-ncis-adaptive"]
cap = 2.0
weight_bound = 3.0
buckets = 64
n_resamples = 200
"""


def arm_of_treatment(log: SmallLog, seed: int) -> pa.Table:
    """The same displays for other users, ranked by the treatment."""
    g = np.random.default_rng(seed)
    shown = np.array([g.choice(len(log.rankings), p=np.exp(t) / np.exp(t).sum()) for t in log.log_t])
    click = (g.random(log.rows) < np.clip(log.value * (1.0 + 0.5 * (log.rankings[shown, 0] == 0)), 0, 0.9)).astype(
        float
    )
    table = log.table().set_column(0, "click", pa.array(click)).set_column(1, "revenue", pa.array(2.0 * click))
    table = table.set_column(2, "user", pa.array(log.unit + 10_000))
    return table.set_column(6, "ranking", pa.array(log.rankings[shown].tolist(), pa.list_(pa.int32())))


def write(folder: Path, tests: int = 3, *, aa: bool = False) -> Path:
    """A small history; the logs of test i depend on i alone."""
    lines = ['settings = "settings.toml"']
    (folder / "settings.toml").write_text(SETTINGS)
    for i in range(tests):
        place = folder / f"t{i}"
        if not place.exists():
            place.mkdir()
            log = SmallLog(rows=300, units=90, m=4, seed=i, spread=0.0 if aa else 1.0)
            pq.write_table(log.table(), place / "control.parquet")
            pq.write_table(arm_of_treatment(log, 100 + i), place / "treatment.parquet")
        lines += ["[[test]]", f'name = "t{i}"', f'control = "t{i}/control.parquet"']
        lines += [f'treatment = "t{i}/treatment.parquet"']
    (folder / "manifest.toml").write_text("\n".join(lines))
    return folder / "manifest.toml"


def test_tests_are_what_they_are_alone(tmp_path: Path) -> None:
    agreement = run_history(write(tmp_path))
    settings = tmp_path / "settings.toml"
    document = agreement.to_dict()
    assert [test["name"] for test in document["tests"]] == ["t0", "t1", "t2"]
    for i, test in enumerate(document["tests"]):
        control, treatment = tmp_path / f"t{i}/control.parquet", tmp_path / f"t{i}/treatment.parquet"
        offline = OfflineTest.from_toml(settings).run(control).metrics["click"].estimates
        online = OnlineTest.from_toml(settings).run(control, treatment).metrics["click"].estimates["online"]
        for label, estimate in offline.items():
            for name, value in asdict(estimate).items():
                assert test["offline"][label][name] == (pytest.approx(value) if isinstance(value, float) else value)
        assert test["online"]["rel_effect_size"] == pytest.approx(online.rel_effect_size)
    row = document["table"]["ncis"]
    x = [test["offline"]["ncis"]["rel_effect_size"] for test in document["tests"]]
    y = [test["online"]["rel_effect_size"] for test in document["tests"]]
    assert row["correlation"] == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert row["tests"] == 3
    assert document["table"]["cis"]["ci_size"] == pytest.approx(1.0)
    assert document["table"] == document["metrics"]["click"]["table"]
    assert set(document["metrics"]) == {"click", "revenue"}
    for figure in ("correlation", "precision", "fnr", "ppv", "miss_rate", "ci_size", "noise_ceiling"):
        assert {figure, f"{figure}_q10", f"{figure}_q90"} <= set(row)
    json.loads(agreement.to_json(), parse_constant=lambda word: pytest.fail(word))


def test_each_test_has_its_audit(tmp_path: Path) -> None:
    """The log of the first test is not of the control that its settings describe; the cache has that too."""
    path = write(tmp_path, 2)
    scores, of_treatment = 'scores = "control_scores"', 'scores = "treatment_scores"'
    for i, temperature in enumerate((3.0, 1.0)):
        log = SmallLog(rows=600, units=300, m=4, seed=i)
        pq.write_table(log.table(), tmp_path / f"t{i}/control.parquet")
        settings = SETTINGS.replace(scores, f"{scores}\ntemperature = {temperature}")
        settings = settings.replace(of_treatment, f"{of_treatment}\ntemperature = 1.0")
        (tmp_path / f"s{i}.toml").write_text(settings)
    text = path.read_text()
    for i in range(2):
        text = text.replace(f'name = "t{i}"', f'name = "t{i}"\nsettings = "s{i}.toml"')
    path.write_text(text)
    for _ in range(2):
        agreement = run_history(path, cache=tmp_path / "cache")
        first, second = agreement.to_dict()["tests"]
        assert first["audit"]["outcome"] == first["audit"]["tests"]["log-likelihood"] == "fail"
        assert second["audit"]["outcome"] != "fail"
        assert all(e["verdict"] == "insufficient" for e in first["offline"].values())
        assert agreement.failed_audits == ["t0"]
        assert "propensity audit FAILED: t0" in str(agreement)
        assert "The propensity audit failed for the control" in agreement.to_html()
    assert agreement.reused == 2


def test_the_controls_log_is_resampled_once_for_both(tmp_path: Path) -> None:
    """Every replicate from the rows themselves: the same copies of the control's rows on both axes."""
    path = write(tmp_path, 1)
    noise = run_history(path).to_dict()["tests"][0]["noise"]["ncis"]
    log = SmallLog(rows=300, units=90, m=4, seed=0, spread=1.0)
    other = pq.read_table(tmp_path / "t0/treatment.parquet")
    analysis = OfflineTest.from_toml(tmp_path / "settings.toml").settings.analysis

    def bucket(unit: Any) -> np.ndarray:
        return (derive(hash_integers(np.asarray(unit)), BUCKET_SALT) % np.uint64(64)).astype(int)

    h, t_click = log.capped(2.0), np.asarray(other["click"])
    x, y = [], []
    for c, t in zip(*arm_counts(analysis), strict=True):
        m, k = c[bucket(log.unit)], t[bucket(other["user"])]
        mean = (m * log.click).sum() / m.sum()
        x.append((m * h * log.click).sum() / (m * h).sum() / mean - 1.0)
        y.append((k * t_click).sum() / k.sum() / mean - 1.0)
    spread = np.cov(x, y)
    assert noise["offline_error"] == pytest.approx(np.sqrt(spread[0, 0]), rel=1e-9)
    assert noise["online_error"] == pytest.approx(np.sqrt(spread[1, 1]), rel=1e-9)
    assert noise["covariance"] == pytest.approx(spread[0, 1], rel=1e-9)
    assert noise["covariance"] != 0.0


def test_equal_policies_have_no_uplift_offline(tmp_path: Path) -> None:
    for test in run_history(write(tmp_path, 2, aa=True)).to_dict()["tests"]:
        for estimate in test["offline"].values():
            assert abs(estimate["rel_effect_size"]) < 1e-12
            assert estimate["verdict"] == "neutral"


@pytest.mark.slow
def test_a_simulated_history_of_the_control_against_itself_is_exactly_0_offline(tmp_path: Path) -> None:
    """Every estimator, its interval included: clicks are whole numbers and every weight is 1, so nothing rounds.

    By slot q is a sum of probabilities, which is 1 up to rounding.
    """
    write_history(tmp_path, WORLDS["rewards"], tests=2, rows=3000, seed=1, aa=True)
    agreement = run_history(tmp_path / "manifest.toml")
    assert len(agreement.tests) == 2
    for test in agreement.to_dict()["tests"]:
        listed = {"cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive", "slot-ncis-adaptive"}
        assert set(test["offline"]) == {*listed, "point-ncis-calibrated", "slot-ncis-calibrated"}
        assert len(test["offline"]["piece-ncis"]["strata"]) > 2
        assert test["online"]["rel_effect_size"] != 0.0
        for name, estimate in test["offline"].items():
            rounding = 1e-12 if name.startswith("slot-") else 0.0
            for figure in ("effect_size", "rel_effect_size"):
                for limit in ("", "_ci_lower", "_ci_upper"):
                    assert abs(estimate[f"{figure}{limit}"]) <= rounding
            assert estimate["verdict"] == "neutral"


@pytest.mark.slow
def test_the_cache_follows_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, cache = write(tmp_path), tmp_path / "cache"
    first = run_history(path, cache=cache)
    assert first.reused == 0
    again = run_history(path, cache=cache)
    assert again.reused == 3
    assert again.to_dict() == first.to_dict()
    # one more test costs one test
    more = run_history(write(tmp_path, 4), cache=cache)
    assert (more.reused, len(more.tests)) == (3, 4)
    # the same bytes with another date are the same content; other bytes, or settings, are not
    log = tmp_path / "t0/control.parquet"
    log.touch()
    assert run_history(path, cache=cache).reused == 4
    table = pq.read_table(log)
    pq.write_table(table.slice(0, 290), log)
    assert run_history(path, cache=cache).reused == 3
    (tmp_path / "settings.toml").write_text(SETTINGS + "\nseed = 1\n")
    assert run_history(path, cache=cache).reused == 0
    # a result cut short is found again
    for file in cache.iterdir():
        file.write_text(file.read_text()[:50])
    assert run_history(path, cache=cache).reused == 0
    monkeypatch.setattr(cache_module, "__version__", "9.9.9")
    assert run_history(path, cache=cache).reused == 0


def test_an_examination_curve_for_two_logs(tmp_path: Path) -> None:
    """Given as numbers, as a run takes it; the cache tells two curves apart."""
    path, settings = write(tmp_path, 1), tmp_path / "settings.toml"
    text = SETTINGS.replace("[control]", 'slot_rewards = {click = "slot_click"}\n[control]', 1)
    for curve in ("[1.0, 0.7]", "[1.0, 0.6]"):
        settings.write_text(f"{text}examination = {curve}\n")
        agreement = run_history(path, cache=tmp_path / "cache")
        assert (agreement.failures, agreement.reused) == ([], 0)
    assert run_history(path, cache=tmp_path / "cache").reused == 1


def test_a_test_that_fails_is_named_and_the_rest_go_on(tmp_path: Path) -> None:
    path = write(tmp_path, 4)
    (tmp_path / "t0/treatment.parquet").unlink()
    table = pq.read_table(tmp_path / "t1/treatment.parquet")
    pq.write_table(
        table.set_column(2, "user", pa.array(table["user"].to_numpy() - 10_000)), tmp_path / "t1/treatment.parquet"
    )
    barren = pq.read_table(tmp_path / "t2/control.parquet")
    pq.write_table(barren.set_column(0, "click", pa.array(np.zeros(300))), tmp_path / "t2/control.parquet")
    agreement = run_history(path)
    assert [test["name"] for test in agreement.tests] == ["t3"]
    problems = {failure["name"]: failure["error"] for failure in agreement.failures}
    assert "t0/treatment.parquet: no such file" in problems["t0"]
    assert "both arms" in problems["t1"]
    assert "has a reward in 'click'" in problems["t2"]
    (tmp_path / "t3/control.parquet").unlink()
    with pytest.raises(BadInput, match=r"no test could be read\. The first: test 't0'"):
        run_history(path)


def test_the_truth_is_compared_where_it_is_given(tmp_path: Path) -> None:
    path = write(tmp_path, 2)
    (tmp_path / "truth.json").write_text(json.dumps({"t0": {"rel_uplift": 0.1}, "t1": {"rel_uplift": 0.2}}))
    path.write_text('truth = "truth.json"\n' + path.read_text())
    document = run_history(path).to_dict()
    x = [test["offline"]["cis"]["rel_effect_size"] for test in document["tests"]]
    assert document["table"]["cis"]["bias"] == pytest.approx(np.mean(np.array(x) - [0.1, 0.2]))
    assert "bias" not in document["metrics"]["revenue"]["table"]["cis"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from foretest import cli

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["foretest", "history", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        output = capsys.readouterr()
        return int(stop.value.code or 0), output.out, output.err

    path, out = str(write(tmp_path, 3)), tmp_path / "out"
    (tmp_path / "t2/treatment.parquet").unlink()
    code, shown, errors = run(path, "-o", str(out))
    assert code == 0
    assert "test 't2' failed" in errors
    assert "corr." in shown
    assert "…" not in shown  # nothing is cut off
    assert max(len(line) for line in shown.splitlines()[:-2]) <= 80
    document = json.loads((out / "agreement.json").read_text())
    validate(document, json.loads((files("foretest") / "schema" / "agreement-1.json").read_text()))
    assert "range held" in shown
    assert [test["name"] for test in document["tests"]] == ["t0", "t1"]
    code, shown, _ = run(path, "-o", str(out), "--json")
    assert json.loads(shown) == document
    assert "2 of 2 tests were known already" in run(path, "-o", str(out))[1]
    for i in (0, 1):
        (tmp_path / f"t{i}/control.parquet").unlink()
    code, shown, errors = run(path, "-o", str(out))
    assert (code, shown) == (2, "")
    assert "no test could be read" in errors
    assert errors.count("\n") == 1


def test_other_settings_for_all_tests(tmp_path: Path) -> None:
    """Estimators as objects, which a settings file cannot name: they run, and are kept apart from the file's."""
    path, cache = write(tmp_path, 2), tmp_path / "cache"
    zero = NCIS(capping="zero", name="ncis-zero")
    changed = run_history(path, analysis={"estimators": [zero], "cap": 3.0}, cache=cache)
    control = tmp_path / "t0/control.parquet"
    alone = OfflineTest.from_toml(tmp_path / "settings.toml").replace(estimators=[zero], cap=3.0).run(control)
    expected = alone.metrics["click"].estimates["ncis-zero"]
    [(label, estimate)] = changed.to_dict()["tests"][0]["offline"].items()
    assert label == "ncis-zero"
    assert estimate["effect_size_ci_upper"] == pytest.approx(expected.effect_size_ci_upper, rel=1e-9)
    assert estimate["treatment"] == pytest.approx(expected.treatment, rel=1e-9)
    assert run_history(path, cache=cache).reused == 0
    assert run_history(path, analysis={"estimators": [zero], "cap": 3.0}, cache=cache).reused == 2
    assert run_history(path, analysis={"estimators": [zero], "cap": 4.0}, cache=cache).reused == 0
    with pytest.raises(BadInput, match="cup"):
        run_history(path, analysis={"cup": 3.0})
