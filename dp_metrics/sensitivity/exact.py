"""Exact sums of floats, and quotients that are rounded once.

Privacy proofs compare sums over neighbouring data sets. Floating-point sums depend on the order of
the records and can break the inequalities that the proofs need, so every sum here is an exact
Python integer: a number of *units*, 2^-1074 for sums of values and 2^-2148 for sums of squares.
Every finite float is a whole number of units. Integers merge in any order without changing a bit,
and Python's integer division rounds correctly, once, to the nearest float.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import count, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import MAX_FLOAT, Floats

__all__ = [
    "BLOCK",
    "LEVELS",
    "UNIT_BITS",
    "BlockSums",
    "LevelSums",
    "exact_moments",
    "exact_sum",
    "in_blocks",
    "in_units",
    "level_from",
    "level_units",
    "rounded_quotient",
    "rounded_quotients",
    "to_units",
]

UNIT_BITS = 1074
"""A value v is the whole number v * 2**UNIT_BITS of units."""

BLOCK = 1 << 14
"""Records handled at once: small enough for the cache, large enough to hide the cost of a call."""

_SUM_BITS = 38
_SQUARE_BITS = 19
_SQUARE_SLICES = 4
_SAFE_EXPONENT = 400
_ONE_THREAD = 1 << 13
_HUGE = 2.0**960
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


def rounded_quotients(numerators: Iterable[int], denominators: Iterable[int] | int) -> Floats:
    """Return what `rounded_quotient` gives for each numerator, and its or the common denominator."""
    if isinstance(denominators, int):
        denominators = repeat(denominators)
    pairs = list(zip(numerators, denominators, strict=False))
    try:
        return np.array([numerator / denominator for numerator, denominator in pairs], dtype=np.float64)
    except OverflowError:
        return np.array([rounded_quotient(*pair) for pair in pairs])


def to_units(values: Floats, bits: int = 0) -> list[int]:
    """Return finite floats as exact multiples of 2**(bits - 1074)."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    shift = exponent.astype(np.int64) + (UNIT_BITS - 53 - bits)
    least = int(shift.min()) if values.size else 0
    if least >= 0 and (shift < least + 10).all():  # whole numbers below 2^63, all times 2^least
        near: list[int] = (whole << (shift - least)).tolist()
        return [m << least for m in near]
    # The 53-bit whole mantissa of a subnormal ends in zeros, so the right shift loses nothing.
    return [m << s if s >= 0 else m >> -s for m, s in zip(whole.tolist(), shift.tolist(), strict=True)]


LEVEL_BITS = 48
"""The levels 1, 17/16, ..., 31/16, times powers of two: floats of which so many last bits are zeros."""

LEVELS = 2047 << (52 - LEVEL_BITS)
"""Number of the levels that are floats; the next one is 2^1024."""

_HALF = 26  # bits of a mantissa in its lower half


class LevelSums:
    """Counts and exact sums of non-negative floats by level, for blocks of at most `BLOCK` of them.

    The levels are numbered by the bits that they have. Values of one level share an exponent: their sum is
    that of whole mantissas, of which either half adds up without an error in the float64 of a block, and in
    whole numbers of 64 bits for 2^36 records.
    """

    def __init__(self) -> None:
        self._counts, self._high, self._low = (np.zeros(LEVELS, dtype=np.int64) for _ in range(3))

    def add(self, block: Floats) -> None:
        """Count the values of one more block."""
        if block.size > BLOCK:
            raise ValueError("Longer blocks would lose bits.")
        bits = (block + 0.0).view(np.int64)  # a negative zero has other bits
        numbers = bits >> LEVEL_BITS
        first = int(numbers.min())
        numbers -= first
        mantissas = bits & ((1 << 52) - 1)
        low = np.bincount(numbers, mantissas & ((1 << _HALF) - 1))
        mantissas >>= _HALF
        here = slice(first, first + low.size)
        self._counts[here] += np.bincount(numbers)
        self._high[here] += np.bincount(numbers, mantissas).astype(np.int64)
        self._low[here] += low.astype(np.int64)

    def found(self) -> dict[int, tuple[int, int]]:
        """Return the count and the sum of whole mantissas at the number of each level with a value."""
        several = np.flatnonzero(self._counts)
        columns = (a[several].tolist() for a in (self._counts, self._high, self._low))
        # normal numbers have a leading bit that is not stored
        return {
            number: (count, (high << _HALF) + low + ((count << 52) if number >> (52 - LEVEL_BITS) else 0))
            for number, count, high, low in zip(several.tolist(), *columns, strict=True)
        }


