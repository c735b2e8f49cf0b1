"""Which of two models is better on more records, from two noisy counts: the mathematics, without data.

Model A wins on W records and B on L; D = W - L, and m = W + L records are decided, of n. Both are released
with two-sided geometric noise of a rate r: k has probability proportional to exp(-r abs(k)). All functions
here are functions of the two released whole numbers and of public ones.
"""

import math

import numpy as np
from scipy.optimize import brentq  # scikit-learn depends on scipy
from scipy.stats import binom

from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms._staircase import ENORMOUS
from dp_metrics.mechanisms.geometric import largest_noise, noise_cdf
from dp_metrics.release.noisy_binomial import noisy_binomial_limits

LEAST_P = 0.001
"""Allowed to miss the number of decided records; no p-value is smaller."""

_LARGEST_MISS = 0.2  # only tails up to this grow with the share of decided records
_LEFT_OUT = 1e-15  # probability of sums that are not looked at
_ROUNDING = 1e-12  # this exceeds what is left out and what floats do to the sum of a law
_NOTHING = -60.0  # logarithm of what does not show in a sum of floats
_EXACT = 1 << 53  # floats hold every whole number up to this
_PRECISION = 1e-10  # the search for theta stops at this
_MOST_STEPS = 10_000  # this exceeds the square of the steps of a bisection: the search cannot fail
_FEW = 4.0  # fewer undecided records than this do not quite hide the parity of D
_BETWEEN = 1.01  # this exceeds the largest tail over all such shares, divided by that over some of them


def noise_reach(rate: float, miss: float) -> float:
    """Return the smallest whole j that the noise exceeds with at most this probability; perhaps infinite."""
    reach = largest_noise(rate, miss)
    return math.inf if reach == ENORMOUS else float(reach)


def wins_p_value(difference: int, decided: int, n: int, rate: float) -> float:
    """Return the p-value of: A and B win with one probability.

    Parameters
    ----------
    difference, decided : int
        The noisy D and m.
    n : int
        Public number of records.
    rate : float
        Rate of the noise of each.

    Returns
    -------
    float
        From `LEAST_P` to 1.

    Notes
    -----
    Given m, D is 2 Binomial(m, 1/2) - m, so the law of the noisy D is known but for m. With probability
    1 - g, g = `LEAST_P`, m is at most an upper limit u made of the noisy m, whose noise is independent, and

        p = g + max over k = u, u - 1 of P(abs(2 Binomial(k, 1/2) - k + noise) >= abs(noisy D))

    is valid: P(p <= a) <= a for every a (R. L. Berger and D. D. Boos, JASA 89 (1994), 1012-1016). Two
    values of k, because the tail grows from k to k + 2, but not from k to k + 1, where the parity changes.
    The tail grows: with X = 2 Binomial(k, 1/2) - k + noise and d >= 1, it changes by (s(d - 2) - s(d)) / 2
    on either side together, s(i) = P(X = i) + P(X = i + 1); twice a binomial plus a fair 0 or 1 is unimodal,
    the noise is log-concave, so s is unimodal, and it is symmetric about -1/2.
    """
    reach = noise_reach(rate, LEAST_P)
    upper = min(float(n), float(min(max(decided, 0), n)) + reach)
    tails = (_two_sided_tail(k, difference, rate) for k in (int(upper), max(int(upper) - 1, 0)))
    return min(1.0, LEAST_P + max(tails))


