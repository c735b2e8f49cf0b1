"""The law of hazard selection, and a draw from it that is exact as executed.

With q a float64 and every count of grid cells an integer, the cumulative hazard Lambda_k is a rational
number, and so is H(Lambda_k), the probability to release one of the first k outputs. A draw finds the k with
H(Lambda_(k-1)) <= U < H(Lambda_k) for a uniform U whose bits are drawn as they are needed. Floats decide when
their error cannot matter; otherwise integers do, with as many bits as it takes.
"""

import math
from bisect import bisect_left, bisect_right
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dp_metrics._random import Entropy, LazyUniform
from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms._grid import Grid, Integers, Runs
from dp_metrics.mechanisms._laws import GridLaw

TAIL = 3
"""Index of the power law of the upper tail of H."""

PEAK = 256
"""z0, where the density of H peaks, in grid cells: one resolution."""

_FEW_RANKS = 1024  # the hazard ratios of so few are kept: 16 kB at most


class HazardLaw(GridLaw):
    """The law of a hazard release: P(number <= k) = H(Lambda_k).

    Parameters
    ----------
    grid : Grid
        Public outputs.
    runs : Runs
        Levels of the score along the grid.
    q : float
        Hazard ratio of neighbouring ranks, at least exp(-eps2) and at most 1.
    monotonic : bool
        Which of the two laws H applies.

    Notes
    -----
    H(z) = A (z/z0)^power up to z0, and 1 - (1-A) (z/z0)^-3 from there on, with power 4 and A = 3/7 if the
    metric is monotonic, power 5 and A = 3/8 if not.

    **Error of the floats.** Let u = 2^-53, and c the number of ranks, so that there are R = 2c + 2 runs. The
    powers of q are running products, with a relative error of at most c u; a reciprocal adds u, the
    product with an exact count u, the running sum R u (all terms are positive) and the last, partial run
    2 u. So Lambda is known to (3c + 6) u < delta = (2R + 16) u. H up to z0, and 1 - H beyond, take at most 5
    factors of Lambda and 7 roundings: their relative error is below 6 delta, and `_margin` is 8 delta, which
    covers the terms of second order and the rounding of the comparison itself. Powers of q that underflow, or
    overflow as reciprocals, change H by less than 2^-63, the absolute slack of each comparison, which also
    covers the bits of U not yet drawn.
    """

    def __init__(self, grid: Grid, runs: Runs, q: float, monotonic: bool) -> None:
        self.grid = grid
        self.runs, self.q, self.monotonic = runs, q, monotonic
        self.power = TAIL + 1 if monotonic else TAIL + 2  # kappa + 1
        self.below = Fraction(TAIL, TAIL + self.power)  # A = H(z0)
        ranks = runs.counts.size // 2
        self._margin = 8 * (2 * runs.counts.size + 16) * 2.0**-53
        self._weights = _weights(q, ranks) if ranks <= _FEW_RANKS else _weights.__wrapped__(q, ranks)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            # the hazard overflows to infinity far above bounded data: any level is reached there
            terms = np.where(runs.counts > 0, runs.counts * self._weights, 0.0)
            self._cumulative = np.add.accumulate(terms)

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""
        return self.grid.point(self.draw(LazyUniform(entropy)))

    def draw(self, uniform: LazyUniform, *, exact: bool = False) -> int:
        """Return the number of the first output with U < H(Lambda_k), or of the last if there is none.

        Parameters
        ----------
        uniform : LazyUniform
            The bits of U.
        exact : bool, default=False
            Decide in integers even where floats could; the result is the same.
        """
        word = uniform.prefix(64)
        guess = self._guess(word)
        if not exact and self._certain(guess, word):
            return guess
        return self._search(guess, uniform)

    def _guess(self, word: int) -> int:
        """Return what `crossing` does for one U that starts with this word; it need not be right."""
        u, a = (word + 0.5) * 2.0**-64, float(self.below)
        if u <= a:
            level = PEAK * (u / a) ** (1.0 / self.power)
        else:
            level = PEAK * ((1.0 - a) / (((1 << 64) - word - 0.5) * 2.0**-64)) ** (1.0 / TAIL)
        run = bisect_left(self._cumulative, level)
        if run == self._cumulative.size:
            return self.grid.last
        start, end = int(self.runs.edges[run]), int(self.runs.edges[run + 1])
        before, weight = (float(self._cumulative[run - 1]) if run else 0.0), float(self._weights[run])
        if not 0.0 < weight < math.inf:
            return start
        cell: int = start + math.ceil((level - before) / weight) - 1
        return min(max(cell, start), end - 1)

    def _certain(self, number: int, word: int) -> bool:
        """Return whether H(number - 1) <= U < H(number) for every U that starts with this word."""
        if self._margin > 2.0**-20:
            return False
        u, v = word * 2.0**-64, ((1 << 64) - word) * 2.0**-64
        if number < self.grid.last:
            below, tail = self._parts(number)
            if not (below - u > self._margin * below + 2.0**-63 or v - tail > self._margin * v + 2.0**-63):
                return False
        if number > self.grid.first:
            below, tail = self._parts(number - 1)
            return u - below > self._margin * u + 2.0**-63 or tail - v > self._margin * tail + 2.0**-63
        return True

    def _parts(self, number: int) -> tuple[float, float]:
        """Return (H, nan) at the output if its Lambda is at most z0, and (nan, 1 - H) beyond."""
        run = bisect_right(self.runs.edges, number) - 1
        before, weight = (float(self._cumulative[run - 1]) if run else 0.0), float(self._weights[run])
        x = (before + (number - int(self.runs.edges[run]) + 1) * weight) / PEAK
        if x <= 1.0:
            h = float(self.below) * x * x * x * x
            return (h if self.monotonic else h * x), math.nan
        y = 1.0 / x
        return math.nan, float(1 - self.below) * y * y * y

    def _search(self, guess: int, uniform: LazyUniform) -> int:
        """Find the first output with U < H(Lambda_k) by exact comparisons, galloping away from a guess."""
        exact = _ExactComparison(self, uniform)
        low, high = self.grid.first - 1, self.grid.last  # U >= H at low, U < H (or the last) at high
        stride = 1
        number = min(max(guess, low + 1), high - 1)
        while high - low > 1:
            if exact.below(number):
                high = number
                number = max(number - stride, low + 1)
            else:
                low = number
                number = min(number + stride, high - 1)
            if low >= self.grid.first and high < self.grid.last:
                number = (low + high) // 2
            stride *= 2
        return high

    def level(self, u: Floats, one_minus_u: Floats) -> Floats:
        """Return Z = H^-1(u)."""
        a = float(self.below)
        with np.errstate(divide="ignore"):
            return np.where(
                u <= a,
                PEAK * np.power(u / a, 1.0 / self.power),
                PEAK * np.power((1.0 - a) / one_minus_u, 1.0 / TAIL),
            )

    def crossing(self, level: Floats) -> Integers:
        """Return the first k with Lambda_k >= level, or the last k if there is none."""
        # Comparing the level with every run, rather than cutting Lambda at some threshold, keeps each
        # output that is possible under one data set possible under its neighbours.
        run = np.searchsorted(self._cumulative, level, side="left")
        inside = np.minimum(run, self._cumulative.size - 1)
        before = np.where(inside > 0, self._cumulative[inside - 1], 0.0)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            cells = np.ceil((level - before) / self._weights[inside])
        # nan: infinite hazard, reached in the first cell
        cells = np.clip(np.nan_to_num(cells, nan=1.0), 1, np.maximum(self.runs.counts[inside], 1))
        first = self.runs.edges[inside] - 1
        return np.where(run == self._cumulative.size, self.grid.last, first + cells.astype(np.int64))

    def _hazard(self, indices: Integers) -> Floats:
        """Return Lambda_k."""
        run = self._run(indices)
        before = np.where(run > 0, self._cumulative[run - 1], 0.0)
        with np.errstate(over="ignore"):
            hazard: Floats = before + (indices - self.runs.edges[run] + 1) * self._weights[run]
        return hazard

    def _run(self, indices: Integers) -> Integers:
        run = np.searchsorted(self.runs.edges, indices, side="right") - 1
        return np.clip(run, 0, self._weights.size - 1)

    def log_probabilities(self, indices: Integers) -> Floats:
        """Return the logarithm of the probability of each output, to nearly the precision of floats."""
        inside = np.minimum(indices, self.grid.last - 1)
        hazard, term = self._hazard(inside), self._weights[self._run(inside)]
        # hazard - term would cancel where the term is nearly all of the hazard
        a, x, before = float(self.below), hazard / PEAK, self._hazard(inside - 1) / PEAK
        with np.errstate(all="ignore"):
            # the logarithm of Lambda_(k-1) / Lambda_k, from whichever of the two floats is the smaller part
            small, large = np.log(before / x), np.log1p(-np.minimum(term / hazard, 1.0))
            shrinking = np.where(before < x / 2, small, large)
            low = math.log(a) + self.power * np.log(x) + np.log(-np.expm1(self.power * shrinking))
            high = math.log(1 - a) - TAIL * np.log(before) + np.log(-np.expm1(TAIL * shrinking))
            across = np.log(1 - (1 - a) * x**-TAIL - a * before**self.power)
            none = np.where(x <= 1, np.log1p(-a * x**self.power), math.log(1 - a) - TAIL * np.log(x))
        logs = np.where(x <= 1, low, np.where(before >= 1, high, across))
        return np.where(indices >= self.grid.last, none, logs)

    def index_cdf(self, indices: Integers) -> Floats:
        """Return P(number of the release <= k)."""
        indices = np.asarray(indices)
        inside = np.clip(indices, self.grid.first, max(self.grid.last - 1, self.grid.first))
        x = self._hazard(inside) / PEAK
        with np.errstate(over="ignore"):
            low = float(self.below) * np.minimum(x, 1.0) ** self.power
            high = 1.0 - float(1 - self.below) * np.maximum(x, 1.0) ** -TAIL
        middle = np.where(x <= 1.0, low, high)
        return np.where(indices < self.grid.first, 0.0, np.where(indices >= self.grid.last, 1.0, middle))

    def index_quantile(self, p: Floats) -> Integers:
        """Return the smallest k with P(number <= k) >= p."""
        return self.crossing(self.level(p, 1.0 - p))