def in_units(number: int, mantissas: int) -> int:
    """Return a sum of mantissas of the values from a level up to the next in units."""
    return mantissas << max((number >> (52 - LEVEL_BITS)) - 1, 0)


def level_from(value: float) -> int:
    """Return the number of the lowest level that is at least a non-negative float."""
    return -(-int(np.float64(value).view(np.int64)) >> LEVEL_BITS)


def level_units(number: int) -> int:
    """Return a level in units; the one after the last is 2^1024."""
    exponent, parts = divmod(number, 1 << (52 - LEVEL_BITS))
    parts += (1 << (52 - LEVEL_BITS)) if exponent else 0
    return parts << (LEVEL_BITS + max(exponent - 1, 0))


def exact_sum(values: Floats) -> int:
    """Return the exact sum of finite floats, in units of 2**-1074.

    Parameters
    ----------
    values : ndarray of shape (n,), float64, finite
    """
    blocks = BlockSums(values.size)
    return sum(blocks.total(block, _largest_size(block)) for block in in_blocks(values))


def exact_moments(values: Floats) -> tuple[int, int]:
    """Return the exact sums of finite floats and of their squares, in units of 2**-1074 and 2**-2148.

    Parameters
    ----------
    values : ndarray of shape (n,), float64, finite
    """
    blocks = BlockSums(values.size)
    total = squares = 0
    for block in in_blocks(values):
        of_block = blocks.moments(block, _largest_size(block))
        total, squares = total + of_block[0], squares + of_block[1]
    return total, squares


def in_blocks(values: NDArray[Any], rows: int = BLOCK) -> Iterator[NDArray[Any]]:
    """Yield views of so many records at a time."""
    return (values[start : start + rows] for start in range(0, len(values), rows))


class BlockSums:
    """Exact sums of blocks of finite floats, with buffers that are used again for every block.

    Parameters
    ----------
    n : int
        No block will have more than this or `BLOCK` values.

    Notes
    -----
    Error-free vector extraction (Rump, Ogita and Oishi 2008, doi:10.1137/050645671). Let every |v| <= 2^e in
    a block of at most 2^14 values, and sigma = 2^(e + 53 - b) for slices of b bits. Then
    q = (v + sigma) - sigma is a multiple of 2^(e-b) with |q| <= 2^e, and the rest v - q is exact and at most
    2^(e-b) in size: repeat until it is zero.

    For sums b = 38, so that every partial sum of the q, in any order, is a multiple of 2^(e-38) that is at
    most 2^(e+14): 52 bits, exact. For squares b = 19: a product of two slices has 38 bits, and what holds for
    those sums holds for the dot product of two slices, with or without fused multiplications.

    The few values that are far larger than most, and those of which something is left in the end, are added
    one by one as Python integers. So one record of another size than the others neither scales the slices
    of all nor costs one more pass.
    """

    def __init__(self, n: int) -> None:
        size = min(n, BLOCK)
        self._rest = np.empty(size)
        self._slices = [np.empty(size)]

    def total(self, block: Floats, largest: float) -> int:
        """Return the sum of a block, in units of 2**-1074; `largest` is the size of its largest value."""
        if block.size == 0 or largest == 0.0:
            return 0
        block, largest, far = _without_far(block, largest)
        if largest >= _HUGE:  # sigma would overflow: take the huge values apart, scaled down exactly
            huge, others = _split(block, np.abs(block) >= 2.0**500)
            return (exact_sum(np.ldexp(huge, -500)) << 500) + exact_sum(others) + _sum_one_by_one(far)
        total = 0
        exponent = _exponent(largest)
        rest = block
        extracted = self._slices[0][: block.size]
        for extractions in count(1):
            rest = self._extract(rest, exponent - _SUM_BITS, extracted)
            total += _units(float(extracted.sum()))
            if extractions == 1:
                exponent -= _SUM_BITS
                continue
            left = np.flatnonzero(rest)
            if left.size <= _FEW:
                return total + _sum_one_by_one(rest[left]) + _sum_one_by_one(far)
            # values that leave something are so much smaller than the largest
            rest = rest[left]
            extracted = extracted[: rest.size]
            exponent = _exponent(_largest_size(rest))
        raise AssertionError("unreachable")

    def moments(self, block: Floats, largest: float) -> tuple[int, int]:
        """Return the sum of a block and that of its squares, in units of 2**-1074 and 2**-2148."""
        if block.size == 0 or largest == 0.0:
            return 0, 0
        block, largest, far = _without_far(block, largest)
        total, squares = _moments_one_by_one(far)
        if largest >= _HUGE:
            huge, others = _split(block, np.abs(block) >= 2.0**500)
            (a, a2), (b, b2) = exact_moments(np.ldexp(huge, -500)), exact_moments(others)
            return (a << 500) + b + total, (a2 << 1000) + b2 + squares
        exponent = _exponent(largest)
        slices = self._slice(block, exponent)
        # Values far smaller than the largest leave a rest after these slices, and are summed apart.
        left = np.flatnonzero(self._rest[: block.size])
        if left.size:
            for part in slices:
                part[left] = 0.0
            apart = _moments_one_by_one if left.size <= _FEW else exact_moments
            of_left = apart(block[left])
            total, squares = total + of_left[0], squares + of_left[1]
        scale = 0
        if abs(exponent) > _SAFE_EXPONENT:  # products could overflow, or lose bits to underflow
            scale = -exponent
            slices = [np.ldexp(part, scale) for part in slices]
        unit = exponent + scale - _SQUARE_BITS * _SQUARE_SLICES  # each slice is a multiple of 2^unit
        sums = products = 0
        for i, part in enumerate(slices):
            sums += _whole(float(part.sum()), unit)
            products += _whole(_dot(part, part), 2 * unit)
            products += 2 * sum([_whole(_dot(part, other), 2 * unit) for other in slices[:i]])
        return (
            total + _shifted(sums, UNIT_BITS + unit - scale),
            squares + _shifted(products, 2 * (UNIT_BITS + unit - scale)),
        )

    def _slice(self, block: Floats, exponent: int) -> list[Floats]:
        """Return slices of 19 bits that make up the values; the rest stays in its buffer."""
        while len(self._slices) < _SQUARE_SLICES:
            self._slices.append(np.empty_like(self._rest))
        slices = [part[: block.size] for part in self._slices]
        rest = block
        for part in slices:
            exponent -= _SQUARE_BITS
            rest = self._extract(rest, exponent, part)
        return slices

    def _extract(self, values: Floats, exponent: int, out: Floats) -> Floats:
        """Round values to multiples of 2^exponent, in `out`, and return the rest, in a buffer."""
        sigma = math.ldexp(1.0, exponent + 53)
        np.add(values, sigma, out=out)
        np.subtract(out, sigma, out=out)
        return np.subtract(values, out, out=self._rest[: values.size])


