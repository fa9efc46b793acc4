"""The settings file: all it may say, and a user's own policy beside it."""

from __future__ import annotations

import dataclasses
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

import foretest as ft
from foretest.policies.adapter import AdaptedPolicy
from foretest.settings.analysis import Analysis
from foretest.settings.file import read_settings, settings_from_tables
from foretest.settings.log_columns import LogColumns
from foretest.settings.online import Online
from tests.support import SmallLog

WHOLE = """\
[log]
rewards    = ["click"]
unit       = "user"            # optional, as are the rest
ranking    = "ranking"
candidates = "items"           # ids, when ranking holds ids and not positions
id         = "display_id"
date       = "day"
features   = ["country", "recency"]

[control]                      # the policy that produced the log
policy = "plackett-luce"
scores = "control_scores"      # list<float>, one a candidate
temperature = 1.0

[treatment]
policy = "plackett-luce"
scores = "treatment_scores"

[analysis]
estimators = ["cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive"]   # also is, nis, dr
cap = 100.0
capping = "max"                # max | zero
weight_bound = "auto"
headline = "point-ncis-adaptive"
normaliser = "auto"            # auto | exact | midzuno-sen | lahiri | two-sided
draws = 256                    # two-sided: half from each policy
confidence_level = 0.90
interval = "bootstrap"         # bootstrap | delta | bernstein
n_resamples = 1000
buckets = 1024
strata = "value-model"         # or the name of a column
strata_base = 2.0              # b of the bins [b^k, b^(k+1))
value = "v_column"
folds = 2
seed = 0
[online]
split = [0.5, 0.5]
"""

SHORT = """\
[log]
rewards = ["click"]
ranking = "ranking"
[control]
policy = "plackett-luce"
scores = "control_scores"
[treatment]
"""


