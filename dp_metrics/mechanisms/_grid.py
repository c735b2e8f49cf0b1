"""Public grids of candidate outputs, and the runs of candidates that share one score.

The reflective inverse sensitivity s(x; t) is constant between consecutive output bounds, so a
mechanism over millions of candidates needs only how many of them lie between each pair of bounds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import MAX_FLOAT, Floats
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
