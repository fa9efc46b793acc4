"""A control that is fitted from its log: the number, its error, and what that does to every interval."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize_scalar

import foretest as ft
from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.control_fit import FittedNumber, is_fitted_on
from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.aggregation.quantities import WEIGHTED_REWARDS
from foretest.errors import BadInput
from foretest.inference.buckets import bucket_sums
from foretest.inference.uplift import absolute_uplift_of
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derived_bucket
from foretest.offline import fitted_control
from foretest.offline.fitted_control import STEP
from tests.loggers import NAMES, ThreeLoggers
from tests.schemas import validate
from tests.support import SmallLog, log_softmax_ranking

EVERY = {
    "is", "nis", "dr", "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive", "iips", "rips",
    "slot-ncis-adaptive", "cascade-ncis-adaptive", "pbm", "exposure-ncis-adaptive", "cascade-dr",
}  # fmt: skip
SLOTS = {"click": "slot_click", "revenue": "slot_revenue"}


def offline(temperature: float | str, *, keep: bool = False, **more: Any) -> ft.OfflineTest:
    """A test of all estimators, with strata, V(x) and predictions from columns, by segment."""
    columns = {
        "rewards": ["click", "revenue"], "unit": "user", "ranking": "ranking", "segments": ["stratum"],
        "slot_rewards": SLOTS, **({"keep": "keep"} if keep else {}),
    }  # fmt: skip
    policy, own = more.pop("policy", ft.PlackettLuce), more.pop("own", 1.0)
    analysis = {
        "strata": "stratum", "value": "v", "cap": 5.0, "weight_bound": 8.0, "interval": "delta",
        "examination": [1.0, 0.6], "predictions": {name: f"predicted_{name}" for name in SLOTS}, **more,
    }  # fmt: skip
    return ft.OfflineTest(
        log=ft.LogColumns(**columns),
        control=policy("control_scores", temperature),
        treatment=ft.PlackettLuce("treatment_scores", own),
        **analysis,
    )


@pytest.fixture(scope="module")
def log() -> SmallLog:
    return SmallLog(rows=500, units=140)


def likeliest(log: SmallLog, rows: np.ndarray, m: np.ndarray) -> float:
    """The temperature with the greatest likelihood, by plain search."""

    def against(t: float) -> float:
        shown = log.rankings[log.shown]
        return -sum(m[i] * log_softmax_ranking(log.control[i] / t, shown[i]) for i in rows)

    return float(minimize_scalar(against, bounds=(0.2, 5.0), options={"xatol": 1e-9}).x)


@pytest.mark.parametrize("keep", [False, True])
def test_the_number_and_its_error_are_those_of_plain_numpy(log: SmallLog, keep: bool) -> None:
    m = np.random.default_rng(3).integers(1, 5, log.rows).astype(float) if keep else np.ones(log.rows)
    result = offline("fit", keep=keep, estimators=["ncis"]).run(log.table(keep=1.0 / m))
    assert result.control_fit is not None
    fit = result.control_fit["control"]
    unit = hash_integers(log.unit)
    rows = np.flatnonzero(is_fitted_on(unit))
    best = likeliest(log, rows, m)
    assert fit["parameter"] == "temperature"
    assert fit["rows"] == len(rows)
    assert fit["value"] == pytest.approx(best, rel=1e-5)
    # the sandwich by bucket of units, on log T, by differences of log-probabilities
    h, shown = 1e-3, log.rankings[log.shown]
    at = np.array([
        [log_softmax_ranking(log.control[i] / (best * np.exp(k * h)), shown[i]) for k in (-1, 0, 1)] for i in rows
    ])  # fmt: skip
    slope, second = (at[:, 2] - at[:, 0]) / (2 * h), (at[:, 2] - 2 * at[:, 1] + at[:, 0]) / h**2
    influence = m[rows] * slope / -(m[rows] @ second)
    by_bucket = np.bincount(derived_bucket(unit[rows], BUCKET_SALT, 1024), influence, 1024)
    count = np.count_nonzero(by_bucket)
    assert fit["std_error"] == pytest.approx(best * np.sqrt(count / (count - 1) * by_bucket @ by_bucket), rel=1e-4)
    assert 0.25 < np.count_nonzero(is_fitted_on(unit)) / log.rows < 0.75


def errors_by_cell(fitted: Aggregates, plain: Aggregates, estimator: ft.Estimator, metric: int) -> np.ndarray:
    """What the fit adds to the influence of each cell on an uplift."""
    uplift = absolute_uplift_of(estimator)
    both = [bucket_sums(a, estimator, metric).influence(uplift) / a.displays for a in (fitted, plain)]
    return both[0] - both[1]


def by_bucket(fit: FittedNumber) -> np.ndarray:
    """The influence of each bucket of units, over all loggers."""
    return fit.influence.reshape(-1, 1024).sum(axis=0)


def uplift_slope(run: Any, number: float, label: str, metric: str, name: str | None = None) -> float:
    """∂ uplift/∂ log T by runs of the whole test at the step that is taken."""
    uplifts = []
    for step in (STEP, -STEP):
        result = run(number * np.exp(step))
        metrics = result.metrics if name is None else {t.name: t.metrics for t in result.treatments}[name]
        uplifts.append(metrics[metric].estimates[label].effect_size)
    return float(uplifts[0] - uplifts[1]) / (2 * STEP)


LISTED = ["point-dr-adaptive", "niips"]  # left out of a log like this one, unless they are listed


@pytest.mark.slow
@pytest.mark.parametrize(("estimators", "own"), [(None, 1.0), (LISTED, 1.0), (None, "control")])
def test_the_error_of_every_estimator_is_its_slope_times_that_of_the_number(
    log: SmallLog, estimators: Any, own: float | str
) -> None:
    """Of a treatment with the control's number the slope is that of both together."""
    table = log.table()
    folded = offline("fit", estimators=estimators, own=own).aggregate(table).aggregates
    [fit] = folded.plan.control_fits
    assert isinstance(fit, FittedNumber)
    assert fit.influence.sum() == pytest.approx(0.0, abs=1e-15)
    plain = offline(fit.value, estimators=estimators, own=own).aggregate(table).aggregates
    runs: dict[float, ft.Result] = {}

    def run(temperature: float) -> ft.Result:
        if temperature not in runs:
            runs[temperature] = offline(temperature, estimators=estimators, own=own).run(table)
        return runs[temperature]

    labels = {e.label for e in folded.plan.estimators}
    assert labels >= (EVERY if estimators is None else set(LISTED))
    for estimator in folded.plan.estimators:
        for m, metric in enumerate(("click", "revenue")):
            added = errors_by_cell(folded, plain, estimator, m)
            slope = uplift_slope(run, fit.value, estimator.label, metric)
            assert added == pytest.approx(slope * fit.influence, rel=2e-3, abs=1e-6 * abs(slope)), estimator.label


