"""Hazard selection: the default mechanism."""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dp_metrics._random import RandomState, check_entropy, uniforms
from dp_metrics._validation import check_epsilon
from dp_metrics.bounds import OutputBounds
from dp_metrics.mechanisms._base import ceil_ranks, exact_epsilon
from dp_metrics.mechanisms._grid import GeometricGrid, Integers, Runs
from dp_metrics.mechanisms._laws import GridLaw

__all__ = ["Hazard", "HazardLaw", "largest_ratio"]

Floats = NDArray[np.float64]

TAIL = 3
"""Index of the power law of the upper tail of H."""

PEAK = 256
"""z0, where the density of H peaks, in grid cells: one resolution."""


@dataclass(frozen=True)
class Hazard:
    """Release the first grid point at which a cumulative hazard passes a random level.

    Grid point t_k has hazard 1 just above the metric, exp(-eps2 l) at l ranks below it and
    exp(eps2 (l - 1)) at l ranks above. With Lambda_k the sum of the hazards up to t_k and Z drawn from a
    fixed law H, the first t_k with Lambda_k >= Z is released.

    Parameters
    ----------
    resolution : float or None, default=None
        Public precision of the result relative to its size (in units of log1p(t / scale)). The default,
        1 / (n eps2 / 10 + 2.5), suits most data; on very heavy tails with n * epsilon above 2,000 a coarser
        one does better. It must not be computed from the data.

    Notes
    -----
    **Guarantee.** The release is epsilon-differentially private for neighbouring data sets that differ in
    one record, given public n, bounds and resolution: its value is always a point of a public grid.

    **Proof.** Put the grid on a line with cell k = (k-1, k] and hazard rate w_k there. Releasing the end
    of the cell in which Lambda reaches Z is post-processing of the crossing point, whose density is
    h(Lambda) w. For neighbours, s and s' differ by at most 1, so w'/w and Lambda'/Lambda lie within a
    factor e^eps2. The slope of log h in log z lies between -4 and 3 for a monotonic metric, where both
    ratios lie on one side of 1: the density ratio is within e^(+-4 eps2), and eps2 = eps/4. Otherwise the
    slope lies between -4 and 4, the density ratio within e^(+-5 eps2), and eps2 = eps/5. Not crossing at
    all has a log-slope between -3 and 0. The bound is attained.

    Epsilon is the decimal number that was typed, its share eps2 an exact fraction, and exp(-eps2) is
    rounded up to a float, never down. The draw itself is decided in float64.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681, defines
    the reflective inverse sensitivity s; the selection rule is this package's own.

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> private_mae([3.0, 1.0], [2.5, 1.0], epsilon=1.0, mechanism=Hazard(resolution=0.1)) >= 0
    True
    """

    resolution: float | None = None

    def __post_init__(self) -> None:
        if self.resolution is not None and not (math.isfinite(self.resolution) and self.resolution > 0):
            raise ValueError("resolution must be None or a positive, finite number.")

    def count_ranks(
        self, epsilon: float, *, n: int | None, monotonic: bool, output_range: tuple[float, float]
    ) -> int:
        """Return ceil(ln(1e4 / resolution) / eps2): what lies beyond has a negligible hazard."""
        if output_range[0] != 0.0:
            raise ValueError(
                "mechanism='hazard' needs a metric that is at least 0: shift it by its public lower limit."
            )
        eps2 = float(_share(epsilon, monotonic))
        width = self._resolution(eps2, n)
        with np.errstate(divide="ignore", over="ignore"):
            return ceil_ranks(float(np.float64(max(math.log(1e4 / width), 1.0)) / eps2), n)

    def release(self, output_bounds: OutputBounds, epsilon: float, rng: RandomState = None) -> float:
        """Draw one epsilon-differentially private release.

        Parameters
        ----------
        output_bounds : OutputBounds
            Of a metric that is at least 0.
        epsilon : float
            Privacy parameter of this release.
        rng : None, int, RandomState or Generator, default=None
            None draws from the operating system; a seed gives a reproducible release that is not private.

        Returns
        -------
        float
            A point of the public grid, within the output range.
        """
        law = self.output_distribution(output_bounds, epsilon)
        u, one_minus_u = uniforms(check_entropy(rng), 1)
        return float(law.grid.points(law.crossing(law.level(u, one_minus_u)))[0])

    def output_distribution(self, output_bounds: OutputBounds, epsilon: float) -> "HazardLaw":
        """Return the exact law of `release`."""
        if output_bounds.output_range[0] != 0.0:
            raise ValueError("Hazard needs a metric that is at least 0: shift it by its public lower limit.")
        share = _share(check_epsilon(epsilon), output_bounds.monotonic)
        limit = output_bounds.output_range[1]
        grid = GeometricGrid(
            scale=min(1e-6, 1e-9 * limit),
            step=self._resolution(float(share), output_bounds.n) / PEAK,
            limit=limit,
        )
        return HazardLaw(
            grid, Runs.from_bounds(grid, output_bounds), largest_ratio(share), output_bounds.monotonic
        )

    def _resolution(self, eps2: float, n: int | None) -> float:
        if self.resolution is not None:
            return self.resolution
        if n is None:
            raise ValueError("resolution must be given where n is private.")
        return 1.0 / (n * eps2 / 10 + 2.5)


