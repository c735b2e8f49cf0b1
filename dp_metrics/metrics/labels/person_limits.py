"""Limits of a net benefit, and of ratios of people of whom each counts once.

At a threshold t the net benefit is (TP - w FP) / n, w = t / (1 - t): A. J. Vickers and E. B. Elkin (2006,
doi:10.1177/0272989X06295361). The number n of records is public.
"""

import math
from typing import NamedTuple

import numpy as np

from dp_metrics.release.count_limits import NoisyRatio

_LARGEST_REACH = 1 << 18  # beyond, the law of a sum takes too long
_POINTS, _ROUNDS = 2_001, 2


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
        table = counts.table()
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
    from dp_metrics.release.count_limits import normal_laplace_tail  # slow to import

    of_a, of_b = counts.variances
    noise = of_a + weight**2 * of_b
    if counts.rest is not None:
        each, together = of_a / counts.cells[0], sum(counts.cells) + counts.rest
        noise -= each * (counts.cells[0] - weight * counts.cells[1]) ** 2 / together
    value, more = counts.a - weight * counts.b, 1 + weight**2
    square = max(counts.a, 0) + weight**2 * max(counts.b, 0) + more
    low, high = -weight, 1.0
    for _ in range(_ROUNDS):
        grid = np.linspace(low, high, _POINTS)
        spread = np.sqrt(np.maximum(square - n * grid**2, more))
        tail = normal_laplace_tail(np.abs(value - n * grid), spread, math.sqrt(max(noise, 0.0) / 2)) / 2
        likely = np.flatnonzero(tail > miss)
        if not likely.size:  # beyond the range, or closer than the grid tells
            end = min(max(value / n, low), high)
            return end, end
        low, high = float(grid[max(likely[0] - 1, 0)]), float(grid[min(likely[-1] + 1, _POINTS - 1)])
    return low, high


_HALVINGS = 50
_LEAST = 0.1  # part of the largest variance that is taken at least


class PersonProducts(NamedTuple):
    """Noisy sums over all persons of products of their units in a, in b, and in neither."""

    ab: float
    ac: float
    bc: float


def person_limits(
    ratio: NoisyRatio, units: int, miss: float, products: PersonProducts | None = None
) -> tuple[float, float]:
    """Return approximate limits of a / (a + b) among all people, of whom each counts once.

    Parameters
    ----------
    ratio : NoisyRatio
        Noisy numbers of units in a and in b: see `person_units`.
    units : int
        How many each person has.
    miss : float
        Probability with which either limit may miss.
    products : PersonProducts or None, default=None
        Where they were released too. Without them limits hold for persons whose records are all alike: they
        cover nearly always, and are up to twice as far apart.

    Notes
    -----
    With A, B and C the parts of a person that are in a, in b, and in neither, A + B + C = 1, and R the ratio
    of the means of A and of A + B, W = (1 - R) A - R B has the mean 0, and the mean square

        R (1 - R) mean(A + B) - mean(AB + (1 - R)^2 AC + R^2 BC).

    The sum of W over the persons is taken to be normal, with Laplace noise of the variance of the noise. One
    record of each person, drawn at random, has sure limits: `ratio_limits`.
    """
    return _lower(ratio, units, miss, products), 1.0 - _lower(
        ratio.swapped, units, miss, products and PersonProducts(products.ab, products.bc, products.ac)
    )


def _lower(ratio: NoisyRatio, units: int, miss: float, products: PersonProducts | None) -> float:
    from dp_metrics.release.count_limits import normal_laplace_tail  # slow to import

    a, b = (max(count, 0) / units for count in (ratio.a, ratio.b))
    ab, ac, bc = (0.0, 0.0, 0.0) if products is None else (one / units**2 for one in products)
    (of_a, of_b), both = ratio.variances, 0.0
    if ratio.rest is not None:
        each, together = of_a / ratio.cells[0], sum(ratio.cells) + ratio.rest
        of_a, of_b, both = (
            x - each * y / together
            for x, y in (
                (of_a, ratio.cells[0] ** 2),
                (of_b, ratio.cells[1] ** 2),
                (0.0, math.prod(ratio.cells)),
            )
        )
    if a + b <= 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        p = (low + high) / 2
        noise = ((1 - p) ** 2 * of_a + p**2 * of_b - 2 * p * (1 - p) * both) / units**2
        most = (a + b) * p * (1 - p)
        spread = max(most - ab - (1 - p) ** 2 * ac - p**2 * bc, _LEAST * most)
        away = a - p * (a + b)
        tail = float(normal_laplace_tail(abs(away), np.sqrt(spread), math.sqrt(max(noise, 0.0) / 2))) / 2
        is_likely = (1 - tail if away < 0 else tail) > miss
        low, high = (low, p) if is_likely else (p, high)
    return low
