"""The query of an order statistic, such as a median."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms import Mechanism
from dp_metrics.release.queries.query import BoundsQuery
from dp_metrics.sensitivity.aggregates import OrderAggregate
from dp_metrics.sensitivity.noisy_sums import Sums
from dp_metrics.sensitivity.output_bounds import OutputBounds, order_statistic_bounds

__all__ = ["OrderStatistic"]

_RANK = "A median or another quantile needs a public number of records: its rank would tell a private one."


@dataclass(frozen=True, repr=False, eq=False)
class OrderStatistic(BoundsQuery):
    """The k-th smallest of values that are at least 0, clipped to the public limit; k counts from 1."""

    x: Floats
    k: int
    limit: float

    @property
    def n(self) -> int:
        """Number of records."""
        return self.x.size

    def output_bounds(self, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> OutputBounds:
        """Return the output bounds of the order statistic."""
        if private_n:
            raise ValueError(_RANK)
        output_range = (0.0, self.limit)
        capacity = mechanism.count_ranks(epsilon, n=self.n, monotonic=True, output_range=output_range)
        x = np.clip(self.x, 0.0, self.limit)
        return order_statistic_bounds(
            OrderAggregate.from_data(x, self.k, capacity=capacity, limit=self.limit)
        )

    def sums(self) -> Sums:
        """Raise: an order statistic is no sum."""
        raise ValueError(_RANK)
