"""What a metric needs from the data: exact sums and the extreme records, in O(capacity) memory.

An aggregate is private data, as sensitive as the records themselves: never publish one. Aggregates of
disjoint parts of the data merge in any order into the same bits as one aggregate of the whole.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import MAX_FLOAT, Floats, limit_of
from dp_metrics.sensitivity.exact import (
    UNIT_BITS,
    BlockSums,
    LevelSums,
    in_blocks,
    in_units,
    rounded_quotient,
)

Aggregate = TypeVar("Aggregate", bound=Any)

ByLevel: TypeAlias = dict[int, tuple[int, int]]
"""Number of a level, ascending -> what `LevelSums` tells of the values from there up to the next."""

_SLACK = 1024  # values to collect before the next partial selection, at least


class _Extremes:
    """Keeps the `capacity` largest, or smallest, of the values it is shown, by partial selection.

    Parameters
    ----------
    capacity : int
        How many to keep.
    sign : {1, -1}
        1 for the largest, -1 for the smallest.
    """

    def __init__(self, capacity: int, sign: int) -> None:
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


def _merge_largest(a: Floats, b: Floats, capacity: int) -> Floats:
    return np.sort(np.concatenate([a, b]))[::-1][:capacity]


def _sum_of_levels(by_level: ByLevel) -> int:
    return sum([in_units(number, mantissas) for number, (_, mantissas) in by_level.items()])


def _together(a: ByLevel | None, b: ByLevel | None) -> ByLevel | None:
    if a is None or b is None:
        return None
    together = dict(a)
    for number, (count, total) in b.items():
        known = together.get(number, (0, 0))
        together[number] = known[0] + count, known[1] + total
    return dict(sorted(together.items()))


def _truncated(aggregate: Aggregate, capacity: int, *arrays: str) -> Aggregate:
    if capacity >= aggregate.capacity:
        return aggregate
    kept = {name: getattr(aggregate, name)[:capacity] for name in arrays}
    return replace(aggregate, capacity=capacity, **kept)


def _check_mergeable(a: object, b: object, fields: tuple[str, ...]) -> None:
    if type(a) is not type(b) or any(getattr(a, f) != getattr(b, f) for f in fields):
        raise ValueError(f"Summaries merge only with the same type, {' and '.join(fields)}.")


@dataclass(frozen=True, repr=False, eq=False)
class CountAggregate:
    """How many records lie in each public cell.

    Parameters
    ----------
    n : int
        Number of records.
    counts : ndarray of shape (n_cells,)
        Whole numbers as floats, exact up to 2^53, with sum n.
    """

    n: int
    counts: Floats

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> Self:
        """Return the aggregate of records in these cells."""
        return cls(int(counts.sum()), counts.astype(np.float64))

    def merge(self, other: Self) -> Self:
        """Return the aggregate of the records of both."""
        return replace(self, n=self.n + other.n, counts=self.counts + other.counts)

    @property
    def table(self) -> NDArray[np.int64]:
        """The counts as whole numbers."""
        return self.counts.astype(np.int64)


@dataclass(frozen=True, repr=False)
class LossAggregate:
    """Count, exact sum and extremes of non-negative per-record losses.

    Parameters
    ----------
    n : int
        Number of records.
    total : int
        Exact sum of the losses, in units of 2**-1074.
    largest : ndarray
        The `capacity` largest losses, in descending order.
    smallest : ndarray
        The `capacity` smallest losses, in ascending order; empty without a cap, where they are not needed.
    capacity : int
        How many extremes are kept; public.
    cap : float or None
        Public cap of one loss.
    by_level : dict or None, default=None
        Counts and sums of all losses by their size, for those who will not see the records again.
    """

    n: int
    total: int
    largest: Floats
    smallest: Floats
    capacity: int
    cap: float | None
    by_level: ByLevel | None = None

    @property
    def weight(self) -> int:
        """What the sum of the losses is divided by, in units of 2**-1074."""
        return self.n << UNIT_BITS

    @property
    def limit(self) -> float:
        """Public limit of the mean."""
        return limit_of(self.cap)

    def truncate(self, capacity: int) -> Self:
        """Return what aggregating with this capacity would have given, if it is less."""
        return _truncated(self, capacity, "largest", "smallest")

    @classmethod
    def from_data(cls, losses: Floats, *, capacity: int, cap: float | None = None) -> Self:
        """Aggregate non-negative losses."""
        return cls.from_blocks(in_blocks(losses), capacity=capacity, cap=cap)

    @classmethod
    def from_blocks(
        cls, blocks: Iterable[Floats], *, capacity: int, cap: float | None = None, by_level: bool = False
    ) -> Self:
        """Aggregate non-negative losses that come in blocks; the blocks do not affect the result.

        Losses above the cap, and infinite ones, are clipped.
        """
        limit = limit_of(cap)
        largest, smallest = _Extremes(capacity, 1), _Extremes(0 if cap is None else capacity, -1)
        sums = BlockSums()
        n = total = 0
        levels = LevelSums() if by_level else None
        for block in blocks:
            if block.size == 0:
                continue
            high = float(block.max())
            if high > limit:
                block, high = np.minimum(block, limit), limit
            n += block.size
            largest.add(block, high)
            if cap is not None:
                smallest.add(block, float(block.min()))
            if levels is None:
                total += sums.total(block, high, signed=False)
            else:
                levels.add(block)
        found = None if levels is None else levels.found()
        if found is not None:
            total = _sum_of_levels(found)
        return cls(n, total, largest.in_order(), smallest.in_order(), capacity, cap, found)

    def merge(self, other: Self) -> Self:
        """Return the summary of both sets of records together."""
        _check_mergeable(self, other, ("capacity", "cap"))
        return type(self)(
            self.n + other.n,
            self.total + other.total,
            _merge_largest(self.largest, other.largest, self.capacity),
            -_merge_largest(-self.smallest, -other.smallest, self.capacity),
            self.capacity,
            self.cap,
            _together(self.by_level, other.by_level),
        )


@dataclass(frozen=True, repr=False)
class WeightedLossAggregate:
    """Count, exact sums and extremes of non-negative terms, each with a public limit of its own.

    A term is a weighted loss, or the sum over one group.

    Parameters
    ----------
    n : int
        Number of terms.
    weight : int
        What the sum of the terms is divided by, in units of 2**-1074: the public sum of the weights.
    total : int
        Exact sum of the terms, in units of 2**-1074.
    limits : int or None
        Exact sum of the public limits, likewise; None if the terms are unbounded.
    largest_limit : float
        The largest public limit; 0 if the terms are unbounded.
    largest : ndarray
        The `capacity` largest terms, in descending order.
    headroom, headroom_rest : ndarray
        The `capacity` largest differences of a limit and its term, in descending order, each as the exact sum
        of two floats; empty if the terms are unbounded.
    capacity : int
        How many extremes are kept; public.
    by_level : dict or None, default=None
        Counts and sums of all terms by their size, for those who will not see the records again.
    """

    n: int
    weight: int
    total: int
    limits: int | None
    largest_limit: float
    largest: Floats
    headroom: Floats
    headroom_rest: Floats
    capacity: int
    by_level: ByLevel | None = None

    @property
    def limit(self) -> float:
        """Public limit of the mean."""
        return MAX_FLOAT if self.limits is None else rounded_quotient(self.limits, self.weight)

    def truncate(self, capacity: int) -> Self:
        """Return what aggregating with this capacity would have given, if it is less."""
        return _truncated(self, capacity, "largest", "headroom", "headroom_rest")

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[tuple[Floats, Floats | None]],
        *,
        weight: int,
        bounded: bool,
        capacity: int,
        by_level: bool = False,
    ) -> Self:
        """Aggregate blocks of terms and, if they are bounded, of the limits that they do not exceed.

        The blocks do not affect the result.
        """
        largest, headrooms = _Extremes(capacity, 1), _LargestPairs(capacity)
        sums = BlockSums()
        n = total = limits = 0
        largest_limit = 0.0
        levels = LevelSums() if by_level else None
        for terms, limits_of_terms in blocks:
            if terms.size == 0:
                continue
            n += terms.size
            high = float(terms.max())
            largest.add(terms, high)
            if levels is None:
                total += sums.total(terms, high, signed=False)
            else:
                levels.add(terms)
            if limits_of_terms is not None:
                high = float(limits_of_terms.max())
                limits += sums.total(limits_of_terms, high, signed=False)
                largest_limit = max(largest_limit, high)
                headrooms.add(*_exact_difference(limits_of_terms, terms))
        found = None if levels is None else levels.found()
        if found is not None:
            total = _sum_of_levels(found)
        return cls(
            n=n,
            weight=weight,
            total=total,
            limits=limits if bounded else None,
            largest_limit=largest_limit,
            largest=largest.in_order(),
            headroom=headrooms.values,
            headroom_rest=headrooms.rest,
            capacity=capacity,
            by_level=found,
        )

    def merge(self, other: Self) -> Self:
        """Return the summary of both sets of terms together."""
        _check_mergeable(self, other, ("capacity",))
        if (self.limits is None) != (other.limits is None):
            raise ValueError("Summaries merge only if both have limits or neither has.")
        headroom, rest = _largest_pairs(
            np.concatenate([self.headroom, other.headroom]),
            np.concatenate([self.headroom_rest, other.headroom_rest]),
            self.capacity,
        )
        return type(self)(
            n=self.n + other.n,
            weight=self.weight + other.weight,
            total=self.total + other.total,
            limits=None if self.limits is None or other.limits is None else self.limits + other.limits,
            largest_limit=max(self.largest_limit, other.largest_limit),
            largest=_merge_largest(self.largest, other.largest, self.capacity),
            headroom=headroom,
            headroom_rest=rest,
            capacity=self.capacity,
            by_level=_together(self.by_level, other.by_level),
        )


def _exact_difference(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return d, the rounded a - b, and the exact rest a - b - d (Knuth's TwoSum), for a >= b >= 0."""
    difference = a - b
    back = difference - a
    return difference, (a - (difference - back)) - (b + back)


