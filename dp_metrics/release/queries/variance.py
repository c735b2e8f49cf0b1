"""The query of a variance."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.inputs.records import float_block
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._base import NEEDS_LIMIT
from dp_metrics.release.queries.query import AggregatedQuery, BoundsQuery, Needs
from dp_metrics.sensitivity.aggregates import VarianceAggregate
from dp_metrics.sensitivity.exact import in_blocks
from dp_metrics.sensitivity.extremes import spread_extremes
from dp_metrics.sensitivity.noisy_sums import Sums, variance_sums
from dp_metrics.sensitivity.output_bounds import OutputBounds, variance_bounds, variance_bounds_private_n
from dp_metrics.sensitivity.trimmed_variance import least_spreads

__all__ = ["MOST_VARIANCE_RANKS", "AggregatedVariance", "Variance"]

MOST_VARIANCE_RANKS = 4096
"""Ranks that a release of a variance uses at most: the windows of c ranks number c^2 / 2."""


@dataclass(frozen=True, repr=False, eq=False)
class Variance(BoundsQuery):
    """The population variance of x, clipped into the public bounds."""

    x: NDArray[Any]
    bounds: tuple[float, float] | None
    name: str = "x"

    mostly_noise = 100

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.x)

    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return the output bounds of the variance."""
        needs = _needs_of_variance(mechanism, epsilon, self.n, self.bounds, private_n)
        return self.aggregate(max(needs)).bounds(needs, private_n)

    def aggregate(self, capacity: int) -> "AggregatedVariance":
        """Return what a release needs to know of the records, if it asks for at most `capacity` ranks."""
        blocks = (float_block(block, self.name) for block in in_blocks(self.x))
        with np.errstate(all="ignore"):  # a warning would tell of the data
            return AggregatedVariance(
                VarianceAggregate.from_blocks(blocks, capacity=capacity, bounds=self.bounds), self._in_order
            )

    def sums(self) -> Sums:
        """Return the sums that tell a variance."""
        return self.aggregate(0).sums()

    def summary(self, capacity: int) -> "AggregatedVariance":
        """Return what a release needs to know of the records, which are not looked at again."""
        return AggregatedVariance(self.aggregate(capacity).aggregate)

    def _in_order(self) -> Floats:
        """Return all values, clipped, in ascending order."""
        values = float_block(self.x, self.name)
        return np.sort(values if self.bounds is None else np.clip(values, *self.bounds))


@dataclass(frozen=True, repr=False, eq=False)
class AggregatedVariance(AggregatedQuery):
    """A population variance, known by its aggregate, and perhaps by a function that returns all values.

    Parameters
    ----------
    aggregate : VarianceAggregate
        Sums and extremes of the values.
    in_order : callable or None, default=None
        Returns all values in ascending order; None: the aggregate may or may not hold them all.
    """

    aggregate: VarianceAggregate
    in_order: Callable[[], Floats] | None = None

    mostly_noise = 100

    def sums(self) -> Sums:
        """Return the sums that tell a variance."""
        if self.aggregate.bounds is None:
            raise ValueError(NEEDS_LIMIT.format("geometric"))
        return variance_sums(self.aggregate)

    def _needs(self, mechanism: Mechanism, epsilon: Fraction, private_n: bool) -> Needs:
        needs = _needs_of_variance(mechanism, epsilon, self.n, self.aggregate.bounds, private_n)
        # a clipped sum of squares may need every value; whether all are known must not depend on a private n
        all_known = self.in_order is not None or (not private_n and self.n <= self.aggregate.capacity)
        return needs if all_known else needs._replace(extremes=0)

    def _bounds(self, needs: Needs, private_n: bool) -> OutputBounds:
        known = self.aggregate.truncate(needs.ranks)
        least = least_spreads(known, min(known.capacity, known.n))
        made = (variance_bounds_private_n if private_n else variance_bounds)(known, least)
        if not needs.extremes:
            return made
        in_order = self.in_order or self._all_in_order
        return replace(
            made,
            extremes=spread_extremes(self.aggregate, needs.extremes, least, in_order, private_n=private_n),
        )

    def _all_in_order(self) -> Floats:
        return self.aggregate.smallest  # the aggregate holds all values here


def _needs_of_variance(
    mechanism: Mechanism,
    epsilon: Fraction,
    n: int,
    bounds: tuple[float, float] | None,
    private_n: bool,
) -> Needs:
    limit = MAX_FLOAT
    if bounds is not None:
        with np.errstate(over="ignore"):
            limit = float(np.minimum(np.square(np.float64(bounds[1]) - bounds[0]), MAX_FLOAT))
    public_n = None if private_n else n
    ranks = mechanism.count_ranks(epsilon, n=public_n, monotonic=False, output_range=(0.0, limit))
    return Needs(
        min(ranks, MOST_VARIANCE_RANKS), mechanism.count_extremes(epsilon, n=public_n, are_widths=True)
    )