def _without_far(block: Floats, largest: float) -> tuple[Floats, float, Floats]:
    """Return a block with 0 for the few values far larger than most, the largest size now, and those values.

    What most values are is told by a sample, of which one value may be such a one itself.
    """
    nothing = block[:0]
    if block.size < _SAMPLE:
        return block, largest, nothing
    sample = np.abs(block[:: block.size // _SAMPLE])
    usual = float(np.partition(sample, -2)[-2])
    if not 0.0 < usual < largest / _FAR:
        return block, largest, nothing
    sizes = np.abs(block)
    places = np.flatnonzero(sizes > usual * _FAR)
    if places.size > _FEW:
        return block, largest, nothing
    others = block.copy()
    others[places] = sizes[places] = 0.0
    return others, float(sizes.max()), block[places]


def _sum_one_by_one(values: Floats) -> int:
    return sum(map(_units, values.tolist()))


def _moments_one_by_one(values: Floats) -> tuple[int, int]:
    units = list(map(_units, values.tolist()))
    return sum(units), sum([unit * unit for unit in units])


def _largest_size(block: Floats) -> float:
    return float(max(block.max(), -block.min())) if block.size else 0.0


def _exponent(value: float) -> int:
    """Return the smallest e with value < 2^e."""
    return math.frexp(value)[1]


def _split(values: Floats, mask: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    return values[mask], values[~mask]


def _dot(a: Floats, b: Floats) -> float:
    """Return the sum of the products, which is exact here, in pieces too short to be spread over threads."""
    if a.size <= _ONE_THREAD:
        return float(a @ b)
    return float(
        sum([a[i : i + _ONE_THREAD] @ b[i : i + _ONE_THREAD] for i in range(0, a.size, _ONE_THREAD)])
    )


def _whole(value: float, exponent: int) -> int:
    """Return value / 2**exponent, which is whole."""
    return int(math.ldexp(value, -exponent))


def _shifted(number: int, bits: int) -> int:
    """Return number * 2**bits, which must be whole."""
    return number << bits if bits >= 0 else number >> -bits


def _units(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator << (UNIT_BITS + 1 - denominator.bit_length())
