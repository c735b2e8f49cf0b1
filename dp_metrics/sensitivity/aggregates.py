"""What a metric needs from the data: exact sums and the extreme records, in O(capacity) memory.

An aggregate is private data, as sensitive as the records themselves: never publish one. Aggregates of
disjoint parts of the data merge in any order into the same bits as one aggregate of the whole.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np

from dp_metrics.inputs.options import Floats
from dp_metrics.sensitivity.exact import (
    BlockSums,
    in_blocks,
    in_units,
)

ByLevel: TypeAlias = dict[int, tuple[int, int]]
"""Number of a level, ascending -> what `LevelSums` tells of the values from there up to the next."""

_SLACK = 1024  # values to collect before the next partial selection, at least


class Largest:
    """Keeps the `capacity` largest, or smallest, of the values it is shown, by partial selection.

    Parameters
    ----------
    capacity : int
        How many to keep.
    sign : {1, -1}, default=1
        1 for the largest, -1 for the smallest.
    """

    def __init__(self, capacity: int, sign: int = 1) -> None:
        self._capacity, self._sign = capacity, sign
        self._parts: list[Floats] = []
        self._held = 0
        self._threshold = -np.inf

    def add(self, values: Floats, extreme: float) -> None:
        """Look at values; `extreme` is the largest of them, or the smallest."""
        if self._capacity == 0 or not self._sign * extreme > self._threshold:
            return  # values at the threshold are already held `capacity` times over
        if self._threshold == -np.inf:
            values = self._sign * values
        else:
            beyond = values > self._threshold if self._sign == 1 else values < -self._threshold
            values = self._sign * values[beyond.nonzero()]  # places are found faster than a mask is applied
        self._parts.append(values)
        self._held += values.size
        if self._held >= 2 * self._capacity + _SLACK:
            self._shrink()

    def _shrink(self) -> None:
        held = self._parts[0] if len(self._parts) == 1 else np.concatenate(self._parts)
        if held.size > self._capacity:
            held = np.partition(held, held.size - self._capacity)[-self._capacity :]
            self._threshold = held.min()
        self._parts, self._held = [held], held.size

    def in_order(self) -> Floats:
        """Return what is kept, the most extreme first."""
        if not self._parts:
            return np.empty(0)
        self._shrink()
        # adding 0 leaves no negative zero, so that merges agree to the bit
        return self._sign * np.sort(self._parts[0])[::-1] + 0.0


def largest_of_both(a: Floats, b: Floats, capacity: int) -> Floats:
    """Return the largest of the values of both, in descending order."""
    return np.sort(np.concatenate([a, b]))[::-1][:capacity]


def sum_of_levels(by_level: ByLevel) -> int:
    """Return the sum of all values in units of 2**-1074."""
    return sum([in_units(number, mantissas) for number, (_, mantissas) in by_level.items()])


def levels_of_both(a: ByLevel | None, b: ByLevel | None) -> ByLevel | None:
    """Return the counts and sums of the values of both."""
    if a is None or b is None:
        return None
    together = dict(a)
    for number, (count, total) in b.items():
        known = together.get(number, (0, 0))
        together[number] = known[0] + count, known[1] + total
    return dict(sorted(together.items()))


def exact_difference(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return d, the rounded a - b, and the exact rest a - b - d (Knuth's TwoSum), for a >= b >= 0."""
    difference = a - b
    back = difference - a
    return difference, (a - (difference - back)) - (b + back)


