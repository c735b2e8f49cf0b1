"""The most extreme records, and the metric with records clipped at any level.

Two facts let a mechanism draw the scale of its noise. Let y_1 >= y_2 >= ... >= 0 be the largest losses, or
the distances between the j-th largest and the j-th smallest value. Between neighbours y'_j <= y_(j-1) and
y'_j >= y_(j+1), so y_(k-l) and y_(k+l) are output bounds of y_k. And for each public C there is a *clipped
sum* T, at most n times the metric, that grows by 0 to C when a record is added.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.sensitivity.aggregates import LossAggregate, VarianceAggregate, WeightedLossAggregate
from dp_metrics.sensitivity.exact import (
    LEVELS,
    UNIT_BITS,
    in_units,
    level_from,
    level_units,
    rounded_quotient,
    rounded_quotients,
    to_units,
)
from dp_metrics.sensitivity.trimmed_variance import LeastSpreads, clipped_squares

__all__ = ["Clipped", "Extremes", "SumsBelow", "loss_extremes", "spread_extremes", "sums_below_level"]

SumsBelow: TypeAlias = Callable[[int], tuple[int, int]]
"""Given the number of a public level, the exact sum of the values below it, and how many are not."""


class Clipped(NamedTuple):
    """A clipped sum, and what a record adds to it at most: whole numbers of one unit."""

    total: int  # T: private
    most: int  # C: public, as the unit is
    unit: Fraction


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
    clipped : callable
        The clipped sum for a positive y: C is at least y, or the square of y if these are widths.
    private_n : int or None
        The number of records, where it is private.
    """

    values: Floats
    limit: float
    monotonic: bool
    are_widths: bool
    clipped: Callable[[float], Clipped]
    private_n: int | None

    def facts(self) -> tuple[Any, ...]:
        """Return all that is public."""
        return self.limit, self.monotonic, self.are_widths, self.private_n is None

    @classmethod
    def of_nothing(cls, limit: float, monotonic: bool, are_widths: bool, n_is_public: bool) -> Self:
        """Return extremes with these public facts and nothing of the data."""
        private_n = None if n_is_public else 0
        return cls(np.zeros(1), limit, monotonic, are_widths, lambda y: Clipped(0, 1, Fraction(y)), private_n)


def loss_extremes(
    aggregate: LossAggregate | WeightedLossAggregate, count: int, sums_below: SumsBelow, *, private_n: bool
) -> Extremes:
    """Return the extremes of a mean of losses, or of a weighted mean.

    A term of a weighted mean is counted n / W times, W the total weight: so it moves the mean by its value
    over n, as a loss moves the plain mean. The limit is that of the largest public limit of a term: the cap
    of one loss would be too low.

    Values are clipped at the next public level, or at the limit, so that a summary can know the clipped sum
    from a count and a sum for each level.
    """
    n, weight = aggregate.n, aggregate.weight
    largest_limit: float | None
    if isinstance(aggregate, WeightedLossAggregate):
        values = rounded_quotients((n * term for term in to_units(aggregate.largest[:count])), weight)
        largest_limit = None if aggregate.limits is None else aggregate.largest_limit
    else:
        values, largest_limit = aggregate.largest[:count], aggregate.cap
    highest, limit = level_units(LEVELS), MAX_FLOAT
    if largest_limit is not None:
        highest = max(to_units(np.array([largest_limit]))[0], 1)  # bounds may be so close that it is 0
        limit = rounded_quotient(n * highest, weight) if n else rounded_quotient(highest, 1 << UNIT_BITS)
    # The scale is never used without records.
    scale = Fraction(weight, n << UNIT_BITS) if n else Fraction(1)
    unit = 1 / (scale * (1 << UNIT_BITS))

    def clipped(y: float) -> Clipped:
        wanted = Fraction(y) * scale
        at_least = rounded_quotient(wanted.numerator, wanted.denominator)
        if at_least < wanted:
            at_least = float(np.nextafter(at_least, np.inf))
        number = min(level_from(at_least), LEVELS)
        level = level_units(number)
        if level >= highest:
            return Clipped(aggregate.total, highest, unit)
        return Clipped(_sum_clipped_at(number, aggregate, sums_below), level, unit)

    return Extremes(
        values,
        limit,
        monotonic=True,
        are_widths=False,
        clipped=clipped,
        private_n=n if private_n else None,
    )


def _sum_clipped_at(
    number: int, aggregate: LossAggregate | WeightedLossAggregate, sums_below: SumsBelow
) -> int:
    """Return the sum of min(v, level) in units of 2**-1074, from the largest values if they tell it."""
    units, largest = level_units(number), aggregate.largest
    level = rounded_quotient(units, 1 << UNIT_BITS)
    if largest.size == aggregate.n or (largest.size and largest[-1] <= level):
        above = to_units(largest[: np.searchsorted(-largest, -level)])
        return aggregate.total - sum(above) + len(above) * units
    total, others = sums_below(number)
    return total + others * units


def sums_below_level(aggregate: LossAggregate | WeightedLossAggregate, number: int) -> tuple[int, int]:
    """Return the sum of the values below a public level, and how many are not, from the sums by level."""
    by_level = aggregate.by_level
    assert by_level is not None
    total = sum(in_units(level, part) for level, (_, part) in by_level.items() if level < number)
    return total, sum(count for level, (count, _) in by_level.items() if level >= number)


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
        # the difference is negative beyond the middle of the data
        values = np.clip(aggregate.largest[:count] - aggregate.smallest[:count], 0.0, limit)

    def clipped(width: float) -> Clipped:
        exact = Fraction(width)
        total, most = clipped_squares(aggregate, least, exact, in_order), exact * exact
        unit = Fraction(1, total.denominator * most.denominator)
        return Clipped(total.numerator * most.denominator, most.numerator * total.denominator, unit)

    return Extremes(
        values,
        limit,
        monotonic=private_n,
        are_widths=True,
        clipped=clipped,
        private_n=aggregate.n if private_n else None,
    )
