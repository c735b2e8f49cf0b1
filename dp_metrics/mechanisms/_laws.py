"""Public grids of candidate outputs, and output laws: the exact distribution of a release.

The reflective inverse sensitivity s(x; t) is constant between consecutive output bounds, so a
mechanism over millions of candidates needs only how many of them lie between each pair of bounds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics._random import Entropy, uniforms
from dp_metrics.inputs.options import MAX_FLOAT, Floats
from dp_metrics.sensitivity.output_bounds import OutputBounds

Integers = NDArray[np.int64]

_LARGEST_EXPONENT = 709.0  # expm1 of more overflows
_SMALLEST_STEP = 2.0**-40  # neighbours differ by 4096 float spacings: the grid is strictly increasing
_CORRECTIONS = 8  # steps from an estimated number to the exact one; nearly always one or two
_SMALLEST_SCALE = 1e-270  # this is far enough above the subnormals for the same reason
_LARGEST_INDEX = 1 << 52  # floats count exactly this far


class Grid(Protocol):
    """An increasing sequence of public outputs, numbered from `first` to `last`."""

    @property
    def first(self) -> int:
        """Number of the first output."""

    @property
    def last(self) -> int:
        """Number of the last output, which stands for "none of the others"."""

    def points(self, indices: Integers) -> Floats:
        """Return the outputs with these indices."""

    def point(self, index: int) -> float:
        """Return the output with this index."""

    def index_at_least(self, values: Floats) -> Integers:
        """Return the number of the first output >= value, or last + 1."""

    def index_above(self, values: Floats) -> Integers:
        """Return the number of the first output > value, or last + 1."""


class _SearchedGrid:
    """Index functions that are exact, hence exactly monotone: an estimate, corrected on the floats."""

    first: int
    last: int

    def points(self, indices: Integers) -> Floats:
        raise NotImplementedError

    def point(self, index: int) -> float:
        """Return the output with this index."""
        return float(self.points(np.array([index]))[0])

    @cached_property
    def _highest(self) -> float:
        return self.point(self.last)

    def _estimate(self, values: Floats) -> Floats:
        raise NotImplementedError

    def index_at_least(self, values: Floats) -> Integers:
        values = np.asarray(values, dtype=np.float64)
        first, last = self.first, self.last
        guess = np.maximum(np.minimum(np.ceil(self._estimate(values)), last), first).astype(np.int64)
        guess[values > self._highest] = last + 1
        pairs = np.empty((2, *guess.shape), dtype=np.int64)
        for _ in range(_CORRECTIONS):
            np.subtract(guess, 1, out=pairs[0])
            pairs[1] = guess
            before, at = self.points(pairs)
            is_low, is_high = (at < values) & (guess <= last), (before >= values) & (guess > first)
            if not (is_low.any() or is_high.any()):
                return guess
            guess += is_low
            guess -= is_high
        return self._bisected(values)

    def _bisected(self, values: Floats) -> Integers:
        """Return the same indices without an estimate, which is far off where outputs are subnormal."""
        low, high = (np.full(values.shape, end) for end in (self.first - 1, self.last + 1))
        return bisected(low, high, lambda at: (at > self.last) | (self.points(at) >= values))

    def index_above(self, values: Floats) -> Integers:
        return self.index_at_least(_next_floats(np.asarray(values, dtype=np.float64)))


def bisected(low: Integers, high: Integers, reached: Callable[[Integers], NDArray[np.bool_]]) -> Integers:
    """Return, for each pair low < high, the first index above low at which something is reached.

    It must be reached at `high`, and above wherever it is reached.
    """
    while (high - low > 1).any():
        middle = low + (high - low + 1) // 2  # the middle of neighbours is the higher one, which then stays
        there = reached(middle)
        high, low = np.where(there, middle, high), np.where(there, low, middle)
    return high


def nearest_index(grid: Grid, value: float) -> int:
    """Return the number of the output nearest to a value: of an output that was printed and read, its own."""
    above = int(grid.index_at_least(np.array([value]))[0])
    candidates = np.clip(np.array([above - 1, above]), grid.first, grid.last)
    below, at = np.abs(grid.points(candidates) - value).tolist()
    return int(candidates[0] if below < at else candidates[1])


def _next_floats(values: Floats) -> Floats:
    """Return the next larger floats: an output is above a value if it is at least the float that follows."""
    with np.errstate(over="ignore"):
        return np.nextafter(values, np.inf)


@dataclass(frozen=True)
class GeometricGrid(_SearchedGrid):
    """Outputs t_k = scale * expm1(k * step), the last of them `limit` if they get so far.

    Parameters
    ----------
    scale : float
        Size at which the grid turns from even to geometric.
    step : float
        Spacing of log1p(t / scale); at least 2**-40.
    limit : float
        Public largest output.
    first : int, default=0
        Number of the first output.
    size : int or None, default=None
        At most so many outputs.
    """

    scale: float
    step: float
    limit: float
    first: int = 0
    size: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", max(self.scale, _SMALLEST_SCALE))
        object.__setattr__(self, "step", max(self.step, _SMALLEST_STEP))

    @cached_property
    def _end(self) -> int:
        """The first k that reaches the limit or leaves the range of floats."""
        with np.errstate(over="ignore"):
            ratio = np.float64(self.limit) / self.scale
        k = max(int(min(math.log1p(ratio), _LARGEST_EXPONENT) / self.step) - 2, self.first + 1)
        while k * self.step <= _LARGEST_EXPONENT and self._raw(np.array([k]))[0] < self.limit:
            k += 1
        return k

    @cached_property
    def last(self) -> int:  # type: ignore[override]
        """Number of the last output."""
        return self._end if self.size is None else min(self._end, self.first + self.size - 1)

    def _raw(self, indices: Integers) -> Floats:
        values: Floats = self.scale * np.expm1(np.minimum(indices * self.step, _LARGEST_EXPONENT))
        return values

    def points(self, indices: Integers) -> Floats:
        """Return the outputs with these indices."""
        indices = np.asarray(indices)
        return np.where(indices >= self._end, self.limit, np.minimum(self._raw(indices), self.limit))

    def point(self, index: int) -> float:
        """Return the output with this index."""
        if index >= self._end:
            return self.limit
        # the same function of NumPy as for many: that of Python may differ in the last bit
        return min(self.scale * float(np.expm1(min(index * self.step, _LARGEST_EXPONENT))), self.limit)

    def _estimate(self, values: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.log1p(np.maximum(values, 0.0) / self.scale) / self.step


@dataclass(frozen=True)
class BoundedGrid(_SearchedGrid):
    """Outputs of a geometric grid up to a turning point, and evenly spaced ones from there to the limit.

    Parameters
    ----------
    scale, step : float
        Of the geometric part.
    turn : float
        Where it ends, below the limit; the outputs above are turn * step apart.
    limit : float
        Public largest output.
    """

    scale: float
    step: float
    turn: float
    limit: float

    first = 0

    @cached_property
    def _low(self) -> GeometricGrid:
        return GeometricGrid(self.scale, self.step, self.turn)

    @cached_property
    def _spacing(self) -> float:
        return min(self.turn * self._low.step, MAX_FLOAT)

    @cached_property
    def last(self) -> int:  # type: ignore[override]
        """Number of the last output."""
        return self._low.last + max(math.ceil((self.limit - self.turn) / self._spacing), 1)

    def points(self, indices: Integers) -> Floats:
        """Return the outputs with these indices."""
        indices = np.asarray(indices)
        with np.errstate(over="ignore"):
            high = self.turn + (indices - self._low.last) * self._spacing
        values = np.where(indices <= self._low.last, self._low.points(indices), np.minimum(high, self.limit))
        return np.where(indices >= self.last, self.limit, values)

    def _estimate(self, values: Floats) -> Floats:
        with np.errstate(over="ignore"):
            high = self._low.last + (values - self.turn) / self._spacing
        return np.where(values <= self.turn, self._low._estimate(values), high)


@dataclass(frozen=True)
class Lattice(_SearchedGrid):
    """Multiples of a public spacing from 0 to a limit, and the limit."""

    spacing: float
    limit: float

    first = 0

    @cached_property
    def last(self) -> int:  # type: ignore[override]
        """Number of the last output; there are no more than floats can count."""
        return math.ceil(min(self.limit / self.spacing, _LARGEST_INDEX))

    def points(self, indices: Integers) -> Floats:
        """Return the outputs with these indices."""
        with np.errstate(over="ignore"):
            values: Floats = np.minimum(np.asarray(indices) * self.spacing, self.limit)
        return values

    def point(self, index: int) -> float:
        """Return the output with this index."""
        return min(index * self.spacing, self.limit)

    def _estimate(self, values: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.maximum(values, 0.0) / self.spacing


@dataclass(frozen=True)
class EvenGrid(_SearchedGrid):
    """Outputs spread evenly over [lower, upper], both included."""

    lower: float
    upper: float
    size: int

    first = 0

    @property
    def last(self) -> int:  # type: ignore[override]
        """Number of the last output."""
        return self.size - 1

    @property
    def spacing(self) -> float:
        """Distance of two outputs."""
        return self.upper / self.last - self.lower / self.last

    def points(self, indices: Integers) -> Floats:
        """Return the outputs with these indices."""
        share = np.asarray(indices) / self.last
        return np.minimum(self.lower * (1.0 - share) + self.upper * share, self.upper)

    def _estimate(self, values: Floats) -> Floats:
        width = max(self.upper / 2 - self.lower / 2, 5e-324)  # halves keep the sum from overflowing
        with np.errstate(over="ignore"):
            return (values / 2 - self.lower / 2) / width * self.last


@dataclass(frozen=True)
class Runs:
    """Consecutive outputs with one score: run r holds the outputs edges[r] <= k < edges[r+1].

    `last`, the end of the final run, belongs to none: it is released when no other output is.

    Parameters
    ----------
    edges : ndarray of shape (2 * ranks + 3,)
        Not decreasing, from the grid's first number to its last.
    levels : ndarray of shape (2 * ranks + 2,)
        s - 1/2 on each run: -(ranks+1), ..., -1 below the metric, 0, ..., ranks from it on.
    """

    edges: Integers
    levels: Integers

    @classmethod
    def from_bounds(cls, grid: Grid, output_bounds: OutputBounds) -> "Runs":
        """Count the outputs of a grid between consecutive output bounds."""
        ranks = output_bounds.ranks
        values = np.empty(2 * ranks + 1)
        values[:ranks] = output_bounds.lower[::-1]
        values[ranks] = output_bounds.value
        values[ranks + 1 :] = _next_floats(output_bounds.upper)
        edges = np.empty(2 * ranks + 3, dtype=np.int64)
        edges[0], edges[-1] = grid.first, grid.last
        # the bounds of many ranks may be the public limit
        different = int(np.searchsorted(values, values[-1])) + 1
        np.minimum(grid.index_at_least(values[:different]), grid.last, out=edges[1 : different + 1])
        edges[different + 1 : -1] = edges[different]
        return cls(edges, np.arange(-(ranks + 1), ranks + 1))

    @cached_property
    def counts(self) -> Integers:
        """Number of outputs in each run."""
        return self.edges[1:] - self.edges[:-1]


LARGEST_NOISE = 2.0**60  # An int64 holds this and the place on a grid that it is added to.


class OutputLaw(Protocol):
    """The law of one release. It describes private data: use it in studies, never publish it."""

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""


def outcomes_of(law: OutputLaw) -> tuple[Floats, Floats]:
    """Return numbers that stand for a law, and the probability of each.

    The probabilities from 0 to 1 are cut into cells, even ones and towards both ends geometrically smaller
    ones, and the quantile in the middle of a cell stands for the whole. A number that is released with more
    than the probability of a cell gets a cell of its own, so that the sums over a law of few likely numbers
    are exact.
    """
    edges = cell_edges(1024, 36, 4)
    x = law.quantile(edges)
    edges = np.concatenate([edges, law.cdf(np.nextafter(x, -np.inf)), law.cdf(x)])
    edges = np.unique(np.clip(edges, 0.0, 1.0))
    mass = np.diff(edges)
    return law.quantile(edges[:-1] + mass / 2), mass


def mean_absolute_error(law: OutputLaw, value: float, cap: float = np.inf) -> float:
    """Return the expectation of min(abs(release - value), cap), to within 0.5 %."""
    middle, mass = cells(512, 36)
    return float(mass @ np.minimum(np.abs(law.quantile(middle) - value), cap))


class FloatLaw:
    """A law of a comparator, which draws a float64 as the quantile of a uniform number."""

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        raise NotImplementedError

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""
        u, _ = uniforms(entropy, 1)
        return float(self.quantile(u)[0])


def check_probability(p: ArrayLike) -> Floats:
    """Return probabilities as an array, or raise."""
    p = np.asarray(p, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p must lie in [0, 1].")
    return p


class GridLaw:
    """A law on the points of a grid, given by its distribution function over their indices."""

    grid: Grid

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""
        raise NotImplementedError

    def index_cdf(self, indices: Integers) -> Floats:
        """Return P(number of the release <= k)."""
        raise NotImplementedError

    def index_quantile(self, p: Floats) -> Integers:
        """Return the smallest k with P(number <= k) >= p, by bisection."""
        low, high = (np.full(p.shape, end) for end in (self.grid.first - 1, self.grid.last))
        return bisected(low, high, lambda at: self.index_cdf(at) >= p)

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        t = np.asarray(t, dtype=np.float64)
        # no grid point is below the first, and index_cdf(first - 1) is 0
        return self.index_cdf(self.grid.index_above(t.ravel()) - 1).reshape(t.shape)

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest grid point t with P(release <= t) >= p."""
        p = check_probability(p)
        return self.grid.points(self.index_quantile(p.ravel())).reshape(p.shape)


