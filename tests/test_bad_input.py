"""Bad input gets one clear line, exit code 2, and nothing is written: every kind of it, with its whole message."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest import cli

ROWS = 60
NAN, INF = float("nan"), float("inf")

SETTINGS = """\
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"

[control]
policy = "plackett-luce"
scores = "control_scores"

[treatment]
policy = "plackett-luce"
scores = "treatment_scores"

[analysis]
n_resamples = 50
"""
REVENUE = SETTINGS.replace('["click"]', '["revenue"]')
SLOTS = REVENUE.replace("unit =", 'slot_rewards = {revenue = "slots"}\nunit =')
LONG = {"ranking": [0, 1, 2], "revenue": 0.0, "slots": [0.0, 0.0, 0.0]}
IDS = SETTINGS.replace('ranking = "ranking"', 'ranking = "shown"\ncandidates = "items"')


def control(lines: str) -> str:
    """The settings with another [control] table."""
    return SETTINGS.replace('policy = "plackett-luce"\nscores = "control_scores"', lines)


def treatment(lines: str) -> str:
    return SETTINGS.replace('policy = "plackett-luce"\nscores = "treatment_scores"', lines)


def analysis(lines: str, settings: str = SETTINGS) -> str:
    return f"{settings}{lines}\n"


BY_COUNTRY = analysis('examination = {column = "country", curves = {fr = [1.0, 0.4], de = [1.0, 0.7, 0.5]}}', SLOTS)
LOGGED_LINES = 'policy = "logged"\nprob = "prob"'
LOGGED = control('policy = "logged"\nprob = "prob"')
LOGGED_LOG = control('policy = "logged"\nlog_prob = "log_prob"')
LOGGED_TREATMENT = treatment('policy = "logged"\nprob = "prob"')
FIXED = treatment('policy = "fixed"\nranking = "fixed"')
FIXED_IDS = IDS.replace(
    'policy = "plackett-luce"\nscores = "treatment_scores"', 'policy = "fixed"\nranking = "fixed_ids"'
)
OWN = (
    SETTINGS.replace('ranking = "ranking"', 'ranking = "shown"')
    .replace('scores = "control_scores"', 'scores = "control_scores"\ncandidates = "items"')
    .replace('scores = "treatment_scores"', 'scores = "treatment_scores"\ncandidates = "own"')
)
OWN_FIXED = OWN.replace(
    'policy = "plackett-luce"\nscores = "treatment_scores"', 'policy = "fixed"\nranking = "own_fixed"'
)
LOGGED_SLOTS = SLOTS.replace(
    'policy = "plackett-luce"\nscores = "control_scores"', 'policy = "logged-slots"\nprobs = "slot_probs"'
)
MATRIX = LOGGED_SLOTS.replace('probs = "slot_probs"', 'matrix = "matrix"')
MATRIX_REMEDY = (
    "Check the column: slot by slot it holds the probability of each eligible item, in the order of the row's lists."
)
LOOKS = (
    "A slot's number is how likely a user looks at it, in any unit, and must be above 0; leave out slots that nobody"
    " sees."
)
CURVES = (
    'expected one number above 0 per slot, as in [1.0, 0.6, 0.4], "fit", the path of a result.json that has a curve,'
    ' {column = "device", curves = {phone = [1.0, 0.4]}}, or a table of these by metric.'
)
GREEDY = control('policy = "epsilon-greedy"\nscores = "control_scores"\nepsilon = 0.0')

HERE = Path("log.parquet")
NAMES = (
    "click, revenue, user, ranking, shown, items, names, control_scores, treatment_scores, prob, log_prob, country, v,"
    " slots, fixed, fixed_ids, slot_probs, matrix, own, own_fixed"
)
POSITIONS = (
    "A ranking holds distinct positions into the row's lists, from 0, best slot first; if these are item ids, name the"
    " column of eligible ids in [log] candidates."
)
ALL_IDS = "A ranking holds distinct ids of the row's candidates, best slot first."
FILL = "Every row needs one: fill it, or leave the row out."
FINITE = "Every row needs a finite number: fix it, or leave the row out."
SCORES = "Scores must be finite: leave an item that may not be shown out of the lists."
ESTIMATORS = (
    "is, nis, dr, cis, ncis, piece-ncis, point-ncis, point-ncis-adaptive, iips, niips, rips, slot-ncis-adaptive,"
)
ESTIMATORS += " cascade-ncis-adaptive, point-dr-adaptive, cascade-dr, pbm, exposure-ncis-adaptive"
POLICIES = (
    "plackett-luce, bradley-terry-luce, thurstone, mallows, epsilon-greedy, top-k, fixed, swap-neighbours,"
    " probabilities, logged, logged-slots, mixture"
)


def columns(rows: int = ROWS) -> dict[str, list[Any]]:
    g = np.random.default_rng(0)
    return {
        "click": [i % 2 == 0 for i in range(rows)],
        "revenue": [float(i % 3) for i in range(rows)],
        "user": [f"u{i}" for i in range(rows)],
        "ranking": [[i % 4, (i + 1) % 4] for i in range(rows)],
        "shown": [[10 + i % 4, 10 + (i + 1) % 4] for i in range(rows)],
        "items": [[10, 11, 12, 13]] * rows,
        "names": [["a", "b", "c", "d"]] * rows,
        "control_scores": g.normal(size=(rows, 4)).tolist(),
        "treatment_scores": g.normal(size=(rows, 4)).tolist(),
        "prob": [0.5] * rows,
        "log_prob": [-1.0] * rows,
        "country": ["fr", "de"] * (rows // 2),
        "v": [0.1] * rows,
        "slots": [[0.5 * (i % 3), 0.5 * (i % 3)] for i in range(rows)],
        "fixed": [[i % 4, (i + 2) % 4, (i + 1) % 4] for i in range(rows)],
        "fixed_ids": [[10 + i % 4, 10 + (i + 2) % 4] for i in range(rows)],
        "slot_probs": [[0.5, 0.25]] * rows,
        "matrix": [[0.25] * 8] * rows,
        "own": [[12, 20, 13, 21]] * rows,
        "own_fixed": [[20, 12, 21]] * rows,
    }


def write(path: Path, data: dict[str, Any]) -> None:
    """A log in row groups of 25 rows."""
    pq.write_table(pa.table(data), path, row_group_size=25)


def with_fault(rows: tuple[int, ...], **values: Any) -> dict[str, list[Any]]:
    """The log with these values in these rows."""
    data = columns()
    for name, value in values.items():
        data[name] = list(data[name])
        for row in rows:
            data[name][row] = value
    return data


def everything(folder: Path) -> dict[str, bytes | None]:
    """All files and folders, hidden ones too, with their content."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


Refuse = Callable[..., str]


@pytest.fixture
def refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refuse:
    """Runs a command that must be refused, in a folder with a good log; its message."""
    desk, temporary = tmp_path / "desk", tmp_path / "temporary"
    desk.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(desk)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def run(*args: str, settings: str = SETTINGS, log: dict[str, Any] | None = None) -> str:
        Path("test.toml").write_text(settings, encoding="utf-8")
        if log is not None or not HERE.exists():
            write(HERE, log or columns())
        before = everything(desk)
        monkeypatch.setattr(sys, "argv", ["foretest", *(args or ("run", str(HERE), "-c", "test.toml", "-o", "out"))])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.endswith("\n")
        assert captured.err.count("\n") == 1
        assert stop.value.code == 2
        assert everything(desk) == before
        assert everything(temporary) == {}
        assert captured.err.startswith("foretest: ")
        return captured.err[len("foretest: ") : -1]

    return run


# -- settings ---------------------------------------------------------------------------------------------------------

