"""Sums over a private number of records, with noise: what becomes a mean or a variance by division."""

from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import Entropy, discrete_laplace
from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms._laws import OutcomesLaw, cells, laplace_quantiles
from dp_metrics.sensitivity.exact import rounded_quotient
from dp_metrics.sensitivity.noisy_sums import Sums

__all__ = ["SumsLaw"]

_CELLS = {1: (256, 36), 2: (32, 12), 3: (12, 6)}  # for each coordinate of so many, and octaves at either end


class SumsLaw:
    """The law of a number computed from whole numbers with two-sided geometric noise.

    One record moves the whole numbers by at most `sums.sensitivity`, summed over the absolute differences,
    and noise k_1, k_2, ... has probability proportional to exp(-rate (abs(k_1) + abs(k_2) + ...)) with
    rate = epsilon / sensitivity: the noisy numbers are epsilon-differentially private, and exactly so as
    executed. What is computed from them is post-processing.

    Parameters
    ----------
    sums : Sums
        The whole numbers: private.
    epsilon : Fraction
        What the release costs.

    Notes
    -----
    `release` is exact. For the law, quantiles of the noise of each coordinate stand for cells of probability.
    """

    def __init__(self, sums: Sums, epsilon: Fraction) -> None:
        self.sums, self.rate = sums, epsilon / sums.sensitivity

    def release(self, entropy: Entropy) -> float:
        """Draw an outcome."""
        noisy = [value + discrete_laplace(entropy, self.rate) for value in self.sums.values]
        # saturated: at the smallest epsilon noise may be larger than any float
        return float(self.sums.combine(*(np.float64(rounded_quotient(value, 1)) for value in noisy)))

    def outcomes(self) -> tuple[Floats, Floats]:
        """Return outcomes that stand for the law, and the probability of each."""
        middle, mass = cells(*_CELLS[len(self.sums.values)])
        away = laplace_quantiles(middle) / float(self.rate)  # to within a step
        noisy = np.meshgrid(*(float(value) + away for value in self.sums.values), indexing="ij")
        shares = np.meshgrid(*(mass for _ in self.sums.values), indexing="ij")
        return self.sums.combine(*noisy).ravel(), np.prod(shares, axis=0).ravel()

    @cached_property
    def _law(self) -> OutcomesLaw:
        return OutcomesLaw(*self.outcomes())

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
