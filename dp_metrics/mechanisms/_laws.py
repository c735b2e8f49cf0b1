"""Public grids of candidate outputs, noise on them, and output laws: the exact distribution of a release.

The reflective inverse sensitivity s(x; t) is constant between consecutive output bounds, so a
mechanism over millions of candidates needs only how many of them lie between each pair of bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics._random import Entropy, discrete_laplace, staircase, uniforms
from dp_metrics.inputs.options import MAX_FLOAT, Floats, own_error_state
from dp_metrics.sensitivity.output_bounds import OutputBounds

Integers = NDArray[np.int64]

_LARGEST_EXPONENT = 709.0  # expm1 of more overflows
_SMALLEST_STEP = 2.0**-40  # neighbours differ by 4096 float spacings: the grid is strictly increasing
_CORRECTIONS = 8  # steps from an estimated number to the exact one; nearly always one or two
_SMALLEST_SCALE = 1e-270  # this is far enough above the subnormals for the same reason
_LARGEST_INDEX = 1 << 52  # floats count exactly this far


class Grid:
    """An increasing sequence of public outputs, numbered from `first` to `last`.

    Its index functions are exact, hence exactly monotone: an estimate, corrected on the floats.
    """

    first: int

    @property
    def last(self) -> int:
        """Number of the last output, which stands for "none of the others"."""
        raise NotImplementedError

    def points(self, indices: Integers) -> Floats:
        """Return the outputs with these indices."""
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
        """Return the number of the first output >= value, or last + 1."""
        values = np.asarray(values, dtype=np.float64)
        first, last = self.first, self.last
        with np.errstate(over="ignore"):
            guess = np.maximum(np.minimum(np.ceil(self._estimate(values)), last), first).astype(np.int64)
        guess[values > self._highest] = last + 1
        for _ in range(_CORRECTIONS):
            before, at = self.points(np.array([guess - 1, guess]))
            is_low, is_high = (at < values) & (guess <= last), (before >= values) & (guess > first)
            if not (is_low.any() or is_high.any()):
                return guess
            guess += is_low
            guess -= is_high
        # an estimate is far off where outputs are subnormal
        low, high = (np.full(values.shape, end) for end in (first - 1, last + 1))
        return bisected(low, high, lambda at: (at > last) | (self.points(at) >= values))

    def index_above(self, values: Floats) -> Integers:
        """Return the number of the first output > value, or last + 1."""
        return self.index_at_least(_next_floats(values))


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
    above = grid.index_at_least(np.array([value]))[0]
    candidates = np.clip([above, above - 1], grid.first, grid.last)
    return int(candidates[np.abs(grid.points(candidates) - value).argmin()])


@own_error_state
def _next_floats(values: Floats) -> Floats:
    """Return the next larger floats: an output is above a value if it is at least the float that follows."""
    return np.nextafter(values, np.inf)


@dataclass(frozen=True)
class GeometricGrid(Grid):
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
    turn : float, default=inf
        The grid is even again from here to the limit, with outputs turn * step apart, if it gets so far.
    """

    scale: float
    step: float
    limit: float
    first: int = 0
    size: int | None = None
    turn: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", max(self.scale, _SMALLEST_SCALE))
        object.__setattr__(self, "step", max(self.step, _SMALLEST_STEP))
        if not self.scale < self.turn < self.limit:
            object.__setattr__(self, "turn", math.inf)

    @property
    def _top(self) -> float:
        """Where the geometric part ends."""
        return min(self.turn, self.limit)

    @cached_property
    def _end(self) -> int:
        """The first k that reaches that end or leaves the range of floats."""
        steps = min(math.log1p(self._top / self.scale), _LARGEST_EXPONENT) / self.step
        k = max(int(steps) - 2, self.first + 1)
        while k * self.step <= _LARGEST_EXPONENT and self._raw(np.array([k]))[0] < self._top:
            k += 1
        return k

    @property
    def _spacing(self) -> float:
        return min(self.turn * self.step, MAX_FLOAT)

    @cached_property
    def last(self) -> int:
        """Number of the last output."""
        last = self._end
        if self.turn < self.limit:
            last += max(math.ceil((self.limit - self.turn) / self._spacing), 1)
        return last if self.size is None else min(last, self.first + self.size - 1)

    def _raw(self, indices: Integers) -> Floats:
        return self.scale * np.expm1(np.minimum(indices * self.step, _LARGEST_EXPONENT))

    def points(self, indices: Integers) -> Floats:
        """Return the outputs with these indices."""
        low = np.where(indices >= self._end, self._top, np.minimum(self._raw(indices), self._top))
        if self.turn > self.limit:
            return low
        with np.errstate(over="ignore"):
            high = np.minimum(self.turn + (indices - self._end) * self._spacing, self.limit)
        values = np.where(indices <= self._end, low, high)
        return np.where(indices >= self.last, self.limit, values)

    def point(self, index: int) -> float:
        """Return the output with this index."""
        if index >= self._end:
            return super().point(index)
        # the same function of NumPy as for many: that of Python may differ in the last bit
        return min(self.scale * float(np.expm1(min(index * self.step, _LARGEST_EXPONENT))), self._top)

    def _estimate(self, values: Floats) -> Floats:
        low = np.log1p(np.maximum(values, 0.0) / self.scale) / self.step
        if self.turn > self.limit:
            return low
        return np.where(values <= self.turn, low, self._end + (values - self.turn) / self._spacing)


