"""Searches for an order statistic along a public grid, from below or from above."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import Entropy
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.options import Epsilon, exact_epsilon
from dp_metrics.mechanisms._base import Mechanism, ceil_ranks
from dp_metrics.mechanisms._grid import Grid, Integers, Runs
from dp_metrics.mechanisms._hazard_law import PEAK, TAIL, HazardLaw, largest_ratio
from dp_metrics.mechanisms._laws import check_probability
from dp_metrics.mechanisms.hazard import default_grid, share_of_rank
from dp_metrics.sensitivity.output_bounds import OutputBounds


@dataclass(frozen=True, repr=False)
class OrderSearch(Mechanism):
    """Hazard selection of an order statistic, on the grid from 0 to the limit or on the same grid reversed.

    Parameters
    ----------
    resolution : float, default=0.4
        Public precision of the result relative to its size.
    downward : bool, default=False
        Whether the search starts at the limit. The cells are then numbered from there: that next to the order
        statistic, and below it, has hazard 1.

    Notes
    -----
    **Guarantee.** The release is epsilon-differentially private for neighbouring data sets that differ in one
    record, given public n, limit and resolution.

    **Proof.** That of `Hazard` for monotonic metrics. It needs no more than an increasing public grid and a
    metric whose bounds all move in one direction between neighbours. Minus the outputs, in reverse, are an
    increasing public grid, and minus an order statistic is such a metric.

    More ranks are used than in `Hazard`: a search down from the largest float passes nearly all cells of the
    grid, and together they must weigh nothing.
    """

    resolution: float = 0.4
    downward: bool = False

    def grid(self, limit: float) -> Grid:
        """Return the public grid, in ascending order."""
        return default_grid(self.resolution / PEAK, limit)

    def count_ranks(
        self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: tuple[float, float]
    ) -> int:
        """Return ceil(ln(1e4 K / 256) / eps2), for K cells: what lies beyond has a negligible hazard."""
        cells = self.grid(output_range[1]).last
        eps2 = float(share_of_rank(exact_epsilon(epsilon), monotonic=True))
        return ceil_ranks(math.log(max(1e4 * cells / PEAK, math.e)) / max(eps2, math.ulp(0.0)), n)

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> "HazardLaw | DownwardLaw":
        """Return the exact law of `release`."""
        low, limit = output_bounds.output_range
        if low != 0.0 or not output_bounds.monotonic:
            raise ValueError("OrderSearch is for order statistics of numbers that are at least 0.")
        ratio = largest_ratio(share_of_rank(exact_epsilon(epsilon), monotonic=True))
        grid = self.grid(limit)
        if not self.downward:
            return HazardLaw(grid, Runs.from_bounds(grid, output_bounds), ratio, True)
        reversed_grid = ReversedGrid(grid)
        runs = Runs.from_bounds(reversed_grid, _negated(output_bounds))
        return DownwardLaw(HazardLaw(reversed_grid, runs, ratio, True))


def hazard_miss(cells: Floats) -> Floats:
    """Return 1 - H(z), the probability not to have crossed where the cumulative hazard is z."""
    x = np.maximum(cells / PEAK, 0.0)
    peak = TAIL / (2 * TAIL + 1)
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(
            x <= 1, 1 - peak * np.minimum(x, 1) ** (TAIL + 1), (1 - peak) * np.maximum(x, 1) ** -TAIL
        )


def _negated(output_bounds: OutputBounds) -> OutputBounds:
    """Return the output bounds of minus the metric."""
    low, high = output_bounds.output_range
    return OutputBounds(
        value=-output_bounds.value,
        lower=-output_bounds.upper,
        upper=-output_bounds.lower,
        output_range=(-high, -low),
        monotonic=output_bounds.monotonic,
        n=output_bounds.n,
    )


@dataclass(frozen=True)
class ReversedGrid:
    """Minus the outputs of a grid that starts with number 0, in reverse, so that they increase."""

    grid: Grid

    first = 0

    @property
    def last(self) -> int:
        """Number of the last output, which is minus the first of the grid."""
        return self.grid.last

    def points(self, indices: Integers) -> Floats:
        """Return the outputs with these indices."""
        return -self.grid.points(self.last - np.asarray(indices))

    def point(self, index: int) -> float:
        """Return the output with this index."""
        return -self.grid.point(self.last - index)

    def index_at_least(self, values: Floats) -> Integers:
        """Return the number of the first output >= value, or last + 1."""
        # -t >= value if t <= -value: all points before the first above it
        return self.last + 1 - self.grid.index_above(-np.asarray(values, dtype=np.float64))

    def index_above(self, values: Floats) -> Integers:
        """Return the number of the first output > value, or last + 1."""
        return self.last + 1 - self.grid.index_at_least(-np.asarray(values, dtype=np.float64))


class DownwardLaw:
    """The law of a downward search: that of minus the output of a search upward.

    Parameters
    ----------
    upward : HazardLaw
        On the reversed grid.
    """

    def __init__(self, upward: HazardLaw) -> None:
        self.upward = upward

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""
        return 0.0 - self.upward.release(entropy)  # subtracting leaves no negative zero

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        # P(-T <= t) = 1 - P(T < -t): T sits on grid points, so step just below -t
        return 1.0 - self.upward.cdf(np.nextafter(-np.asarray(t, dtype=np.float64), -np.inf))

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        return 0.0 - self.upward.quantile(np.clip(np.nextafter(1.0 - check_probability(p), 2.0), 0.0, 1.0))

    def median(self) -> float:
        """Return the quantile of 1/2."""
        return float(self.quantile(0.5))

    def mean_absolute_error(self, value: float, cap: float = np.inf) -> float:
        """Return the expectation of min(abs(release - value), cap)."""
        return self.upward.mean_absolute_error(-value, cap)
