"""Hazard selection: one search along a public grid.

With q a float64 and every count of grid cells an integer, the cumulative hazard Lambda_k is a rational
number, and so is H(Lambda_k), the probability to release one of the first k outputs. A draw finds the k with
H(Lambda_(k-1)) <= U < H(Lambda_k) for a uniform U whose bits are drawn as they are needed. Floats decide when
their error cannot matter; otherwise integers do, with as many bits as it takes.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import accumulate
from operator import mul

import numpy as np

from dp_metrics._random import Entropy, LazyUniform, exp_bounds
from dp_metrics.inputs.options import (
    MAX_FLOAT,
    Epsilon,
    Floats,
    Function,
    Range,
    check_positive,
    exact_epsilon,
    own_error_state,
)
from dp_metrics.mechanisms._base import PUBLIC_END, TOO_FEW, UNBOUNDED, Mechanism, ceil_ranks
from dp_metrics.mechanisms._laws import (
    GeometricGrid,
    Grid,
    GridLaw,
    Integers,
    Limits,
    nearest_index,
    run_edges,
)
from dp_metrics.sensitivity.exact import rounded
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds

TAIL = 3
"""Index of the power law of the upper tail of H."""

PEAK = 256
"""z0, where the density of H peaks, in grid cells: one resolution."""

_BITS_OF_LAW = 1280  # the smallest probabilities that floats hold have many of them
_FEW_RANKS = 1024  # the hazard ratios of so few are kept: 16 kB at most


class HazardLaw(GridLaw):
    """The law of a hazard release: P(number <= k) = H(Lambda_k).

    Parameters
    ----------
    grid : Grid
        Public outputs.
    output_bounds : OutputBounds
        What tells the score along the grid, and which of the two laws H applies.
    q : float
        Hazard ratio of neighbouring ranks, at least exp(-eps2) and at most 1.

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

    edges_of = staticmethod(run_edges)

    def __init__(self, grid: Grid, output_bounds: OutputBounds, q: float) -> None:
        self.grid, self.q, self.monotonic = grid, q, output_bounds.monotonic
        self.edges = self.edges_of(grid, output_bounds)
        self.counts = counts = self.edges[1:] - self.edges[:-1]
        self.power = TAIL + 1 if self.monotonic else TAIL + 2  # kappa + 1
        self.below = Fraction(TAIL, TAIL + self.power)  # A = H(z0)
        ranks = counts.size // 2
        self._margin = 8 * (2 * counts.size + 16) * 2.0**-53
        self._weights = _weights(q, ranks) if ranks <= _FEW_RANKS else _weights.__wrapped__(q, ranks)
        # the hazard overflows to infinity far above bounded data: any level is reached there
        self._before = np.zeros(counts.size + 1)
        np.add.accumulate(np.where(counts > 0, counts * self._weights, 0.0), out=self._before[1:])

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""
        return self.grid.point(self.draw(LazyUniform(entropy)))

    def draw(self, uniform: LazyUniform) -> int:
        """Return the number of the first output with U < H(Lambda_k), or of the last if there is none."""
        word = uniform.prefix(64)
        guess = self._guess(word)
        return guess if self._certain(guess, word) else self._search(guess, uniform)

    def _guess(self, word: int) -> int:
        """Return the number that a U which starts with this word draws, or one near it."""
        level = self.level((word + 0.5) * 2.0**-64, ((1 << 64) - word - 0.5) * 2.0**-64)
        run = bisect_left(self._before, level) - 1
        if run == self.counts.size:
            return self.grid.last
        start, end = int(self.edges[run]), int(self.edges[run + 1])
        before, weight = float(self._before[run]), float(self._weights[run])
        if not 0.0 < weight < math.inf:
            return start
        cell = start + math.ceil((level - before) / weight) - 1
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

    def _parts(self, number: int) -> Range:
        """Return (H, nan) at the output if its Lambda is at most z0, and (nan, 1 - H) beyond."""
        run = bisect_right(self.edges, number) - 1
        before, weight = float(self._before[run]), float(self._weights[run])
        x = (before + (number - int(self.edges[run]) + 1) * weight) / PEAK
        if x <= 1.0:
            h = float(self.below) * x * x * x * x
            return (h if self.monotonic else h * x), math.nan
        y = 1.0 / x
        return math.nan, float(1 - self.below) * y * y * y

    def _search(self, guess: int, uniform: LazyUniform) -> int:
        """Find the first output with U < H(Lambda_k) by exact comparisons, galloping away from a guess."""
        exact_runs = cache(self._exact_runs)
        low, high = self.grid.first - 1, self.grid.last  # U >= H at low, U < H (or the last) at high
        stride = 1
        number = min(max(guess, low + 1), high - 1)
        while high - low > 1:
            if self._is_below(number, uniform, exact_runs):
                high = number
                number = max(number - stride, low + 1)
            else:
                low = number
                number = min(number + stride, high - 1)
            if low >= self.grid.first and high < self.grid.last:
                number = (low + high) // 2
            stride *= 2
        return high

    def _is_below(self, number: int, uniform: LazyUniform, exact_runs: Function) -> bool:
        """Return whether U < H(Lambda_number), with ever more bits of both sides until that is certain.

        Everything is a whole number of 2^-bits. Each step is rounded down on one side and up on the other, so
        Lambda and H(Lambda) lie in brackets whose width shrinks with the bits; U equals no fixed number with
        probability 1, so the comparison ends.
        """
        bits = 128
        while True:
            ends = [self._exact_reached(number, exact_runs(bits, up), bits, up) for up in (False, True)]
            u = uniform.prefix(bits)  # U lies in [u, u + 1)
            if u + 1 <= ends[0]:
                return True
            if u >= ends[1]:
                return False
            bits *= 2

    def _exact_runs(self, bits: int, up: bool) -> tuple[list[int], list[int]]:
        """Return the weight of each run, and Lambda before each run, rounded up or down."""
        numerator, denominator = self.q.as_integer_ratio()
        falling, rising = [1 << bits], [1 << bits]
        for _ in range(self.counts.size // 2):
            falling.append(_quotient(falling[-1] * numerator, denominator, up))
            rising.append(_quotient(rising[-1] * denominator, numerator, up))
        weights = falling[:0:-1] + rising[:-1]
        return weights, [*accumulate(map(mul, self.counts.tolist(), weights), initial=0)]

    def _exact_reached(self, number: int, runs: tuple[list[int], list[int]], bits: int, up: bool) -> int:
        """Return H(Lambda_number), rounded up or down."""
        weights, sums = runs
        run = bisect_right(self.edges, number) - 1
        hazard = sums[run] + (number - int(self.edges[run]) + 1) * weights[run]
        a, peak = self.below, PEAK << bits
        if hazard <= peak:
            numerator, denominator = a.numerator * hazard**self.power, a.denominator * peak**self.power
            return _quotient(numerator << bits, denominator, up)
        numerator, denominator = (1 - a).numerator * peak**TAIL, (1 - a).denominator * hazard**TAIL
        return (1 << bits) - _quotient(numerator << bits, denominator, not up)

    def level(self, u: float, one_minus_u: float) -> float:
        """Return Z = H^-1(u)."""
        a = float(self.below)
        return PEAK * ((u / a) ** (1.0 / self.power) if u <= a else ((1.0 - a) / one_minus_u) ** (1.0 / TAIL))

    def _hazard(self, indices: Integers) -> Floats:
        """Return Lambda_k."""
        run = np.clip(np.searchsorted(self.edges, indices, side="right") - 1, 0, self._weights.size - 1)
        return self._before[run] + (indices - self.edges[run] + 1) * self._weights[run]

    def log_probabilities(self, indices: Integers) -> Floats:
        """Return the logarithm of the probability of each output, to about 1e-12."""
        runs = self._exact_runs(_BITS_OF_LAW, up=False)

        def reached(number: int) -> int:
            if number < self.grid.first:
                return 0
            if number >= self.grid.last:
                return 1 << _BITS_OF_LAW
            return self._exact_reached(number, runs, _BITS_OF_LAW, up=False)

        masses = [reached(number) - reached(number - 1) for number in indices.tolist()]
        unit = math.log(2) * _BITS_OF_LAW
        return np.array([math.log(mass) - unit if mass > 0 else -math.inf for mass in masses])

    def _cdf_inside(self, indices: Integers) -> Floats:
        x = self._hazard(indices) / PEAK
        low = float(self.below) * np.minimum(x, 1.0) ** self.power
        high = 1.0 - float(1 - self.below) * np.maximum(x, 1.0) ** -TAIL
        return np.where(x <= 1.0, low, high)


def _quotient(numerator: int, denominator: int, up: bool) -> int:
    return -(-numerator // denominator) if up else numerator // denominator


@lru_cache(maxsize=256)
def _weights(q: float, ranks: int) -> Floats:
    """Return the hazard ratio of each run: q^ranks, ..., q^2, q, 1, 1 / q, 1 / q^2, ..."""
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
    With 60 digits the bound is so close that the result is the smallest such float or, if exp(-share) were
    within 1e-57 of a float, the one after it. At 800 already exp(-share) is below every positive float.
    """
    lower, _ = exp_bounds(min(share, Fraction(800)), 60)
    ratio = rounded(1 / lower)
    if Fraction(ratio) < 1 / lower:
        ratio = math.nextafter(ratio, math.inf)
    return min(ratio, 1.0)


_MOST_SHARP_RANKS = 20_000  # more ranks take the simple limit, because the sharp one would take long
_WIDTH = 1e-11  # the bracket of a limit is this narrow, and its safe end is taken

Law = Callable[[OutputBounds], HazardLaw]


def hazard_limits(law: Law, released: float, public: BoundsFacts, ranks: int, miss: float) -> Limits:
    """Return limits of the metric, given a release and public facts.

    Parameters
    ----------
    law : callable
        The law of the release for given output bounds.
    released : float
        What was released.
    public : BoundsFacts
        Public facts.
    ranks : int
        How many ranks the release used, if the metric moves as a mean does (`OutputBounds`); else 0.
    miss : float
        Probability, over the noise, with which a limit may be wrong.

    Notes
    -----
    **Lower limit.** Let k be the first output that is not below the metric f. Each output from there on has a
    hazard of at least 1, so Lambda is at least j after j of them, and a release lies j or more outputs above
    k with probability 1 - H(j) at most. So f exceeds the output that lies j below the released one, with
    confidence H(j): for any metric, data and number of ranks.

    **Of what moves as a mean**, both limits invert the law of the least favourable data. L^l is at most
    f (1 - l/n), so no f is overshot more likely than that of n equal losses without a cap. With a cap, of
    which one record's share is s, L^l is at least f - l s and U^l at least f + l (B - f)/n: no f is undershot
    more likely than one with these bounds, but for which a lower f would be. Both laws are monotone in f.

    **If no mean is possible**, because so large or so small a release is unlikely whatever the mean is, the
    release is one of those that the limits may miss. Then the limits are the ends of the public range, which
    are true as well, and not two equal ends of it: a largest float reads as if something were known.

    **Without a cap** there is no upper limit: with one record at infinity the metric is infinite, so a limit
    with confidence 1 - a is infinite with probability 1 - a exp(epsilon) at least.
    """
    hypothetical = law(public.widest())
    grid = hypothetical.grid
    place, end = nearest_index(grid, released), public.output_range[1]
    is_sharp = 0 < ranks <= _MOST_SHARP_RANKS
    has_upper = is_sharp and end < MAX_FLOAT
    each = miss / 2 if has_upper else miss
    below = place - cells_above(hypothetical, each)
    lower = grid.point(below) if below > grid.first else public.output_range[0]
    if not is_sharp:
        return _one_sided(lower, end)
    rank, n = np.arange(1.0, ranks + 1.0), math.inf if public.n is None else public.n
    share = MAX_FLOAT if public.sensitivity is None else public.sensitivity

    def reached(f: float, lowest: Floats, highest: Floats, number: int) -> float:
        """Return P(number of the release <= this) of data with the mean f."""
        bounds = public.bounds(f, np.clip(lowest, 0.0, f), np.clip(highest, f, end))
        return float(law(bounds).index_cdf(np.array([number]))[0])

    def is_overshot(f: float) -> bool:
        """Return whether n equal losses are, or may be, overshot as rarely as is wanted."""
        lowest = f * np.maximum(1.0 - rank / n, 0.0)
        return reached(f, lowest, f + rank * share, place - 1) >= 1 - each

    def is_undershot(f: float) -> bool:
        """Return whether few losses at the cap are, or may be, undershot oftener than is wanted."""
        return reached(f, f - rank * share, f + rank * ((end - f) / n), place) > each

    lower, _ = _largest(is_overshot, lower, end)
    if lower >= end:
        return _one_sided(public.output_range[0], end)
    if not has_upper:
        return _one_sided(lower, end)
    _, upper = _largest(is_undershot, 0.0, end)
    if lower >= upper:
        return Limits(*public.output_range)
    return Limits(lower, upper, TOO_FEW if upper >= end else "")


def _one_sided(lower: float, end: float) -> Limits:
    return Limits(lower, math.inf, UNBOUNDED) if end >= MAX_FLOAT else Limits(lower, end, PUBLIC_END)


def cells_above(law: HazardLaw, miss: float) -> int:
    """Return the smallest j with 1 - H(j) <= miss."""
    return math.ceil(law.level(1.0 - miss, miss))


def records_above(law: HazardLaw, k: int, ranks: int, level: float, miss: float) -> float:
    """Return how many records exceed a level that was drawn for the k-th largest of them, at most.

    Parameters
    ----------
    law : HazardLaw
        A law of the first stage, whatever the data are.
    k, ranks : int
        Of the release: the statistic is y_k, and its l-th lower bound y_(k+l).
    level : float
        What was drawn, or more.
    miss : float
        Probability, over the draw, with which the number may be wrong.

    Notes
    -----
    **Proof.** If k + l records exceed the level, then y_(k+l) does, and the outputs up to the level have
    hazards of q^(l+1) at most. There are c of them, so one of them is drawn with probability H(c q^(l+1)) at
    most. Choose the least l for which that is at most the miss; l grows with c. So the levels of which the
    number would be wrong are the lowest ones, and the largest of these bounds the probability of all.
    """
    cells = int(law.grid.index_above(np.array([level]))[0]) - law.grid.first
    if cells > law.grid.last:
        return math.inf
    most = law.level(miss, 1.0 - miss)
    rank = max(math.ceil(math.log(cells / most) / max(-math.log(law.q), math.ulp(1.0))) - 1, 0)
    return k + rank - 1 if rank <= ranks else math.inf


def _largest(holds: Callable[[float], bool], start: float, end: float) -> Range:
    """Return a bracket of the largest mean from `start` to `end` for which something holds."""
    low, high = start, end
    if holds(high):
        return high, high
    least = 1e-9 * end if end < MAX_FLOAT else 1e-300  # far smaller than any output but 0
    step = max(start, least)
    while low + step < high and holds(low + step):
        low, step = low + step, 2 * step
    high = min(low + step, high)
    while high - low > _WIDTH * max(high, least) and low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


_MANY_RECORDS = 10**9
_EVEN_FROM = 10  # parts of the most that one record adds, times n


@own_error_state
@dataclass(frozen=True, repr=False)
class Hazard(Mechanism):
    """Release the first grid point at which a cumulative hazard passes a random level.

    Grid point t_k has hazard 1 just above the metric, exp(-eps2 l) at l ranks below it and
    exp(eps2 (l - 1)) at l ranks above. With Lambda_k the sum of the hazards up to t_k and Z drawn from a
    fixed law H, the first t_k with Lambda_k >= Z is released.

    Parameters
    ----------
    resolution : float or None, default=None
        Public precision of the result relative to its size (in units of log1p(t / scale)). The default,
        1 / (n eps2 / 10 + 2.5), suits most data. A coarser one helps on very heavy tails with n * epsilon
        above 2,000, and makes the error many times larger on others: compare the two with `plan_release`
        on public data. It must not be computed from the private data.
    scale : float or None, default=None
        Public size, in the units of the metric, at which the grid turns from even to geometric. Given, the
        grid is geometric from there up to the limit. The default is the smaller of 1e-6 and 1e-9 of the
        public limit; and where one record can move the metric by at most a public B / n, the grid is even
        from B/10 on, because nothing finer helps there.

    Notes
    -----
    **Guarantee.** The release is epsilon-differentially private for neighbouring data sets that differ in
    one record, given public n, bounds and resolution: its value is always a point of a public grid.

    **Proof.** Put the grid on a line with cell k = (k-1, k] and hazard rate w_k there. Releasing the end
    of the cell in which Lambda reaches Z is post-processing of the crossing point, whose density is
    h(Lambda) w. For neighbours, s and s' differ by at most 1, so w'/w and Lambda'/Lambda lie within a
    factor e^eps2. The slope of log h in log z lies between -4 and 3 for a monotonic metric, where both
    ratios lie on one side of 1: the density ratio is within e^(+-4 eps2), and eps2 = eps/4. Otherwise the
    slope lies between -4 and 4, the density ratio within e^(+-5 eps2), and eps2 = eps/5. Not crossing at
    all has a log-slope between -3 and 0. The bound is attained.

    **Exactness.** This holds for the program as executed, not only over the real numbers. Epsilon is the
    decimal number that was typed, its share eps2 an exact fraction, and exp(-eps2) is rounded up to a float,
    never down. The output bounds are correctly rounded, the cells between them counted exactly, and the
    draw compares a uniform number of as many random bits as it takes with rational numbers.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681, defines
    the reflective inverse sensitivity s; the selection rule is this package's own.

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> private_mae([3.0, 1.0], [2.5, 1.0], epsilon=1.0, mechanism=Hazard(resolution=0.1)) >= 0
    True
    """

    resolution: float | None = None
    scale: float | None = None

    is_exact = True
    clips = True

    def __post_init__(self) -> None:
        self._check(check_positive, "resolution", "scale")

    @property
    def needs_count(self) -> bool:
        """True if the resolution is chosen from the number of records."""
        return self.resolution is None

    def count_ranks(self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: Range) -> int:
        """Return ceil(ln(1e4 / resolution) / eps2): what lies beyond has a negligible hazard."""
        if output_range[0] != 0.0:
            raise ValueError(
                "mechanism='hazard' needs a metric that is at least 0: shift it by its public lower limit."
            )
        return _count_ranks(self, exact_epsilon(epsilon), n, monotonic)

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> HazardLaw:
        """Return the exact law of `release`."""
        if output_bounds.output_range[0] != 0.0:
            raise ValueError("Hazard needs a metric that is at least 0: shift it by its public lower limit.")
        return hazard_law(self, output_bounds, exact_epsilon(epsilon))

    def noise_limits(self, released: float, public: BoundsFacts, epsilon: Fraction, miss: float) -> Limits:
        """Return a lower limit; of a mean or a variance with a public limit both, with `miss` / 2 each."""
        # the limits come from the least favourable data, at the ranks of the release: fewer make it lower,
        # because all outputs below the last one share its hazard
        wanted = self.count_ranks(
            epsilon, n=public.n, monotonic=public.monotonic, output_range=public.output_range
        )
        # a subclass may have a law of its own
        law = partial(self.output_distribution, epsilon=epsilon)
        return hazard_limits(law, released, public, min(wanted, public.mean_ranks), miss)

    def _resolution(self, eps2: float, n: int | None) -> float:
        if self.resolution is not None:
            return self.resolution
        if n is None:
            raise ValueError("resolution must be given where n is private.")
        return 1.0 / (n * eps2 / 10 + 2.5)


@lru_cache(maxsize=256)
def _count_ranks(mechanism: Hazard, epsilon: Fraction, n: int | None, monotonic: bool) -> int:
    eps2 = float(share_of_rank(epsilon, monotonic))
    # a private n is not read: more ranks than needed cost time only
    width = max(mechanism._resolution(eps2, _MANY_RECORDS if n is None else n), 2.0**-32)
    return ceil_ranks(np.float64(max(math.log(1e4 / width), 1.0)) / eps2, n)


def hazard_law(mechanism: Hazard, output_bounds: OutputBounds, epsilon: Fraction) -> HazardLaw:
    """Return the exact law of a release of a metric that is at least 0."""
    share = share_of_rank(epsilon, output_bounds.monotonic)
    limit = output_bounds.output_range[1]
    step = mechanism._resolution(float(share), output_bounds.n) / PEAK
    grid = public_grid(step, limit, output_bounds.record_limit, mechanism.scale)
    return HazardLaw(grid, output_bounds, largest_ratio(share))


@lru_cache(maxsize=256)
def public_grid(
    step: float, limit: float, record_limit: float | None = None, scale: float | None = None
) -> Grid:
    """Return the public grid, where a scale may be chosen; its last output takes some searching."""
    turn = math.inf if record_limit is None or scale is not None else record_limit / _EVEN_FROM
    return GeometricGrid(min(1e-6, 1e-9 * limit) if scale is None else scale, step, limit, turn=turn)


def share_of_rank(epsilon: Fraction, monotonic: bool) -> Fraction:
    """Return eps2 exactly; a float share would exceed epsilon for a quarter of all values."""
    return epsilon / (1 + TAIL if monotonic else 2 + TAIL)
