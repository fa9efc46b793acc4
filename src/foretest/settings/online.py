"""The table [online]: what an online test is given beside its columns and its analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foretest.errors import BadInput, check_integer
from foretest.records import dataclass
from foretest.settings.key_help import explained

if TYPE_CHECKING:
    from foretest.settings.log_columns import LogColumns

#: units, of both arms, at which an always-valid interval is tightest unless told otherwise: at a tenth of them it is
#: 1.3 times, at a hundred times as many 1.2 times as wide as the tightest for that number
SEQUENTIAL_UNITS = 10_000


@dataclass(frozen=True)
class Online:
    """The settings of the online test of the same change."""

    split: tuple[float, float] = explained((0.5, 0.5), "the designed shares of units, the control's first")
    covariate: str | None = explained(
        None, "a column with one number per unit from before the test, which the uplift is adjusted for"
    )
    sequential: bool = explained(False, "give intervals that stay valid however often the test is looked at")
    sequential_units: int = explained(
        SEQUENTIAL_UNITS, "the number of units, of both arms, at which these are tightest; chosen before the test"
    )

    def __post_init__(self) -> None:
        shares = self.split
        if not isinstance(shares, list | tuple) or len(shares) != 2 or not all(
            isinstance(s, int | float) and not isinstance(s, bool) and 0 < s < 1 for s in shares
        ) or abs(sum(shares) - 1.0) > 1e-9:  # fmt: skip
            raise BadInput(f"[online] split = {shares!r}: expected two shares that sum to 1, as in [0.5, 0.5].")
        object.__setattr__(self, "split", tuple(shares))
        if self.covariate is not None and (not isinstance(self.covariate, str) or not self.covariate):
            raise BadInput(f"[online] covariate = {self.covariate!r}: expected the name of a column.")
        if not isinstance(self.sequential, bool):
            raise BadInput(f"[online] sequential = {self.sequential!r}: expected true or false.")
        check_integer("[online] sequential_units", self.sequential_units, 2)


def check_covariate(log: LogColumns, online: Online) -> None:
    """Refuse a covariate that is a reward: it is of the test itself, and would take the effect out of the uplift."""
    if online.covariate in log.rewards:
        raise BadInput(
            f'[online] covariate = "{online.covariate}" is also a reward: a covariate is from before the test, and a'
            " reward would take its own effect out of the uplift. Name the column of the time before, or leave it out."
        )


def online_dict(online: Online) -> dict[str, Any]:
    """The table as a settings file would have it, for result.json: the split, and what else is asked for."""
    return {
        "split": list(online.split),
        **({} if online.covariate is None else {"covariate": online.covariate}),
        **({"sequential": True, "sequential_units": online.sequential_units} if online.sequential else {}),
    }
