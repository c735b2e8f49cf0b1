"""What is released for an interval for a mean, and how the interval follows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from dp_metrics.inputs.floats import MAX_FLOAT
from dp_metrics.inputs.options import check_confidence
from dp_metrics.inputs.shape import Records
from dp_metrics.release.interval import Interval
from dp_metrics.release.normal_limits import mean_half_width, normal_note
from dp_metrics.release.parts.capped_sums import OF_SUMS, CappedSumsOf
from dp_metrics.release.parts.order_statistic import OrderOf
from dp_metrics.release.parts.part import IntegersOf
from dp_metrics.release.plan import Plan
from dp_metrics.release.released import POPULATION_NOTE, ReleasedNumbers
from dp_metrics.sensitivity.aggregates import VarianceAggregate
from dp_metrics.sensitivity.exact import float_units, rounded_quotient
from dp_metrics.sensitivity.noisy_sums import FINENESS

_CAP = Fraction(99, 100)  # the quantile that becomes a cap
_LEAST_RECORDS = 100  # n * epsilon below which a cap is useless: as measured
_NEXT_TO_0 = 1e-5
_NO_CAP = (
    "The cap came out next to 0, where its search begins: hardly any loss is above 0, or there are too few "
    "records. Do not conclude that the loss is small; take a public cap."
)


def mean_interval_plan(
    reader: Callable[[Records], Records],
    *,
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
    confidence : float
        Of the interval.
    about : str
        What the interval is about.
    limit : float, default=1.0
        Public and positive.
    low, high : float, default=0.0, 1.0
        What a mean of 0, and a mean at the limit, is called in the interval.
    """
    scale = _Scale(check_confidence(confidence), about, low, high)
    part = IntegersOf(partial(_sums, limit=limit), FINENESS + 1)
    return Plan((part,), reader, partial(_normal_interval, scale=scale))


def capped_mean_plan(reader: Callable[[Records], Records], *, confidence: float) -> Plan:
    """Return the plan of an interval for the mean of losses, each clipped to a cap that is bought first.

    Parameters
    ----------
    reader : callable
        Returns records whose only array holds numbers that are at least 0, one per person.
    confidence : float
        Of the interval.
    """
    order = OrderOf(np.asarray, _rank_of_cap, MAX_FLOAT)
    part = CappedSumsOf(order, _sums, FINENESS + 1, _LEAST_RECORDS)
    return Plan((part,), reader, partial(_capped_interval, confidence=check_confidence(confidence)))


def _rank_of_cap(n: int) -> int:
    return math.ceil(_CAP * n)


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


def _normal_interval(released: ReleasedNumbers, *, scale: _Scale) -> Interval:
    return _interval_of_sums(released.values[0], released, released.epsilon, scale)


def _capped_interval(released: ReleasedNumbers, *, confidence: float) -> Interval:
    cap, *sums = released.values[0]
    about = f"The mean of the loss, errors above {cap:g} counted as {cap:g}, {POPULATION_NOTE}"
    scale = _Scale(confidence, about, 0.0, cap)
    found = _interval_of_sums(sums, released, released.epsilon * OF_SUMS, scale)
    return replace(found, note=f"{_NO_CAP} {found.note}") if cap < _NEXT_TO_0 else found


def _interval_of_sums(
    sums: Sequence[int], released: ReleasedNumbers, epsilon: Fraction, scale: _Scale
) -> Interval:
    """Return the interval of two noisy sums that cost this epsilon."""
    n = released.public_n
    assert n is not None
    m, d = (rounded_quotient(number, n * FINENESS) for number in sums)
    m = min(max(m, 0.0), 1.0)
    noise = 1 / max(n * float(epsilon), math.ulp(0.0))
    half = mean_half_width(m, d, n, (noise, noise), scale.miss)
    return scale.interval(m - half, m + half, m, normal_note(n))
