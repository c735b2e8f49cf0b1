"""Limits of a ratio among all people of whom each counts once, however many records a person has."""

import math
from typing import NamedTuple

import numpy as np

from dp_metrics.release.ratio_limits import NoisyRatio

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
    from dp_metrics.release.normal_limits import normal_laplace_tail  # slow to import

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