def test_slopes_of_plain_weights_are_those_of_the_formulas(log: SmallLog) -> None:
    """∂w/∂log T = −w·∂log π_p/∂log T, for Plackett-Luce ∂log π_p/∂log T = −Σ_k (s_k − E s)/T."""
    table, keys = log.table(), ["is", "nis"]
    folded = offline("fit", estimators=keys).aggregate(table).aggregates
    [fit] = folded.plan.control_fits
    plain = offline(fit.value, estimators=keys).aggregate(table).aggregates
    shown, rows, t = log.rankings[log.shown], np.arange(log.rows), fit.value
    log_p, score = np.zeros(log.rows), np.zeros(log.rows)
    left = np.ones((log.rows, log.m), bool)
    for item in shown.T:
        odds = np.where(left, np.exp(log.control / t), 0.0)
        p = odds / odds.sum(axis=1, keepdims=True)
        log_p += np.log(p[rows, item])
        score -= (log.control[rows, item] - (p * log.control).sum(axis=1)) / t
        left[rows, item] = False
    w, r = np.exp(log.log_t[rows, log.shown] - log_p), np.asarray(table["click"], float)
    v = (w @ r) / w.sum()
    slopes = {"is": -(w * score) @ r / log.rows, "nis": -(w * score * (r - v)).sum() / w.sum()}
    for estimator in folded.plan.estimators:
        added = errors_by_cell(folded, plain, estimator, 0)
        slope = added @ fit.influence / (fit.influence @ fit.influence)
        assert slope == pytest.approx(slopes[estimator.label], rel=2e-3)