def read(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "test.toml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return read_settings(path)


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(ft.BadInput) as error:
        read(tmp_path, text)
    begin = f"{tmp_path / 'test.toml'}: "
    assert str(error.value).startswith(begin)
    assert "\n" not in str(error.value)
    return str(error.value)[len(begin) :]


def test_whole_file(tmp_path: Path) -> None:
    settings = read(tmp_path, WHOLE)
    assert settings.log == LogColumns(
        rewards=("click",), unit="user", ranking="ranking", candidates="items", id="display_id", date="day",
        features=("country", "recency"),
    )  # fmt: skip
    assert settings.control.settings() == {"policy": "plackett-luce", "scores": "control_scores", "temperature": 1.0}
    assert settings.treatment.scores == "treatment_scores"
    estimators = ("cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive")
    # the numbers it shows are the defaults
    assert settings.analysis == Analysis(estimators=estimators, headline="point-ncis-adaptive", value="v_column")
    assert settings.online == Online()


def test_short_file_has_the_defaults(tmp_path: Path) -> None:
    settings = read(tmp_path, SHORT + 'policy = "logged"\nlog_prob = "t"\n')
    assert settings.analysis == Analysis()
    assert settings.online == Online()
    assert settings.log == LogColumns(rewards=("click",), ranking="ranking")


POLICIES: dict[str, Any] = {
    'policy = "plackett-luce"\nscores = "s"\ntemperature = 0.5': ft.PlackettLuce(scores="s", temperature=0.5),
    'policy = "bradley-terry-luce"\nscores = "s"': ft.PlackettLuce(scores="s"),
    'policy = "thurstone"\nscores = "s"\nsigma = 2': ft.Thurstone(scores="s", sigma=2.0),
    'policy = "mallows"\nscores = "s"\ndispersion = 0.3': ft.Mallows(scores="s", dispersion=0.3),
    'policy = "epsilon-greedy"\nscores = "s"\nepsilon = 0.1': ft.EpsilonGreedy(scores="s", epsilon=0.1),
    'policy = "top-k"\nscores = "s"': ft.TopK(scores="s"),
    'policy = "fixed"\nranking = "r"': ft.Fixed(ranking="r"),
    'policy = "probabilities"\nprobs = "p"': ft.Probabilities(probs="p"),
    'policy = "swap-neighbours"\nscores = "s"\nswap = 0.1': ft.SwapNeighbours(scores="s", swap=0.1),
    'policy = "logged"\nprob = "p"': ft.Logged(prob="p"),
    'policy = "logged"\nlog_prob = "p"': ft.Logged(log_prob="p"),
    'policy = "plackett-luce"\nscores = "s"\nlog_prob = "p"': ft.PlackettLuce(scores="s", log_prob="p"),
}


@pytest.mark.parametrize("table", POLICIES)
def test_policies(table: str, tmp_path: Path) -> None:
    policy = read(tmp_path, SHORT + table).treatment
    assert type(policy) is type(POLICIES[table])
    assert policy.settings() == POLICIES[table].settings()
    assert policy.columns == POLICIES[table].columns


def test_mixture(tmp_path: Path) -> None:
    policy = read(
        tmp_path,
        SHORT
        + """\
policy = "mixture"
[[treatment.components]]
share = 3
policy = "plackett-luce"
scores = "a"
[[treatment.components]]
share = 1
policy = "epsilon-greedy"
scores = "b"
epsilon = 0.2
""",
    ).treatment
    assert isinstance(policy, ft.Mixture)
    assert [share for share, _ in policy.components] == [0.75, 0.25]
    assert [type(part) for _, part in policy.components] == [ft.PlackettLuce, ft.EpsilonGreedy]
    assert policy.columns == ("a", "b")
    # and back: what result.json says can be read again
    again = settings_from_tables(
        {"log": {"rewards": ["click"]}, "control": policy.settings(), "treatment": policy.settings()}
    )
    assert again.control.settings() == policy.settings()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('policy = "mixture"', "a mixture needs [[treatment.components]] tables, each a policy with its share."),
        (
            'policy = "mixture"\ncomponents = ["plackett-luce"]',
            "a mixture needs [[treatment.components]] tables, each a policy with its share.",
        ),
        (
            'policy = "mixture"\n[[treatment.components]]\nshare = 1\npolicy = "plackett-luce"\nscores = "s"\n'
            '[[treatment.components]]\npolicy = "plackett-luce"\nscores = "s"',
            "component 2 of the mixture has no share: add share = 0.5, or another number.",
        ),
        (
            'policy = "mixture"\n[[treatment.components]]\nshare = 1\npolicy = "plackett-luce"\nscore = "s"',
            "component 1: policy = \"plackett-luce\" has an unknown key 'score'. Did you mean 'scores'? Known: scores,"
            " temperature, log_prob, prob, replay_seed, trained_until, candidates.",
        ),
        (
            'policy = "mixture"\n[[treatment.components]]\nshare = -1\npolicy = "plackett-luce"\nscores = "s"',
            "share = -1: expected a number above 0.",
        ),
        ('policy = "thurstone"\nscores = "s"\nsigma = -1', "sigma = -1: expected a number above 0."),
        ('policy = "epsilon-greedy"\nscores = "s"', 'policy = "epsilon-greedy" needs the key epsilon.'),
        ('policy = "mallows"', 'policy = "mallows" needs the keys scores and dispersion, as in scores = "column".'),
        ('policy = "swap-neighbours"\nscores = "s"', 'policy = "swap-neighbours" needs the key swap.'),
        (
            'policy = "swap-neighbours"\nscores = "s"\nswap = 0.6',
            "swap = 0.6: expected a number from 0 to 0.5, the probability that a pair is swapped.",
        ),
        (
            'policy = "logged-slots"\nprobs = "p"\nmatrix = "m"',
            'the policy "logged-slots" needs probs = "column" or matrix = "column", one of them.',
        ),
        ('policy = "logged-slots"\nprobs = 3', "probs = 3: expected the name of a column."),
        ('policy = "fixed"', 'policy = "fixed" needs the key ranking, as in ranking = "column".'),
        ('policy = "fixed"\nranking = ["a"]', "ranking = ['a']: expected the name of a column."),
        ('policy = "plackett-luce"\nscores = 3', "scores = 3: expected the name of a column."),
        (
            'policy = "plackett-luce"\nscores = "s"\nlog_prob = "a"\nprob = "b"',
            "a policy takes log_prob or prob, not both.",
        ),
        (
            'policy = "logged"\nprob = "p"\nscores = "s"',
            "policy = \"logged\" has an unknown key 'scores'. Known: log_prob, prob, trained_until.",
        ),
        (
            'scores = "s"',
            "policy is missing. Known: plackett-luce, bradley-terry-luce, thurstone, mallows, epsilon-greedy, top-k,"
            ' fixed, swap-neighbours, probabilities, logged, logged-slots, mixture, or "module:Class".',
        ),
    ],
)
def test_bad_policies(table: str, message: str, tmp_path: Path) -> None:
    assert refused(tmp_path, SHORT + table) == f"[treatment] {message}"