@dataclass(frozen=True)
class Lattice(Grid):
    """Multiples of a public spacing from 0 to a limit, and the limit."""

    spacing: float
    limit: float

    first = 0

    @cached_property
    def last(self) -> int:
        """Number of the last output; there are no more than floats can count."""
        return math.ceil(min(self.limit / self.spacing, _LARGEST_INDEX))

    def points(self, indices: Integers) -> Floats:
        """Return the outputs with these indices."""
        return np.minimum(indices * self.spacing, self.limit)

    def _estimate(self, values: Floats) -> Floats:
        return np.maximum(values, 0.0) / self.spacing


@dataclass(frozen=True)
class EvenGrid(Grid):
    """Outputs spread evenly over [lower, upper], both included."""

    lower: float
    upper: float
    size: int

    first = 0

    @property
    def last(self) -> int:
        """Number of the last output."""
        return self.size - 1

    def points(self, indices: Integers) -> Floats:
        """Return the outputs with these indices."""
        share = indices / self.last
        return np.minimum(self.lower * (1.0 - share) + self.upper * share, self.upper)

    def _estimate(self, values: Floats) -> Floats:
        width = max(self.upper / 2 - self.lower / 2, 5e-324)  # halves keep the sum from overflowing
        return (values / 2 - self.lower / 2) / width * self.last


def run_edges(grid: Grid, output_bounds: OutputBounds) -> Integers:
    """Count the outputs of a grid between consecutive output bounds.

    Returns
    -------
    ndarray of shape (2 * ranks + 3,)
        Not decreasing, from the grid's first number to its last. Run r are the outputs edges[r] <= k <
        edges[r+1], which have one score s: s - 1/2 is -(ranks+1), ..., -1 below the metric, 0, ..., ranks
        from it on. The last output belongs to no run: it is released when no other one is.
    """
    ranks = output_bounds.ranks
    values = output_bounds.ladder[1:-1]
    values[ranks + 1 :] = _next_floats(output_bounds.upper)
    return np.concatenate([[grid.first], np.minimum(grid.index_at_least(values), grid.last), [grid.last]])


NOTHING = "We cannot limit this number: it may be all noise; take more records or a larger epsilon."


class Limits(NamedTuple):
    """Limits of the metric itself, given what was released; they hold together with the asked probability."""

    lower: Any
    upper: Any
    note: str = ""  # why one of them is no better than the public range

    def within(self, low: float, high: float) -> Limits:
        """Return the limits with a note of it if they say no more than these ends of the public range."""
        if np.all(np.asarray(self.lower) <= low) and np.all(np.asarray(self.upper) >= min(high, MAX_FLOAT)):
            return self._replace(note=NOTHING)
        return self


LARGEST_NOISE = 2.0**60  # An int64 holds this and the place on a grid that it is added to.


class OutputLaw:
    """The law of one release. It describes private data: use it in studies, never publish it.

    A law has `cdf` and `quantile`. What is exact as executed has a `release` of its own.
    """

    def release(self, entropy: Entropy) -> Any:
        """Draw an output; some laws give with it, by its name, what else is drawn under the same epsilon."""
        return float(self.quantile(uniforms(entropy, 1))[0])

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        raise NotImplementedError

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        raise NotImplementedError


Outcomes: TypeAlias = tuple[Floats, Floats]
"""Numbers that stand for a law, and the probability of each."""


def outcomes_of(law: OutputLaw) -> Outcomes:
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