def _two_sided_tail(k: int, difference: int, rate: float) -> float:
    """Return P(abs(2 Binomial(k, 1/2) - k + noise) >= abs(difference))."""
    far = min(abs(difference), _EXACT)
    if far == 0:
        return 1.0
    # Hoeffding's inequality: what lies farther away has at most the probability _LEFT_OUT
    width = math.ceil(math.sqrt(0.5 * k * math.log(2.0 / _LEFT_OUT)))
    wins = np.arange(max(k // 2 - width, 0), min(k // 2 + width + 1, k) + 1, dtype=np.float64)
    upper = float(binom.pmf(wins, k, 0.5) @ noise_cdf(2.0 * wins - far - k, rate))
    return 2.0 * (upper + _LEFT_OUT)


def wins_interval(
    difference: int, decided: int, n: int, rate: float, confidence: float
) -> tuple[float, float]:
    """Return limits of theta, the probability that A wins less the probability that B does.

    Parameters
    ----------
    difference, decided, n, rate
        As for `wins_p_value`.
    confidence : float
        Least probability with which both limits hold, over records and noise.

    Returns
    -------
    lower, upper : float
        The limits, from -1 to 1.

    Notes
    -----
    Let a be 1 - confidence and g the smaller of 0.001 and a / 10. The share of decided records has an upper
    limit that fails with probability g, from the noisy m. At that share, a theta is below the lower limit if
    the noisy D would be as large as it is, or larger, with probability (a - g) / 2 at most; likewise above.
    So the interval holds if these tails are no larger at the true share than at the limit. They grow with
    the share, but for the last few records: where hardly any is undecided, D has almost surely the parity of
    n. There the largest tail over a few smaller shares is taken, and a little added for those between. That
    tails up to 0.2 then grow has no proof; it was checked on a grid of shares, thetas, n and rates.
    """
    allowed = 1.0 - confidence
    for_share = min(LEAST_P, allowed / 10.0)
    counted = min(max(decided, 0), n)
    _, most = noisy_binomial_limits(counted, n, rate, miss_low=0.0, miss_high=for_share)
    miss = min((allowed - for_share) / 2.0, _LARGEST_MISS)
    # clamped, like a count: whatever the noise, the interval is not empty, and its tails are the same
    noisy = max(-n, min(difference, n))
    return _lower_limit(noisy, n, rate, most, miss), -_lower_limit(-noisy, n, rate, most, miss)


def _lower_limit(difference: int, n: int, rate: float, most: float, miss: float) -> float:
    """Return the largest theta, or hardly less, at which the upper tail is at most `miss`."""
    low, high = -most, most
    if _upper_tail(low, difference, n, rate, most) > miss:
        return low
    if _upper_tail(high, difference, n, rate, most) <= miss:
        return high
    root = brentq(
        lambda theta: _upper_tail(theta, difference, n, rate, most) - miss,
        low,
        high,
        xtol=_PRECISION,
        maxiter=_MOST_STEPS,
    )
    return max(float(root) - 2.0 * _PRECISION, low)


def _upper_tail(theta: float, difference: int, n: int, rate: float, most: float) -> float:
    """Return P(noisy D >= difference) at this theta, the largest over some shares of decided records."""
    less, factor = np.zeros(1), 1.0
    if n * (1.0 - most) < _FEW:
        less, factor = np.arange(0.0, _FEW, 0.25) / n, _BETWEEN
    first, laws = _laws_of_difference(n, theta, np.maximum(most - less, abs(theta)))
    values = np.arange(first, first + laws.shape[1], dtype=np.float64)
    return factor * float((laws @ noise_cdf(values - difference, rate)).max()) + _ROUNDING


def _laws_of_difference(n: int, theta: float, shares: Floats) -> tuple[int, Floats]:
    """Return the law of D for each share of decided records: the first value, and a row of probabilities.

    D is a sum of n independent steps: 1 and -1 with probabilities (share +- theta) / 2, or else 0. Its
    characteristic function is the n-th power of that of a step, from which a Fourier transform makes the
    probabilities modulo its length. By Hoeffding's inequality hardly anything is farther than half the
    length from the mean.
    """
    width = min(2.0 * n, math.sqrt(2.0 * n * math.log(2.0 / _LEFT_OUT)) + 1.0)
    length = 1 << math.ceil(math.log2(2.0 * width + 2.0))
    middle = round(n * theta)
    angles = np.arange(length // 2 + 1) * (2.0 * math.pi / length)
    # the n-th power of a float near 1 would keep few digits: hence log1p and the polar form
    less = -2.0 * shares[:, np.newaxis] * np.sin(angles / 2.0) ** 2
    turned = theta * np.sin(angles)
    with np.errstate(divide="ignore"):
        log_modulus = 0.5 * n * np.log1p(np.maximum(less * (2.0 + less) + turned**2, -1.0))
    row, at = np.nonzero(log_modulus > _NOTHING)  # these are few if n is large
    phase = n * np.arctan2(turned[at], 1.0 + less[row, at]) - middle * angles[at]
    transform = np.zeros(less.shape, dtype=np.complex128)
    transform[row, at] = np.exp(log_modulus[row, at] - 1j * phase)
    law = np.fft.irfft(transform, length, axis=1)
    return middle - length // 2, np.fft.fftshift(np.maximum(law, 0.0), axes=1)
