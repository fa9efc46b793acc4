"""What a manifest may say of an online test in place of the treatment's log: sums of both arms, or the uplift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from foretest.errors import BadInput, check_integer, check_number, is_finite_number
from foretest.settings.unknown_keys import refuse_unknown

UNITS, ROWS = KINDS = ("units", "rows")  # what n, mean and variance are of
FIRST = ""  # in place of a metric's name: the first metric of the settings
ARMS = ("control", "treatment")
UPLIFT = ("uplift", "std_error")


class ArmSums(NamedTuple):
    """One arm: how many units (or rows), and the mean and the variance (over n − 1) of the metric over them."""

    n: int
    mean: float
    variance: float


class ArmResults(NamedTuple):
    """An online test as the sums of both arms."""

    control: ArmSums
    treatment: ArmSums
    by: str = UNITS


class UpliftResult(NamedTuple):
    """An online test as its relative uplift and the standard error of that."""

    uplift: float
    std_error: float


OnlineResult = ArmResults | UpliftResult


def read_online(where: str, table: Any) -> dict[str, OnlineResult]:
    """The results of a test by metric, from the `online` table of a manifest; `FIRST` is the name where none is
    given."""
    if not isinstance(table, Mapping) or not table:
        raise BadInput(
            f"{where} = {table!r}: expected a table, as in {{uplift = 0.02, std_error = 0.01}} or {{control = {{n ="
            " 1000, mean = 0.10, variance = 0.09}, treatment = {n = 1000, mean = 0.11, variance = 0.10}}."
        )
    if all(_is_result(value) for value in table.values()):
        return {name: _result(f"{where}.{name}", result) for name, result in table.items()}
    return {FIRST: _result(where, table)}


def _is_result(value: Any) -> bool:
    """Is it the table of a metric, and not of an arm?"""
    return isinstance(value, Mapping) and any(key in value for key in (*ARMS, *UPLIFT))


def _result(where: str, table: Mapping[str, Any]) -> OnlineResult:
    refuse_unknown(where, table, [*ARMS, "by", *UPLIFT])
    arms, uplift = [key for key in ARMS if key in table], [key for key in UPLIFT if key in table]
    if arms and uplift:
        raise BadInput(f"{where} has {arms[0]} and {uplift[0]}: give the sums of both arms, or the uplift, not both.")
    keys = UPLIFT if uplift else ARMS
    for key in keys:
        if key not in table:
            raise BadInput(f"{where}: {key} is missing: give {' and '.join(keys)}.")
    if uplift:
        if "by" in table:
            raise BadInput(f"{where}.by is for the sums of two arms, and the uplift is given: leave it out.")
        return uplift_result(f"{where}.", table["uplift"], table["std_error"])
    by = counted_by(f"{where}.", table.get("by", UNITS))
    control, treatment = (_arm(f"{where}.{arm}", table[arm]) for arm in ARMS)
    return ArmResults(control, treatment, by)


def _arm(where: str, table: Any) -> ArmSums:
    if not isinstance(table, Mapping):
        raise BadInput(f"{where} = {table!r}: expected n, mean and variance, as in {{n = 1000, mean = 0.1, variance"
                       " = 0.09}.")  # fmt: skip
    refuse_unknown(where, table, list(ArmSums._fields))
    for key in ArmSums._fields:
        if key not in table:
            raise BadInput(f"{where}: {key} is missing: give n, mean and variance.")
    return arm_sums(f"{where}.", *(table[key] for key in ArmSums._fields))


def counted_by(where: str, by: Any) -> str:
    """What n, mean and variance are of, checked."""
    if by not in KINDS:
        raise BadInput(f'{where}by = {by!r}: expected "units" or "rows", what n, mean and variance are of.')
    return str(by)


def arm_sums(where: str, n: Any, mean: Any, variance: Any) -> ArmSums:
    """The checked sums of one arm; messages name them with `where` before."""
    n = int(n) if isinstance(n, float) and is_finite_number(n) and n.is_integer() else n
    check_integer(f"{where}n", n, 2)
    if not is_finite_number(mean) or mean == 0:
        raise BadInput(f"{where}mean = {mean!r}: expected a number other than 0, or there is no relative uplift.")
    check_number(f"{where}variance", variance, at_least=0.0)
    return ArmSums(int(n), float(mean), float(variance))


def uplift_result(where: str, uplift: Any, std_error: Any) -> UpliftResult:
    """A checked relative uplift with its standard error; messages name them with `where` before."""
    check_number(f"{where}uplift", uplift, above=-1.0)
    if uplift >= 1.0:
        raise BadInput(
            f"{where}uplift = {uplift!r} would be {uplift:+.0%}: an uplift is a share, as in 0.02 for 2 %. If it is no"
            " percentage, give the sums of both arms."
        )
    check_number(f"{where}std_error", std_error, above=0.0)
    return UpliftResult(float(uplift), float(std_error))