GOOD = SHORT + 'policy = "logged"\nprob = "p"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the table [log] is missing: it names the columns of the log, as in rewards = [\"click\"]."),
        ("[log]\nrewards = ['a']", "the table [control] is missing: it describes the policy that produced the log."),
        ("log = 3\ncontrol = 3\ntreatment = 3", "log = 3: expected a table, [log]."),
        (
            GOOD.replace('rewards = ["click"]\n', ""),
            '[log] rewards is missing: name the reward columns, as in rewards = ["click"].',
        ),
        (
            'rewards = ["click"]\n' + GOOD,
            "the settings file has an unknown key 'rewards'. It belongs in [log]. Known: log, control, treatment,"
            " metrics, analysis, online.",
        ),
        (GOOD + "[online]\nsplit = [0.5, 0.6]", "[online] split = [0.5, 0.6]: expected two shares that sum to 1, as"
         " in [0.5, 0.5]."),
        (GOOD + "[online]\nsplits = [0.5, 0.5]", "[online] has an unknown key 'splits'. Did you mean 'split'? Known:"
         " split, covariate, sequential, sequential_units."),
        (GOOD + "[analysis]\ncap = '1'", "[analysis] cap = '1': expected a number above 0, or \"auto\"."),
    ],
)  # fmt: skip
def test_bad_files(text: str, message: str, tmp_path: Path) -> None:
    assert refused(tmp_path, text) == message


@pytest.mark.parametrize("line", ["x = ", "prob = 'q'", "[log]", "x = Plackett", 'y = "no end', "z: 3"])
def test_not_toml(line: str, tmp_path: Path) -> None:
    assert re.fullmatch(r"not valid TOML: .* \(at line 10, column \d+\)\.", refused(tmp_path, f"{GOOD}{line}\n\n"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ft.BadInput, match=r"nowhere/test.toml: no such settings file. There is no folder .*nowhere\.$"):
        read_settings(tmp_path / "nowhere" / "test.toml")
    with pytest.raises(ft.BadInput, match=r"cannot be read as a settings file \(Is a directory\)\.$"):
        read_settings(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ft.BadInput, match=r"binary.toml: not a text file; expected a settings file \(TOML\)"):
        read_settings(tmp_path / "binary.toml")


def test_r_max(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD + "[analysis]\nr_max = 5").analysis.r_max == 5
    assert read(tmp_path, GOOD + "[analysis]\nr_max = {click = 2.5}").analysis.r_max == {"click": 2.5}
    assert read(tmp_path, GOOD + "[analysis.r_max]\nclick = 2.5").analysis.r_max == {"click": 2.5}
    assert refused(tmp_path, GOOD + "[analysis.r_max]\nrevenue = 2.5") == (
        "[analysis] r_max names 'revenue', which is no reward. The rewards are: click."
    )


def test_online(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD + "[online]\nsplit = [0.9, 0.1]").online == Online(split=(0.9, 0.1))


def test_value_log_is_relative_to_the_file(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD + '[analysis]\nvalue_log = "old.parquet"').analysis.value_log == str(
        tmp_path / "old.parquet"
    )


def test_settings_of_a_result_are_a_settings_file(tmp_path: Path) -> None:
    """What result.json says about settings, read as tables, is the same test."""
    settings = read(tmp_path, WHOLE.replace('candidates = "items"', "").replace('id         = "display_id"', ""))
    test = ft.OfflineTest.from_settings(dataclasses.replace(settings, analysis=Analysis(estimators=["cis"])))
    empty = SmallLog(rows=40).table(
        day=["2018-02-05"] * 40, country=["fr"] * 40, recency=[1.0] * 40
    )  # fmt: skip
    said = json.loads(test.run(empty).to_json())["settings"]
    again = settings_from_tables(said)
    assert again.log == test.settings.log
    assert again.analysis == test.settings.analysis
    assert again.control.settings() == test.settings.control.settings()


# -- a user's own policy ----------------------------------------------------------------------------------------------

OWN = """\
import numpy as np
from foretest import Ragged


class Softmax:
    def __init__(self, column, temperature=1.0):
        self.column = column
        self.temperature = temperature

    def _urn(self, displays):
        scores = displays[self.column].padded(-np.inf) / self.temperature
        return np.exp(scores - scores.max(axis=1, keepdims=True))

    def log_prob(self, displays, rankings):
        urn, rows = self._urn(displays), np.arange(len(displays))
        total = np.zeros(len(displays))
        for slot in range(int(rankings.lengths.max(initial=0))):
            there = np.flatnonzero(slot < rankings.lengths)
            item = rankings.values[rankings.starts[there] + slot]
            total[there] += np.log(urn[there, item] / urn[there].sum(axis=1))
            urn[there, item] = 0.0
        return total

    def sample(self, displays, uniforms):
        urn, rows = self._urn(displays), np.arange(len(displays))
        shown = []
        for slot in range(int(displays.slots.max(initial=0))):
            edges = np.cumsum(urn, axis=1)
            item = (edges <= uniforms[:, slot, None] * edges[:, -1:]).sum(axis=1)
            item = np.minimum(item, urn.shape[1] - 1)
            shown.append(item)
            urn[rows, item] = 0.0
        table = np.stack(shown, axis=1)
        return Ragged.of([row[:k] for row, k in zip(table, displays.slots)])


class NoSample:
    def log_prob(self, displays, rankings): ...


class Choosy:
    def __init__(self, column):
        if not column.startswith("s"):
            raise ValueError("column must begin with s")

    def log_prob(self, displays, rankings): ...
    def sample(self, displays, uniforms): ...


softmax = Softmax("x")
"""

ALL = ["is", "nis", "dr", "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive"]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "my_policies.py").write_text(OWN, encoding="utf-8")
    return tmp_path