ANALYSIS_KEYS = (
    "estimators, cap, capping, weight_bound, headline, normaliser, draws, confidence_level, interval, n_resamples,"
    " buckets, strata, strata_base, value, value_log, predictions, folds, seed, gamma, gamma_slots, examination,"
    " decide_on, r_max, ignore_audit, baseline, window"
)
BAD_SETTINGS = {
    "unknown key": (
        analysis("wieght_bound = 3"),
        f"[analysis] has an unknown key 'wieght_bound'. Did you mean 'weight_bound'? Known: {ANALYSIS_KEYS}.",
    ),
    "unknown key of the log": (
        SETTINGS.replace("unit =", "units ="),
        "[log] has an unknown key 'units'. Did you mean 'unit'? Known: rewards, unit, ranking, candidates, id, date,"
        " features, slot_rewards, segments, logger, item_features, layout, display, item, slot, first_slot, tables,"
        " keep, time, reward_time, reward_age, read_at.",
    ),
    "keep that is the reward": (
        SETTINGS.replace("unit =", 'keep = "click"\nunit ='),
        "[log] keep and [log] rewards both name the column 'click': keep is the probability with which a row was kept"
        " when the log was thinned.",
    ),
    "keep that is no name": (
        SETTINGS.replace("unit =", "keep = 0.05\nunit ="),
        "[log] keep = 0.05: expected the name of a column.",
    ),
    "bounds of a thinned log": (
        analysis('interval = "betting"\nr_max = 1', SETTINGS.replace("unit =", 'keep = "v"\nunit =')),
        'interval = "betting" needs all rows of every unit, and [log] keep = "v" says that rows were left out: use'
        ' "bootstrap" or "delta".',
    ),
    "candidates of the log and of a policy": (
        OWN.replace("unit =", 'candidates = "items"\nunit ='),
        '[log] candidates = "items" and [control] candidates = "items" are both given: keep [log] candidates where all'
        " policies choose from one list, else a list for each policy.",
    ),
    "candidates of the control alone": (
        OWN.replace('\ncandidates = "own"', ""),
        '[control] has candidates of its own and [treatment] has none: add candidates = "column" to [treatment], the'
        " list that its scores are in the order of.",
    ),
    "candidates of the treatment alone": (
        OWN.replace('\ncandidates = "items"', ""),
        '[treatment] has candidates of its own and [control] has none: add candidates = "column" to [control], the'
        " list that its scores are in the order of.",
    ),
    "candidates beside a logged control": (
        OWN.replace('policy = "plackett-luce"\nscores = "control_scores"\ncandidates = "items"', LOGGED_LINES),
        "[treatment] has candidates of its own and [control] has none, for it has no scores: leave them out, or log the"
        " scores of all of its items.",
    ),
    "candidates of a logged control": (
        OWN.replace('policy = "plackett-luce"\nscores = "control_scores"', LOGGED_LINES),
        '[control] candidates = "items": a policy without scores has no use for a list of its own; it is for policies'
        " that rank by scores, and for fixed.",
    ),
    "candidates without ranking of ids": (
        OWN.replace('ranking = "shown"\n', ""),
        "[control] candidates: name the column of the shown ids too, in [log] ranking.",
    ),
    "candidates that are no column": (
        OWN.replace('"items"', "3"),
        "[control] candidates = 3: expected the name of a column.",
    ),
    "a key that is nearly candidates": (
        OWN.replace('candidates = "own"', 'candidate = "own"'),
        "[treatment] policy = \"plackett-luce\" has an unknown key 'candidate'. Did you mean 'candidates'? Known:"
        " scores, temperature, log_prob, prob, replay_seed, trained_until, candidates.",
    ),
    "candidates of a component": (
        OWN.replace(
            'policy = "plackett-luce"\nscores = "control_scores"\ncandidates = "items"',
            'policy = "mixture"\n[[control.components]]\nshare = 1\npolicy = "top-k"\nscores = "control_scores"\n'
            'candidates = "items"',
        ),
        "[control]: a component of the mixture has candidates of its own. Name one list for the whole mixture, beside"
        " its components.",
    ),
    "candidates of several loggers": (
        OWN.replace("[control]", '[[control]]\nname = "a"').replace("unit =", 'logger = "country"\nunit =')
        + 'baseline = "a"\n',
        "candidates of their own are for one [control], not for several [[control]] tables: name one list of all items"
        " in [log] candidates, with scores in its order.",
    ),
    "a random normaliser with candidates of their own": (
        OWN + 'normaliser = "lahiri"\n',
        'normaliser = "lahiri" is biased where the treatment may show items that the control could not, as with'
        ' candidates of their own: use "auto".',
    ),
    "predictions with candidates of their own": (
        OWN + 'predictions = "v"\n',
        "[analysis] predictions has a value for each item of one list, and [control] has candidates of its own: leave"
        " one of the two out.",
    ),
    "fixed rankings in two lists": (
        OWN_FIXED.replace(
            'policy = "plackett-luce"\nscores = "control_scores"', 'policy = "fixed"\nranking = "own_fixed"'
        ),
        "the rankings in 'own_fixed' are read by policies with different candidates: write them to two columns, one for"
        " each list.",
    ),
    "a key in the wrong table": (
        SETTINGS.replace("unit =", "cap = 5\nunit ="),
        "[log] has an unknown key 'cap'. It belongs in [analysis]. Known: rewards, unit, ranking, candidates, id,"
        " date, features, slot_rewards, segments, logger, item_features, layout, display, item, slot, first_slot,"
        " tables, keep, time, reward_time, reward_age, read_at.",
    ),
    "a policy's unknown key": (
        SETTINGS.replace('"control_scores"', '"control_scores"\ntemperatur = 2'),
        "[control] policy = \"plackett-luce\" has an unknown key 'temperatur'. Did you mean 'temperature'? Known:"
        " scores, temperature, log_prob, prob, replay_seed, trained_until, candidates.",
    ),
    "unknown table": (
        SETTINGS.replace("[analysis]", "[analysys]"),
        "the settings file has an unknown key 'analysys'. Did you mean 'analysis'? Known: log, control, treatment,"
        " metrics, analysis, online.",
    ),
    "unknown estimator": (
        analysis('estimators = ["cis", "ncsi"]'),
        f"[analysis] unknown estimator 'ncsi'. Did you mean 'ncis'? Known: {ESTIMATORS}.",
    ),
    "unknown policy": (
        control('policy = "placket-luce"\nscores = "control_scores"'),
        f"[control] unknown policy 'placket-luce'. Did you mean 'plackett-luce'? Known: {POLICIES}.",
    ),
    "another case": (
        treatment('policy = "MALLOWS"\nscores = "treatment_scores"'),
        f"[treatment] unknown policy 'MALLOWS'. Did you mean 'mallows'? Known: {POLICIES}.",
    ),
    "unknown interval": (
        analysis('interval = "bootstap"'),
        "[analysis] unknown interval 'bootstap'. Did you mean 'bootstrap'?"
        " Known: bootstrap, delta, bernstein, betting.",
    ),
    "unknown headline": (
        analysis('estimators = ["cis", "ncis"]\nheadline = "nciss"'),
        "headline = 'nciss' is not among the estimators that run. Did you mean 'ncis'? They are: cis, ncis.",
    ),
    "cap 0": (analysis("cap = 0"), "[analysis] cap = 0: expected a number above 0."),
    "cap negative": (analysis("cap = -1.5"), "[analysis] cap = -1.5: expected a number above 0."),
    "cap infinite": (analysis("cap = inf"), "[analysis] cap = inf: expected a finite number above 0."),
    "cap NaN": (analysis("cap = nan"), "[analysis] cap = nan: expected a finite number above 0."),
    "cap text": (analysis('cap = "100"'), "[analysis] cap = '100': expected a number above 0, or \"auto\"."),
    "cap bool": (analysis("cap = true"), "[analysis] cap = True: expected a number above 0."),
    "level 0": (
        analysis("confidence_level = 0"),
        "[analysis] confidence_level = 0: expected a number above 0 and below 1.",
    ),
    "level 1": (
        analysis("confidence_level = 1.0"),
        "[analysis] confidence_level = 1.0: expected a number above 0 and below 1.",
    ),
    "level in percent": (
        analysis("confidence_level = 90"),
        "[analysis] confidence_level = 90: expected a number above 0 and below 1. For 90 % write 0.9.",
    ),
    "no resamples": (
        SETTINGS.replace("n_resamples = 50", "n_resamples = 0"),
        "[analysis] n_resamples = 0: expected a whole number of at least 1.",
    ),
    "half a resample": (
        SETTINGS.replace("n_resamples = 50", "n_resamples = 0.5"),
        "[analysis] n_resamples = 0.5: expected a whole number of at least 1.",
    ),
    "weight bound": (
        analysis("weight_bound = 0.5"),
        "[analysis] weight_bound = 0.5: expected a number of at least 1.",
    ),
    "odd draws": (analysis("draws = 3"), "[analysis] draws = 3: expected an even number, half for each policy."),
    "adaptive cap with zero capping": (
        analysis('estimators = ["point-ncis-adaptive"]\ncapping = "zero"'),
        "point-ncis-adaptive cannot run: the adaptive cap needs max capping: no cap bounds its weights under zero"
        " capping. With these settings these can: is, nis, cis, ncis, point-ncis.",
    ),
    "pointwise with a logged treatment": (
        analysis('estimators = ["point-ncis"]', LOGGED_TREATMENT),
        "point-ncis cannot run: the treatment is a logged policy, and this estimator needs the probability of rankings"
        " that were not shown: log the treatment's scores (plackett-luce, thurstone, mallows, epsilon-greedy) or, of"
        " single actions, all probabilities. With these settings these can: is, nis, cis, ncis.",
    ),
    "pointwise with a logged control": (
        analysis('estimators = ["point-ncis-adaptive"]\nstrata = "country"', LOGGED),
        "point-ncis-adaptive cannot run: the control is a logged policy, and this estimator needs the probability of"
        " rankings that were not shown: log the control's scores (plackett-luce, thurstone, mallows, epsilon-greedy)"
        " or, of single actions, all probabilities. With these settings these can: is, nis, cis, ncis, piece-ncis.",
    ),
    "slots that are no table": (
        SETTINGS.replace("unit =", 'slot_rewards = "slots"\nunit ='),
        "[log] slot_rewards = 'slots': expected a list column for each metric, as in {click = \"slot_click\"}.",
    ),
    "slots of no reward": (
        SETTINGS.replace("unit =", 'slot_rewards = {clik = "slots"}\nunit ='),
        "[log] slot_rewards names 'clik', which is not among [log] rewards: click. One of the two is misspelt.",
    ),
    "a reward misspelt and its slots not": (
        SETTINGS.replace('"click"', '"clicks"').replace("unit =", 'slot_rewards = {click = "slots"}\nunit ='),
        "[log] slot_rewards names 'click', which is not among [log] rewards: clicks. One of the two is misspelt.",
    ),
    "slots of another reward": (
        SETTINGS.replace("unit =", 'slot_rewards = {gmv = "slots"}\nunit ='),
        "[log] slot_rewards names 'gmv', which is not among [log] rewards: click. Add it there, or take it out.",
    ),
    "by slot without slots": (
        analysis('estimators = ["cis", "slot-ncis-adaptive"]'),
        "slot-ncis-adaptive cannot run: it needs to know which slot earned the reward: name the list column that says"
        ' it, as in [log] slot_rewards = {click = "slot_click"}. With these settings these can: is, nis, cis, ncis,'
        " point-ncis, point-ncis-adaptive.",
    ),
    "by slot for a metric without slots": (
        analysis('estimators = ["iips", "rips"]', SLOTS.replace('["revenue"]', '["revenue", "click"]')),
        "iips, rips cannot run for click: the log does not say which slot earned it. Name its list column in [log]"
        " slot_rewards, or list another estimator.",
    ),
    "by slot with a logged control": (
        analysis('estimators = ["rips"]', LOGGED.replace("unit =", 'slot_rewards = {click = "slots"}\nunit =')),
        "rips cannot run: the control is a logged policy, and this estimator needs the probability of items that were"
        " not shown: log the control's scores (plackett-luce, thurstone, mallows, epsilon-greedy) or, of single"
        " actions, all probabilities. With these settings these can: is, nis, cis, ncis.",
    ),
    "r_max of no reward": (
        analysis("r_max = {clik = 1}"),
        "[analysis] r_max names 'clik', which is no reward. Did you mean 'click'? The rewards are: click.",
    ),
    "r_max 0": (analysis("r_max = {click = 0}"), "[analysis] r_max of 'click' = 0: expected a number above 0."),
    "rewards as text": (
        SETTINGS.replace('["click"]', '"click"'),
        "[log] rewards = 'click': expected a list of column names, as in [\"click\"].",
    ),
    "no treatment": (
        SETTINGS.split("[treatment]")[0],
        "the table [treatment] is missing: it describes the policy to try.",
    ),
    "no scores": (
        control('policy = "plackett-luce"'),
        '[control] policy = "plackett-luce" needs the key scores, as in scores = "column".',
    ),
    "a ranking is needed": (
        SETTINGS.replace('ranking = "ranking"\n', ""),
        "the control ranks items, so the log needs a ranking: name its column in [log] ranking.",
    ),
    "epsilon": (
        control('policy = "epsilon-greedy"\nscores = "control_scores"\nepsilon = 1.5'),
        "[control] epsilon = 1.5: expected a number between 0 and 1.",
    ),
    "a curve with 0": (
        analysis("examination = [1.0, 0.0]", SLOTS),
        f"[analysis] examination = [1.0, 0.0]: slot 2 has 0.0. {LOOKS}",
    ),
    "a negative curve": (
        analysis("examination = [1.0, -0.5]", SLOTS),
        f"[analysis] examination = [1.0, -0.5]: slot 2 has -0.5. {LOOKS}",
    ),
    "a negative curve of a metric": (
        analysis("examination = {revenue = [-1.0]}", SLOTS),
        f"[analysis] examination of 'revenue' = [-1.0]: slot 1 has -1.0. {LOOKS}",
    ),
    "a curve of 0 for a value": (
        analysis('examination = {column = "country", curves = {fr = [0]}}', SLOTS),
        f"[analysis] examination for 'fr' = [0]: slot 1 has 0. {LOOKS}",
    ),
    "an empty curve": (analysis("examination = []", SLOTS), f"[analysis] examination = []: {CURVES}"),
    "a curve for another metric": (
        analysis("examination = {revenu = [1.0]}", SLOTS),
        "[analysis] examination names 'revenu', which is no reward. Did you mean 'revenue'? The rewards are: revenue.",
    ),
    "a curve that is no file": (
        analysis('examination = "fitt"', SLOTS),
        f"[analysis] examination = \"fitt\": no such file. Did you mean 'fit'? E{CURVES[1:]}",
    ),
    "a curve without slot rewards": (
        analysis("examination = [1.0, 0.5]"),
        "[analysis] examination is given, and the log does not say which slot earned the reward: name the list column"
        ' that says it, as in [log] slot_rewards = {click = "slot_click"}, or take examination out.',
    ),
    "exposure without slot rewards": (
        analysis('estimators = ["exposure-ncis-adaptive"]'),
        "exposure-ncis-adaptive cannot run: it needs to know which slot earned the reward: name the list column that"
        ' says it, as in [log] slot_rewards = {click = "slot_click"}. With these settings these can: is, nis, cis,'
        " ncis, point-ncis, point-ncis-adaptive.",
    ),
    "not TOML": (
        SETTINGS.replace('unit = "user"', "unit = user"),
        "not valid TOML: Invalid value (at line 3, column 8).",
    ),
}


