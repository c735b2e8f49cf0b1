"""The population variance of a column."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from dp_metrics.inputs.arrays import Records, float_block, in_blocks
from dp_metrics.inputs.options import MAX_FLOAT, Range
from dp_metrics.quantities.base import Quantity, Stats, Totals
from dp_metrics.sensitivity import variance_bounds
from dp_metrics.sensitivity.exact import VarianceAggregate
from dp_metrics.sensitivity.output_bounds import BoundsFacts, Extremes, OutputBounds, Sums


@dataclass(frozen=True)
class VarianceOf(Quantity):
    """Public: the population variance of the first argument.

    Parameters
    ----------
    bounds : tuple of float or None
        Public bounds, into which values are clipped.
    name : str, default="x"
        What the argument is called.
    column : int or None, default=None
        The output that it is the variance of, where there are several.
    """

    bounds: Range | None
    name: str = "x"
    column: int | None = None

    are_distances = has_extremes = has_sums = True
    may_be_heavy = True
    most_ranks = 4096  # the windows of c ranks number c^2 / 2
    mostly_noise = 100

    def facts(self, totals: Totals | None, ranks: int) -> BoundsFacts:
        """Return what is public of the output bounds."""
        return variance_bounds.variance_facts(None if totals is None else totals.n, self.bounds, ranks)

    def highest(self, totals: Totals | None) -> float:
        """Return the squared width of the bounds: mechanisms are told no more, whatever n is."""
        width = variance_bounds.width_of(self.bounds)
        return min(width * width, MAX_FLOAT)

    def extremes_limit(self, totals: Totals | None) -> float:
        """Return the width of the bounds, which no distance exceeds."""
        return variance_bounds.width_of(self.bounds)

    def sums(self, stats: Stats | None = None) -> Sums:
        """Return the three sums that tell the variance."""
        nothing = VarianceAggregate.from_blocks((), capacity=0, bounds=self.bounds)
        return variance_bounds.variance_sums(nothing if stats is None else stats.found)

    def stats(self, records: Records, totals: Totals, ranks: int, *, forget: bool = False) -> Stats:
        """Look at the values in blocks."""
        x = records.arrays[0] if self.column is None else records.arrays[0][:, self.column]
        blocks = (float_block(block, self.name) for block in in_blocks(x))
        # a warning would tell of the data
        known = VarianceAggregate.from_blocks(blocks, capacity=ranks, bounds=self.bounds)
        # they were checked block by block
        values = None if forget else partial(np.ascontiguousarray, x, dtype=np.float64)
        return Stats(self, totals, known, ranks if forget else None, values)

    def output_bounds(self, stats: Stats, ranks: int, private_n: bool) -> OutputBounds:
        """Return the output bounds at so many ranks, or at all that are known."""
        return variance_bounds.variance_bounds(stats.found, ranks, private_n)

    def extremes(self, stats: Stats, private_n: bool) -> Extremes:
        """Return the distances of the values, and the clipped sums: of a summary that holds them all."""
        values = stats.values or (lambda: stats.found.smallest)
        return variance_bounds.variance_extremes(stats.found, values, private_n=private_n)