@pytest.mark.parametrize("interval", ["delta", "bootstrap"])
def test_values_stay_and_intervals_change(log: SmallLog, interval: str) -> None:
    table = log.table()
    fitted = offline("fit", interval=interval, n_resamples=50).run(table)
    assert fitted.control_fit is not None
    plain = offline(fitted.control_fit["control"]["value"], interval=interval, n_resamples=50).run(table)
    for label, estimate in fitted.metrics["click"].estimates.items():
        other = plain.metrics["click"].estimates[label]
        assert estimate.effect_size == pytest.approx(other.effect_size, rel=1e-9)
        assert estimate.std_error != pytest.approx(other.std_error, rel=1e-4)
        assert estimate.effect_size_ci_lower != pytest.approx(other.effect_size_ci_lower, rel=1e-6)
        assert estimate.betting is None
        assert estimate.lower_bound is None
        if estimate.sensitivity is not None:
            assert estimate.sensitivity["ci_lower"] != pytest.approx(other.sensitivity["ci_lower"], rel=1e-6)
    for mine, theirs in zip(fitted.segments, plain.segments, strict=True):
        for label, estimate in mine.metrics["click"].estimates.items():
            other = theirs.metrics["click"].estimates[label]
            assert estimate.effect_size == pytest.approx(other.effect_size, rel=1e-9)
            assert estimate.std_error != pytest.approx(other.std_error, rel=1e-5)
    assert fitted.metrics["click"].cap_path is None
    assert any(note.startswith("estimates along the cap are left out") for note in fitted.notes)


def test_segments_have_the_error_by_their_own_slope(log: SmallLog) -> None:
    table = log.table()
    test = offline("fit", estimators=["ncis", "point-ncis-adaptive"])
    folded = test.aggregate(table).aggregates
    [fit] = folded.plan.control_fits
    ledger = folded.segments["stratum"]
    plain = offline(fit.value, estimators=["ncis", "point-ncis-adaptive"]).aggregate(table).aggregates
    assert ledger.groups is not None
    for code, label in enumerate(ledger.groups.labels, start=1):
        inside = table.filter(pa.compute.equal(table["stratum"], int(label)))
        moved = [
            offline(fit.value * np.exp(step), estimators=["ncis", "point-ncis-adaptive"]).aggregate(inside).aggregates
            for step in (STEP, -STEP)
        ]
        for name in [name for name in ledger.accounts if name[1] is not None]:
            both = [part.of_groups([code]).account(*name) for part in (ledger, plain.segments["stratum"])]
            with_error, without = (a.get(WEIGHTED_REWARDS) * np.exp(a.log_unit) for a in both)
            added = with_error - without
            accounts = [a.ledger.account(*name) for a in moved]
            ends = [a.total(WEIGHTED_REWARDS) * np.exp(a.log_unit) for a in accounts]
            slope = (ends[0] - ends[1]) / (2 * STEP)
            assert added == pytest.approx(slope * fit.influence, rel=2e-3, abs=1e-6 * abs(slope))


def test_several_treatments(log: SmallLog) -> None:
    def test_of(temperature: float | str) -> ft.OfflineTest:
        return ft.OfflineTest(
            log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking"),
            control=ft.PlackettLuce("control_scores", temperature),
            treatment={"a": ft.PlackettLuce("treatment_scores", 1.0), "b": ft.PlackettLuce("treatment_scores", 3.0)},
            estimators=["ncis", "point-ncis-adaptive"], interval="delta", weight_bound=8.0,
        )  # fmt: skip

    table = log.table()
    folded = test_of("fit").aggregate(table).aggregates
    [fit] = folded.plan.control_fits
    plain = test_of(fit.value).aggregate(table).aggregates
    for estimator in folded.plan.estimators:
        added = errors_by_cell(folded.treatments["b"], plain.treatments["b"], estimator, 0)
        slope = uplift_slope(lambda t: test_of(t).run(table), fit.value, estimator.label, "click", "b")
        assert added == pytest.approx(slope * fit.influence, rel=2e-3, abs=1e-6 * abs(slope))


