"""A history as text: figures with their quantiles, noise, truth, and what could not be read."""

from __future__ import annotations

from foretest.history.agreement_result import Agreement
from foretest.terminal.history import render_agreement

NAMES = ("correlation", "precision", "fnr", "ppv", "miss_rate", "ci_size")


def figures(value: float | None, **others: float | None) -> dict[str, float | None]:
    row = {f"{name}{end}": value for name in NAMES for end in ("", "_q10", "_q90")}
    return {**row, "noise_ceiling": None, "deconvolved_correlation": None, **others}


def lines_of(*rows: dict[str, float | None]) -> list[str]:
    tables = {"click": {f"estimator-{k}": row for k, row in enumerate(rows)}}
    failures = [{"name": "old", "error": "no such file"}]
    return [line.rstrip() for line in render_agreement(Agreement([], failures, tables)).splitlines()]


def test_figures_have_their_quantiles_below() -> None:
    lines = lines_of(figures(0.25), figures(None))
    assert lines[4].split() == ["estimator-0", *[".25"] * 6]
    assert lines[5].split() == [".25:.25"] * 6
    assert lines[6].split() == ["estimator-1", *["-"] * 6]
    assert lines[-1] == "failed: old: no such file"
    assert not any("perfect estimator" in line or "truth" in line for line in lines)


def test_noise_and_truth_are_below_the_table_where_they_are_known() -> None:
    known = figures(0.5, noise_ceiling=0.9, deconvolved_correlation=0.56, bias=-0.012, rmse=0.034, coverage=0.875,
                    range_coverage=0.91)  # fmt: skip
    lines = lines_of(known)
    ceiling = lines.index("correlation of a perfect estimator, and ours with the noise removed:")
    assert lines[ceiling + 1] == "  estimator-0: .90, .56"
    truth = lines.index("against the truth: bias, root mean square error, held by interval, by range")
    assert lines[truth + 1] == "  estimator-0: -1.2 %, 3.4 %, 87.5 %, 91.0 %"


def test_a_correlation_beyond_1_is_not_known() -> None:
    ends = {"deconvolved_correlation_low": -1.2, "deconvolved_correlation_high": 0.7}
    lines = lines_of(figures(0.5, noise_ceiling=0.4, deconvolved_correlation=1.96, tests=12, **ends))
    ceiling = lines.index("correlation of a perfect estimator, and ours with the noise removed:")
    assert lines[ceiling + 1] == "  estimator-0: .40, not known from 12 tests (not known from 12 tests to .70)"


def test_false_negatives_are_a_share_of_all_tests_beside_the_miss_rate() -> None:
    lines = lines_of(figures(0.25))
    assert lines[3].split() == ["estimator", "corr.", "right", "FN", "miss", "rate", "PPV", "CI", "size"]
    assert "false negatives and false positives, share of all tests; miss rate: of" in " ".join(lines)
