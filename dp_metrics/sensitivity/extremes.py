"""The most extreme records, and the metric with records clipped at any level.

Two facts let a mechanism draw the scale of its noise. Let y_1 >= y_2 >= ... >= 0 be the largest losses, or
the distances between the j-th largest and the j-th smallest value. Between neighbours y'_j <= y_(j-1) and
y'_j >= y_(j+1), so y_(k-l) and y_(k+l) are output bounds of y_k. And for each level C > 0 there is a *clipped
sum* T, at most n times the metric, that grows by 0 to C when a record is added.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, TypeAlias

import numpy as np

from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.sensitivity.aggregates import ByLevel, LossAggregate, VarianceAggregate, WeightedLossAggregate
from dp_metrics.sensitivity.exact import (
    LEVELS,
    UNIT_BITS,
    level_of,
    level_units,
    rounded_quotient,
    rounded_quotients,
    to_units,
)
from dp_metrics.sensitivity.trimmed_variance import LeastSpreads, clipped_squares

__all__ = ["Extremes", "SumsBelow", "loss_extremes", "spread_extremes", "sums_below_level"]

SumsBelow: TypeAlias = Callable[[float], tuple[int, int]]
"""Given a level, the exact sum of the values below it, in units of 2**-1074, and how many are not."""


@dataclass(frozen=True, repr=False, eq=False)
class Extremes:
    """The most extreme records of a data set, in descending order, and its clipped sums.

    The values, the clipped sums and a private number of records are private data; the rest is public.

    Parameters
    ----------
    values : ndarray
        y_1, y_2, ...; 0 beyond the last.
    limit : float
        Public limit of the values.
    monotonic : bool
        True if between neighbours all y_j move in one direction.
    are_widths : bool
        Whether the square of a value, not the value, is what such a record adds to n times the metric.
    clipped_sum : callable
        The clipped sum at a value of y, or its square if these are widths, as a Fraction.
    private_n : int or None
        The number of records, where it is private.
    """

    values: Floats
    limit: float
    monotonic: bool
    are_widths: bool
    clipped_sum: Callable[[Fraction], Fraction]
    private_n: int | None

    def facts(self) -> tuple[Any, ...]:
        """Return all that is public."""
        return self.limit, self.monotonic, self.are_widths, self.private_n is None

    @classmethod
    def of_nothing(cls, limit: float, monotonic: bool, are_widths: bool, n_is_public: bool) -> Self:
        """Return extremes with these public facts and nothing of the data."""
        private_n = None if n_is_public else 0
        return cls(np.zeros(1), limit, monotonic, are_widths, lambda level: Fraction(0), private_n)


def loss_extremes(
    aggregate: LossAggregate | WeightedLossAggregate, count: int, sums_below: SumsBelow, *, private_n: bool
) -> Extremes:
    """Return the extremes of a mean of losses, or of a weighted mean.

    A term of a weighted mean is counted n / W times, W the total weight: so it moves the mean by its value
    over n, as a loss moves the plain mean. The limit is that of the largest public limit of a term: the cap
    of one loss would be too low.

    The clipped sum at a level between two public ones is interpolated between the sums of min(v, level) at
    these, so that a summary can know it from a count and a sum for each public level.
    """
    n, weight = aggregate.n, aggregate.weight
    values, limit = aggregate.largest[:count], aggregate.limit
    if isinstance(aggregate, WeightedLossAggregate):
        values = rounded_quotients((n * term for term in to_units(values)), weight)
        limit = MAX_FLOAT
        if aggregate.limits is not None:
            limit = rounded_quotient(n * to_units(np.array([aggregate.largest_limit]))[0], weight)

    def clipped_sum(level: Fraction) -> Fraction:
        if weight == n << UNIT_BITS or n == 0:
            return _interpolated(aggregate, level, sums_below)
        ratio = Fraction(n << UNIT_BITS, weight)
        return ratio * _interpolated(aggregate, level / ratio, sums_below)

    return Extremes(
        values,
        limit,
        monotonic=True,
        are_widths=False,
        clipped_sum=clipped_sum,
        private_n=n if private_n else None,
    )


def spread_extremes(
    aggregate: VarianceAggregate,
    count: int,
    least: LeastSpreads,
    in_order: Callable[[], Floats],
    *,
    private_n: bool,
) -> Extremes:
    """Return the distances between the j-th largest and the j-th smallest value, j = 1, 2, ...

    Where one record replaces another both values may move in one direction, and the distance either way:
    (0, 2, 2, 3) and (0, 1, 2, 2). Where a record is added each distance grows or stays.
    """
    limit = MAX_FLOAT
    with np.errstate(over="ignore"):
        if aggregate.bounds is not None:
            limit = float(np.minimum(np.float64(aggregate.bounds[1]) - aggregate.bounds[0], MAX_FLOAT))
        # beyond the middle of the data the difference is negative
        values = np.clip(aggregate.largest[:count] - aggregate.smallest[:count], 0.0, limit)

    def clipped_sum(width: Fraction) -> Fraction:
        return clipped_squares(aggregate, least, width, in_order)

    return Extremes(
        values,
        limit,
        monotonic=private_n,
        are_widths=True,
        clipped_sum=clipped_sum,
        private_n=aggregate.n if private_n else None,
    )


def sums_below_level(aggregate: LossAggregate | WeightedLossAggregate, level: float) -> tuple[int, int]:
    """Return the sum of the values below a public level, and how many are not, from the sums by level."""
    by_level: ByLevel = aggregate.by_level or {}
    first = level_of(level)
    total = sum(part for number, (_, part) in by_level.items() if number < first)
    return total, sum(count for number, (count, _) in by_level.items() if number >= first)


def _interpolated(
    aggregate: LossAggregate | WeightedLossAggregate, level: Fraction, sums_below: SumsBelow
) -> Fraction:
    """Return the clipped sum of the values at a level of any kind."""
    at_most = rounded_quotient(level.numerator, level.denominator)
    if at_most > level:
        at_most = float(np.nextafter(at_most, 0.0))
    number = level_of(at_most)
    low, high = level_units(number), level_units(number + 1)
    below = _clipped(aggregate, low, sums_below)
    above = _clipped(aggregate, high, sums_below) if number + 1 < LEVELS else aggregate.total
    # below + (above - below) (level - low) / (high - low), as one fraction of whole numbers
    away = (level.numerator << UNIT_BITS) - low * level.denominator
    unit = (high - low) * level.denominator
    return Fraction(below * unit + (above - below) * away, unit << UNIT_BITS)


def _clipped(aggregate: LossAggregate | WeightedLossAggregate, units: int, sums_below: SumsBelow) -> int:
    """Return the sum of min(v, level) in units of 2**-1074, from the largest values if they tell it."""
    level, largest = rounded_quotient(units, 1 << UNIT_BITS), aggregate.largest
    if largest.size == aggregate.n or (largest.size and largest[-1] <= level):
        above = to_units(largest[: np.searchsorted(-largest, -level)])
        return aggregate.total - sum(above) + len(above) * units
    total, others = sums_below(level)
    return total + others * units
