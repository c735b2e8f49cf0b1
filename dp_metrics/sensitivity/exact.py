"""Exact sums of floats, quotients that are rounded once, and the largest of many values.

Privacy proofs compare sums over neighbouring data sets. Floating-point sums depend on the order of
the records and can break the inequalities that the proofs need, so every sum here is an exact
Python integer: a number of *units*, 2^-1074 for sums of values and 2^-2148 for sums of squares.
Every finite float is a whole number of units. Integers merge in any order without changing a bit,
and Python's integer division rounds correctly, once, to the nearest float.

Sums and extremes are private data, as sensitive as the records themselves. Those of disjoint parts of the
data merge in any order into the same bits as those of the whole.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import repeat
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.arrays import BLOCK, BLOCK_BITS, in_blocks
from dp_metrics.inputs.options import MAX_FLOAT, Floats, Range

UNIT_BITS = 1074
"""A value v is the whole number v * 2**UNIT_BITS of units."""

_SUM_BITS = 62 - BLOCK_BITS
_REST_FROM = BLOCK_BITS - 2
_SQUARES_FROM = 16
_ROW = 1 << 9
_UNITS_OF_SLICES = np.array([1 << 46, 1 << 23, 1], dtype=object)
_LEAST_EXPONENT = -1000  # from here on what scales values to slices is a float
_HUGE = 2.0**960  # below, sigma is one
_FEW = 32  # adding so few values one by one is as fast as one more pass over arrays
_SAMPLE = 128
_FAR = 2.0**8


def rounded_quotient(numerator: int, denominator: int) -> float:
    """Return numerator / denominator, rounded once to nearest, saturated at the largest float.

    Rounding to nearest and saturation never reverse an inequality, so what holds for the exact
    numbers holds for the floats.
    """
    try:
        return numerator / denominator
    except OverflowError:
        return MAX_FLOAT if (numerator > 0) == (denominator > 0) else -MAX_FLOAT


def rounded(exact: Fraction) -> float:
    """Return a fraction as `rounded_quotient` does."""
    return rounded_quotient(exact.numerator, exact.denominator)


def rounded_quotients(numerators: Iterable[int], denominators: Iterable[int] | int) -> Floats:
    """Return what `rounded_quotient` gives for each numerator, and its or the common denominator."""
    if isinstance(denominators, int):
        denominators = repeat(denominators)
    return np.fromiter(map(rounded_quotient, numerators, denominators), np.float64)


def float_units(value: float) -> int:
    """Return a finite float in units of 2**-1074."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (UNIT_BITS + 1 - denominator.bit_length())


def to_units(values: Floats) -> list[int]:
    """Return finite floats in units of 2**-1074."""
    return [m << s for m, s in _whole_mantissas(values)]


def to_squared_units(values: Floats) -> list[int]:
    """Return the squares of finite floats in units of 2**-2148."""
    return [m * m << 2 * s for m, s in _whole_mantissas(values)]


def _whole_mantissas(values: Floats) -> Iterator[tuple[int, int]]:
    """Yield finite floats as whole numbers, each with the power of two that is missing to the unit."""
    _, exponents = np.frexp(values)
    shifts = np.maximum(exponents + (UNIT_BITS - 53), 0)  # a subnormal float is a few units
    whole = np.ldexp(values, UNIT_BITS - shifts).astype(np.int64)
    return zip(whole.tolist(), shifts.tolist(), strict=True)


LEVEL_BITS = 48
"""The levels 1, 17/16, ..., 31/16, times powers of two: floats of which so many last bits are zeros."""

LEVELS = 2047 << (52 - LEVEL_BITS)
"""Number of the levels that are floats; the next one is 2^1024."""

_NUMBERS = (1 << (63 - LEVEL_BITS)) - 1  # the bits that number a level: a negative zero has one more
_LOW = 52 - 2 * BLOCK_BITS  # of the bits of a mantissa that differ within a level, those in its lower part
_LOWER = (1 << _LOW) - 1
_UPPER = (1 << LEVEL_BITS) - (1 << _LOW)
_SUM = _LOW + BLOCK_BITS  # a sum of lower parts in a block is below 2^36
_OF_LOW = np.int64((1023 + _SUM) << 52)
_OF_HIGH = np.int64((1023 + 52 - _LOW) << 52)


