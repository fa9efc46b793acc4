"""The summary's second half: what the paper claims beside its tables, and the bias of NCIS in parts."""

from __future__ import annotations

from typing import Any

from foretest.paper.markdown import cap, count, paragraph, percent, table
from foretest.report.digits import NONE, decimal

Section = dict[str, Any]


def computation_time(section: Section) -> list[str]:
    """What it saves PointNCIS to need only rewarded rows."""
    rows = [
        [row["name"], decimal(row["microseconds_a_rewarded_row"], 1), decimal(row["all_rows_over_rewarded"], 1),
         decimal(row["ncis_over_point"], 1), decimal(row["ncis_over_point_at_one_in_a_thousand"], 0)]
        for row in section["normalisers"].values()
    ]  # fmt: skip
    header = [
        "",
        "normaliser, µs per row",
        "all rows / rewarded rows",
        "NCIS / this",
        "NCIS / this at 1 click in 1,000",
    ]
    return [
        "## Computation time",
        paragraph(
            f"PointNCIS needs only rows with a reward: {count(section['rewarded'])} of {count(section['rows'])}",
            f"({percent(section['rewarded'] / section['rows'], sign=False)}). CPU time in this run,",
            f"{section['draws']} draws per display:",
        ),
        table(header, rows),
        paragraph(
            "The second column is what it saves to leave the other rows without a normaliser. The last two set all of",
            f"NCIS (reading, {decimal(section['reading_microseconds_a_row'])} µs, and weighting,",
            f"{decimal(section['weights_microseconds_a_row'])} µs, of every row) against all of PointNCIS (reading,",
            "weighting and normalising rewarded rows, where the log lets them be read apart): above 1 PointNCIS is",
            "the cheaper. A normaliser costs as much as many weights, so the gain is as large as rewards are rare.",
        ),
    ]


def capping(section: Section) -> list[str]:
    """Zero against max capping."""
    rows = [
        [row["name"], percent(row["mean_move"]), percent(row["largest_move"]), percent(row["half_width"], sign=False),
         f"{row['same_verdict']} of {section['tests']}", _moved(row["correlation"]), _moved(row["fnr"])]
        for row in section["rows"].values()
    ]  # fmt: skip
    header = ["max → zero", "uplift moves by", "at most by", "half an interval", "same verdict", "correlation", "FNR"]
    return [
        '## Zero against max capping: "very similar results"?',
        "On the same logs (relative uplifts, means over tests):",
        table(header, rows),
        paragraph(
            "Under zero capping rows above the cap count for nothing, and there is no cap for each display. A move is",
            "small where it is small beside half an interval.",
        ),
    ]


def _moved(figure: dict[str, float | None]) -> str:
    return f"{decimal(figure['max'])} → {decimal(figure['zero'])}"


def uncapped(section: Section) -> list[str]:
    """IS, NIS, DR, and why capped DR is left out."""
    verdicts = ("positive", "neutral", "negative", "insufficient")
    rows = [
        [row["name"], *(str(row["verdicts"][verdict]) for verdict in verdicts),
         f"{row['interval_decides']['positive']}, {row['interval_decides']['negative']}",
         decimal(row["effective_positives"]["0.5"], 0), decimal(row["correlation"]), decimal(row["fnr"])]
        for row in section["rows"].values()
    ]  # fmt: skip
    header = ["", *verdicts, "intervals above, below 0", "effective positives", "correlation", "FNR"]
    decided = sum(row["verdicts"]["positive"] + row["verdicts"]["negative"] for row in section["rows"].values())
    if decided:
        decisions = (
            f"The paper says that they would always be neutral. Here {decided} of {3 * section['tests']} verdicts are"
            " neither neutral nor insufficient: where a log lacks the treatment's heaviest rankings, nothing in it says"
            " so, the interval is too narrow and the estimate too low."
        )
    else:
        decisions = "As the paper says, none of them ever decides."
    nis, dr = (
        "median {}, from {} to {}".format(
            *(decimal(row["std_error_over_is"][level]) for level in ("0.5", "0.1", "0.9"))
        )
        for row in (section["rows"]["nis"], section["rows"]["dr"])
    )
    return [
        "## Without a cap: IS, NIS, DR",
        table(header, rows),
        paragraph(decisions),
        paragraph(
            f"Standard errors over that of IS (10 % and 90 % of tests): NIS {nis}; DR, with V(x) from the context,",
            f"{dr}. The paper finds the variance of neither much lower, of DR because clicks are too rare for a model",
            "to explain much of them. Above 1 they see rows of large weight without a click, which count for nothing",
            "in IS.",
        ),
        paragraph(section["capped_dr"]),
    ]