class _ExactComparison:
    """Decides U < H(Lambda_k) in integers, with ever more bits of both sides until it is certain.

    Everything is a whole number of 2^-bits. Each step is rounded down on one side and up on the other, so
    Lambda and H(Lambda) lie in brackets whose width shrinks with the bits; U equals no fixed number with
    probability 1, so the comparison ends.
    """

    def __init__(self, law: HazardLaw, uniform: LazyUniform) -> None:
        self._law, self._uniform = law, uniform
        self._edges: list[int] = law.runs.edges.tolist()
        self._counts: list[int] = law.runs.counts.tolist()
        self._brackets: dict[int, tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {}

    def below(self, number: int) -> bool:
        """Return whether U < H(Lambda_number)."""
        bits = 128
        while True:
            low, high = (
                self._h(edge, bits, up) for edge, up in zip(self._hazard(number, bits), (0, 1), strict=True)
            )
            u = self._uniform.prefix(bits)  # U lies in [u, u + 1)
            if u + 1 <= low:
                return True
            if u >= high:
                return False
            bits *= 2

    def _hazard(self, number: int, bits: int) -> tuple[int, int]:
        """Return a bracket of Lambda_number."""
        if bits not in self._brackets:
            self._brackets[bits] = self._prepare(bits)
        weights, sums = self._brackets[bits]
        run = int(np.searchsorted(self._edges, number, side="right")) - 1
        cells = number - self._edges[run] + 1
        return sums[run][0] + cells * weights[run][0], sums[run][1] + cells * weights[run][1]

    def _prepare(self, bits: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return brackets of the weight of each run, and of Lambda before each run."""
        numerator, denominator = self._law.q.as_integer_ratio()
        falling: list[tuple[int, int]] = []
        rising = [(1 << bits, 1 << bits)]
        low = high = 1 << bits
        for _ in range(len(self._counts) // 2):
            low, high = low * numerator // denominator, -(-high * numerator // denominator)
            falling.append((low, high))
        low = high = 1 << bits
        for _ in range(len(self._counts) // 2 - 1):
            low, high = low * denominator // numerator, -(-high * denominator // numerator)
            rising.append((low, high))
        weights = falling[::-1] + rising
        sums = [(0, 0)]
        for count, weight in zip(self._counts, weights, strict=True):
            sums.append((sums[-1][0] + count * weight[0], sums[-1][1] + count * weight[1]))
        return weights, sums

    def _h(self, hazard: int, bits: int, up: int) -> int:
        """Return H(hazard), rounded up or down."""
        a, power = self._law.below, self._law.power
        peak = PEAK << bits
        numerator: int
        denominator: int
        if hazard <= peak:
            numerator, denominator = (a.numerator * hazard**power) << bits, a.denominator * peak**power
            return -(-numerator // denominator) if up else numerator // denominator
        rest = 1 - a
        numerator, denominator = (rest.numerator * peak**TAIL) << bits, rest.denominator * hazard**TAIL
        return (1 << bits) - (numerator // denominator if up else -(-numerator // denominator))


@lru_cache(maxsize=256)
def _weights(q: float, ranks: int) -> Floats:
    """Return the hazard ratio of each run: q^ranks, ..., q^2, q, 1, 1 / q, 1 / q^2, ..."""
    with np.errstate(over="ignore", divide="ignore", under="ignore"):
        falling = np.multiply.accumulate(np.full(ranks, q))  # q, q^2, ...
        weights = np.concatenate([falling[::-1], [1.0], 1.0 / falling[:-1]])
    weights.flags.writeable = False
    return weights


@lru_cache(maxsize=256)
def largest_ratio(share: Fraction) -> float:
    """Return the smallest float64 that is certainly >= exp(-share), at most 1.

    Parameters
    ----------
    share : Fraction
        eps2 > 0.

    Notes
    -----
    The 60-digit decimal below is an upper bound of exp(-share): the share is rounded down, and `exp`, which
    is correctly rounded, is followed by one step up. So the result is either the smallest such float or,
    if exp(-share) were within 1e-59 of a float, the one after it.
    """
    down = Context(prec=60, rounding=ROUND_FLOOR, Emin=-(10**9), traps=[])
    exponent = down.divide(Decimal(share.numerator), Decimal(share.denominator))
    # the result is below every positive float, and Decimal's exp would underflow in the end
    if exponent > 800:
        return math.ulp(0.0)
    up = Context(prec=60, rounding=ROUND_CEILING, Emin=-(10**9), traps=[])
    # a minus rounds to the digits of the caller's own context, whose traps a float would meet
    bound = up.next_plus(up.exp(exponent.copy_negate()))
    ratio = float(bound)
    if Decimal.from_float(ratio) < bound:
        ratio = math.nextafter(ratio, math.inf)
    return min(ratio, 1.0)