def test_own_policy_gives_the_digits_of_the_one_it_imitates(own: Path) -> None:
    """M=5, K=2: everything is enumerated, so that draws do not matter. Every estimator, from TOML and from Python."""
    table = SmallLog(rows=300).table()
    text = """
        [log]
        rewards = ["click", "revenue"]
        unit = "user"
        ranking = "ranking"
        [control]
        policy = {control}
        [treatment]
        policy = {treatment}
        [analysis]
        estimators = {estimators}
        cap = 2.0
        weight_bound = 3.0
        strata = "stratum"
        value = "v"
        n_resamples = 50
        """
    built_in = ('"plackett-luce"\nscores = "control_scores"', '"plackett-luce"\nscores = "treatment_scores"')
    mine = (
        '"my_policies:Softmax"\ncolumn = "control_scores"\ntemperature = 1.0',
        '"my_policies:Softmax"\ncolumn = "treatment_scores"',
    )

    def run(control: str, treatment: str) -> Any:
        path = own / "test.toml"
        lines = textwrap.dedent(text).format(control=control, treatment=treatment, estimators=json.dumps(ALL))
        path.write_text(lines, encoding="utf-8")
        return ft.OfflineTest.from_toml(path)

    expected = run(*built_in).run(table)
    test = run(*mine)
    assert test.settings.control.column == "control_scores"
    from_python = ft.OfflineTest.from_settings(test.settings)
    for result in (test.run(table), from_python.run(table), run(mine[0], built_in[1]).run(table)):
        for name, metric in expected.metrics.items():
            for key in ALL:
                want, got = metric.estimates[key], result.metrics[name].estimates[key]
                assert got.treatment == pytest.approx(want.treatment, rel=1e-12)
                assert got.effect_size_ci_lower == pytest.approx(want.effect_size_ci_lower, rel=1e-9)
                assert got.std_error == pytest.approx(want.std_error, rel=1e-9)
                assert got.verdict == want.verdict
        assert result.health["max_weight"] == pytest.approx(expected.health["max_weight"], rel=1e-12)
        assert result.health["support"]["mean_q"] == pytest.approx(expected.health["support"]["mean_q"], rel=1e-9)
    said = json.loads(test.run(table).to_json())["settings"]["control"]
    assert said == {"policy": "my_policies:Softmax", "column": "control_scores", "temperature": 1.0}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            'policy = "no_such_module:Softmax"',
            'policy = "no_such_module:Softmax": there is no module no_such_module, neither beside the settings file'
            " nor on Python's path.",
        ),
        (
            'policy = "my_policies:Sofmax"\ncolumn = "x"',
            "policy = \"my_policies:Sofmax\": my_policies has no Sofmax. Did you mean 'Softmax'?",
        ),
        (
            'policy = "my_policies:NoSample"',
            'policy = "my_policies:NoSample": it has no sample; a policy is a class with log_prob(displays, rankings)'
            " and sample(displays, uniforms).",
        ),
        (
            'policy = "my_policies:softmax"',
            'policy = "my_policies:softmax": it has no log_prob; a policy is a class with log_prob(displays, rankings)'
            " and sample(displays, uniforms).",
        ),
        (
            'policy = "my_policies:Softmax"\ncolum = "x"',
            "policy = \"my_policies:Softmax\" has an unknown key 'colum'. Did you mean 'column'? Known: column,"
            " temperature.",
        ),
        ('policy = "my_policies:Softmax"', 'policy = "my_policies:Softmax" needs the key column.'),
        (
            'policy = "my_policies:Choosy"\ncolumn = "x"',
            'policy = "my_policies:Choosy" refuses its keys (column must begin with s).',
        ),
        ('policy = "my_policies:"', 'policy = "my_policies:": expected "module:Class".'),
        (
            'policy = "broken:Softmax"',
            "policy = \"broken:Softmax\": broken cannot be imported (NameError: name 'undefined' is not defined).",
        ),
        (
            'policy = "needy:Softmax"',
            "policy = \"needy:Softmax\": needy cannot be imported (No module named 'a_module_nobody_has').",
        ),
        ('policy = "leaving:Softmax"', 'policy = "leaving:Softmax": leaving cannot be imported (SystemExit: 3).'),
        (
            'policy = "fragile:Fragile"',
            "policy = \"fragile:Fragile\" cannot be made (KeyError: 'model').",
        ),
    ],
)
def test_bad_own_policies(table: str, message: str, own: Path) -> None:
    (own / "broken.py").write_text("undefined\n", encoding="utf-8")
    (own / "needy.py").write_text("import a_module_nobody_has\n", encoding="utf-8")
    (own / "leaving.py").write_text("import sys\nsys.exit(3)\n", encoding="utf-8")
    (own / "fragile.py").write_text(
        "class Fragile:\n    def __init__(self):\n        {}['model']\n"
        "    def log_prob(self, displays, rankings): ...\n    def sample(self, displays, uniforms): ...\n",
        encoding="utf-8",
    )
    assert refused(own, SHORT + table) == f"[treatment] {message}"


