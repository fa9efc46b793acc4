"""`check_policy`: is a policy a distribution over rankings, and do its draws have its probabilities?"""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.policies.adapter import as_policy, class_name
from foretest.policies.all_rankings import AllRankings, over_all_rankings
from foretest.policies.base import Policy
from foretest.testing.example_displays import made_up_displays, rows_as_displays

FALSE_ALARM = 1e-6  # that a right policy is refused for its draws, over all displays
FEWEST_EXPECTED = 5.0  # draws of a ranking; rarer ones are counted together
SAME = 1e-9  # log-probabilities of the same ranking differ by less


class WrongPolicy(AssertionError):
    """A policy that is no distribution, or that its draws, its copies or its batches do not agree with.

    >>> import numpy as np
    >>> import foretest as ft
    >>> class Half(ft.PlackettLuce):
    ...     def log_prob(self, displays, rankings):
    ...         return super().log_prob(displays, rankings) - np.log(2.0)
    >>> try:
    ...     ft.testing.check_policy(Half("scores"))
    ... except ft.testing.WrongPolicy as error:
    ...     print("sum to" in str(error))
    True
    """


class PolicyReport(NamedTuple):
    """What `check_policy` looked at.

    >>> import foretest as ft
    >>> ft.testing.check_policy(ft.TopK("scores")).draws > 0
    True
    """

    displays: int  # on which it was checked
    rankings: int  # whose probabilities were added up
    draws: int  # of all displays
    largest_error: float  # of a sum of probabilities
    smallest_p_value: float  # of the draws of one display


