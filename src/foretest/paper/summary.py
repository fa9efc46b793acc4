"""OUT/README.md: the run's tables beside the paper's, with the pictures, from the content of paper.json alone."""

from __future__ import annotations

from typing import Any

from foretest.formatting import plural
from foretest.paper.estimators import NAMES
from foretest.paper.markdown import cap, count, paragraph, percent, span, table
from foretest.paper.summary_claims import capping, computation_time, decomposition, estimators, loggers, uncapped
from foretest.report.digits import decimal

Section = dict[str, Any]


def summary(document: Section, figures: list[str]) -> str:
    """The page; `figures` are the names of the pictures in its folder `figures`."""
    first, then = _pictures(figures, "figure-1", "figure-2"), _pictures(figures, "figure-3", "figure-4")
    parts = [
        *_head(document["run"], document["table_2"]),
        *table_1(document["table_1"]),
        *_section_4_3(document["section_4_3"], document["example"]["result"]["weights"], first),
        *_table_2(document["table_2"], then),
        *computation_time(document["computation_time"]),
        *capping(document["capping"]),
        *uncapped(document["uncapped"]),
        *estimators(document["estimators"]),
        *loggers(document["loggers"]),
        *decomposition(document["bias_decomposition"]),
        *_run(document["run"], document["cpu_seconds"]),
    ]
    return "\n\n".join(parts) + "\n"


def _pictures(figures: list[str], *stems: str) -> list[str]:
    return [f"![{name.replace('-', ' ')}](figures/{name}.png)" for name in figures if name.startswith(stems)]


def _head(run: Section, table_2: Section) -> list[str]:
    return [
        "# The paper, table by table",
        paragraph(
            "*Offline A/B testing for recommender systems* (Gilotte, Calauzènes, Nedelec, Abraham, Dollé; WSDM 2018),",
            f"run on the simulated world `{run['world']}`: {plural(table_2['tests'], 'A/B test')} of",
            f"2 × {count(run['rows'])} displays, seed {run['seed']}. The paper's own tests are proprietary; a",
            "simulated world has a known truth instead. Its numbers show how the estimators behave where the problem",
            "has the paper's shape. They are no evidence about another recommender.",
        ),
        "All numbers, unrounded: `paper.json`. Pictures: `figures`, as PNG, SVG and Vega-Lite.",
    ]


def table_1(section: Section) -> list[str]:
    """The counter-example for NCIS."""
    names = {"control": "control", "truth": "treatment, truth"} | {key: NAMES[key].name for key in NAMES}
    columns = (("paper", 1), ("closed_form", 5), ("from_log", 5))
    rows = [
        [names[key], *(decimal(section[column].get(key), digits) for column, digits in columns)]
        for key in ("control", "truth", "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive")
    ]
    by_group = ", ".join(f"{name} {decimal(part, 5)}" for name, part in section["ncis_bias"].items())
    return [
        "## Table 1: the counter-example for NCIS",
        table(["value", "paper", "closed form", "estimated from a log"], rows),
        paragraph(
            f"The log has the population in exact proportions ({count(section['rows'])} displays, cap",
            f"{cap(section['cap'])}), so that an estimator's value is its limit. CIS and NCIS call the treatment",
            "worse than the control; it is better. The bias of NCIS (estimate − truth) comes from the groups:",
            f"{by_group}; within them there is none.",
        ),
    ]


