"""What a fold adds up: every quantity, declared once.

A quantity says how it behaves wherever sums go: on which axes it lies, how it is merged, in which power of the weights'
unit it is kept, what becomes of it for a metric with losses, whether it moves with a number that is fitted, and whether
parts of a log (segments, days) have it too. Whoever adds one declares it here and adds amounts to it where rows are at
hand; merging, differences of gains and losses, fitted numbers, parts of a log and saving follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Blocks(Enum):
    """What lies along the first axis of a sum, before the cells."""

    NONE = "none"
    STRATA = "strata"  # of the table that owns the sum; they grow while a log is folded, and merge by label
    SLOTS = "slots"  # they grow with the longest ranking
    FIXED = "fixed"  # numbers of their own, as many in every log


class Merge(Enum):
    """How the sums of two parts of a log become one."""

    SUM = "sum"
    LARGEST = "largest"
    SMALLEST = "smallest"


class Reward(Enum):
    """What a sum of a metric with losses is made of, from those of its gains and of its losses."""

    ABSENT = "absent"  # no reward is in it: that of the gains, which is that of the losses
    LINEAR = "linear"  # the one less the other
    SIZE = "size"  # both added up: rewards count by their size
    APART = "apart"  # that of the gains; that of the losses is a sum of its own


class Moves(Enum):
    """Does a sum move with a number of the control that was fitted, and which rows show how?"""

    NEVER = "never"
    WITH_ALL_ROWS = "with all rows"
    WITH_REWARDED_ROWS = "with rewarded rows"


BY_NAME: dict[str, Quantity] = {}


@dataclass(frozen=True, eq=False)
class Quantity:
    """One kind of sum."""

    name: str  # in files
    by_cell: bool = False  # one number for each cell, a bucket of units of one logger; else one for all
    blocks: Blocks = Blocks.NONE
    merge: Merge = Merge.SUM
    power: int = 0  # of the unit that weights are kept in
    reward: Reward = Reward.ABSENT
    apart: Quantity | None = None  # where that of the losses stands, of a sum that is kept apart
    sizes: Quantity | None = None  # where Σ h|r| stands, of a metric with losses
    moves: Moves = Moves.NEVER
    in_parts: bool = False  # do segments and days have it too?
    needs_all: bool = False  # is it nothing where some of the logs that are merged lack it?
    #: what it equals in a log whose rows each stand for one display: there it is not kept
    unthinned: Quantity | None = None
    shared: bool = False  # is its unit that of the weighting, for all metrics?

    def __post_init__(self) -> None:
        if BY_NAME.setdefault(self.name, self) is not self:
            raise ValueError(f"two quantities are called {self.name}")

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return quantity_of, (self.name,)


def quantity_of(name: str) -> Quantity:
    """The quantity of a name: each is one object, also where it comes from another process."""
    return BY_NAME[name]


_BY_CELL: dict[str, Any] = {"by_cell": True}
_REWARD: dict[str, Any] = {"reward": Reward.LINEAR}
_SIZE: dict[str, Any] = {"reward": Reward.SIZE}
_OF_ALL: dict[str, Any] = {"shared": True, "power": 1}  # of the weights of all rows

# -- displays, rows, rewards ----------------------------------------------------------------------------------------
DISPLAYS = Quantity("n", **_BY_CELL, in_parts=True)  # of a thinned log Σ m, m = 1/keep, as in every sum
ROWS = Quantity("rows", **_BY_CELL, in_parts=True, unthinned=DISPLAYS)
REWARDS = Quantity("r", **_BY_CELL, **_REWARD, moves=Moves.WITH_REWARDED_ROWS, in_parts=True)
SQUARED_REWARDS = Quantity("r2", **_SIZE)
REWARD_SIZES = Quantity("sizes", **_SIZE)  # Σ |r|, of metrics that may be negative
POSITIVES = Quantity("positives", **_SIZE, in_parts=True)  # rows with a reward
REWARDED_ROWS = Quantity("rewarded", in_parts=True)  # with a reward of any metric
CAPPED_ROWS = Quantity("capped rows")
LARGEST_LOG_WEIGHT = Quantity("largest log weight", merge=Merge.LARGEST)
STRATUM_DISPLAYS = Quantity("stratum n", **_BY_CELL, blocks=Blocks.STRATA)
#: by weighting, its owner: rewarded rows without support, and those whose normaliser is approximate
UNSUPPORTED = Quantity("unsupported", in_parts=True)
APPROXIMATE = Quantity("approximate")
#: Σ of each reward column before it was winsorised, and of what was cut
CUT = Quantity("cut", blocks=Blocks.FIXED)
LEFT_OUT_AS_TRAINED = Quantity("left out as trained")

# -- of a thinned log, whose row i stands for m_i = 1/keep_i displays -----------------------------------------------
POSITIVE_DISPLAYS = Quantity("positive displays", **_SIZE, unthinned=POSITIVES)
SQUARES = Quantity("squares", unthinned=DISPLAYS, in_parts=True)  # Σ m²
SQUARES_REWARDS = Quantity("squares of rewards", **_REWARD, unthinned=REWARDS)  # Σ m² r
KEEP = Quantity("keep", blocks=Blocks.FIXED)  # rows with a reward and Σ keep of these, rows without and Σ keep of these
LARGEST_LOG_SHARE = Quantity("largest log share", merge=Merge.LARGEST, unthinned=LARGEST_LOG_WEIGHT)  # of m·w
STRATUM_ROWS = Quantity("stratum rows", **_BY_CELL, blocks=Blocks.STRATA, unthinned=STRATUM_DISPLAYS)

# -- weights of all rows, Σ h ---------------------------------------------------------------------------------------
WEIGHTS = Quantity("h", **_BY_CELL, **_OF_ALL, moves=Moves.WITH_ALL_ROWS, in_parts=True)
SQUARED_WEIGHTS = Quantity("h2", shared=True, power=2, in_parts=True)
STRATUM_WEIGHTS = Quantity("stratum h", **_BY_CELL, **_OF_ALL, blocks=Blocks.STRATA, moves=Moves.WITH_ALL_ROWS)
SLOT_WEIGHTS = Quantity("slot h", **_BY_CELL, **_OF_ALL, blocks=Blocks.SLOTS, moves=Moves.WITH_ALL_ROWS)
SLOT_DISPLAYS = Quantity("slot n", **_BY_CELL, **_OF_ALL, blocks=Blocks.SLOTS)
#: Σ h·r̂ of an estimator with a model of rewards, its owner
PREDICTED = Quantity("hv", **_BY_CELL, **_OF_ALL, **_REWARD, moves=Moves.WITH_ALL_ROWS)
#: Σ E_t r̂ of such an estimator, and Σ mδ, Σ m²δ², Σ m²δ, Σ m² with δ = E_t r̂ − E_p r̂
EXPECTED = Quantity("v", **_BY_CELL, **_REWARD, moves=Moves.WITH_ALL_ROWS)
UPLIFTS = Quantity("uplifts", blocks=Blocks.FIXED, **_REWARD)

# -- weighted rewards, Σ h r ----------------------------------------------------------------------------------------
_WEIGHTED: dict[str, Any] = {"by_cell": True, "power": 1, "reward": Reward.LINEAR}
_SLICED: dict[str, Any] = {"by_cell": True, "power": 1, "reward": Reward.SIZE, "moves": Moves.WITH_REWARDED_ROWS}
SIZES = Quantity("hr sizes", power=1, in_parts=True, **_SIZE)  # Σ h|r| of a metric with losses
WEIGHTED_REWARDS = Quantity("hr", **_WEIGHTED, moves=Moves.WITH_REWARDED_ROWS, sizes=SIZES, in_parts=True)
SQUARED_WEIGHTED_REWARDS = Quantity("hr2", power=2, in_parts=True, **_SIZE)  # Σ (h r)²
WEIGHTED_SQUARES = Quantity("hrr", power=1, **_SIZE)  # Σ h r²
STRATUM_WEIGHTED_REWARDS = Quantity("stratum hr", **_WEIGHTED, blocks=Blocks.STRATA, moves=Moves.WITH_REWARDED_ROWS)
SLOT_WEIGHTED_REWARDS = Quantity("slot hr", **_WEIGHTED, blocks=Blocks.SLOTS, moves=Moves.WITH_REWARDED_ROWS)
#: Σ h·r̂ beside Σ h r, of weights that only rewarded rows have
PREDICTED_BESIDE = Quantity("hv beside", **_WEIGHTED, moves=Moves.WITH_ALL_ROWS)
MODEL_MOMENTS = Quantity("model_moments", blocks=Blocks.FIXED, power=2, **_REWARD)

# sums by part of files from before noise was predicted, by weighting, their owner
SUPPORTED_BEFORE = Quantity("supported before", in_parts=True, **_SIZE)
SECOND_BEFORE = Quantity("second before", in_parts=True, **_SIZE)

# the sensitivity band: Σ t, both sides of the slice test; what is not supported may earn more of gains or of losses
UNSUPPORTED_LOSSES = Quantity("t_losses", by_cell=True, power=1, **_SIZE)
UNSUPPORTED_REWARDS = Quantity(
    "t", by_cell=True, power=1, reward=Reward.APART, apart=UNSUPPORTED_LOSSES, moves=Moves.WITH_REWARDED_ROWS
)
SLICE = Quantity("slice", **_SLICED)
SLICE_EXPECTED = Quantity("slice_expected", **_SLICED)

# of a fitted examination curve the slopes ∂S/∂log θ_k of Σ h r and Σ t, by slot k, their owner
SLOPE = Quantity("slope_hr", power=1, in_parts=True, **_REWARD)
SLOPE_UNSUPPORTED = Quantity("slope_t", power=1, **_REWARD)

# -- noise as it is on average (`noise_sums`), by power of r: 2, 1, 0 -----------------------------------------------
_NOISE: dict[str, Any] = {"in_parts": True, "power": 2}
_NOISE_1: dict[str, Any] = {"in_parts": True, "power": 1}
NOISE_OBSERVED = (
    Quantity("noise_observed", **_NOISE, **_SIZE),
    Quantity("noise_observed_r", **_NOISE, **_REWARD),
    Quantity("noise_observed_1", **_NOISE),
)
NOISE_EXPECTED = (
    Quantity("noise_expected", **_NOISE, **_SIZE),
    Quantity("noise_expected_r", **_NOISE, **_REWARD),
    Quantity("noise_expected_1", **_NOISE),
)
NOISE_SECOND = Quantity("noise_second", **_NOISE, **_SIZE)
NOISE_REWARDS = Quantity("noise_rewards", **_NOISE_1, **_SIZE)
NOISE_POSITIVES = Quantity("noise_positives", **_NOISE_1, **_SIZE)
NOISE_COUNT = Quantity("noise_count", **_NOISE_1)

# -- the choice of a bound (`bound_sums`), by pair of bounds or by bound --------------------------------------------
BOUND_PRODUCTS = {  # by power of r
    2: Quantity("bound_products", blocks=Blocks.FIXED, power=2, **_SIZE),
    1: Quantity("bound_products_r", blocks=Blocks.FIXED, power=2, **_REWARD),
    0: Quantity("bound_products_1", blocks=Blocks.FIXED, power=2),
}
BOUND_GAINS = Quantity("bound_gains", blocks=Blocks.FIXED, power=1, **_SIZE)
BOUND_COUNT = Quantity("bound_count", power=1)

# -- by bin of log w (`weight_bins`), cells × bins ------------------------------------------------------------------
BIN_DISPLAYS = Quantity("bins n", blocks=Blocks.FIXED)
BIN_WEIGHTS = Quantity("bins w", blocks=Blocks.FIXED)
BIN_REWARDS = Quantity("bins r", blocks=Blocks.FIXED, **_REWARD)
BIN_WEIGHTED_REWARDS = Quantity("bins wr", blocks=Blocks.FIXED, **_REWARD)
BIN_SQUARED_REWARDS = Quantity("bins r2", blocks=Blocks.FIXED, **_SIZE)
BIN_SQUARED_WEIGHTED_REWARDS = Quantity("bins wr2", blocks=Blocks.FIXED, **_SIZE)

# -- how old rewards were (`age_sums`), by reward column × bin of ages ----------------------------------------------
_AGES: dict[str, Any] = {"blocks": Blocks.FIXED, "needs_all": True}
AGES_OF_REWARDS = Quantity("ages of rewards", **_AGES)
AGES_OF_WAITING = Quantity("ages of waiting", **_AGES)
LEFT_OUT_OF_WINDOW = Quantity("left out of window", needs_all=True)
LATE_REWARDS = Quantity("late rewards", **_AGES)
FIRST_READ = Quantity("first read", merge=Merge.SMALLEST, needs_all=True)
LAST_READ = Quantity("last read", merge=Merge.LARGEST, needs_all=True)
