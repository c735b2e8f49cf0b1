"""The law of the adaptive mechanism: a drawn scale, and noise of that scale."""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms._grid import Lattice
from dp_metrics.mechanisms._hazard_law import HazardLaw
from dp_metrics.mechanisms._laws import OutcomesLaw, cells
from dp_metrics.mechanisms._noisy_sums import SumsLaw
from dp_metrics.mechanisms.geometric import GeometricLaw
from dp_metrics.sensitivity.exact import rounded_quotient
from dp_metrics.sensitivity.extremes import Extremes
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

    def level(self, drawn: float) -> Fraction:
        """Return the level of clipping for what the first stage has drawn, at least a tiny one."""
        return Fraction(max(drawn, _SMALLEST_WIDTH if self._extremes.are_widths else _SMALLEST_LOSS))

    def scale(self, drawn: float) -> float:
        """Return C1, the most that a record adds to n times the metric at this level."""
        most = self._most(self.level(drawn))
        return rounded_quotient(most.numerator, most.denominator)

    def given(self, drawn: float) -> GeometricLaw | SumsLaw:
        """Return the exact law of the second stage, given what the first has drawn."""
        level, scale = self.level(drawn), self.scale(drawn)
        # the clipped sum in steps of C1 / FINENESS, rounded: one record moves it by at most FINENESS steps
        total, most = self._extremes.clipped_sum(level), self._most(level)
        unit = total.denominator * most.numerator
        steps = (2 * FINENESS * total.numerator * most.denominator + unit) // (2 * unit)
        if (n := self._extremes.private_n) is not None:
            return SumsLaw(ratio_sums(steps, n, scale, self._limit, self._offset), self.epsilon)
        lattice = Lattice(scale / self._n / FINENESS, self._limit)
        return GeometricLaw(lattice, steps + self._offset, self.epsilon / FINENESS)

    def _most(self, level: Fraction) -> Fraction:
        return level * level if self._extremes.are_widths else level

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
