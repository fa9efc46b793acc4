"""What the log says of the model behind slots: is what a slot earns a matter of its own item and place alone?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from foretest.formatting import p_value
from foretest.records import dataclass
from foretest.results.audit import FAIL, PASS, WARN

DEPENDS = "rewards depend on what else is shown"
BELOW = "rewards depend on what stands below their slot"


@dataclass(frozen=True)
class SlotTest:
    """One test of the model. Numbers that do not exist are None."""

    status: str  # pass, warn, fail, not made
    z: float | None
    p_value: float | None  # two-sided
    rewards: int  # rewarded rows that it rests on
    sentence: str  # what it says, or why it was not made

    @property
    def text(self) -> str:
        """The sentence, with the p-value where there is one.

        >>> SlotTest("warn", -2.8, 0.0051, 900, f"{DEPENDS}: rewarded items appear next to weaker ones").text
        'rewards depend on what else is shown: rewarded items appear next to weaker ones; p = 0.0051'
        """
        return self.sentence if self.p_value is None else f"{self.sentence}; {p_value(self.p_value)}"

    @property
    def doubt(self) -> str:
        """What a test that warns or fails says, in few words.

        >>> SlotTest("fail", -5.0, 5.7e-7, 900, f"{DEPENDS}: some items help or hinder others").doubt
        'rewards depend on what else is shown (p < 0.0001)'
        """
        return f"{self.sentence.split(':')[0]} ({p_value(1.0 if self.p_value is None else self.p_value)})"

    @property
    def warns(self) -> bool:
        """Does the log speak against the model? So does a test that fails."""
        return self.status in (WARN, FAIL)

    @property
    def fails(self) -> bool:
        """Does the log refute the model, so that no estimate by slot may lead?"""
        return self.status == FAIL


@dataclass(frozen=True)
class SlotModel:
    """The tests of the model for one metric."""

    company: SlotTest  # do rewards depend on what else the display shows?
    trust: SlotTest | None = None  # have items of high and low score one examination curve? Where one was fitted
    chain: SlotTest | None = None  # do slots compared directly and through others agree?
    pairs: SlotTest | None = None  # do rewards depend on which items are shown next to which? None in earlier sums
    below: SlotTest | None = None  # do rewards depend on what stands below their slot? None in earlier sums

    def to_dict(self) -> dict[str, Any]:
        """The tests that there are, as result.json has them."""
        return {name: test for name, test in asdict(self).items() if test is not None}

    @property
    def beside(self) -> SlotTest:
        """Of the two tests of what is shown next to a reward, the one that speaks more against the model."""
        tests = [test for test in (self.company, self.pairs) if test is not None and test.p_value is not None]
        return min(tests, key=lambda test: test.p_value or 0.0, default=self.company)

    @property
    def of_prefixes(self) -> SlotTest:
        """The test of weights of the items down to a slot, which may depend on those above: on what stands below, or on
        what is shown next to where that could not be looked at."""
        return self.beside if self.below is None or self.below.p_value is None else self.below

    @property
    def is_cascade(self) -> bool:
        """Do rewards depend on what else is shown, with no sign that they depend on what stands below their slot?"""
        return self.beside.fails and self.below is not None and self.below.status == PASS

    @property
    def refutes_curve(self) -> bool:
        """Does a test of the examination curve fail?"""
        return any(test is not None and test.fails for test in (self.trust, self.chain))
