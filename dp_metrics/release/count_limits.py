"""Limits from noisy counts, in the records and among all people: of a share, a bounded mean, and a ratio.

`mean_limits` are by the normal approximation, or proved.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache, partial
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike
from scipy.special import betaincinv, erfcx, ndtr, ndtri

from dp_metrics.inputs.options import Array, Floats, Function
from dp_metrics.mechanisms._laws import (
    COUNT_LIMIT,
    GeometricLaw,
    Integers,
    Limits,
    Staircase,
    cell_edges,
    nearest_index,
)
from dp_metrics.mechanisms.geometric import spread_noise
from dp_metrics.quantities.tables import NoisyCounts, largest_noise_of_sum, noise_variance, saturated_counts

Ends: TypeAlias = tuple[float, float]
"""A lower limit and an upper one."""

_EXPONENT = 40.0  # a count is farther from its mean than a window tells with probability exp(-40)
_CUT_OFF = 2 * math.exp(-_EXPONENT)  # probability of the counts that a sum leaves out
_RELATIVE = 1e-8  # this exceeds the rounding of a sum of up to 1e9 trials
_HALVINGS = 60
_FEW_HALVINGS = 36  # of limits that are approximate: a page has hundreds; they end outside by 2^-36 at most
_ROOMS = np.geomspace(0.1, 4.0, 16)  # tried, in standard deviations


def at_most(probability: float) -> float:
    """Return what a probability that was computed from `binomial_law` certainly does not exceed."""
    return probability * (1 + _RELATIVE) + _CUT_OFF


def binomial_law(n: int, p: float) -> tuple[Floats, Floats]:
    """Return the likely counts of n trials, and their probabilities.

    Notes
    -----
    By Bernstein's inequality the count is farther than t = L/3 + sqrt(L^2/9 + 2 L n p (1-p)) from n p with
    probability at most 2 exp(-L). The probabilities of what is nearer are known up to a common factor.
    """
    x, law, total = _binomial_laws(np.array([n]), p)
    return x, law[0] / total


def _from_each_on(law: Array) -> Floats:
    """Return the sum of all from each place on, and 0 beyond the last one."""
    return np.append(np.cumsum(law[::-1])[::-1], 0.0)


def noisy_binomial_limits(count: int, n: int, rate: float, miss: float) -> Ends:
    """Return the limits of p that a noisy count X + N gives, X binomial of n and p.

    Parameters
    ----------
    count : int
        The noisy count. It is clamped to 0..n, as it may already have been.
    n : int
        Number of trials, at least 1.
    rate : float
        The noise N has probability proportional to exp(-rate |k|).
    miss : float
        Largest probability, at most 1/2, that the lower limit exceeds p, and that p exceeds the upper one.

    Returns
    -------
    lower, upper : float
        The p for which the noisy count is at least `count` with probability `miss`, and the p for which it is
        at most `count` with this probability; both rounded outward.

    Notes
    -----
    P_p(X + N <= z) falls in p, so the p with P_p(X + N <= z) > a are those below a limit, and the limit is
    below the true p with probability at most a. The noise is symmetric, which gives the lower limit by
    counting failures. Clamping changes neither: P(X + N <= z) is that of the clamped count for z < n, and for
    z = n there is no upper limit but 1, because the noise is at most 0 with probability above 1/2.
    """
    return 1.0 - largest_share(n - count, n, rate, miss), largest_share(count, n, rate, miss)


def noisy_binomial_cdf(count: int, n: int, p: float, rate: float) -> float:
    """Return P(X + N <= count), with an error below 1e-8 of it and 1e-17."""
    x, probabilities = binomial_law(n, p)
    return float(probabilities @ Staircase(rate).cdf(count - x))


def largest_share(count: int, n: int, rate: float, miss: float) -> float:
    """Return the largest p with P(X + N <= count) >= miss, rounded up: see `noisy_binomial_limits`."""
    count = min(max(count, 0), n)  # where it is n, any p may be
    return halved(lambda p: at_most(noisy_binomial_cdf(count, n, p, rate)) >= miss, 1.0)[1]


def halved(is_below: Callable[[float], bool], high: float, halvings: int = _HALVINGS) -> Ends:
    """Return two close numbers from 0 to `high`, of which the first is below what is looked for."""
    low = 0.0
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low, high


def noisy_mean_limits(law: GeometricLaw, released: float, n: int, miss: float) -> Ends:
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
    step = n / last
    noise = ends * step

    def most_likely(z: float, p: float) -> float:
        """Return what the probability of a noisy sum of at least z cannot exceed."""
        x, probabilities = binomial_law(n, p)
        # the mean of max(B - u, 0) is a straight line between whole numbers, and below all likely ones
        excess = _from_each_on(_from_each_on(probabilities)[1:-1])
        room = math.sqrt(n * p * (1 - p) + float(mass @ noise**2)) * _ROOMS
        u = np.subtract.outer(z - room, noise)
        mean = np.interp(u, x, excess) + np.maximum(x[0] - u, 0.0)
        return float(np.min((mean @ mass + n * _CUT_OFF) / room)) + beyond

    def least(z: float) -> float:
        """Return the largest mean that makes a noisy sum of at least z less likely than the miss."""
        return 0.0 if z < 0.0 else halved(lambda p: at_most(most_likely(z, p)) < miss, 1.0)[0]

    return least((place - 1) * step), 1.0 - least((last - place - 1) * step)


_INFLATION = 3.2718  # the sum of two standard Laplace variables exceeds this with probability 5 %
_LEAST_NOISE = 1e-100
_LEAST = 1e-300
_NORMAL = (
    "The normal approximation makes the confidence approximate: it is lower where the mean rests on a few "
    "records with large values."
)
_ENOUGH = 100  # records; with fewer, coverages far below the confidence are common


def normal_laplace_tail(h: ArrayLike, s: ArrayLike, b: ArrayLike) -> Floats:
    """Return P(abs(s N + b L) > h), for N standard normal and L standard Laplace; all of them at least 0."""
    size, s, b = (np.maximum(x, _LEAST) for x in (h, s, b))
    # exp(ratio^2 / 2 -+ h / b) times a normal tail, without the overflow of the one or the other
    ratio, far_out = s / b, size / s
    density = 0.5 * np.exp(-far_out * far_out / 2)
    far = density * erfcx((ratio + far_out) / np.sqrt(2.0))
    near = density * erfcx((ratio - far_out) / np.sqrt(2.0))
    close = np.exp(np.minimum(ratio * ratio / 2 - size / b, 0.0)) * ndtr(far_out - ratio)
    tail: Floats = 2 * ndtr(-far_out) + np.where(ratio >= far_out, near, close) - far
    return tail


def mean_half_width(m: float, d: float, n: int, noise: Sequence[float], miss: float) -> float:
    """Return half the width of the interval for the mean of numbers from 0 to 1.

    Parameters
    ----------
    m, d : float
        Their noisy mean, clipped to [0, 1], and the noisy mean of v (1 - v).
    n : int
        Number of records.
    noise : sequence of float
        Scale of the Laplace noise of the mean, and of that of the mean of v (1 - v).
    miss : float
        Probability with which the interval may miss.

    Notes
    -----
    The variance of the numbers is at most m (1 - m) minus the mean of v (1 - v). With both noisy, the sum of
    their noise is at most 3.2718 times its scale with probability 95 %, where both have the same, which is
    added; of different scales their root mean square is taken.
    """
    # the limits keep the quotients finite
    of_mean, of_spread = np.clip(noise, _LEAST_NOISE, 1 / _LEAST_NOISE).tolist()
    largest = m * (1 - m)
    variance = largest - min(max(d, 0.0), 0.25) + _INFLATION * math.hypot(of_mean, of_spread) / math.sqrt(2)
    s = np.sqrt(min(max(variance, 0.0), largest + of_mean) / n)
    # either part exceeds its summand of the upper end with probability miss / 2
    most = float(of_mean * np.log(2 / miss) - s * ndtri(miss / 4))
    return halved(lambda width: bool(normal_laplace_tail(width, s, of_mean) > miss), most)[1]


def normal_note(n: int) -> str:
    """Return what has to be known of limits of the mean of n numbers by the normal approximation."""
    few = f" With fewer than {_ENOUGH} records, as here, it can be far lower."
    return _NORMAL if n >= _ENOUGH else _NORMAL + few


def mean_limits(mean: Any, miss: float, *, is_sure: bool) -> Limits | None:
    """Return limits of a mean among all people; None if the mean of these records was not so released.

    Parameters
    ----------
    mean : NoisyNumber or NoisyCounts
        Released by "geometric", with a public limit, and without weights and groups.
    miss : float
        Probability with which either limit may miss.
    is_sure : bool
        Whether they have to be proved; otherwise they are narrower, from 100 records on.

    Notes
    -----
    Where few people have large losses, the variance grows with the mean, and that at the mean of those who
    were drawn made limits that covered 80 %, not 95 %. So it is that of a mean nearer to 1/2, by as many
    records at the end as may all be missed with the probability `miss`, less what is added for the noise in
    the variance.
    """
    if (spread := mean.spread) is None:  # it was released otherwise
        return None
    noise = mean.noise
    facts, released = noise.facts(None), mean.output.value
    n, high = facts.n, facts.output_range[1]
    law = noise.mechanism.output_distribution(facts.widest(), noise.epsilon)
    if is_sure or n < _ENOUGH:
        lower, upper = noisy_mean_limits(law, released, n, miss)
        note = ""
    else:
        both = law.added, spread_noise(law.added, noise.epsilon)
        scales = [each.deviation / math.sqrt(2) / law.grid.last for each in both]
        # bounds may be so close that no mean is above 0
        m, note = released / high if high else 0.0, _NORMAL
        unseen = max(-math.log(miss) / n - _INFLATION * math.hypot(*scales) / math.sqrt(2), 0.0)
        ends = max(m - unseen, min(m, 0.5)), min(m + unseen, max(m, 0.5))
        below, above = (mean_half_width(end, spread, n, scales, 2 * miss) for end in ends)
        lower, upper = max(m - below, 0.0), min(m + above, 1.0)
    return Limits(high * lower, high * upper, note)


def quick_ratio_limits(a: Floats, total: Floats, noise: tuple[Any, Any, Any], miss: float) -> tuple[Any, Any]:
    """Return approximate limits of the share of a in all among all people, from noisy counts.

    Parameters
    ----------
    a, total : ndarray
        Noisy numbers of records, as drawn: they may be negative, and fractions.
    noise : tuple of float or ndarray
        As in `Quotient`.
    miss : float
        Probability with which each of the two limits may miss.

    Notes
    -----
    Chance moves a as the share of so many records. Of none any share is likely, as there is noise.
    """
    # a count below 0 would make no share likely
    a, others = np.maximum(a, 0.0), np.maximum(total - a, 0.0)
    total = a + others
    share = a, total, noise, lambda p: total * p * (1 - p)
    return quotient_limits((share, share), miss)


Quotient: TypeAlias = "tuple[Any, Any, tuple[Any, Any, Any], Callable[[Floats], Any]]"
"""A number x = u / v, of which u and v are noisy, or several: what tells of x by way of u - x v.

