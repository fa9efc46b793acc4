"""Candidates of their own: each policy of a test names its list of items, or none does."""

from __future__ import annotations

from collections.abc import Mapping

from foretest.errors import BadInput
from foretest.policies.base import Policy
from foretest.policies.logging_mixture import components_of, loggers_of
from foretest.policies.own_candidates import OwnCandidates, candidates_of
from foretest.settings.analysis import Analysis
from foretest.settings.log_columns import LogColumns


def check_own_candidates(
    log: LogColumns, control: Policy, treatments: Mapping[str, Policy], analysis: Analysis
) -> None:  # fmt: skip
    """Refuse lists that only some policies have, or that the log has too, and what cannot be had with them."""
    several = len(treatments) > 1
    roles = {"[control]": control}
    roles |= {f"[[treatment]] '{name}'" if several else "[treatment]": policy for name, policy in treatments.items()}
    for role, policy in roles.items():
        _refuse_parts(role, policy)
    named = [role for role, policy in roles.items() if isinstance(policy, OwnCandidates)]
    if not named:
        return
    if log.candidates is not None:
        raise BadInput(
            f'[log] candidates = "{log.candidates}" and {named[0]} candidates = "{candidates_of(roles[named[0]])}" are'
            " both given: keep [log] candidates where all policies choose from one list, else a list for each policy."
        )
    if log.ranking is None:
        raise BadInput(f"{named[0]} candidates: name the column of the shown ids too, in [log] ranking.")
    for role, policy in roles.items():
        if isinstance(policy, OwnCandidates):
            continue
        what = (
            f': add candidates = "column" to {role}, the list that its scores are in the order of.'
            if policy.can_draw
            else ", for it has no scores: leave them out, or log the scores of all of its items."
        )
        raise BadInput(f"{named[0]} has candidates of its own and {role} has none{what}")
    _refuse_shared_rankings(roles)
    if log.item_features or analysis.predictions is not None:
        given = "[log] item_features" if log.item_features else "[analysis] predictions"
        raise BadInput(
            f"{given} has a value for each item of one list, and {named[0]} has candidates of its own: leave one of the"
            " two out."
        )
    if analysis.normaliser in ("midzuno-sen", "lahiri"):
        raise BadInput(
            f'normaliser = "{analysis.normaliser}" is biased where the treatment may show items that the control could'
            ' not, as with candidates of their own: use "auto".'
        )


def _refuse_parts(role: str, policy: Policy) -> None:
    """One list for a mixture, and none for several loggers."""
    if not any(isinstance(part, OwnCandidates) for part in components_of(policy)):
        return
    reason = loggers_of(policy).lacks.get("own candidates")
    if reason is not None:
        raise BadInput(reason)
    raise BadInput(
        f"{role}: a component of the mixture has candidates of its own. Name one list for the whole mixture, beside its"
        " components."
    )


def _refuse_shared_rankings(roles: Mapping[str, Policy]) -> None:
    """A column of fixed rankings is looked up in one list."""
    list_of: dict[str, str | None] = {}
    for policy in roles.values():
        for column in policy.ranking_columns:
            if list_of.setdefault(column, candidates_of(policy)) != candidates_of(policy):
                raise BadInput(
                    f"the rankings in '{column}' are read by policies with different candidates: write them to two"
                    " columns, one for each list."
                )
