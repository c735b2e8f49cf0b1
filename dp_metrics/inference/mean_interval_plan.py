"""What is released for an interval for a mean, and how the interval follows."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dp_metrics.inputs.options import check_choice, check_confidence
from dp_metrics.inputs.shape import Records
from dp_metrics.release.interval import Interval
from dp_metrics.release.noisy_binomial import noisy_binomial_limits
from dp_metrics.release.normal_limits import mean_half_width, normal_note
from dp_metrics.release.parts.part import IntegersOf
from dp_metrics.release.parts.rounded_count import RoundedOf
from dp_metrics.release.plan import Plan
from dp_metrics.release.released import Released
from dp_metrics.sensitivity.aggregates import VarianceAggregate
from dp_metrics.sensitivity.exact import float_units, rounded_quotient
from dp_metrics.sensitivity.noisy_sums import FINENESS

__all__ = ["mean_interval_plan"]


def mean_interval_plan(
    reader: Callable[[Records], Records],
    *,
    method: str,
    confidence: float,
    about: str,
    limit: float = 1.0,
    low: float = 0.0,
    high: float = 1.0,
) -> Plan:
    """Return the plan of an interval for the mean, in all people, of numbers from 0 to a limit.

    Parameters
    ----------
    reader : callable
        Returns records whose only array holds numbers from 0 to the limit, one per person.
    method : {"normal", "exact"}
        As in `private_mean_interval`.
    confidence : float
        Of the interval.
    about : str
        What the interval is about.
    limit : float, default=1.0
        Public and positive.
    low, high : float, default=0.0, 1.0
        What a mean of 0, and a mean at the limit, is called in the interval.
    """
    check_choice(method, "method", ("normal", "exact"))
    scale = _Scale(check_confidence(confidence), about, low, high)
    if method == "exact":
        return Plan((RoundedOf(limit),), reader, partial(_exact_interval, scale=scale))
    part = IntegersOf(partial(_sums, limit=limit), FINENESS + 1)
    return Plan((part,), reader, partial(_normal_interval, scale=scale))


@dataclass(frozen=True)
class _Scale:
    """Confidence and meaning of an interval, and the numbers that stand for a mean of 0 and of 1."""

    confidence: float
    about: str
    low: float
    high: float

    @property
    def miss(self) -> float:
        return 1 - self.confidence

    def interval(self, lower: float, upper: float, middle: float, note: str = "") -> Interval:
        """Return the interval, given its limits on the scale from 0 to 1."""
        ends = [self.low * (1 - x) + self.high * x for x in (max(lower, 0.0), min(upper, 1.0), middle)]
        return Interval(ends[0], ends[1], self.confidence, self.about, note, ends[2])


def _sums(records: Records, limit: float) -> tuple[int, int]:
    """Return the sums of v and of v (1 - v), for v = value / limit, in steps of the lattice.

    Notes
    -----
    A record moves the two sums by at most 1 together: |u - w| + |u (1-u) - w (1-w)| is |u - w| times
    1 + |1 - u - w|, which is |(1-u)^2 - (1-w)^2| or |u^2 - w^2|. In steps that is at most FINENESS; rounding
    either sum to the nearest step, from the exact sums, adds less than 1 to its change. So the whole numbers
    move by less than FINENESS + 2, which is at most FINENESS + 1.
    """
    aggregate = VarianceAggregate.from_data(records.arrays[0], capacity=0, bounds=(0.0, limit))
    cap = float_units(limit)
    rest = cap * aggregate.total - aggregate.squares
    return _in_steps(aggregate.total, cap), _in_steps(rest, cap * cap)


def _in_steps(total: int, unit: int) -> int:
    return (2 * FINENESS * total + unit) // (2 * unit)


def _normal_interval(released: Released, *, scale: _Scale) -> Interval:
    n = _records(released)
    m, d = (rounded_quotient(number, n * FINENESS) for number in released.values[0])
    m = min(max(m, 0.0), 1.0)
    noise = 1 / max(n * float(released.epsilon), math.ulp(0.0))
    half = mean_half_width(m, d, n, (noise, noise), scale.miss)
    return scale.interval(m - half, m + half, m, normal_note(n))


def _exact_interval(released: Released, *, scale: _Scale) -> Interval:
    n, count = _records(released), released.values[0]
    miss = scale.miss / 2
    lower, upper = noisy_binomial_limits(count, n, float(released.epsilon), miss_low=miss, miss_high=miss)
    return scale.interval(lower, upper, min(max(count, 0), n) / n)


def _records(released: Released) -> int:
    """Return the number of records, which is public wherever such a plan is carried out."""
    assert released.public_n is not None
    return released.public_n
