"""Which treatment to take: the best of those that pass, or none, and why.

A treatment passes if it is better in the first goal by its adjusted verdict, worse in no goal, and keeps every
guardrail for sure. A guardrail that is unclear is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from foretest.formatting import format_number, percent, some_of
from foretest.inference.guardrails import outcome
from foretest.offline.treatments import Metrics, goal
from foretest.records import dataclass
from foretest.results.audit import AUDIT_FAILED
from foretest.results.result import Result
from foretest.results.robustness_text import is_fragile
from foretest.settings.metric_roles import GOAL
from foretest.settings.settings import TREATMENT

_NAMED = 8  # treatments in a sentence
_SHORTFALLS = {
    "neutral": "{} is not clearly better",
    "insufficient": "{} has too little evidence",
    "worse": "{} is worse",
}


@dataclass(frozen=True)
class Choice:
    """The treatment to take, in a sentence, and what else to know of the choice."""

    winner: str | None
    title: str  # without the uplift, and without several reasons
    sentence: str
    details: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """All of it, as result.json has it."""
        return " ".join([self.sentence, *self.details])


def choose_winner(treatments: Mapping[str, Metrics]) -> Choice:
    """The choice among treatments, which come by rank: the best first."""
    shortfalls = {name: shortfalls_of(metrics) for name, metrics in treatments.items()}
    passing = [name for name, short in shortfalls.items() if not short]
    if len(treatments) == 1:
        return _of_one(*next(iter(treatments.items())))
    if not passing:
        sentence = f"None passes, because {_by_shortfall(shortfalls)}."
        one_reason = len({text for short in shortfalls.values() for text in short}) == 1
        return Choice(None, sentence if one_reason else f"None of the {len(treatments)} treatments passes.", sentence)
    best, *others = passing
    title = f"{'Best that passes every guardrail' if guardrails_of(treatments[best]) else 'Best'}: {best}"
    ahead = {name: shortfalls[name] for name in list(treatments)[: list(treatments).index(best)]}
    details = [f"Ranked higher, and not taken: {_by_treatment(ahead)}."] if ahead else []
    details += [f"Passing too: {some_of(others, _NAMED)}."] if others else []
    return Choice(best, f"{title}.", f"{title}, {_gain(treatments[best])}.", tuple(details))


def choice_of(result: Result) -> Choice | None:
    """The choice as page and terminal show it: where there are several treatments, or metrics with roles; else None."""
    if result.winner_reason is None:
        return None
    if result.treatments:
        order = sorted(result.treatments, key=lambda treatment: treatment.rank or 0)
        return choose_winner({treatment.name: treatment.metrics for treatment in order})
    if all(metric.role is None for metric in result.metrics.values()):
        return None
    return choose_winner({result.settings[TREATMENT].get("name", TREATMENT): result.metrics})


def shortfalls_of(metrics: Metrics) -> list[str]:
    """Why a treatment does not pass, in a few words each; nothing where it passes."""
    first = goal(metrics)
    lead = metrics[first].estimates[metrics[first].headline or ""]
    if lead.reasons and lead.reasons[0].startswith(AUDIT_FAILED) and lead.verdict == "insufficient":
        return [AUDIT_FAILED]
    goals = {name: m for name, m in metrics.items() if m.role is None or m.role["role"] == GOAL}
    short = []
    for name, metric in goals.items():
        word = outcome(metric.verdict, metric.direction)
        if name == first and word != "worse":
            word = outcome(metric.verdicts[-1], metric.direction)  # the adjusted one
        if word == "worse" or (name == first and word != "better"):
            short.append(_SHORTFALLS[word].format(name))
    states = {name: guardrail for name, guardrail in guardrails_of(metrics).items() if guardrail != "pass"}
    return short + [f"the guardrail {name} {'fails' if s == 'fail' else 'is unclear'}" for name, s in states.items()]


def guardrails_of(metrics: Metrics) -> dict[str, str]:
    """Pass, fail or unclear, by guardrail."""
    roles = {name: metric.role for name, metric in metrics.items() if metric.role is not None}
    return {name: role["guardrail"] for name, role in roles.items() if "guardrail" in role}


def _of_one(name: str, metrics: Metrics) -> Choice:
    """The only treatment: does it pass?"""
    short, who = shortfalls_of(metrics), "The treatment" if name == TREATMENT else name
    if short:
        sentence = f"{who} does not pass, because {_listed(short)}."
        return Choice(None, sentence, sentence)
    title = f"{who} passes{' every guardrail' if guardrails_of(metrics) else ''}"
    return Choice(name, f"{title}.", f"{title}: {_gain(metrics)}.")


def _gain(metrics: Metrics) -> str:
    """The uplift in the first goal."""
    name = goal(metrics)
    estimate = metrics[name].estimates[metrics[name].headline or ""]
    uplift = percent(estimate.rel_effect_size, sign=True)
    if estimate.rel_effect_size is None:
        uplift = f"{format_number(estimate.effect_size)} per {metrics[name].per or 'display'}"
    return f"{uplift} in {name}{', a fragile verdict' if is_fragile(estimate) else ''}"


def _by_shortfall(shortfalls: Mapping[str, Iterable[str]]) -> str:
    """Each shortfall once, with the treatments that it concerns; without them where it concerns all.

    >>> _by_shortfall({"a": ["click is worse"], "b": ["click is worse", "the guardrail revenue fails"]})
    'click is worse; the guardrail revenue fails (b)'
    """
    concerned: dict[str, list[str]] = {}
    for name, short in shortfalls.items():
        for text in short:
            concerned.setdefault(text, []).append(name)
    parts = [
        text if len(names) == len(shortfalls) else f"{text} ({some_of(names, _NAMED)})"
        for text, names in concerned.items()
    ]
    return "; ".join(parts)


def _by_treatment(shortfalls: Mapping[str, list[str]]) -> str:
    """The treatments with their shortfalls.

    >>> _by_treatment({"a": ["sale is worse"], "b": ["sale is worse", "the guardrail revenue fails"]})
    'a (sale is worse), b (sale is worse and the guardrail revenue fails)'
    """
    return some_of([f"{name} ({_listed(short)})" for name, short in shortfalls.items()], _NAMED)


def _listed(texts: list[str]) -> str:
    return " and ".join(texts)
