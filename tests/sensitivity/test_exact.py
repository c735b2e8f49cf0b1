"""Sums and quotients of floats that are exact, and rounded once."""

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import MAX, hostile_values, loop_over, nearest, slow_but
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
    """Return the exact sum of powers, in units of 2**(-1074 * power)."""
    total = 0
    for value in values:
        numerator, denominator = float(value).as_integer_ratio()
        total += numerator**power * (UNIT**power // denominator**power)
    return total


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


@loop_over("size", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 7])
def test_long_arrays_of_mixed_exponents_are_summed_exactly(size):
    assert_exact(mixed_array(size, seed=size))


@loop_over("value", [MAX, -MAX, 5e-324, 1.0 - 2**-53, 2.0**480, 2.0**-480, 2.0**960, 2.0**-1000, 2.0**-1001])
def test_a_full_block_of_one_extreme_value_loses_nothing(value):
    value = math.nextafter(value, 0.0) or value
    block = np.full(BLOCK, value)
    assert exact_sum(block) == BLOCK * units([value])
    assert exact_moments(block) == (BLOCK * units([value]), BLOCK * units([value], 2))


@pytest.mark.gate
@pytest.mark.parametrize("exponent", slow_but([-1073, 0, 1023], [-1073, -500, 0, 500, 1023]))
def test_a_full_block_of_nearly_equal_values_loses_no_bit(exponent):
    # the sum of the leading parts is as long as it can be
    rng = np.random.default_rng(exponent + 2000)
    for sign in (1, -1, 1, -1):
        assert_exact(sign * np.ldexp(1 - rng.integers(0, 2**40, BLOCK) * 2.0**-53, exponent))


def test_the_last_bit_of_values_of_neighbouring_sizes_is_not_lost():
    # which of them are cut into slices is told by their size, to a bit
    sizes = np.repeat(np.arange(-24.0, 0.0), 41)
    assert_exact(np.ldexp(1 - 2.0**-53, sizes.astype(int)))


def test_strided_and_empty_arrays_are_summed_too():
    assert_exact(mixed_array(1000, seed=3)[::-3])
    assert_exact(np.empty(0))


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