def estimators(section: Section) -> list[str]:
    """What each estimator takes the capping bias to be."""
    rows = [
        [row["name"], row["formula"], row["bias"], percent(row["example"]), percent(row["mean"]),
         percent(row["rmse_of_bias"], sign=False)]
        for row in section["rows"].values()
    ]  # fmt: skip
    truth = section["truth"]
    rows.append(["**truth**", "", "E[R (1 − Z)]", percent(truth["example"]), percent(truth["mean"]), ""])
    header = ["", "value", "its model of the bias of CIS", "one test", "mean", "RMSE of the model"]
    return [
        "## The estimators, and what each takes the capping bias to be",
        paragraph(
            "Z = w̄/w, expectations under the treatment. In numbers: value − CIS, relative to the control, in the",
            "test of section 4.3 and over all tests; the truth's is its distance from CIS.",
        ),
        table(header, rows, words=3),
    ]


def loggers(section: Section) -> list[str]:
    """Several loggers against one."""
    sides = section["single"], section["mixed"]
    rows = [
        ["treatment's rankings above the cap", *(percent(s["rankings_above_cap"], sign=False) for s in sides)],
        ["log10 of their weight, 90 % quantile", *(decimal(s["log10_weight_q90"]) for s in sides)],
        ["treatment mass kept", *(percent(s["mass_kept"], sign=False) for s in sides)],
        ["rows above the cap", *(percent(s["rows_above_cap"], sign=False) for s in sides)],
        ["effective positives at the cap", *(count(s["effective_positives"]) for s in sides)],
    ]
    for key, row in sides[0]["estimators"].items():
        errors = [side["estimators"][key] for side in sides]
        rows.append([
            f"{row['name']}: bias, RMSE",
            *(f"{percent(e['bias'])}, {percent(e['rmse'], sign=False)}" for e in errors),
        ])  # fmt: skip
    shares = " + ".join(f"{100 * share:.0f} %" for share in section["shares"])
    return [
        "## The conclusion's idea: several loggers",
        paragraph(
            f"{section['tests']} tests, logs of {count(section['rows'])} displays each. One logger: production.",
            f"Several: {shares}, production and two other treatments of the same team; w = π_t/π_mix. Means over",
            "tests; errors of the relative uplift over production.",
        ),
        table(["", "one logger", "several"], rows),
    ]


def decomposition(section: Section) -> list[str]:
    """The bias of NCIS between and within contexts, and by group."""
    control, example, tests = section["control"], section["example"], section["tests"]
    names = {
        "bias": "bias of NCIS's limit", "between_contexts": "between contexts", "between_groups": "… between groups",
        "inside_groups": "… between contexts of a group", "within_contexts": "within contexts",
    }  # fmt: skip
    rows = [
        [words, percent(example[name]["value"] / control), percent(example[name]["std_error"] / control, sign=False)]
        for name, words in names.items()
    ]
    strata = {row["label"]: row for row in section["example_strata"]}
    groups = [
        [name, percent(row["share"], sign=False), percent(row["kept"], sign=False),
         percent(row["bias_contribution"] / control), *_bias_in_log(strata.get(name), control)]
        for name, row in example["groups"].items()
    ]  # fmt: skip
    return [
        "## Where the bias of NCIS comes from (section 5.2)",
        paragraph(
            "The test of section 4.3: estimate − truth, relative to the control's value, by simulation, cap",
            f"{cap(section['cap'])}.",
        ),
        table(["part", "relative", "standard error"], rows),
        "The part between groups, by group: exactly, and as the strata of its log say (NCIS − PieceNCIS).",
        table(["group", "share", "kept", "exact", "from the log", "its standard error"], groups),
        _over_tests(tests),
    ]


def _over_tests(tests: Section) -> str:
    means, sizes = tests["mean"], tests["mean_absolute"]
    correlation = tests["strata_correlation"]
    return paragraph(
        f"Over all {tests['tests']} tests the bias is {percent(means['bias'])} on average:",
        f"{percent(means['between_contexts'])} between contexts and {percent(means['within_contexts'])} within. The",
        f"part between contexts is the larger in {tests['between_dominates']} of {tests['tests']} (mean size",
        f"{percent(sizes['between_contexts'], sign=False)} against {percent(sizes['within_contexts'], sign=False)});",
        "the paper",
        f"assumes that it dominates. In the logs, strata of the value model show {percent(means['seen_by_strata'])}"
        + (
            f"; over tests that correlates {decimal(correlation)} with the true part."
            if correlation is not None
            else "."
        ),
    )


def _bias_in_log(stratum: Section | None, control: float) -> list[str]:
    if stratum is None or stratum["bias_contribution"] is None:
        return [NONE, NONE]
    error = stratum["bias_contribution_std_error"]
    relative = None if error is None else error / control
    return [percent(stratum["bias_contribution"] / control), percent(relative, sign=False)]