That is what was released of u and of v, without bias; the variance of the noise of u, the covariance with
that of v, and the variance of this; and of x the variance of u - x v by the sample.
"""


def quotient_limits(
    sides: tuple[Quotient, Quotient], miss: float, low: Any = 0.0, high: Any = 1.0
) -> tuple[Any, Any]:
    """Return approximate limits of quotients, each of which may miss with this probability.

    Parameters
    ----------
    sides : (Quotient, Quotient)
        What tells of the lower limit, and of the upper one: different where something is not told.
    miss : float
        The probability.
    low, high : float or ndarray, default=0.0 and 1.0
        The range of each.

    Notes
    -----
    If x is the number, u - x v has the mean 0. What it is off by is taken to be normal, by the sample, plus
    Laplace noise of the variance that the noise has; limits are the x where it is as likely as the miss to be
    off so far. Without Laplace's part that is E. C. Fieller's method (1954,
    doi:10.1111/j.2517-6161.1954.tb00159.x).
    """
    ends = []
    for is_upper, likely, beyond in ((False, high, low), (True, low, high)):
        above, below, (of_above, of_both, of_below), by_chance = sides[is_upper]
        for _ in range(_FEW_HALVINGS):
            x = (likely + beyond) / 2
            away, noise = above - x * below, of_above - 2 * x * of_both + x * x * of_below
            scale = np.sqrt(np.maximum(noise, 0.0) / 2)
            tail = normal_laplace_tail(np.abs(away), np.sqrt(by_chance(x)), scale)
            is_likely = np.where(away > 0 if is_upper else away < 0, 1 - tail / 2, tail / 2) > miss
            likely, beyond = np.where(is_likely, x, likely), np.where(is_likely, beyond, x)
        ends.append(beyond)
    lower, upper = (one if np.ndim(one) else float(one) for one in (ends[0], np.maximum(*ends)))
    return lower, upper


def combined_limits(
    function: Function,
    estimates: Sequence[float],
    limits: Sequence[Ends],
    *,
    is_monotone: bool = True,
) -> Ends:
    """Return approximate limits of a function of independent estimates, from limits of each of these.

    Parameters
    ----------
    function : callable
        Of an array of numbers.
    estimates : sequence of float
        The estimates, each moved into its limits.
    limits : sequence of (float, float)
        Limits of each, with the confidence that the function is to have.
    is_monotone : bool, default=True
        Whether the function rises or falls with each argument; else it has one extreme more at most.

    Notes
    -----
    How far the function moves down while one argument goes through its interval is added up in squares over
    the arguments, and so is how far it moves up: G. Y. Zou and A. Donner's MOVER (2008,
    doi:10.1002/sim.3095), which of two normal means is exact.
    """
    inside = np.clip(estimates, *np.transpose(limits))
    middle = float(function(inside))

    def square(sign: float) -> float:
        """Return the square of how far the function moves down in all, or with the sign -1 up."""
        squares = 0.0
        for here, (low, high) in zip(np.eye(inside.size, dtype=bool), limits, strict=True):

            def moved(x: float, here: Array = here) -> float:
                return sign * float(function(np.where(here, x, inside)))

            least = least_between(moved, low, high, is_monotone=is_monotone)
            squares += max(sign * middle - least, 0.0) ** 2
        return squares

    return middle - square(1.0) ** 0.5, middle + square(-1.0) ** 0.5


def least_between(
    function: Callable[[float], float], low: float, high: float, *, is_monotone: bool = False
) -> float:
    """Return the least value between two numbers of a function with one extreme there at most."""
    ends = min(function(low), function(high))
    if is_monotone or low == high:
        return ends
    from scipy.optimize import minimize_scalar  # which takes its time to import

    inside = minimize_scalar(function, bounds=(low, high), method="bounded", options={"xatol": _CLOSE})
    return min(ends, float(inside.fun))


_FINE = 64  # parts of a block of noises, to which combinations of them are rounded up
_ORDER = 2.0  # standard deviations of the noise of a, by which the order of the outcomes is moved
_USUAL_MISS = 0.05  # twice the miss down to which that is so; below, the order is moved farther
_OF_SIZE = 0.05  # part of the miss that is for the unknown number of records, from above
_OF_SMALL_SIZE = 1e-4  # and from below
_DROPPED = 1e-7  # probability of all noise that a table leaves out
_OF_DROPPED = 1e-3  # part of a tiny miss that is for it
_ROUNDING = 1e-12  # the probabilities of a table add up to 1 but for this
_LARGEST_REACH = 5_000  # beyond, there are too many numbers of records to ask for
_LARGEST_TABLE = 1 << 16  # beyond, at an epsilon of a thousandth, the laws of a page take too long
_FINEST_REACH = 512  # a table of noises to this reach on either side takes 8 MB; beyond, it has blocks
_MOST_COUNT = 1 << 50  # floats tell larger numbers apart no more
_MOST_RECORDS = 1e8  # from here on noise matters little, and laws of counts take long
_SIZES = 64  # so many numbers of records at a time: see `_binomial_laws`
_CLOSE = 1e-12
_MOST_STEPS = 2000  # more than the square of the halvings, within which the search always ends
_TINIEST, _NEARLY_SURE = 1e-250, 1 - 1e-15  # of which the normal quantiles are finite
_OF_BOX = 0.2  # part of the miss that is for the noise, where counts are large


@dataclass(frozen=True)
class NoisyRatio:
    """Two noisy numbers of records, and the law of their noise; all of it has been released or is public.

    Parameters
    ----------
    a, b : int
        Sums of noisy counts, as drawn: they may be negative.
    cells : tuple of int
        How many counts were added up to either.
    rates : tuple of Fraction
        Of the noise in each of these counts.
    rest : int or None
        How many other counts there are, if all noise together has the sum 0; None if it is independent.
    n : int or None
        Number of all records, where it is public.
    weights : tuple of float, default=(1.0, 1.0)
        How often either counts in the metric A / (A + B).
    dropped : float
        Probability of the noise that `table` may leave out.
    """

    a: int
    b: int
    cells: tuple[int, int]
    rates: tuple[Fraction, Fraction]
    rest: int | None
    n: int | None
    weights: tuple[float, float] = (1.0, 1.0)
    dropped: float = _DROPPED

    @property
    def of_all(self) -> int | None:
        """The public number of records if a and b are all of them: their one noise has twice the rate."""
        is_share = self.rest == 0 and self.cells == (1, 1) and self.weights[0] == self.weights[1]
        return self.n if is_share else None

    @property
    def estimate(self) -> float:
        """The metric of the noisy counts; 1/2 where they tell nothing."""
        a, b = self.weights[0] * self.a, self.weights[1] * self.b
        return a / (a + b) if a + b > 0 else 0.5

    @property
    def variances(self) -> tuple[float, ...]:
        """Variances of the noise of a and of b, if that of all counts is independent."""
        return tuple(cells * noise_variance(rate) for cells, rate in zip(self.cells, self.rates, strict=True))

    @property
    def moments(self) -> tuple[float, float, float]:
        """Variance of the noise of a, its covariance with that of a + b, and the variance of this.

        All noise may have the sum 0.
        """
        (of_a, of_b), (a, _), both = self.variances, self.cells, sum(self.cells)
        each = 0.0 if self.rest is None else of_a / a / (both + self.rest)
        return of_a - each * a**2, of_a - each * a * both, of_a + of_b - each * both**2

    @property
    def swapped(self) -> "NoisyRatio":
        """The same with a and b exchanged."""
        return replace(self, a=self.b, b=self.a, cells=self.cells[::-1], rates=self.rates[::-1])

    def largest_noise(self, place: int, miss: float) -> int:
        """Return j with P(noise of a > j) <= miss, or of b."""
        return largest_noise_of_sum(self.rates[place], self.cells[place], miss)

    def metric(self, share: float) -> float:
        """Return the metric where this share of the records in a or b is in a."""
        a, b = self.weights[0] * share, self.weights[1] * (1.0 - share)
        return a / (a + b)

    @cached_property
    def reach(self) -> int:
        """So far the table of the noises goes: it leaves out at most `dropped`."""
        return max(self.largest_noise(place, self.dropped / 4) for place in (0, 1))

    def table(self) -> "NoiseTable":
        """Return P(noises of a and b in blocks i and j), or more, with middles from about -reach to reach."""
        return _table_of(self.cells, self.rates, self.rest, self.reach // _FINEST_REACH, self.reach)


@dataclass(frozen=True, eq=False)
class NoiseTable:
    """How likely the noises of a and b are, in blocks, and what follows from that: all of it is public.

    Parameters
    ----------
    law : ndarray of shape (n_blocks, n_blocks)
        P(noises of a and b in blocks i and j), or more.
    middles : ndarray of shape (n_blocks,)
        The middles of the blocks, of either noise.
    slack : int
        So far a noise may lie from the middle of its block, on either side.
    """

    law: Floats
    middles: Integers
    slack: int

    @property
    def width(self) -> int:
        """How many noises are in a block."""
        return 2 * self.slack + 1

    @cached_property
    def of_a(self) -> Floats:
        """The law of the noise of a."""
        of_a: Floats = self.law.sum(axis=1)
        return of_a

    @cached_property
    def of_sums(self) -> Floats:
        """The law of the sums of the numbers of both blocks."""
        places = np.arange(len(self.law))
        return np.bincount(np.add.outer(places, places).ravel(), self.law.ravel()).astype(np.float64)

    @cached_property
    def below(self) -> Floats:
        """P(noise of a in block i, and that of b below block j), with one more column for all."""
        return np.pad(np.cumsum(self.law, axis=1), ((0, 0), (1, 0)))


@lru_cache(maxsize=8)
def _table_of(
    cells: tuple[int, int], rates: tuple[Fraction, Fraction], rest: int | None, slack: int, reach: int
) -> NoiseTable:
    """Return the table of so many noises, in blocks that have so many on either side of their middles.

    If all noise together has the sum 0, the law of the other counts is taken where it is largest for the two
    blocks: nearest to 0. The groups and the classes of one release have few tables between them.
    """
    width = 2 * slack + 1
    blocks = -(-reach // width)
    reach = width * blocks + slack
    middles = width * np.arange(-blocks, blocks + 1)
    of_a, of_b = (
        _law_of_sum(number, rate, reach).reshape(-1, width).sum(axis=1)
        for number, rate in zip(cells, rates, strict=True)
    )
    if rest is None:
        return NoiseTable(np.outer(of_a, of_b), middles, slack)
    far = np.abs(np.arange(-2 * blocks, 2 * blocks + 1)) * width
    others = _law_of_sum(rest, rates[0], 2 * reach)[2 * reach + np.maximum(far - 2 * slack, 0)]
    of_all = _law_of_sum(sum(cells) + rest, rates[0], reach)[reach]
    law = np.outer(of_a / of_all, of_b) * sliding_window_view(others, 2 * blocks + 1)
    return NoiseTable(law, middles, slack)


def noisy_ratio(
    noise: NoisyCounts,
    a: Sequence[int],
    b: Sequence[int],
    n: int | None,
    weights: tuple[float, float] = (1.0, 1.0),
) -> NoisyRatio:
    """Return the noisy counts of a metric A / (A + B), in their units.

    Parameters
    ----------
    noise : NoisyCounts
        Of all counts.
    a, b : sequence of int
        Places of the counts that add to A, and to B.
    n : int or None
        Number of all records, where it is public.
    weights : (float, float), default=(1.0, 1.0)
        How much each count in a, and in b, adds.
    """
    ends, most = list(accumulate(size for size, _ in noise.rates)), int(COUNT_LIMIT) * noise.units
    # a larger noisy count says no more, and may be no float
    in_a, in_b = (min(max(sum(noise.noisy[cell] for cell in side), -most), most) for side in (a, b))
    of_a, of_b = (noise.rates[bisect_right(ends, side[0])][1] for side in (a, b))
    rest = None if noise.in_sum is None else noise.in_sum - len(a) - len(b)
    of_all = None if n is None else n * noise.units
    return NoisyRatio(in_a, in_b, (len(a), len(b)), (of_a, of_b), rest, of_all, weights)


@lru_cache(maxsize=16)  # of a and b exchanged, and often of another pair, they are the same
def _law_of_sum(cells: int, rate: Fraction, reach: int) -> Floats:
    """Return the law of the sum of so many independent two-sided geometric noises on -reach, ..., reach."""
    places = np.arange(-reach, reach + 1)
    one = np.exp(-float(rate) * np.abs(places)) * math.tanh(float(rate) / 2)
    if cells == 1:
        return one
    law = np.zeros(1 << (8 * reach + 64).bit_length())  # what goes round its ends is beyond any reach
    law[places] = one
    return np.maximum(np.fft.irfft(np.fft.rfft(law) ** cells, law.size)[places], 0.0)


@lru_cache(maxsize=1024)  # a page and a range of groups ask again for many
def noise_limits(ratio: NoisyRatio, miss: float) -> Ends:
    """Return limits of the metric A / (A + B) of these records: how far the noise may have moved it.

    Parameters
    ----------
    ratio : NoisyRatio
        What was released.
    miss : float
        Probability, above 0, with which the lower limit may exceed the metric, and the metric the upper one.

    Returns
    -------
    lower, upper : float
        Each holds with the stated probability, whatever the counts are. Never empty; one point only if the
        noise is 0 with a probability of 1 less both misses or more.

    Notes
    -----
    With new noises z_a and z_b let a' = a - z_a, b' = max(b, 0) - z_b, and R = a' / (a' + b'); 0 where a' is
    not above 0, else 1 where b' is not. The lower limit is the quantile of R for the miss. **It is sure**:
    let t = A / (A + B) of the records. If the limit exceeds t, then P(R <= t) is at most the miss. R is at
    most t wherever (1 - t) z_a - t z_b is at least (1 - t) a - t max(b, 0), which is at most what it was for
    the noises that were drawn, as (1 - t) A = t B: a tail as rare as the miss.
    Of no records, 0 / 0, any value is covered: the lower limit is above 0, and the upper one below 1, only
    with the probability of their misses. The upper limit is one minus the lower one of b.
    """
    if (n := ratio.of_all) is not None:
        rate, a = 2 * ratio.rates[0], min(max(ratio.a, -_MOST_COUNT), _MOST_COUNT)
        away = Staircase(rate).largest(miss)
        lower, upper = (min(max(end, 0), n) / n for end in (a - away, a + away))
        return lower, upper
    if max(abs(ratio.a), abs(ratio.b)) > _MOST_COUNT or ratio.reach > _LARGEST_TABLE:
        limit = _corner_of_noise
    else:
        ratio, limit = replace(ratio, dropped=min(_DROPPED, _OF_DROPPED * miss)), _noise_quantile
    least, most = limit(ratio, miss), 1.0 - limit(ratio.swapped, miss)
    if most - least < 4e-16:  # a point, but for rounding
        most = least
    lower = ratio.metric(least)
    return lower, max(lower, ratio.metric(most))


def _noise_quantile(ratio: NoisyRatio, miss: float) -> float:
    """Return the quantile of R of `noise_limits`, or less, from the table of the noises.

    Each noise is taken at the end of its block where R is smallest. By halving, a t is found at which P(R <=
    t) is at most the miss. The limit is the next R of the table, so that it is a ratio of counts to the last
    bit.
    """
    table = ratio.table()
    blocks = len(table.law) // 2
    goal, b = miss - ratio.dropped - _ROUNDING, max(ratio.b, 0)
    left = ratio.a - table.slack - table.middles  # a', where it is smallest
    above = np.flatnonzero(left > 0)
    at_zero, rows = float(table.of_a[left <= 0].sum()), above * (2 * blocks + 2)
    if at_zero > goal:
        return 0.0
    # floats round less than the last summand: P(R <= t) is never taken for too little
    least = b + table.slack + 1e-15 * (b + 2 * ratio.reach)

    def last(t: float) -> Integers:
        """Return, for each noise of a, in which block the largest noise of b with R <= t is."""
        up_to = np.floor((least - (1.0 - t) / t * left[above]) / table.width)
        return up_to.clip(-blocks - 1, blocks).astype(np.int64)

    def is_below(t: float) -> bool:
        """Return whether P(R <= t) is at most the goal."""
        return at_zero + float(table.below.take(rows + last(t) + (blocks + 1)).sum()) <= goal

    # where R is what was released, or less, at least half of the noises lie: they are symmetric
    t = halved(is_below, ratio.a / (ratio.a + b) if ratio.a > 0 else 1.0, _FEW_HALVINGS)[0]
    beyond = last(t) + 1 if t > 0 else np.full(above.size, -blocks)
    ratios = left[above] / (left[above] + np.maximum(b + table.slack - table.width * beyond, 0))
    return float(ratios.min(where=beyond <= blocks, initial=1.0))


def _corner_of_noise(ratio: NoisyRatio, miss: float) -> float:
    """Return a lower limit where the counts or their noise are too large for a table: sure, and wider."""
    a, b = _corner(ratio, miss)
    return a / (a + b) if a > 0 else 0.0


def _corner(ratio: NoisyRatio, miss: float) -> tuple[int, int]:
    """Return the least that a may be, and the most that b may be, but for the miss."""
    each = miss / 2
    return ratio.a - ratio.largest_noise(0, each), max(ratio.b + ratio.largest_noise(1, each), 0)


def ratio_limits(ratio: NoisyRatio, miss: float) -> Ends:
    """Return limits of a metric A / (A + B), which rises with p, the share of a in a and b among all people.

    Parameters
    ----------
    ratio : NoisyRatio
        Records are drawn independently from one population; of those in a or b the share p of people is in a.
    miss : float
        Probability, above 0, with which the lower limit may exceed the metric, and the metric the upper one.

    Returns
    -------
    lower, upper : float
        Each holds with the stated probability, for every p, number of records and law of their number.
        Those of p are turned into those of the metric at the end. They are never within `noise_limits`,
        which hold all that is between both.

    Notes
    -----
    Let N be the true number of records in a or b, X of them in a, z_a and z_b the noises, and s a constant
    of the noise, above 0. Outcomes are put in the order of g = (a - s) / (a + max(b, 0)); where a <= s the
    lower limit is 0. With rho the g of what was released, all outcomes of g >= rho are among those of

        X + (1 - rho) z_a - rho z_b >= s + rho N.

    Given N and the noises that says that X is at least some number: its probability F_N(p) rises in p. The
    lower limit is the least p with F_N(p) = goal, over all N of a set that misses the true one with the
    probability delta at most, where goal + delta = miss. **It is sure**: if it exceeds p, either N is not in
    the set, or g is so large that P(g' >= g) <= F_N(p) <= goal, which happens with probability goal at most.
    Noise that the table leaves out is paid from the miss, and (1 - rho) z_a - rho z_b is rounded up, from
    blocks of noises where there are many. N is at least what the noise of a + b leaves, and that of a alone.

    s is 2 standard deviations of the noise of a, and for a miss below .025 as many times more as its
    logarithm is larger: with fewer the limits of many labels, each with a small part of a miss, are [0, 1].

    The limits are those of R. J. Buehler (1957, doi:10.1080/01621459.1957.10501404); N is treated as in
    R. L. Berger and D. D. Boos (1994, doi:10.1080/01621459.1994.10476836).
    """
    if (n := ratio.of_all) is not None:
        lower, upper = noisy_binomial_limits(ratio.a, n, 2 * float(ratio.rates[0]), miss)
    else:
        lower, upper = edge_limits(ratio, miss, is_alone=True)
    least, most = noise_limits(ratio, miss)
    return min(lower, least), max(upper, most)


def person_limits(units: int, ratio: NoisyRatio, miss: float) -> Ends:
    """Return approximate limits of a ratio among all people, of whom each counts once.

    Parameters
    ----------
    units : int
        How many each person has.
    ratio : NoisyRatio
        Noisy numbers of units in a and in b: see `units_of_persons`.
    miss : float
        Probability with which either limit may miss.

    Notes
    -----
    They hold the limits of the noise, and those of as many records as there are persons: so they hold for
    persons whose records are all alike, cover nearly always, and are up to twice as far apart where the
    records of a person differ.
    One record of each person, drawn at random, has sure limits: `ratio_limits`.
    """
    of_a, both, of_all = (moment / units**2 for moment in ratio.moments)
    a, b = saturated_counts([ratio.a, ratio.b]) / units
    lower, upper = quick_ratio_limits(a, a + b, (of_a, both, of_all), miss)
    least, most = noise_limits(ratio, miss)
    return min(ratio.metric(lower), least), max(ratio.metric(upper), most)


def edge_limits(ratio: NoisyRatio, miss: float, *, is_alone: bool = False) -> Ends:
    """Return limits as `ratio_limits` does, of one of many shares along a curve; each may be missed so often.

    They are in the order of (a - s) / (a + b), with s of 2 standard deviations whatever the miss: that of
    `ratio_limits` makes bands up to a quarter wider. Where b is below 0 it ends in points; nobody is shown
    one of them alone; `ratio_limits` asks for what may be.
    """
    if ratio.reach > _LARGEST_REACH or max(abs(ratio.a), abs(ratio.b)) > _MOST_RECORDS:
        limit = _box_limit
    else:
        limit = partial(_lower_limit, is_alone=is_alone)
    return ratio.metric(limit(ratio, miss)), ratio.metric(1.0 - limit(ratio.swapped, miss))


def _lower_limit(ratio: NoisyRatio, miss: float, *, is_alone: bool) -> float:
    """Return the lower limit, from the table of the noises: as it is shown, or of one edge of a curve."""
    from scipy.optimize import brentq  # which takes its time to import

    table, total = ratio.table(), ratio.a + ratio.b
    of_order, of_size = total, _OF_SIZE
    s = _ORDER * math.sqrt(float(table.of_a @ np.square(table.middles)))
    if is_alone:
        s *= max(math.log(2 * miss) / math.log(_USUAL_MISS), 1.0)
        of_order, of_size = ratio.a + max(ratio.b, 0), _OF_SIZE / 2
    if of_order <= 0 or ratio.a <= s:
        return 0.0
    rho = (ratio.a - s) / of_order

    def most(law: Array, part: float) -> int:
        """Return the noise of this law of blocks, around 0, that is exceeded with this part of the miss."""
        blocks_beyond = int(np.argmax(_from_each_on(law) <= part * miss)) - law.size // 2 - 1
        return table.width * blocks_beyond + 2 * table.slack

    # the noise is symmetric; as many numbers of records as a block is wide are asked for at a time
    first = max(total - most(table.of_sums, of_size), 0)
    if is_alone:
        first = max(first, ratio.a - most(table.of_a, of_size))
    sizes = np.arange(first, max(total + most(table.of_sums, _OF_SMALL_SIZE), first) + 1, table.width)
    if ratio.n is not None:
        sizes = sizes[sizes <= max(ratio.n, sizes[0])]
    goal = miss * (1 - _OF_SIZE - _OF_SMALL_SIZE) - 2 * _DROPPED
    if goal <= 0:
        return 0.0
    chance = _chance(table, rho, s)
    wanted = float(ndtri(goal))

    def limit(size: Integers, high: float) -> float:
        """Return the largest p up to `high` with F_N(p) <= goal, or less by _CLOSE, of one N.

        The normal quantile of F_N is nearly a straight line.
        """

        @cache
        def beyond(p: float) -> float:
            return float(ndtri(np.clip(chance(size, p)[0], _TINIEST, _NEARLY_SURE))) - wanted

        if beyond(0.0) > 0.0:
            return 0.0
        if beyond(high) <= 0.0:
            return high
        root = float(brentq(beyond, 0.0, high, xtol=_CLOSE / 4, maxiter=_MOST_STEPS))
        return max(root - _CLOSE / 2, 0.0)

    lower = limit(sizes[-1:], 1.0)  # nearly that of any N
    for some in np.array_split(sizes, -(-sizes.size * table.width // _SIZES)):
        while lower > 0.0:
            chances = chance(some, lower)
            worst = int(np.argmax(chances))
            if chances[worst] <= goal:
                break
            lower = min(limit(some[worst : worst + 1], lower), lower * (1 - 1e-12))
    return lower


def _chance(table: NoiseTable, rho: float, s: float) -> Callable[[Integers, float], Floats]:
    """Return a function to F_N(p), or more, for N from each size on: as many as a block is wide."""
    width, size = table.width, abs(1 - rho) + abs(rho)
    places = table.middles // width
    # P((1 - rho) z_a - rho z_b >= i / _FINE) for each i from -span on, rounded up; noises are blocks' numbers
    span = math.ceil(size * places[-1] * _FINE) + 2
    of_a, of_b = (1 - rho) * _FINE * places + (span + 1 - 1e-7), rho * _FINE * places
    cells = np.subtract.outer(of_a, of_b).astype(np.int64)  # above 0: rounded up
    law = np.bincount(cells.ravel(), table.law.ravel(), minlength=2 * span + 1)
    tail = _from_each_on(law)
    within = table.slack * size  # a combination exceeds that of middles by this at most
    fine = _FINE / width

    def chance(sizes: Integers, p: float) -> Floats:
        x, law, total = _binomial_laws(sizes + width - 1, p)
        beyond = (s + rho * sizes - within) * fine + (1e-6 + span)
        needed = (beyond[:, np.newaxis] - x * fine).astype(np.int64)
        chances: Floats = np.einsum("ij,ij->i", law, tail.take(needed, mode="clip")) / total
        return chances

    return chance


def _binomial_laws(sizes: Integers, p: float) -> tuple[Floats, Floats, Floats]:
    """Return likely counts of so many trials each; for each size a row in proportion to their law; its sum.

    Sizes are no more than about 100 apart: else what the rows are made of may underflow.
    """
    p = min(max(p, _TINIEST), 1 - 2**-53)  # at the very ends a count has no other value, but for rounding
    big, variance = int(sizes[-1]), p * (1 - p)
    far = _EXPONENT / 3 + math.sqrt(_EXPONENT**2 / 9 + 2 * _EXPONENT * big * variance)
    first, last = max(math.floor(sizes[0] * p - far), 0), min(math.ceil(big * p + far), big)
    x = np.arange(first, last + 1, dtype=np.float64)
    rest = np.arange(big - first, sizes[0] - last - 1, -1, dtype=np.float64)
    # up to a common factor (n p)^x / x! times (n (1 - p))^(N - x) / (N - x)!, whose logarithms stay small
    of_x = np.append(0.0, np.cumsum(np.log(big * p / x[1:])))
    of_rest = np.append(0.0, np.cumsum(np.log(np.maximum(rest[:-1], _TINIEST) / (big * (1 - p)))))
    of_x, of_rest = (np.exp(logs - logs.max()) for logs in (of_x, of_rest))
    law = of_rest[np.add.outer(big - sizes, np.arange(x.size))]
    law *= of_x
    return x, law, law.sum(axis=1)


def _box_limit(ratio: NoisyRatio, miss: float) -> float:
    """Return a lower limit from the box in which the exact counts lie: sure as well, and wider.

    The limit of Clopper and Pearson rises in a and falls in b.
    """
    a, b = _corner(ratio, miss * _OF_BOX)
    if a <= 0:
        return 0.0
    try:
        # the limit is below a / (a + b), which older versions of SciPy miss from counts of about 1e15 on
        return min(float(betaincinv(float(a), b + 1.0, miss * (1 - _OF_BOX))), a / (a + b))
    except OverflowError:
        return 0.0
