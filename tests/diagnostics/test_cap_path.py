"""Figure 2 as data: every column against plain NumPy on the rows, and against runs at those caps."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

import foretest as ft
from foretest.diagnostics.cap_path import PATH, cap_path
from foretest.files import json_text
from foretest.inference.bootstrap import resample_counts
from tests.schemas import validate
from tests.support import SmallLog, build_test

LOG = SmallLog(rows=1500, units=300, spread=3.0, seed=4)
CAPS = [0, 1, 3, 4, 8, 13, 40, 100]  # places on the path: 1, 1.8, 5.6, 10, 100, 1778, 1e10, 1e25
FIELDS = (
    "treatment", "std_error", "effect_size", "effect_size_ci_lower", "effect_size_ci_upper",
    "rel_effect_size", "rel_effect_size_ci_lower", "rel_effect_size_ci_upper",
)  # fmt: skip


def path_of(test: ft.OfflineTest, table: pa.Table, metric: str = "click") -> dict[str, Any]:
    path = test.run(table).metrics[metric].cap_path
    assert path is not None
    return path


@pytest.fixture(scope="module")
def path() -> dict[str, Any]:
    return path_of(build_test(["cis"], r_max=1.0, cap=30.0), LOG.table())


def test_the_path_is_quarter_decades_from_1_to_1e25(path: dict[str, Any]) -> None:
    np.testing.assert_allclose(path["caps"], 10.0 ** (np.arange(101) / 4), rtol=1e-11)
    assert (path["metric"], path["capping"], path["cap"], path["sought"]) == ("click", "max", 30.0, 0.01)


@pytest.mark.parametrize("interval", ["bootstrap", "delta"])
@pytest.mark.parametrize("metric", ["click", "revenue"])
def test_a_run_at_a_cap_of_the_path_gives_its_numbers(interval: str, metric: str) -> None:
    settings = {"metrics": ("click", "revenue"), "interval": interval, "n_resamples": 300, "confidence_level": 0.8}
    test = build_test(["cis", "ncis"], **settings)
    table = LOG.table()
    path = path_of(test, table, metric)
    assert (path["interval"], path["confidence_level"]) == (interval, 0.8)
    for k in CAPS:
        estimates = test.replace(cap=float(PATH[k])).run(table).metrics[metric].estimates
        for key in ("cis", "ncis"):
            for name in FIELDS:
                assert path[key][name][k] == pytest.approx(getattr(estimates[key], name), rel=1e-9, abs=1e-11), name
        effective = estimates["cis"].effective_positives
        assert path["effective_positives"][k] == pytest.approx(effective, rel=1e-9)


def test_values_against_the_rows(path: dict[str, Any]) -> None:
    r = LOG.click
    for k in CAPS:
        w = np.minimum(np.exp(LOG.log_w), PATH[k])
        assert path["cis"]["treatment"][k] == pytest.approx((w * r).mean(), rel=1e-9)
        assert path["ncis"]["treatment"][k] == pytest.approx((w * r).sum() / w.sum(), rel=1e-9)
        assert path["cis"]["rel_effect_size"][k] == pytest.approx((w * r).mean() / r.mean() - 1.0, abs=1e-9)
        assert path["effective_positives"][k] == pytest.approx((w * r).sum() ** 2 / ((w * r) ** 2).sum(), rel=1e-9)


def test_the_variance_is_that_of_the_value_by_unit() -> None:
    """Every row its own unit, and a bucket a row: nothing is left to chance."""
    rows = np.arange(60)
    table = LOG.table().take(rows)
    path = path_of(build_test(["cis"], unit=None, buckets=1 << 14, interval="delta"), table)
    for k in (0, 4, 9):
        term = np.minimum(np.exp(LOG.log_w[:60]), PATH[k]) * LOG.click[:60]
        assert path["variance"][k] == pytest.approx(term.var(ddof=1) / 60, rel=1e-9)


def test_bounds_and_noise_against_the_draws(path: dict[str, Any]) -> None:
    aggregates = build_test(["cis"]).aggregate(LOG.table())[0]
    w = np.exp(aggregates.sample.columns()["draws_treatment"].ravel())
    r = LOG.click
    for k in CAPS:
        capped = np.minimum(w, PATH[k])
        mass = (capped / w).mean()
        assert path["treatment_mass_kept"][k] == pytest.approx(mass, abs=1e-11)
        assert path["share_above_cap"][k] == pytest.approx((w > PATH[k]).mean(), abs=1e-11)
        assert path["bias_bound"][k] == pytest.approx((1.0 - mass) / r.mean(), abs=1e-10)
        assert path["bias_bound_loose"][k] == pytest.approx((w > PATH[k]).mean() / r.mean(), abs=1e-10)
        spread = (capped**2 / w).mean() - 2.0 * mass + 1.0
        expected = norm.ppf(0.95) * np.sqrt((r**2).mean() * spread / len(r)) / r.mean()
        assert path["noise_expected"][k] == pytest.approx(expected, rel=1e-9)
        seen = (path["cis"]["rel_effect_size_ci_upper"][k] - path["cis"]["rel_effect_size_ci_lower"][k]) / 2.0
        assert path["noise_seen"][k] == pytest.approx(seen, rel=1e-9)
        assert path["noise"][k] == max(path["noise_seen"][k], path["noise_expected"][k])
        assert path["sensitivity"][k] == pytest.approx(path["noise"][k] + path["bias_bound"][k], rel=1e-9)
    assert (path["source"], path["r_max"]) == ("draws", 1.0)


def test_the_bound_is_never_above_the_paper_s_and_falls_with_the_cap(path: dict[str, Any]) -> None:
    tight, loose = np.array(path["bias_bound"]), np.array(path["bias_bound_loose"])
    assert (tight <= loose + 1e-12).all()
    assert (tight < loose - 0.01).any()
    assert (np.diff(tight) <= 0.0).all()


def test_noise_sees_what_the_log_has_not_shown() -> None:
    """The control shows the second item once in a million displays: no row has its weight, yet its noise is counted."""
    rows, rng = 4000, np.random.default_rng(0)
    table = pa.table({
        "click": (rng.random(rows) < 0.2).astype(float),
        "user": np.arange(rows),
        "id": np.arange(rows),
        "ranking": pa.array([[0]] * rows, pa.list_(pa.int32())),
        "control_scores": pa.array([[0.0, -np.log(1e6)]] * rows, pa.list_(pa.float64())),
        "treatment_scores": pa.array([[0.0, 0.0]] * rows, pa.list_(pa.float64())),
    })  # fmt: skip
    path = path_of(build_test(["cis"], strata="user", value=None, r_max=1.0), table)
    # E_p[w̄²] = Σ w̄²·π_p: half of w = ½, and w̄ = ½·10⁶ with probability 10⁻⁶
    r = np.array(table["click"])
    true = norm.ppf(0.95) * np.sqrt((r**2).mean() * (0.25 + 0.25e6 - 2.0 + 1.0) / rows) / r.mean()
    assert path["noise_expected"][24] == pytest.approx(true, rel=0.02)
    assert path["noise_seen"][24] < 0.03
    assert path["noise"][24] == path["noise_expected"][24]
    assert path["bias_band"] is not None
    assert path["satisfies_both"] is False


def bands_directly(path: dict[str, Any], field: str) -> list[float]:
    return [cap for cap, value in zip(path["caps"], path[field], strict=True) if value <= path["sought"]]


def test_bands_are_the_caps_below_the_uplift_sought() -> None:
    """Policies all but equal: small noise, and no bias from a small cap on."""
    near = SmallLog(rows=600, units=600, spread=0.02, seed=6)
    path = path_of(build_test(["cis"], r_max=1.0, interval="delta"), near.table())
    assert path["noise_band"] == [bands_directly(path, "noise")[0], bands_directly(path, "noise")[-1]] == [1.0, 1e25]
    assert path["bias_band"] == [bands_directly(path, "bias_bound")[0], 1e25]
    assert path["both_band"] == path["bias_band"]
    assert path["satisfies_both"] is True


def test_no_band_where_the_log_is_too_small(path: dict[str, Any]) -> None:
    assert bands_directly(path, "noise") == []
    assert path["noise_band"] is None
    assert path["both_band"] is None
    assert path["satisfies_both"] is False


def test_without_r_max_the_bound_is_unknown_and_said_so() -> None:
    path = path_of(build_test(["cis"]), LOG.table())
    for name in ("bias_bound", "bias_bound_loose", "sensitivity"):
        assert path[name] == [None] * 101
    assert (path["r_max"], path["bias_band"], path["both_band"], path["satisfies_both"]) == (None, None, None, None)
    assert path["noise"][0] is not None
    assert any("r_max" in note for note in path["notes"])


def test_zero_capping_and_bernstein_are_said() -> None:
    path = path_of(build_test(["cis"], capping="zero"), LOG.table())
    assert any("zero capping" in note for note in path["notes"])
    assert path["cis"]["treatment"][2] == pytest.approx((np.minimum(np.exp(LOG.log_w), PATH[2]) * LOG.click).mean())
    path = path_of(build_test(["cis"], interval="bernstein", r_max=1.0), LOG.table())
    assert path["interval"] == "delta"
    assert any("delta" in note for note in path["notes"])


def test_an_empty_log_and_a_log_without_reward() -> None:
    empty = path_of(build_test(["cis"], r_max=1.0), LOG.table().slice(0, 0))
    assert empty["control"] is None
    assert empty["satisfies_both"] is None
    for name in ("noise", "bias_bound", "sensitivity", "effective_positives", "share_above_cap"):
        assert empty[name] == [None] * 101
    assert empty["cis"]["effect_size"] == [None] * 101
    table = LOG.table(click=np.zeros(LOG.rows))
    none = path_of(build_test(["cis"], r_max=1.0), table)
    assert none["control"] == 0.0
    assert none["cis"]["effect_size"] == [0.0] * 101
    assert none["cis"]["rel_effect_size"] == [None] * 101
    assert none["noise"] == none["bias_bound"] == [None] * 101
    assert none["treatment_mass_kept"][0] is not None


def test_one_unit_has_no_interval() -> None:
    table = LOG.table(user=np.zeros(LOG.rows, np.int64))
    for interval in ("bootstrap", "delta"):
        path = path_of(build_test(["cis"], interval=interval), table)
        assert path["cis"]["rel_effect_size_ci_lower"] == [None] * 101
        assert path["cis"]["rel_effect_size"][0] is not None


def test_weights_from_1e_300_to_1e300() -> None:
    log_w = np.r_[np.full(40, -690.0), np.full(40, 690.0), np.zeros(40)]
    table = pa.table({"click": np.ones(120), "p": np.minimum(0.0, -log_w), "t": np.minimum(0.0, log_w)})
    policies = {"control": ft.Logged(log_prob="p"), "treatment": ft.Logged(log_prob="t")}
    columns = ft.LogColumns(rewards=["click"])
    test = ft.OfflineTest(log=columns, **policies, estimators=["cis", "ncis"], r_max=1.0, interval="delta")
    path = path_of(test, table)
    for k in CAPS:
        assert path["cis"]["treatment"][k] == pytest.approx((PATH[k] + 1.0) / 3.0, rel=1e-9)
        assert path["ncis"]["treatment"][k] == pytest.approx(1.0, rel=1e-12)
    assert all(np.isfinite(value) for value in path["noise"])
    assert path["max_log10_weight"] == pytest.approx(690.0 / np.log(10.0))
    assert (path["source"], path["noise_expected"]) == ("log", [None] * 101)
    # Σ_{w<c} w/n: a third of the rows weigh 1, the rest of the treatment is on the heavy ones
    assert path["share_above_cap"][1] == pytest.approx(2.0 / 3.0)
    assert any("no ranking can be drawn" in note for note in path["notes"])


def test_columns_are_the_same_beyond_the_largest_weight(path: dict[str, Any]) -> None:
    beyond = int(np.searchsorted(PATH, np.exp(LOG.log_w.max()))) + 1
    assert 4 < beyond < 90
    for name in FIELDS:
        assert len(set(path["cis"][name][beyond:])) == 1
    assert len(set(path["noise_seen"][beyond:])) == 1


def test_the_columns_are_plain_and_small(path: dict[str, Any]) -> None:
    assert len(json_text(path)) < 60_000
    assert all(len(column) == 101 for column in path.values() if isinstance(column, list) and len(column) > 3)
    aggregates = build_test(["cis"]).aggregate(LOG.table())[0]
    counts = resample_counts(1024, 200, 0)
    assert cap_path(aggregates, 0, counts, 1.0, ()).criteria.noise_seen == path["noise_seen"]


@pytest.mark.parametrize("r_max", [None, 1.0])
@pytest.mark.parametrize("rows", [0, 3, LOG.rows])
def test_every_document_fits_the_schema(rows: int, r_max: float | None) -> None:
    from importlib.resources import files

    from jsonschema import ValidationError

    document = build_test(["cis"], r_max=r_max).run(LOG.table().slice(0, rows)).to_dict()
    schema = json.loads((files("foretest") / "schema" / "result-1.json").read_text("utf-8"))
    validate(document, schema)
    assert (document["weights"] is None) == (rows == 0)
    broken = {**document["metrics"]["click"], "cap_path": {**document["metrics"]["click"]["cap_path"], "caps": "1"}}
    with pytest.raises(ValidationError):
        validate({**document, "metrics": {"click": broken}}, schema)