class HazardLaw(GridLaw):
    """The law of a hazard release: P(number <= k) = H(Lambda_k).

    Parameters
    ----------
    grid : GeometricGrid
        Public outputs.
    runs : Runs
        Levels of the score along the grid.
    q : float
        Hazard ratio of neighbouring ranks, at least exp(-eps2) and at most 1.
    monotonic : bool
        Which of the two laws H applies.
    """

    def __init__(self, grid: GeometricGrid, runs: Runs, q: float, monotonic: bool) -> None:
        self.grid: GeometricGrid = grid
        self.runs, self.q, self.monotonic = runs, q, monotonic
        self.power = TAIL + 1 if monotonic else TAIL + 2  # kappa + 1
        self.below = Fraction(TAIL, TAIL + self.power)  # A = H(z0)
        counts = runs.counts
        with np.errstate(over="ignore", invalid="ignore"):
            self._weights = np.power(q, -runs.levels.astype(np.float64))
            # far above bounded data the hazard overflows to infinity: the level is reached there
            self._cumulative = np.cumsum(np.where(counts > 0, counts * self._weights, 0.0))

    def level(self, u: Floats, one_minus_u: Floats) -> Floats:
        """Return Z = H^-1(u)."""
        a = float(self.below)
        with np.errstate(divide="ignore"):
            return np.where(
                u <= a,
                PEAK * np.power(u / a, 1.0 / self.power),
                PEAK * np.power((1.0 - a) / one_minus_u, 1.0 / TAIL),
            )

    def crossing(self, level: Floats) -> Integers:
        """Return the first k with Lambda_k >= level, or the last k if there is none."""
        # Comparing the level with every run, rather than cutting Lambda at some threshold, keeps each
        # output that is possible under one data set possible under its neighbours.
        run = np.searchsorted(self._cumulative, level, side="left")
        inside = np.minimum(run, self._cumulative.size - 1)
        before = np.where(inside > 0, self._cumulative[inside - 1], 0.0)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            cells = np.ceil((level - before) / self._weights[inside])
        cells = np.clip(cells, 1, np.maximum(self.runs.counts[inside], 1)).astype(np.int64)
        return np.where(run == self._cumulative.size, self.grid.last, self.runs.edges[inside] + cells - 1)

    def index_cdf(self, numbers: Integers) -> Floats:
        """Return P(number of the release <= k)."""
        edges = self.runs.edges
        run = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, self._weights.size - 1)
        before = np.where(run > 0, self._cumulative[run - 1], 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            cumulative = before + (numbers - edges[run] + 1) * self._weights[run]
            low = float(self.below) * (np.minimum(cumulative, PEAK) / PEAK) ** self.power
            high = 1.0 - float(1 - self.below) * (np.maximum(cumulative, PEAK) / PEAK) ** -TAIL
        inside = np.where(cumulative <= PEAK, low, high)
        return np.where(numbers < edges[0], 0.0, np.where(numbers >= self.grid.last, 1.0, inside))

    def index_quantile(self, p: Floats) -> Integers:
        """Return the smallest k with P(number <= k) >= p."""
        return self.crossing(self.level(p, 1.0 - p))


def _share(epsilon: float, monotonic: bool) -> Fraction:
    """Return eps2 exactly; a float share would exceed epsilon for a quarter of all values."""
    return exact_epsilon(epsilon) / (1 + TAIL if monotonic else 2 + TAIL)


@lru_cache(maxsize=256)
def largest_ratio(share: Fraction) -> float:
    """Return the smallest float64 that is certainly >= exp(-share), at most 1.

    Parameters
    ----------
    share : Fraction
        eps2 > 0.

    Notes
    -----
    The 60-digit decimal below is an upper bound of exp(-share): the share is rounded down, and `exp`, which
    is correctly rounded, is followed by one step up. So the result is either the smallest such float or,
    if exp(-share) were within 1e-59 of a float, the one after it.
    """
    down = Context(prec=60, rounding=ROUND_FLOOR, Emin=-(10**9))
    exponent = down.divide(Decimal(share.numerator), Decimal(share.denominator))
    if exponent > 800:  # below every positive float; and Decimal's exp would underflow in the end
        return math.ulp(0.0)
    up = Context(prec=60, rounding=ROUND_CEILING, Emin=-(10**9))
    bound = up.next_plus(up.exp(-exponent))
    ratio = float(bound)
    if Decimal(ratio) < bound:
        ratio = math.nextafter(ratio, math.inf)
    return min(ratio, 1.0)
