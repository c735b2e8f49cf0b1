"""Exact limits of a probability from a binomial count with two-sided geometric noise."""

import math

import numpy as np

from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms.geometric import noise_cdf

__all__ = ["at_most", "binomial_law", "noisy_binomial_cdf", "noisy_binomial_limits"]

_EXPONENT = 40.0
_CUT_OFF = 2 * math.exp(-_EXPONENT)  # probability of the counts that a sum leaves out
_RELATIVE = 1e-8  # this exceeds the rounding of a sum of up to 1e9 trials
_HALVINGS = 60


def at_most(probability: float) -> float:
    """Return what a probability that was computed from `binomial_law` certainly does not exceed."""
    return probability * (1 + _RELATIVE) + _CUT_OFF


def binomial_law(n: int, p: float) -> tuple[Floats, Floats]:
    """Return the likely counts of n trials, and their probabilities.

    Notes
    -----
    By Bernstein's inequality the count is farther than t = L/3 + sqrt(L^2/9 + 2 L n p (1-p)) from n p with
    probability at most 2 exp(-L). The probabilities of what is nearer follow, up to a common factor, from
    those of their neighbours.
    """
    if p in (0.0, 1.0):
        return np.array([n * p]), np.ones(1)
    far = _EXPONENT / 3 + math.sqrt(_EXPONENT**2 / 9 + 2 * _EXPONENT * n * p * (1 - p))
    x = np.arange(max(math.floor(n * p - far), 0), min(math.ceil(n * p + far), n) + 1.0)
    growth = np.log((n - x[:-1]) / (x[:-1] + 1.0)) + (math.log(p) - math.log1p(-p))
    logs = np.cumsum(np.append(0.0, growth))
    weights = np.exp(logs - logs.max())
    return x, weights / weights.sum()


def noisy_binomial_limits(
    count: int, n: int, rate: float, *, miss_low: float, miss_high: float
) -> tuple[float, float]:
    """Return the limits of p that a noisy count X + N gives, X binomial of n and p.

    Parameters
    ----------
    count : int
        The noisy count. It is clamped to 0..n, as it may already have been.
    n : int
        Number of trials, at least 1.
    rate : float
        The noise N has probability proportional to exp(-rate |k|).
    miss_low, miss_high : float
        Largest probability, at most 1/2, that the lower limit exceeds p, and that p exceeds the upper one.
        0: the limit is 0, or 1.

    Returns
    -------
    lower, upper : float
        The p for which the noisy count is at least `count` with probability `miss_low`, and the p for which
        it is at most `count` with probability `miss_high`; both rounded outward.

    Notes
    -----
    P_p(X + N <= z) falls in p, so the p with P_p(X + N <= z) > a are those below a limit, and the limit is
    below the true p with probability at most a. The noise is symmetric, which gives the lower limit by
    counting failures. Clamping changes neither: P(X + N <= z) is that of the clamped count for z < n, and for
    z = n there is no upper limit but 1, because the noise is at most 0 with probability above 1/2.
    """
    count = min(max(count, 0), n)
    return 1.0 - _upper_limit(n - count, n, rate, miss_low), _upper_limit(count, n, rate, miss_high)


def noisy_binomial_cdf(count: int, n: int, p: float, rate: float) -> float:
    """Return P(X + N <= count), with an error below 1e-8 of it and 1e-17."""
    x, probabilities = binomial_law(n, p)
    return float(probabilities @ noise_cdf(count - x, rate))


def _upper_limit(count: int, n: int, rate: float, miss: float) -> float:
    """Return the largest p with P(X + N <= count) >= miss, rounded up."""
    if count == n or miss == 0:
        return 1.0

    def is_likely(p: float) -> bool:
        """Return whether the count is not too low for p, or may not be."""
        return at_most(noisy_binomial_cdf(count, n, p, rate)) >= miss

    if is_likely(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_likely(middle) else (low, middle)
    return high
