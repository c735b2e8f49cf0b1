"""An order statistic, such as a median: the part of a plan, and what is known of the records."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.options import Relation
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms._base import KnownNumber
from dp_metrics.release.parts.part import BoundsPart
from dp_metrics.sensitivity.aggregates import OrderAggregate
from dp_metrics.sensitivity.output_bounds import (
    BoundsFacts,
    OutputBounds,
    order_statistic_bounds,
    order_statistic_facts,
)

_RANK = "A median or another quantile needs a public number of records: its rank would tell a private one."


@dataclass(frozen=True, eq=False)
class OrderOf(BoundsPart):
    """Public: the k-th smallest of values that are at least 0, as a part of a plan; k counts from 1.

    Parameters
    ----------
    values : callable
        The values of checked arrays.
    rank : callable
        k of the public number of records.
    limit : float
        Public limit of the values, to which they are clipped.
    """

    values: Callable[..., Floats]
    rank: Callable[[int], int]
    limit: float

    merges = False

    @property
    def highest(self) -> float:
        """The public limit of the values."""
        return self.limit

    def is_monotonic(self, relation: Relation) -> bool:
        """Return True; raise where n is private."""
        if relation.private_n:
            raise ValueError(_RANK)
        return True

    def facts(self, n: int, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds."""
        return order_statistic_facts(n, self.limit)

    def known(self, records: Records) -> "OrderStatistic":
        """Return the values."""
        return OrderStatistic(self, self.values(*records.arrays))


@dataclass(frozen=True, repr=False, eq=False)
class OrderStatistic(KnownNumber):
    """Private: the values, of which one is released."""

    part: OrderOf
    x: Floats

    @property
    def n(self) -> int:
        """Number of records."""
        return self.x.size

    def bounds_at(self, ranks: int, relation: Relation) -> OutputBounds:
        """Return the output bounds of the order statistic."""
        limit = self.part.limit
        x = np.clip(self.x, 0.0, limit)
        return order_statistic_bounds(
            OrderAggregate.from_data(x, self.part.rank(self.n), capacity=ranks, limit=limit)
        )