def test_a_treatment_with_the_controls_number_moves_with_it(log: SmallLog) -> None:
    """Beside it one with a number of its own; what is reported is the word, and the number is that of the fit."""

    def test_of(temperature: float | str) -> ft.OfflineTest:
        policies = {name: ft.PlackettLuce("treatment_scores", t) for name, t in (("a", 1.0), ("b", "control"))}
        return ft.OfflineTest(
            log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking"),
            control=ft.PlackettLuce("control_scores", temperature), treatment=policies,
            estimators=["ncis", "point-ncis-adaptive"], interval="delta", weight_bound=8.0,
        )  # fmt: skip

    table = log.table()
    folded = test_of("fit").aggregate(table).aggregates
    [fit] = folded.plan.control_fits
    plain = test_of(fit.value).aggregate(table).aggregates
    for name, mine, theirs in (("a", folded, plain), ("b", folded.treatments["b"], plain.treatments["b"])):
        for estimator in folded.plan.estimators:
            added = errors_by_cell(mine, theirs, estimator, 0)
            slope = uplift_slope(lambda t: test_of(t).run(table), fit.value, estimator.label, "click", name)
            assert added == pytest.approx(slope * fit.influence, rel=2e-3, abs=1e-6 * abs(slope))
    fitted, written = test_of("fit").run(table), test_of(fit.value).run(table)
    assert [table["temperature"] for table in fitted.settings["treatment"]] == [1.0, "control"]
    for one, other in zip(fitted.treatments, written.treatments, strict=True):
        for label, estimate in one.metrics["click"].estimates.items():
            assert estimate.effect_size == pytest.approx(other.metrics["click"].estimates[label].effect_size, rel=1e-9)


@pytest.mark.slow
def test_the_error_with_the_controls_number_is_the_spread_over_logs() -> None:
    """Where control and treatment move together, most of the fit's error cancels: without that it is 1.6 times this."""
    uplifts, errors = [], []
    for seed in range(60):
        g = np.random.default_rng(seed)
        scores = 1.5 * g.normal(size=(400, 4))
        shown = np.argmax(scores / 0.7 + g.gumbel(size=scores.shape), axis=1)
        table = pa.table({
            "s": scores.tolist(), "t": (2.0 * scores + 0.5 * g.normal(size=scores.shape)).tolist(),
            "ranking": shown[:, None].tolist(), "click": 0.2 + 0.8 * (shown == scores.argmax(axis=1)),
        })  # fmt: skip
        test = ft.OfflineTest(
            log=ft.LogColumns(rewards=["click"], ranking="ranking"), control=ft.PlackettLuce("s", "fit"),
            treatment=ft.PlackettLuce("t", "control"), estimators=["ncis"], interval="delta", cap=20.0,
        )  # fmt: skip
        estimate = test.run(table, threads=1).metrics["click"].estimates["ncis"]
        uplifts.append(estimate.effect_size)
        errors.append(estimate.std_error)
    assert np.std(uplifts, ddof=1) == pytest.approx(np.mean(errors), rel=4 / np.sqrt(2 * 59))


def by_loggers(temperatures: dict[str, float | str]) -> ft.OfflineTest:
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", date="day", logger="policy"),
        control={name: ft.PlackettLuce(f"{name}_scores", temperatures.get(name, 1.0)) for name in NAMES},
        treatment=ft.PlackettLuce("treatment_scores", 1.0),
        estimators=["cis", "ncis", "point-ncis-adaptive"], baseline="new", interval="delta", weight_bound=8.0,
    )  # fmt: skip


