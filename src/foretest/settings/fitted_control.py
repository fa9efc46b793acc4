"""What settings of a control that is fitted from its log may not ask for."""

from __future__ import annotations

from foretest.errors import BadInput
from foretest.policies.base import Policy
from foretest.policies.fitted_parameter import is_to_fit, parameter_of
from foretest.policies.logging_mixture import ONE_CONTROL, loggers_of
from foretest.settings.analysis import BOUNDED
from foretest.settings.settings import Settings

#: why an estimator by exposure cannot run where its curve is fitted, and the control too
TWO_FITS = (
    "its examination curve would be fitted by a control that is fitted itself: give [analysis] examination numbers, as"
    " in [1.0, 0.6, 0.4], or the control's number."
)


def controls_to_fit(settings: Settings) -> dict[int, tuple[str, Policy]]:
    """The controls whose number is to be fitted, by their number among the loggers, with their names."""
    loggers = loggers_of(settings.control).loggers
    return {k: (name, policy) for k, (name, policy) in enumerate(loggers.items()) if is_to_fit(policy)}


def fitted_controls(settings: Settings) -> list[str]:
    """What is to be fitted, as the settings say it."""
    return [setting_text(name, policy) for name, policy in controls_to_fit(settings).values()]


def setting_text(name: str, policy: Policy) -> str:
    """A number to be fitted, as the settings have it."""
    parameter = parameter_of(policy)
    assert parameter is not None
    where = "[control]" if name == ONE_CONTROL else f"[[control]] '{name}'"
    return f'{where} {parameter.name} = "fit"'


def refuse_bounds_of_fit(interval: str, fitted: list[str]) -> None:
    """Refuse intervals that take no error of a fitted number."""
    if fitted and interval in BOUNDED:
        raise BadInput(
            f'interval = "{interval}" takes no error of {fitted[0]}: use "bootstrap" or "delta", or give the number.'
        )


def refuse_fitted_control(settings: Settings, reason: str) -> None:
    """Refuse a control that is to be fitted, where its number must be known beforehand."""
    for asked in fitted_controls(settings):
        raise BadInput(
            f"{asked} would differ from log to log, and {reason}: write the fitted number, as foretest run tells it."
        )