@pytest.mark.parametrize("kind", BAD_SETTINGS)
def test_bad_settings(kind: str, refuse: Refuse) -> None:
    settings, message = BAD_SETTINGS[kind]
    assert refuse(settings=settings) == f"test.toml: {message}"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--cap", "0"], "cap = 0.0: expected a number above 0."),
        (["--confidence-level", "2"], "confidence_level = 2.0: expected a number above 0 and below 1."),
        (["--estimators", "nciss"], f"unknown estimator 'nciss'. Did you mean 'ncis'? Known: {ESTIMATORS}."),
        (["--capping", "mx"], "unknown capping 'mx'. Did you mean 'max'? Known: max, zero."),
    ],
)
def test_bad_overrides(args: list[str], message: str, refuse: Refuse) -> None:
    said = refuse("run", str(HERE), "-c", "test.toml", "-o", "out", *args)
    assert said == f"on the command line: {message}"


def test_bound_without_r_max(refuse: Refuse) -> None:
    said = refuse(settings=analysis('interval = "bernstein"\nestimators = ["cis"]', REVENUE))
    assert 'interval = "bernstein" needs r_max' in said
    assert "'revenue'" in said


# -- files ------------------------------------------------------------------------------------------------------------


def test_missing_file(refuse: Refuse) -> None:
    said = refuse("run", "logs.parquet", "-c", "test.toml", "-o", "out")
    assert said == "logs.parquet: no such file or folder. Did you mean 'log.parquet'?"


def test_missing_folder(refuse: Refuse) -> None:
    said = refuse("run", "nowhere/at/all.parquet", "-c", "test.toml", "-o", "out")
    assert said == "nowhere/at/all.parquet: no such file or folder. There is no folder nowhere/at."


def test_missing_settings(refuse: Refuse) -> None:
    said = refuse("run", str(HERE), "-c", "tset.toml", "-o", "out")
    assert said == "tset.toml: no such settings file. Did you mean 'test.toml'?"


def test_no_match(refuse: Refuse) -> None:
    said = refuse("run", "day=*/*.parquet", "-c", "test.toml", "-o", "out")
    assert said == "day=*/*.parquet: no file matches this pattern."


