"""What a history knows of one A/B test: estimates offline and online, the noise they share, its unsupported parts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from datetime import date
from typing import Any

from foretest.calibration.estimate import Unsupported
from foretest.files import json_ready
from foretest.history.fields import Damaged, checked, checked_audit
from foretest.history.manifest import Entry
from foretest.results.audit import FAIL
from foretest.results.result import Estimate


@dataclass(frozen=True)
class Noise:
    """Standard errors of the relative uplifts offline and online, and their covariance; NaN where there is none.

    Where results stand in place of a log the covariance is not known, but that it lies within ±`covariance_bound`: it
    is then taken to be 0.
    """

    offline_error: float
    online_error: float
    covariance: float
    covariance_bound: float | None = None  # None where the covariance is known

    @property
    def variance(self) -> float:
        """The variance of online − offline, s² = se_x² + se_y² − 2 cov."""
        return self.offline_error**2 + self.online_error**2 - 2.0 * self.covariance

    def at_end(self, end: int) -> Noise:
        """With the covariance as it is (0), or where it is not known at the lower (−1) or the upper end (1)."""
        return replace(self, covariance=self.covariance + end * (self.covariance_bound or 0.0))

    @classmethod
    def bounded(cls, offline_error: float, online_error: float, shared_error: float) -> Noise:
        """With a covariance of which only a bound is known; `shared_error` is that of `shared_noise`: 0 where nothing
        is shared, so that the covariance is known."""
        return cls(offline_error, online_error, 0.0, offline_error * shared_error if shared_error > 0.0 else None)

    def of_calibrated(self, offline_error: float, covariance: float) -> Noise:
        """The noise of another offline estimate of the same log; `covariance` counts where it is known."""
        if self.covariance_bound is None:
            return Noise(offline_error, self.online_error, covariance)
        shared_error = self.covariance_bound / self.offline_error if self.offline_error > 0.0 else 0.0
        return Noise.bounded(offline_error, self.online_error, shared_error)


@dataclass(frozen=True)
class UnsupportedPart(Unsupported):
    """The unsupported term of one estimator in a past test, with all that a calibration of the test needs."""

    online_covariance: float  # of T and the online uplift
    weight_bound: float
    confidence_level: float
    enough: bool  # evidence for normal limits
    reasons: list[str]


@dataclass(frozen=True)
class BoundPath:
    """Offline uplifts along the bound on the weights of `point-ncis-adaptive`."""

    weight_bound: float  # the one that the test used
    bounds: list[float]
    rel_effect_size: list[float | None]


@dataclass(frozen=True)
class PastMetric:
    """One metric of a past test; offline estimates, noise and unsupported parts are by estimator."""

    online: Estimate
    offline: dict[str, Estimate]
    noise: dict[str, Noise]
    unsupported: dict[str, UnsupportedPart]
    bounds: BoundPath | None

    def with_estimate(self, label: str, estimate: Estimate, noise: Noise) -> PastMetric:
        """This metric with one more offline estimate."""
        return replace(self, offline={**self.offline, label: estimate}, noise={**self.noise, label: noise})


@dataclass(frozen=True)
class Measurement:
    """What the logs of one test show: its metrics, the outcomes of the audit of the control's log, its first and last
    day if it has any, what a reader must know of it, and the outcomes of the audit of the treatment's log."""

    metrics: dict[str, PastMetric]
    audit: dict[str, Any] | None
    days: list[str]
    notes: list[str] = field(default_factory=list)
    treatment_audit: dict[str, Any] | None = None  # None without a log of the treatment, or where it cannot be audited

    def to_dict(self) -> dict[str, Any]:
        """JSON content; `from_dict` reads it back."""
        document: dict[str, Any] = json_ready(asdict(self))
        return document

    @classmethod
    def from_dict(cls, document: Any) -> Measurement:
        """From JSON content, every field of which is checked."""
        measurement: Measurement = checked(cls, "measurement", document)
        checked_audit("audit", measurement.audit)
        checked_audit("treatment_audit", measurement.treatment_audit)
        for day in measurement.days:
            date.fromisoformat(day)
        for metric in measurement.metrics.values():
            if metric.bounds is not None and len(metric.bounds.bounds) != len(metric.bounds.rel_effect_size):
                raise Damaged("bounds and their uplifts are not as many")
        return measurement


@dataclass(frozen=True)
class PastTest:
    """One A/B test of a history; `date` is the day it began, as the manifest says or else its logs show."""

    name: str
    date: str | None
    last_date: str | None
    metrics: dict[str, PastMetric]
    audit: dict[str, Any] | None  # the outcomes, of the control's log
    notes: list[str] = field(default_factory=list)
    treatment_audit: dict[str, Any] | None = None

    @property
    def is_verified(self) -> bool:
        """Does no log fail its audit, or do the settings say that verdicts stand all the same? Else offline and online
        are not about the same two policies, and nothing is learned from how far they are apart."""
        return not any(
            audit["outcome"] == FAIL and not audit["ignored"] for audit in (self.audit, self.treatment_audit) if audit
        )

    @classmethod
    def of(cls, entry: Entry, measurement: Measurement) -> PastTest:
        """A test of the manifest with what its logs show."""
        first, last = (measurement.days[0], measurement.days[-1]) if measurement.days else (None, None)
        return cls(
            entry.name, entry.date or first, last, measurement.metrics, measurement.audit, measurement.notes,
            measurement.treatment_audit,
        )  # fmt: skip

    def with_metric(self, name: str, metric: PastMetric) -> PastTest:
        """This test with another content of one metric."""
        return replace(self, metrics={**self.metrics, name: metric})

    def to_dict(self) -> dict[str, Any]:
        """JSON content."""
        document: dict[str, Any] = json_ready(asdict(self))
        return document
