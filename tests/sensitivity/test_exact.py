"""Sums and quotients of floats that are exact, and rounded once."""

import math
from fractions import Fraction

import numpy as np
from helpers import MAX, hostile_values, loop_over, nearest
from hypothesis import given, strategies as st

from dp_metrics.inputs.arrays import BLOCK
from dp_metrics.sensitivity.exact import (
    UNIT_BITS,
    exact_moments,
    exact_sum,
    rounded_quotient,
    to_units,
)

UNIT = 1 << UNIT_BITS

hostile_lists = st.lists(hostile_values, max_size=30)


def cancelling(values):
    """Return values whose large parts cancel and leave the small ones."""
    return [*values, *(-v for v in values[1:]), *values[:1]]


def units(values, power=1):
    """Return the exact sum of powers, in units of 2**(-1074 * power), from the bits of each value."""
    mantissas, exponents = np.frexp(values)
    total = Fraction(0)
    for exponent in np.unique(exponents).tolist():
        alike = np.ldexp(mantissas[exponents == exponent], 53).astype(np.int64).tolist()
        total += sum(mantissa**power for mantissa in alike) * Fraction(2) ** ((exponent - 53) * power)
    return total * UNIT**power


def mixed_array(size, seed):
    """Return floats of every exponent, many of which cancel."""
    rng = np.random.default_rng(seed)
    values = np.ldexp(rng.uniform(-1, 1, size), rng.integers(-1074, 1025, size))
    values[rng.integers(0, size, size // 4)] = rng.choice([0.0, -0.0, MAX, -MAX, 5e-324, 1e308], size // 4)
    half = size // 3
    values[half : 2 * half] = -values[:half]
    return values


def assert_exact(values):
    assert exact_sum(values) == units(values)
    assert exact_moments(values) == (units(values), units(values, 2))


@given(hostile_lists.map(cancelling) | hostile_lists)
def test_sums_and_square_sums_are_exact(values):
    array = np.array(values)
    assert_exact(array)
    np.testing.assert_array_equal(array, np.array(values))  # the data are left alone


NEARLY_ONE = 1 - np.random.default_rng(0).integers(0, 2**40, BLOCK) * 2.0**-53
EXTREME = [MAX, 5e-324, 1.0 - 2**-53, 2.0**480, 2.0**-480, 2.0**960, 2.0**-1000, 2.0**-1001]
ARRAYS = {
    **{
        f"{size} mixed": mixed_array(size, seed=size) for size in (BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 7)
    },
    **{f"a full block of {value}": np.full(BLOCK, math.nextafter(value, 0.0) or value) for value in EXTREME},
    # the sum of the leading parts is as long as it can be
    **{
        f"a full block of nearly 2^{exponent}": np.ldexp(NEARLY_ONE, exponent)
        for exponent in (-1073, -500, 0, 500, 1023)
    },
    # which of them are cut into slices is told by their size, to a bit
    "neighbouring sizes": np.ldexp(1 - 2.0**-53, np.repeat(np.arange(-24, 0), 41)),
    "strided": mixed_array(1000, seed=3)[::-3],
    "empty": np.empty(0),
}


@loop_over("name", ARRAYS)
def test_sums_of_hard_arrays_lose_no_bit(name):
    assert_exact(ARRAYS[name])
    assert_exact(-ARRAYS[name])


@given(hostile_lists)
def test_every_float_is_a_whole_number_of_units(values):
    assert [Fraction(unit, UNIT) for unit in to_units(np.array(values))] == [Fraction(v) for v in values]


@given(st.integers(-(2**2200), 2**2200) | st.integers(-(2**60), 2**60), st.integers(1, 2**80) | st.just(UNIT))
def test_quotients_are_rounded_once_and_saturated(numerator, denominator):
    assert rounded_quotient(numerator, denominator) == nearest(Fraction(numerator, denominator))


def test_ties_between_subnormals_go_to_even():
    half = 2 * UNIT
    assert rounded_quotient(1, half) == 0.0
    assert rounded_quotient(3, half) == 1e-323
    assert rounded_quotient(1, half - 1) == 5e-324
