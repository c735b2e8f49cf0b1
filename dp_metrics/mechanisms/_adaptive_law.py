"""The law of the adaptive mechanism: a drawn scale, and noise of that scale."""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import Entropy
from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms._grid import Lattice
from dp_metrics.mechanisms._hazard_law import HazardLaw
from dp_metrics.mechanisms._laws import OutcomesLaw, cells
from dp_metrics.mechanisms._noisy_sums import SumsLaw
from dp_metrics.mechanisms.geometric import GeometricLaw
from dp_metrics.sensitivity.exact import rounded_quotient
from dp_metrics.sensitivity.extremes import Clipped, Extremes
from dp_metrics.sensitivity.noisy_sums import FINENESS, ratio_sums

__all__ = ["AdaptiveLaw"]

_SMALLEST_LOSS, _SMALLEST_WIDTH = 1e-270, 1e-130  # lattices of these are far above the subnormals
_LARGEST_OFFSET = 1 << 50


class AdaptiveLaw:
    """A mixture, over a drawn scale, of the laws of noise of that scale.

    Parameters
    ----------
    first : HazardLaw
        Law of the order statistic that is drawn first.
    extremes : Extremes
        The clipped sums.
    n : int
        Number of records, or an estimate of it.
    limit : float
        Public limit of the metric.
    epsilon : Fraction
        What the second stage costs.

    Notes
    -----
    `given` is exact. For the mixture, 200 drawn scales and several hundred values of the noise stand for
    cells of probability, at most 1/128 and 1/256, and ever smaller ones towards both ends.
    """

    def __init__(self, first: HazardLaw, extremes: Extremes, n: int, limit: float, epsilon: Fraction) -> None:
        self.first, self.epsilon = first, epsilon
        self._extremes, self._n, self._limit = extremes, n, limit
        # clipping lowers the metric: a quarter of the mean error upwards makes up for part of that
        self._offset = min(math.floor(FINENESS / (4 * epsilon)), _LARGEST_OFFSET)

    def given(self, drawn: float) -> GeometricLaw | SumsLaw:
        """Return the exact law of the second stage, given what the first has drawn."""
        return self._given(self._clipped(drawn))

    def release(self, entropy: Entropy) -> tuple[float, float]:
        """Draw a release, and C1 with it."""
        clipped = self._clipped(self.first.release(entropy))
        return self._given(clipped).release(entropy), _rounded(clipped.most * clipped.unit)

    def _clipped(self, drawn: float) -> Clipped:
        smallest = _SMALLEST_WIDTH if self._extremes.are_widths else _SMALLEST_LOSS
        return self._extremes.clipped(max(drawn, smallest))

    def _given(self, clipped: Clipped) -> GeometricLaw | SumsLaw:
        total, most, unit = clipped
        # in steps of C1 / FINENESS, rounded: one record moves this by at most FINENESS steps
        steps = (2 * FINENESS * total + most) // (2 * most)
        if (n := self._extremes.private_n) is not None:
            sums = ratio_sums(steps, n, _rounded(most * unit), self._limit, self._offset)
            return SumsLaw(sums, self.epsilon)
        spacing = max(_rounded(most * unit / (self._n * FINENESS)), math.ulp(0.0))
        lattice = Lattice(spacing, self._limit)
        return GeometricLaw(lattice, steps + self._offset, self.epsilon / FINENESS)

    @cached_property
    def _law(self) -> OutcomesLaw:
        middle, mass = cells(128, 36)
        drawn = self.first.grid.points(self.first.index_quantile(middle)).tolist()
        laws = [self.given(size).outcomes() for size in drawn]
        values = [values for values, _ in laws]
        shares = [share * part for share, (_, part) in zip(mass.tolist(), laws, strict=True)]
        return OutcomesLaw(np.concatenate(values), np.concatenate(shares))

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        return self._law.cdf(t)

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        return self._law.quantile(p)

    def median(self) -> float:
        """Return the quantile of 1/2."""
        return self._law.median()

    def mean_absolute_error(self, value: float, cap: float = np.inf) -> float:
        """Return the expectation of min(abs(release - value), cap)."""
        return self._law.mean_absolute_error(value, cap)


def _rounded(number: Fraction) -> float:
    return rounded_quotient(number.numerator, number.denominator)