def test_empty_folder(refuse: Refuse) -> None:
    Path("logs/day=1").mkdir(parents=True)
    Path("logs/day=1/_SUCCESS").touch()
    said = refuse("run", "logs", "-c", "test.toml", "-o", "out")
    assert said == (
        "logs: the folder holds no log, nor do its subfolders. Expected Parquet (.parquet), Arrow (.arrow, .feather),"
        " CSV (.csv) or JSON lines (.jsonl)."
    )


def test_not_a_log(refuse: Refuse) -> None:
    Path("log.parquet").write_text("click,user\n1,a\n", encoding="utf-8")
    said = refuse("run", "log.parquet", "-c", "test.toml", "-o", "out")
    assert said == "log.parquet: not a Parquet file. Convert it to Parquet, or leave it out."
    Path("log.txt").write_text("click,user\n1,a\n", encoding="utf-8")
    said = refuse("run", "log.txt", "-c", "test.toml", "-o", "out")
    assert said == (
        "log.txt: not a log. Expected Parquet (.parquet), Arrow (.arrow, .feather), CSV (.csv) or JSON lines (.jsonl)."
    )


def test_a_mixture_of_kinds(refuse: Refuse) -> None:
    Path("logs").mkdir()
    Path("logs/b.csv").write_text("click,user\n1,a\n", encoding="utf-8")
    write(Path("logs/a.parquet"), columns())
    said = refuse("run", "logs", "-c", "test.toml", "-o", "out")
    assert said == (
        "logs/a.parquet is Parquet and logs/b.csv is CSV: a log is of one kind. Leave one of them out, or"
        " name the files by a pattern such as '*.parquet'."
    )


def test_a_table_of_delta_lake(refuse: Refuse) -> None:
    """Its folder also has files whose rows were deleted or replaced."""
    Path("table/_delta_log").mkdir(parents=True)
    write(Path("table/part-0.parquet"), columns())
    remedies = {
        "local": "Give the folder of the table, table, as the only log.",
        "spark": "Read the table itself with Spark, and give the DataFrame from Python.",
    }
    for log in ("table/part-0.parquet", "table/*.parquet"):
        for engine, remedy in remedies.items():
            assert refuse("run", log, "-c", "test.toml", "-o", "out", "--engine", engine) == (
                "table: a table of Delta Lake, not a plain folder: some of its files may have rows that were deleted or"
                f" replaced, and read as plain Parquet these would count. {remedy}"
            )
    # without a commit in its log it is a table that nobody can read
    said = refuse("run", "table", "-c", "test.toml", "-o", "out")
    assert said.startswith("table: the Delta Lake table cannot be read (")
    assert said.endswith(
        "Write the version that you want as Parquet, with the tool that wrote the table, and give that."
    )


def test_lists_in_csv(refuse: Refuse) -> None:
    """The first value that is no list is named, and the others are counted."""
    rows = [f'1,u{i},"[0, 1]","[0.5, 1, 2]","[0.5, {i}, 2]"' for i in range(ROWS)]
    rows[31] = rows[40] = '1,u31,"[0, 1]","[0.5, 1, 2]","[0.5, 1, 2"'
    text = "\n".join(["click,user,ranking,control_scores,treatment_scores", *rows]) + "\n"
    Path("log.csv").write_text(text, encoding="utf-8")
    said = refuse("run", "log.csv", "-c", "test.toml", "-o", "out")
    assert said == (
        "log.csv: column 'treatment_scores', row 31 (the first row is 0): '[0.5, 1, 2' is not a list of numbers as"
        " JSON; 2 rows have this fault. Lists in CSV are JSON text, as in [1, 2, 3]: write them with json.dumps, or"
        " write Parquet."
    )


def test_a_word_among_the_numbers_of_a_csv(refuse: Refuse) -> None:
    rows = [f'{"yes" if i == 31 else 1},u{i},"[0, 1]","[0.5, 1]","[0.5, 2]"' for i in range(ROWS)]
    text = "\n".join(["click,user,ranking,control_scores,treatment_scores", *rows]) + "\n"
    Path("log.csv").write_text(text, encoding="utf-8")
    said = refuse("check", "log.csv", "-c", "test.toml")
    assert said == (
        "log.csv: column 'click' is string (most rows hold integers, but row 31 of log.csv, the first row being 0,"
        " holds 'yes'), expected a number or bool column (a reward). Convert it, or name another column."
    )


def test_sql_that_cannot_run(refuse: Refuse) -> None:
    said = refuse("run", "--sql", "SELECT clicks FROM 'log.parquet'", "-c", "test.toml", "-o", "out")
    assert said.startswith(
        'the SQL query: Binder Error: Referenced column "clicks" not found in FROM clause! Candidate'
    )
    said = refuse("run", "--sql", "COPY (SELECT 1) TO 'x.csv'", "-c", "test.toml", "-o", "out")
    assert said == "the SQL query: expected one SELECT, as in SELECT * FROM 'log.parquet'."
    said = refuse("check", "--sql", "SELECT 1 AS a FROM 'log.parquet'", "-c", "test.toml")
    assert said.startswith("the SQL query: no column 'click'. Expected a number or bool column (a reward); the log has")


def test_sql_files_that_cannot_be_read(refuse: Refuse) -> None:
    def of(sql: str) -> str:
        return refuse("run", "--sql", sql, "-c", "test.toml", "-o", "out")

    Path("query.sql").write_text("", encoding="utf-8")
    assert of("@querry.sql") == "querry.sql: no such SQL file. Did you mean 'query.sql'?"
    assert of("@query.sql") == "the SQL query: expected one SELECT, as in SELECT * FROM 'log.parquet'."
    assert of("@") == "--sql @: expected the name of a file after the @, as in --sql @query.sql."
    assert of("@.") == ".: cannot be read as a SQL file (Is a directory)."
    assert of("@log.parquet") == (
        "log.parquet: not a text file; expected a query in UTF-8, as in SELECT * FROM 'log.parquet'."
    )


def test_empty_file(refuse: Refuse) -> None:
    Path("zero.parquet").touch()
    said = refuse("run", "zero.parquet", "-c", "test.toml", "-o", "out")
    assert said == (
        "zero.parquet: the file is empty (0 bytes), not a Parquet file. Write it again, or leave it out."
    )  # fmt: skip


def test_truncated_parquet(refuse: Refuse) -> None:
    write(HERE, columns())
    Path("half.parquet").write_bytes(HERE.read_bytes()[:5000])
    said = refuse("run", "half.parquet", "-c", "test.toml", "-o", "out")
    assert said == (
        "half.parquet: a truncated Parquet file, whose end is missing after 5,000 bytes. Write it again, or leave it"
        " out."
    )


def test_damaged_parquet_in_the_second_of_two(refuse: Refuse) -> None:
    write(HERE, columns())
    bad = bytearray(HERE.read_bytes())
    bad[200:2000] = bytes(1800)
    Path("log-2.parquet").write_bytes(bad)
    said = refuse("run", "log.parquet", "log-2.parquet", "-c", "test.toml", "-o", "out")
    assert said.startswith("log-2.parquet: a damaged Parquet file (")
    assert said.endswith("). Write it again, or leave it out.")


def test_file_named_twice(refuse: Refuse) -> None:
    said = refuse("run", "log.parquet", "./log.parquet", "-c", "test.toml", "-o", "out")
    assert said == "log.parquet: this file is named twice, so its rows would count twice. Leave one out."


def test_log_and_settings_swapped(refuse: Refuse) -> None:
    said = refuse("run", "test.toml", "-c", "log.parquet", "-o", "out")
    assert said == "log.parquet: not a text file; expected a settings file (TOML), not the log."


# -- columns ----------------------------------------------------------------------------------------------------------

