"""The simulated recommenders: every parameter of a world, and the named worlds.

How a display comes about, with g its user's group, j a candidate and k a slot:

    intent      z   = -recency_effect·z_recency + activity_effect·z_activity + hidden_intent_sd·h
    appeal      u_j = N(0, 1) + cold_appeal·cold_j
    control     s_j = control_sharpness·(ρ·u_j + √(1 - ρ²)·noise_j) - cold_penalty·cold_j
    treatment   s_j + (strength·(α·u_j + √(1 - α²)·noise'_j) + cold_lift·cold_j)·exp(intent_coupling·h)
    click rate  λ   = click_rate_g·exp(z - Var(z)/2)·Σ_k p_k·exp(appeal_effect·u_k)·c_k
    click       P   = floor + (ceiling - floor)·(1 - exp(-λ/(ceiling - floor)))

ρ is `control_accuracy`, α the change's `accuracy`; p_k ∝ k^-position_decay sums to 1; c_k = 1/(1 +
cannibalisation·n_k), n_k the number of other shown items of item k's category. The treatment's term is added
for users of the touched groups only; elsewhere both policies are the same. Both are top-K Plackett-Luce
policies of the world's `temperature` on their scores; at 0 they always show the best. The last two lines are those of
the click model `saturating`; the module `clicks` has the others.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from datetime import date

from foretest.records import dataclass
from foretest.simulate.change import Change, Changes

SATURATING, POSITION_BASED, BROWSING = "saturating", "position-based", "browsing"
CLICKS = (SATURATING, POSITION_BASED, BROWSING)
"""The click models."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group of users, logged as the column `group`.

    >>> Group(name="fans", share=1.0, click_rate=0.1, revenue=20.0).touch_probability
    0.5
    """

    name: str
    """What the log calls it."""

    share: float
    """Its share of the displays; the shares of a world sum to 1."""

    click_rate: float
    """Mean click rate λ of a display that shows items of average appeal, none alike, before saturation."""

    revenue: float
    """Mean revenue of a click."""

    touch_probability: float = 0.5
    """Probability that a treatment of a history touches it; a single log's treatment names its groups itself."""


@dataclass(frozen=True, kw_only=True)
class World:
    """Every parameter of a simulated recommender; the module's docstring has the formulas.

    >>> from dataclasses import replace
    >>> replace(WORLDS["paper"], displays_per_user=3.0, sticky=True).slots
    4
    """

    name: str
    """What `truth.json` calls it."""

    groups: tuple[Group, ...]
    """The groups of users, of different value and volume."""

    change: Change
    """The treatment of a single log, as a change of the control's scores."""

    changes: Changes = field(default_factory=Changes)
    """Where the treatments of a history come from."""

    candidates: int = 20
    """M, the largest number of candidates of a display."""

    min_candidates: int = 20
    """The smallest number; each display's is uniform between the two."""

    slots: int = 4
    """K, the number of items shown."""

    displays_per_user: float = 1.0
    """Mean displays of a user, geometric; the number does not depend on the user's value."""

    sticky: bool = False
    """Whether all displays of a user have the same candidates, the same scores and the same ranking."""

    temperature: float = 1.0
    """Temperature of both policies; at 0 each always shows its best scores."""

    clicks: str = SATURATING
    """How people click: one of `CLICKS`."""

    recency_effect: float = 0.4
    """How much one standard deviation of the log of `recency` (logged, by display) lowers the intent."""

    activity_effect: float = 0.3
    """How much one standard deviation of the log of `activity` (logged, by user) raises the intent."""

    hidden_intent_sd: float = 0.4
    """Standard deviation of the part of the intent that is by user and never logged."""

    intent_coupling: float = 0.3
    """How fast the treatment's change grows with the hidden intent h: as exp(intent_coupling·h)."""

    appeal_effect: float = 0.46
    """How much one standard deviation of appeal raises the log of an item's click rate."""

    control_accuracy: float = 0.4
    """Correlation ρ of the control's scores with the items' appeal."""

    control_sharpness: float = 1.5
    """Standard deviation of the control's scores: large is a low temperature."""

    cold_share: float = 0.16
    """Probability that a candidate is cold: penalised by the control."""

    cold_penalty: float = 3.9
    """How much the control lowers the scores of cold items."""

    cold_appeal: float = 1.4
    """How much better than the others cold items are, on the scale of the appeal; the control does not know it."""

    categories: int = 6
    """Number of equally frequent item categories; items of one category are alike."""

    cannibalisation: float = 0.05
    """How much each other shown item that is alike takes from an item's click rate: 1/(1 + this) for one."""

    position_decay: float = 0.7
    """Slot k is looked at in proportion to k^-position_decay."""

    click_floor: float = 1e-3
    """The smallest click probability of a display."""

    click_ceiling: float = 1.0
    """The largest click probability of a display."""

    abandonment: float = 0.0
    """Of browsing people: the probability to leave after an item of average appeal that was not clicked."""

    revenue_sd: float = 1.0
    """Standard deviation of the log of a click's revenue."""

    first_day: date = date(2024, 3, 4)
    """First day of the log."""

    days: int = 7
    """Length of the log in days, equally busy."""

    def __post_init__(self) -> None:
        problems = _problems(self)
        if problems:
            raise ValueError(f"world {self.name!r}: {'; '.join(problems)}")

    @property
    def examination(self) -> tuple[float, ...] | None:
        """θ_k, how much slot k is looked at in units of the first; None where clicks are not position-based."""
        if self.clicks != POSITION_BASED:
            return None
        return tuple(float(k**-self.position_decay) for k in range(1, self.slots + 1))

    @property
    def intent_variance(self) -> float:
        """Var(z), the variance of a display's intent."""
        return self.recency_effect**2 + self.activity_effect**2 + self.hidden_intent_sd**2


