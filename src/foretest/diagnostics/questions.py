"""Questions to the user: what looks like a natural mistake in the treatment or in the rewards, and may yet be right.

A failed audit takes verdicts away; a question never does. Each has a kind, by which programs know it, and a text that
names the likely mistake and the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence

from foretest.aggregation.aggregates import Aggregates
from foretest.diagnostics.probability_questions import probability_questions
from foretest.diagnostics.reward_questions import reward_questions
from foretest.diagnostics.thinning_questions import thinning_questions
from foretest.diagnostics.treatment_questions import treatment_questions
from foretest.diagnostics.unit_questions import unit_questions
from foretest.log.unit_columns import NO_UNIT
from foretest.results.questions import Question

UNIT_COLUMN = "unit column"


def question_notes(aggregates: Aggregates) -> list[str]:
    """The questions that a log asks, as notes; of several treatments each names its own."""
    further = aggregates.treatments
    names = list(aggregates.plan.settings.treatments) if further else [""]
    notes = [question.text for question in _of_log(aggregates)]
    for name, sums in zip(names, (aggregates, *further.values()), strict=True):
        whose = f"{name}: " if name else ""
        notes += [f"{whose}{question.text}" for question in _of_treatment(sums)]
    return notes


def question_kinds(aggregates: Aggregates, notes: Sequence[str]) -> list[str]:
    """The kinds of the questions about one treatment and its log; `notes` are those of reading the log."""
    asked = [*_of_treatment(aggregates), *_of_log(aggregates)]
    of_schema = [UNIT_COLUMN] if any(NO_UNIT in note for note in notes) else []
    return [*(question.kind for question in asked), *of_schema]


def _of_log(aggregates: Aggregates) -> list[Question]:
    return [*reward_questions(aggregates), *thinning_questions(aggregates), *unit_questions(aggregates)]


def _of_treatment(aggregates: Aggregates) -> list[Question]:
    return [*treatment_questions(aggregates), *probability_questions(aggregates)]
