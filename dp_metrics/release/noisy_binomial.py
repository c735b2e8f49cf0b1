"""Proved limits from a sum over records with noise: of a probability, exact ones, and of a bounded mean."""

import math

import numpy as np

from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms._grid import nearest_index
from dp_metrics.mechanisms._laws import cell_edges
from dp_metrics.mechanisms.geometric import GeometricLaw, noise_cdf

_EXPONENT = 40.0
_CUT_OFF = 2 * math.exp(-_EXPONENT)  # probability of the counts that a sum leaves out
_RELATIVE = 1e-8  # this exceeds the rounding of a sum of up to 1e9 trials
_HALVINGS = 60
_ROOMS = np.geomspace(0.1, 4.0, 16)  # tried, in standard deviations


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


def noisy_mean_limits(law: GeometricLaw, released: float, n: int, miss: float) -> tuple[float, float]:
    """Return limits of the mean of numbers from 0 to 1 among all people, from the noisy mean of n of them.

    Parameters
    ----------
    law : GeometricLaw
        Of the release; its noise and its grid are read, not its centre.
    released : float
        An output, in the units of the grid.
    n : int
        Number of records.
    miss : float
        Largest probability with which either limit may miss.

    Notes
    -----
    Let S be the sum of n independent numbers with the mean p, B a binomial count of n and p, N the noise and
    t < z. A number that is rounded at random to 0 or 1 has the old one as its mean, so for convex f, by
    Jensen's inequality, E f(S) is at most E f(B) (W. Hoeffding 1963, doi:10.1080/01621459.1963.10500830).
    Markov's inequality for the convex max(S + N - t, 0) makes P(S + N >= z) at most
    E max(B + N - t, 0) / (z - t), which rises in p. The lower limit is the p where that is `miss`, for the
    best of some t. Numbers less their limit, and noise with the other sign, give the upper one.

    A place on the grid stands for the mean but for less than 1, by two roundings. The noise is rounded up to
    a number from several hundred. Clamping at the upper end changes nothing, and at the lower end gives 0.
    """
    place, last = nearest_index(law.grid, released), law.grid.last
    ends = np.unique(law.added.quantiles(cell_edges(256, 36, 8)[1:-1]))
    mass, beyond = np.diff(law.added.cdf(ends), prepend=0.0), float(law.added.cdf(-ends[-1:] - 1.0)[0])
    noise = ends * (n / last), mass, beyond
    return _least_mean((place - 1) * (n / last), n, noise, miss), 1.0 - _least_mean(
        (last - place - 1) * (n / last), n, noise, miss
    )


def _least_mean(z: float, n: int, noise: tuple[Floats, Floats, float], miss: float) -> float:
    """Return the largest mean that makes a noisy sum of at least z less likely than `miss`, rounded down."""
    low, high = 0.0, 1.0
    if z < 0.0:
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if at_most(_most_likely(z, n, middle, noise)) < miss else (low, middle)
    return low


def _most_likely(z: float, n: int, p: float, noise: tuple[Floats, Floats, float]) -> float:
    """Return what the probability of a noisy sum of at least z cannot exceed."""
    ends, mass, beyond = noise
    x, probabilities = binomial_law(n, p)
    # the mean of max(B - u, 0) is a straight line between whole numbers, and below all likely ones
    tails = np.cumsum(probabilities[::-1])[::-1]
    excess = np.append(np.cumsum(tails[:0:-1])[::-1], 0.0)
    deviation = math.sqrt(n * p * (1 - p) + float(mass @ ends**2))
    room = deviation * _ROOMS[:, np.newaxis]
    u = z - room - ends
    mean = np.interp(u, x, excess) + np.maximum(x[0] - u, 0.0)
    return float(np.min((mean @ mass + n * _CUT_OFF) / room[:, 0])) + beyond