class _LargestPairs:
    """Keeps the `capacity` largest of exact sums value + rest, where the value is the sum rounded."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.values = self.rest = np.empty(0)

    def add(self, values: Floats, rest: Floats) -> None:
        """Look at more of them."""
        if self.values.size == self._capacity and self._capacity > 0:
            keep = values >= self.values[-1]
            values, rest = values[keep], rest[keep]
        self.values, self.rest = _largest_pairs(
            np.concatenate([self.values, values]), np.concatenate([self.rest, rest]), self._capacity
        )


def _largest_pairs(values: Floats, rest: Floats, capacity: int) -> tuple[Floats, Floats]:
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
        return _truncated(self, capacity, "largest", "smallest")

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
        largest, smallest = _Extremes(capacity, 1), _Extremes(capacity, -1)
        sums = BlockSums()
        n = total = squares = 0
        for block in blocks:
            if block.size == 0:
                continue
            if bounds is not None:
                block = np.clip(block, *bounds)
            low, high = float(block.min()), float(block.max())
            n += block.size
            moments = sums.moments(block, max(high, -low))
            total, squares = total + moments[0], squares + moments[1]
            largest.add(block, high)
            smallest.add(block, low)
        return cls(n, total, squares, largest.in_order(), smallest.in_order(), capacity, bounds)

    def merge(self, other: Self) -> Self:
        """Return the summary of both sets of records together."""
        _check_mergeable(self, other, ("capacity", "bounds"))
        return type(self)(
            self.n + other.n,
            self.total + other.total,
            self.squares + other.squares,
            _merge_largest(self.largest, other.largest, self.capacity),
            -_merge_largest(-self.smallest, -other.smallest, self.capacity),
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
