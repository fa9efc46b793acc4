"""A mixture: each display was (or would be) ranked by one of several policies, with known shares."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput, is_finite_number
from foretest.policies.adapter import as_policy
from foretest.policies.base import Policy, refuse_slots_alone
from foretest.policies.by_row import picked_by, sample_by_row
from foretest.policies.fitted_parameter import refuse_fit
from foretest.policies.pricing import priced


class Mixture(Policy):
    """Several policies, of which one is drawn for each display.

    log π(a) = LSE over j of log α_j + log π_j(a), shares α_j scaled to sum to 1.

    Parameters
    ----------
    components: pairs (share, policy).
    log_prob, prob: the column, if any, with the logged (log-)probability of the shown ranking.
    replay_seed: the seed of the service that drew the log, if it is to be replayed (`foretest.serving`).
    trained_until: of a treatment, the last day that its model has seen: rows of the log up to it are left out.

    The probability that it shows items 1 and 2 of three:

    >>> import numpy as np
    >>> import foretest as ft
    >>> shown = ft.Ragged.of([[1, 2]])
    >>> scores = {"scores": ft.Ragged.of([[0.3, 1.2, 0.7]])}
    >>> display = ft.Displays(scores, shown, eligible=np.array([3]), identity=np.zeros(1, np.uint64))
    >>> policy = ft.Mixture([(0.9, ft.TopK("scores")), (0.1, ft.PlackettLuce("scores"))])
    >>> float(np.exp(policy.log_prob(display, shown))[0].round(3))
    0.93
    """

    def __init__(
        self,
        components: Sequence[tuple[float, Policy]],
        *,
        log_prob: str | None = None,
        prob: str | None = None,
        replay_seed: int | None = None,
        trained_until: date | str | None = None,
    ) -> None:
        if not components:
            raise BadInput("a mixture needs at least one component.")
        if not all(isinstance(part, tuple | list) and len(part) == 2 for part in components):
            raise BadInput("the components of a mixture are pairs (share, policy).")
        for share, policy in components:
            if not is_finite_number(share) or share <= 0.0:
                raise BadInput(f"share = {share!r}: expected a number above 0.")
            refuse_slots_alone(policy, "a component of a mixture")
            refuse_fit(policy, "a component of a mixture", "no row says which component showed it")
        total = sum(share for share, _ in components)
        self.components = tuple((share / total, as_policy(policy)) for share, policy in components)
        self.remember_logged(log_prob, prob)
        self.remember_replay(replay_seed)
        self.remember_training(trained_until)

    @property
    def columns(self) -> tuple[str, ...]:
        names = [name for _, policy in self.components for name in policy.columns]
        return tuple(dict.fromkeys([*names, self._logged.name] if self._logged else names))

    @property
    def score_columns(self) -> tuple[str, ...]:
        names = [name for _, policy in self.components for name in policy.score_columns]
        return tuple(dict.fromkeys(names))

    @property
    def ranking_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for _, policy in self.components for name in policy.ranking_columns))

    @property
    def can_draw(self) -> bool:  # type: ignore[override]
        return all(policy.can_draw for _, policy in self.components)

    @property
    def full_support(self) -> bool:  # type: ignore[override]
        return any(policy.full_support for _, policy in self.components)

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        parts = np.stack([np.log(share) + priced(policy, displays, rankings) for share, policy in self.components])
        return np.asarray(np.logaddexp.reduce(parts, axis=0))

    def slot_marginals(self, displays: Displays) -> Ragged:
        """P(item in slot): the shares times the components' own marginals, which every component must know."""
        parts = [(share, policy.slot_marginals(displays)) for share, policy in self.components]  # type: ignore[attr-defined]
        lists = parts[0][1]
        return Ragged.packed(sum(share * part.flat() for share, part in parts), lists.lengths)

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        shares = np.broadcast_to([share for share, _ in self.components], (len(displays), len(self.components)))
        picked, left = picked_by(uniforms, shares)
        return sample_by_row([policy for _, policy in self.components], picked, displays, left)

    def settings(self) -> dict[str, Any]:
        table = super().settings()
        table["components"] = [{"share": share, **policy.settings()} for share, policy in self.components]
        return table