def test_each_logger_on_its_own_rows() -> None:
    log = ThreeLoggers(rows=900, units=300)
    table = log.table()
    folded = by_loggers({"new": "fit", "older": "fit"}).aggregate(table).aggregates
    fits = {fit.control: fit for fit in folded.plan.control_fits}
    assert list(fits) == ["new", "older"]
    shown, fit_units = log.rankings[log.shown], is_fitted_on(hash_integers(log.unit))
    for name, fit in fits.items():
        rows = np.flatnonzero((log.logger == NAMES.index(name)) & fit_units)
        scores = log.scores[name]

        def against(t: float, rows: Any = rows, scores: Any = scores) -> float:
            return -sum(log_softmax_ranking(scores[i] / t, shown[i]) for i in rows)

        best = minimize_scalar(against, bounds=(0.2, 5.0), options={"xatol": 1e-9}).x
        assert fit.rows == len(rows)
        assert fit.value == pytest.approx(best, rel=1e-5)
        assert not fit.influence.reshape(3, -1)[[k for k in range(3) if k != NAMES.index(name)]].any()
    numbers: dict[str, float | str] = {name: fit.value for name, fit in fits.items()}
    plain = by_loggers(numbers).aggregate(table).aggregates
    for estimator in folded.plan.estimators:
        added = errors_by_cell(folded, plain, estimator, 0)
        expected = np.zeros_like(added)
        for name, fit in fits.items():

            def run(t: float, name: str = name) -> ft.Result:
                return by_loggers({**numbers, name: t}).run(table)

            expected += uplift_slope(run, fit.value, estimator.label, "click") * by_bucket(fit)
        assert added == pytest.approx(expected, rel=2e-3, abs=1e-6 * np.abs(expected).max())
    result = by_loggers({"new": "fit", "older": "fit"}).run(table)
    assert result.control_fit is not None
    assert result.control_fit["older"]["value"] == fits["older"].value
    assert any(note.startswith("temperature of 'older' fitted from the log: ") for note in result.notes)


@pytest.mark.parametrize("policy", [ft.Thurstone, ft.EpsilonGreedy])
def test_other_policies(log: SmallLog, policy: Any) -> None:
    """SmallLog is Plackett-Luce's; what is checked is that the error follows the slope of whichever is fitted."""
    small = SmallLog(rows=200, units=100)
    test = offline("fit", policy=policy, estimators=["ncis"])
    folded = test.aggregate(small.table()).aggregates
    [fit] = folded.plan.control_fits
    assert fit.parameter == {ft.Thurstone: "sigma", ft.EpsilonGreedy: "epsilon"}[policy]
    plain = offline(fit.value, policy=policy, estimators=["ncis"]).aggregate(small.table()).aggregates
    [estimator] = folded.plan.estimators
    h = STEP
    if policy is ft.EpsilonGreedy:
        odds = fit.value / (1.0 - fit.value)
        numbers = [odds * np.exp(k * h) / (1.0 + odds * np.exp(k * h)) for k in (1, -1)]
    else:
        numbers = [fit.value * np.exp(k * h) for k in (1, -1)]
    ends = [
        offline(n, policy=policy, estimators=["ncis"]).run(small.table()).metrics["click"].estimates["ncis"].effect_size
        for n in numbers
    ]
    assert ends[0] is not None
    assert ends[1] is not None
    slope = (ends[0] - ends[1]) / (2 * h)
    added = errors_by_cell(folded, plain, estimator, 0)
    assert added == pytest.approx(slope * fit.influence, rel=2e-3, abs=1e-6 * abs(slope))


def test_a_sample_of_the_rows_has_nearly_the_same_error(monkeypatch: pytest.MonkeyPatch) -> None:
    log, keys = SmallLog(rows=4000, units=2000), ["cis", "ncis", "point-ncis-adaptive"]
    whole = offline("fit", estimators=keys).run(log.table())
    monkeypatch.setattr(fitted_control, "MOST_SLOPE_ROWS", 2000)
    monkeypatch.setattr(fitted_control, "MOST_PRICED_ROWS", 500)
    part = offline("fit", estimators=keys).run(log.table())
    assert whole.control_fit == part.control_fit
    for key in keys:
        exact, rough = (result.metrics["click"].estimates[key].std_error for result in (whole, part))
        assert rough == pytest.approx(exact, rel=0.01)
        assert rough != exact


def test_batches_and_order_of_rows_change_nothing(log: SmallLog) -> None:
    table = log.table()
    test = offline("fit", estimators=["ncis", "point-ncis-adaptive"])
    first = test.run(table)
    shuffled = table.take(np.random.default_rng(0).permutation(log.rows))
    second = test.run(shuffled, batch_rows=64, threads=2)
    assert first.control_fit is not None
    assert second.control_fit is not None
    for key in ("value", "std_error"):
        assert second.control_fit["control"][key] == pytest.approx(first.control_fit["control"][key], rel=1e-9)
    for label, estimate in first.metrics["click"].estimates.items():
        assert second.metrics["click"].estimates[label].std_error == pytest.approx(estimate.std_error, rel=1e-9)


