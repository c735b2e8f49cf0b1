"""The second implementation, continued: integer noise, tables of counts, two stages, and what bits mean."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from model import UNLIMITED, Bounds, exp_minus, rounded, rounded_bounds

LARGEST = Fraction(sys.float_info.max)

# Two-sided geometric noise, and staircase noise


def nearest_integer(x: Fraction) -> int:
    """Round, a half upwards: this commutes with whole shifts."""
    return math.floor(x + Fraction(1, 2))


class Noisy(NamedTuple):
    """Whole numbers with noise; one alone has stairs; the first is clamped to 0..last."""

    values: list[int]
    rate: Fraction
    last: int = 0
    steps: int = 1
    second: tuple[Fraction, int] | None = None  # rate and steps, if not those of the first

    @property
    def laws(self) -> list[tuple[Fraction, int]]:
        """Return rate and steps of each number."""
        first = self.rate, self.steps
        return [first, *[self.second or first] * (len(self.values) - 1)]


def noise_cdf(rate: Fraction, z: int) -> float:
    """Return P(noise <= z), where P(noise = z) = (1 - r) / (1 + r) r^|z| and r = exp(-rate)."""
    tail = exp_minus(rate * (-z if z < 0 else z + 1)) / (1 + exp_minus(rate))
    return float(tail if z < 0 else 1 - tail)


def middle_stair(epsilon: Fraction, steps: int) -> int:
    """Return how many sizes the middle stair has, 0 among them: s / (1 + e^(epsilon / 2)), rounded up."""
    fall = exp_minus(epsilon / 2)
    return math.ceil(steps * fall / (1 + fall))


def staircase_cdf(epsilon: Fraction, steps: int, z: int) -> float:
    """Return P(noise <= z): all sizes of the middle stair weigh 1, of the j-th after it exp(-epsilon j)."""
    fall, half = exp_minus(epsilon), middle_stair(epsilon, steps)
    rest = steps * fall / (1 - fall)
    size = -z if z < 0 else z + 1
    stair, place = divmod(size + steps - half, steps)
    tail = exp_minus(epsilon * stair) * (steps - place + rest)
    return float(tail / (2 * half - 1 + 2 * rest) if z < 0 else 1 - tail / (2 * half - 1 + 2 * rest))


def on_lattice(
    f: float,
    t_max: float,
    sensitivity: float,
    steps: int | None,
    spread: Fraction | None,
    epsilon: Fraction,
) -> Noisy:
    """Return the place of f on a lattice with 2^20 steps to the sensitivity, or that of a count.

    An epsilon up to 2 pays for the spread as well, if there is one: together they move by a step more. Of a
    larger one the spread has an eighth, and moves by a quarter of the steps.

    The metrics of neighbours and the sensitivity are floats, rounded once each: the slack covers that.
    """
    if steps is not None:
        return Noisy([nearest_integer(Fraction(f) * steps / Fraction(t_max))], epsilon, steps)
    change = Fraction(sensitivity) + Fraction(t_max) / 2**50 + 2 * Fraction(math.ulp(0.0))
    last = min(max(math.ceil(2**20 * Fraction(t_max) / change), 1), 2**52)
    place = nearest_integer(Fraction(f) * last / Fraction(t_max))
    most = math.ceil(change * last / Fraction(t_max))
    if spread is None:
        return Noisy([place], epsilon, last, most)
    places = [place, nearest_integer(spread * last)]
    if epsilon <= 2:
        return Noisy(places, epsilon / (most + 1), last)
    return Noisy(places, epsilon * 7 / 8, last, most, (epsilon / 8, -(-most // 4)))


def spread(losses: Sequence[Fraction], cap: Fraction) -> Fraction:
    """Return the mean of v (1 - v), v = loss / cap, by straight lines between numbers with four bits more."""

    def of_line(x: Fraction) -> Fraction:
        power = Fraction(2) ** (x.numerator.bit_length() - x.denominator.bit_length() - 1) if x else 0
        while 2 * power <= x and x:
            power *= 2
        step = max(power / 16, Fraction(2) ** -1026)
        low, high = x // step * step, min((x // step + 1) * step, cap)
        below, above = (v / cap * (1 - v / cap) for v in (low, high))
        return below if low == x else below + (above - below) * (x - low) / (high - low)

    return sum(map(of_line, losses), Fraction(0)) / len(losses)


def two_sums(total: Fraction, most: Fraction, n: int, epsilon: Fraction, fineness: int = 2**20) -> Noisy:
    """Return a sum to which a record adds 0 to `most`, and the rest of n times that, in parts of `most`."""
    first = nearest_integer(total / most * fineness)
    return Noisy([first, n * fineness - first], epsilon / fineness)


def three_sums(x: Sequence[Fraction], low: Fraction, high: Fraction, epsilon: Fraction) -> Noisy:
    """Return the sums of (1 - t)^2, 2 t (1 - t) and t^2, two rounded down: 2 steps more than 2^20 at most."""
    ts = [(v - low) / (high - low) for v in x]
    first, last = (
        math.floor(2**20 * sum(squares)) for squares in ([(1 - t) ** 2 for t in ts], [t * t for t in ts])
    )
    return Noisy([first, len(x) * 2**20 - first - last, last], epsilon / (2**20 + 2))


def mean_of_two(noisy: Sequence[int], most: Fraction, t_max: float, fineness: int = 2**20) -> float:
    """Return the quotient of noisy sums, with one record at least."""
    part, rest = (max(v, 0) for v in noisy)
    return rounded(most * part / max(part + rest, fineness), t_max)


def variance_of_three(noisy: Sequence[int], width: Fraction) -> float:
    whole = max(sum(noisy), 2**20)
    mean = min(max(Fraction(noisy[1] + 2 * noisy[2], 2 * whole), 0), 1)
    return float(min(max(Fraction(noisy[2], whole) - mean**2, 0), mean * (1 - mean)) * width**2)


# Counts


def plausible(counts: Sequence[Fraction], n: int) -> list[Fraction]:
    """Return the nearest point with sum n and no negative coordinate, from all possible sets of zeros."""
    cells = range(len(counts))
    best: tuple[Fraction, list[Fraction]] | None = None
    for size in range(1, len(counts) + 1):
        for kept in combinations(cells, size):
            shift = Fraction(sum(counts[i] for i in kept) - n, size)
            point = [counts[i] - shift if i in kept else Fraction(0) for i in cells]
            far = sum(((p - y) ** 2 for p, y in zip(point, counts, strict=True)), Fraction(0))
            if min(point) >= 0 and (best is None or far < best[0]):
                best = far, point
    assert best is not None
    return best[1]


def nearest_counts(noisy: Sequence[int], weights: Sequence[Fraction], n: int | None) -> list[Fraction]:
    """Return plausible counts, weighted; with a private n their total is the noisy one."""
    scaled = [w * y for w, y in zip(weights, noisy, strict=True)]
    if n is None and len(noisy) <= 4:
        return [max(y, Fraction(0)) for y in scaled]
    total = max(round(sum(scaled)), 0) if n is None else n
    return [y / w for y, w in zip(plausible(scaled, total), weights, strict=True)]


# Two stages


def five_bits_up(x: Fraction) -> Fraction:
    """Return the least number with four bits after its first that is at least x."""
    power = Fraction(2) ** (x.numerator.bit_length() - x.denominator.bit_length() - 6)
    while 32 * power < x:
        power *= 2
    return math.ceil(x / power) * power


def order_statistic(ys: Sequence[Fraction], t_max: float, k: int, c: int) -> Bounds:
    """Return the bounds of the k-th largest of ys: those further down, and those further up."""
    places = [UNLIMITED, *ys, *[Fraction(0)] * (k + c)]
    lower, upper = places[k : k + c + 1], [places[max(k - rank, 0)] for rank in range(c + 1)]
    return rounded_bounds(lower, upper, t_max, True)


def far_distances(
    x: Sequence[Fraction], ends: tuple[Fraction, Fraction], t_max: float, k: int, c: int
) -> Bounds:
    """Return the bounds of how far values lie from the mean of all but the c largest and smallest ones.

    At rank l every value is taken l places further in, or out. Each number is rounded as a float is.
    """
    up, n = sorted(x), len(x)
    dropped = max(min(c, (n - 1) // 2), 0)

    def at(i: int) -> Fraction:
        return ends[0] if i < 0 else ends[1] if i >= n else up[i]

    def as_float(v: Fraction) -> Fraction:
        return Fraction(float(min(max(v, -LARGEST), LARGEST)))

    def mean(moved: int) -> Fraction:
        kept = [at(i + moved) for i in range(dropped, n - dropped)]
        return as_float(sum(kept, Fraction(0)) / len(kept))

    def distance(rank: int) -> float:
        found = [Fraction(0)]
        above, below = (mean(-rank), mean(rank)) if n else (Fraction(0), Fraction(0))
        for tenths in range(6):
            weight = Fraction(1 / math.sqrt(1 - tenths / 10))
            i = max(k, n * tenths // 10)
            far = at(n - i + rank) - above, below - at(i - 1 - rank)
            found += [as_float(weight * as_float(d)) for d in far]
        return rounded(max(found), t_max)

    lower = [distance(-rank) for rank in range(c + 1)]
    upper = [distance(rank) if rank < k else t_max for rank in range(1, c + 1)]
    return Bounds(lower, [lower[0], *upper], t_max, False)


def clipped_squares(x: Iterable[Fraction], c1: Fraction) -> Fraction:
    """Return the least sum of min((x - m)^2, C1) over m, a mean of consecutive values at the least."""
    up = sorted(x)
    centres = {Fraction(sum(up[i:j]), j - i) for i in range(len(up)) for j in range(i + 1, len(up) + 1)}
    return min((sum(min((t - m) ** 2, c1) for t in up) for m in centres), default=Fraction(0))


def second_stage(total: Fraction, c1: Fraction, n: int, epsilon: Fraction) -> tuple[int, int]:
    """Return the place of a clipped sum in steps of C1 / s, raised by a quarter of the mean noise, and s."""
    steps = 2 ** max(min(51 - n.bit_length(), 30), 0)
    return nearest_integer(total / c1 * steps) + min(math.floor(steps / (4 * epsilon)), 2**50), steps


# What bits mean


class Adversary:
    """A source of 64-bit words that often makes a comparison as close as it can be; it keeps its words."""

    def __init__(self, seed: int) -> None:
        self._random, self.words = random.Random(seed), list[int]()

    def top_bits(self, bits: int, close: Sequence[int]) -> int:
        """Return a number that is the first bits of as many words as it takes."""
        size = -(-bits // 64)
        value, spare = self._random.getrandbits(bits), 64 * size - bits
        choices = [v for v in close if 0 <= v < 2**bits]
        if choices and self._random.random() < 0.3:
            value = self._random.choice(choices)
        padded = value << spare | self._random.getrandbits(spare)
        self.words += [padded >> 64 * i & 2**64 - 1 for i in reversed(range(size))]
        return value


def below(source: Adversary, limit: int, threshold: int) -> int:
    """Return a uniform integer below a limit: the first bits of a word, drawn again if they are too large."""
    bits = (limit - 1).bit_length()
    while (value := source.top_bits(bits, [0, threshold - 1, threshold, limit - 1, limit])) >= limit:
        pass
    return value


def bernoulli_exp(source: Adversary, u: int, t: int) -> bool:
    """Return True with probability exp(-u / t): successes of x, x/2, x/3, ... before a failure are even."""
    tries = 1
    while below(source, t * tries, u) < u:
        tries += 1
    return tries % 2 == 1


def discrete_laplace(source: Adversary, rate: Fraction) -> int:
    """Return an integer k with probability ~ exp(-rate |k|): algorithm 2 of arXiv:2004.00010."""
    while True:
        size, positive = geometric_size(source, rate), below(source, 2, 1) == 1
        if positive or size:
            return size if positive else -size


def geometric_size(source: Adversary, rate: Fraction) -> int:
    """Return an integer that is at least k with probability exp(-rate k)."""
    s, t = rate.numerator, rate.denominator
    while not bernoulli_exp(source, u := below(source, t, 0), t):
        pass
    v = 0
    while bernoulli_exp(source, 1, 1):
        v += 1
    return (u + t * v) // s


def staircase(source: Adversary, epsilon: Fraction, steps: int) -> int:
    """Return staircase noise: a uniform number tells whether the stair is a later one, and of which size."""
    if steps == 1:
        return discrete_laplace(source, epsilon)
    half = middle_stair(epsilon, steps)
    fall = exp_minus(epsilon)
    later = 2 * steps * fall / (2 * steps * fall + (2 * half - 1) * (1 - fall))
    near = math.floor(later * 2**64)
    u = source.top_bits(64, [near - 1, near + 1])
    assert u != near, "64 random bits that tie"
    if u > near:
        return below(source, 2 * half - 1, 0) - half + 1
    stair = geometric_size(source, epsilon)
    side, place = divmod(below(source, 2 * steps, steps), steps)
    return (half + stair * steps + place) * (1 - 2 * side)


def many_below(source: Adversary, limit: int, threshold: Sequence[int]) -> list[int]:
    """Return uniform integers below one limit: a word for each, then for each that was too large."""
    values, missing = [0] * len(threshold), [*range(len(threshold))]
    bits = (limit - 1).bit_length()
    while missing and bits:
        for i in missing:
            values[i] = source.top_bits(bits, [0, threshold[i] - 1, threshold[i], limit - 1, limit])
        missing = [i for i in missing if values[i] >= limit]
    return values


def many_exp(source: Adversary, us: Sequence[int], t: int) -> list[bool]:
    """Return True with probabilities exp(-u / t): all that have not failed try again, round by round."""
    tries, running, number = [1] * len(us), [*range(len(us))], 1
    while running:
        for limit, threshold in (
            (number, [1] * len(us)),
            (t, us),
        ):  # a success of 1 / number, and one of u / t
            drawn = many_below(source, limit, [threshold[i] for i in running])
            running = [i for i, value in zip(running, drawn, strict=True) if value < threshold[i]]
        for i in running:
            tries[i] += 1
        number += 1
    return [k % 2 == 1 for k in tries]


def many_laplaces(source: Adversary, rate: Fraction, size: int) -> list[int]:
    """Return integers as `discrete_laplace` does: if there are many, each step is taken by all of them."""
    if size < 24:
        return [discrete_laplace(source, rate) for _ in range(size)]
    drawn: list[int] = []
    while len(drawn) < size:
        us = many_below(source, rate.denominator, [0] * (size - len(drawn)))
        us = [u for u, kept in zip(us, many_exp(source, us, rate.denominator), strict=True) if kept]
        vs, running = [0] * len(us), [*range(len(us))]
        while running:
            goes_on = many_exp(source, [1] * len(running), 1)
            running = [i for i, again in zip(running, goes_on, strict=True) if again]
            for i in running:
                vs[i] += 1
        sizes = [(u + rate.denominator * v) // rate.numerator for u, v in zip(us, vs, strict=True)]
        minus = many_below(source, 2, [1] * len(sizes))
        drawn += [-k if m else k for k, m in zip(sizes, minus, strict=True) if k or not m]
    return drawn


def zero_sum(source: Adversary, rate: Fraction, cells: int) -> list[int]:
    """Return noise with sum 0: independent but for the last, and kept with probability exp(-rate |last|)."""
    tries = math.isqrt(4 * cells) if cells > 8 else 1
    while True:
        drawn = many_laplaces(source, rate, tries * (cells - 1))
        for free in (drawn[i : i + cells - 1] for i in range(0, len(drawn), cells - 1)):
            whole, rest = divmod(abs(sum(free)) * rate.numerator, rate.denominator)
            units = all(bernoulli_exp(source, 1, 1) for _ in range(whole))
            if units and bernoulli_exp(source, rest, rate.denominator):
                return [*free, -sum(free)]