BAD_COLUMNS = {
    "missing reward": (
        SETTINGS.replace('"click"', '"clicks"'),
        "no column 'clicks'. Did you mean 'click'? Expected a number or bool column (a reward); the log has: " + NAMES,
    ),
    "missing scores": (
        SETTINGS.replace('"treatment_scores"', '"treatment_score"'),
        "no column 'treatment_score'. Did you mean 'treatment_scores'? Expected a list of numbers (scores); the log"
        " has: " + NAMES,
    ),
    "missing and nothing near": (
        SETTINGS.replace('"user"', '"visitor_hash"'),
        "no column 'visitor_hash'. Expected an integer or string column (the unit); the log has: " + NAMES,
    ),
    "missing feature": (
        SETTINGS.replace("unit =", 'features = ["COUNTRY"]\nunit ='),
        "no column 'COUNTRY'. Did you mean 'country'? Expected a number, bool, string or date column (a feature);"
        " the log has: " + NAMES,
    ),
    "missing date": (
        SETTINGS.replace("unit =", 'date = "contry"\nunit ='),
        "no column 'contry'. Did you mean 'country'? Expected a column; the log has: " + NAMES,
    ),
    "missing slots": (
        SLOTS.replace('"slots"', '"slot"'),
        "no column 'slot'. Did you mean 'slots'? Expected a list of numbers, or one number (what each slot earned);"
        " the log has: " + NAMES,
    ),
    "slots that are text": (
        SLOTS.replace('"slots"', '"country"'),
        "column 'country' is string, expected a list of numbers, or one number (what each slot earned). Convert it, or"
        " name another column",
    ),
    "text as reward": (
        SETTINGS.replace('"click"', '"user"'),
        "column 'user' is string, expected a number or bool column (a reward). Convert it, or name another column",
    ),
    "float as unit": (
        SETTINGS.replace('"user"', '"revenue"'),
        "column 'revenue' is double, expected an integer or string column (the unit). Convert it, or name another"
        " column",
    ),
    "number as scores": (
        SETTINGS.replace('"treatment_scores"', '"revenue"'),
        "column 'revenue' is double, expected a list of numbers (scores). Convert it, or name another column",
    ),
    "floats as ranking": (
        SETTINGS.replace('"ranking"', '"control_scores"'),
        "column 'control_scores' is list<element: double>, expected a list of integers, or one integer (the positions"
        " shown). Convert it, or name another column",
    ),
    "text as ranking": (
        SETTINGS.replace('"ranking"', '"country"'),
        "column 'country' is string, expected a list of integers, or one integer (the positions shown). If these are"
        " ids, name the column with the ids of all eligible items: [log] candidates. Else convert it, or name another"
        " column",
    ),
    "ids as ranking, without candidates": (
        SETTINGS.replace('"ranking"', '"names"'),
        "column 'names' is list<element: string>, expected a list of integers, or one integer (the positions shown). If"
        " these are ids, name the column with the ids of all eligible items: [log] candidates. Else convert it, or name"
        " another column",
    ),
    "a text id among integer candidates": (
        IDS.replace('"shown"', '"country"'),
        "column 'country' is string and column 'items' is list<element: int64>: the ids of shown items and of"
        " candidates must be of one type. Convert one of them",
    ),
    "list as probability": (
        control('policy = "logged"\nprob = "items"'),
        "column 'items' is list<element: int64>, expected a number column (a probability). Convert it, or name another"
        " column",
    ),
    "integer ids among text ids": (
        IDS.replace('"items"', '"names"'),
        "column 'shown' is list<element: int64> and column 'names' is list<element: string>: the ids of shown items"
        " and of candidates must be of one type. Convert one of them",
    ),
    "a list of the treatment's that holds text": (
        OWN.replace('"own"', '"names"'),
        "column 'names' is list<element: string> and column 'items' is list<element: int64>: the ids of candidates must"
        " be of one type. Convert one of them",
    ),
    "positions as a list of ids": (
        OWN.replace('"own"', '"country"'),
        "column 'country' is string, expected a list of integer or string ids (the items of the treatment). Convert it,"
        " or name another column",
    ),
    "missing slot rewards": (
        SLOTS.replace('"slots"', '"slot"'),
        "no column 'slot'. Did you mean 'slots'? Expected a list of numbers, or one number (what each slot earned); the"
        " log has: " + NAMES,
    ),
    "missing column of the curves": (
        BY_COUNTRY.replace('"country"', '"contry"'),
        "no column 'contry'. Did you mean 'country'? Expected an integer, string or bool column (its value chooses the"
        " examination curve); the log has: " + NAMES,
    ),
    "list as column of the curves": (
        BY_COUNTRY.replace('"country"', '"items"'),
        "column 'items' is list<element: int64>, expected an integer, string or bool column (its value chooses the"
        " examination curve). Convert it, or name another column",
    ),
    "list as strata": (
        analysis('estimators = ["piece-ncis"]\nstrata = "items"'),
        "column 'items' is list<element: int64>, expected an integer, string or bool column (strata). Convert it, or"
        " name another column",
    ),
}


@pytest.mark.parametrize("kind", BAD_COLUMNS)
def test_bad_columns(kind: str, refuse: Refuse) -> None:
    settings, message = BAD_COLUMNS[kind]
    assert refuse(settings=settings) == f"log.parquet: {message}."


def test_missing_column_of_the_second_file(refuse: Refuse) -> None:
    data = columns()
    del data["user"]
    write(Path("log-2.parquet"), data)
    said = refuse("run", "log.parquet", "log-2.parquet", "-c", "test.toml", "-o", "out")
    assert said.startswith("log-2.parquet: no column 'user'. Expected an integer or string column (the unit); ")


def test_column_twice(refuse: Refuse) -> None:
    table = pa.table(columns())
    table = table.rename_columns(["click" if name == "v" else name for name in table.column_names])
    pq.write_table(table, HERE)
    assert refuse() == "log.parquet: column 'click' is there 2 times. Rename all but one."


# -- rows -------------------------------------------------------------------------------------------------------------

