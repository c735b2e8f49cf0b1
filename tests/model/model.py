"""A second implementation of the release: slow, in fractions, from the theory and not from the package.

It is a yardstick for the package and imports nothing of it. Everything is done as the definitions say it: the
distance of every grid point is looked up, every hazard is added, every window is summed. Floats are public
constants, records and grid points, each taken as the rational number that it is. Whatever rounds says so.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import NamedTuple

UNLIMITED = Fraction(2) ** 5000  # more than any float, whatever divides it
CELLS = 256  # z0: grid cells in one resolution, and the level at which H has its peak
TAIL = 3
BITS = 256  # probabilities are rounded down to this many bits, once


# Epsilon and its exponentials


def epsilon_of(epsilon: float) -> Fraction:
    """Return the decimal that was typed."""
    return Fraction(repr(float(epsilon)))


def exp_minus(x: Fraction) -> Fraction:
    """Return exp(-x) for x >= 0, to 80 digits and more."""
    halvings = max(0, math.ceil(x)).bit_length()
    y = x / 2**halvings  # at most 1
    total = term = Fraction(1)
    for i in range(1, 80):
        term *= -y / i
        total += term
    return total ** (2**halvings)


def hazard_ratio(eps2: Fraction) -> Fraction:
    """Return q, the least float that is at least exp(-eps2)."""
    exact = exp_minus(eps2)
    q = float(exact)
    while Fraction(q) < exact:
        q = math.nextafter(q, 2)
    while Fraction(math.nextafter(q, 0)) >= exact:
        q = math.nextafter(q, 0)
    return Fraction(min(q, 1.0))


# Output bounds: exact rational numbers, each rounded once and saturated


class Bounds(NamedTuple):
    """Limits of rank 0, 1, ..., c as floats; those of rank 0 are the metric."""

    lower: list[float]
    upper: list[float]
    t_max: float
    monotonic: bool


def rounded(x: Fraction, t_max: float) -> float:
    return t_max if x >= t_max else float(x)


def rounded_bounds(
    lower: Sequence[Fraction], upper: Sequence[Fraction], t_max: float, monotonic: bool
) -> Bounds:
    return Bounds([rounded(x, t_max) for x in lower], [rounded(x, t_max) for x in upper], t_max, monotonic)


def mean_bounds(
    terms: Sequence[Fraction], limits: Sequence[Fraction], weight: Fraction, t_max: float, c: int
) -> Bounds:
    """Return the bounds of sum(terms) / weight, where term i can become anything from 0 to limit i."""
    total = sum(terms)
    down = sorted(terms, reverse=True)
    up = sorted((m - p for p, m in zip(terms, limits, strict=True)), reverse=True)
    lower = [(total - sum(down[:rank])) / weight for rank in range(c + 1)]
    upper = [total / weight] + [(total + sum(up[:rank])) / weight for rank in range(1, c + 1)]
    return rounded_bounds(lower, upper, t_max, monotonic=True)


def quotient(numerator: Fraction, denominator: int) -> Fraction:
    """Return the mean; that of no records is 0."""
    return numerator / denominator if denominator else Fraction(0)


def private_mean_bounds(losses: Sequence[Fraction], cap: Fraction, t_max: float, c: int) -> Bounds:
    """Return the bounds of a mean of which a records may go and b others may come, a + b = rank."""
    n, up = len(losses), sorted(losses)
    without_large = [sum(up[: n - a], Fraction(0)) for a in range(n + 1)]
    without_small = [sum(up[a:], Fraction(0)) for a in range(n + 1)]
    lower, upper = [], []
    for rank in range(c + 1):
        ways = [(a, rank - a) for a in range(min(rank, n) + 1)]
        least = min(quotient(without_large[a], n - a + b) for a, b in ways)
        lower.append(Fraction(0) if rank >= n else least)
        upper.append(max(quotient(without_small[a] + b * cap, n - a + b) for a, b in ways))
    return rounded_bounds(lower, upper, t_max, monotonic=False)


def least_squares(x: Sequence[Fraction], size: int) -> Fraction:
    """Return the least sum of squares about the mean of `size` consecutive sorted values."""
    if size < 1:
        return Fraction(0)
    windows = [sorted(x)[i : i + size] for i in range(len(x) - size + 1)]
    return min(sum(t * t for t in w) - Fraction(sum(w) ** 2, size) for w in windows)


def variance_bounds(x: Sequence[Fraction], width: Fraction, t_max: float, c: int) -> Bounds:
    n = len(x)
    lower = [least_squares(x, n - rank) / n for rank in range(c + 1)]
    gain = width**2 * Fraction(n - 1, n * n) if width < UNLIMITED else UNLIMITED
    upper = [lower[0]] + [min(lower[0] + rank * gain, width**2 / 4) for rank in range(1, c + 1)]
    return rounded_bounds(lower, upper, t_max, monotonic=False)


def private_variance_bounds(x: Sequence[Fraction], width: Fraction, t_max: float, c: int) -> Bounds:
    n = len(x)
    squares = [least_squares(x, n - a) for a in range(n + 1)]

    def lower(rank: int) -> Fraction:
        return min(quotient(squares[a], n - 2 * a + rank) for a in range(min(rank, n) + 1))

    def upper(rank: int) -> Fraction:
        if rank == 0 or rank >= n:
            return width**2 / 4 if rank else lower(0)
        return min(width**2 / 4, max((squares[0] + rank * width**2) / (n + rank), squares[0] / (n - rank)))

    ranks = range(c + 1)
    return rounded_bounds([*map(lower, ranks)], [*map(upper, ranks)], t_max, monotonic=False)


def order_bounds(x: Sequence[Fraction], k: int, t_max: float, c: int) -> Bounds:
    """Return the bounds of the k-th smallest value, at least 0."""
    values = [Fraction(0), *sorted(x), UNLIMITED]
    lower = [values[max(k - rank, 0)] for rank in range(c + 1)]
    upper = [values[min(k + rank, len(x) + 1)] for rank in range(c + 1)]
    return rounded_bounds(lower, upper, t_max, monotonic=True)


def wrong_pairs(positives: Sequence[float], negatives: Sequence[float]) -> int:
    """Return twice the loss: 2 for each pair in the wrong order, 1 for a tie."""
    return sum(2 * (p < x) + (p == x) for p, x in product(positives, negatives))


def auc_lower(ps: Sequence[float], xs: Sequence[float], c: int, private_n: bool) -> list[Fraction]:
    """Return the lower bounds of ranks 1 to c of 1 - AUC, for positives ps and negatives xs."""
    up, down = sorted(ps), sorted(xs, reverse=True)
    n, smaller = len(up) + len(down), min(len(up), len(down))
    drops = product(range(len(up) + 1), range(len(down) + 1))
    left = {(a, b): wrong_pairs(up[a:], down[b:]) for a, b in drops if a + b < smaller}

    def pairs(low: int, high: int, total: int) -> int:
        return max(2 * p * (total - p) for p in range(low, high + 1))

    def limit(rank: int) -> Fraction:
        if private_n:
            return min(
                Fraction(
                    min(lost for (a, b), lost in left.items() if a + b <= k),
                    pairs(len(up) - k, len(up) + rank - k, n - 2 * k + rank),
                )
                for k in range(rank + 1)
            )
        return min(
            Fraction(left[a, rank - a], pairs(len(up) - a, len(up) + rank - a, n)) for a in range(rank + 1)
        )

    return [Fraction(0) if rank >= smaller else limit(rank) for rank in range(1, c + 1)]


def auc_bounds(positives: Sequence[float], negatives: Sequence[float], c: int, private_n: bool) -> Bounds:
    """Return the bounds of 1 - AUC."""
    pairs = 2 * len(positives) * len(negatives)
    f = Fraction(wrong_pairs(positives, negatives), pairs) if pairs else Fraction(1, 2)
    lower = auc_lower(positives, negatives, c, private_n)
    mirrored = auc_lower([-p for p in positives], [-x for x in negatives], c, private_n)
    return rounded_bounds([f, *lower], [f, *(1 - x for x in mirrored)], 1.0, monotonic=False)


# Hazard selection


def default_resolution(n: int, eps2: Fraction) -> float:
    return 1 / (n * float(eps2) / 10 + 2.5)


def count_ranks(resolution: float, eps2: Fraction, n: int) -> int:
    return min(math.ceil(max(math.log(1e4 / resolution), 1) / float(eps2)), n)


def geometric_grid(scale: float, resolution: float, t_max: float) -> list[float]:
    """Return scale * expm1(k * step), the last point being t_max."""
    step, points = max(resolution / CELLS, 2.0**-40), list[float]()
    while (k := len(points)) * step <= 709 and scale * math.expm1(k * step) < t_max:
        points.append(scale * math.expm1(k * step))
    return [*points, t_max]


def bounded_grid(scale: float, resolution: float, t_max: float, reach: float) -> list[float]:
    """Return a grid that is geometric up to reach / 10, and even from there on."""
    turn = reach / 10
    if not scale < turn < t_max:
        return geometric_grid(scale, resolution, t_max)
    step, points = turn * (resolution / CELLS), geometric_grid(scale, resolution, turn)
    even = range(1, max(math.ceil((t_max - turn) / step), 1))
    return [*points, *(turn + j * step for j in even), t_max]


def distance(bounds: Bounds, t: float) -> int:
    """Return the least rank whose limits hold t, or c + 1."""
    ranks = range(len(bounds.lower))
    return next((rank for rank in ranks if bounds.lower[rank] <= t <= bounds.upper[rank]), len(ranks))


def exponent(bounds: Bounds, t: float) -> int:
    """Return s(x; t) - 1/2, in ranks."""
    return max(distance(bounds, t), 1) - 1 if t >= bounds.lower[0] else -distance(bounds, t)


def hazard_share(epsilon: Fraction, monotonic: bool) -> Fraction:
    return epsilon / (1 + TAIL if monotonic else 2 + TAIL)


class HazardModel:
    """The law of hazard selection on a grid: Lambda_k = levels[k] / unit."""

    def __init__(self, bounds: Bounds, grid: Sequence[float], epsilon: Fraction) -> None:
        q = hazard_ratio(hazard_share(epsilon, bounds.monotonic))
        exponents = [exponent(bounds, t) for t in grid]
        top, bottom = max(0, max(exponents)), max(0, -min(exponents))
        a, b = q.numerator, q.denominator
        hazards = {e: a ** (top - e) * b ** (bottom + e) for e in set(exponents)}
        self.unit = a**top * b**bottom  # the hazard of exponent 0: that of exponent e is q^-e times as large
        self.kappa = TAIL if bounds.monotonic else TAIL + 1
        self.grid = list(grid)
        self.levels, level = list[int](), 0
        for e in exponents:
            level += hazards[e]
            self.levels.append(level)

    def cdf(self, k: int, forget: int = 0) -> tuple[int, int]:
        """Return numerator and denominator of H(Lambda_k), up to so many last bits of Lambda."""
        if k == len(self.grid) - 1:
            return 1, 1
        z, z0, kappa = self.levels[k] >> forget, CELLS * self.unit >> forget, self.kappa
        if z <= z0:
            return TAIL * z ** (kappa + 1), (TAIL + kappa + 1) * z0 ** (kappa + 1)
        return (TAIL + kappa + 1) * z**TAIL - (kappa + 1) * z0**TAIL, (TAIL + kappa + 1) * z**TAIL

    def probabilities(self) -> list[float]:
        """Return the probability of each grid point, from 256 bits of H and four times as many of Lambda."""
        forget = max(self.unit.bit_length() - 4 * BITS, 0)
        fractions = (self.cdf(k, forget) for k in range(len(self.grid)))
        values = [0, *((numerator << BITS) // denominator for numerator, denominator in fractions)]
        return [(after - before) / 2**BITS for before, after in pairwise(values)]

    def released(self, u: Fraction) -> int:
        """Return the k that the uniform number u means: the first with u < H(Lambda_k)."""
        return bisect_left(range(len(self.grid) - 1), True, key=lambda k: self.holds(u, k))

    def holds(self, u: Fraction, k: int) -> bool:
        """Return whether u < H(Lambda_k)."""
        numerator, denominator = self.cdf(k)
        return u.numerator * denominator < numerator * u.denominator
