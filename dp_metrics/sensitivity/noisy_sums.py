"""Whole numbers that a record moves by little, and the metric that follows from them.

Where the number of records is private, so is the divisor of a mean. A record that counts for a part p of the
limit adds p to one sum and 1 - p to another: together it moves them by 1, whatever it is, and their quotient
is the mean. Likewise a record at t
between 0 and 1 adds (1 - t)^2, 2 t (1 - t) and t^2, which are 1 together, and the sums tell the variance (the
Bezier mechanism, arXiv:2509.04919).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from dp_metrics.inputs.options import MAX_FLOAT, Floats
from dp_metrics.sensitivity.aggregates import VarianceAggregate
from dp_metrics.sensitivity.exact import (
    UNIT_BITS,
    rounded_quotient,
    to_units,
)

_SQUARABLE = 1e154  # numbers below have a square that is a float
FINENESS = 1 << 20
"""Steps of the lattice in the most that one record adds, or in one global sensitivity."""


@dataclass(frozen=True, repr=False, eq=False)
class Sums:
    """Whole numbers with a public sensitivity, and what follows from them.

    Parameters
    ----------
    values : tuple of int
        Sums over the records in steps of the lattice: private.
    sensitivity : int
        By how much the values of neighbours differ at most, summed over their absolute differences: public.
    combine : callable
        The metric of as many arrays of noisy values, of any size and sign; public.
    limit : float
        Public limit of the metric.
    value : float
        The metric itself, without rounding to the lattice: private.
    rises : tuple of bool, default=()
        For each of the values whether the metric rises with it, or falls; empty if it does neither.
    fineness : int, default=FINENESS
        What each record adds to all values together, in steps: public.
    """

    values: tuple[int, ...]
    sensitivity: int
    combine: Callable[..., Floats]
    limit: float
    value: float
    rises: tuple[bool, ...] = ()
    fineness: int = FINENESS


def ratio_sums(total: int, most: int, n: int, scale: float, limit: float) -> Sums:
    """Return a sum to which each of n records adds at most `most`, and what is left of n times that.

    Parameters
    ----------
    total, most : int
        The sum, and what a record adds at most: whole numbers of any unit.
    n : int
        Number of records: private.
    scale : float
        What a record adds at most, in units of the metric.
    limit : float
        Public limit of the metric.
    """
    # rounding to nearest commutes with shifts by whole steps: if a record comes or goes, the first changes by
    # 0 to `FINENESS`, and the second by the rest of it
    steps = (2 * FINENESS * total + most) // (2 * most)
    return Sums(
        (steps, n * FINENESS - steps),
        FINENESS,
        partial(_ratio, scale=scale, limit=limit, least=float(FINENESS)),
        limit,
        scale * rounded_quotient(total, max(n, 1) * most),
        (True, False),
    )


def variance_sums(aggregate: VarianceAggregate) -> Sums:
    """Return the three sums of a variance of values with public bounds.

    Rounding two of them down, and giving the rest to the third, moves each by less than a step: together a
    record moves them by at most two steps more.
    """
    assert aggregate.bounds is not None
    low, high = to_units(np.array(aggregate.bounds))
    n, width = aggregate.n, high - low
    total = aggregate.total - n * low
    squares = aggregate.squares - low * (2 * aggregate.total - n * low)
    last = squares * FINENESS // width**2
    first = (squares - 2 * width * total + n * width**2) * FINENESS // width**2
    span = rounded_quotient(width, 1 << UNIT_BITS)
    return Sums(
        (first, n * FINENESS - first - last, last),
        FINENESS + 2,
        partial(_bezier_variance, width=span),
        rounded_quotient(width**2, 4 << 2 * UNIT_BITS),
        rounded_quotient(n * squares - total**2, max(n, 1) ** 2 << 2 * UNIT_BITS),
    )


def _ratio(part: Floats, rest: Floats, *, scale: float, limit: float, least: float) -> Floats:
    part = np.maximum(part, 0.0)
    # one record at least: the mean of none is 0
    share = part / np.maximum(part + np.maximum(rest, 0.0), least)
    mean: Floats = np.minimum(share * scale, limit)
    return mean


def _bezier_variance(first: Floats, middle: Floats, last: Floats, *, width: float) -> Floats:
    whole = np.maximum(first + middle + last, FINENESS)
    mean, square = np.clip((middle / 2 + last) / whole, 0.0, 1.0), last / whole
    # a distribution on [0, 1] has the most variance, given its mean, if it lives on the ends
    share = np.clip(square - mean**2, 0.0, mean * (1.0 - mean))
    # Python raises for the square of a larger width, and a share of 0 must not meet an infinite one
    squared = share * width**2 if width < _SQUARABLE else share * width * width
    variance: Floats = np.minimum(squared, MAX_FLOAT)
    return variance