def check_policy(
    policy: Any,
    rows: Any = None,
    *,
    slots: int | None = None,
    draws: int = 2000,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> PolicyReport:
    """Check that a policy is what Foretest takes it for; what is wrong is a `WrongPolicy`, in one sentence.

    On displays with few rankings: `log_prob` gives one number per ranking, never NaN or above 0, whose probabilities
    sum to 1; `sample` gives distinct positions, which depend on the uniforms alone, as often as `log_prob` says (a
    chi-square test for each display, which refuses a right policy once in a million); neither depends on how displays
    are cut into batches; a pickled copy gives the same; what the policy declares (`full_support`, `deterministic`,
    `slot_marginals`) is so.

    Parameters
    ----------
    policy: an object with `log_prob(displays, rankings)` and `sample(displays, uniforms)`.
    rows: a table (pyarrow, or a dict of columns) with the columns that the policy names; without it, every column is
        made up as a list of scores. Rows with more than 5,040 rankings are passed over.
    slots: the number of items shown in each row of `rows`; without it, once 1 and once 2.
    draws: rankings drawn from each display.
    tolerance: of a sum of probabilities; a policy in float32 needs 1e-4.
    seed: of the made-up scores and of the draws.

    Returns
    -------
    A `PolicyReport`: what was looked at.

    Raises
    ------
    WrongPolicy: the policy is not what it should be.

    >>> import foretest as ft
    >>> ft.testing.check_policy(ft.PlackettLuce("scores")).displays
    21
    """
    own = as_policy(policy)
    if not own.can_draw:
        raise BadInput(f"{class_name(own)} only prices the ranking that was shown: there is nothing to check.")
    displays = made_up_displays(own, seed) if rows is None else rows_as_displays(own, rows, slots)
    name = class_name(own)
    priced = _priced(own, name, displays)
    errors = [_sum_error(name, displays, one, tolerance) for one in priced]
    _check_declared(own, name, priced)
    _check_marginals(own, name, displays, priced, tolerance)
    many = displays.take(np.repeat(np.arange(len(displays)), draws))
    uniforms = np.random.default_rng(seed).uniform(2.0**-53, 1.0, (len(many), int(displays.eligible.max()) + 1))
    drawn = _drawn(own, name, many, uniforms)
    level = FALSE_ALARM / len(displays)
    p_values = [
        _p_of_draws(name, displays, one, drawn[one.display * draws : (one.display + 1) * draws], level)
        for one in priced
    ]
    _check_batches(own, name, displays, many, uniforms, drawn)
    _check_copy(own, name, displays, uniforms[: len(displays)])
    return PolicyReport(
        len(displays), sum(len(one.rankings) for one in priced), len(many), max(errors), min(p_values)
    )  # fmt: skip


def _where(displays: Displays, display: int) -> str:
    return f"display {display} ({displays.eligible[display]} items, {displays.slots[display]} shown)"


def _priced(policy: Policy, name: str, displays: Displays) -> list[AllRankings]:
    """All rankings of all displays; answers of another form, NaN and log-probabilities above 0 are refused."""
    answer = policy.log_prob(displays, displays.ranking)
    if not isinstance(answer, np.ndarray) or answer.shape != (len(displays),) or answer.dtype.kind != "f":
        form = (
            f"an array of shape {answer.shape} and type {answer.dtype}"
            if isinstance(answer, np.ndarray)
            else type(answer)
        )
        raise WrongPolicy(f"{name}.log_prob: expected a float array with one number per display, got {form}.")
    priced = list(over_all_rankings(policy, displays))
    for one in priced:
        for wrong, what in ((np.isnan(one.log_prob), "NaN"), (one.log_prob > SAME, "above 0")):
            if wrong.any():
                at = int(np.argmax(wrong))
                raise WrongPolicy(
                    f"{name}.log_prob is {what} ({one.log_prob[at]:g}) for the ranking {one.rankings[at].tolist()} of"
                    f" {_where(displays, one.display)}."
                )
    return priced


def _sum_error(name: str, displays: Displays, one: AllRankings, tolerance: float) -> float:
    total = float(np.exp(one.log_prob).sum())
    if not abs(total - 1.0) <= tolerance:
        raise WrongPolicy(
            f"{name}: the probabilities of all {len(one.rankings):,} rankings of {_where(displays, one.display)} sum to"
            f" {total:.6g}, not 1."
        )
    return abs(total - 1.0)


def _check_declared(policy: Policy, name: str, priced: list[AllRankings]) -> None:
    if policy.full_support and any((one.log_prob == -np.inf).any() for one in priced):
        raise WrongPolicy(f"{name} declares full_support, and gives a ranking probability 0.")
    if policy.deterministic and any(one.log_prob.max() < -SAME for one in priced):
        raise WrongPolicy(f"{name} declares that it is deterministic, and no ranking of a display has probability 1.")


def _check_marginals(
    policy: Policy, name: str, displays: Displays, priced: list[AllRankings], tolerance: float
) -> None:
    """Where the policy knows P(item in slot), it is the sum over rankings."""
    if not hasattr(policy, "slot_marginals"):
        return
    given = policy.slot_marginals(displays)
    for one in priced:
        m, k = int(displays.eligible[one.display]), one.rankings.shape[1]
        summed = np.zeros((k, m))
        for slot in range(k):
            summed[slot] = np.bincount(one.rankings[:, slot], weights=np.exp(one.log_prob), minlength=m)
        gap = float(np.abs(np.asarray(given[one.display]).reshape(k, m) - summed).max())
        if not gap <= tolerance:
            raise WrongPolicy(
                f"{name}.slot_marginals differs by {gap:.3g} from the sum over all rankings of"
                f" {_where(displays, one.display)}."
            )


def _drawn(policy: Policy, name: str, displays: Displays, uniforms: Floats) -> npt.NDArray[np.int64]:
    """One ranking per display, −1 beyond its slots; refused if it is none, or no function of the uniforms."""
    given = uniforms.copy()
    rankings = policy.sample(displays, given)
    if not isinstance(rankings, Ragged) or rankings.values.dtype.kind not in "iu":
        raise WrongPolicy(f"{name}.sample: expected an ft.Ragged of whole numbers, got {type(rankings).__name__}.")
    if len(rankings) != len(displays) or (rankings.lengths != displays.slots).any():
        raise WrongPolicy(f"{name}.sample: expected displays.slots positions for each display, got another number.")
    if (given != uniforms).any():
        raise WrongPolicy(f"{name}.sample changes the uniforms that it is given: work on a copy.")
    padded = np.asarray(rankings.padded(-1), np.int64)
    shown = np.arange(padded.shape[1]) < displays.slots[:, None]
    outside = (shown & ((padded < 0) | (padded >= displays.eligible[:, None]))).any(axis=1)
    ordered = np.sort(np.where(shown, padded, -1 - np.arange(padded.shape[1])), axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    for wrong, what in ((outside, "a position outside the display's items"), (twice, "an item twice")):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise WrongPolicy(
                f"{name}.sample shows {what}: {rankings[row].tolist()} of {displays.eligible[row]} items."
            )
    again = np.asarray(policy.sample(displays, uniforms.copy()).padded(-1))
    if (again != padded).any():
        raise WrongPolicy(
            f"{name}.sample gives other rankings when it is called again with the same uniforms: use no other source of"
            " randomness."
        )
    return padded


def _p_of_draws(
    name: str, displays: Displays, one: AllRankings, drawn: npt.NDArray[np.int64], level: float
) -> float:  # fmt: skip
    """Pearson's chi-square of a display's draws, rare rankings counted together."""
    k, m = one.rankings.shape[1], int(displays.eligible[one.display])
    code = m ** np.arange(k)
    codes = one.rankings.astype(np.int64) @ code
    order = np.argsort(codes)
    counts = np.empty(len(codes))
    place = np.searchsorted(codes[order], drawn[:, :k] @ code)
    counts[order] = np.bincount(place, minlength=len(codes))
    expected = np.exp(one.log_prob) * len(drawn)
    never = np.flatnonzero((counts > 0) & (one.log_prob == -np.inf))
    if len(never):
        raise WrongPolicy(
            f"{name}.sample draws the ranking {one.rankings[never[0]].tolist()} of {_where(displays, one.display)}, to"
            " which log_prob gives probability 0."
        )
    often = expected >= FEWEST_EXPECTED
    cells = np.append(counts[often], counts[~often].sum()), np.append(expected[often], expected[~often].sum())
    observed, wanted = (cell[cells[1] > 0.0] for cell in cells)
    statistic = float((np.square(observed - wanted) / np.maximum(wanted, 1.0)).sum())
    p = float(chi2.sf(statistic, max(len(wanted) - 1, 1)))
    if p < level:
        worst = int(np.argmax(np.abs(counts - expected) / np.sqrt(np.maximum(expected, 1.0))))
        raise WrongPolicy(
            f"{name}.sample does not have the probabilities of log_prob on {_where(displays, one.display)}: the ranking"
            f" {one.rankings[worst].tolist()} was drawn {counts[worst]:,.0f} times of {len(drawn):,}, expected"
            f" {expected[worst]:,.1f} (chi-square p = {p:.1g})."
        )
    return p


def _check_batches(
    policy: Policy, name: str, displays: Displays, many: Displays, uniforms: Floats, drawn: npt.NDArray[np.int64]
) -> None:
    """Rows one by one, in another order and of one shape give what they gave together."""
    together = np.asarray(policy.log_prob(displays, displays.ranking))
    step = len(many) // len(displays)
    reverse = np.arange(len(displays))[::-1]
    for rows in (*np.arange(len(displays))[:, None], reverse, np.arange(0, len(displays), 2)):
        part = displays.take(rows)
        gap = np.abs(np.subtract(policy.log_prob(part, part.ranking), together[rows], where=together[rows] > -np.inf,
                                 out=np.zeros(len(rows))))  # fmt: skip
        if gap.max() > SAME * (1.0 + np.abs(together[rows][np.isfinite(together[rows])]).max(initial=0.0)):
            raise WrongPolicy(
                f"{name}.log_prob depends on the other displays of a batch: by {gap.max():.3g} for {len(rows)} of"
                f" {len(displays)} displays."
            )
        width = int(part.eligible.max()) + 1
        again = np.asarray(policy.sample(part, uniforms[rows * step, :width].copy()).padded(-1))
        if (again != drawn[rows * step, : again.shape[1]]).any():
            raise WrongPolicy(f"{name}.sample depends on the other displays of a batch, not on its uniforms alone.")


def _check_copy(policy: Policy, name: str, displays: Displays, uniforms: Floats) -> None:
    try:
        copy = pickle.loads(pickle.dumps(policy))
    except Exception as error:
        raise WrongPolicy(
            f"{name} cannot be pickled ({type(error).__name__}: {error}): define the class at the top of a module, and"
            " keep no functions or open files in it."
        ) from None
    same = np.array_equal(copy.log_prob(displays, displays.ranking), policy.log_prob(displays, displays.ranking))
    mine, theirs = (one.sample(displays, uniforms.copy()).padded(-1) for one in (policy, copy))
    if not same or not np.array_equal(mine, theirs):
        raise WrongPolicy(f"{name}: a pickled copy gives other answers than the policy itself.")
