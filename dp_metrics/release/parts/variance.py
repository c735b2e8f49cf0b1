"""A variance: the part of a plan, and what is known of the records."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.arrays import Records, float_block
from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.inputs.options import Relation
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._base import NEEDS_LIMIT
from dp_metrics.release.plan import BoundsPart, KnownAggregate, KnownRecords
from dp_metrics.sensitivity.aggregates import VarianceAggregate
from dp_metrics.sensitivity.exact import in_blocks
from dp_metrics.sensitivity.extremes import Extremes, variance_extremes
from dp_metrics.sensitivity.noisy_sums import Sums, variance_sums
from dp_metrics.sensitivity.output_bounds import (
    BoundsFacts,
    OutputBounds,
    variance_bounds,
    variance_bounds_private_n,
    variance_facts,
)
from dp_metrics.sensitivity.variance_windows import LeastSpreads, least_spreads

MOST_VARIANCE_RANKS = 4096
"""Ranks that a release of a variance uses at most: the windows of c ranks number c^2 / 2."""


@dataclass(frozen=True)
class VarianceOf(BoundsPart):
    """Public: the population variance of the first argument, as a part of a plan.

    Parameters
    ----------
    bounds : tuple of float or None
        Public bounds, into which values are clipped.
    name : str, default="x"
        What the argument is called.
    column : int or None, default=None
        The output that it is the variance of, where there are several.
    """

    bounds: tuple[float, float] | None
    name: str = "x"
    column: int | None = None

    are_distances = True
    has_extremes = True
    has_sums = True
    may_be_heavy = True
    mostly_noise = 100

    @property
    def highest(self) -> float:
        """The squared width of the bounds: no variance is larger."""
        if self.bounds is None:
            return MAX_FLOAT
        with np.errstate(over="ignore"):
            return float(np.minimum(np.square(np.float64(self.bounds[1]) - self.bounds[0]), MAX_FLOAT))

    def is_monotonic(self, relation: Relation) -> bool:
        """Return False: the lower bounds may rise while the upper ones fall."""
        return False

    def facts(self, n: int, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds."""
        return variance_facts(n, self.bounds, ranks)

    def count_ranks(
        self, mechanism: Mechanism, epsilon: Fraction, n: int | None, highest: float | None = None
    ) -> int:
        """Return how many ranks a release uses."""
        return min(super().count_ranks(mechanism, epsilon, n, highest), MOST_VARIANCE_RANKS)

    def known(self, records: Records) -> "Variance":
        """Return the values, which are read in blocks."""
        x = records.arrays[0]
        return Variance(self, x if self.column is None else x[:, self.column])


@dataclass(frozen=True, repr=False, eq=False)
class Variance(KnownRecords):
    """Private: the values x whose variance is released, to be clipped into the public bounds."""

    part: VarianceOf
    x: NDArray[Any]

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.x)

    def aggregate(self, capacity: int) -> "AggregatedVariance":
        """Return what a release needs to know of the records, if it asks for at most `capacity` ranks."""
        blocks = (float_block(block, self.part.name) for block in in_blocks(self.x))
        with np.errstate(all="ignore"):  # a warning would tell of the data
            aggregate = VarianceAggregate.from_blocks(blocks, capacity=capacity, bounds=self.part.bounds)
        return AggregatedVariance(self.part, aggregate, self._values)

    def summary(self, capacity: int) -> "AggregatedVariance":
        """Return what a release needs to know of the records, which are not looked at again."""
        return AggregatedVariance(self.part, self.aggregate(capacity).aggregate)

    def _values(self) -> Floats:
        """Return all values, clipped."""
        values, bounds = float_block(self.x, self.part.name), self.part.bounds
        return values if bounds is None else np.clip(values, *bounds)


@dataclass(frozen=True, repr=False, eq=False)
class AggregatedVariance(KnownAggregate):
    """Private: an aggregate of the values, and perhaps a function that returns them all.

    Parameters
    ----------
    part : VarianceOf
        What is released.
    aggregate : VarianceAggregate
        Sums and extremes of the values.
    values : callable or None, default=None
        Returns all values; None: the aggregate may or may not hold them all.
    """

    part: VarianceOf
    aggregate: VarianceAggregate
    values: Callable[[], Floats] | None = None

    def sums(self) -> Sums:
        """Return the sums that tell a variance."""
        if self.aggregate.bounds is None:
            raise ValueError(NEEDS_LIMIT.format("geometric"))
        return variance_sums(self.aggregate)

    def has_extremes(self, relation: Relation) -> bool:
        """Return whether all values are known: a clipped sum of squares may need every one."""
        # whether all are known must not depend on a private n
        return self.values is not None or (not relation.private_n and self.n <= self.aggregate.capacity)

    def extremes(self, count: int, ranks: int, relation: Relation) -> Extremes:
        """Return the distances of the values."""
        values = self.values or (lambda: self.aggregate.smallest)  # which holds all values here
        return variance_extremes(self.aggregate, values, relation=relation)

    def _bounds(self, ranks: int, relation: Relation) -> OutputBounds:
        make = variance_bounds_private_n if relation.private_n else variance_bounds
        return make(self.aggregate.truncate(ranks), self._once(self._least, ranks))

    def _least(self, ranks: int) -> LeastSpreads:
        known = self.aggregate.truncate(ranks)
        return least_spreads(known, min(known.capacity, known.n))
