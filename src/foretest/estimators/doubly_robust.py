"""DR: a reward model as a control variate."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.estimators.base import CapSettings, Estimator, Sums, ratio
from foretest.records import dataclass
from foretest.weights.weightings import Uncapped, Weighting


class RewardModel(Protocol):
    """A user's model of the reward of a ranking in a display; `columns`, if it has them, are read from the log."""

    def predict(self, displays: Displays, rankings: Ragged) -> Floats: ...


@dataclass(frozen=True, kw_only=True)
class DR(Estimator):
    """Doubly robust: importance sampling of what a reward model misses, plus what the model predicts.

    Σ [(r − r̂(a,x)) w + E_t r̂(A,x)] / n  (Dudík et al. 2011; the paper's text lacks 1/n).

    Without a model r̂ is the context-only V(x) (Williams 1992), whose expectation is V(x) itself. With a model on
    (display, ranking), the expectation is the mean over a few draws from the treatment, which is unbiased.

    >>> import foretest as ft
    >>> ft.DR()
    DR(name=None, model=None, draws=8)
    """

    key: ClassVar[str] = "dr"
    uses_value: ClassVar[bool] = True
    model: RewardModel | None = None  # an object with `predict(displays, rankings)`; default: V(x)
    draws: int = 8  # rankings drawn from the treatment for the mean of a model's predictions

    def __post_init__(self) -> None:
        if isinstance(self.draws, bool) or not isinstance(self.draws, int) or self.draws < 1:
            raise BadInput(f"draws = {self.draws!r}: expected a whole number of at least 1.")

    def weighting(self, analysis: CapSettings) -> Weighting:
        return Uncapped()

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return np.asarray(sums.unit * ratio(sums.hr - sums.hv, sums.n) + ratio(sums.v, sums.n))
