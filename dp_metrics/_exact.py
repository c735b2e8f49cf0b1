"""Exact sums of floats, and quotients that are rounded once.

Privacy proofs compare sums over neighbouring data sets. Floating-point sums depend on the order of
the records and can break the inequalities that the proofs need, so every sum here is an exact
Python integer: a number of *units*, 2^-1074 for sums of values and 2^-2148 for sums of squares.
Every finite float is a whole number of units. Integers merge in any order without changing a bit,
and Python's integer division rounds correctly, once, to the nearest float.
"""

import sys

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK", "MAX_FLOAT", "UNIT_BITS", "exact_square_sum", "exact_sum", "rounded_quotient", "to_units"]

Floats = NDArray[np.float64]

UNIT_BITS = 1074
"""A value v is the whole number v * 2**UNIT_BITS of units."""

BLOCK = 1 << 14
"""Records handled at once: small enough for the cache, large enough to hide the cost of a call."""

_LOG2_BLOCK = 14
_HUGE = 2.0**960
MAX_FLOAT = sys.float_info.max
"""The largest finite float64: where sums saturate, and the public limit of a metric that has no other."""


def rounded_quotient(numerator: int, denominator: int) -> float:
    """Return numerator / denominator, rounded once to nearest, saturated at the largest float.

    Rounding to nearest and saturation never reverse an inequality, so what holds for the exact
    numbers holds for the floats.
    """
    try:
        return numerator / denominator
    except OverflowError:
        return MAX_FLOAT if (numerator > 0) == (denominator > 0) else -MAX_FLOAT


def to_units(values: Floats, power: int = 1) -> list[int]:
    """Return finite floats as exact integers, in units of 2**(-1074 * power)."""
    mantissa, exponent = np.frexp(values)
    # The 53-bit whole mantissa of a subnormal ends in zeros, so the right shift loses nothing.
    whole = np.ldexp(mantissa, 53).astype(np.int64).tolist()
    shift = (exponent - 53 + UNIT_BITS * power).tolist()
    return [m << s if s >= 0 else m >> -s for m, s in zip(whole, shift, strict=True)]


def exact_sum(values: Floats) -> int:
    """Return the exact sum of finite floats, in units of 2**-1074.

    Parameters
    ----------
    values : ndarray of shape (n,), float64, finite

    Notes
    -----
    Error-free vector extraction (Rump, Ogita and Oishi 2008, doi:10.1137/050645671). Let every
    |v| < 2^e in a block of at most 2^14 values and sigma = 2^(e+15). Then q = (v + sigma) - sigma is
    a multiple of 2^(e-38) with |q| <= 2^e, so every partial sum of the q, in any order, is a multiple
    of 2^(e-38) below 2^(e+14): at most 52 bits, exact. The remainder v - q is exact as well and is
    below 2^(e-37): repeat until it is zero.
    """
    total = 0
    for start in range(0, values.size, BLOCK):
        total += _block_sum(values[start : start + BLOCK])
    return total


def exact_square_sum(values: Floats) -> int:
    """Return the exact sum of the squares of finite floats, in units of 2**-2148."""
    total = 0
    for start in range(0, values.size, BLOCK):
        for part, exponent in _scaled_parts(values[start : start + BLOCK]):
            # Dekker's product: part**2 = square + residue without error, because _scaled_parts
            # leaves neither overflow nor a bit below 2^-1074.
            high = part * 134217729.0
            high = high - (high - part)
            low = part - high
            square = part * part
            residue = ((high * high - square) + 2.0 * high * low) + low * low
            units = _block_sum(square) + _block_sum(residue)
            total += units << (UNIT_BITS - 2 * exponent)
    return total


def _scaled_parts(block: Floats) -> list[tuple[Floats, int]]:
    """Split a block into parts of safe size, each multiplied by a power of two, 2**exponent."""
    size = np.abs(block)
    huge = size >= 2.0**480
    tiny = (size < 2.0**-480) & (size > 0.0)
    if not huge.any() and not tiny.any():
        return [(block, 0)]
    parts = [(block[~(huge | tiny)], 0)]
    if huge.any():
        parts.append((np.ldexp(block[huge], -600), -600))
    if tiny.any():
        # 537 is enough to keep the square of the last bit, and leaves a whole number of units
        parts.append((np.ldexp(block[tiny], 537), 537))
    return parts


def _block_sum(block: Floats) -> int:
    if block.size == 0:
        return 0
    largest = float(np.abs(block).max())
    if largest == 0.0:
        return 0
    if largest >= _HUGE:  # sigma would overflow: take the huge values apart, scaled down exactly
        huge = np.abs(block) >= 2.0**500
        return (_block_sum(np.ldexp(block[huge], -500)) << 500) + _block_sum(block[~huge])
    exponent = int(np.frexp(largest)[1])
    total = 0
    extracted = np.empty_like(block)
    rest = block
    while True:
        sigma = np.ldexp(1.0, exponent + _LOG2_BLOCK + 1)
        np.add(rest, sigma, out=extracted)
        np.subtract(extracted, sigma, out=extracted)
        total += _units(float(extracted.sum()))
        rest = np.subtract(rest, extracted, out=None if rest is block else rest)
        if not rest.any():
            return total
        exponent -= 53 - _LOG2_BLOCK - 2


def _units(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator << (UNIT_BITS + 1 - denominator.bit_length())