class LevelSums:
    """Counts and exact sums of non-negative floats by level, for blocks of at most `BLOCK` of them.

    The levels are numbered by the bits that they have. Values of one level share an exponent and the first
    bits of the mantissa. The last 20 of the other bits, and those before them, are put into floats of one
    size each, without arithmetic: 2^36 and the lower part, 2^32 and the upper. The sum of the first in a
    block, below 2^53 and so exact, tells the count and the sum of the lower parts. In whole numbers of 64
    bits there is room for the upper parts, of 28 bits, of 2^35 records.
    """

    def __init__(self) -> None:
        self._sums = np.zeros((3, LEVELS), dtype=np.int64)  # few of its pages are ever used
        self._buffers = np.empty((2, BLOCK), dtype=np.int64)

    def add(self, block: Floats) -> None:
        """Count the values of one more block."""
        numbers, parts = self._buffers[:, : block.size]  # longer blocks, which would lose bits, do not fit
        bits = np.ascontiguousarray(block).view(np.int64)
        np.right_shift(bits, LEVEL_BITS, out=numbers)
        numbers &= _NUMBERS
        first = int(numbers.min())
        numbers -= first
        np.bitwise_and(bits, _UPPER, out=parts)
        parts |= _OF_HIGH
        of_high = np.bincount(numbers, parts.view(np.float64)).astype(np.int64)
        np.left_shift(bits, 52 - _SUM, out=parts)
        parts &= _LOWER << (52 - _SUM)
        parts |= _OF_LOW
        of_low = np.bincount(numbers, parts.view(np.float64)).astype(np.int64)
        counts = of_low >> _SUM
        here = self._sums[:, first : first + counts.size]
        here += counts, of_high - (counts << (52 - _LOW)), of_low & ((1 << _SUM) - 1)

    def found(self) -> dict[int, tuple[int, int]]:
        """Return the count and the sum of whole mantissas at the number of each level with a value."""
        several = np.flatnonzero(self._sums[0])
        columns = self._sums[:, several].tolist()
        return {
            number: (count, (high << _LOW) + low + count * level_mantissa(number)[0])
            for number, count, high, low in zip(several.tolist(), *columns, strict=True)
        }


def level_mantissa(number: int) -> tuple[int, int]:
    """Return a level as a whole mantissa and the power of two by which it is multiplied, in units."""
    # normal numbers have a leading bit that is not stored; subnormal ones have no smaller power than these
    power = max((number >> (52 - LEVEL_BITS)) - 1, 0)
    return (number - (power << (52 - LEVEL_BITS))) << LEVEL_BITS, power


def in_units(number: int, mantissas: int) -> int:
    """Return a sum of mantissas of the values from a level up to the next in units."""
    return mantissas << level_mantissa(number)[1]


def level_from(value: float) -> int:
    """Return the number of the lowest level that is at least a non-negative float."""
    return -(-int(np.float64(value).view(np.int64)) >> LEVEL_BITS)


def level_units(number: int) -> int:
    """Return a level in units; the one after the last is 2^1024."""
    mantissa, power = level_mantissa(number)
    return mantissa << power


def exact_sum(values: Floats) -> int:
    """Return the exact sum of finite floats, in units of 2**-1074.

    Parameters
    ----------
    values : ndarray of shape (n,), float64, finite
    """
    if values.size <= _FEW:
        return _sum_one_by_one(values)
    blocks = BlockSums()
    return sum(blocks.total(block, _largest_size(block)) for block in in_blocks(values))


def exact_moments(values: Floats) -> tuple[int, int]:
    """Return the exact sums of finite floats and of their squares, in units of 2**-1074 and 2**-2148.

    Parameters
    ----------
    values : ndarray of shape (n,), float64, finite
    """
    if values.size <= _FEW:
        return _moments_one_by_one(values)
    blocks = BlockSums()
    of_blocks = [blocks.moments(block, _largest_size(block)) for block in in_blocks(values)]
    total, squares = map(sum, zip(*of_blocks, strict=True))
    return total, squares