class LargestPairs:
    """Keeps the `capacity` largest of exact sums value + rest, where the value is the sum rounded."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.values = self.rest = np.empty(0)

    def add(self, values: Floats, rest: Floats) -> None:
        """Look at more of them."""
        if self.values.size == self._capacity and self._capacity > 0:
            keep = values >= self.values[-1]
            values, rest = values[keep], rest[keep]
        self.values, self.rest = largest_pairs(
            np.concatenate([self.values, values]), np.concatenate([self.rest, rest]), self._capacity
        )


def largest_pairs(values: Floats, rest: Floats, capacity: int) -> tuple[Floats, Floats]:
    """Return the largest exact sums value + rest, descending, where the value is the sum rounded.

    Rounding never reverses an order, so comparing first the values and then the rests is exact.
    """
    if values.size > capacity > 0:
        threshold = np.partition(values, values.size - capacity)[values.size - capacity]
        keep = values >= threshold
        values, rest = values[keep], rest[keep]
    order = np.lexsort((rest, values))[::-1][:capacity]
    # adding 0 leaves no negative zero, so that merges agree to the bit
    return values[order] + 0.0, rest[order] + 0.0


@dataclass(frozen=True, repr=False)
class VarianceAggregate:
    """Count, exact power sums and extremes of the values of a column.

    Parameters
    ----------
    n : int
        Number of records.
    total : int
        Exact sum of the values, in units of 2**-1074.
    squares : int
        Exact sum of their squares, in units of 2**-2148.
    largest, smallest : ndarray
        The `capacity` largest values in descending order, the `capacity` smallest in ascending order.
    capacity : int
        How many extremes are kept on each side; public.
    bounds : tuple of float or None
        Public bounds of the values.
    """

    n: int
    total: int
    squares: int
    largest: Floats
    smallest: Floats
    capacity: int
    bounds: tuple[float, float] | None

    def truncate(self, capacity: int) -> Self:
        """Return what aggregating with this capacity would have given, if it is less."""
        if capacity >= self.capacity:
            return self
        largest, smallest = self.largest[:capacity], self.smallest[:capacity]
        return replace(self, capacity=capacity, largest=largest, smallest=smallest)

    @classmethod
    def from_data(cls, x: Floats, *, capacity: int, bounds: tuple[float, float] | None = None) -> Self:
        """Aggregate finite values."""
        return cls.from_blocks(in_blocks(x), capacity=capacity, bounds=bounds)

    @classmethod
    def from_blocks(
        cls, blocks: Iterable[Floats], *, capacity: int, bounds: tuple[float, float] | None = None
    ) -> Self:
        """Aggregate finite values that come in blocks; the blocks do not affect the result.

        Values outside the bounds are clipped.
        """
        largest, smallest = Largest(capacity, 1), Largest(capacity, -1)
        sums = BlockSums()
        n = total = squares = 0
        for block in blocks:
            if block.size == 0:
                continue
            low, high = float(block.min()), float(block.max())
            if bounds is not None and not bounds[0] <= low <= high <= bounds[1]:
                block = np.clip(block, *bounds)
                low, high = np.clip([low, high], *bounds).tolist()
            n += block.size
            moments = sums.moments(block, max(high, -low))
            total, squares = total + moments[0], squares + moments[1]
            largest.add(block, high)
            smallest.add(block, low)
        return cls(n, total, squares, largest.in_order(), smallest.in_order(), capacity, bounds)

    def merge(self, other: Self) -> Self:
        """Return the aggregate of both sets of records, of one capacity and with the same bounds."""
        return type(self)(
            self.n + other.n,
            self.total + other.total,
            self.squares + other.squares,
            largest_of_both(self.largest, other.largest, self.capacity),
            -largest_of_both(-self.smallest, -other.smallest, self.capacity),
            self.capacity,
            self.bounds,
        )


@dataclass(frozen=True, repr=False)
class OrderAggregate:
    """The k-th smallest of n values and its neighbours in sorted order.

    Two of these cannot be merged in O(capacity) memory: where the k-th value of the whole lies among the
    values of a part is not known beforehand.

    Parameters
    ----------
    n : int
        Number of records.
    value : float
        The k-th smallest value.
    below, above : ndarray
        The up to `capacity` values before it in descending order, and after it in ascending order.
    capacity : int
        How many neighbours are kept on each side; public.
    limit : float
        Public upper limit of the values.
    """

    n: int
    value: float
    below: Floats
    above: Floats
    capacity: int
    limit: float

    @classmethod
    def from_data(cls, x: Floats, k: int, *, capacity: int, limit: float) -> Self:
        """Summarise values in [0, limit]; k counts from 1."""
        first, last = max(k - 1 - capacity, 0), min(k - 1 + capacity, x.size - 1)
        window = np.sort(np.partition(x, (first, last))[first : last + 1])
        middle = k - 1 - first
        return cls(
            x.size, float(window[middle]), window[:middle][::-1], window[middle + 1 :], capacity, limit
        )