class ApproximateLaw:
    """A law that outcomes stand for; its release is exact."""

    def outcomes(self) -> tuple[Floats, Floats]:
        """Return outcomes that stand for the law, in any order, and the probability of each."""
        raise NotImplementedError

    @cached_property
    def _reached(self) -> tuple[Floats, Floats]:
        """The outcomes in order, and the probability of all up to each."""
        values, mass = self.outcomes()
        order = np.argsort(values, kind="stable")
        reached = np.minimum(np.cumsum(mass[order] / mass.sum()), 1.0)
        reached[-1] = 1.0
        return values[order], reached

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        values, reached = self._reached
        return np.append(0.0, reached)[np.searchsorted(values, t, side="right")]

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        values, reached = self._reached
        found: Floats = values[np.searchsorted(reached, check_probability(p), side="left")]
        return found


def cell_edges(even: int, octaves: int, in_octave: int = 1) -> Floats:
    """Cut the probabilities from 0 to 1 into cells: even ones, and ever smaller ones towards both ends."""
    tail = np.exp2(-np.arange(0, octaves, 1 / in_octave)) / even
    return np.concatenate([[0.0], tail[::-1], np.arange(2, even - 1) / even, 1 - tail, [1.0]])


def cells(even: int, octaves: int) -> tuple[Floats, Floats]:
    """Return the cells that `cell_edges` cuts.

    Returns
    -------
    middle, mass : ndarray
        The middle of each cell, and its size.
    """
    edges = cell_edges(even, octaves)
    mass = np.diff(edges)
    return edges[:-1] + mass / 2, mass