def test_rows_that_are_units_and_a_stream(log: SmallLog) -> None:
    columns = ft.LogColumns(rewards=["click"], ranking="ranking")
    test = ft.OfflineTest(
        log=columns, control=ft.PlackettLuce("control_scores", "fit"), treatment=ft.PlackettLuce("treatment_scores"),
        estimators=["ncis"], interval="delta",
    )  # fmt: skip
    table = log.table()
    whole = test.run(table)
    stream = test.run(pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=100)))
    assert whole.control_fit == stream.control_fit
    assert whole.metrics["click"].estimates["ncis"].std_error == pytest.approx(
        stream.metrics["click"].estimates["ncis"].std_error, rel=1e-9
    )


def test_in_the_result_and_in_words(log: SmallLog, tmp_path: Path) -> None:
    result = offline("fit", estimators=["ncis"]).run(log.table())
    document = json.loads(result.to_json(tmp_path / "result.json"))
    validate(document, json.loads((files("foretest") / "schema" / "result-1.json").read_text()))
    fit = document["control_fit"]["control"]
    assert set(fit) == {"parameter", "value", "std_error", "rows"}
    assert document["settings"]["control"]["temperature"] == "fit"
    digits = int(1 - np.floor(np.log10(fit["std_error"])))
    sentence = (
        f"temperature fitted from the log: {fit['value']:.{digits}f} (standard error {fit['std_error']:.{digits}f})."
    )
    assert sentence in document["notes"]
    assert sentence in " ".join(str(result).split())
    assert sentence in result.to_html()
    checked = offline("fit", estimators=["ncis"]).check(log.table())
    assert checked.control_fit == result.control_fit
    assert "control_fit" not in offline(1.0, estimators=["ncis"]).run(log.table()).to_dict()


def test_what_takes_no_such_error_is_refused(log: SmallLog, tmp_path: Path) -> None:
    table = log.table()
    for interval in ("bernstein", "betting"):
        with pytest.raises(
            BadInput, match=rf'interval = "{interval}" takes no error of \[control\] temperature = "fit"'
        ):
            offline("fit", interval=interval, estimators=["cis"], r_max=1.0).run(table)
    folded = offline("fit", estimators=["cis"], r_max=99.0).aggregate(table)
    later = offline(1.0, estimators=["cis"], interval="betting", r_max=99.0)  # sums have the error all the same
    with pytest.raises(BadInput, match='interval = "betting" takes no error of temperature = "fit"'):
        later.analyse(*folded)
    with pytest.raises(BadInput, match=r'temperature = "fit" would differ from log to log.*write the fitted number'):
        offline("fit").save_aggregates(table, tmp_path / "day.parquet")
    with pytest.raises(BadInput, match="a packed log keeps sums under one number: write the fitted number"):
        offline("fit").pack(table, tmp_path / "packed")
    with pytest.raises(BadInput, match="a plan compares exploration with that of one number: write the fitted number"):
        ft.plan_log(offline("fit", estimators=["point-ncis-adaptive"]), table)
    assert not list(tmp_path.iterdir())
    with pytest.raises(BadInput, match="its examination curve would be fitted by a control that is fitted itself"):
        offline("fit", estimators=["exposure-ncis-adaptive"], examination="fit").run(table)
    left = offline("fit", examination="fit").run(table)
    assert "exposure-ncis-adaptive" not in left.metrics["click"].estimates
    assert any(note.startswith("exposure-ncis-adaptive was left out: its examination curve") for note in left.notes)


