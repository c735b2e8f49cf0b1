"""Limits of a net benefit, and of the number of positives over the number that scores expect.

At a threshold t the net benefit is (TP - w FP) / n, w = t / (1 - t): A. J. Vickers and E. B. Elkin (2006,
doi:10.1177/0272989X06295361). The number n of records is public.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from dp_metrics.inputs.options import Floats
from dp_metrics.quantities.tables import CountsNoise, as_floats
from dp_metrics.release.count_limits import NoisyRatio, least_likely

_LARGEST_REACH = 1 << 18  # beyond, the law of a sum takes too long


def benefit_noise_limits(counts: NoisyRatio, n: int, weight: float, miss: float) -> tuple[float, float]:
    """Return limits of the net benefit of these records: how far the noise may have moved it.

    Parameters
    ----------
    counts : NoisyRatio
        Noisy numbers of true positives, a, and of false positives, b.
    n : int
        Public number of records.
    weight : float
        How many true positives a false positive costs.
    miss : float
        Probability, above 0, with which either limit may be wrong, whatever the counts are.

    Notes
    -----
    The released benefit is off by z_a - weight z_b, whose law is known and symmetric: its quantile is as far
    as either limit is away.
    """
    if counts.reach > _LARGEST_REACH:
        away = counts.largest_noise(0, miss / 2) + weight * counts.largest_noise(1, miss / 2)
    else:
        table = counts.table().law
        width = 2 * counts.slack + 1
        places = width * (np.arange(table.shape[0]) - table.shape[0] // 2)
        error = (places[:, np.newaxis] - weight * places).ravel()
        order = np.argsort(error)[::-1]
        at_least = np.cumsum(table.ravel()[order])  # in blocks, those that are as far off or farther
        place = int(np.searchsorted(at_least, miss - counts.dropped, side="right"))
        away = float(error[order[place]]) + counts.slack * (1 + weight)
    value = counts.a - weight * counts.b
    lower, upper = (min(max(end / n, -weight), 1.0) for end in (value - away, value + away))
    return lower, upper


def benefit_limits(counts: NoisyRatio, n: int, weight: float, miss: float) -> tuple[float, float]:
    """Return approximate limits of the net benefit among all people like the records: arguments as above.

    Of several thresholds each has its part of the miss, if all limits are to hold at once.

    Notes
    -----
    For each benefit u, a - weight b - n u has the mean 0. Its error is taken to be normal, with the variance
    n (share of a + weight^2 share of b - u^2) by the noisy counts and that of one record more in either, and
    Laplace noise of the variance of the noise. The upper limit was missed with up to .063, not .025, where
    few records are positive.
    """
    of_a, of_b, both = counts.moments
    noise = of_a + weight**2 * of_b - 2 * weight * both
    value, more = counts.a - weight * counts.b, 1 + weight**2
    square = max(counts.a, 0) + weight**2 * max(counts.b, 0) + more

    def least(sign: int, low: float, high: float) -> float:
        """Return the lower limit of the benefit, or of minus the benefit."""

        def error(u: Floats) -> tuple[Floats, Floats, Floats]:
            return sign * value - n * u, np.maximum(square - n * u**2, more), np.full_like(u, noise)

        return float(least_likely(error, np.array(low), np.array(high), miss))

    return least(1, -weight, 1.0), -least(-1, -1.0, weight)


_LARGEST_LOGARITHM, _HALVINGS = 20.0, 60  # of a ratio


def over_expected_limits(
    noise: CountsNoise, edges: Floats, miss: float, *, of_people: bool
) -> tuple[float, float]:
    """Return approximate limits of the number of positives over the sum of the probabilities.

    Parameters
    ----------
    noise : CountsNoise
        Noisy numbers of negatives by bin, and then of positives.
    edges : ndarray
        Of the bins, from 0 to 1.
    miss : float
        Probability with which either limit may be wrong.
    of_people : bool
        Whether the limits are among all people like the records.

    Notes
    -----
    For the ratio r the sum of y - r s over the records, y 1 for a positive and else 0 and s the probability,
    has the mean 0, and falls as r grows. Its error is taken to be normal: the noise of the weighted counts
    and, among people, chance. Where probabilities lie within their bins is not told: the lower limit is that
    of the upper edges, and the upper limit that of the lower edges.
    """
    counts, bins = as_floats(noise.numbers), edges.size - 1
    present, positive = np.maximum(counts, 0.0), np.repeat([0.0, 1.0], bins)
    reach = -float(ndtri(miss))

    def away(ratio: float, scores: Floats) -> tuple[float, float]:
        weights = positive - ratio * np.concatenate([scores, scores])
        variance = max(noise.covariance(weights, weights), 0.0)
        if of_people:
            variance += float(present @ weights**2)
        return float(counts @ weights), reach * math.sqrt(variance)

    def first(is_beyond: Callable[[float], bool]) -> float:
        """Return where this begins to hold: 0 where it always does, infinity where it does nowhere."""
        low, high = -_LARGEST_LOGARITHM, _LARGEST_LOGARITHM
        if is_beyond(math.exp(low)):
            return 0.0
        if not is_beyond(math.exp(high)):
            return math.inf
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if is_beyond(math.exp(middle)) else (middle, high)
        return math.exp(high)

    def is_likely(ratio: float) -> bool:
        value, far = away(ratio, edges[1:])
        return value <= far

    def is_too_large(ratio: float) -> bool:
        value, far = away(ratio, edges[:-1])
        return value < -far

    return first(is_likely), first(is_too_large)
