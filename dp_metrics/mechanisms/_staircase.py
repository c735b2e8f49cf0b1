"""Staircase noise: the best noise for one number that a record moves by several steps of a lattice."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dp_metrics._random import Entropy, discrete_laplace, staircase
from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms._laws import LARGEST_NOISE

_LEAST_EPSILON, _MOST_EPSILON = 1e-250, 700.0  # so that no weight is beyond the floats
ENORMOUS = 1 << 900
"""Stands for the largest noise where epsilon is so small that it may be beyond all floats."""


@dataclass(frozen=True)
class Staircase:
    """Noise on whole numbers of which one record moves one by `steps` at most.

    A noise of k has probability proportional to exp(-epsilon * floor((abs(k) + steps - half) / steps)). Two
    noisy numbers whose true numbers differ by at most `steps` have stairs that differ by at most 1: so the
    noisy number is epsilon-differentially private, whatever `half` is. With one step this is two-sided
    geometric noise.

    Parameters
    ----------
    epsilon : Fraction
        What a release costs.
    steps : int
        By how much one record moves the number at most.

    References
    ----------
    Q. Geng and P. Viswanath, "The Optimal Noise-Adding Mechanism in Differential Privacy", 2016,
    doi:10.1109/TIT.2015.2504967, for the law and for `half`, which makes the mean absolute noise least.
    """

    epsilon: Fraction
    steps: int

    @property
    def _rate(self) -> float:
        return min(max(float(self.epsilon), _LEAST_EPSILON), _MOST_EPSILON)

    @cached_property
    def half(self) -> int:
        """From which size on noise is off the middle stair."""
        return math.floor(self.steps / (1.0 + math.exp(self._rate / 2))) + 1

    @cached_property
    def _later(self) -> float:
        """The weight of all stairs after the middle one, on one side."""
        return self.steps / math.expm1(self._rate)

    @cached_property
    def _weight(self) -> float:
        """The weight of all numbers, if those of the middle stair have weight 1."""
        return 2 * self.half - 1 + 2 * self._later

    def draw(self, entropy: Entropy) -> int:
        """Draw one noise, exactly."""
        if self.steps == 1:  # two-sided geometric noise, by the bits that it has everywhere else
            return discrete_laplace(entropy, self.epsilon)
        return staircase(entropy, self.epsilon, self.steps, self.half)

    def cdf(self, k: Floats) -> Floats:
        """Return P(noise <= k) for whole numbers k, and so P(noise >= -k)."""
        tail = self._tail(np.where(k < 0, -k, k + 1))
        reached: Floats = np.where(k < 0, tail, 1.0 - tail)
        return reached

    def _tail(self, size: Floats) -> Floats:
        """Return P(noise >= size), for whole sizes of at least 1."""
        with np.errstate(under="ignore"):
            stair = np.floor((size + (self.steps - self.half)) / self.steps)
            left = self.half + stair * self.steps - size  # numbers on this stair; then come all later stairs
            weight: Floats = np.exp(-self._rate * stair) * (left + self._later)
        return weight / self._weight

    @property
    def expected(self) -> float:
        """The mean absolute noise."""
        if float(self.epsilon) < _LEAST_EPSILON:
            return math.inf
        middle = self.half * (self.half - 1) / 2
        # the mean size on the next stair; each later stair adds `steps`
        first = self.half + (self.steps - 1) / 2
        return 2 * (middle + self._later * (first + self._later)) / self._weight

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise; infinite where its square is beyond the floats."""
        middle = self.half * (self.half - 1) * (2 * self.half - 1) / 6
        first, within = self.half + (self.steps - 1) / 2, (self.steps * self.steps - 1) / 12
        # the next stair, and those after it: stair j more is as likely as j failures before a success
        square = first * first + within + self._later * (2 * first + self.steps + 2 * self._later)
        return math.sqrt(2 * (middle + self._later * square) / self._weight)

    def largest(self, miss: float) -> int:
        """Return the smallest j >= 0 with P(noise > j) <= miss, or a little more where j is large."""
        if float(self.epsilon) < _LEAST_EPSILON:
            return ENORMOUS
        j = max(int(self._rare(np.array([miss]))[0]) - 1, 0)
        # the loop makes a few steps at most: the size above is off by its rounding
        while float(self._tail(np.array([j + 1.0]))[0]) > miss:
            j += 1 + int(j * 2.0**-50)
        return j

    def quantiles(self, p: Floats) -> Floats:
        """Return the smallest whole k with P(noise <= k) >= p, or a number near it where k is large."""
        size = np.minimum(self._rare(np.minimum(p, 1.0 - p)), LARGEST_NOISE)
        return np.where(p < 0.5, -size, size)

    def _rare(self, miss: Floats) -> Floats:
        """Return the smallest whole k >= 0 with P(noise > k) <= miss, for positive probabilities."""
        weight = miss * self._weight
        whole = self.steps + self._later
        with np.errstate(divide="ignore", over="ignore"):
            stair = np.maximum(np.floor(np.log(whole / weight) / self._rate), 0.0)
            left = weight * np.exp(self._rate * stair)
        size: Floats = np.ceil(self.half + stair * self.steps + self._later - left)
        return np.maximum(size - 1.0, 0.0)