class BlockSums:
    """Exact sums of blocks of at most `BLOCK` finite floats, in buffers that are used for every block.

    Notes
    -----
    Error-free vector extraction (Rump, Ogita and Oishi 2008, doi:10.1137/050645671). Let |v| <= 2^e for every
    v of a block of at most 2^16 values, and sigma = 1.5 * 2^(k + 52) with k < e. Then v + sigma is rounded to
    a multiple of 2^k, q = (v + sigma) - sigma is exact, and so is the rest v - q, at most 2^(k - 1) in size.

    For sums k = e - 46. The bits of v + sigma, read as a whole number, are those of sigma plus q / 2^k,
    because both have one exponent. They add up in whole numbers of 64 bits, in which the copies of sigma may
    wrap around, but the sum of all q / 2^k has 62 bits. The rests of values from 2^(k + 14) on are multiples
    of 2^(k - 38): every partial sum of them, in any order, has 53 bits, and is exact.

    For squares values are cut into three slices, each a whole number of up to 2^22: of 2^(e - 22), of
    2^(e - 45) and, for values from 2^(e - 16) on, of 2^(e - 68). Products of two have 44 bits, so that their
    sums over 2^9 values are exact, in any order, with or without fused multiplications.

    The few values that are far larger than most, and those that are smaller than that, are added one by one
    as Python integers. So one record of another size than the others neither scales the slices of all nor
    costs one more pass. Blocks of values near either end of the floats are added so, too.
    """

    def __init__(self) -> None:
        self._usual = 0.0  # the size of most values of an earlier block

    @cached_property
    def _buffer(self) -> Floats:
        return np.empty(BLOCK)

    @cached_property
    def _slices(self) -> Floats:
        return np.empty((3, BLOCK))

    def total(self, block: Floats, largest: float, *, signed: bool = True) -> int:
        """Return the sum of a block, in units of 2**-1074.

        Parameters
        ----------
        block : ndarray
            The values.
        largest : float
            The size of the largest one.
        signed : bool, default=True
            Whether any value may be negative.
        """
        if largest == 0.0:
            return 0
        block, largest, far = self._without_far(block, largest)
        total = _sum_one_by_one(far)
        if largest >= _HUGE:
            return _sum_one_by_one(block) + total
        lowest = max(math.frexp(largest)[1] - _SUM_BITS, -UNIT_BITS)
        # the rests of smaller values are summed apart
        small = self._smaller(block, lowest + _REST_FROM, signed)
        sigma, rest = math.ldexp(1.5, lowest + 52), self._buffer[: block.size]
        np.add(block, sigma, out=rest)
        whole = int(np.add.reduce(rest.view(np.int64))) - block.size * int(np.float64(sigma).view(np.int64))
        total += ((whole + (1 << 63)) % (1 << 64) - (1 << 63)) << (lowest + UNIT_BITS)
        np.subtract(rest, sigma, out=rest)
        np.subtract(block, rest, out=rest)
        apart = rest[small]
        rest[small] = 0.0
        return total + float_units(float(np.add.reduce(rest))) + exact_sum(apart[apart != 0.0])

    def moments(self, block: Floats, largest: float) -> tuple[int, int]:
        """Return the sum of a block and that of its squares, in units of 2**-1074 and 2**-2148."""
        block, largest, far = self._without_far(block, largest)
        exponent = math.frexp(largest)[1]  # the smallest e with largest < 2^e
        if exponent < _LEAST_EXPONENT:
            return _moments_one_by_one(np.append(block, far))
        total, squares = _moments_one_by_one(far)
        slices = self._slice(block, exponent)
        small = self._smaller(block, exponent - _SQUARES_FROM, signed=True)
        small = small[block[small] != 0.0]  # many may be 0
        slices[:, small] = 0.0
        small_total, small_squares = exact_moments(block[small])
        rows = slices.reshape(3, -1, _ROW)
        dots = _dots(rows[:, np.newaxis], rows).astype(np.int64).sum(axis=2).astype(object)
        sums = slices.sum(axis=1).astype(np.int64).astype(object)
        unit = UNIT_BITS + exponent - 68  # at least 6
        total += small_total + (sums @ _UNITS_OF_SLICES << unit)
        squares += small_squares + (_UNITS_OF_SLICES @ dots @ _UNITS_OF_SLICES << 2 * unit)
        return total, squares

    def _slice(self, block: Floats, exponent: int) -> Floats:
        """Return rows of the first, the second and the last slices, filled up with zeros."""
        size = block.size
        found = self._slices[:, : -(-size // _ROW) * _ROW]
        found[:, size:] = 0.0
        first, second, last = found[:, :size]
        np.multiply(block, math.ldexp(1.0, 22 - exponent), out=last)
        for part in (first, second):
            np.rint(last, out=part)
            np.subtract(last, part, out=last)
            np.multiply(last, 2.0**23, out=last)
        return found

    def _smaller(self, block: Floats, exponent: int, signed: bool) -> NDArray[np.intp]:
        """Return the places of the values below 2^exponent in size."""
        sizes = np.abs(block, out=self._buffer[: block.size]) if signed else block
        return (sizes < math.ldexp(1.0, exponent)).nonzero()[0]

    def _without_far(self, block: Floats, largest: float) -> tuple[Floats, float, Floats]:
        """Return a block with 0 for the few values far larger than most, the largest size now, and those.

        What most values are is told by a sample, of which one value may be such a one itself. That of an
        earlier block serves as long as the largest value does not stand out.
        """
        nothing = block[:0]
        if block.size < _SAMPLE or self._usual <= largest <= self._usual * _FAR:
            return block, largest, nothing
        sample = np.abs(block[:: block.size // _SAMPLE])
        self._usual = usual = float(np.partition(sample, -2)[-2])
        if not 0.0 < usual < largest / _FAR:
            return block, largest, nothing
        places = np.flatnonzero(np.abs(block) > usual * _FAR)
        if places.size > _FEW:
            return block, largest, nothing
        others = block.copy()
        others[places] = 0.0
        return others, _largest_size(others), block[places]


def _sum_one_by_one(values: Floats) -> int:
    return sum(map(float_units, values.tolist()))


def _moments_one_by_one(values: Floats) -> tuple[int, int]:
    units = list(map(float_units, values.tolist()))
    return sum(units), sum([unit * unit for unit in units])


def _largest_size(block: Floats) -> float:
    return float(max(block.max(), -block.min()))


# NumPy 1 has no such function
_dots: Callable[[Floats, Floats], Floats] = getattr(np, "vecdot", partial(np.einsum, "...i,...i->..."))


ByLevel: TypeAlias = dict[int, tuple[int, int]]
"""Number of a level, ascending -> what `LevelSums` tells of the values from there up to the next."""

Pairs: TypeAlias = tuple[Floats, Floats]
"""Exact sums of two floats, the first of which is the sum rounded."""


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
        self._held, self._threshold = np.empty(0), -np.inf

    def add(self, values: Floats, extreme: float) -> None:
        """Look at values; `extreme` is the largest of them, or the smallest."""
        if self._capacity == 0 or not self._sign * extreme > self._threshold:
            return  # values at the threshold are already held `capacity` times over
        most = 2 * self._capacity + _SLACK
        if self._threshold == -np.inf and values.size > most:
            # a few values tell which of the others may be among the largest
            self.add(values[:most], self._sign * np.inf)
            values = values[most:]
        beyond = values > self._threshold if self._sign == 1 else values < -self._threshold
        # places are found faster than a mask is applied
        held = np.concatenate([self._held, self._sign * values[beyond.nonzero()]])
        if held.size >= most:
            held = np.partition(held, -self._capacity)[-self._capacity :]
            self._threshold = held.min()
        self._held = held

    def in_order(self) -> Floats:
        """Return what is kept, the most extreme first."""
        # adding 0 leaves no negative zero, so that merges agree to the bit
        return self._sign * np.sort(self._held)[::-1][: self._capacity] + 0.0


def largest_of_both(a: Floats, b: Floats, capacity: int) -> Floats:
    """Return the largest of the values of both, in descending order."""
    return np.sort(np.concatenate([a, b]))[::-1][:capacity]


def levels_of_both(a: ByLevel | None, b: ByLevel | None) -> ByLevel | None:
    """Return the counts and sums of the values of both."""
    if a is None or b is None:
        return None
    together = dict(a)
    for number, (count, total) in b.items():
        known = together.get(number, (0, 0))
        together[number] = known[0] + count, known[1] + total
    return dict(sorted(together.items()))


def exact_difference(a: Floats, b: Floats) -> Pairs:
    """Return d, the rounded a - b, and the exact rest a - b - d (Knuth's TwoSum), for a >= b >= 0."""
    difference = a - b
    back = difference - a
    return difference, (a - (difference - back)) - (b + back)


def largest_pairs(held: Pairs, more: Pairs, capacity: int) -> Pairs:
    """Return the largest of both exact sums value + rest, descending, where the value is the sum rounded.

    Rounding never reverses an order, so comparing first the values and then the rests is exact.
    """
    values, rest = map(np.concatenate, zip(held, more, strict=True))
    if values.size > capacity > 0:
        keep = values >= np.partition(values, -capacity)[-capacity]
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
    bounds: Range | None

    @classmethod
    def from_blocks(cls, blocks: Iterable[Floats], *, capacity: int, bounds: Range | None = None) -> Self:
        """Aggregate finite values that come in blocks; the blocks do not affect the result.

        Values outside the bounds are clipped.
        """
        largest, smallest = Largest(capacity), Largest(capacity, -1)
        sums = BlockSums()
        n = total = squares = 0
        for block in blocks:
            low, high = float(block.min()), float(block.max())
            if bounds is not None and not bounds[0] <= low <= high <= bounds[1]:
                block = np.clip(block, *bounds)
                low, high = np.clip([low, high], *bounds).tolist()
            n += block.size
            moments = sums.moments(block, max(high, -low))
            total += moments[0]
            squares += moments[1]
            largest.add(block, high)
            smallest.add(block, low)
        return cls(n, total, squares, largest.in_order(), smallest.in_order(), capacity, bounds)

    def __add__(self, other: Self) -> Self:
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
