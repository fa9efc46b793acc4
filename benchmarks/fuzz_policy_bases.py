"""Settings of policies that draw in other ways, of estimators by exposure and by prefix, and a log that fits them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from fuzz_damage import KEYS, TABLES, VALUES, Words

ROWS = 90
_ANALYSIS = "[analysis]\nn_resamples = 20\nbuckets = 16\ndraws = 16\n"
_LOG = '[log]\nrewards = ["clicks"]\nunit = "user"\nslot_rewards = {clicks = "by_slot"}\n'
_SOFT = '[control]\npolicy = "plackett-luce"\nscores = "old"\n[treatment]\npolicy = "plackett-luce"\nscores = "new"\n'
_EXPOSURE = 'estimators = ["pbm", "exposure-ncis-adaptive", "slot-ncis-adaptive", "cascade-ncis-adaptive"]\n'
_OWN = """\
[control]
policy = "plackett-luce"
scores = "old"
candidates = "old_items"
[treatment]
policy = "{}"
{} = "{}"
candidates = "new_items"
"""
SETTINGS = {
    "probabilities": f"""\
[log]
rewards = ["click"]
ranking = "action"
[control]
policy = "probabilities"
probs = "old_probs"
[treatment]
policy = "probabilities"
probs = "new_probs"
{_ANALYSIS}""",
    "fixed": f"""\
{_LOG}ranking = "shown"
[control]
policy = "plackett-luce"
scores = "old"
[treatment]
policy = "fixed"
ranking = "rerank"
{_ANALYSIS}""",
    "top-k": f"""\
{_LOG}ranking = "shown"
[control]
policy = "top-k"
scores = "old"
[treatment]
policy = "top-k"
scores = "new"
{_ANALYSIS}examination = [1.0, 0.6]
""",
    "logged slots": f"""\
{_LOG}ranking = "shown"
[control]
policy = "logged-slots"
probs = "slot_probs"
[treatment]
policy = "top-k"
scores = "new"
{_ANALYSIS}""",
    "logged matrix": f"""\
{_LOG}ranking = "shown"
[control]
policy = "logged-slots"
matrix = "matrix"
[treatment]
policy = "plackett-luce"
scores = "new"
{_ANALYSIS}examination = [1.0, 0.6]
weight_bound = 20
""",
    "swapped": f"""\
{_LOG}ranking = "swapped"
[control]
policy = "swap-neighbours"
scores = "old"
swap = 0.3
[treatment]
policy = "swap-neighbours"
scores = "new"
swap = 0.05
{_ANALYSIS}gamma_slots = [1.2, 1.6]
""",
    "own candidates": _LOG + 'ranking = "ids"\n' + _OWN.format("plackett-luce", "scores", "own_new") + _ANALYSIS,
    "own fixed": _LOG + 'ranking = "ids"\n' + _OWN.format("fixed", "ranking", "new_items") + _ANALYSIS,
    "curve": f'{_LOG}ranking = "shown"\n{_SOFT}{_ANALYSIS}{_EXPOSURE}'
    "examination = [1.0, 0.6]\nweight_bound = 5.0\ngamma_slots = 1.5\n",
    "curves": f'{_LOG}ranking = "shown"\n{_SOFT}{_ANALYSIS}{_EXPOSURE}'
    'examination = {column = "device", curves = {phone = [1.0, 0.5], desk = [1.0, 0.7]}}\nheadline = "pbm"\n',
    "fit": f'{_LOG}ranking = "shown"\n{_SOFT}{_ANALYSIS}{_EXPOSURE}examination = "fit"\nweight_bound = "auto"\n',
    "reward model": f'{_LOG}ranking = "shown"\nitem_features = ["price"]\n{_SOFT}{_ANALYSIS}'
    'estimators = ["cascade-ncis-adaptive", "point-ncis-adaptive"]\n',
    "predictions": f'{_LOG}ranking = "shown"\n{_SOFT}{_ANALYSIS}predictions = "price"\nconfidence_level = 0.8\n',
}  # fmt: skip
WORDS = Words(
    (*KEYS, "examination", "gamma_slots", "predictions", "item_features", "probs", "matrix", "swap", "layout",
     "display", "item", "slot", "first_slot", "tables", "impressions"),
    (*VALUES, '"fit"', "[1.0, 0.6, 0.4]", "[1.0]", "[1.0, 0.0]", "[1.0, -0.5]", "[1e-300, 1e300]",
     '{column = "device", curves = {phone = [1.0, 0.5]}}', '{column = "device", curves = {}}', '{clicks = "fit"}',
     '{clicks = [1.0, 0.5]}', '"probabilities"', '"fixed"', '"top-k"', '"logged-slots"', '"swap-neighbours"', '"old"',
     '"new"', '"old_probs"', '"slot_probs"', '"matrix"', '"shown"', '"ids"', '"old_items"', '"new_items"', '"price"',
     '"by_slot"', '"clicks"', '["clicks"]', '["pbm"]', '["exposure-ncis-adaptive"]', '["cascade-ncis-adaptive"]',
     '["iips", "rips"]', '["dr"]', '"exposure-ncis-adaptive"', "[1.0, 1.0]", "[2.0, 1.0]", "1.0000001", '"long"',
     '"display"', '"view"', '"item"', '"place"', '"SELECT 1"', '"SELECT * FROM nothing"', '"rewards.parquet"',
     '{impressions = "log.parquet"}', "0.5000001", '["click"]'),
    (*TABLES, "[log.tables]", "[analysis.examination]", "[analysis.examination.curves]"),
)  # fmt: skip


def policy_log(seed: int = 0, rows: int = ROWS) -> pa.Table:
    """A log with all columns that the settings name, rankings of 2 among 4."""
    g = np.random.default_rng(seed)
    old = np.round(g.normal(size=(rows, 4)), 3)
    new = old + 0.5 * g.normal(size=old.shape)
    shown = np.argsort(-(old + g.gumbel(size=old.shape)), axis=1)[:, :2]
    by_slot = (g.random((rows, 2)) < (0.8, 0.5)).astype(np.float64)
    soft = np.exp(old) / np.exp(old).sum(axis=1, keepdims=True)
    second = np.stack([(soft[:, [j]] * soft / (1 - soft[:, [j]])).T * (np.arange(4) != j)[:, None] for j in range(4)])
    matrix = np.concatenate([soft, second.sum(axis=0).T], axis=1)
    at = np.arange(rows)
    return pa.table(
        {
            "clicks": by_slot.sum(axis=1), "by_slot": by_slot.tolist(), "click": by_slot[:, 0],
            "user": [f"u{seed}-{i % 70}" for i in range(rows)], "device": ["phone", "desk", "desk"] * (rows // 3),
            "old": old.tolist(), "new": new.tolist(), "shown": shown.tolist(), "rerank": np.argsort(-new).tolist(),
            "swapped": _swapped(old, g).tolist(), "action": shown[:, 0], "old_probs": soft.tolist(),
            "new_probs": (0.5 * soft + 0.125).tolist(), "matrix": matrix.tolist(),
            "slot_probs": np.stack([soft[at, shown[:, 0]], matrix[at, 4 + shown[:, 1]]], axis=1).tolist(),
            "ids": (shown + 10).tolist(), "old_items": [[10, 11, 12, 13]] * rows, "new_items": [[12, 11, 14]] * rows,
            "own_new": g.normal(size=(rows, 3)).tolist(), "price": g.random((rows, 4)).tolist(),
        }
    )  # fmt: skip


def _swapped(scores: np.ndarray, g: np.random.Generator) -> np.ndarray:
    """The first two of the sort by score after neighbours were swapped: the first two, or the second and the third."""
    order = np.argsort(-scores, axis=1, kind="stable")
    for row, (even, swap) in enumerate(g.random((len(order), 2))):
        if swap < 0.3:
            first = 0 if even < 0.5 else 1
            order[row, [first, first + 1]] = order[row, [first + 1, first]]
    return order[:, :2]