def test_own_policies_of_one_name_in_two_folders(tmp_path: Path) -> None:
    """Each settings file finds the module beside it."""
    kinds = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "same_name.py").write_text(OWN + f"\nFOLDER = {name!r}\n", encoding="utf-8")
        policy = read(folder, SHORT + 'policy = "same_name:Softmax"\ncolumn = "x"').treatment
        assert isinstance(policy, AdaptedPolicy)
        kinds.append(policy.own_class)
    assert [kind.log_prob.__globals__["FOLDER"] for kind in kinds] == ["one", "two"]


def test_own_policy_in_a_mixture(own: Path) -> None:
    policy = read(
        own,
        SHORT
        + 'policy = "mixture"\n'
        + '[[treatment.components]]\nshare = 1\npolicy = "my_policies:Softmax"\ncolumn = "treatment_scores"\n'
        + '[[treatment.components]]\nshare = 1\npolicy = "plackett-luce"\nscores = "treatment_scores"\n',
    ).treatment
    assert policy.columns == ("treatment_scores",)
    log = SmallLog(rows=100)
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking"),
        control=ft.PlackettLuce(scores="control_scores"),
        treatment=policy,
        estimators=["is", "point-ncis"],
        cap=2.0,
    )
    result = test.run(log.table()).metrics["click"].estimates
    assert result["is"].treatment == pytest.approx((log.weights("is", 2, 3) * log.click).mean(), rel=1e-12)
    assert result["point-ncis"].treatment == pytest.approx(
        (log.weights("point-ncis", 2, 3) * log.click).mean(), rel=1e-9
    )