# settings, what stands in the rows at fault, column of the fault, what is wrong, what to do
KEEP = SETTINGS.replace("unit =", 'keep = "v"\nunit =')
KEPT = "the probability with which the row was kept"
BAD_ROWS: dict[str, tuple[str, dict[str, Any], str, str, str]] = {
    "keep is null": (KEEP, {"v": None}, "v", "the value is null", FILL),
    "keep is NaN": (KEEP, {"v": NAN}, "v", f"{KEPT} is NaN", FILL),
    "keep is 0": (
        KEEP, {"v": 0.0}, "v", f"{KEPT} is 0, and that of a row in the log is above 0",
        "A row that was never thinned has 1: fix it, or leave the row out.",
    ),
    "keep is negative": (
        KEEP, {"v": -0.5}, "v", f"{KEPT} is -0.5, and that of a row in the log is above 0",
        "A row that was never thinned has 1: fix it, or leave the row out.",
    ),
    "keep is in per cent": (
        KEEP, {"v": 5.0}, "v", f"{KEPT} is 5, above 1",
        "It is a share: of 5 % write 0.05, and of a weight w write 1/w.",
    ),
    "keep is infinite": (
        KEEP, {"v": INF}, "v", f"{KEPT} is inf, above 1",
        "It is a share: of 5 % write 0.05, and of a weight w write 1/w.",
    ),
    "slots of another length": (
        SLOTS, {"slots": [1.0]}, "slots", "the list has length 1, but the row shows 2 items",
        "Give one number for each shown slot, in the ranking's order, 0 where it earned nothing.",
    ),
    "slots of another sum": (
        SLOTS, {"revenue": 3.0, "slots": [1.0, 0.5]}, "slots", "the slots sum to 1.5, but the reward 'revenue' is 3",
        "The slots must share out the row's whole reward: fix them, or take slot_rewards out of [log].",
    ),
    "slots of a row without reward": (
        SLOTS, {"revenue": 0.0, "slots": [0.0, 1e-9]}, "slots",
        "the slots sum to 1e-09, but the reward 'revenue' is 0",
        "The slots must share out the row's whole reward: fix them, or take slot_rewards out of [log].",
    ),
    "negative slots": (
        SLOTS, {"revenue": 1.0, "slots": [2.0, -1.0]}, "slots", "the reward of a slot is negative (-1)",
        "Rewards must be 0 or more. If it may have losses, write [metrics.revenue] signed = true.",
    ),
    "slots with NaN": (
        SLOTS, {"slots": [NAN, 1.0]}, "slots", "the reward of a slot is NaN or infinite",
        "Every slot needs a finite number, 0 where it earned nothing.",
    ),
    "slots with a null": (
        SLOTS, {"slots": [None, 1.0]}, "slots", "the list holds a null",
        "Every entry needs a value: fill it, or leave the row out.",
    ),
    "null slots": (SLOTS, {"slots": None}, "slots", "the value is null", FILL),
    "ranking longer than the curve": (
        analysis("examination = [1.0, 0.5]", SLOTS), LONG, "ranking",
        "the row shows 3 items, and the examination curve has 2 numbers",
        "Give [analysis] examination one number for each slot.",
    ),
    "ranking longer than the curve of its value": (
        BY_COUNTRY, LONG | {"country": "fr"}, "ranking",
        "the row shows 3 items, and the examination curve for 'fr' has 2 numbers",
        "Give [analysis] examination one number for each slot.",
    ),
    "ranking longer than the curve of a metric": (
        analysis("examination = {revenue = [1.0, 0.5]}", SLOTS), LONG, "ranking",
        "the row shows 3 items, and the examination curve has 2 numbers",
        "Give [analysis] examination one number for each slot.",
    ),
    "a value without a curve": (
        BY_COUNTRY, {"country": "it"}, "country",
        "the value 'it' has no examination curve (there are curves for fr, de)",
        "Add a curve for it to [analysis] examination, or leave its rows out.",
    ),
    "a null in the column of the curves": (BY_COUNTRY, {"country": None}, "country", "the value is null", FILL),
    "null reward": (SETTINGS, {"click": None}, "click", "the value is null", FILL),
    "NaN reward": (REVENUE, {"revenue": NAN}, "revenue", "the reward is NaN", FINITE),
    "infinite reward": (REVENUE, {"revenue": INF}, "revenue", "the reward is infinite", FINITE),
    "negative reward": (
        REVENUE, {"revenue": -0.5}, "revenue", "the reward is negative (-0.5)",
        "Rewards must be 0 or more. If it may have losses, write [metrics.revenue] signed = true.",
    ),
    "reward above r_max": (
        analysis("r_max = 2", REVENUE), {"revenue": 2.5}, "revenue", "the reward 2.5 is above r_max = 2",
        "Raise r_max, or fix the reward.",
    ),
    "reward above r_max of its metric": (
        analysis("r_max = {revenue = 2}", REVENUE), {"revenue": 2.5}, "revenue", "the reward 2.5 is above r_max = 2",
        "Raise r_max, or fix the reward.",
    ),
    "null unit": (SETTINGS, {"user": None}, "user", "the value is null", FILL),
    "NaN score": (SETTINGS, {"control_scores": [0.0, NAN, 0.0, 1.0]}, "control_scores", "a score is NaN", SCORES),
    "infinite score of an item not shown": (
        SETTINGS, {"treatment_scores": [0.0, 1.0, 2.0, -INF], "ranking": [0, 1]}, "treatment_scores",
        "a score is infinite", SCORES,
    ),
    "NaN score beside a logged probability": (
        SETTINGS.replace('"control_scores"', '"control_scores"\nprob = "prob"'),
        {"control_scores": [0.0, NAN, 0.0, 1.0]}, "control_scores", "a score is NaN", SCORES,
    ),
    "null scores": (SETTINGS, {"treatment_scores": None}, "treatment_scores", "the value is null", FILL),
    "null among the scores": (
        SETTINGS, {"treatment_scores": [0.0, None, 0.0, 1.0]}, "treatment_scores", "the list holds a null",
        "Every entry needs a value: fill it, or leave the row out.",
    ),
    "repeated item": (SETTINGS, {"ranking": [3, 3]}, "ranking", "the ranking shows the item 3 twice", POSITIONS),
    "repeated id": (IDS, {"shown": [12, 12]}, "shown", "the ranking shows the item 12 twice", ALL_IDS),
    "position out of range": (
        SETTINGS, {"ranking": [1, 4]}, "ranking",
        "the position 4 in the ranking is outside the row's lists of 4 eligible items", POSITIONS,
    ),
    "negative position": (
        SETTINGS, {"ranking": [1, -1]}, "ranking",
        "the position -1 in the ranking is outside the row's lists of 4 eligible items", POSITIONS,
    ),
    "position beyond 32 bits": (
        SETTINGS, {"ranking": [1, 2**32]}, "ranking",
        "the position 4294967296 in the ranking is outside the row's lists of 4 eligible items", POSITIONS,
    ),
    "item not among the candidates": (
        IDS, {"shown": [10, 99]}, "shown", "the shown item 99 is not among the row's candidates (column 'items')",
        "Add it to the candidates, or leave the row out.",
    ),
    "item not among the control's own": (
        OWN, {"shown": [10, 20]}, "shown", "the shown item 20 is not among the row's candidates (column 'items')",
        "Add it to the candidates, or leave the row out.",
    ),
    "fewer candidates of the control's than slots": (
        OWN, {"items": [10], "control_scores": [0.5]}, "shown",
        "the ranking shows 2 items, more than the row's 1 eligible item", ALL_IDS,
    ),
    "fewer candidates of the treatment's than slots": (
        OWN, {"own": [20], "treatment_scores": [0.5]}, "own", "the list has 1 candidate, but the row shows 2",
        "A policy needs an item for every slot: complete its candidates, or leave the row out.",
    ),
    "no candidates of the treatment's": (
        OWN, {"own": [], "treatment_scores": []}, "own", "the list of candidates is empty",
        "A display needs at least one eligible item.",
    ),
    "null candidates of the treatment's": (OWN, {"own": None}, "own", "the value is null", FILL),
    "a null among the treatment's candidates": (
        OWN, {"own": [12, None, 13, 21]}, "own", "the list holds a null",
        "Every entry needs a value: fill it, or leave the row out.",
    ),
    "repeated candidate of the treatment's": (
        OWN, {"own": [12, 20, 12, 21]}, "own", "a candidate is listed twice", "List each eligible item once.",
    ),
    "repeated candidate of the control's": (
        OWN, {"items": [10, 11, 12, 10]}, "items", "a candidate is listed twice", "List each eligible item once.",
    ),
    "scores for another list of the treatment's": (
        OWN, {"treatment_scores": [0.5] * 5}, "treatment_scores",
        "the list has length 5 where column 'own' has length 4",
        "All lists of a row have one entry for each eligible item.",
    ),
    "scores that are not finite in the treatment's list": (
        OWN, {"treatment_scores": [0.5, NAN, 0.5, 0.5]}, "treatment_scores", "a score is NaN", SCORES,
    ),
    "fixed item outside the treatment's list": (
        OWN_FIXED, {"own_fixed": [12, 10, 20]}, "own_fixed",
        "the item 10 is not among the row's candidates (column 'own')",
        "Add it to the candidates, or leave the row out.",
    ),
    "fixed ranking too short": (
        FIXED, {"fixed": [2]}, "fixed", "the fixed ranking has 1 item, but the row shows 2",
        "A fixed ranking holds an item for every slot that is shown, best slot first: give it in full, or leave the row"
        " out.",
    ),
    "empty fixed ranking": (
        FIXED_IDS, {"fixed_ids": []}, "fixed_ids", "the fixed ranking has 0 items, but the row shows 2",
        "A fixed ranking holds an item for every slot that is shown, best slot first: give it in full, or leave the row"
        " out.",
    ),
    "fixed ranking out of range": (
        FIXED, {"fixed": [2, 1, 4]}, "fixed",
        "the position 4 in the ranking is outside the row's lists of 4 eligible items", POSITIONS,
    ),
    "fixed ranking that repeats an item": (
        FIXED, {"fixed": [2, 1, 2]}, "fixed", "the ranking shows the item 2 twice", POSITIONS,
    ),
    "fixed item not among the candidates": (
        FIXED_IDS, {"fixed_ids": [10, 99]}, "fixed_ids", "the item 99 is not among the row's candidates (column"
        " 'items')", "Add it to the candidates, or leave the row out.",
    ),
    "null fixed ranking": (FIXED, {"fixed": None}, "fixed", "the value is null", FILL),
    "ranking longer than the list": (
        SETTINGS, {"ranking": [0, 1, 2, 3, 0]}, "ranking",
        "the ranking shows 5 items, more than the row's 4 eligible items", POSITIONS,
    ),
    "ids longer than the list": (
        IDS, {"shown": [10, 11, 12, 13, 14]}, "shown",
        "the ranking shows 5 items, more than the row's 4 eligible items", ALL_IDS,
    ),
    "empty ranking": (SETTINGS, {"ranking": []}, "ranking", "the ranking is empty", POSITIONS),
    "empty scores": (
        SETTINGS, {"control_scores": [], "treatment_scores": []}, "control_scores", "the list of candidates is empty",
        "A display needs at least one eligible item.",
    ),
    "empty candidates": (
        IDS, {"items": []}, "items", "the list of candidates is empty", "A display needs at least one eligible item.",
    ),
    "repeated candidate": (
        IDS, {"items": [10, 11, 12, 10]}, "items", "a candidate is listed twice", "List each eligible item once.",
    ),
    "score lists of different lengths": (
        SETTINGS, {"treatment_scores": [0.5, 0.5]}, "treatment_scores",
        "the list has length 2 where column 'control_scores' has length 4",
        "All lists of a row have one entry for each eligible item.",
    ),
    "candidates and scores of different lengths": (
        IDS, {"items": [10, 11, 12, 13, 14]}, "control_scores",
        "the list has length 4 where column 'items' has length 5",
        "All lists of a row have one entry for each eligible item.",
    ),
    "slot probabilities of another number": (
        LOGGED_SLOTS, {"slot_probs": [0.5]}, "slot_probs", "the list has length 1 where the row needs 2",
        "Give one number for each shown slot, in the ranking's order.",
    ),
    "slot probability 0": (
        LOGGED_SLOTS, {"slot_probs": [0.5, 0.0]}, "slot_probs",
        "the item shown in slot 2 has the logged probability 0 there",
        "The control must be the policy that produced the log: check the column.",
    ),
    "slot probability above 1": (
        LOGGED_SLOTS, {"slot_probs": [1.5, 0.5]}, "slot_probs", "a logged probability is 1.5",
        "Probabilities lie between 0 and 1.",
    ),
    "slot probability negative": (
        LOGGED_SLOTS, {"slot_probs": [0.5, -0.1]}, "slot_probs", "a logged probability is -0.1",
        "Probabilities lie between 0 and 1.",
    ),
    "slot probability NaN": (
        LOGGED_SLOTS, {"slot_probs": [NAN, 0.1]}, "slot_probs", "a logged probability is NaN",
        "Probabilities lie between 0 and 1.",
    ),
    "slot probability infinite": (
        MATRIX, {"matrix": [INF] + [0.0] * 7}, "matrix", "a logged probability is inf",
        "Probabilities lie between 0 and 1.",
    ),
    "slot probabilities with a null": (
        LOGGED_SLOTS, {"slot_probs": [None, 0.1]}, "slot_probs", "the list holds a null",
        "Every entry needs a value: fill it, or leave the row out.",
    ),
    "matrix of another number": (
        MATRIX, {"matrix": [0.25] * 4}, "matrix", "the list has length 4 where the row needs 8",
        "Give slot by slot a number for each eligible item.",
    ),
    "matrix whose slot does not sum to 1": (
        MATRIX, {"matrix": [0.25] * 4 + [0.25, 0.25, 0.25, 0.2]}, "matrix",
        "the probabilities of slot 2 sum to 0.95, not 1", MATRIX_REMEDY,
    ),
    "matrix with an item in two slots": (
        MATRIX, {"matrix": [0.7, 0.1, 0.1, 0.1] * 2}, "matrix",
        "the probabilities of one item sum to 1.4 over its slots, above 1", MATRIX_REMEDY,
    ),
    "matrix with probability 0 of a shown item": (
        MATRIX, {"matrix": [0.0, 0.5, 0.5, 0.0, 0.5, 0.5, 0.0, 0.0], "ranking": [0, 1]}, "matrix",
        "the item shown in slot 1 has the logged probability 0 there",
        "The control must be the policy that produced the log: check the column.",
    ),
    "probability 0": (
        LOGGED, {"prob": 0.0}, "prob", "the control gives probability 0 to the ranking that was shown",
        "The control must be the policy that produced the log: check its columns and parameters.",
    ),
    "probability negative": (
        LOGGED, {"prob": -0.5}, "prob", "the probability -0.5 is negative",
        'Probabilities lie between 0 and 1; for their logarithms write log_prob = "prob".',
    ),
    "probability over 1": (
        LOGGED, {"prob": 1.5}, "prob", "the probability 1.5 is above 1", "Probabilities lie between 0 and 1.",
    ),
    "probability NaN": (
        LOGGED, {"prob": NAN}, "prob", "the logged probability is NaN",
        "Every row needs a number: fix it, or leave the row out.",
    ),
    "probability null": (LOGGED, {"prob": None}, "prob", "the value is null", FILL),
    "probability of the treatment over 1": (
        LOGGED_TREATMENT, {"prob": 7.0}, "prob", "the probability 7 is above 1", "Probabilities lie between 0 and 1.",
    ),
    "log-probability above 0": (
        LOGGED_LOG, {"log_prob": 0.5}, "log_prob", "the log-probability 0.5 is above 0",
        'Logarithms of probabilities are at most 0; for probabilities write prob = "log_prob".',
    ),
    "log-probability of 0": (
        LOGGED_LOG, {"log_prob": -INF}, "log_prob", "the control gives probability 0 to the ranking that was shown",
        "The control must be the policy that produced the log: check its columns and parameters.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_bad_rows(kind: str, refuse: Refuse) -> None:
    settings, values, column, what, remedy = BAD_ROWS[kind]
    said = refuse(settings=settings, log=with_fault((31, 32, 55), **values))
    assert (
        said == f"log.parquet: column '{column}', row 31 (the first row is 0): {what}; 3 rows have this fault. {remedy}"
    )


def test_one_bad_row(refuse: Refuse) -> None:
    said = refuse(settings=REVENUE, log=with_fault((59,), revenue=-1.0))
    assert "row 59 (the first row is 0): the reward is negative (-1); no other row has this fault." in said


def test_rankings_that_the_control_cannot_produce(refuse: Refuse) -> None:
    """An epsilon-greedy control that never explores shows its own sort, and nothing else."""
    data = columns()
    best = [np.argsort(-np.array(scores), kind="stable")[:2].tolist() for scores in data["control_scores"]]
    data["ranking"] = best
    for row in (40, 58):
        data["ranking"][row] = best[row][::-1]
    assert refuse(settings=GREEDY, log=data) == (
        "log.parquet: column 'control_scores', row 40 (the first row is 0): the control gives probability 0 to the"
        " ranking that was shown; 2 rows have this fault. The control must be the policy that produced the log: check"
        " its columns and parameters."
    )


@pytest.mark.parametrize("threads", ["1", "4"])
def test_fault_in_the_second_file(threads: str, refuse: Refuse) -> None:
    """Rows are counted within their file, faults over the whole log."""
    write(Path("log-2.parquet"), with_fault((30, 52), revenue=-2.0))
    write(Path("log-3.parquet"), with_fault((0, 1, 2), revenue=-3.0))
    files = ("log.parquet", "log-2.parquet", "log-3.parquet")
    said = refuse("run", *files, "-c", "test.toml", "-o", "out", "--threads", threads, settings=REVENUE)
    assert said.startswith(
        "log-2.parquet: column 'revenue', row 30 (the first row is 0): the reward is negative (-2); 5 rows have this"
        " fault."
    )


def test_fault_in_a_folder(refuse: Refuse) -> None:
    Path("logs/day=1").mkdir(parents=True)
    Path("logs/day=2").mkdir()
    write(Path("logs/day=1/a.parquet"), columns())
    write(Path("logs/day=2/a.parquet"), with_fault((7,), ranking=[1, 1]))
    said = refuse("check", "logs", "-c", "test.toml")
    assert said.startswith("logs/day=2/a.parquet: column 'ranking', row 7 (the first row is 0): ")


def test_fault_in_the_log_of_a_value_model(refuse: Refuse) -> None:
    """A value model has a pass of its own: its faults are told as well."""
    settings = analysis(
        'estimators = ["piece-ncis"]\nvalue_log = "other.parquet"',
        REVENUE.replace("unit =", 'features = ["country"]\nunit ='),
    )
    write(Path("other.parquet"), with_fault((10, 20), revenue=NAN))
    said = refuse(settings=settings)
    assert said.startswith("other.parquet: column 'revenue', row 10 (the first row is 0): the reward is NaN; 2 rows ")


# -- a real process ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "log.parquet", with_fault((30,), revenue=-1.0))
    (tmp_path / "test.toml").write_text(REVENUE, encoding="utf-8")
    (tmp_path / "temporary").mkdir()
    before = everything(tmp_path)
    done = subprocess.run(
        [Path(sys.executable).with_name("foretest"), "run", "log.parquet", "-c", "test.toml", "-o", "out"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "foretest: log.parquet: column 'revenue', row 30 (the first row is 0): the reward is negative (-1); no other"
        " row has this fault. Rewards must be 0 or more. If it may have losses, write [metrics.revenue] signed ="
        " true.\n"
    )
    assert everything(tmp_path) == before


# -- logs that are good but say nothing -------------------------------------------------------------------------------


def refuse_constant(name: str) -> float:
    raise AssertionError(f"{name} in JSON")


VALUE_MODEL = SETTINGS.replace("unit =", 'features = ["country"]\nunit =')
STRATA = analysis('strata = "country"')
POOR_SETTINGS = {
    "plain": SETTINGS,
    "value model": VALUE_MODEL,
    "strata": STRATA,
    "delta": analysis('interval = "delta"'),
    "bernstein": analysis('interval = "bernstein"'),
    "logged": LOGGED.replace("[analysis]", "[analysis]\n") + 'estimators = ["is", "cis", "ncis"]\n',
}


def poor_log(kind: str) -> pa.Table:
    data = columns()
    if kind == "no reward":
        data["click"] = [False] * ROWS
    if kind == "one unit":
        data["user"] = ["u"] * ROWS
    table = pa.table(data)
    return table.slice(0, {"no rows": 0, "no row groups": 0, "one row": 1}.get(kind, ROWS))


POOR_LOGS = {
    "no rows": "the log is empty",
    "no row groups": "the log is empty",
    "no reward": "no row has a reward",
    "one unit": "only 1 unit: an interval needs at least 5",
    "one row": "only 1 unit: an interval needs at least 5",
}


@pytest.mark.parametrize("settings", POOR_SETTINGS)
@pytest.mark.parametrize("kind", POOR_LOGS)
def test_poor_logs_get_an_answer(
    kind: str, settings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table = poor_log(kind)
    with pq.ParquetWriter("log.parquet", table.schema) as writer:
        if kind != "no row groups":
            writer.write_table(table)
    assert pq.ParquetFile("log.parquet").metadata.num_row_groups == (0 if kind == "no row groups" else 1)
    Path("test.toml").write_text(POOR_SETTINGS[settings], encoding="utf-8")
    for name, *options in (["run", "--json", "-o", "out"], ["check", "--json"], ["run", "--estimators", "cis"]):
        monkeypatch.setattr(sys, "argv", ["foretest", name, "log.parquet", "-c", "test.toml", *options])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        said = capsys.readouterr()
        assert stop.value.code == 0
        assert said.err == ""
        assert "nan" not in said.out.lower().split()
        if "--json" in options:
            json.loads(said.out, parse_constant=refuse_constant)
    result = json.loads(Path("out/result.json").read_text(encoding="utf-8"), parse_constant=refuse_constant)
    assert result["log"]["rows"] == table.num_rows
    click = result["metrics"]["click"]
    assert click["verdict"] == "insufficient"
    for estimate in click["estimates"].values():
        assert estimate["verdict"] == "insufficient"
        assert estimate["reasons"][0] == POOR_LOGS[kind]
    if table.num_rows == 0:
        assert click["control"] == dict.fromkeys(("value", "std_error", "ci_lower", "ci_upper"))


# -- from Python ------------------------------------------------------------------------------------------------------

PL = ft.PlackettLuce(scores="control_scores")
ROLES = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking")


def offline(**changes: Any) -> ft.OfflineTest:
    return ft.OfflineTest(**{"log": ROLES, "control": PL, "treatment": PL, **changes})


BAD_PYTHON: dict[str, tuple[Callable[[], Any], str]] = {
    "cap of an estimator": (lambda: ft.CIS(cap=0), "cap = 0: expected a number above 0."),
    "cap of an estimator, infinite": (lambda: ft.NCIS(cap=math.inf), "cap = inf: expected a finite number above 0."),
    "cap of a pointwise estimator": (lambda: ft.PointNCIS(cap=-1.0), "cap = -1.0: expected a number above 0."),
    "capping of an estimator": (
        lambda: ft.PieceNCIS(capping="non"), "unknown capping 'non'. Known: max, zero.",
    ),
    "weight bound": (
        lambda: ft.AdaptivePointNCIS(weight_bound=0.5), "weight_bound = 0.5: expected a number of at least 1.",
    ),
    "estimators as text": (
        lambda: offline(estimators="ncis"), "estimators = 'ncis': expected a list, as in [\"ncis\", \"point-ncis\"].",
    ),
    "no estimators": (
        lambda: offline(estimators=[]), "estimators is empty: leave the key out to run all that are possible.",
    ),
    "a class as estimator": (
        lambda: offline(estimators=[ft.NCIS]), "estimators holds the class NCIS: write NCIS().",
    ),
    "unknown estimator": (
        lambda: offline(estimators=["poin-ncis"]),
        f"unknown estimator 'poin-ncis'. Did you mean 'point-ncis'? Known: {ESTIMATORS}.",
    ),
    "unknown argument": (
        lambda: offline(confidence=0.9),
        "[analysis] has an unknown key 'confidence'. Did you mean 'confidence_level'? Known: " + ANALYSIS_KEYS + ".",
    ),
    "argument of another object": (
        lambda: offline(unit="user"),
        "[analysis] has an unknown key 'unit'. It belongs in [log]. Known: " + ANALYSIS_KEYS + ".",
    ),
    "a path as roles": (
        lambda: offline(log="log.parquet"),
        "log is of type str: expected LogColumns, the names of the log's columns; the log itself is given to run().",
    ),
    "a class as policy": (
        lambda: offline(control=ft.PlackettLuce),
        "control is the class PlackettLuce: expected a policy, as in PlackettLuce(…).",
    ),
    "text as policy": (
        lambda: offline(treatment="mallows"),
        "treatment = 'mallows' has no log_prob: expected a policy, as in PlackettLuce(scores=\"column\"), or an object"
        " with log_prob(displays, rankings) and sample(displays, uniforms).",
    ),
    "r_max without a number": (
        lambda: offline(r_max={"click": None}), "r_max of 'click' = None: expected a number above 0.",
    ),
    "r_max of no reward": (
        lambda: offline(r_max={"clicks": 1}),
        "[analysis] r_max names 'clicks', which is no reward. Did you mean 'click'? The rewards are: click.",
    ),
    "candidates without ranking": (
        lambda: ft.LogColumns(rewards=["click"], candidates="items"),
        "[log] candidates is given without ranking: name the column of the shown items too.",
    ),
    "reward twice": (
        lambda: ft.LogColumns(rewards=["click", "click"]), "[log] rewards names a column twice: click, click.",
    ),
    "temperature": (
        lambda: ft.PlackettLuce(scores="s", temperature=0.0), "temperature = 0.0: expected a number above 0.",
    ),
    "dispersion": (
        lambda: ft.Mallows(scores="s", dispersion=1.0), "dispersion = 1.0: expected a number between 0 and 1.",
    ),
    "a logged policy without column": (
        lambda: ft.Logged(), 'the policy "logged" needs log_prob = "column" or prob = "column".',
    ),
    "a dict as log": (
        lambda: offline().run({"click": [1]}),
        "a log of type dict cannot be read: expected a path, a list of paths, SQL (foretest.Sql), a DuckDB relation, or"
        " an Arrow, pandas, Polars or Spark table.",
    ),
    "no logs": (lambda: offline().run([]), "the list of logs is empty: expected at least one path."),
    "a log of an unknown kind of store": (
        lambda: offline().run("hdfs://cluster/log.parquet"),
        "hdfs://cluster/log.parquet: hdfs:// is not read. Known: s3://, gs://, abfss://, and local paths.",
    ),
    "a table without the column": (
        lambda: offline().run(pa.table({"clik": [1]})),
        "the table: no column 'click'. Did you mean 'clik'? Expected a number or bool column (a reward); the log has:"
        " clik.",
    ),
    "a bad row of a table": (
        lambda: offline().run(pa.table(with_fault((30, 31), click=None))),
        "the table: column 'click', row 30 (the first row is 0): the value is null; 2 rows have this fault. " + FILL,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_PYTHON)
def test_bad_input_from_python(kind: str) -> None:
    act, message = BAD_PYTHON[kind]
    with pytest.raises(ft.BadInput) as error:
        act()
    assert str(error.value) == message


def test_pandas_column_of_mixed_types() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**columns(), "user": ["a", 1] * (ROWS // 2)})
    with pytest.raises(ft.BadInput, match=r"^the table: column 'user' cannot be read \(.*\)\.$"):
        offline().run(frame)


def test_bad_input_is_a_value_error() -> None:
    assert issubclass(ft.BadInput, ValueError)


def test_another_policy_is_another_test() -> None:
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=("click",), ranking="ranking"), control=ft.PlackettLuce("p"),
        treatment=ft.PlackettLuce("t"),
    )  # fmt: skip
    with pytest.raises(ft.BadInput, match=r"replace\(treatment=…\): it changes settings of the analysis alone"):
        test.replace(treatment=ft.PlackettLuce("p"))