def _problems(world: World) -> list[str]:
    """What makes the parameters contradict each other, in words."""
    names = [group.name for group in world.groups]
    shares = sum(group.share for group in world.groups)
    fits = 1 <= world.slots <= world.min_candidates <= world.candidates <= 2**15
    touch = [group.touch_probability for group in world.groups]
    clickable = 0 <= world.click_floor < world.click_ceiling <= 1
    saturates = (world.cannibalisation, world.click_floor, world.click_ceiling) != (0.0, 0.0, 1.0)
    unknown = sorted(set(world.change.touched) - set(names))
    checks = [
        (bool(unknown), f"the change touches {unknown}: expected groups among {names}"),
        (len(set(names)) < len(names), f"groups {names}: expected different names"),
        (not math.isclose(shares, 1.0), f"the groups' shares sum to {shares}: expected 1"),
        (not 0 <= min(touch) <= max(touch) <= 1 or max(touch) == 0, f"touch_probability {touch}: not all 0, at most 1"),
        (not fits, "expected 1 <= slots <= min_candidates <= candidates <= 32768"),
        (world.displays_per_user < 1, f"displays_per_user is {world.displays_per_user}: expected 1 or more"),
        (not clickable, "expected 0 <= click_floor < click_ceiling <= 1"),
        (not 0 <= world.cold_share <= 1, f"cold_share is {world.cold_share}: expected a probability"),
        (not -1 <= world.control_accuracy <= 1, "control_accuracy: expected a correlation, from -1 to 1"),
        (not 1 <= world.categories <= 127, "categories: expected 1 to 127"),
        (world.days < 1, "days: expected 1 or more"),
        (world.temperature < 0, f"temperature is {world.temperature}: expected 0 or more"),
        (world.clicks not in CLICKS, f"clicks is {world.clicks!r}: expected one of {', '.join(CLICKS)}"),
        (world.clicks != SATURATING and saturates, f"{world.clicks} clicks take no floor, ceiling or cannibalisation"),
        (world.clicks != BROWSING and world.abandonment != 0, "abandonment is for browsing clicks"),
        (not 0 <= world.abandonment <= 1, f"abandonment is {world.abandonment}: expected a probability"),
    ]
    return [message for wrong, message in checks if wrong]