def test_logs_that_show_no_number() -> None:
    few = SmallLog(rows=60, units=20)
    with pytest.raises(BadInput, match=r"\[control\] temperature = \"fit\": \d+ units are too few to fit it on"):
        offline("fit", estimators=["ncis"]).run(few.table())
    log = SmallLog(rows=300, units=100)
    best = np.argsort(-log.control, axis=1, kind="stable")[:, :2]
    table = log.table()
    at = table.schema.get_field_index("ranking")
    table = table.set_column(at, "ranking", pa.array(best.tolist(), pa.list_(pa.int32())))
    with pytest.raises(BadInput, match=r'"fit": the log does not explore: more than 99 %.*, or give the number\.'):
        offline("fit", estimators=["ncis"]).run(table)
    worst = log.table().set_column(at, "ranking", pa.array(best[:, ::-1].tolist(), pa.list_(pa.int32())))
    opposite = pa.array((-log.control).tolist())
    worst = worst.set_column(worst.schema.get_field_index("control_scores"), "control_scores", opposite)
    with pytest.raises(BadInput) as error:
        offline("fit", estimators=["ncis"]).run(worst)
    assert str(error.value) == (
        '[control] temperature = "fit": what was shown does not follow the scores, and the likelihood has no maximum.'
        " Check that the scores are those that served, or give the number."
    )


def test_a_score_that_is_not_finite_is_named(log: SmallLog) -> None:
    table = log.table()
    scores = table["control_scores"].to_pylist()
    scores[41][0] = float("nan")
    at = table.schema.get_field_index("control_scores")
    with pytest.raises(BadInput, match=r"'control_scores', row 41 .*: a score is NaN"):
        offline("fit", estimators=["ncis"]).run(table.set_column(at, "control_scores", pa.array(scores)))


def test_a_packed_log_is_read_whole(log: SmallLog, tmp_path: Path) -> None:
    table = log.table()
    offline(1.0).pack(table, tmp_path / "packed")
    packed, plain = (offline("fit", estimators=["cis"]).run(source) for source in (str(tmp_path / "packed"), table))
    assert any("a number of the control was fitted" in note for note in packed.notes)
    assert packed.control_fit is not None
    assert plain.control_fit is not None
    assert packed.control_fit["control"]["value"] == pytest.approx(plain.control_fit["control"]["value"], rel=1e-9)
    mine, theirs = (result.metrics["click"].estimates["cis"] for result in (packed, plain))
    assert mine.std_error == pytest.approx(theirs.std_error, rel=1e-9)


def test_under_a_window_the_number_is_that_of_the_displays_that_count(log: SmallLog) -> None:
    """The log is not in the order of time: rows that are left out lie between the others."""
    shown = np.datetime64("2024-03-01", "us") + np.random.default_rng(0).permutation(log.rows) * np.timedelta64(60, "s")
    table, old = log.table(time=pa.array(shown), age=np.full(log.rows, 5.0)), shown <= np.datetime64("2024-03-01T06:00")

    def fitted(table: pa.Table, window: str | None) -> Any:
        columns = ft.LogColumns(
            rewards=["click"], unit="user", ranking="ranking", time="time", reward_age="age",
            read_at="2024-03-01T12:00",
        )  # fmt: skip
        test = ft.OfflineTest(
            log=columns, control=ft.PlackettLuce("control_scores", "fit"),
            treatment=ft.PlackettLuce("treatment_scores"), window=window, estimators=["ncis"], interval="delta",
        )  # fmt: skip
        return test.run(table).control_fit

    assert fitted(table, "6h") == fitted(table.filter(pa.array(old)), None)


def test_sums_by_different_fits_do_not_add_up(log: SmallLog) -> None:
    test = offline("fit", estimators=["ncis"])
    sums = [test.aggregate(t.table()).aggregates for t in (log, SmallLog(rows=600, units=160, seed=4))]
    with pytest.raises(BadInput, match="these sums are by different controls, each fitted to its own log"):
        sums[0] + sums[1]


@pytest.mark.slow
def test_the_standard_error_is_the_spread_over_logs() -> None:
    values, errors = [], []
    for seed in range(40):
        result = offline("fit", estimators=["ncis"]).run(SmallLog(rows=400, units=200, seed=seed).table())
        assert result.control_fit is not None
        values.append(result.control_fit["control"]["value"])
        errors.append(result.control_fit["control"]["std_error"])
    assert np.mean(values) == pytest.approx(1.0, abs=4 * np.std(values) / np.sqrt(40))
    assert np.std(values, ddof=1) == pytest.approx(np.mean(errors), rel=4 / np.sqrt(2 * 39))