def check_probability(p: ArrayLike) -> Floats:
    """Return probabilities as an array, or raise."""
    p = np.asarray(p, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p must lie in [0, 1].")
    return p


class GridLaw(OutputLaw):
    """A law on the points of a grid, given by its distribution function over their indices."""

    grid: Grid

    def _cdf_inside(self, indices: Integers) -> Floats:
        """Return P(number of the release <= k) where k is the number of an output before the last."""
        raise NotImplementedError

    @own_error_state
    def index_cdf(self, indices: Integers) -> Floats:
        """Return P(number of the release <= k)."""
        indices = np.asarray(indices)
        reached = np.where(indices >= self.grid.last, 1.0, self._cdf_inside(indices))
        return np.where(indices < self.grid.first, 0.0, reached)

    @own_error_state
    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        t = np.asarray(t, dtype=np.float64)
        # no grid point is below the first, and index_cdf(first - 1) is 0
        return self.index_cdf(self.grid.index_above(t.ravel()) - 1).reshape(t.shape)

    @own_error_state
    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest grid point t with P(release <= t) >= p."""
        p = check_probability(p)
        each = p.ravel()
        low, high = (np.full(p.size, end) for end in (self.grid.first - 1, self.grid.last))
        numbers = bisected(low, high, lambda at: self.index_cdf(at) >= each)
        return self.grid.points(numbers).reshape(p.shape)


class ApproximateLaw(OutputLaw):
    """A law that outcomes stand for; its release is exact."""

    def outcomes(self) -> Outcomes:
        """Return outcomes that stand for the law, in any order, and the probability of each."""
        raise NotImplementedError

    @cached_property
    def _reached(self) -> Outcomes:
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
        return values[np.searchsorted(reached, check_probability(p), side="left")]


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


LEAST_EPSILON, _MOST_EPSILON = 1e-250, 700.0  # so that no weight is beyond the floats


ENORMOUS = 1 << 900
"""Stands for the largest noise where epsilon is so small that it may be beyond all floats."""


@dataclass(frozen=True)
class Staircase:
    """Noise on whole numbers of which one record moves one by `steps` at most.

    A noise of k has probability proportional to exp(-epsilon * floor((abs(k) + steps - half) / steps)). Two
    noisy numbers whose true numbers differ by at most `steps` have stairs that differ by at most 1: so the
    noisy number is epsilon-differentially private, whatever `half` is. With one step this is two-sided
    geometric noise of rate epsilon.

    Parameters
    ----------
    epsilon : Fraction or float
        What a release costs.
    steps : int, default=1
        By how much one record moves the number at most.

    References
    ----------
    Q. Geng and P. Viswanath, "The Optimal Noise-Adding Mechanism in Differential Privacy", 2016,
    doi:10.1109/TIT.2015.2504967, for the law and for `half`, which makes the mean absolute noise least.
    """

    epsilon: Fraction | float
    steps: int = 1

    @property
    def _rate(self) -> float:
        return min(max(float(self.epsilon), LEAST_EPSILON), _MOST_EPSILON)

    @cached_property
    def half(self) -> int:
        """From which size on noise is off the middle stair."""
        return math.floor(self.steps / (1.0 + math.exp(self._rate / 2))) + 1

    @cached_property
    def _later(self) -> float:
        """The weight of all stairs after the middle one, on one side."""
        return self.steps / math.expm1(self._rate)

    @cached_property
    def _weight(self) -> float:
        """The weight of all numbers, if those of the middle stair have weight 1."""
        return 2 * self.half - 1 + 2 * self._later

    def draw(self, entropy: Entropy) -> int:
        """Draw one noise, exactly."""
        epsilon = Fraction(self.epsilon)
        if self.steps == 1:  # two-sided geometric noise, by the bits that it has everywhere else
            return discrete_laplace(entropy, epsilon)
        return staircase(entropy, epsilon, self.steps, self.half)

    def cdf(self, k: Floats | Integers) -> Floats:
        """Return P(noise <= k) for whole numbers k, and so P(noise >= -k)."""
        tail = self._tail(np.where(k < 0, -k, k + 1))
        return np.where(k < 0, tail, 1.0 - tail)

    def _tail(self, size: Floats | Integers) -> Floats:
        """Return P(noise >= size), for whole sizes of at least 1."""
        stair = np.floor((size + (self.steps - self.half)) / self.steps)
        left = self.half + stair * self.steps - size  # numbers on this stair; then come all later stairs
        return np.exp(-self._rate * stair) * (left + self._later) / self._weight

    @property
    def expected(self) -> float:
        """The mean absolute noise."""
        if float(self.epsilon) < LEAST_EPSILON:
            return math.inf
        middle = self.half * (self.half - 1) / 2
        # the mean size on the next stair; each later stair adds `steps`
        first = self.half + (self.steps - 1) / 2
        return 2 * (middle / self._weight + self._later / self._weight * (first + self._later))

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise; infinite where its square is beyond the floats."""
        middle = self.half * (self.half - 1) * (2 * self.half - 1) / 6
        first, within = self.half + (self.steps - 1) / 2, (self.steps * self.steps - 1) / 12
        # the next stair, and those after it: stair j more is as likely as j failures before a success
        square = first * first + within + self._later * (2 * first + self.steps + 2 * self._later)
        return math.sqrt(2 * (middle + self._later * square) / self._weight)

    def largest(self, miss: float) -> int:
        """Return the smallest j >= 0 with P(noise > j) <= miss, or a little more where j is large."""
        if float(self.epsilon) < LEAST_EPSILON:
            return ENORMOUS
        j = max(int(self._rare(np.array([miss]))[0]) - 1, 0)
        # the loop makes a few steps at most: the size above is off by its rounding
        while float(self._tail(np.array([j + 1.0]))[0]) > miss:
            j += 1 + int(j * 2.0**-50)
        return j

    def quantiles(self, p: Floats) -> Floats:
        """Return the smallest whole k with P(noise <= k) >= p, or a number near it where k is large."""
        size = np.minimum(self._rare(np.minimum(p, 1.0 - p)), LARGEST_NOISE)
        return np.where(p < 0.5, -size, size)

    @own_error_state
    def _rare(self, miss: Floats) -> Floats:
        """Return the smallest whole k >= 0 with P(noise > k) <= miss, for positive probabilities."""
        weight = miss * self._weight
        stair = np.maximum(np.floor(np.log((self.steps + self._later) / weight) / self._rate), 0.0)
        left = weight * np.exp(self._rate * stair)
        size = np.ceil(self.half + stair * self.steps + self._later - left)
        return np.maximum(size - 1.0, 0.0)


COUNT_LIMIT = 2.0**50
"""A noisy count beyond this, on either side of 0, is taken for it."""


def expected_error(noise: float, records: Fraction | float) -> float:
    """Return how far noise of this size moves a share of this number of records."""
    # a larger noisy number of records says no more, and may be no float
    return noise / float(min(records, COUNT_LIMIT)) if records > 0 else math.inf


class GeometricLaw(GridLaw):
    """The law of the geometric mechanism: staircase noise, clamped to a grid.

    Parameters
    ----------
    grid : Grid
        Public outputs, evenly spaced from number 0 on.
    centre : int
        Number of the metric's own place on the grid.
    noise : Staircase
        What is added to that number.
    """

    def __init__(self, grid: Grid, centre: int, noise: Staircase) -> None:
        self.grid, self.centre, self.added = grid, centre, noise

    def release(self, entropy: Entropy) -> Any:
        """Draw an output."""
        number = self.centre + self.added.draw(entropy)
        return self.grid.point(min(max(number, self.grid.first), self.grid.last))

    def limits(self, released: float, miss: float, *, rounding: float) -> Limits:
        """Return limits of what is a place on the grid plus `centre`, each missed with this probability.

        Parameters
        ----------
        released : float
            An output.
        miss : float
            Of one limit.
        rounding : float
            By how many places the centre may differ from the metric.
        """
        away = self.added.largest(miss) + rounding
        place = nearest_index(self.grid, released) - self.centre
        # an output at the upper end stands for all noisy places from there on
        above = away if place + self.centre < self.grid.last else math.inf
        ends = np.clip([place - away, place + above], self.grid.first, self.grid.last)
        # multiples of the spacing would be rounded twice: a count k must be k / n, to the last bit
        return Limits(*self.grid.points(ends).tolist())

    def outcomes(self) -> Outcomes:
        """Return outputs that stand for cells of probability, and the probability of each."""
        middle, mass = cells(256, 36)
        numbers = self.centre + self.added.quantiles(middle).astype(np.int64)
        return self.grid.points(np.clip(numbers, self.grid.first, self.grid.last)), mass

    def _cdf_inside(self, indices: Integers) -> Floats:
        return self.added.cdf(indices - self.centre)
