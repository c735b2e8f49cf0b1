"""Half the width of an interval for a mean that is known with normal and with Laplace error."""

import math

from scipy.special import erfcx, ndtr, ndtri  # scikit-learn depends on scipy

__all__ = ["mean_half_width", "normal_laplace_tail"]

_INFLATION = 3.2718  # the sum of two standard Laplace variables exceeds this with probability 5 %
_LEAST_NOISE = 1e-100
_HALVINGS = 60


def normal_laplace_tail(h: float, s: float, b: float) -> float:
    """Return P(abs(s N + b L) > h), for N standard normal and L standard Laplace, s >= 0 and b > 0."""
    if s == 0:
        return math.exp(-h / b)
    ratio, size = s / b, h / s
    # exp(ratio^2 / 2 -+ h / b) times a normal tail, without the overflow of the one or the other
    far = 0.5 * math.exp(-size * size / 2) * float(erfcx((ratio + size) / math.sqrt(2)))
    if ratio >= size:
        near = 0.5 * math.exp(-size * size / 2) * float(erfcx((ratio - size) / math.sqrt(2)))
    else:
        near = math.exp(ratio * ratio / 2 - h / b) * float(ndtr(size - ratio))
    return 2 * float(ndtr(-size)) + near - far


def mean_half_width(m: float, d: float, n: int, epsilon: float, miss: float) -> float:
    """Return half the width of the interval for the mean of numbers from 0 to 1.

    Parameters
    ----------
    m, d : float
        Their noisy mean, clipped to [0, 1], and the noisy mean of v (1 - v).
    n : int
        Number of records.
    epsilon : float
        Both have Laplace noise of scale 1 / (n epsilon).
    miss : float
        Probability with which the interval may miss.

    Notes
    -----
    The variance of the numbers is at most m (1 - m) minus the mean of v (1 - v). With both noisy, the sum of
    their noise is at most 3.2718 / (n epsilon) with probability 95 %, which is added.
    """
    # the limits keep the quotients finite
    noise = min(max(1 / (n * epsilon), _LEAST_NOISE), 1 / _LEAST_NOISE)
    largest = m * (1 - m)
    variance = largest - min(max(d, 0.0), 0.25) + _INFLATION * noise
    s = math.sqrt(min(max(variance, 0.0), largest + noise) / n)
    # either part exceeds its summand of the upper end with probability miss / 2
    low, high = 0.0, noise * math.log(2 / miss) - s * float(ndtri(miss / 4))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if normal_laplace_tail(middle, s, noise) > miss else (low, middle)
    return high