def laplace_quantiles(p: Floats) -> Floats:
    """Return quantiles of the standard Laplace law, for p strictly between 0 and 1."""
    quantiles: Floats = np.where(p < 0.5, np.log(2 * np.minimum(p, 0.5)), -np.log(2 * np.minimum(1 - p, 0.5)))
    return quantiles


def geometric_quantiles(p: Floats, rate: float) -> Floats:
    """Return whole numbers near quantiles of two-sided geometric noise, none beyond `LARGEST_NOISE`."""
    noise: Floats = np.rint(np.clip(laplace_quantiles(p) / rate, -LARGEST_NOISE, LARGEST_NOISE))
    return noise


class IntervalLaw(FloatLaw):
    """A law with an exponential or constant density on each of finitely many intervals.

    Parameters
    ----------
    edges : ndarray of shape (m + 1,)
        Ends of the intervals, not decreasing.
    log_weights : ndarray of shape (m,)
        Logarithm of the unnormalised probability of each interval; -inf for an empty one.
    rates : ndarray of shape (m,)
        On an interval [a, b] the density is proportional to exp(-rate * (t - a) / (b - a)).
    """

    def __init__(self, edges: Floats, log_weights: Floats, rates: Floats) -> None:
        self.edges, self.rates = edges, rates
        log_weights = log_weights - log_weights.max()
        self.log_weights = log_weights - np.log(np.exp(log_weights).sum())
        self.weights = np.exp(self.log_weights)
        self._cumulative = np.append(0.0, np.cumsum(self.weights))
        self._cumulative /= self._cumulative[-1]

    def density(self, t: ArrayLike) -> Floats:
        """Return the probability density at t."""
        t = np.asarray(t, dtype=np.float64)
        i = np.clip(np.searchsorted(self.edges, t, side="right") - 1, 0, self.rates.size - 1)
        width = self.edges[i + 1] - self.edges[i]
        with np.errstate(divide="ignore", invalid="ignore"):
            x = (t - self.edges[i]) / width
            inside = self.weights[i] / width * np.exp(-self.rates[i] * x) * _norm(self.rates[i])
        return np.where((t < self.edges[0]) | (t > self.edges[-1]) | (width == 0), 0.0, inside)

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        t = np.asarray(t, dtype=np.float64)
        i = np.clip(np.searchsorted(self.edges, t, side="right") - 1, 0, self.rates.size - 1)
        width = self.edges[i + 1] - self.edges[i]
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.where(width > 0, (t - self.edges[i]) / width, 1.0)
        inside = self._cumulative[i] + self.weights[i] * _share(np.clip(x, 0.0, 1.0), self.rates[i])
        return np.where(t < self.edges[0], 0.0, np.where(t >= self.edges[-1], 1.0, np.minimum(inside, 1.0)))

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        p = check_probability(p)
        i = np.clip(np.searchsorted(self._cumulative, p, side="left") - 1, 0, self.rates.size - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.where(self.weights[i] > 0, (p - self._cumulative[i]) / self.weights[i], 0.0)
        x = _inverse_share(np.clip(inside, 0.0, 1.0), self.rates[i])
        low, high = self.edges[i], self.edges[i + 1]
        return np.clip(low + (high - low) * x, low, high)


def _norm(rate: Floats) -> Floats:
    """Return 1 / integral of exp(-rate x) over [0, 1]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(rate) < 1e-9, 1.0, rate / -np.expm1(-rate))


def _share(x: Floats, rate: Floats) -> Floats:
    """Return the probability of [0, x] under the density proportional to exp(-rate x) on [0, 1]."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # expm1 would overflow for a negative rate: count from the other end
        falling = np.expm1(-np.abs(rate) * np.where(rate < 0, 1.0 - x, x)) / np.expm1(-np.abs(rate))
    return np.where(np.abs(rate) < 1e-9, x, np.where(rate < 0, 1.0 - falling, falling))


def _inverse_share(p: Floats, rate: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        falling = np.where(rate < 0, 1.0 - p, p)
        x = -np.log1p(falling * np.expm1(-np.abs(rate))) / np.abs(rate)
    x = np.clip(x, 0.0, 1.0)
    return np.where(np.abs(rate) < 1e-9, p, np.where(rate < 0, 1.0 - x, x))