_PAPER = World(
    name="paper",
    groups=(
        Group(name="passers-by", share=0.55, click_rate=0.005, revenue=12.0, touch_probability=0.1),
        Group(name="regulars", share=0.28, click_rate=0.0165, revenue=18.0, touch_probability=0.6),
        Group(name="shoppers", share=0.12, click_rate=0.046, revenue=25.0, touch_probability=0.8),
        Group(name="fans", share=0.05, click_rate=0.075, revenue=40.0, touch_probability=0.85),
    ),
    change=Change(touched=("regulars", "shoppers", "fans"), strength=0.5, accuracy=-0.4, cold_lift=3.7),
)

_ALL = tuple(group.name for group in _PAPER.groups)
_CHANGES = _PAPER.changes

# what the click models slot by slot take, and treatments without any cold item to lift
_SLOT_BY_SLOT = replace(
    _PAPER,
    cannibalisation=0.0,
    click_floor=0.0,
    cold_share=0.0,
    changes=replace(_CHANGES, strength_median=1.1, quality_mean=0.35, quality_sd=0.5),
)

WORLDS: dict[str, World] = {
    "paper": _PAPER,
    "mild": replace(
        _PAPER,
        name="mild",
        intent_coupling=0.1,
        change=replace(_PAPER.change, strength=0.3, accuracy=0.7, cold_lift=0.6),
        changes=replace(_CHANGES, quality_mean=0.3, cold_lift_mean=0.5, cold_lift_slope=0.5, cold_lift_sd=0.3),
    ),
    "dense": replace(
        _PAPER,
        name="dense",
        cold_share=0.0,
        change=Change(touched=_ALL, strength=1.2, accuracy=0.35, cold_lift=0.0),
        changes=replace(_CHANGES, strength_median=1.1, quality_mean=0.35, quality_sd=0.5),
    ),
    "rewards": replace(
        _PAPER,
        name="rewards",
        groups=tuple(replace(group, click_rate=20 * group.click_rate) for group in _PAPER.groups),
        click_floor=0.01,
        click_ceiling=0.95,
    ),
    "sharp": replace(
        _PAPER,
        name="sharp",
        control_sharpness=4.0,
        change=replace(_PAPER.change, strength=1.0, accuracy=0.2, cold_lift=3.3),
        changes=replace(_CHANGES, quality_mean=0.2, strength_median=1.0),
    ),
    "no-overlap": replace(
        _PAPER,
        name="no-overlap",
        cold_share=0.25,
        cold_penalty=9.0,
        cold_appeal=0.2,
        change=replace(_PAPER.change, strength=0.8, accuracy=0.9, cold_lift=11.0),
        changes=replace(_CHANGES, quality_mean=0.3, cold_lift_mean=7.5, cold_lift_slope=4.0),
    ),
    "reranker": replace(
        _SLOT_BY_SLOT,
        name="reranker",
        groups=tuple(replace(group, click_rate=4 * group.click_rate) for group in _PAPER.groups),
        candidates=6,
        min_candidates=6,
        slots=6,
        temperature=0.0,
        clicks=POSITION_BASED,
        position_decay=1.0,
        appeal_effect=0.8,
        control_accuracy=0.3,
        change=Change(touched=_ALL, strength=1.5, accuracy=0.7, cold_lift=0.0),
    ),
    "browsing": replace(
        _SLOT_BY_SLOT,
        name="browsing",
        groups=tuple(replace(group, click_rate=8 * group.click_rate) for group in _PAPER.groups),
        candidates=8,
        min_candidates=8,
        clicks=BROWSING,
        abandonment=0.5,
        appeal_effect=1.0,
        control_accuracy=0.6,
        control_sharpness=1.0,
        change=Change(touched=_ALL, strength=1.2, accuracy=0.6, cold_lift=0.0),
        changes=replace(_SLOT_BY_SLOT.changes, strength_median=2.0, quality_mean=0.75),
    ),
}
"""The named worlds; `paper` is the default."""