def _section_4_3(section: Section, weights: Section, pictures: list[str]) -> list[str]:
    low, middle, high = (decimal(weights["log10_quantiles"][level], 1) for level in ("0.1", "0.5", "0.9"))
    sought, bias, at = percent(section["sought"], sign=False), section["bias_band"], section["at_cap"]
    if section["noise_band"]:
        noise = f"noise is at most {sought} of the control's value up to a cap of {cap(section['noise_band'][1])}"
    else:
        least = percent(section["lowest_noise"], sign=False)
        noise = f"noise is above {sought} of the control's value at every cap in a log of this length ({least} at best)"
    provable = f"the bias is provably as small from a cap of {cap(bias[0])} on" if bias else "the bias bound never is"
    both = {
        True: "Here some cap satisfies both criteria.",
        False: "**No cap satisfies both criteria.**",
        None: "The two criteria cannot be compared.",
    }[section["satisfies_both"]]
    needed = section["rows_needed_for_both"]
    return [
        "## Figures 1 and 2, section 4.3: no good cap for CIS",
        paragraph(
            f"One test: the world's own treatment, a log of {count(section['rows'])} displays. Of the rankings that",
            f"the treatment would show, 80 % have a weight between 10^{low} and 10^{high} (median 10^{middle}), and",
            f"{percent(weights['share_above_cap'], sign=False)} one above {cap(weights['cap'])}.",
        ),
        *pictures,
        paragraph(
            f"For an uplift of {sought}, {noise}; {provable}. {both} At cap {cap(at['cap'])} the noise is",
            f"{percent(at['noise'], sign=False)} and the bound on the bias {percent(at['bias_bound'], sign=False)}.",
            f"The paper has a good variance below {cap(section['paper']['noise_below'])} and a good bias above",
            f"{cap(section['paper']['bias_above'])}, on a log of another size.",
        ),
        "Noise falls with the length of the log, the bias bound does not:",
        table(
            ["displays", f"highest cap with noise of at most {sought}"],
            [[count(row["rows"]), cap(row["highest_cap_of_noise"])] for row in section["by_length"]],
        ),
        *([f"A log in which both hold at one cap would need {count(needed)} displays."] if needed else []),
    ]


def _table_2(section: Section, pictures: list[str]) -> list[str]:
    header = ["", "correlation", "paper", "precision", "paper", "FNR", "paper", "CI size", "paper"]
    rows = []
    for row in section["rows"].values():
        cells = [
            cell for name in ("correlation", "precision", "fnr") for cell in (_ours(row, name), _printed(row, name))
        ]
        rows.append([row["name"], *cells, decimal(row["ours"]["ci_size"]), _printed(row, "ci_size")])
    against = [
        [row["name"], percent(row["ours"]["bias"]), percent(row["ours"]["rmse"], sign=False),
         percent(row["ours"]["coverage"], sign=False), decimal(row["ours"]["noise_ceiling"])]
        for row in section["rows"].values()
    ]  # fmt: skip
    online = ", ".join(f"{number} {verdict}" for verdict, number in section["online"].items() if number)
    return [
        "## Table 2: agreement with online tests",
        table(header, rows),
        paragraph(
            "In brackets the 10 % and 90 % quantiles over resampled tests. Precision is the share of tests decided as",
            f"online, FNR the share decided lower, of all {section['tests']}; online: {online}.",
            f"Not compared: {', '.join(section['failures'])}." if section["failures"] else "",
            _order(section["in_order"]),
            "One history is a small sample: neighbours change places from seed to seed. The paper does not say",
            "whether its PointNCIS had one cap for all displays or the appendix's cap for each.",
        ),
        paragraph(
            "Against the truth, which the paper did not have (relative uplifts; the ceiling is the correlation that a",
            "perfect estimator would show under this noise):",
        ),
        table(["", "bias", "RMSE", "intervals that contain it", "noise ceiling"], against),
        *pictures,
    ]


def _ours(row: Section, name: str) -> str:
    return span(row["ours"][name], row["ours"][f"{name}_q10"], row["ours"][f"{name}_q90"])


def _printed(row: Section, name: str) -> str:
    if row["paper"] is None:
        return ""
    value, half = row["paper"][name]["value"], row["paper"][name]["half_width"]
    return decimal(value) if half is None else f"{decimal(value)} ± {decimal(half)}"


def _order(in_order: dict[str, bool | None]) -> str:
    """In which figures the order of the paper holds, in words."""
    words = {"correlation": "correlation", "precision": "precision", "fnr": "false negatives"}
    kept_in = [words[name] for name, ordered in in_order.items() if ordered]
    broken_in = [words[name] for name, ordered in in_order.items() if ordered is False]
    where = f"holds here in {_listed(kept_in)}" if kept_in else "holds here in none of the three figures"
    where += f", and not in {_listed(broken_in)}" if kept_in and broken_in else ""
    return f"The paper's order from worst to best, CIS, NCIS, PieceNCIS, PointNCIS (adaptive), {where}."


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _run(run: Section, seconds: dict[str, float]) -> list[str]:
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    spent = ", ".join(f"{name} {decimal(number, 0)}" for name, number in seconds.items())
    options = " ".join(f"--{name} {run[name]}" for name in ("world", "tests", "rows", "seed"))
    return [
        "## This run",
        f"`foretest paper {options}`",
        paragraph(
            f"Versions: {versions}. CPU seconds: {spent}; in all {decimal(sum(seconds.values()), 0)}. The same",
            "command and versions give the same numbers, but for the times.",
        ),
    ]
