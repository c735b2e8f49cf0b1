"""What a metric needs from the data: exact sums and the extreme records, in O(capacity) memory.

A summary is private data, as sensitive as the records themselves: never publish one. Summaries of
disjoint parts of the data merge in any order into the same bits as one summary of the whole.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dp_metrics._exact import BLOCK, exact_square_sum, exact_sum

__all__ = ["LossSummary", "OrderSummary", "VarianceSummary", "WeightedLossSummary"]

Floats = NDArray[np.float64]


class _Largest:
    """Keeps the `capacity` largest of the values it is shown, by partial selection."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._parts: list[Floats] = []
        self._held = 0
        self._threshold = -np.inf

    def add(self, values: Floats) -> None:
        if self._capacity == 0:
            return
        if self._threshold > -np.inf:  # values at the threshold are already held `capacity` times over
            values = values[values > self._threshold]
        if values.size:
            self._parts.append(values)
            self._held += values.size
            if self._held >= self._capacity + BLOCK:
                self._shrink()

    def _shrink(self) -> None:
        held = np.concatenate(self._parts)
        if held.size > self._capacity:
            held = np.partition(held, held.size - self._capacity)[-self._capacity :]
            self._threshold = held.min()
        self._parts, self._held = [held], held.size

    def descending(self) -> Floats:
        """Return what is kept, largest first."""
        if not self._parts:
            return np.empty(0)
        self._shrink()
        return np.sort(self._parts[0])[::-1]


def _merge_largest(a: Floats, b: Floats, capacity: int) -> Floats:
    return np.sort(np.concatenate([a, b]))[::-1][:capacity]


def _blocks(values: Floats) -> Iterable[Floats]:
    return (values[start : start + BLOCK] for start in range(0, values.size, BLOCK))


def _check_mergeable(a: object, b: object, fields: tuple[str, ...]) -> None:
    if type(a) is not type(b) or any(getattr(a, f) != getattr(b, f) for f in fields):
        raise ValueError(f"Summaries merge only with the same type, {' and '.join(fields)}.")


@dataclass(frozen=True, repr=False)
class LossSummary:
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
    """

    n: int
    total: int
    largest: Floats
    smallest: Floats
    capacity: int
    cap: float | None

    @classmethod
    def from_data(cls, losses: Floats, *, capacity: int, cap: float | None = None) -> Self:
        """Summarise losses that lie in [0, cap]."""
        return cls.from_blocks(_blocks(losses), capacity=capacity, cap=cap)

    @classmethod
    def from_blocks(cls, blocks: Iterable[Floats], *, capacity: int, cap: float | None = None) -> Self:
        """Summarise losses that come in pieces; the pieces do not affect the result."""
        largest, smallest = _Largest(capacity), _Largest(0 if cap is None else capacity)
        n = total = 0
        for block in blocks:
            n += block.size
            total += exact_sum(block)
            largest.add(block)
            if cap is not None:
                smallest.add(-block)
        return cls(n, total, largest.descending(), -smallest.descending(), capacity, cap)

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
        )


@dataclass(frozen=True, repr=False)
class WeightedLossSummary:
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
    room, room_rest : ndarray
        The `capacity` largest differences of a limit and its term, in descending order, each as the exact sum
        of two floats; empty if the terms are unbounded.
    capacity : int
        How many extremes are kept; public.
    """

    n: int
    weight: int
    total: int
    limits: int | None
    largest_limit: float
    largest: Floats
    room: Floats
    room_rest: Floats
    capacity: int

    @classmethod
    def from_data(cls, terms: Floats, limits: Floats | None, *, weight: int, capacity: int) -> Self:
        """Summarise terms that lie between 0 and their limits."""
        largest = _Largest(capacity)
        for block in _blocks(terms):
            largest.add(block)
        room, rest = np.empty(0), np.empty(0)
        if limits is not None:
            room, rest = _largest_pairs(*_exact_difference(limits, terms), capacity)
        return cls(
            n=terms.size,
            weight=weight,
            total=exact_sum(terms),
            limits=None if limits is None else exact_sum(limits),
            largest_limit=0.0 if limits is None or limits.size == 0 else float(limits.max()),
            largest=largest.descending(),
            room=room,
            room_rest=rest,
            capacity=capacity,
        )

    def merge(self, other: Self) -> Self:
        """Return the summary of both sets of terms together."""
        _check_mergeable(self, other, ("capacity",))
        if (self.limits is None) != (other.limits is None):
            raise ValueError("Summaries merge only if both have limits or neither has.")
        room, rest = _largest_pairs(
            np.concatenate([self.room, other.room]),
            np.concatenate([self.room_rest, other.room_rest]),
            self.capacity,
        )
        return type(self)(
            n=self.n + other.n,
            weight=self.weight + other.weight,
            total=self.total + other.total,
            limits=None if self.limits is None or other.limits is None else self.limits + other.limits,
            largest_limit=max(self.largest_limit, other.largest_limit),
            largest=_merge_largest(self.largest, other.largest, self.capacity),
            room=room,
            room_rest=rest,
            capacity=self.capacity,
        )


def _exact_difference(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return d, the rounded a - b, and the exact rest a - b - d (Knuth's TwoSum), for a >= b >= 0."""
    difference = a - b
    back = difference - a
    return difference, (a - (difference - back)) - (b + back)


def _largest_pairs(values: Floats, rest: Floats, capacity: int) -> tuple[Floats, Floats]:
    """Return the largest exact sums value + rest, descending, where the value is the sum rounded.

    Rounding never reverses an order, so comparing first the values and then the rests is exact.
    """
    if values.size > capacity > 0:
        threshold = np.partition(values, values.size - capacity)[values.size - capacity]
        keep = values >= threshold
        values, rest = values[keep], rest[keep]
    order = np.lexsort((rest, values))[::-1][:capacity]
    return values[order], rest[order]


@dataclass(frozen=True, repr=False)
class VarianceSummary:
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

    @classmethod
    def from_data(cls, x: Floats, *, capacity: int, bounds: tuple[float, float] | None = None) -> Self:
        """Summarise finite values that lie within the bounds."""
        largest, smallest = _Largest(capacity), _Largest(capacity)
        for block in _blocks(x):
            largest.add(block)
            smallest.add(-block)
        total, squares = exact_sum(x), exact_square_sum(x)
        return cls(x.size, total, squares, largest.descending(), -smallest.descending(), capacity, bounds)

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
class OrderSummary:
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
